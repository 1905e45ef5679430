//! The values of a component: layers from the configuration and from the target, laid over each other as Helm does.

use std::fmt;

use evenkeel_chart::{ValueSources, ValuesFile, mentions_capabilities};
use evenkeel_core::{ComponentSpec, Digest, Sensitive, ValuesEntry, ValuesFrom};
use evenkeel_goyaml::Value;

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
        Ok(Self {
            layers,
            ..Self::default()
        })
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
    // With types: a template tells the integer 5 of `--set` from the float 5 of a values file.
    let text = format!("{tree:?}");
    let mention_capabilities = mentions_capabilities(text.as_bytes());
    Ok(ResolvedValues {
        tree,
        digest: Digest::of(text),
        mention_capabilities,
    })
}

#[cfg(test)]
mod tests {
    use evenkeel_goyaml::{JsonStyle, to_json};

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
