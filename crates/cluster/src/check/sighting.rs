//! What a check saw of a cluster that is as it should be, for whoever watches it from there on.

use std::collections::BTreeMap;

use evenkeel_core::GroupKind;

use super::{Definitions, Listing, Listings, Looked};
use crate::applyset::applyset_id;
use crate::applyset::labels::CLUSTER_PARENT;
use crate::applyset::parent::Parent;
use crate::watches::{Baseline, SeenComponent, SeenKind, SeenParent, Sighting};

/// A record as it was read.
pub(super) fn parent<R>(parent: &Parent<R>) -> SeenParent<'_> {
    SeenParent {
        name: &parent.name,
        uid: &parent.uid,
        resource_version: &parent.resource_version,
    }
}

/// What was seen of components that are all as they should be.
pub(super) fn baseline(
    fleet: &str,
    looked: &[Looked<'_>],
    parents: Vec<SeenParent<'_>>,
    members: &Listings,
    definitions: &Definitions,
) -> Option<Baseline> {
    let mut kinds: BTreeMap<&GroupKind, SeenKind<'_>> = BTreeMap::new();
    for (kind, listing) in members {
        // Had one not been listed, its components would have failed.
        kinds.insert(kind, listing.as_ref().ok()?.seen());
    }
    for (index, looked) in looked.iter().enumerate() {
        for kind in &looked.kinds {
            if let Some(seen) = kinds.get_mut(kind) {
                seen.components.push(index);
            }
        }
        for entry in &looked.record.objects {
            let kind = entry.group_kind();
            let Some(Ok(listing)) = members.get(&kind) else {
                continue;
            };
            if let Some(seen) = kinds.get_mut(&kind) {
                let live = listing.members.get(&entry.object());
                seen.objects.push((index, entry, live));
            }
        }
    }
    let shared_set = applyset_id(CLUSTER_PARENT);
    let definitions = definitions.listed.as_ref().map(|listed| {
        let mut seen = listed.seen();
        let wanted = definitions.wanted.iter();
        seen.objects = wanted
            .map(|entry| (0, entry, listed.members.get(&entry.object())))
            .collect();
        (shared_set.as_str(), seen)
    });
    let components = looked.iter().map(|looked| SeenComponent {
        name: looked.component,
        inputs: looked.inputs,
        rules: looked.rules,
        set: &looked.set,
    });
    Baseline::of(Sighting {
        fleet,
        components: components.collect(),
        kinds,
        definitions,
        parents,
    })
}

impl Listing {
    fn seen(&self) -> SeenKind<'_> {
        SeenKind {
            resource: &self.resource,
            version: &self.version,
            components: Vec::new(),
            objects: Vec::new(),
        }
    }
}
