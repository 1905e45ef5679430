//! Repairs what a comparison found, within bounds.
//!
//! A cluster that the broker no longer has is forgotten: its record goes, nothing on the cluster is touched, and the broker
//! can register it anew. Labels that differ become as the broker says, in a new version. What is missing here only the
//! broker can bring, for its list does not say what the cluster should run.

use std::collections::BTreeMap;

use evenkeel_api::{Differing, Extra, Outcome, SyncReport};
use evenkeel_core::{DeleteMode, HumanDuration};
use evenkeel_inventory::{Cluster, DeletionOutcome, PutCluster};
use jiff::SignedDuration;

use super::Turn;
use super::compare::labels_to_change;
use crate::Error;
use crate::broker::{Broker, Runtime};

impl Turn<'_> {
    /// Repairs as far as the settings let it. What cannot be repaired says why, and keeps nothing else from being.
    pub(super) async fn repair(
        &self,
        broker: &Broker,
        clusters: &[Cluster],
        runtimes: &BTreeMap<String, Runtime>,
        report: &mut SyncReport,
    ) -> Result<(), Error> {
        let by_name: BTreeMap<_, _> = clusters.iter().map(|cluster| (&cluster.name, cluster)).collect();
        let mut left = usize::try_from(self.settings.sync_repairs_max).unwrap_or(usize::MAX);
        report.refused = self.too_many(report);
        if report.refused.is_none() {
            for extra in &mut report.extra {
                if let Some(cluster) = by_name.get(&extra.cluster) {
                    extra.outcome = self.in_turn(&mut left, self.forget(broker, cluster, extra)).await;
                }
            }
        }
        for differing in &mut report.differing {
            let runtime = runtimes.get(&differing.runtime);
            if let (Some(cluster), Some(runtime)) = (by_name.get(&differing.cluster), runtime) {
                differing.outcome = self
                    .in_turn(&mut left, self.relabel(cluster, runtime, differing))
                    .await;
            }
        }
        Ok(())
    }

    /// Why nothing may be forgotten.
    fn too_many(&self, report: &SyncReport) -> Option<String> {
        let (extra, limit) = (report.extra.len(), self.settings.sync_losses);
        if extra == 0 {
            return None;
        }
        if report.runtimes == 0 {
            return Some("the broker lists nothing at all".to_owned());
        }
        limit.is_passed(extra, report.clusters).then(|| {
            format!(
                "the broker has {extra} of {} clusters no more: expected at most {} %, or fewer than {}",
                report.clusters, limit.percent, limit.least
            )
        })
    }

    /// Does one repair, while the turn goes on and some are left.
    async fn in_turn(
        &self,
        left: &mut usize,
        repair: impl Future<Output = Result<Outcome, Error>>,
    ) -> Outcome {
        if *left == 0 {
            return Outcome::Left("as many as one comparison repairs were repaired".to_owned());
        }
        if !self.goes_on().await {
            return Outcome::Left("the turn was over".to_owned());
        }
        match repair.await {
            Ok(outcome) => {
                if outcome == Outcome::Repaired {
                    *left -= 1;
                }
                outcome
            }
            Err(error) => Outcome::Left(error.to_string()),
        }
    }

    async fn forget(&self, broker: &Broker, cluster: &Cluster, extra: &Extra) -> Result<Outcome, Error> {
        let age = self.inner.clock.now().duration_since(cluster.created_at);
        let grace = SignedDuration::try_from(self.settings.sync_grace).unwrap_or(SignedDuration::MAX);
        if age < grace {
            let grace = HumanDuration(self.settings.sync_grace);
            return Ok(Outcome::Left(format!(
                "it was registered within the last {grace}"
            )));
        }
        // The pages of a list that changes while it is read may miss one.
        let again = broker.runtime(&extra.runtime).await?;
        if again.is_some_and(|runtime| !runtime.is_gone()) {
            return Ok(Outcome::Left("the broker still has it".to_owned()));
        }
        let deletion = self
            .inner
            .store
            .request_deletion(&cluster.id, DeleteMode::Forget)
            .await?;
        if deletion == DeletionOutcome::Deleted {
            self.inner.targets.forget(&cluster.id);
        }
        tracing::info!(
            cluster = cluster.name.as_str(),
            "forgotten: the broker has its runtime no more"
        );
        Ok(Outcome::Repaired)
    }

    async fn relabel(
        &self,
        cluster: &Cluster,
        runtime: &Runtime,
        differing: &Differing,
    ) -> Result<Outcome, Error> {
        if cluster.deletion.is_some() || differing.differences.iter().all(|one| one.what == "state") {
            return Ok(Outcome::Left(
                "whether it is to go is for the broker to say".to_owned(),
            ));
        }
        let newest = self.inner.store.newest_configuration(&cluster.id).await?;
        let mut spec = newest.spec;
        for (label, _, brokers) in labels_to_change(&spec.labels.clone(), runtime) {
            spec.labels.insert(label.to_owned(), brokers.to_owned());
        }
        let put = PutCluster {
            if_version: Some(newest.version),
            ..PutCluster::new(spec)
        };
        let outcome = self.inner.store.put_cluster(put).await?;
        tracing::info!(
            cluster = cluster.name.as_str(),
            version = outcome.version.0,
            "its labels are as the broker says"
        );
        Ok(Outcome::Repaired)
    }
}
