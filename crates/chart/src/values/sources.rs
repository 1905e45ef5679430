//! The user's values: files and `--set…` arguments, in Helm's fixed order.

use evenkeel_goyaml::{Map, Numbers, Value, from_json};

use super::set::{Mode, apply};
use super::{load_values, merge_maps};
use crate::Error;

/// Everything a user gives beside the chart. The order of precedence is Helm's and does not follow the command line:
/// files, then `--set-json`, `--set`, `--set-string`, `--set-file`, `--set-literal`.
#[derive(Clone, Debug, Default)]
pub struct ValueSources {
    /// Values files, the last one wins.
    pub files: Vec<ValuesFile>,
    /// `--set-json`: a JSON object, or `key=json`.
    pub json: Vec<String>,
    /// `--set`.
    pub typed: Vec<String>,
    /// `--set-string`.
    pub text: Vec<String>,
    /// `--set-file`: `key=path`.
    pub file: Vec<String>,
    /// `--set-literal`.
    pub literal: Vec<String>,
}

/// A values file and the name it was given under.
#[derive(Clone)]
pub struct ValuesFile {
    /// For messages.
    pub name: String,
    /// YAML or JSON.
    pub text: Vec<u8>,
}

impl std::fmt::Debug for ValuesFile {
    /// Without the text: values hold secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({} bytes)", self.name, self.text.len())
    }
}

impl ValueSources {
    /// Lays all of it over each other. `read` gives the contents of a file named by `--set-file`.
    pub fn merge(&self, read: impl Fn(&str) -> Result<Vec<u8>, String>) -> Result<Value, Error> {
        let mut values = Map::new();
        for file in &self.files {
            let over = load_values(&file.text).map_err(|problem| Error::ValuesFile {
                file: file.name.clone(),
                problem,
            })?;
            merge_maps(&mut values, over);
        }
        for argument in &self.json {
            let refuse = |problem: String| Error::Set {
                flag: "--set-json",
                problem,
            };
            if argument.trim_start().starts_with('{') {
                match from_json(argument.as_bytes(), Numbers::Float64).map_err(|e| refuse(e.to_string()))? {
                    Value::Map(over) => merge_maps(&mut values, over),
                    _ => return Err(refuse("not a JSON object".to_owned())),
                }
            } else {
                apply(argument, Mode::Json, &mut values).map_err(refuse)?;
            }
        }
        let read = |name: &str| {
            let text = read(name)?;
            String::from_utf8(text).map_err(|_| format!("{name}: the file is not UTF-8 text"))
        };
        for (flag, arguments, mode) in [
            ("--set", &self.typed, Mode::Typed),
            ("--set-string", &self.text, Mode::Text),
            ("--set-file", &self.file, Mode::File(&read)),
            ("--set-literal", &self.literal, Mode::Literal),
        ] {
            for argument in arguments {
                apply(argument, mode, &mut values).map_err(|problem| Error::Set { flag, problem })?;
            }
        }
        Ok(Value::Map(values))
    }
}
