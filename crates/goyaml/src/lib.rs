//! YAML and JSON as Go reads and writes them. Pure: no I/O, same input, same bytes out.
//!
//! Helm's template functions and value files go through `sigs.k8s.io/yaml` (YAML to JSON to `interface{}` and back)
//! and `go.yaml.in/yaml`; a chart rendered elsewhere is byte-equal only if every one of their habits is kept.
//!
//! ```text
//!  bytes -> scanner -> parser -> composer/resolver -> Value -> emitter (v2 style | v3 style | JSON) -> text
//! ```

mod decode;
mod document;
mod emit;
mod error;
mod json;
mod key_order;
mod number;
mod parser;
mod read;
mod resolve;
mod scanner;
mod unicode;
mod value;

pub use decode::MAX_DEPTH;
pub use emit::{to_yaml, to_yaml_pretty, try_to_yaml};
pub use error::Error;
pub use json::read::{from_json, from_json_list, from_json_map};
pub use json::{JsonStyle, replace_invalid_utf8, to_json, try_to_json};
pub use key_order::natural_order;
pub use number::format_json_float;
pub use read::{YamlDocument, from_yaml, from_yaml_documents, from_yaml_list, from_yaml_map};
pub use unicode::is_print;
pub use value::{Map, Numbers, Value};
