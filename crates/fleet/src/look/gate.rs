//! What keeps a run from being begun though there is something to do: the hour, or what came of it elsewhere.

use std::time::Duration;

use evenkeel_core::ReconcileOn;
use evenkeel_inventory::{self as inventory, Configuration, Due};
use jiff::Timestamp;

use super::Look;
use crate::breaker::VersionKey;
use crate::maintenance::{self, Opening};
use crate::planner::Planned;
use crate::{pause, phase};

/// When a cluster is looked at again that does not get a version which fails elsewhere.
const HELD_BACK_AGAIN: Duration = Duration::from_secs(60);

impl Look<'_> {
    /// Whether a check has nothing to say here, since only changes are acted upon.
    pub(super) fn is_left_alone(&self, configuration: &Configuration) -> bool {
        use evenkeel_core::{ClusterState, DueReason};
        configuration.spec.schedule.reconcile_on == ReconcileOn::Change
            && matches!(self.due.reason, DueReason::Periodic | DueReason::Drift)
            && self.running.is_none()
            && self.cluster.status.state == ClusterState::Ready
    }

    /// Whether the version was given up: only a change or a person starts it again, whatever a check would find.
    pub(super) fn is_given_up(&self, configuration: &Configuration) -> bool {
        use evenkeel_core::{ClusterState, DueReason};
        let status = &self.cluster.status;
        status.state == ClusterState::Failed
            && status.observed_version == configuration.version
            && self.running.is_none()
            && !matches!(self.due.reason, DueReason::Change | DueReason::Deletion)
    }

    /// Waits with a run where it has to wait. Answers whether it does.
    pub(super) async fn is_held(
        &self,
        configuration: &Configuration,
        planned: &Planned,
    ) -> Result<bool, inventory::Error> {
        let Some((again, reason)) = self.hold(configuration, planned) else {
            return Ok(false);
        };
        self.leave(Due::At(again, self.due.reason), Some(reason)).await?;
        Ok(true)
    }

    /// Why a run has to wait, and when to look again.
    fn hold(&self, configuration: &Configuration, planned: &Planned) -> Option<(Timestamp, String)> {
        if self.cluster.status.asked.force {
            return None;
        }
        let now = self.now();
        let settings = &self.inner.settings;
        if planned.strategy.steps().waits_for_window
            && let Opening::Opens(at) = maintenance::opening(&configuration.spec.schedule.windows, now)
        {
            let usual = phase::next_check(&self.cluster.id, settings.check_interval, now);
            let version = configuration.version;
            let reason = format!("version {version} waits for the maintenance window that opens at {at:.0}");
            return Some((at.min(usual), reason));
        }
        let reason = planned.operations.iter().find_map(|operation| {
            if !operation.kind.steps().brings_version {
                return None;
            }
            let components = &configuration.spec.components;
            let spec = components.iter().find(|spec| spec.name == operation.component)?;
            let breakers = &self.inner.breakers;
            breakers.held_back(VersionKey::of(spec), &spec.name, &self.cluster.id, settings)
        })?;
        Some((pause::after(now, HELD_BACK_AGAIN), reason))
    }
}
