//! Errors on the wire (RFC 9457) with stable codes.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The media type of a [`Problem`].
pub const CONTENT_TYPE: &str = "application/problem+json";

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = ($code:literal, $status:literal, $title:literal),)+) => {
        /// What went wrong, for programs. A code never changes its meaning.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum Code {
            $($(#[$doc])* #[serde(rename = $code)] $variant,)+
        }

        impl Code {
            /// All codes.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The code on the wire, `EK-nnnn`.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $code,)+ }
            }

            /// The HTTP status that goes with it.
            pub fn status(self) -> u16 {
                match self { $(Self::$variant => $status,)+ }
            }

            /// The same few words each time.
            pub fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)+ }
            }
        }
    };
}

codes! {
    /// The body is not JSON or YAML.
    Syntax = ("EK-1001", 400, "The body cannot be read"),
    /// A field of the body is unknown, missing or wrong.
    Invalid = ("EK-1002", 422, "The document is not valid"),
    /// A parameter of the path or the query is wrong.
    Parameter = ("EK-1003", 400, "A parameter is not valid"),
    /// The body is larger than the limit.
    TooLarge = ("EK-1004", 413, "The body is too large"),
    /// The content type is not one we read.
    MediaType = ("EK-1005", 415, "The content type is not supported"),
    /// The kubeconfig cannot be used.
    Kubeconfig = ("EK-1006", 422, "The kubeconfig cannot be used"),
    /// A source that the mothership cannot read, or may not.
    Source = ("EK-1007", 422, "A source cannot be used"),
    /// A page of another site sent it, or it came in under another name.
    Elsewhere = ("EK-1403", 403, "The request comes from elsewhere"),
    /// There is no such path.
    Route = ("EK-1404", 404, "There is no such path"),
    /// The path exists, the method does not.
    Method = ("EK-1405", 405, "The method is not allowed here"),
    /// There is no such cluster, reconciliation, configuration or archive.
    NotFound = ("EK-2001", 404, "It does not exist"),
    /// The present state does not allow it.
    Conflict = ("EK-2002", 409, "The present state does not allow it"),
    /// The change needs consent (DESIGN §7).
    Consent = ("EK-2003", 409, "The change needs consent"),
    /// A cluster that had to be asked did not answer, or refused.
    Cluster = ("EK-2004", 502, "The cluster cannot be asked"),
    /// The environment broker did not answer, or refused.
    Broker = ("EK-2005", 502, "The environment broker cannot be asked"),
    /// Too much is asked at once.
    Overload = ("EK-5003", 503, "The server is busy"),
    /// The answer was not ready in time.
    Timeout = ("EK-5004", 504, "The request took too long"),
    /// A fault of ours.
    Internal = ("EK-5000", 500, "An internal error occurred"),
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One wrong field of a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProblemField {
    /// Path from the document's root: `components[2].dependsOn[0]`.
    pub path: String,
    /// What is wrong and what was expected.
    pub message: String,
}

/// An error as the API answers it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// Same as [`Code::title`].
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// The stable code.
    pub code: Code,
    /// What happened this time: what failed, on what, and what to do.
    pub detail: String,
    /// Every wrong field, where the document was at fault.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ProblemField>,
    /// The id under which the logs know this request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

impl Problem {
    /// A problem of kind `code`.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self {
            title: code.title().to_owned(),
            status: code.status(),
            code,
            detail: detail.into(),
            errors: Vec::new(),
            request_id: None,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.detail, self.code)
    }
}

impl From<evenkeel_core::Error> for Problem {
    fn from(error: evenkeel_core::Error) -> Self {
        let mut problem = Self::new(Code::Invalid, error.to_string());
        if let evenkeel_core::Error::Spec(fields) = error {
            problem.errors = fields
                .into_iter()
                .map(|field| ProblemField {
                    path: field.path,
                    message: field.message,
                })
                .collect();
        }
        problem
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn codes_are_unique() {
        let codes: BTreeSet<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(codes.len(), Code::ALL.len());
    }
}
