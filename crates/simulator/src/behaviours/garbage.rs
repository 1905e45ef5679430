//! Garbage collection by owner references.

use std::sync::Arc;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::json::{items, set, text};
use crate::object::{Key, Object};
use crate::registry::{Resource, ResourceId};
use crate::state::delete::{DeleteOptions, Propagation};
use crate::state::{Endpoint, State};
use crate::status::ApiError;

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

impl State {
    /// Finds an object by its uid.
    fn find_uid(&self, uid: Uuid) -> Option<(Arc<Resource>, Arc<Object>)> {
        let resources: Vec<ResourceId> = self.store.resources().collect();
        resources.into_iter().find_map(|id| {
            let object = self.store.list(id, "").find(|object| object.uid == uid)?.clone();
            Some((self.registry.by_id(id)?.clone(), object))
        })
    }

    /// Objects that name `uid` as an owner.
    fn dependents(&self, uid: &str) -> Vec<(Endpoint, Key, Value)> {
        let mut found = Vec::new();
        for id in self.store.resources() {
            let Some(resource) = self.registry.by_id(id).cloned() else {
                continue;
            };
            let endpoint = Endpoint {
                version: resource.storage,
                resource,
            };
            for object in self
                .store
                .list(id, "")
                .filter(|object| object.owned && object.mentions(uid))
            {
                let value = endpoint.read(object);
                if items(&value, &["metadata", "ownerReferences"])
                    .iter()
                    .any(|owner| text(owner, &["uid"]) == uid)
                {
                    found.push((endpoint.clone(), object.key.clone(), value));
                }
            }
        }
        found
    }

    /// Acts on what an object owned that is gone, or that waits to go.
    pub(super) fn collect_dependents(&mut self, uid: Uuid) -> Result<(), ApiError> {
        let id = uid.to_string();
        let Some((resource, owner)) = self.find_uid(uid) else {
            for (endpoint, key, value) in self.dependents(&id) {
                self.release_or_delete(&endpoint, &key, &value)?;
            }
            return Ok(());
        };
        if !owner.deleting || !owner.finalized {
            return Ok(());
        }
        let endpoint = Endpoint {
            version: resource.storage,
            resource,
        };
        let finalizers = items(&endpoint.read(&owner), &["metadata", "finalizers"]).to_vec();
        let has = |name: &str| finalizers.iter().any(|finalizer| finalizer == name);
        if has(ORPHAN) {
            for (dependent, key, _) in self.dependents(&id) {
                self.change(&dependent, &key, "", super::CONTROLLER, |value| {
                    drop_owner(value, &[id.as_str()])
                })?;
            }
            return self.drop_finalizer(&endpoint, &owner.key, ORPHAN);
        }
        if has(FOREGROUND) {
            let mut blocking = 0;
            for (dependent, key, value) in self.dependents(&id) {
                let blocks = items(&value, &["metadata", "ownerReferences"])
                    .iter()
                    .any(|reference| {
                        text(reference, &["uid"]) == id && reference["blockOwnerDeletion"] == json!(true)
                    });
                let deleting = value.pointer("/metadata/deletionTimestamp").is_some();
                if !deleting {
                    let options = DeleteOptions {
                        propagation: Some(Propagation::Foreground),
                        ..Default::default()
                    };
                    self.delete(&dependent, &key.namespace, &key.name, &options)?;
                }
                if blocks && self.store.get(dependent.resource.id, &key).is_some() {
                    blocking += 1;
                }
            }
            if blocking == 0 {
                return self.drop_finalizer(&endpoint, &owner.key, FOREGROUND);
            }
        }
        Ok(())
    }

    /// Looks at an object with owners: it goes when none of them exists.
    pub(super) fn check_owners(&mut self, resource: ResourceId, key: &Key) -> Result<(), ApiError> {
        let Some(resource) = self.registry.by_id(resource).cloned() else {
            return Ok(());
        };
        let endpoint = Endpoint {
            version: resource.storage,
            resource,
        };
        let Some(object) = self
            .store
            .get(endpoint.resource.id, key)
            .filter(|object| !object.deleting)
        else {
            return Ok(());
        };
        let value = endpoint.read(object);
        let absent = items(&value, &["metadata", "ownerReferences"])
            .iter()
            .any(|owner| !self.owner_exists(owner, key));
        if absent {
            self.release_or_delete(&endpoint, key, &value)
        } else {
            Ok(())
        }
    }

    fn owner_exists(&self, owner: &Value, key: &Key) -> bool {
        let api_version = text(owner, &["apiVersion"]);
        let (group, _) = api_version.split_once('/').unwrap_or(("", api_version));
        let Some(resource) = self.registry.find_kind(group, text(owner, &["kind"])) else {
            // A kind that is not served (yet) is no proof of absence.
            return true;
        };
        let namespace = if resource.namespaced { &*key.namespace } else { "" };
        let found = self
            .store
            .get(resource.id, &Key::new(namespace, text(owner, &["name"])));
        found.is_some_and(|found| found.uid.to_string() == text(owner, &["uid"]))
    }

    /// Deletes a dependent when all of its owners are gone, else takes the absent ones off its list.
    fn release_or_delete(&mut self, endpoint: &Endpoint, key: &Key, value: &Value) -> Result<(), ApiError> {
        let owners = items(value, &["metadata", "ownerReferences"]);
        let gone: Vec<&str> = owners
            .iter()
            .filter(|owner| !self.owner_exists(owner, key))
            .map(|owner| text(owner, &["uid"]))
            .collect();
        if gone.is_empty() || value.pointer("/metadata/deletionTimestamp").is_some() {
            return Ok(());
        }
        if gone.len() == owners.len() {
            let options = DeleteOptions {
                uid: Some(text(value, &["metadata", "uid"]).to_owned()),
                ..Default::default()
            };
            self.delete(endpoint, &key.namespace, &key.name, &options)?;
            return Ok(());
        }
        self.change(endpoint, key, "", super::CONTROLLER, |value| {
            drop_owner(value, &gone)
        })?;
        Ok(())
    }

    fn drop_finalizer(&mut self, endpoint: &Endpoint, key: &Key, name: &str) -> Result<(), ApiError> {
        self.change(endpoint, key, "", super::CONTROLLER, |value| {
            let mut finalizers = items(value, &["metadata", "finalizers"]).to_vec();
            finalizers.retain(|finalizer| finalizer != name);
            set(value, &["metadata", "finalizers"], finalizers);
        })?;
        Ok(())
    }
}

fn drop_owner(value: &mut Value, uids: &[&str]) {
    let mut owners = items(value, &["metadata", "ownerReferences"]).to_vec();
    owners.retain(|owner| !uids.contains(&text(owner, &["uid"])));
    set(value, &["metadata", "ownerReferences"], owners);
}
