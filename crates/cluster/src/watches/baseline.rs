//! What a check saw of a cluster, to be watched from there on.

use std::collections::BTreeMap;
use std::sync::Arc;

use evenkeel_core::{ComponentName, Digest, GroupKind};

use super::table::{Chosen, Found, KindTable, Table, Tracked};
use crate::ReadinessRules;
use crate::applyset::record::RecordedObject;
use crate::discovery::Resource;
use crate::live::LiveObject;
use crate::mark::{Mark, Version, place};
use crate::objects::secrets;

/// What a check saw of a cluster that is as it should be.
#[derive(Debug)]
pub struct Baseline {
    pub(super) table: Table,
}

/// Everything that a check saw, as it saw it.
#[derive(Default)]
pub(crate) struct Sighting<'a> {
    /// The fleet whose parents are watched.
    pub(crate) fleet: &'a str,
    pub(crate) components: Vec<SeenComponent<'a>>,
    /// Kinds of members.
    pub(crate) kinds: BTreeMap<&'a GroupKind, SeenKind<'a>>,
    /// The definitions that components want, with the id of the set that holds them.
    pub(crate) definitions: Option<(&'a str, SeenKind<'a>)>,
    pub(crate) parents: Vec<SeenParent<'a>>,
}

/// One component that was found as it should be.
pub(crate) struct SeenComponent<'a> {
    pub(crate) name: &'a ComponentName,
    pub(crate) inputs: Option<&'a Digest>,
    pub(crate) rules: &'a ReadinessRules,
    /// The id of its set.
    pub(crate) set: &'a str,
}

/// One kind and the recorded objects of it.
pub(crate) struct SeenKind<'a> {
    pub(crate) resource: &'a Arc<Resource>,
    /// The version of the list.
    pub(crate) version: &'a str,
    /// Which components have it, by their place in [`Sighting::components`].
    pub(crate) components: Vec<usize>,
    /// What is recorded, of which component, and what was listed of it.
    pub(crate) objects: Vec<(usize, &'a RecordedObject, Option<&'a LiveObject>)>,
}

/// The parent of a set.
pub(crate) struct SeenParent<'a> {
    pub(crate) name: &'a str,
    pub(crate) uid: &'a str,
    pub(crate) resource_version: &'a str,
}

impl Baseline {
    /// None when the cluster is too large for one table: more components than two bytes number.
    pub(crate) fn of(sighting: Sighting<'_>) -> Option<Self> {
        let Sighting {
            fleet,
            components,
            kinds,
            definitions,
            parents,
        } = sighting;
        // One number is for the set of definitions.
        let shared = u16::try_from(components.len()).ok()?;
        let mut sets: Vec<Box<str>> = components
            .iter()
            .map(|component| Box::from(component.set))
            .collect();
        let mut tables = Vec::with_capacity(kinds.len() + 2);
        for kind in kinds.into_values() {
            let members = kind.components.iter().map(|index| u16::try_from(*index));
            let members: Box<[u16]> = members.collect::<Result<_, _>>().ok()?;
            tables.push(kind.table(Chosen::Members(members))?);
        }
        if let Some((set, kind)) = definitions {
            sets.push(set.into());
            tables.push(kind.table(Chosen::Shared([shared].into()))?);
        }
        tables.push(parents_table(&parents));
        for (id, table) in tables.iter_mut().enumerate() {
            table.id = u32::try_from(id).ok()?;
        }
        let found = components.into_iter().map(|component| Found {
            component: component.name.clone(),
            inputs: component.inputs.copied(),
            rules: component.rules.clone(),
        });
        Some(Self {
            table: Table {
                fleet: fleet.into(),
                sets: sets.into(),
                found: found.collect(),
                kinds: tables,
            },
        })
    }

    /// How many watches it takes: one per kind, and one for the records.
    pub fn watches(&self) -> usize {
        self.table.kinds.len()
    }

    /// How many objects are watched.
    pub fn objects(&self) -> usize {
        self.table.objects()
    }
}

impl SeenKind<'_> {
    fn table(self, chosen: Chosen) -> Option<KindTable> {
        let mut objects = Vec::with_capacity(self.objects.len());
        for (component, entry, live) in self.objects {
            let mut mark = Mark::of(entry);
            mark.component = u16::try_from(component).ok()?;
            mark.version = live.map_or(Version::NONE, |live| Version::of(&live.resource_version));
            objects.push(Tracked {
                place: place(entry.namespace.as_deref(), &entry.name),
                mark,
            });
        }
        Some(table(self.resource, chosen, self.version, objects))
    }
}

/// The parents are not listed for their metadata, so the watch begins with a list of its own.
fn parents_table(parents: &[SeenParent<'_>]) -> KindTable {
    let objects = parents.iter().map(|parent| Tracked {
        place: place(Some(crate::SYSTEM_NAMESPACE), parent.name),
        mark: Mark::exactly(parent.uid, parent.resource_version),
    });
    table(&secrets(), Chosen::Parents, "", objects.collect())
}

fn table(resource: &Arc<Resource>, chosen: Chosen, version: &str, mut objects: Vec<Tracked>) -> KindTable {
    objects.sort_unstable_by_key(|tracked| tracked.place);
    KindTable {
        id: 0,
        resource: Arc::clone(resource),
        chosen,
        position: version.into(),
        known_up_to: Version::of(version),
        objects: objects.into(),
        open: false,
    }
}
