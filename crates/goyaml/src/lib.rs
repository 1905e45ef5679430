//! YAML and JSON as Go reads and writes them. Pure: no I/O, same input, same bytes out.
//!
//! Helm's template functions and value files go through `sigs.k8s.io/yaml` (YAML to JSON to `interface{}` and back)
//! and `go.yaml.in/yaml`; a chart rendered elsewhere is byte-equal only if every one of their habits is kept.
//!
//! ```text
//!                                            tag and text
//!                                               |
//!  bytes -> scanner -> parser -> document -> decode -> Value -> emit (v2: toYaml, v3: toYamlPretty) -> text
//!           tokens     events    flat nodes      ^       |
//!                                JSON reader ----+       +----> JSON writer (toJson and kin)
//! ```
//!
//! The oracle is Helm 4.3.1: `tests/data` holds what it printed, slips included (it writes the key `<<` so that it
//! cannot read it back). Deliberate differences: values nested deeper than [`MAX_DEPTH`] are refused where Go goes on to
//! 10,000; where Go's own output is random (keys that its order puts in a circle, several keys without a form in JSON),
//! this crate's is not.
//!
//! ```
//! use evenkeel_goyaml::{Numbers, from_yaml, to_yaml};
//!
//! let value = from_yaml(b"{port: 1e6, on: [yes, 'no']}", Numbers::Float64)?;
//! assert_eq!(to_yaml(&value), "port: 1000000\n\"true\":\n- true\n- \"no\"\n");
//! # Ok::<(), evenkeel_goyaml::Error>(())
//! ```

mod decode;
mod document;
mod emit;
mod error;
mod json;
mod key_order;
mod node;
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
pub use node::{Node, NodeComments, NodeContent, NodeDocument, NodeWriter, ScalarStyle};
pub use number::format_json_float;
pub use read::{YamlDocument, from_yaml, from_yaml_documents, from_yaml_list, from_yaml_map};
pub use unicode::{is_digit, is_letter, is_print};
pub use value::{Map, Numbers, Value};
