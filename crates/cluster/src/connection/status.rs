//! The server's refusals, read into typed errors.

use std::time::Duration;

use evenkeel_core::ObjectRef;
use http::StatusCode;
use serde::Deserialize;

use crate::Error;
use crate::error::FieldConflict;

/// Waited when a busy server does not say how long.
const RETRY_AFTER_DEFAULT: Duration = Duration::from_secs(1);
/// The longest wait that is believed.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(300);
/// The longest message kept of a server, in bytes.
const MESSAGE_MAX: usize = 1024;

/// The API server answers 500 when an applied object does not fit its schema; asking again is useless.
const SCHEMA_FAULT: &str = "failed to create typed patch object";

/// What validation says of a field that may not change, in lower case. The scenario `the_server_agrees_with_every_rule`
/// compares them with the real server.
const ABOUT_CHANGE: [&str; 7] = [
    "immutable",
    "may not change",
    "may not be changed",
    "can't be changed",
    "cannot be changed",
    "updates to ",
    "can not be less than",
];

/// What a request is about, for messages.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    /// What is being done, like `apply Deployment.apps/web in namespace shop`.
    pub(crate) doing: String,
    /// Whether the server may quote secret content when it refuses.
    pub(crate) secret: bool,
}

impl Subject {
    pub(crate) fn new(doing: impl Into<String>) -> Self {
        Self {
            doing: doing.into(),
            secret: false,
        }
    }

