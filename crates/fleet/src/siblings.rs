//! What the components of a configuration render, kept for the operations of one run.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use evenkeel_component::{Sibling, SiblingSet};
use evenkeel_core::{ClusterSpec, ReconciliationId};

/// How many runs are remembered; the oldest makes room, and would be rendered anew.
const RUNS_MAX: usize = 64;

/// The siblings of the runs that this process works on.
#[derive(Default)]
pub(crate) struct SiblingSets(Mutex<VecDeque<(ReconciliationId, Arc<SiblingSet>)>>);

impl SiblingSets {
    /// The set of a run, if somebody has made one.
    pub(crate) fn get(&self, run: &ReconciliationId) -> Option<Arc<SiblingSet>> {
        let sets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = sets.iter().find(|(known, _)| known == run);
        found.map(|(_, set)| Arc::clone(set))
    }

    /// Makes the set of a run. A component whose values cannot be written down is left out: its own operation says so.
    pub(crate) fn make(&self, run: &ReconciliationId, spec: &ClusterSpec) -> Arc<SiblingSet> {
        let siblings = spec.components.iter().filter_map(|spec| Sibling::of(spec).ok());
        let made = Arc::new(SiblingSet::new(siblings.collect()));
        let mut sets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = sets.iter().find(|(known, _)| known == run) {
            return Arc::clone(known);
        }
        if sets.len() >= RUNS_MAX {
            sets.pop_front();
        }
        sets.push_back((run.clone(), Arc::clone(&made)));
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_has_one_set_and_few_are_kept() {
        let sets = SiblingSets::default();
        let spec: ClusterSpec = serde_json::from_value(serde_json::json!({"name": "c1"})).expect("a spec");
        let run = |number: usize| -> ReconciliationId {
            format!("c1--00000000-0000-7000-8000-{number:012}")
                .parse()
                .expect("an id")
        };
        let first = sets.make(&run(0), &spec);
        assert!(Arc::ptr_eq(&first, &sets.make(&run(0), &spec)));
        for number in 1..=RUNS_MAX {
            sets.make(&run(number), &spec);
        }
        assert!(sets.get(&run(0)).is_none() && sets.get(&run(RUNS_MAX)).is_some());
    }
}
