//! From an error of the fleet to a problem answer. The last step: nothing above knows HTTP.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use evenkeel_api::{Code, PROBLEM_CONTENT_TYPE, Problem, ProblemField};
use evenkeel_fleet as fleet;
use evenkeel_inventory as inventory;
use evenkeel_telemetry::request;

/// The code of the problem that a response tells, for whoever passes it on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answered(pub(crate) Code);

/// A request that failed; answers as `application/problem+json`.
#[derive(Debug)]
pub(crate) struct Failure(Box<Problem>);

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self(Box::new(problem))
    }
}

impl From<fleet::Error> for Failure {
    fn from(error: fleet::Error) -> Self {
        let text = error.to_string();
        match error {
            fleet::Error::Invalid(error) => Problem::from(error),
            fleet::Error::Parameter { .. } => Problem::new(Code::Parameter, text),
            fleet::Error::NameMismatch { .. } => Problem::new(Code::Invalid, text),
            fleet::Error::Sources(fields) => Problem {
                errors: fields
                    .into_iter()
                    .map(|field| ProblemField {
                        path: field.path,
                        message: field.message,
                    })
                    .collect(),
                ..Problem::new(Code::Source, text)
            },
            fleet::Error::Kubeconfig(_) => Problem::new(Code::Kubeconfig, text),
            fleet::Error::KubeconfigFrom(field) => Problem {
                errors: vec![ProblemField {
                    path: field.path,
                    message: field.message,
                }],
                ..Problem::new(Code::Kubeconfig, text)
            },
            fleet::Error::Broker(fleet::BrokerError::None) | fleet::Error::SyncRunning => {
                Problem::new(Code::Conflict, text)
            }
            fleet::Error::Broker(_) => Problem::new(Code::Broker, text),
            fleet::Error::Target { .. } => Problem::new(Code::Cluster, text),
            fleet::Error::Rollback { .. } | fleet::Error::Suspended(_) | fleet::Error::NoQuestion { .. } => {
                Problem::new(Code::Conflict, text)
            }
            fleet::Error::Consent { losses, .. } => Problem {
                errors: losses
                    .into_iter()
                    .map(|loss| ProblemField {
                        path: "consent".to_owned(),
                        message: format!("expected {}: {}", loss.consent, loss.what),
                    })
                    .collect(),
                ..Problem::new(Code::Consent, text)
            },
            fleet::Error::Inventory(error) => inventory_problem(error, text),
            _ => internal(&text),
        }
        .into()
    }
}

fn inventory_problem(error: inventory::Error, text: String) -> Problem {
    match error {
        inventory::Error::Invalid(error) => Problem::from(error),
        inventory::Error::NotFound { .. } => Problem::new(Code::NotFound, text),
        inventory::Error::ArchiveUnknown { .. } => Problem::new(Code::Source, text),
        inventory::Error::TooLarge { .. } => Problem::new(Code::TooLarge, text),
        inventory::Error::Setting { .. } | inventory::Error::NulCharacter { .. } => {
            Problem::new(Code::Invalid, text)
        }
        inventory::Error::Refused(_)
        | inventory::Error::NameTaken { .. }
        | inventory::Error::NameImmutable { .. }
        | inventory::Error::IdUsed(_)
        | inventory::Error::BeingDeleted(_)
        | inventory::Error::VersionMismatch { .. }
        | inventory::Error::ReconciliationRunning { .. }
        | inventory::Error::KeyRefused { .. }
        | inventory::Error::Outdated(_) => Problem::new(Code::Conflict, text),
        error if error.is_transient() => Problem::new(Code::Overload, "the database is busy: try again"),
        _ => internal(&text),
    }
}

/// A fault of ours: the log has the words, the caller the request id.
fn internal(text: &str) -> Problem {
    tracing::error!(error = text, "a request failed");
    Problem::new(
        Code::Internal,
        "the request met a fault of ours; the log has more under this request id",
    )
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut problem = self.0;
        problem.request_id = request::current();
        let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let answered = Answered(problem.code);
        let mut response = (status, Json(problem)).into_response();
        response.extensions_mut().insert(answered);
        response.headers_mut().insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static(PROBLEM_CONTENT_TYPE),
        );
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}
