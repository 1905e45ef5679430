//! What a chart declares, and the lock file that says what was chosen.

use std::fs;
use std::path::Path;

use evenkeel_core::Digest;
use evenkeel_goyaml::{Numbers, from_yaml, to_yaml};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::Error;

/// The file that declares a chart's dependencies.
pub(super) struct ManifestFile {
    lock: &'static str,
    pub(super) dependencies: Vec<Declared>,
}

/// One dependency as it is declared.
#[derive(Clone, Debug)]
pub(super) struct Declared {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) repository: String,
    /// All of it.
    written: Map<String, Value>,
}

/// One dependency as it was chosen.
#[derive(Clone, Debug)]
pub(super) struct Locked {
    pub(super) name: String,
    pub(super) repository: String,
    pub(super) version: String,
}

/// The fields of a dependency in the order in which Helm writes them; those after the third are left out when they say
/// nothing, and so is the version.
const FIELDS: [&str; 8] = [
    "name",
    "version",
    "repository",
    "condition",
    "tags",
    "enabled",
    "import-values",
    "alias",
];

impl ManifestFile {
    /// Reads `Chart.yaml`, or `requirements.yaml` of an old chart.
    pub(super) fn read(directory: &Path) -> Result<Self, Error> {
        let chart = read(&directory.join("Chart.yaml"))?.unwrap_or_default();
        let is_old = chart.get("apiVersion") == Some(&json!("v1"));
        let (source, lock) = if is_old {
            let requirements = read(&directory.join("requirements.yaml"))?.unwrap_or_default();
            (requirements, "requirements.lock")
        } else {
            (chart, "Chart.lock")
        };
        let listed = source.get("dependencies").and_then(Value::as_array);
        let dependencies = listed.into_iter().flatten().filter_map(Value::as_object);
        Ok(Self {
            lock,
            dependencies: dependencies.map(Declared::of).collect(),
        })
    }

    /// Writes the lock file, unless it says the same already.
    pub(super) fn write_lock(
        &self,
        directory: &Path,
        declared: &[Declared],
        locked: &[Locked],
        now: Timestamp,
    ) -> Result<(), Error> {
        let path = directory.join(self.lock);
        let digest = digest(declared, locked);
        let known = read(&path).ok().flatten();
        if known.is_some_and(|known| known.get("digest") == Some(&json!(digest))) {
            return Ok(());
        }
        let locked: Vec<_> = locked
            .iter()
            .map(|one| json!({"name": one.name, "repository": one.repository, "version": one.version}))
            .collect();
        let lock = json!({"dependencies": locked, "digest": digest, "generated": now.to_string()});
        let text = format!("{}\n", to_yaml(&lock.into()).trim_end());
        fs::write(&path, text).map_err(|error| Error::write(&path, error))
    }
}

impl Declared {
    fn of(written: &Map<String, Value>) -> Self {
        let text = |field: &str| match written.get(field) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            _ => String::new(),
        };
        Self {
            name: text("name"),
            version: text("version"),
            repository: text("repository"),
            written: written.clone(),
        }
    }

    fn json(&self) -> Value {
        let mut fields = self.written.clone();
        fields.insert("repository".to_owned(), json!(self.repository));
        Value::Object(fields)
    }
}

/// Names what was declared and what was chosen, as Helm does, so that Helm takes the lock file for its own.
fn digest(declared: &[Declared], locked: &[Locked]) -> String {
    let declared: Vec<_> = declared.iter().map(|one| go_json(&one.json())).collect();
    let locked: Vec<_> = locked
        .iter()
        .map(|one| go_json(&json!({"name": one.name, "version": one.version, "repository": one.repository})))
        .collect();
    let text = format!("[[{}],[{}]]", declared.join(","), locked.join(","));
    Digest::of(text).to_string()
}

/// A dependency as Go writes its structure.
fn go_json(dependency: &Value) -> String {
    let says_something = |value: &Value| match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    };
    let fields: Vec<_> = FIELDS
        .iter()
        .filter_map(|field| {
            let value = dependency.get(field);
            match *field {
                "name" | "repository" => Some((field, value.cloned().unwrap_or_else(|| json!("")))),
                _ => Some((field, value.filter(|value| says_something(value))?.clone())),
            }
        })
        .map(|(field, value)| format!("{field:?}:{}", html_escaped(&value.to_string())))
        .collect();
    format!("{{{}}}", fields.join(","))
}

/// Go escapes what could end a script in a page.
fn html_escaped(json: &str) -> String {
    json.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

/// A YAML file; none when it does not exist.
fn read(path: &Path) -> Result<Option<Value>, Error> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(source) => {
            return Err(Error::Read {
                path: path.to_owned(),
                source,
            });
        }
    };
    let wrong = |problem: String| Error::Helm(format!("cannot read {}: {problem}", path.display()));
    let value = from_yaml(&text, Numbers::Exact).map_err(|error| wrong(error.to_string()))?;
    Value::try_from(value)
        .map(Some)
        .map_err(|error| wrong(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The digest that Helm 4.3.1 wrote for the same.
    #[test]
    fn locks_have_helms_digest() {
        let written = json!({
            "name": "dep", "version": "^1", "repository": "@my", "condition": "a", "tags": [], "alias": "",
            "import-values": ["x", {"child": "a", "parent": "b<c"}], "enabled": false,
        });
        let mut declared = Declared::of(written.as_object().unwrap());
        declared.repository = "http://127.0.0.1:18999".to_owned();
        let locked = Locked {
            name: "dep".to_owned(),
            version: "1.2.3".to_owned(),
            repository: declared.repository.clone(),
        };
        assert_eq!(
            digest(&[declared], &[locked]),
            "sha256:06a74081bacee9e3060bba7026ce925e10f307cf5434634e6ebf9d75858aa849"
        );
    }
}
