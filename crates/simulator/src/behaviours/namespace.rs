//! Namespaces: furnished when new, emptied when deleted.

use serde_json::{Value, json};

use super::set_condition;
use crate::clock::format_seconds;
use crate::json::{items, set};
use crate::object::Key;
use crate::state::{Endpoint, State};
use crate::status::ApiError;

impl State {
    pub(super) fn reconcile_namespace(&mut self, name: &str) -> Result<(), ApiError> {
        let key = Key::new("", name);
        let Some((object, _)) = self.read("", "namespaces", &key) else {
            return Ok(());
        };
        if !object.deleting {
            self.furnish_namespace(name);
            return Ok(());
        }
        // What is left, by resource, and the finalizers that hold it.
        let mut left: Vec<(String, usize)> = Vec::new();
        let mut finalizers: Vec<(String, usize)> = Vec::new();
        let resources: Vec<_> = self.store.resources().collect();
        for id in resources {
            let Some(resource) = self
                .registry
                .by_id(id)
                .filter(|resource| resource.namespaced)
                .cloned()
            else {
                continue;
            };
            let endpoint = Endpoint {
                version: resource.storage,
                resource,
            };
            let keys: Vec<(Key, bool)> = self
                .store
                .list(id, name)
                .map(|object| (object.key.clone(), object.deleting))
                .collect();
            for (key, deleting) in &keys {
                if !deleting {
                    self.delete(&endpoint, &key.namespace, &key.name, &Default::default())?;
                }
            }
            let rest: Vec<Value> = self
                .store
                .list(id, name)
                .map(|object| endpoint.read(object))
                .collect();
            if !rest.is_empty() {
                let qualified = crate::status::qualified(&endpoint.resource.plural, &endpoint.resource.group);
                left.push((qualified, rest.len()));
            }
            for finalizer in rest
                .iter()
                .flat_map(|object| items(object, &["metadata", "finalizers"]))
            {
                let finalizer = finalizer.as_str().unwrap_or_default();
                match finalizers.iter_mut().find(|(known, _)| known == finalizer) {
                    Some((_, count)) => *count += 1,
                    None => finalizers.push((finalizer.to_owned(), 1)),
                }
            }
        }
        if left.is_empty() {
            let Some(endpoint) = self.endpoint("", "namespaces") else {
                return Ok(());
            };
            self.change(&endpoint, &key, "finalize", super::CONTROLLER, |namespace| {
                let mut kept = items(namespace, &["spec", "finalizers"]).to_vec();
                kept.retain(|finalizer| finalizer != "kubernetes");
                set(namespace, &["spec", "finalizers"], json!(kept));
            })?;
            return Ok(());
        }
        let now = format_seconds(self.now_seconds());
        self.write_status("", "namespaces", &key, |namespace| {
            let list = |all: &[(String, usize)], word: &str| {
                all.iter()
                    .map(|(name, count)| format!("{name} {word} {count} resource instances"))
                    .collect::<Vec<_>>()
                    .join(", ")
            };
            let message = "All resources successfully discovered";
            set_condition(
                namespace,
                &now,
                "NamespaceDeletionDiscoveryFailure",
                "False",
                "ResourcesDiscovered",
                message,
            );
            let message = format!("Some resources are remaining: {}", list(&left, "has"));
            set_condition(
                namespace,
                &now,
                "NamespaceContentRemaining",
                "True",
                "SomeResourcesRemain",
                &message,
            );
            if finalizers.is_empty() {
                let message = "All content-preserving finalizers finished";
                set_condition(
                    namespace,
                    &now,
                    "NamespaceFinalizersRemaining",
                    "False",
                    "ContentHasNoFinalizers",
                    message,
                );
            } else {
                let message = format!(
                    "Some content in the namespace has finalizers remaining: {}",
                    list(&finalizers, "in")
                );
                set_condition(
                    namespace,
                    &now,
                    "NamespaceFinalizersRemaining",
                    "True",
                    "SomeFinalizersRemain",
                    &message,
                );
            }
        })
    }
}
