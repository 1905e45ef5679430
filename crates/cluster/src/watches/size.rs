//! How much memory watched objects take.

use std::collections::BTreeMap;
use std::sync::Arc;

use evenkeel_core::{ComponentName, Digest, GroupKind, GroupVersionKind};

use super::{Baseline, SeenComponent, SeenKind, SeenParent, Shared, Sighting};
use crate::ReadinessRules;
use crate::applyset::record::RecordedObject;
use crate::discovery::Resource;
use crate::fingerprint::Fingerprint;
use crate::memory::Memory;

/// What a typical cluster of a fleet has: components, kinds, objects.
const TYPICAL: (usize, usize, usize) = (5, 12, 150);
/// One object in so many is of a kind whose readiness is judged again when it is written.
const JUDGED_EVERY: usize = 4;

/// How much watched objects take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrackedSize {
    /// How many objects.
    pub objects: usize,
    /// How many bytes all that is remembered of them takes, connections and watches themselves left out.
    pub bytes: usize,
}

impl TrackedSize {
    /// Bytes per object; 0 without objects.
    pub fn bytes_per_object(&self) -> f64 {
        if self.objects == 0 {
            return 0.0;
        }
        self.bytes as f64 / self.objects as f64
    }

    /// Builds what is kept of `objects` objects in clusters of a usual size (5 components, 150 objects of 12 kinds each,
    /// the readiness of a quarter of them judged since), by the code that keeps it, and says how much that is.
    ///
    /// ```
    /// let size = evenkeel_cluster::TrackedSize::measure(100_000);
    /// assert!(size.objects >= 100_000 && size.bytes_per_object() <= 64.0, "{size:?}");
    /// ```
    pub fn measure(objects: usize) -> Self {
        let mut total = Self::default();
        while total.objects < objects {
            let cluster = Self::of_one(total.objects);
            total.objects += cluster.objects;
            total.bytes += cluster.bytes;
        }
        total
    }

    /// A cluster whose names begin at `number`.
    fn of_one(number: usize) -> Self {
        let (components, kinds, objects) = TYPICAL;
        let names: Vec<ComponentName> = (0..components)
            .filter_map(|index| ComponentName::new(format!("component-{index}")).ok())
            .collect();
        let parents: Vec<String> = names.iter().map(crate::parent_name).collect();
        let sets: Vec<String> = parents.iter().map(|parent| crate::applyset_id(parent)).collect();
        let inputs = Digest::of("inputs");
        let rules = ReadinessRules::default();
        let group_kinds: Vec<GroupKind> = (0..kinds)
            .map(|index| GroupKind::new("example.com", format!("Kind{index}")))
            .collect();
        let resources: Vec<Arc<Resource>> = group_kinds.iter().map(resource).collect();
        let entries: Vec<RecordedObject> = (0..objects).map(|index| entry(number + index)).collect();
        let memory = Memory::default();
        for entry in entries.iter().step_by(JUDGED_EVERY) {
            memory.note(&entry.uid, &entry.resource_version);
        }
        let version = number.to_string();
        let mut seen: BTreeMap<&GroupKind, SeenKind<'_>> = BTreeMap::new();
        for (index, (kind, resource)) in group_kinds.iter().zip(&resources).enumerate() {
            let of_kind = entries.iter().enumerate().skip(index).step_by(kinds);
            seen.insert(
                kind,
                SeenKind {
                    resource,
                    version: &version,
                    components: (0..names.len()).collect(),
                    objects: of_kind
                        .map(|(number, entry)| (number % names.len().max(1), entry, None))
                        .collect(),
                },
            );
        }
        let sighting = Sighting {
            fleet: "fleet",
            components: names
                .iter()
                .zip(&sets)
                .map(|(name, set)| SeenComponent {
                    name,
                    inputs: Some(&inputs),
                    rules: &rules,
                    set,
                })
                .collect(),
            kinds: seen,
            definitions: None,
            parents: parents
                .iter()
                .map(|name| SeenParent {
                    name,
                    uid: "uid",
                    resource_version: "1",
                })
                .collect(),
        };
        match Baseline::of(sighting) {
            Some(baseline) => Self {
                // The records are objects, too, but nobody counts them.
                objects,
                bytes: size_of::<Shared>() + baseline.table.heap_bytes() + memory.bytes(),
            },
            None => Self::default(),
        }
    }
}

fn resource(kind: &GroupKind) -> Arc<Resource> {
    Arc::new(Resource {
        kind: GroupVersionKind {
            group: kind.group.clone(),
            version: "v1".to_owned(),
            kind: kind.kind.clone(),
        },
        plural: kind.kind.to_lowercase(),
        namespaced: true,
        listable: true,
        deletable: true,
        has_status: false,
    })
}

fn entry(number: usize) -> RecordedObject {
    RecordedObject {
        group: "example.com".to_owned(),
        kind: "Kind".to_owned(),
        namespace: Some("apps".to_owned()),
        name: format!("object-{number}"),
        uid: format!("{number:08x}-0000-4000-8000-000000000000"),
        content: None,
        fixed: None,
        owned: Some(Fingerprint::of(&serde_json::Value::from(number))),
        resource_version: (number + 1).to_string(),
        kept: false,
        done: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The goal of the reference fleet: 750,000 objects in 48 MB.
    #[test]
    fn an_object_takes_at_most_64_bytes() {
        let size = TrackedSize::measure(100_000);
        assert!(size.objects >= 100_000);
        assert!((40.0..=64.0).contains(&size.bytes_per_object()), "{size:?}");
    }
}
