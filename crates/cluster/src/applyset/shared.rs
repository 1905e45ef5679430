//! The set that a cluster's components share: Namespaces and CustomResourceDefinitions, and who wants them.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_core::{ComponentName, GroupKind, ObjectRef};

use super::Owner;
use super::labels::CLUSTER_PARENT;
use super::parent::{Parent, secret_ref};
use super::record::{RecordedObject, SharedObject, SharedRecord, Stored as _};
use crate::connection::Guard;
use crate::fingerprint::Fingerprint;
use crate::live::LiveObject;
use crate::objects::secrets;
use crate::race::Race;
use crate::{Cluster, Error};

impl Cluster {
    /// Changes the shared record by compare-and-swap, beginning with `known`. `change` says whether it changed anything.
    pub(crate) async fn update_shared(
        &self,
        owner: &Owner,
        mut known: Option<Parent<SharedRecord>>,
        announce: &BTreeSet<GroupKind>,
        guard: Guard<'_>,
        change: impl Fn(&mut SharedRecord) -> bool,
    ) -> Result<Option<Parent<SharedRecord>>, Error> {
        // Components of one cluster write this parent at the same time.
        let mut race = Race::new(self, format!("write {CLUSTER_PARENT}"));
        // Whoever read another's was told to take it over.
        let take_over = known.as_ref().is_some_and(|parent| !parent.record.is_of(owner));
        loop {
            let mut record = known.as_ref().map_or_else(
                || SharedRecord::new(owner.fleet(), owner.cluster().as_str()),
                |parent| parent.record.clone(),
            );
            owner.fleet().clone_into(&mut record.fleet);
            owner.cluster().as_str().clone_into(&mut record.cluster);
            let changed = change(&mut record);
            let mut kinds: BTreeSet<GroupKind> = record.group_kinds().into_iter().collect();
            kinds.extend(announce.iter().cloned());
            let announced = known
                .as_ref()
                .is_some_and(|parent| announce.is_subset(&parent.group_kinds));
            let outcome = match &known {
                Some(parent) if !changed && announced => return Ok(Some(parent.clone())),
                None if !changed && announce.is_empty() => return Ok(None),
                Some(parent) => self.update_parent(parent, owner, &record, &kinds, guard).await,
                None => {
                    self.create_parent(CLUSTER_PARENT, owner, record, &kinds, guard)
                        .await
                }
            };
            match outcome {
                Ok(parent) => return Ok(Some(parent)),
                Err(Error::Conflict { .. } | Error::AlreadyExists { .. } | Error::NotFound { .. }) => {
                    race.look_again(self, &secrets(), &secret_ref(CLUSTER_PARENT))
                        .await?;
                    known = self.parent(CLUSTER_PARENT, owner, take_over).await?;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl SharedRecord {
    /// Notes that `component` wants `object`, as it is now at the target.
    pub(crate) fn want(
        &mut self,
        component: &ComponentName,
        object: &ObjectRef,
        live: &LiveObject,
        made_by_us: bool,
        content: Option<&Fingerprint>,
    ) {
        let recorded = RecordedObject {
            group: object.group.clone(),
            kind: object.kind.clone(),
            namespace: None,
            name: object.name.clone(),
            uid: live.uid.clone(),
            content: content.cloned(),
            fixed: None,
            owned: live.owned(),
            resource_version: live.resource_version.clone(),
            kept: false,
            done: false,
        };
        match self.get_mut(object) {
            Some(shared) => {
                // Made anew by hand: then it is no longer what we made.
                shared.made_by_us = made_by_us || shared.made_by_us && shared.recorded.uid == live.uid;
                shared.recorded = RecordedObject {
                    content: recorded
                        .content
                        .clone()
                        .or_else(|| shared.recorded.content.clone()),
                    ..recorded
                };
                shared.wanted_by.insert(component.clone(), content.cloned());
            }
            None => self.objects.push(SharedObject {
                recorded,
                made_by_us,
                wanted_by: BTreeMap::from([(component.clone(), content.cloned())]),
            }),
        }
    }

    /// Forgets what `component` wants except `still`; `true` when that changed anything.
    pub(crate) fn unwant(&mut self, component: &ComponentName, still: &BTreeSet<ObjectRef>) -> bool {
        let mut changed = false;
        for shared in &mut self.objects {
            if !still.contains(&shared.recorded.object()) {
                changed |= shared.wanted_by.remove(component).is_some();
            }
        }
        changed
    }

    /// The namespaces that we made, that `component` wants, and that no other component does.
    pub(crate) fn left_over_namespaces(&self, component: &ComponentName) -> Vec<&SharedObject> {
        self.objects
            .iter()
            .filter(|shared| shared.recorded.kind == "Namespace" && shared.made_by_us)
            .filter(|shared| shared.wanted_by.len() == 1 && shared.wanted_by.contains_key(component))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(uid: &str) -> LiveObject {
        let body = serde_json::json!({"metadata": {"name": "shop", "uid": uid, "resourceVersion": "1"}});
        LiveObject::read(body.to_string().as_bytes(), "test").expect("read")
    }

    fn namespace() -> ObjectRef {
        ObjectRef {
            group: String::new(),
            kind: "Namespace".into(),
            namespace: None,
            name: "shop".into(),
        }
    }

    #[test]
    fn a_namespace_is_left_over_only_when_nobody_else_wants_it() {
        let (a, b) = (
            ComponentName::new("a").expect("name"),
            ComponentName::new("b").expect("name"),
        );
        let mut record = SharedRecord::new("f", "c");
        record.want(&a, &namespace(), &live("1"), true, None);
        record.want(&b, &namespace(), &live("1"), false, None);
        assert!(record.left_over_namespaces(&a).is_empty());
        assert!(record.unwant(&b, &BTreeSet::new()));
        assert!(!record.unwant(&b, &BTreeSet::new()));
        assert_eq!(record.left_over_namespaces(&a).len(), 1);
    }

    #[test]
    fn what_was_made_anew_by_hand_is_not_ours_to_delete() {
        let a = ComponentName::new("a").expect("name");
        let mut record = SharedRecord::new("f", "c");
        record.want(&a, &namespace(), &live("1"), true, None);
        record.want(&a, &namespace(), &live("2"), false, None);
        assert!(record.left_over_namespaces(&a).is_empty());
    }
}
