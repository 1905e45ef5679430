//! What the documents of all kinds have in common.

use std::collections::BTreeMap;

use kube::api::ObjectMeta;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::failure::Failure;

/// Annotations that the machinery keeps on objects. A caller that replaces an object does not know of them, so they stay
/// unless it names them; a patch with null removes them.
const KEPT: [&str; 3] = [
    "syn.tools/protected-delete",
    "lieutenant.syn.tools/",
    "kubectl.kubernetes.io/",
];

/// Annotations of an object.
pub(super) type Annotations = BTreeMap<String, String>;

/// Reads a text of which the empty one is as good as none.
pub(super) fn empty_is_none<'de, D: Deserializer<'de>>(input: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<String>::deserialize(input)?.filter(|text| !text.is_empty()))
}

/// A text of an object, of which the empty one is as good as none.
pub(super) fn text(text: &Option<String>) -> Option<String> {
    text.clone().filter(|text| !text.is_empty())
}

/// Annotations of an object, as callers see them.
pub(super) fn annotations(metadata: &ObjectMeta) -> Annotations {
    metadata.annotations.clone().unwrap_or_default()
}

/// Writes annotations that differ.
pub(super) fn write_annotations(wanted: &Annotations, old: &Annotations, metadata: &mut ObjectMeta) {
    if wanted != old {
        metadata.annotations = (!wanted.is_empty()).then(|| wanted.clone());
    }
}

/// The annotations that a replacement leaves, beside those that it names.
pub(super) fn kept(old: &Annotations, wanted: &Annotations) -> Annotations {
    let is_kept = |name: &str| {
        KEPT.iter().any(|kept| match kept.strip_suffix('/') {
            Some(_) => name.starts_with(kept),
            None => name == *kept,
        })
    };
    old.iter()
        .filter(|(name, _)| is_kept(name) && !wanted.contains_key(*name))
        .map(|(name, text)| (name.clone(), text.clone()))
        .collect()
}

/// Reads a document; the failure names the member.
pub(super) fn parse<T: serde::de::DeserializeOwned>(document: Value) -> Result<T, Failure> {
    serde_path_to_error::deserialize(document).map_err(|error| {
        let path = error.path().to_string();
        let place = match path.as_str() {
            "." => String::new(),
            path => format!("Error at \"/{}\": ", path.replace('.', "/")),
        };
        Failure::Invalid(format!("request body has an error: {place}{}", error.inner()))
    })
}
