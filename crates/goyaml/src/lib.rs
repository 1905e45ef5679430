//! YAML and JSON as Go reads and writes them. Pure: no I/O, same input, same bytes out.
//!
//! Helm's template functions and value files go through `sigs.k8s.io/yaml` (YAML to JSON to `interface{}` and back)
//! and `go.yaml.in/yaml`; a chart rendered elsewhere is byte-equal only if every one of their habits is kept.
//!
//! ```text
//!  bytes -> scanner -> parser -> composer/resolver -> Value -> emitter (v2 style | v3 style | JSON) -> text
//! ```

mod error;
mod value;

pub use error::Error;
pub use value::{Map, Numbers, Value};
use std::cmp::Ordering;

/// Which JSON text to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonStyle {
    /// One line, `<`, `>`, `&`, U+2028 and U+2029 escaped (`toJson`).
    Compact,
    /// Indented by two blanks, escaped like [`JsonStyle::Compact`] (`toPrettyJson`).
    Pretty,
    /// One line without the HTML escapes (`toRawJson`).
    Raw,
}
/// Reads the first document of a YAML text.
pub fn from_yaml(text: &[u8], numbers: Numbers) -> Result<Value, Error> { let _ = (text, numbers); Ok(Value::Null) }
/// Reads a JSON text.
pub fn from_json(text: &[u8], numbers: Numbers) -> Result<Value, Error> { let _ = (text, numbers); Ok(Value::Null) }
/// Writes a value as `sigs.k8s.io/yaml.Marshal` does, with the trailing newline.
pub fn to_yaml(value: &Value) -> String { let _ = value; String::new() }
/// Writes a value as go-yaml v3 does with indent 2 (`toYamlPretty`), with the trailing newline.
pub fn to_yaml_pretty(value: &Value) -> String { let _ = value; String::new() }
/// Writes a value as Go's encoding/json does.
pub fn to_json(value: &Value, style: JsonStyle) -> String { let _ = (value, style); String::new() }
/// Key order of yaml.v2.
pub fn natural_order(a: &str, b: &str) -> Ordering { a.cmp(b) }
/// A float as Go's encoding/json prints it.
pub fn format_json_float(value: f64) -> String { value.to_string() }
