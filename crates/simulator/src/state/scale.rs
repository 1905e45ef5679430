//! The scale subresource.

use serde_json::{Value, json};

use super::{Endpoint, State};
use crate::json::{at, number, set, text};
use crate::object::Object;
use crate::request::WriteOptions;
use crate::status::ApiError;

/// Where an endpoint's kind keeps its replicas: in the spec, in the status, and the selector as text or object.
fn paths(endpoint: &Endpoint) -> (Vec<String>, Vec<String>, Option<Vec<String>>) {
    let split = |path: &str| {
        path.split('.')
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let custom = endpoint
        .version()
        .and_then(|version| version.custom.as_ref())
        .and_then(|custom| custom.scale.as_ref());
    match custom {
        Some(scale) => (
            split(&scale.spec_replicas),
            split(&scale.status_replicas),
            scale.selector.as_deref().map(split),
        ),
        None => (
            split("spec.replicas"),
            split("status.replicas"),
            Some(split("spec.selector")),
        ),
    }
}

fn refs(path: &[String]) -> Vec<&str> {
    path.iter().map(String::as_str).collect()
}

impl State {
    /// The `Scale` of an object.
    pub(crate) fn read_scale(&self, endpoint: &Endpoint, object: &Object) -> Result<Value, ApiError> {
        let value = endpoint.read(object);
        let (spec_path, status_path, selector_path) = paths(endpoint);
        let replicas = number(&value, &refs(&spec_path));
        if endpoint.resource.is_custom() && replicas.is_none() {
            let text = format!(
                "the spec replicas field \".{}\" does not exist",
                spec_path.join(".")
            );
            return Err(ApiError::internal_error(&text));
        }
        let mut scale = json!({
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "metadata": {
                "name": object.key.name.as_ref(),
                "namespace": object.key.namespace.as_ref(),
                "uid": object.uid.to_string(),
                "resourceVersion": object.resource_version.to_string(),
                "creationTimestamp": crate::clock::format_seconds(object.created),
            },
            "spec": {},
            "status": {"replicas": number(&value, &refs(&status_path)).unwrap_or(0)},
        });
        if let Some(replicas) = replicas.filter(|replicas| *replicas != 0) {
            set(&mut scale, &["spec", "replicas"], replicas);
        }
        let selector = match selector_path.and_then(|path| at(&value, &refs(&path)).cloned()) {
            Some(Value::String(text)) => text,
            Some(selector) => selector_text(&selector),
            None => String::new(),
        };
        if !selector.is_empty() {
            set(&mut scale, &["status", "selector"], selector);
        }
        Ok(scale)
    }

    /// Writes the replicas of a `Scale` into its object.
    pub(crate) fn write_scale(
        &mut self,
        endpoint: &Endpoint,
        namespace: &str,
        name: &str,
        scale: &Value,
        options: &WriteOptions,
    ) -> Result<Value, ApiError> {
        let live = self.get(endpoint, namespace, name)?.clone();
        super::check_identity(endpoint, &live, scale)?;
        let replicas = number(scale, &["spec", "replicas"]).unwrap_or(0);
        if replicas < 0 {
            let cause = crate::status::Cause::invalid(
                "spec.replicas",
                &replicas.to_string(),
                "must be greater than or equal to 0",
            );
            let name = text(scale, &["metadata", "name"]);
            return Err(ApiError::invalid("autoscaling", "Scale", name, vec![cause]));
        }
        let mut value = endpoint.read(&live);
        set(&mut value, &refs(&paths(endpoint).0), replicas);
        let decoded = self
            .decode(endpoint, value)
            .map_err(|error| ApiError::bad_request(error.0))?;
        let written = self.replace(endpoint, &live, "scale", decoded, None, options)?;
        self.read_scale(endpoint, &written.object)
    }
}

fn selector_text(selector: &Value) -> String {
    let labels = selector
        .get("matchLabels")
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    let labels = labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    let expressions = crate::json::items(selector, &["matchExpressions"])
        .iter()
        .map(|expression| {
            let key = text(expression, &["key"]);
            let values: Vec<&str> = crate::json::items(expression, &["values"])
                .iter()
                .filter_map(Value::as_str)
                .collect();
            match text(expression, &["operator"]) {
                "In" => format!("{key} in ({})", values.join(",")),
                "NotIn" => format!("{key} notin ({})", values.join(",")),
                "DoesNotExist" => format!("!{key}"),
                _ => key.to_owned(),
            }
        });
    labels.chain(expressions).collect::<Vec<_>>().join(",")
}
