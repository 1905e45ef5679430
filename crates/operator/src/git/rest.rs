//! The REST interfaces of Git hosts, which differ in what they are asked, not in how.

use std::time::Duration;

use evenkeel_core::Sensitive;
use reqwest::{Method, StatusCode};
use serde_json::Value;

use crate::Error;
use crate::remote::{Answer, Call, Remote};

/// A Git host's interface: where it is, and who asks.
#[derive(Clone, Debug)]
pub(super) struct Rest {
    pub(super) remote: Remote,
    /// Below `api` in every path.
    pub(super) version: &'static str,
    /// The header that says who asks, and what it says.
    pub(super) credential: (&'static str, Sensitive<String>),
}

/// One request, without what all have.
pub(super) struct Request<'a> {
    pub(super) doing: &'a str,
    pub(super) method: Method,
    pub(super) path: Vec<&'a str>,
    pub(super) query: Vec<(&'a str, String)>,
    pub(super) body: Option<Value>,
    pub(super) timeout: Option<Duration>,
}

impl<'a> Request<'a> {
    pub(super) fn new(doing: &'a str, method: Method, path: &[&'a str]) -> Self {
        Self {
            doing,
            method,
            path: path.to_vec(),
            query: Vec::new(),
            body: None,
            timeout: None,
        }
    }

    pub(super) fn body(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }
}

impl Rest {
    pub(super) async fn call(&self, request: Request<'_>) -> Result<Answer, Error> {
        let (header, credential) = &self.credential;
        self.remote
            .call(Call {
                doing: request.doing,
                method: request.method,
                path: ["api", self.version].into_iter().chain(request.path).collect(),
                query: request.query,
                headers: vec![(header, credential.expose().as_str())],
                body: request.body,
                timeout: request.timeout,
            })
            .await
    }

    /// A call that has to succeed.
    pub(super) async fn succeed(&self, request: Request<'_>) -> Result<Value, Error> {
        let doing = request.doing;
        let answer = self.call(request).await?;
        self.successful(doing, answer)
    }

    pub(super) fn successful(&self, doing: &str, answer: Answer) -> Result<Value, Error> {
        if answer.status.is_success() {
            Ok(answer.body)
        } else {
            Err(self.remote.refusal(doing, &answer))
        }
    }

    /// A deletion: what is gone is as good.
    pub(super) async fn remove(&self, request: Request<'_>) -> Result<(), Error> {
        let doing = request.doing;
        let answer = self.call(request).await?;
        if answer.status == StatusCode::NOT_FOUND {
            return Ok(());
        }
        self.successful(doing, answer).map(drop)
    }
}
