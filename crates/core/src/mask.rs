//! Secret values leave Evenkeel masked, and a masked value that comes back stands for the stored one, so that a
//! document can be read, edited and sent again without anyone seeing its secrets.

use serde_json::{Map, Value};

use crate::{ClusterSpec, Error, FieldError, ValuesEntry};

/// What stands in place of every secret value on GET.
pub const MASK: &str = "********";

impl ClusterSpec {
    /// The same specification with every leaf of its secret values replaced by [`MASK`].
    #[must_use]
    pub fn masked(&self) -> Self {
        let mut masked = self.clone();
        for entry in masked
            .components
            .iter_mut()
            .flat_map(|component| &mut component.values)
        {
            if let ValuesEntry::Secret(values) = entry {
                values.values_mut().for_each(mask);
            }
        }
        masked
    }

    /// The same specification with every [`MASK`] in its secret values replaced by what `stored` holds in the same
    /// place: same component name, same position among its layers of values, same path.
    ///
    /// # Errors
    /// [`Error::Spec`] that names every mask for which nothing is stored.
    pub fn unmasked(mut self, stored: Option<&Self>) -> Result<Self, Error> {
        let mut errors = Vec::new();
        for (index, component) in self.components.iter_mut().enumerate() {
            let before = stored
                .and_then(|stored| stored.components.iter().find(|old| old.name == component.name))
                .map_or(&[][..], |old| &old.values);
            for (layer, entry) in component.values.iter_mut().enumerate() {
                if let ValuesEntry::Secret(values) = entry {
                    let before = match before.get(layer) {
                        Some(ValuesEntry::Secret(values)) => Some(values),
                        _ => None,
                    };
                    unmask_map(
                        values,
                        before,
                        &format!("components[{index}].values[{layer}].secret"),
                        &mut errors,
                    );
                }
            }
        }
        if errors.is_empty() {
            Ok(self)
        } else {
            Err(Error::Spec(errors))
        }
    }
}

fn mask(value: &mut Value) {
    match value {
        Value::Object(map) => map.values_mut().for_each(mask),
        Value::Array(items) => items.iter_mut().for_each(mask),
        leaf => *leaf = Value::String(MASK.to_owned()),
    }
}

fn unmask_map(
    values: &mut Map<String, Value>,
    before: Option<&Map<String, Value>>,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    for (key, value) in values {
        let before = before.and_then(|before| before.get(key));
        unmask(value, before, &format!("{path}.{key}"), errors);
    }
}

fn unmask(value: &mut Value, before: Option<&Value>, path: &str, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(map) => unmask_map(map, before.and_then(Value::as_object), path, errors),
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                let before = before.and_then(|before| before.get(index));
                unmask(item, before, &format!("{path}[{index}]"), errors);
            }
        }
        Value::String(text) if text == MASK => match before {
            Some(before) => *value = before.clone(),
            None => errors.push(FieldError::new(
                path,
                "is masked, but no value is stored here that could be kept",
            )),
        },
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(values: Value) -> ClusterSpec {
        let json = serde_json::json!({
            "name": "c1",
            "components": [{"name": "web", "source": {"directory": {"path": "x"}}, "namespace": "n", "values": values}],
        });
        serde_json::from_value(json).expect("the specification is valid")
    }

    #[test]
    fn a_masked_document_can_be_sent_back() {
        let stored = spec(serde_json::json!([
            {"inline": {"replicas": 2}},
            {"secret": {"db": {"password": "hunter2", "ports": [1, 2]}}},
        ]));
        let masked = stored.masked();
        let text = serde_json::to_string(&masked).expect("it is JSON");
        assert!(!text.contains("hunter2") && text.contains("replicas"));
        assert_eq!(masked.unmasked(Some(&stored)), Ok(stored));
    }

    #[test]
    fn a_mask_without_a_stored_value_is_an_error() {
        let masked = spec(serde_json::json!([{"secret": {"db": {"password": MASK}}}]));
        let text = masked.unmasked(None).map_err(|error| error.to_string());
        assert!(
            text.is_err_and(|text| text.starts_with("components[0].values[0].secret.db.password: is masked"))
        );
    }
}
