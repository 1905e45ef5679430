//! Errors as the API server answers them: `Status` objects with its codes, reasons and texts.

use std::time::Duration;

use serde_json::{Map, Value, json};

/// One cause in `details.causes`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cause {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    /// Path of the field; empty when the cause is not about one.
    pub(crate) field: String,
}

impl Cause {
    /// A value that may not be.
    pub(crate) fn invalid(field: &str, value: &str, detail: &str) -> Self {
        Self {
            reason: "FieldValueInvalid",
            message: format!("Invalid value: {value}: {detail}"),
            field: field.to_owned(),
        }
    }

    /// A value that is missing.
    pub(crate) fn required(field: &str, detail: &str) -> Self {
        let message = if detail.is_empty() {
            "Required value".to_owned()
        } else {
            format!("Required value: {detail}")
        };
        Self {
            reason: "FieldValueRequired",
            message,
            field: field.to_owned(),
        }
    }

    /// A change or field that is not allowed.
    pub(crate) fn forbidden(field: &str, detail: &str) -> Self {
        Self {
            reason: "FieldValueForbidden",
            message: format!("Forbidden: {detail}"),
            field: field.to_owned(),
        }
    }

    /// A value out of a closed list.
    pub(crate) fn not_supported(field: &str, value: &str, allowed: &[&str]) -> Self {
        let mut names: Vec<String> = allowed.iter().map(|name| format!("{name:?}")).collect();
        names.sort();
        Self {
            reason: "FieldValueNotSupported",
            message: format!(
                "Unsupported value: {value}: supported values: {}",
                names.join(", ")
            ),
            field: field.to_owned(),
        }
    }

    fn text(&self) -> String {
        if self.field.is_empty() {
            self.message.clone()
        } else {
            format!("{}: {}", self.field, self.message)
        }
    }
}

/// What the error is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Details {
    pub(crate) name: String,
    pub(crate) group: String,
    pub(crate) kind: String,
    pub(crate) causes: Vec<Cause>,
    pub(crate) retry_after: Option<Duration>,
}

/// An error answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiError {
    pub(crate) code: u16,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) details: Option<Box<Details>>,
    /// Texts for Warning headers, which an error answer carries too.
    pub(crate) warnings: Vec<String>,
}

/// A group and a resource or kind in it, as errors name them: `deployments.apps`, `configmaps`.
pub(crate) fn qualified(name: &str, group: &str) -> String {
    if group.is_empty() {
        name.to_owned()
    } else {
        format!("{name}.{group}")
    }
}

