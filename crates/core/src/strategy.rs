//! What a run, and each of its operations, is for: the one table from how a component is found to its strategy, and from the
//! strategy to the steps that make it different (K16, K35). Everything that names a strategy asks here.
//!
//! | found | strategy | hooks | prunes | proxies | order | waits for a window | counts for the breaker |
//! |---|---|---|---|---|---|---|---|
//! | absent | install | install | what an attempt left | restarted | dependencies first | no | yes |
//! | changed | upgrade | upgrade | what is no longer rendered | restarted | dependencies first | yes | yes |
//! | differs | repair | none | what is no longer rendered | left alone | dependencies first | yes | no |
//! | unwanted | delete | delete | everything | left alone | dependents first | no | no |

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::HookEvent;

/// What a reconciliation or an operation is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// Nothing of ours is there yet.
    Install,
    /// Something else than before is wanted.
    Upgrade,
    /// The same is wanted, and something differs.
    Repair,
    /// It goes.
    Delete,
}

/// How a component is found at its cluster, compared with what is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Found {
    /// Nothing of it is there, or nothing of it was ever applied to the end.
    Absent,
    /// It was applied to the end, from other inputs; or somebody else had installed it, and it is taken over.
    Changed,
    /// It was applied to the end from these very inputs, and differs, is not ready, or is asked for.
    Differs,
    /// It is there and nobody wants it any more.
    Unwanted,
}

/// What becomes of a component's objects that are not, or no longer, rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Prunes {
    /// Those that an earlier attempt or revision applied are deleted once the others are ready.
    NoLongerRendered,
    /// All of them go, and nothing is rendered.
    Everything,
}

/// Who goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Order {
    /// What others depend on.
    DependenciesFirst,
    /// What depends on others.
    DependentsFirst,
}

/// The steps that make a strategy different from the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StrategySteps {
    /// The hooks before and after the objects; none runs none.
    pub hooks: Option<(HookEvent, HookEvent)>,
    /// What is deleted.
    pub prunes: Prunes,
    /// Whether workloads are restarted whose pods run a proxy of another version than the component's, or lack theirs;
    /// only of components that say which proxies they inject.
    pub restarts_proxies: bool,
    /// Which of two components goes first when one depends on the other.
    pub order: Order,
    /// Whether a run for it waits for a maintenance window.
    pub waits_for_window: bool,
    /// Whether it brings a component version to a cluster that did not have it, so that the circuit breaker counts it and
    /// may hold it back.
    pub brings_version: bool,
}

impl Strategy {
    /// All of them.
    pub const ALL: &'static [Self] = &[Self::Install, Self::Upgrade, Self::Repair, Self::Delete];

    /// The strategy for a component that is found so.
    pub const fn of(found: Found) -> Self {
        match found {
            Found::Absent => Self::Install,
            Found::Changed => Self::Upgrade,
            Found::Differs => Self::Repair,
            Found::Unwanted => Self::Delete,
        }
    }

    /// The strategy of a run with operations for `parts`, at a cluster where something of ours is `present` or not: an
    /// install where nothing is, an upgrade when something else is wanted than before, else a repair. A run that deletes its
    /// cluster is one for deletion whatever it consists of, and not chosen here.
    pub fn of_run(parts: impl IntoIterator<Item = Self>, present: bool) -> Self {
        let (mut applies, mut changes) = (false, false);
        for part in parts {
            applies |= part != Self::Delete;
            changes |= part != Self::Repair;
        }
        match (applies, changes) {
            (true, _) if !present => Self::Install,
            (_, true) => Self::Upgrade,
            (_, false) => Self::Repair,
        }
    }

    /// What makes it different.
    pub const fn steps(self) -> StrategySteps {
        match self {
            Self::Install => StrategySteps {
                hooks: Some((HookEvent::PreInstall, HookEvent::PostInstall)),
                prunes: Prunes::NoLongerRendered,
                restarts_proxies: true,
                order: Order::DependenciesFirst,
                // Nobody uses yet what is not there.
                waits_for_window: false,
                brings_version: true,
            },
            Self::Upgrade => StrategySteps {
                hooks: Some((HookEvent::PreUpgrade, HookEvent::PostUpgrade)),
                prunes: Prunes::NoLongerRendered,
                restarts_proxies: true,
                order: Order::DependenciesFirst,
                waits_for_window: true,
                brings_version: true,
            },
            Self::Repair => StrategySteps {
                hooks: None,
                prunes: Prunes::NoLongerRendered,
                restarts_proxies: false,
                order: Order::DependenciesFirst,
                waits_for_window: true,
                brings_version: false,
            },
            Self::Delete => StrategySteps {
                hooks: Some((HookEvent::PreDelete, HookEvent::PostDelete)),
                prunes: Prunes::Everything,
                restarts_proxies: false,
                order: Order::DependentsFirst,
                // Whoever wants something gone says when.
                waits_for_window: false,
                brings_version: false,
            },
        }
    }

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Install => "install",
            Self::Upgrade => "upgrade",
            Self::Repair => "repair",
            Self::Delete => "delete",
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    //! K16, K35: the strategy comes from what is found, and says what is done.

    use super::*;

    #[test]
    fn what_is_found_decides() {
        assert_eq!(Strategy::of(Found::Absent), Strategy::Install);
        assert_eq!(Strategy::of(Found::Changed), Strategy::Upgrade);
        assert_eq!(Strategy::of(Found::Differs), Strategy::Repair);
        assert_eq!(Strategy::of(Found::Unwanted), Strategy::Delete);
    }

    #[test]
    fn a_run_is_for_the_most_that_its_parts_are_for() {
        use Strategy::{Delete, Install, Repair, Upgrade};
        for (parts, present, expected) in [
            (&[Install, Install][..], false, Install),
            (&[Install, Repair], true, Upgrade),
            (&[Repair, Repair], true, Repair),
            (&[Repair], false, Install),
            (&[Upgrade, Repair], true, Upgrade),
            (&[Delete], true, Upgrade),
            (&[Delete], false, Upgrade),
            (&[], true, Repair),
        ] {
            assert_eq!(
                Strategy::of_run(parts.iter().copied(), present),
                expected,
                "{parts:?}, {present}"
            );
        }
    }

    #[test]
    fn each_strategy_differs_from_every_other() {
        for (at, one) in Strategy::ALL.iter().enumerate() {
            for other in Strategy::ALL.iter().skip(at + 1) {
                assert_ne!(one.steps(), other.steps(), "{one} and {other}");
            }
        }
    }

    #[test]
    fn hooks_are_those_of_the_strategy() {
        for strategy in Strategy::ALL {
            let Some((before, after)) = strategy.steps().hooks else {
                assert_eq!(*strategy, Strategy::Repair);
                continue;
            };
            let name = strategy.as_str();
            assert_eq!(before.as_str(), format!("pre-{name}"));
            assert_eq!(after.as_str(), format!("post-{name}"));
            assert_eq!(before.is_of_deletion(), *strategy == Strategy::Delete);
        }
    }
}
