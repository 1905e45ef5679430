//! From what watches see to a cluster that is due.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_cluster::{Alarm, DriftWatch};
use evenkeel_core::{Clock, ClusterId, ClusterState, DueReason};
use evenkeel_inventory::{self as inventory, Store};
use tokio::time::{sleep, timeout};

/// Between two alarms of one cluster: what departs meanwhile is told together.
const ALARM_INTERVAL: Duration = Duration::from_millis(250);
/// Before an alarm is told once more that the inventory could not be told.
const TROUBLE_PAUSE: Duration = Duration::from_secs(2);

/// Makes a cluster due when its watches see something.
pub(super) struct Raising {
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) id: ClusterId,
    /// How long a cluster with a live reconciliation is left alone, unless it is looked at sooner: most of what is seen
    /// then is its own work.
    pub(super) patience: Duration,
}

/// What an alarm led to.
enum Raised {
    /// The cluster is due.
    Due,
    /// Nothing is done about it.
    Left,
    /// The cluster was looked at meanwhile: whatever departs from that is told anew.
    Looked,
    /// There is no such cluster any more.
    Gone,
}

impl Raising {
    /// Raises alarms until the cluster is no more.
    pub(super) async fn alarms(&self, watch: &DriftWatch) -> Result<(), inventory::Error> {
        loop {
            let alarm = watch.alarmed().await;
            match self.alarm(watch, &alarm).await {
                Ok(Raised::Due | Raised::Left) => sleep(ALARM_INTERVAL).await,
                Ok(Raised::Looked) => {}
                Ok(Raised::Gone) => return Ok(()),
                Err(error) => {
                    tracing::warn!(%error, "drift was seen and cannot be noted yet");
                    sleep(TROUBLE_PAUSE).await;
                    watch.tell_again();
                }
            }
        }
    }

    async fn alarm(&self, watch: &DriftWatch, alarm: &Alarm) -> Result<Raised, inventory::Error> {
        let cluster = match self.store.cluster(&self.id).await {
            Err(inventory::Error::NotFound { .. }) => return Ok(Raised::Gone),
            cluster => cluster?,
        };
        if cluster.deleted_at.is_some() || cluster.deletion.is_some() {
            return Ok(Raised::Gone);
        }
        if cluster.status.state == ClusterState::Failed {
            // It was given up: a person has to act first.
            return Ok(Raised::Left);
        }
        if self.store.running_reconciliation(&self.id).await?.is_some() {
            // The look after the run, if it finds all well, is where watching goes on from.
            if timeout(self.patience, watch.checked_after(alarm.check))
                .await
                .is_ok()
            {
                return Ok(Raised::Looked);
            }
            if watch.is_calm() {
                return Ok(Raised::Left);
            }
        } else {
            let first = alarm.departures.first().map(ToString::to_string);
            tracing::info!(
                cluster = cluster.name.as_str(),
                count = alarm.count,
                first,
                readiness = alarm.readiness,
                "drift"
            );
        }
        self.raise().await?;
        Ok(Raised::Due)
    }

    /// Makes the cluster due at once.
    pub(super) async fn raise(&self) -> Result<(), inventory::Error> {
        match self
            .store
            .make_due(&self.id, self.clock.now(), DueReason::Drift)
            .await
        {
            Err(inventory::Error::NotFound { .. }) => Ok(()),
            raised => raised,
        }
    }
}
