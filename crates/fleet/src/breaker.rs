//! Stops a component version that fails on a share of the clusters that have it, before the rest of the fleet gets it (F55).
//!
//! What is seen here is what this process has done; another one finds out by itself. A cluster that has begun with a version
//! goes on trying; those that have not are left with what they have, until those that failed recover, the version is
//! replaced, or a person forces it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use evenkeel_core::{ClusterId, ComponentName, ComponentSpec, Digest, OperationStateKind};

use crate::Settings;

/// How many component versions are watched; the one that was used least recently goes first.
const VERSIONS_MAX: usize = 4_096;
/// How many clusters are remembered per version; more say nothing new about the share.
const CLUSTERS_MAX: usize = 20_000;

/// A version of a component: what it is made from, whatever its values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct VersionKey(Digest);

impl VersionKey {
    pub(crate) fn of(spec: &ComponentSpec) -> Self {
        // The same text for the same source, in this process, which is all that it is compared in.
        Self(Digest::of(format!(
            "{:?} {:?} {:?}",
            spec.name, spec.source, spec.format
        )))
    }
}

/// What came of a version, by cluster.
#[derive(Default)]
struct Outcomes {
    /// Whether its newest attempt failed.
    failed: HashMap<ClusterId, bool>,
    failing: usize,
    used: u64,
}

impl Outcomes {
    fn note(&mut self, cluster: &ClusterId, failed: bool) {
        if self.failed.len() >= CLUSTERS_MAX && !self.failed.contains_key(cluster) {
            return;
        }
        let before = self.failed.insert(cluster.clone(), failed).unwrap_or(false);
        self.failing = self.failing + usize::from(failed) - usize::from(before);
    }
}

/// The versions that are watched.
#[derive(Default)]
pub(crate) struct Breakers(Mutex<Watched>);

#[derive(Default)]
struct Watched {
    versions: HashMap<VersionKey, Outcomes>,
    by_use: BTreeMap<u64, VersionKey>,
    uses: u64,
}

impl Breakers {
    fn watched(&self) -> MutexGuard<'_, Watched> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes how an operation with a version is.
    pub(crate) fn note(&self, version: VersionKey, cluster: &ClusterId, state: OperationStateKind) {
        let failed = match state {
            OperationStateKind::Succeeded => false,
            OperationStateKind::Failed | OperationStateKind::Retrying => true,
            _ => return,
        };
        let mut watched = self.watched();
        watched.uses += 1;
        let now = watched.uses;
        let outcomes = watched.versions.entry(version).or_default();
        let before = std::mem::replace(&mut outcomes.used, now);
        outcomes.note(cluster, failed);
        watched.by_use.remove(&before);
        watched.by_use.insert(now, version);
        while watched.versions.len() > VERSIONS_MAX {
            let Some((_, oldest)) = watched.by_use.pop_first() else {
                return;
            };
            watched.versions.remove(&oldest);
        }
    }

    /// Why a cluster does not get a version now, if it does not.
    pub(crate) fn held_back(
        &self,
        version: VersionKey,
        component: &ComponentName,
        cluster: &ClusterId,
        settings: &Settings,
    ) -> Option<String> {
        let watched = self.watched();
        let outcomes = watched.versions.get(&version)?;
        let (failing, all) = (outcomes.failing, outcomes.failed.len());
        let share = usize::from(settings.breaker_percent).saturating_mul(all);
        let is_open = failing >= settings.breaker_failures && failing.saturating_mul(100) > share;
        (is_open && !outcomes.failed.contains_key(cluster)).then(|| {
            format!(
                "component {component}: its new version is held back: it fails on {failing} of the {all} clusters that got it; it \
                 goes on when they recover, with another version, or by force"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use OperationStateKind::{Failed, Retrying, Running, Succeeded};

    use super::*;

    fn spec(path: &str) -> ComponentSpec {
        let json =
            serde_json::json!({"name": "web", "source": {"directory": {"path": path}}, "namespace": "n"});
        serde_json::from_value(json).expect("a component")
    }

    fn cluster(number: usize) -> ClusterId {
        ClusterId::new(format!("c{number}")).expect("an id")
    }

    fn held(breakers: &Breakers, path: &str, number: usize) -> Option<String> {
        let spec = spec(path);
        breakers.held_back(
            VersionKey::of(&spec),
            &spec.name,
            &cluster(number),
            &Settings::default(),
        )
    }

    #[test]
    fn a_share_of_failures_holds_the_others_back() {
        let breakers = Breakers::default();
        let key = VersionKey::of(&spec("v2"));
        for number in 0..3 {
            assert_eq!(
                held(&breakers, "v2", 99),
                None,
                "{number} failures are not enough"
            );
            breakers.note(key, &cluster(number), Retrying);
        }
        let reason = held(&breakers, "v2", 99).expect("held back");
        assert!(reason.contains("3 of the 3 clusters"), "{reason}");
        assert_eq!(held(&breakers, "v2", 1), None, "who has begun goes on trying");
        assert_eq!(
            held(&breakers, "v3", 99),
            None,
            "another version has nothing to do with it"
        );
        // Progress says nothing; recovery does.
        breakers.note(key, &cluster(0), Running);
        assert!(held(&breakers, "v2", 99).is_some());
        breakers.note(key, &cluster(0), Succeeded);
        assert_eq!(held(&breakers, "v2", 99), None);
    }

    #[test]
    fn a_few_of_many_hold_nobody_back() {
        let breakers = Breakers::default();
        let key = VersionKey::of(&spec("v2"));
        for number in 0..100 {
            breakers.note(
                key,
                &cluster(number),
                if number < 15 { Failed } else { Succeeded },
            );
        }
        assert_eq!(
            held(&breakers, "v2", 500),
            None,
            "15 of 100 are not more than 15 %"
        );
        breakers.note(key, &cluster(20), Failed);
        assert!(held(&breakers, "v2", 500).is_some());
    }

    #[test]
    fn what_is_watched_is_bounded() {
        let breakers = Breakers::default();
        for number in 0..VERSIONS_MAX + 10 {
            breakers.note(VersionKey::of(&spec(&number.to_string())), &cluster(0), Failed);
        }
        assert_eq!(breakers.watched().versions.len(), VERSIONS_MAX);
        assert_eq!(breakers.watched().by_use.len(), VERSIONS_MAX);
    }
}
