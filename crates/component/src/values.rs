//! The values of a component: layers from the configuration and from the target, laid over each other as Helm does.

use std::fmt;

use evenkeel_chart::{ValueSources, ValuesFile, mentions_capabilities, values_digest};
use evenkeel_core::{ComponentSpec, Digest, Sensitive, ValuesEntry, ValuesFrom};
use evenkeel_goyaml::{JsonStyle, Value, to_json};

use crate::Error;

/// The values that a component was given, before those kept at the target are read.
#[derive(Clone, Debug, Default)]
pub struct Values {
    /// Layers; later ones win.
    pub layers: Vec<Layer>,
    /// Arguments as `helm --set` reads them; they win over all layers.
    pub set: Vec<String>,
    /// Arguments as `helm --set-string` reads them; they win over [`Values::set`].
    pub set_string: Vec<String>,
    /// Which texts among the layers are secret, so that no diff shows them.
    pub secrets: Vec<Sensitive<String>>,
}

/// One layer of values.
#[derive(Clone, Debug)]
pub enum Layer {
    /// YAML or JSON text and the name it has in messages.
    Text {
        /// The file or field it came from.
        name: String,
        /// The text.
        text: Sensitive<String>,
    },
    /// Kept at the target, read for each operation.
    Target(ValuesFrom),
}

impl Values {
    /// The values of a component of a configuration.
    ///
    /// # Errors
    /// [`Error::Values`] when a layer cannot be written as text, which no parsed layer does.
    pub fn of(component: &ComponentSpec) -> Result<Self, Error> {
        let layer = |(index, entry): (usize, &ValuesEntry)| match entry {
            ValuesEntry::Inline(map) | ValuesEntry::Secret(map) => {
                let name = format!("values[{index}]");
                let text = serde_json::to_string(map).map_err(|error| Error::Values {
                    component: component.name.clone(),
                    problem: format!("{name}: {error}"),
                })?;
                Ok(Layer::Text {
                    name,
                    text: Sensitive::new(text),
                })
            }
            ValuesEntry::ValuesFrom(from) => Ok(Layer::Target(from.clone())),
        };
        let layers = component
            .values
            .iter()
            .enumerate()
            .map(layer)
            .collect::<Result<_, Error>>()?;
        let secrets = component.values.iter().filter_map(|entry| match entry {
            ValuesEntry::Secret(map) => Some(map.values().flat_map(leaves)),
            ValuesEntry::Inline(_) | ValuesEntry::ValuesFrom(_) => None,
        });
        Ok(Self {
            layers,
            secrets: secrets.flatten().map(Sensitive::new).collect(),
            ..Self::default()
        })
    }

    /// Whether nothing was given, not even an empty layer.
    pub(crate) fn is_empty(&self) -> bool {
        self.layers.is_empty() && self.set.is_empty() && self.set_string.is_empty()
    }
}

/// Every text and number of a tree of values.
pub(crate) fn leaves(value: &serde_json::Value) -> Vec<String> {
    use serde_json::Value as Json;
    match value {
        Json::Object(map) => map.values().flat_map(leaves).collect(),
        Json::Array(items) => items.iter().flat_map(leaves).collect(),
        Json::String(text) => vec![text.clone()],
        Json::Number(number) => vec![number.to_string()],
        Json::Null | Json::Bool(_) => Vec::new(),
    }
}

/// All values of a component as one tree. `Debug` shows none of them.
#[derive(Clone)]
pub(crate) struct ResolvedValues {
    pub(crate) tree: Value,
    pub(crate) digest: Digest,
    /// Whether a template among them may look at the cluster's version or kinds.
    pub(crate) mention_capabilities: bool,
}

impl fmt::Debug for ResolvedValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResolvedValues")
            .field("digest", &self.digest)
            .finish_non_exhaustive()
    }
}

/// Lays `texts` and the arguments of `values` over each other.
pub(crate) fn merge(
    values: &Values,
    texts: Vec<(String, Sensitive<String>)>,
) -> Result<ResolvedValues, String> {
    let files = texts.into_iter().map(|(name, text)| ValuesFile {
        name,
        text: text.expose().clone().into_bytes(),
    });
    let sources = ValueSources {
        files: files.collect(),
        typed: values.set.clone(),
        text: values.set_string.clone(),
        ..ValueSources::default()
    };
    let no_files = |name: &str| Err(format!("{name}: files cannot be read here"));
    let tree = sources.merge(no_files).map_err(|error| error.to_string())?;
    Ok(ResolvedValues {
        digest: values_digest(&tree),
        mention_capabilities: mentions_capabilities(to_json(&tree, JsonStyle::Compact).as_bytes()),
        tree,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(name: &str, text: &str) -> (String, Sensitive<String>) {
        (name.to_owned(), Sensitive::new(text.to_owned()))
    }

    #[test]
    fn later_layers_and_arguments_win() {
        let values = Values {
            set: vec!["a=3".to_owned()],
            ..Values::default()
        };
        let merged = merge(
            &values,
            vec![
                text("one", "a: 1\nb: 1\nc: {d: 1}"),
                text("two", "{\"b\": 2, \"c\": {\"e\": 2}}"),
            ],
        );
        let merged = merged.expect("the values are right");
        assert_eq!(
            to_json(&merged.tree, JsonStyle::Compact),
            r#"{"a":3,"b":2,"c":{"d":1,"e":2}}"#
        );
    }

    #[test]
    fn equal_values_have_one_digest() {
        let digest = |texts| merge(&Values::default(), texts).map(|merged| merged.digest);
        let one = digest(vec![text("x", "a: 1\nb: 2")]);
        assert_eq!(one, digest(vec![text("y", "b: 2"), text("z", "a: 1")]));
        assert_ne!(one, digest(vec![text("x", "a: 1\nb: 3")]));
    }

    #[test]
    fn a_broken_layer_is_named_without_its_content() {
        let error = merge(
            &Values::default(),
            vec![text("values[1]", "password: hunter2\n  x: 1")],
        )
        .expect_err("broken");
        assert!(
            error.contains("values[1]") && !error.contains("hunter2"),
            "{error}"
        );
    }
}
