//! Values: where they come from and how they are laid over each other.

use evenkeel_goyaml::{Map, Numbers, Value, from_yaml};

use crate::decode;

pub(crate) mod coalesce;
mod set;
mod sources;

pub use sources::{ValueSources, ValuesFile};

/// Reads a values file: all its YAML documents, later ones laid over earlier ones. Every number becomes a float, as
/// in Helm.
pub(crate) fn load_values(text: &[u8]) -> Result<Map, String> {
    let mut values = Map::new();
    let (documents, fault) = documents(text);
    for document in documents {
        let tree = from_yaml(&document, Numbers::Float64)
            .map_err(|problem| format!("cannot unmarshal yaml document: {problem}"))?;
        match tree {
            Value::Null => {}
            Value::Map(map) => merge_maps(&mut values, map),
            other => {
                let problem = decode::mismatch(&other, "value of type map[string]interface {}");
                return Err(format!("cannot unmarshal yaml document: {problem}"));
            }
        }
    }
    match fault {
        Some(problem) => Err(problem),
        None => Ok(values),
    }
}

/// Lays `over` on top of `base`: mappings are merged, everything else (also `null`) replaces what was there.
pub(crate) fn merge_maps(base: &mut Map, over: Map) {
    for (key, value) in over {
        match (base.get_mut(&key), value) {
            (Some(Value::Map(below)), Value::Map(above)) => merge_maps(below, above),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

/// Splits a stream at its `---` lines as Kubernetes' YAML reader does; line ends become `\n`. The second part is what is
/// wrong with a separator, of which the reader tells only after the documents before it.
fn documents(text: &[u8]) -> (Vec<Vec<u8>>, Option<String>) {
    let (mut all, mut current) = (Vec::new(), Vec::new());
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    for line in text.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if let Some(after) = line.strip_prefix(b"---") {
            let after = String::from_utf8_lossy(after);
            let after = after.trim();
            if !after.is_empty() && !after.starts_with('#') {
                let problem =
                    format!("error reading yaml document: invalid Yaml document separator: {after}");
                return (all, Some(problem));
            }
            if !current.is_empty() {
                all.push(std::mem::take(&mut current));
                continue;
            }
        }
        current.extend_from_slice(line);
        current.push(b'\n');
    }
    if !current.is_empty() {
        all.push(current);
    }
    (all, None)
}

#[cfg(test)]
mod tests;
