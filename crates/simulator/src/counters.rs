//! What a cluster was asked, counted at the server.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Requests of one cluster by verb and resource.
///
/// Verbs are those of Kubernetes authorization (`get`, `list`, `watch`, `create`, `update`, `patch`, `delete`,
/// `deletecollection`); resources are written `deployments.apps`, `pods`, `pods/status`. Paths that name no resource
/// count as `get` of the path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    requests: BTreeMap<(String, String), u64>,
    dry_runs: u64,
}

impl Counts {
    /// All requests.
    pub fn requests(&self) -> u64 {
        self.requests.values().sum()
    }

    /// Requests that may change something; dry runs are not among them.
    pub fn writes(&self) -> u64 {
        let writing = |verb: &str| !["get", "list", "watch"].contains(&verb);
        let writes: u64 = self
            .requests
            .iter()
            .filter(|((verb, _), _)| writing(verb))
            .map(|(_, count)| count)
            .sum();
        writes.saturating_sub(self.dry_runs)
    }

    /// Requests with a verb.
    pub fn verb(&self, verb: &str) -> u64 {
        self.requests
            .iter()
            .filter(|((name, _), _)| name == verb)
            .map(|(_, count)| count)
            .sum()
    }

    /// Requests with a verb on a resource.
    pub fn of(&self, verb: &str, resource: &str) -> u64 {
        self.requests
            .get(&(verb.to_owned(), resource.to_owned()))
            .copied()
            .unwrap_or(0)
    }

    /// All counts, by verb and resource.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str, u64)> {
        self.requests
            .iter()
            .map(|((verb, resource), count)| (verb.as_str(), resource.as_str(), *count))
    }
}

/// The counting side of [`Counts`].
#[derive(Debug, Default)]
pub(crate) struct Counters {
    counts: Mutex<Counts>,
}

impl Counters {
    pub(crate) fn count(&self, verb: &str, resource: &str, dry_run: bool) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        *counts
            .requests
            .entry((verb.to_owned(), resource.to_owned()))
            .or_default() += 1;
        if dry_run {
            counts.dry_runs += 1;
        }
    }

    pub(crate) fn snapshot(&self) -> Counts {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn reset(&self) -> Counts {
        std::mem::take(&mut *self.counts.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_leave_out_reads_and_dry_runs() {
        let counters = Counters::default();
        counters.count("list", "pods", false);
        counters.count("patch", "deployments.apps", false);
        counters.count("patch", "deployments.apps", true);
        let counts = counters.snapshot();
        assert_eq!(
            (
                counts.requests(),
                counts.writes(),
                counts.of("patch", "deployments.apps")
            ),
            (3, 1, 2)
        );
        assert_eq!(counters.reset(), counts);
        assert_eq!(counters.snapshot().requests(), 0);
    }
}