impl ApiError {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: None,
            warnings: Vec::new(),
        }
    }

    pub(crate) fn with_warnings(self, warnings: Vec<String>) -> Self {
        Self { warnings, ..self }
    }

    fn about(mut self, name: &str, group: &str, kind: &str) -> Self {
        self.details = Some(Box::new(Details {
            name: name.into(),
            group: group.into(),
            kind: kind.into(),
            ..Details::default()
        }));
        self
    }

    fn bare(mut self) -> Self {
        self.details = Some(Box::default());
        self
    }

    pub(crate) fn not_found(group: &str, resource: &str, name: &str) -> Self {
        let message = format!("{} {name:?} not found", qualified(resource, group));
        Self::new(404, "NotFound", message).about(name, group, resource)
    }

    pub(crate) fn no_such_resource() -> Self {
        Self::new(
            404,
            "NotFound",
            "the server could not find the requested resource",
        )
        .bare()
    }

    pub(crate) fn method_not_allowed() -> Self {
        Self::new(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        )
        .bare()
    }

    pub(crate) fn already_exists(group: &str, resource: &str, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", qualified(resource, group));
        Self::new(409, "AlreadyExists", message).about(name, group, resource)
    }

    pub(crate) fn conflict(group: &str, resource: &str, name: &str, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} {name:?}: {why}",
            qualified(resource, group)
        );
        Self::new(409, "Conflict", message).about(name, group, resource)
    }

    pub(crate) fn modified(group: &str, resource: &str, name: &str) -> Self {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(group, resource, name, why)
    }

    pub(crate) fn conflict_causes(message: String, causes: Vec<Cause>) -> Self {
        let mut error = Self::new(409, "Conflict", message);
        error.details = Some(Box::new(Details {
            causes,
            ..Details::default()
        }));
        error
    }

    pub(crate) fn invalid(group: &str, kind: &str, name: &str, causes: Vec<Cause>) -> Self {
        let texts: Vec<String> = causes.iter().map(Cause::text).collect();
        let list = match texts.as_slice() {
            [one] => one.clone(),
            many => {
                // The API server leaves out repetitions.
                let mut unique: Vec<&String> = Vec::new();
                for text in many {
                    if !unique.contains(&text) {
                        unique.push(text);
                    }
                }
                match unique.as_slice() {
                    [one] => (*one).clone(),
                    many => {
                        format!(
                            "[{}]",
                            many.iter()
                                .map(|text| text.as_str())
                                .collect::<Vec<_>>()
                                .join(", ")
                        )
                    }
                }
            }
        };
        let message = format!("{} {name:?} is invalid: {list}", qualified(kind, group));
        let mut error = Self::new(422, "Invalid", message).about(name, group, kind);
        if let Some(details) = error.details.as_mut() {
            details.causes = causes;
        }
        error
    }

    pub(crate) fn unprocessable() -> Self {
        Self::new(
            422,
            "Invalid",
            "the server rejected our request due to an error in our request",
        )
        .bare()
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub(crate) fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    pub(crate) fn forbidden(group: &str, resource: &str, name: &str, why: &str) -> Self {
        let subject = if name.is_empty() {
            qualified(resource, group)
        } else {
            format!("{} {name:?}", qualified(resource, group))
        };
        Self::new(403, "Forbidden", format!("{subject} is forbidden: {why}")).about(name, group, resource)
    }

    pub(crate) fn forbidden_cause(mut self, reason: &'static str, message: String, field: &str) -> Self {
        let details = self.details.get_or_insert_default();
        details.causes.push(Cause {
            reason,
            message,
            field: field.to_owned(),
        });
        self
    }

    pub(crate) fn not_acceptable(available: &str) -> Self {
        let message = format!("406: Not Acceptable\n\nAvailable representations: {available}");
        Self::new(406, "NotAcceptable", message).bare()
    }

    pub(crate) fn unsupported_media_type() -> Self {
        Self::new(415, "UnsupportedMediaType", "415: Unsupported Media Type").bare()
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        Self::new(
            413,
            "RequestEntityTooLarge",
            format!("Request entity too large: limit is {limit}"),
        )
        .bare()
    }

    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// A resourceVersion that this server has not reached.
    pub(crate) fn version_too_large(asked: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        let mut error = Self::new(504, "Timeout", message);
        error.details = Some(Box::new(Details {
            causes: vec![Cause {
                reason: "ResourceVersionTooLarge",
                message: "Too large resource version".into(),
                field: String::new(),
            }],
            retry_after: Some(Duration::from_secs(1)),
            ..Details::default()
        }));
        error
    }

    pub(crate) fn too_many_requests(retry_after: Duration) -> Self {
        let mut error = Self::new(
            429,
            "TooManyRequests",
            "the server has received too many requests and has asked us to try again later",
        );
        error.details = Some(Box::new(Details {
            retry_after: Some(retry_after),
            ..Details::default()
        }));
        error
    }

    pub(crate) fn unavailable(retry_after: Option<Duration>) -> Self {
        let mut error = Self::new(
            503,
            "ServiceUnavailable",
            "the server is currently unable to handle the request",
        );
        error.details = Some(Box::new(Details {
            retry_after,
            ..Details::default()
        }));
        error
    }

    /// What the API server answers when it meets an error it has no name for: 500 without a reason.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    /// An internal error that the API server words itself.
    pub(crate) fn internal_error(text: &str) -> Self {
        let mut error = Self::new(500, "InternalError", format!("Internal error occurred: {text}"));
        let cause = Cause {
            reason: "",
            message: text.to_owned(),
            field: String::new(),
        };
        error.details = Some(Box::new(Details {
            causes: vec![cause],
            ..Details::default()
        }));
        error
    }

    /// Seconds for the Retry-After header.
    pub(crate) fn retry_after(&self) -> Option<u64> {
        self.details
            .as_ref()?
            .retry_after
            .map(|wait| wait.as_secs().max(1))
    }

    /// The `Status` object.
    pub(crate) fn to_value(&self) -> Value {
        let mut status = Map::new();
        status.insert("kind".into(), "Status".into());
        status.insert("apiVersion".into(), "v1".into());
        status.insert("metadata".into(), json!({}));
        status.insert("status".into(), "Failure".into());
        status.insert("message".into(), self.message.as_str().into());
        if !self.reason.is_empty() {
            status.insert("reason".into(), self.reason.into());
        }
        if let Some(details) = &self.details {
            let mut object = Map::new();
            for (key, text) in [
                ("name", &details.name),
                ("group", &details.group),
                ("kind", &details.kind),
            ] {
                if !text.is_empty() {
                    object.insert(key.into(), text.as_str().into());
                }
            }
            if !details.causes.is_empty() {
                let causes = details.causes.iter().map(|cause| {
                    let mut object = Map::new();
                    if !cause.reason.is_empty() {
                        object.insert("reason".into(), cause.reason.into());
                    }
                    object.insert("message".into(), cause.message.as_str().into());
                    if !cause.field.is_empty() {
                        object.insert("field".into(), cause.field.as_str().into());
                    }
                    Value::Object(object)
                });
                object.insert("causes".into(), causes.collect());
            }
            if let Some(seconds) = self.retry_after() {
                object.insert("retryAfterSeconds".into(), seconds.into());
            }
            status.insert("details".into(), Value::Object(object));
        }
        status.insert("code".into(), self.code.into());
        Value::Object(status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_read_as_those_of_a_real_server() {
        // Recorded from kube-apiserver v1.37.2.
        assert_eq!(
            ApiError::not_found("", "configmaps", "nope").to_value(),
            json!({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",
                "message":"configmaps \"nope\" not found","reason":"NotFound",
                "details":{"name":"nope","kind":"configmaps"},"code":404})
        );
        assert_eq!(
            ApiError::version_too_large(99_999_999, 325).to_value(),
            json!({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",
                "message":"Timeout: Too large resource version: 99999999, current: 325","reason":"Timeout",
                "details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],
                "retryAfterSeconds":1},"code":504})
        );
        assert_eq!(ApiError::internal("x").to_value().get("reason"), None);
    }

    #[test]
    fn several_causes_are_listed_once_each() {
        let cause = || Cause::required("a", "");
        let error = ApiError::invalid(
            "apps",
            "Deployment",
            "x",
            vec![cause(), Cause::forbidden("b", "no"), cause()],
        );
        assert_eq!(
            error.message,
            "Deployment.apps \"x\" is invalid: [a: Required value, b: Forbidden: no]"
        );
    }
}
