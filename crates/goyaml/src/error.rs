//! The one error of this crate: Go's text, with the line where known.

use crate::Value;
use crate::number;

/// What `sigs.k8s.io/yaml` puts before a problem of the YAML text.
const CONVERTING: &str = "error converting YAML to JSON: ";

/// What `sigs.k8s.io/yaml` puts before a problem of the JSON that it made of the YAML text.
const UNMARSHALING: &str = "error unmarshaling JSON: while decoding JSON: ";

/// Why a text could not be read, or a value not be written. `Display` is the text that Go prints,
/// for example `error converting YAML to JSON: yaml: line 3: did not find expected key`.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{}", .0.text)]
pub struct Error(Box<Details>);

#[derive(Clone, Debug, PartialEq)]
struct Details {
    text: String,
    message: String,
    line: Option<usize>,
    partial: Option<Value>,
}

impl Error {
    /// The line (from 1) that Go's text names; Go names none for problems in the first line.
    pub fn line(&self) -> Option<usize> {
        self.0.line
    }

    /// The bare problem, without Go's prefixes and line: `did not find expected key`.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What Go had decoded when it found the problem: only for a JSON number that fits no `float64`, where Go goes on
    /// with a zero in its place and Helm's `fromJson` keeps the rest beside the error.
    pub fn partial(&self) -> Option<&Value> {
        self.0.partial.as_ref()
    }

    fn new(text: String, message: String, line: Option<usize>) -> Self {
        Error(Box::new(Details {
            text,
            message,
            line,
            partial: None,
        }))
    }

    /// A problem of the YAML text.
    pub(crate) fn yaml(line: Option<usize>, message: impl Into<String>) -> Self {
        let message = message.into();
        let text = match line {
            Some(line) => format!("{CONVERTING}yaml: line {line}: {message}"),
            None => format!("{CONVERTING}yaml: {message}"),
        };
        Error::new(text, message, line)
    }

    /// The YAML is sound but has no form in JSON.
    pub(crate) fn conversion(message: String) -> Self {
        Error::new(format!("{CONVERTING}{message}"), message, None)
    }

    /// The JSON form of the YAML text does not fit what was asked for.
    pub(crate) fn unmarshaling(message: String) -> Self {
        Error::new(format!("{UNMARSHALING}{message}"), message, None)
    }

    /// A problem of a JSON text.
    pub(crate) fn json(message: impl Into<String>) -> Self {
        let message = message.into();
        Error::new(message.clone(), message, None)
    }

    /// Go's encoding/json refuses NaN and infinities in these words.
    pub(crate) fn unsupported_float(value: f64) -> Self {
        Error::json(format!(
            "json: unsupported value: {}",
            number::non_finite_name(value)
        ))
    }

    pub(crate) fn with_partial(mut self, partial: Value) -> Self {
        self.0.partial = Some(partial);
        self
    }

    /// The same problem as go-yaml itself words it; `sigs.k8s.io/yaml.Marshal`, which reads its own JSON back as YAML,
    /// adds nothing either.
    pub(crate) fn bare(mut self) -> Self {
        if let Some(text) = self.0.text.strip_prefix(CONVERTING) {
            self.0.text = text.to_owned();
        }
        self
    }

    /// The same problem with a prefix of the caller's.
    pub(crate) fn prefixed(mut self, prefix: &str) -> Self {
        self.0.text.insert_str(0, prefix);
        self
    }
}
