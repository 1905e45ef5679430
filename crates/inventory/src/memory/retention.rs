//! Forgetting.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use evenkeel_core::{ClusterId, ReconciliationId, ReconciliationState};

use super::{MemoryStore, Transaction};
use crate::sql::rows::{int, span};
use crate::{Cleaned, Error, Retention, RetentionPolicy};

/// Clusters looked at in one step.
const CLUSTERS_TOGETHER: usize = 50;

impl Transaction<'_> {
    fn clean(&mut self, policy: &RetentionPolicy, after: Option<&ClusterId>) -> Cleaned {
        let ids = self
            .rows
            .clusters
            .keys()
            .filter(|id| after.is_none_or(|after| *id > after));
        let ids: Vec<ClusterId> = ids.take(CLUSTERS_TOGETHER).cloned().collect();
        let mut cleaned = Cleaned::default();
        if ids.len() == CLUSTERS_TOGETHER {
            cleaned.next = ids.last().cloned();
        }
        let over_before = self.before(policy.deleted_cluster_age);
        for id in ids {
            let row = self.rows.clusters.get(&id);
            match row
                .and_then(|row| row.deleted_at)
                .is_some_and(|at| at < over_before)
            {
                true => self.clean_whole(&id, &mut cleaned),
                false => self.clean_cluster(&id, policy, &mut cleaned),
            }
        }
        cleaned
    }

    fn before(&self, age: Duration) -> i64 {
        self.now.saturating_sub(span(age))
    }

    fn clean_cluster(&mut self, id: &ClusterId, policy: &RetentionPolicy, cleaned: &mut Cleaned) {
        let (run_before, failed_before) = (self.before(policy.run_age), self.before(policy.failed_run_age));
        let newest_first: Vec<_> = {
            let mut runs: Vec<_> = self.rows.runs_of(id).collect();
            runs.reverse();
            runs
        };
        let goes = |place: usize, run: &ReconciliationId| {
            let Some(row) = self.rows.runs.get(run) else {
                return false;
            };
            let is_old = match row.state {
                ReconciliationState::Failed => row.created_at < failed_before,
                _ => row.created_at < run_before || place >= policy.runs.max(1) as usize,
            };
            place > 0 && is_old && row.finished_at.is_some() && self.rows.open_operations(run) == 0
        };
        let old: Vec<ReconciliationId> = newest_first
            .iter()
            .enumerate()
            .filter(|(place, (run, _))| goes(*place, run))
            .map(|(_, (run, _))| (*run).clone())
            .collect();
        self.remove_runs(&old);
        cleaned.runs += old.len() as u64;

        let state_before = self.before(policy.history_age);
        let rows = self.write();
        let states = rows.history.len();
        rows.history
            .retain(|(of, _), row| of != id || row.until >= state_before);
        cleaned.states += (states - rows.history.len()) as u64;

        let spoken_of = self.spoken_of(id);
        let rows = self.write();
        let newest = rows.clusters.get(id).map_or(0, |row| row.version);
        let kept = i64::from(policy.configurations.max(1));
        let versions = rows.configurations.len();
        rows.configurations
            .retain(|(of, version), _| of != id || *version > newest - kept || spoken_of.contains(version));
        cleaned.configurations += (versions - rows.configurations.len()) as u64;

        let of_cluster = rows.configurations.iter().filter(|((of, _), _)| of == id);
        let named: BTreeSet<i64> = of_cluster.filter_map(|(_, row)| row.kubeconfig).collect();
        let newest = rows.clusters.get(id).and_then(|row| row.kubeconfig).unwrap_or(0);
        let kubeconfigs = rows.kubeconfigs.len();
        rows.kubeconfigs
            .retain(|(of, number), _| of != id || *number >= newest || named.contains(number));
        cleaned.kubeconfigs += (kubeconfigs - rows.kubeconfigs.len()) as u64;
    }

    /// The versions that something kept speaks of.
    fn spoken_of(&self, id: &ClusterId) -> BTreeSet<i64> {
        let rows = &*self.rows;
        let status = rows.clusters.get(id).map(|row| row.status.observed_version);
        let shown = rows
            .components_of(id)
            .filter_map(|(_, row)| Some(int(row.operation.as_ref()?.version.0)));
        let runs = rows.runs_of(id).map(|(_, run)| int(run.version.0));
        let operations = rows.operations_of_cluster(id).map(|(_, row)| int(row.version.0));
        status
            .into_iter()
            .chain(shown)
            .chain(runs)
            .chain(operations)
            .collect()
    }

    fn remove_runs(&mut self, runs: &[ReconciliationId]) {
        if runs.is_empty() {
            return;
        }
        let rows = self.write();
        let gone: BTreeSet<_> = rows
            .operations
            .iter()
            .filter(|(_, row)| runs.contains(&row.run))
            .map(|(id, _)| id.clone())
            .collect();
        rows.operations.retain(|id, _| !gone.contains(id));
        for row in rows.operations.values_mut() {
            row.depends_on.retain(|id| !gone.contains(id));
        }
        rows.runs.retain(|id, _| !runs.contains(id));
    }

    /// Removes what is left of a cluster that was deleted long ago.
    fn clean_whole(&mut self, id: &ClusterId, cleaned: &mut Cleaned) {
        let runs: Vec<_> = self.rows.runs_of(id).map(|(id, _)| id.clone()).collect();
        self.remove_runs(&runs);
        cleaned.runs += runs.len() as u64;
        let rows = self.write();
        let states = rows.history.len();
        rows.history.retain(|(of, _), _| of != id);
        cleaned.states += (states - rows.history.len()) as u64;
        rows.configurations.retain(|(of, _), _| of != id);
        rows.kubeconfigs.retain(|(of, _), _| of != id);
        rows.components.retain(|(of, _), _| of != id);
        rows.renders.retain(|(of, ..), _| of != id);
        rows.consents.retain(|row| row.cluster != *id);
        rows.clusters.remove(id);
        cleaned.clusters += 1;
    }
}

#[async_trait]
impl Retention for MemoryStore {
    async fn clean(&self, policy: &RetentionPolicy, after: Option<&ClusterId>) -> Result<Cleaned, Error> {
        self.call("clean", |transaction| Ok(transaction.clean(policy, after)))
            .await
    }

    async fn clean_audit(&self, policy: &RetentionPolicy) -> Result<u64, Error> {
        self.call("clean_audit", |transaction| {
            let before = transaction.now.saturating_sub(span(policy.audit_age));
            Ok(transaction.clean_audit(before))
        })
        .await
    }
}
