//! The one error of this crate: Go's text, with the line where known.

/// Why a text could not be read, or a value not be written. `Display` is the text that Go prints,
/// for example `error converting YAML to JSON: yaml: line 3: did not find expected key`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Error {
    text: String,
    message: String,
    line: Option<usize>,
}

impl Error {
    /// The line (from 1) that Go's text names; Go names none for problems in the first line.
    pub fn line(&self) -> Option<usize> {
        self.line
    }

    /// The bare problem, without Go's prefixes and line: `did not find expected key`.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Go's encoding/json refuses NaN and infinities in these words.
    pub(crate) fn unsupported_float(value: f64) -> Self {
        let name = if value.is_nan() {
            "NaN"
        } else if value > 0.0 {
            "+Inf"
        } else {
            "-Inf"
        };
        let message = format!("unsupported value: {name}");
        Error { text: format!("json: {message}"), message, line: None }
    }
}