    pub(crate) fn object(verb: &str, object: &ObjectRef) -> Self {
        Self {
            doing: format!("{verb} {object}"),
            secret: object.group.is_empty() && object.kind == "Secret",
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    message: String,
    reason: String,
    details: Details,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Details {
    causes: Vec<Cause>,
    retry_after_seconds: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Cause {
    reason: String,
    message: String,
    field: String,
}

/// The error that a refusal stands for.
pub(super) fn error(subject: &Subject, code: StatusCode, retry_after: Option<u64>, body: &[u8]) -> Error {
    // Proxies answer with HTML; then the status code alone counts.
    let status: Status = serde_json::from_slice(body).unwrap_or_default();
    let doing = subject.doing.clone();
    let message = message(subject, &status);
    let retry_after = retry_after
        .or(status.details.retry_after_seconds)
        .map(|seconds| Duration::from_secs(seconds).min(RETRY_AFTER_MAX));
    match code {
        StatusCode::UNAUTHORIZED => Error::Unauthorized { doing, message },
        StatusCode::FORBIDDEN => match terminating_namespace(&status) {
            Some(namespace) => Error::NamespaceTerminating { doing, namespace },
            None => Error::Forbidden { doing, message },
        },
        StatusCode::NOT_FOUND => Error::NotFound { doing, message },
        StatusCode::CONFLICT if status.reason == "AlreadyExists" => Error::AlreadyExists { doing },
        StatusCode::CONFLICT => {
            let conflicts = field_conflicts(&status.details.causes);
            if conflicts.is_empty() {
                Error::Conflict { doing, message }
            } else {
                Error::FieldConflict { doing, conflicts }
            }
        }
        StatusCode::GONE => Error::Expired { doing },
        StatusCode::TOO_MANY_REQUESTS => Error::RateLimited {
            doing,
            retry_after: retry_after.unwrap_or(RETRY_AFTER_DEFAULT),
        },
        StatusCode::SERVICE_UNAVAILABLE if retry_after.is_some() => Error::RateLimited {
            doing,
            retry_after: retry_after.unwrap_or(RETRY_AFTER_DEFAULT),
        },
        code if code.is_server_error() => {
            if status.message.contains("failed calling webhook")
                || status.message.contains("failed to call webhook")
            {
                Error::Webhook { doing, message }
            } else if status.message.contains(SCHEMA_FAULT) {
                Error::Invalid { doing, message }
            } else {
                Error::Server {
                    doing,
                    status: code.as_u16(),
                    message,
                }
            }
        }
        StatusCode::UNPROCESSABLE_ENTITY => match immutable_fields(&status.details.causes) {
            Some(fields) => Error::Immutable {
                doing,
                fields,
                message,
            },
            None => Error::Invalid { doing, message },
        },
        _ => Error::Invalid { doing, message },
    }
}

/// The fields that the server will not change, when that is all that it finds wrong.
fn immutable_fields(causes: &[Cause]) -> Option<Vec<String>> {
    let about_change = |cause: &Cause| {
        let message = cause.message.to_lowercase();
        ABOUT_CHANGE.iter().any(|text| message.contains(text))
    };
    if causes.is_empty() || !causes.iter().all(about_change) {
        return None;
    }
    let mut fields: Vec<String> = causes.iter().map(|cause| cause.field.clone()).collect();
    fields.sort();
    fields.dedup();
    Some(fields)
}

fn field_conflicts(causes: &[Cause]) -> Vec<FieldConflict> {
    causes
        .iter()
        .filter(|cause| cause.reason == "FieldManagerConflict")
        .map(|cause| {
            // `conflict with "kubectl-edit" with subresource "scale" using apps/v1 at 2026-12-01T00:00:00Z`
            let manager = cause.message.split('"').nth(1).unwrap_or("another field manager");
            FieldConflict {
                manager: manager.to_owned(),
                field: cause.field.clone(),
            }
        })
        .collect()
}

fn terminating_namespace(status: &Status) -> Option<String> {
    let cause = status
        .details
        .causes
        .iter()
        .any(|cause| cause.reason == "NamespaceTerminating");
    if !cause && !status.message.contains("because it is being terminated") {
        return None;
    }
    let name = status
        .message
        .split_once("in namespace ")
        .map(|(_, rest)| rest.split_whitespace().next().unwrap_or(rest));
    Some(name.unwrap_or_default().trim_matches(['"', ':']).to_owned())
}

/// The server's message; for Secrets only the fields it names, because it may quote their content.
fn message(subject: &Subject, status: &Status) -> String {
    if status.message.is_empty() {
        return "the server gave no reason".to_owned();
    }
    if !subject.secret {
        return shorten(&status.message);
    }
    let mut fields: Vec<String> = status
        .details
        .causes
        .iter()
        .map(|cause| cause.field.clone())
        .chain(field_paths(&status.message))
        .filter(|field| !field.is_empty() && field != "<nil>")
        .collect();
    fields.sort();
    fields.dedup();
    let reason = if status.reason.is_empty() {
        "refused"
    } else {
        &status.reason
    };
    if fields.is_empty() {
        format!("{reason} (the server's message is left out because it may quote the Secret)")
    } else {
        format!(
            "{reason} at {} (the server's message is left out because it may quote the Secret)",
            fields.join(", ")
        )
    }
}

/// Words of `message` that are paths of a Secret's fields.
fn field_paths(message: &str) -> impl Iterator<Item = String> + '_ {
    const ROOTS: [&str; 5] = ["data", "stringData", "type", "immutable", "metadata"];
    message
        .split(|c: char| c.is_whitespace() || matches!(c, '"' | '(' | ')' | ',' | ';'))
        .filter_map(|word| {
            let path = word.trim_end_matches(':').trim_start_matches('.');
            let root = path.split(['.', '[']).next().unwrap_or_default();
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '[' | ']' | '/');
            // A bare `data` or `type` is an English word.
            (path.len() > root.len() && ROOTS.contains(&root) && path.chars().all(plain))
                .then(|| path.to_owned())
        })
}

fn shorten(message: &str) -> String {
    if message.len() <= MESSAGE_MAX {
        return message.to_owned();
    }
    let mut end = MESSAGE_MAX;
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", message.get(..end).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ErrorClass;

    fn read(secret: bool, code: u16, body: serde_json::Value) -> Error {
        let subject = Subject {
            doing: "apply x".to_owned(),
            secret,
        };
        error(
            &subject,
            StatusCode::from_u16(code).expect("code"),
            None,
            body.to_string().as_bytes(),
        )
    }

    #[test]
    fn conflicts_name_manager_and_field() {
        let found = read(
            false,
            409,
            json!({"reason": "Conflict", "message": "Apply failed with 1 conflict", "details": {"causes": [
                {"reason": "FieldManagerConflict", "message": "conflict with \"kubectl-edit\" using apps/v1", "field": ".spec.replicas"},
            ]}}),
        );
        assert_eq!(
            found.to_string(),
            "apply x: .spec.replicas is owned by kubectl-edit; leave them out of the manifest, or let `onConflict` \
             (--on-conflict) or the annotation evenkeel.dev/on-conflict say that they are taken (force) or left (leave)"
        );
        // Looking again would not help: the policy, or who owns the field, has to change.
        assert_eq!(found.class(), ErrorClass::Invalid);
    }

    #[test]
    fn a_terminating_namespace_is_no_permission_error() {
        let found = read(
            false,
            403,
            json!({"reason": "Forbidden", "message":
            "configmaps \"c\" is forbidden: unable to create new content in namespace t1 because it is being terminated"}),
        );
        assert!(
            matches!(&found, Error::NamespaceTerminating { namespace, .. } if namespace == "t1"),
            "{found}"
        );
        assert_eq!(found.class(), ErrorClass::Transient);
    }

    #[test]
    fn a_busy_server_says_how_long() {
        for (code, body, seconds) in [
            (429, json!({"details": {"retryAfterSeconds": 7}}), 7),
            (429, json!({}), 1),
            (503, json!({"details": {"retryAfterSeconds": 2}}), 2),
            (429, json!({"details": {"retryAfterSeconds": 1_000_000}}), 300),
        ] {
            assert_eq!(
                read(false, code, body).class(),
                ErrorClass::RateLimited(Duration::from_secs(seconds))
            );
        }
        assert_eq!(read(false, 503, json!({})).class(), ErrorClass::Transient);
    }

    #[test]
    fn refusals_of_secrets_quote_no_content() {
        let quoting = json!({"reason": "Invalid", "message":
            "failed to create typed patch object (a/s; /v1, Kind=Secret): .data.TOKEN: expected string, got &value{Value:\"hunter2\"}"});
        let text = read(true, 400, quoting.clone()).to_string();
        assert!(text.contains("data.TOKEN") && !text.contains("hunter2"), "{text}");
        assert!(read(false, 400, quoting).to_string().contains("hunter2"));
        let text = read(
            true,
            422,
            json!({"reason": "Invalid", "message": "data is invalid: hunter2"}),
        )
        .to_string();
        assert!(!text.contains("hunter2") && text.contains("Invalid"), "{text}");
    }

    #[test]
    fn webhooks_that_cannot_be_called_pass_by_themselves() {
        let found = read(
            false,
            500,
            json!({"message": "Internal error occurred: failed calling webhook \"a.b\": connection refused"}),
        );
        assert!(matches!(found, Error::Webhook { .. }));
        assert_eq!(found.class(), ErrorClass::Transient);
    }

    #[test]
    fn an_object_that_does_not_fit_its_schema_is_invalid() {
        let found = read(
            false,
            500,
            json!({"message": "failed to create typed patch object (a/web; apps/v1, Kind=Deployment): .spec.replicsa: field not declared in schema"}),
        );
        assert_eq!(found.class(), ErrorClass::Invalid);
    }

    #[test]
    fn long_messages_are_cut_at_a_character() {
        assert!(shorten(&"ä".repeat(2000)).len() <= MESSAGE_MAX + '…'.len_utf8());
    }
}
