//! The ways to read YAML: `sigs.k8s.io/yaml.Unmarshal` into one of the targets that Helm uses.

use crate::document::Document;
use crate::json::read::cannot_unmarshal;
use crate::parser::Parser;
use crate::scanner::Input;
use crate::{Error, Map, Numbers, Value, decode};

/// One document of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct YamlDocument {
    /// The line, from 1, where it begins: its `---` if it has one, else its first token.
    pub line: usize,
    /// What it holds; null for an empty one.
    pub value: Value,
}

/// Reads the first document of a YAML text by the rules of YAML 1.1 as `sigs.k8s.io/yaml` v1.6.0 with go-yaml v2.4.4
/// keeps them: `yes` and `on` are booleans (as keys too), `0777` is 511, of equal keys the last wins, `<<` merges,
/// timestamps stay text, an empty text is null. Later documents are not looked at.
///
/// Fails with Go's text, prefixed as there: `error converting YAML to JSON: yaml: line 3: ...`.
pub fn from_yaml(text: &[u8], numbers: Numbers) -> Result<Value, Error> {
    let input = Input::new(text);
    match Document::read(&mut Parser::new(&input))? {
        Some(document) => decode::decode(&document, numbers),
        None => Ok(Value::Null),
    }
}

/// Reads a YAML text into Go's `map[string]interface {}`, as Helm's `fromYaml` does; null gives an empty map.
/// Fails like [`from_yaml`], or with `error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into
/// Go value of type map[string]interface {}`.
pub fn from_yaml_map(text: &[u8], numbers: Numbers) -> Result<Map, Error> {
    match from_yaml(text, numbers)? {
        Value::Map(map) => Ok(map),
        Value::Null => Ok(Map::new()),
        other => Err(Error::unmarshaling(cannot_unmarshal(
            &other,
            &Value::Map(Map::new()),
        ))),
    }
}

/// Reads a YAML text into Go's `[]interface {}`, as Helm's `fromYamlArray` does; null gives an empty list.
/// Fails like [`from_yaml`], or with `error unmarshaling JSON: while decoding JSON: json: cannot unmarshal object into
/// Go value of type []interface {}`.
pub fn from_yaml_list(text: &[u8], numbers: Numbers) -> Result<Vec<Value>, Error> {
    match from_yaml(text, numbers)? {
        Value::List(items) => Ok(items),
        Value::Null => Ok(Vec::new()),
        other => Err(Error::unmarshaling(cannot_unmarshal(
            &other,
            &Value::List(Vec::new()),
        ))),
    }
}

/// Reads every document of a YAML stream, empty ones too. The first that cannot be read fails the whole.
pub fn from_yaml_documents(text: &[u8], numbers: Numbers) -> Result<Vec<YamlDocument>, Error> {
    let input = Input::new(text);
    let mut parser = Parser::new(&input);
    let mut documents = Vec::new();
    while let Some(document) = Document::read(&mut parser)? {
        let value = decode::decode(&document, numbers)?;
        documents.push(YamlDocument {
            line: document.line + 1,
            value,
        });
    }
    Ok(documents)
}
