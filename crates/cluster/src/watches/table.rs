//! What the objects of one cluster should be like, small enough to be kept for all of a fleet.

use std::sync::Arc;

use evenkeel_core::{ComponentName, Digest};

use crate::applyset::labels::{FLEET_LABEL, PART_OF, SYSTEM_NAMESPACE};
use crate::discovery::Resource;
use crate::live::LiveObject;
use crate::mark::{Mark, Version};
use crate::objects::Selection;
use crate::{Expected, ReadinessRules};

/// One object and what it should be like: 32 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tracked {
    /// Short for namespace and name.
    pub(super) place: u64,
    pub(super) mark: Mark,
}

/// Which objects of a kind are watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Chosen {
    /// The members of these sets, by their place in [`Table::sets`].
    Members(Box<[u16]>),
    /// Namespaces or definitions of the set that components share; others may be in it that nobody here wants.
    Shared(Box<[u16]>),
    /// The parents of all sets.
    Parents,
}

/// One kind of objects.
#[derive(Debug)]
pub(super) struct KindTable {
    /// Stays the same as long as the kind is watched.
    pub(super) id: u32,
    pub(super) resource: Arc<Resource>,
    pub(super) chosen: Chosen,
    /// The version from which on nothing is known; empty when all has to be listed first.
    pub(super) position: Box<str>,
    /// Events up to here are known already; none when the watch begins after them.
    pub(super) known_up_to: Version,
    /// By place.
    pub(super) objects: Box<[Tracked]>,
    pub(super) open: bool,
}

/// One component as it was found.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) component: ComponentName,
    pub(super) inputs: Option<Digest>,
    pub(super) rules: ReadinessRules,
}

/// All of it.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) fleet: Box<str>,
    /// Ids of ApplySets.
    pub(super) sets: Box<[Box<str>]>,
    pub(super) found: Box<[Found]>,
    pub(super) kinds: Vec<KindTable>,
}

impl KindTable {
    pub(super) fn find(&self, place: u64) -> Option<&Tracked> {
        let index = self.index(place)?;
        self.objects.get(index)
    }

    pub(super) fn find_mut(&mut self, place: u64) -> Option<&mut Tracked> {
        let index = self.index(place)?;
        self.objects.get_mut(index)
    }

    fn index(&self, place: u64) -> Option<usize> {
        self.objects
            .binary_search_by_key(&place, |tracked| tracked.place)
            .ok()
    }

    /// The namespace that is watched, if it is only one.
    pub(super) fn namespace(&self) -> Option<&'static str> {
        matches!(self.chosen, Chosen::Parents).then_some(SYSTEM_NAMESPACE)
    }
}

impl Table {
    pub(super) fn kind(&self, id: u32) -> Option<&KindTable> {
        self.kinds.iter().find(|kind| kind.id == id)
    }

    pub(super) fn kind_mut(&mut self, id: u32) -> Option<&mut KindTable> {
        self.kinds.iter_mut().find(|kind| kind.id == id)
    }

    fn set_ids<'a>(&'a self, sets: &'a [u16]) -> impl Iterator<Item = &'a str> {
        sets.iter()
            .filter_map(|set| self.sets.get(usize::from(*set)))
            .map(AsRef::as_ref)
    }

    /// The label selector of a kind. Made when it is needed, which is seldom.
    pub(super) fn selector(&self, chosen: &Chosen) -> String {
        match chosen {
            Chosen::Parents => format!("{FLEET_LABEL}={}", self.fleet),
            Chosen::Members(sets) | Chosen::Shared(sets) => {
                let ids: Vec<&str> = self.set_ids(sets).collect();
                match ids.as_slice() {
                    [id] => format!("{PART_OF}={id}"),
                    ids => format!("{PART_OF} in ({})", ids.join(",")),
                }
            }
        }
    }

    /// Whether an object that nobody recorded is of interest: what an interrupted attempt left, or a parent that somebody
    /// made.
    pub(super) fn minds(&self, kind: &KindTable, unknown: &LiveObject) -> bool {
        match &kind.chosen {
            Chosen::Parents => !unknown.is_deleting() && !unknown.is_beside_a_parent(),
            Chosen::Shared(_) => false,
            Chosen::Members(sets) => self.set_ids(sets).any(|set| unknown.is_left_over(set)),
        }
    }

    /// Whether exactly `expected` was found, with inputs that are known.
    pub(super) fn expects(&self, expected: &[Expected]) -> bool {
        self.found.len() == expected.len()
            && self.found.iter().zip(expected).all(|(found, expected)| {
                found.inputs.is_some()
                    && found.inputs == expected.inputs
                    && found.component == expected.component
                    && found.rules == expected.readiness
            })
    }

    pub(super) fn objects(&self) -> usize {
        self.kinds.iter().map(|kind| kind.objects.len()).sum()
    }

    /// How many bytes it takes beside its own size: what is on the heap, without what allocations cost in themselves.
    pub(super) fn heap_bytes(&self) -> usize {
        let kinds: usize = self
            .kinds
            .iter()
            .map(|kind| {
                let sets = match &kind.chosen {
                    Chosen::Members(sets) | Chosen::Shared(sets) => size_of_val(&**sets),
                    Chosen::Parents => 0,
                };
                size_of_val(&*kind.objects) + kind.position.len() + sets
            })
            .sum();
        let sets: usize = self.sets.iter().map(|set| size_of_val(set) + set.len()).sum();
        let found: usize = self
            .found
            .iter()
            .map(|found| size_of_val(found) + found.component.as_str().len())
            .sum();
        kinds + self.kinds.capacity() * size_of::<KindTable>() + sets + found + self.fleet.len()
    }
}

/// A kind as it is asked for.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) resource: Arc<Resource>,
    pub(super) namespace: Option<&'static str>,
    pub(super) selector: String,
}

impl Asked {
    pub(super) fn selection(&self) -> Selection<'_> {
        Selection {
            namespace: self.namespace,
            labels: &self.selector,
            ..Selection::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_takes_half_of_what_it_may() {
        assert_eq!(size_of::<Tracked>(), 32);
    }
}
