//! When a newer version takes the place of a run, and what of that run goes on.
//!
//! The run of an older version never holds the newer one up: what differs between the two is stopped at its next object
//! boundary, what is equal goes on as it is. Only when version after version is overtaken before it is done, each next one
//! is let go on for longer, so that under a steady stream some version completes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::{
    ClusterSpec, ComponentName, ComponentSpec, ConfigurationVersion, DueReason, ReconciliationState, Strategy,
};
use evenkeel_inventory::{
    self as inventory, Configuration, Due, NewOperation, Operation, PageRequest, Reconciliation,
};
use jiff::Timestamp;

use super::Look;
use crate::planner::Planned;
use crate::{Settings, pause};

/// How many runs in a row may be overtaken by newer versions as soon as those come; a person who tries things out stays
/// below.
const OVERTAKEN_FREELY: u32 = 5;
/// How many runs are looked at to count those that were overtaken.
const OVERTAKEN_COUNTED: u32 = 16;

/// What a version says of its components, as far as it decides whether an operation does the same.
#[derive(Clone)]
pub(super) struct Version {
    spec: Arc<ClusterSpec>,
    kubeconfig: Option<u64>,
}

impl Version {
    fn of(configuration: &Configuration) -> Self {
        Self {
            spec: Arc::new(configuration.spec.clone()),
            kubeconfig: configuration.kubeconfig,
        }
    }

    fn component(&self, name: &ComponentName) -> Option<&ComponentSpec> {
        self.spec.components.iter().find(|spec| spec.name == *name)
    }

    /// Whether a component has the same inputs in both. What it waits for, and what becomes of it once it is no longer
    /// listed, is the run's matter and not the operation's.
    fn has_same(&self, other: &Self, name: &ComponentName) -> bool {
        let (Some(ours), Some(theirs)) = (self.component(name), other.component(name)) else {
            return false;
        };
        let inputs = |spec: &ComponentSpec| ComponentSpec {
            depends_on: Vec::new(),
            on_remove: evenkeel_core::OnRemove::default(),
            ..spec.clone()
        };
        self.kubeconfig == other.kubeconfig && inputs(ours) == inputs(theirs)
    }
}

/// Whether `open`, an operation of a run for `run`, does what `planned` would do in a run for `strategy`.
fn is_equal(
    open: &Operation,
    run: Strategy,
    planned: &NewOperation,
    strategy: Strategy,
    versions: &BTreeMap<ConfigurationVersion, Version>,
) -> bool {
    if open.component != planned.component || open.stop.is_some() {
        return false;
    }
    match (open.kind, planned.kind) {
        (Strategy::Delete, Strategy::Delete) => {
            // In a run that deletes the cluster, its mode says how.
            open.version == planned.version && (run == Strategy::Delete) == (strategy == Strategy::Delete)
        }
        (Strategy::Delete, _) | (_, Strategy::Delete) => false,
        _ => match (versions.get(&open.version), versions.get(&planned.version)) {
            (Some(former), Some(newer)) => former.has_same(newer, &planned.component),
            _ => open.version == planned.version,
        },
    }
}

/// Lets operations of `open` go on as those of `planned` that do the same. One that moves away first is made anew.
pub(super) fn carry_over(
    planned: &mut Planned,
    run: Strategy,
    open: &[Operation],
    versions: &BTreeMap<ConfigurationVersion, Version>,
) {
    let strategy = planned.strategy;
    let mut seen = BTreeSet::new();
    let twice: BTreeSet<ComponentName> = planned
        .operations
        .iter()
        .filter(|operation| !seen.insert(operation.component.clone()))
        .map(|operation| operation.component.clone())
        .collect();
    let mut taken = BTreeSet::new();
    for operation in &mut planned.operations {
        if twice.contains(&operation.component) {
            continue;
        }
        let equal = open
            .iter()
            .find(|open| !taken.contains(&open.id) && is_equal(open, run, operation, strategy, versions));
        if let Some(equal) = equal {
            taken.insert(equal.id.clone());
            operation.carries = Some(equal.id.clone());
        }
    }
}

/// How long a run may go on before a newer version overtakes it, when `overtaken` before it were.
fn patience(overtaken: u32, settings: &Settings) -> Duration {
    let Some(more) = overtaken.checked_sub(OVERTAKEN_FREELY) else {
        return Duration::ZERO;
    };
    let first = settings.supersede_patience;
    first.saturating_mul(1_u32 << more.min(16)).min(settings.deadline)
}

/// How many runs before the newest, which is live, were overtaken one after the other by newer versions.
fn overtaken(runs: &[Reconciliation]) -> u32 {
    let pairs = runs.iter().zip(runs.iter().skip(1));
    let count = pairs
        .take_while(|(newer, older)| {
            older.state == ReconciliationState::Superseded && older.version < newer.version
        })
        .count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

impl Look<'_> {
    /// Lets what the run in progress does already, with equal inputs, go on in the new one.
    pub(super) async fn carry(&self, planned: &mut Planned) -> Result<(), inventory::Error> {
        let Some(running) = &self.running else {
            return Ok(());
        };
        let newest: BTreeSet<_> = planned
            .operations
            .iter()
            .map(|operation| operation.version)
            .collect();
        let former = running.open.iter().map(|operation| operation.version);
        let numbers: BTreeSet<ConfigurationVersion> = former.chain(newest).collect();
        let mut versions = BTreeMap::new();
        if numbers.len() > 1 {
            for number in numbers {
                match self.inner.store.configuration(&self.cluster.id, number).await {
                    Ok(configuration) => {
                        versions.insert(number, Version::of(&configuration));
                    }
                    // What cannot be compared is not equal, unless it is the very same version.
                    Err(inventory::Error::Unreadable { .. } | inventory::Error::NotFound { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        carry_over(planned, running.run.strategy, &running.open, &versions);
        Ok(())
    }

    /// Puts a newer version off, where one after the other was overtaken and the one that runs is at its first try.
    /// Answers whether it did.
    pub(super) async fn is_put_off(&self, newer: ConfigurationVersion) -> Result<bool, inventory::Error> {
        let Some(running) = &self.running else {
            return Ok(false);
        };
        if running.run.version >= newer || running.retrying || running.stuck {
            return Ok(false);
        }
        let request = PageRequest::first(OVERTAKEN_COUNTED);
        let runs = self
            .inner
            .store
            .reconciliations(&self.cluster.id, &request)
            .await?;
        let patience = patience(overtaken(&runs.items), &self.inner.settings);
        let until = pause::after(running.run.created_at, patience);
        if until <= self.now() {
            return Ok(false);
        }
        self.put_off(running.run.version, newer, until).await?;
        Ok(true)
    }

    async fn put_off(
        &self,
        runs: ConfigurationVersion,
        newer: ConfigurationVersion,
        until: Timestamp,
    ) -> Result<(), inventory::Error> {
        let reason = format!(
            "version {newer} waits for version {runs} to end, until {until:.0} at the latest: versions came faster than they \
             could be brought about"
        );
        self.leave(Due::At(until, DueReason::Change), Some(reason)).await
    }
}

#[cfg(test)]
mod tests;
