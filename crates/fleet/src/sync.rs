//! Compares the inventory with the broker's list (K6): what is missing here, what the broker no longer has, what differs.
//!
//! Only clusters that say by a label which runtime they are take part: none that somebody registered otherwise is ever
//! touched. Each comparison is written to the audit log; repairs are, one by one, as if a call had made them.

mod compare;
mod repair;

use std::sync::Arc;
use std::time::Duration;

use evenkeel_api::SyncReport;
use evenkeel_core::{Fence, Lease};
use evenkeel_inventory::{AuditAction, Chore, Cluster, ClusterFilter, PAGE_MAX, PageRequest};
use evenkeel_telemetry::{CancellationToken, request};
use serde_json::json;
use uuid::Uuid;

use crate::fleet::Inner;
use crate::requests::warn_of;
use crate::{BrokerError, Error, Fleet, Settings};

/// The longest between two questions whether it is time to compare.
const ASK_EVERY: Duration = Duration::from_secs(60);
/// Who does it, in the audit log.
const ITSELF: &str = "evenkeel";
/// What it is about, in the audit log.
const TARGET: &str = "broker";
/// How many clusters of each kind an entry of the audit log names.
const NAMED_MAX: usize = 50;

/// Compares from time to time, as the settings say. One process of an installation does at a time.
///
/// # Errors
/// What the inventory fails with; the service is started again.
pub(crate) async fn serve(inner: Arc<Inner>, stop: CancellationToken) -> Result<(), Error> {
    if inner.broker.is_none() {
        stop.cancelled().await;
        return Ok(());
    }
    loop {
        inner.tuning.read(&*inner.store).await?;
        let every = inner.tuning.everyone().sync_interval;
        match pass(&inner, every, &stop).await {
            Ok(_) => {}
            // Its list cannot be had, so there is nothing to compare with: it is tried again soon.
            Err(Error::Broker(error)) => {
                tracing::warn!(%error, "the inventory was not compared with the broker's list")
            }
            Err(error) => return Err(error),
        }
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            () = tokio::time::sleep(every.min(ASK_EVERY)) => {}
        }
    }
}

/// Compares, if it was not done within `every` and nobody else is at it. Answers what was found.
async fn pass(inner: &Inner, every: Duration, stop: &CancellationToken) -> Result<Option<SyncReport>, Error> {
    let (owner, lease) = (inner.instances.own().id, inner.settings.lease);
    let taken = inner.store.take_chore(Chore::Sync, owner, lease, every).await?;
    let Some(Lease { fence, .. }) = taken else {
        return Ok(None);
    };
    let settings = inner.tuning.everyone();
    let turn = Turn {
        inner,
        fence,
        settings: &settings,
        stop,
    };
    // What is repaired is written down as done by whoever asked, or by itself.
    let compared = match request::current() {
        Some(_) => turn.compare().await,
        None => {
            let id = format!("sync-{}", Uuid::now_v7());
            request::scope_of(id, ITSELF.to_owned(), turn.compare()).await
        }
    };
    let is_done = matches!(compared, Ok(Some(_)));
    inner.store.end_chore(Chore::Sync, fence, is_done).await?;
    compared
}

/// This process's turn at comparing.
struct Turn<'a> {
    inner: &'a Inner,
    fence: Fence,
    settings: &'a Settings,
    stop: &'a CancellationToken,
}

impl Turn<'_> {
    /// Whether it goes on: the process lives, and nobody took the turn over. Asked before each step.
    async fn goes_on(&self) -> bool {
        let kept = self
            .inner
            .store
            .keep_chore(Chore::Sync, self.fence, self.inner.settings.lease)
            .await;
        matches!(kept, Ok(Some(_))) && !self.stop.is_cancelled()
    }

    /// Reads both lists, compares, repairs where that is wanted, and writes down what was found. None when the turn was over
    /// before that.
    async fn compare(&self) -> Result<Option<SyncReport>, Error> {
        let broker = self.inner.broker.as_ref().ok_or(BrokerError::None)?;
        // The inventory first: a cluster that is registered meanwhile is in the broker's list, and one that went meanwhile
        // is asked for again before anything is done.
        let clusters = self.clusters().await?;
        let Some(runtimes) = broker.runtimes(|| self.goes_on()).await? else {
            return Ok(None);
        };
        let mut report = compare::compare(&clusters, &runtimes, self.inner.clock.now());
        if self.settings.sync_repair {
            self.repair(broker, &clusters, &runtimes, &mut report).await?;
        }
        self.tell(&report).await?;
        Ok(Some(report))
    }

    /// The live clusters that are the broker's.
    async fn clusters(&self) -> Result<Vec<Cluster>, Error> {
        let mut all = Vec::new();
        let mut request = PageRequest::first(PAGE_MAX);
        loop {
            let page = self
                .inner
                .store
                .clusters(&ClusterFilter::default(), &request)
                .await?;
            warn_of(&page.failed);
            all.extend(
                page.items
                    .into_iter()
                    .filter(|cluster| compare::runtime_of(cluster).is_some()),
            );
            match page.next {
                Some(next) => request = PageRequest::after(next, PAGE_MAX),
                None => return Ok(all),
            }
        }
    }

    async fn tell(&self, report: &SyncReport) -> Result<(), Error> {
        let (missing, extra, differing) = (report.missing.len(), report.extra.len(), report.differing.len());
        if report.is_same() {
            tracing::info!(
                runtimes = report.runtimes,
                "the inventory is as the broker's list"
            );
        } else {
            tracing::warn!(
                runtimes = report.runtimes,
                missing,
                extra,
                differing,
                refused = report.refused.as_deref(),
                "the inventory differs from the broker's list"
            );
        }
        let detail = json!({
            "runtimes": report.runtimes,
            "clusters": report.clusters,
            "counts": {"missing": missing, "extra": extra, "differing": differing},
            "missing": report.missing.iter().take(NAMED_MAX).collect::<Vec<_>>(),
            "extra": report.extra.iter().take(NAMED_MAX).collect::<Vec<_>>(),
            "differing": report.differing.iter().take(NAMED_MAX).collect::<Vec<_>>(),
            "refused": report.refused,
        });
        self.inner
            .store
            .note_done(AuditAction::SyncBroker, TARGET, detail)
            .await?;
        Ok(())
    }
}

impl Fleet {
    /// Compares the inventory with the broker's list now, whenever that was done last, and repairs as the settings say.
    ///
    /// # Errors
    /// [`Error::Broker`] when its list cannot be had, [`Error::SyncRunning`], and what the inventory answers.
    pub async fn sync_broker(&self) -> Result<SyncReport, Error> {
        let inner = self.inner();
        if inner.broker.is_none() {
            return Err(BrokerError::None.into());
        }
        inner.tuning.read(self.store()).await?;
        let found = pass(inner, Duration::ZERO, &inner.tasks.token()).await?;
        found.ok_or(Error::SyncRunning)
    }
}
