//! Reading requests: every fault is a problem that says what, where and what was expected.

use std::fmt::Display;
use std::str::FromStr;

use axum::extract::rejection::{BytesRejection, PathRejection};
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::{StatusCode, header, request::Parts};
use bytes::Bytes;
use evenkeel_api::{Code, Problem, ProblemField};
use evenkeel_goyaml::{Numbers, YamlDocument, from_yaml_documents};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::problem::Failure;

/// A body that is a document in JSON or YAML.
#[derive(Debug)]
pub(crate) struct Document(pub(crate) Value);

/// A body of bytes within the route's limit.
#[derive(Debug)]
pub(crate) struct Content(pub(crate) Bytes);

/// One part of the path, parsed.
#[derive(Debug)]
pub(crate) struct Named<T>(pub(crate) T);

/// The query string, parsed; unknown parameters are refused where the type says so.
#[derive(Debug)]
pub(crate) struct Query<T>(pub(crate) T);

impl<S: Send + Sync> FromRequest<S> for Content {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failure> {
        Bytes::from_request(request, state)
            .await
            .map(Self)
            .map_err(|rejection: BytesRejection| {
                let code = match rejection.status() {
                    StatusCode::PAYLOAD_TOO_LARGE => Code::TooLarge,
                    _ => Code::Syntax,
                };
                Problem::new(code, rejection.body_text()).into()
            })
    }
}

impl<S: Send + Sync> FromRequest<S> for Document {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failure> {
        let media_type = request
            .headers()
            .get(header::CONTENT_TYPE)
            .and_then(|value| value.to_str().ok());
        let media_type = media_type
            .unwrap_or_default()
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_owned();
        let Content(body) = Content::from_request(request, state).await?;
        let syntax = |error: &dyn Display| Failure::from(Problem::new(Code::Syntax, error.to_string()));
        match media_type.as_str() {
            "application/json" => serde_json::from_slice(&body)
                .map(Self)
                .map_err(|error| syntax(&error)),
            "application/yaml" | "application/x-yaml" | "text/yaml" => {
                let documents = from_yaml_documents(&body, Numbers::Exact).map_err(|error| syntax(&error))?;
                let document = only(documents)?;
                Value::try_from(document)
                    .map(Self)
                    .map_err(|error| syntax(&error))
            }
            other => {
                let detail = format!(
                    "content type {other:?} is not supported: send application/json or application/yaml"
                );
                Err(Problem::new(Code::MediaType, detail).into())
            }
        }
    }
}

/// The one document that holds something. A second one would be passed over in silence.
fn only(documents: Vec<YamlDocument>) -> Result<evenkeel_goyaml::Value, Failure> {
    let wrong = |text: String| Err(Problem::new(Code::Syntax, text).into());
    let mut full = documents
        .into_iter()
        .filter(|document| !matches!(document.value, evenkeel_goyaml::Value::Null));
    match (full.next(), full.next()) {
        (Some(document), None) => Ok(document.value),
        (None, _) => wrong("the body holds no document".to_owned()),
        (Some(_), Some(second)) => wrong(format!(
            "expected one document, found another one at line {}",
            second.line
        )),
    }
}

impl Document {
    /// The document as a `T`.
    pub(crate) fn parse<T: DeserializeOwned>(self) -> Result<T, Failure> {
        serde_path_to_error::deserialize(self.0).map_err(|error| {
            let (path, message) = (error.path().to_string(), error.inner().to_string());
            let mut problem = Problem::new(Code::Invalid, format!("{path}: {message}"));
            problem.errors.push(ProblemField { path, message });
            problem.into()
        })
    }
}

impl<S: Send + Sync, T> FromRequestParts<S> for Named<T>
where
    T: FromStr + Send,
    T::Err: Display,
{
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let wrong = |text: String| Failure::from(Problem::new(Code::Parameter, text));
        let Path(text) = Path::<String>::from_request_parts(parts, state)
            .await
            .map_err(|rejection: PathRejection| wrong(rejection.body_text()))?;
        text.parse()
            .map(Self)
            .map_err(|error: T::Err| wrong(error.to_string()))
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let query = axum::extract::Query::<T>::from_request_parts(parts, state).await;
        query
            .map(|axum::extract::Query(query)| Self(query))
            .map_err(|rejection| Problem::new(Code::Parameter, rejection.body_text()).into())
    }
}
