//! Due times.

use evenkeel_core::{ClusterId, ConfigurationVersion, DueReason};
use evenkeel_telemetry::request;

use super::Transaction;
use crate::rules::{DueTime, DueWrite, rank};
use crate::sql::rows::{lane, millis, moment, reason_of_lane, uint};
use crate::{Asked, AuditAction, CheckNote, DueBatch, DueCluster, DueStamp, Error, PAGE_MAX, Signal};

impl Transaction<'_> {
    /// Sets the due time alone.
    pub(super) fn write_due(&mut self, cluster: &ClusterId, write: DueWrite) -> Result<(), Error> {
        let (now, request) = (self.now, request::current());
        let row = self.write().cluster_mut(cluster)?;
        let (due, _) = row.standing().due_after(write, now);
        let status = &mut row.status;
        // A due time that stays belongs to the call that set it.
        if due != status.due || request.is_some() {
            status.request_id = request;
        }
        status.due = due;
        status.stamp += 1;
        Ok(())
    }

    pub(super) fn make_due(
        &mut self,
        cluster: &ClusterId,
        due: DueTime,
        reason: DueReason,
    ) -> Result<(), Error> {
        self.rows.live_cluster(cluster)?;
        self.write_due(cluster, DueWrite::Merge(due))?;
        let detail = serde_json::json!({"reason": reason.as_str()});
        self.audit_cluster(AuditAction::Reconcile, cluster, &detail);
        self.signal(Signal::ClusterDue);
        Ok(())
    }

    pub(super) fn ask(&mut self, cluster: &ClusterId, asked: &Asked) -> Result<(), Error> {
        self.rows.live_cluster(cluster)?;
        if !asked.is_nothing() {
            let status = &mut self.write().cluster_mut(cluster)?.status;
            let before = status.asked.take().unwrap_or_default();
            status.asked = Some(Asked {
                force: before.force || asked.force,
                components: before.components.union(&asked.components).cloned().collect(),
            });
        }
        self.write_due(cluster, DueWrite::Merge((self.now, lane(DueReason::Change))))?;
        let detail = serde_json::json!({"force": asked.force, "components": asked.components});
        self.audit_cluster(AuditAction::Reconcile, cluster, &detail);
        self.signal(Signal::ClusterDue);
        Ok(())
    }

    pub(super) fn suspend(&mut self, cluster: &ClusterId, until: Option<i64>) -> Result<(), Error> {
        let due = self.rows.live_cluster(cluster)?.status.due;
        self.write().cluster_mut(cluster)?.status.suspended_until = until;
        let write = match until {
            Some(_) => DueWrite::Set(due),
            None => DueWrite::Merge((self.now, lane(DueReason::Change))),
        };
        self.write_due(cluster, write)?;
        let detail = serde_json::json!({"until": until.map(|until| moment(until).to_string())});
        self.audit_cluster(AuditAction::SuspendCluster, cluster, &detail);
        self.signal(Signal::ClusterDue);
        self.signal(Signal::ClusterChanged);
        Ok(())
    }

    pub(super) fn due_batch(&self, limit: u32) -> DueBatch {
        let limit = limit.clamp(1, PAGE_MAX) as usize;
        let (mut due, mut next) = (Vec::new(), None);
        for (id, row) in &self.rows.clusters {
            match row.status.due {
                Some((at, lane)) if at <= self.now => due.push(((at, lane), id, row)),
                Some((at, _)) => next = Some(next.map_or(at, |next: i64| next.min(at))),
                None => {}
            }
        }
        due.sort_by_key(|((at, lane), ..)| (rank(*at, *lane), *lane));
        due.truncate(limit);
        let next_at = match due.len() >= limit {
            true => Some(moment(self.now)),
            false => next.map(moment),
        };
        let due = due.into_iter().filter_map(|((at, lane), id, row)| {
            Some(DueCluster {
                id: id.clone(),
                name: row.name.clone(),
                tenant: row.tenant.clone(),
                version: ConfigurationVersion(uint(row.version)),
                reason: reason_of_lane(lane)?,
                due_at: moment(at),
                stamp: DueStamp(row.status.stamp),
                request_id: row.status.request_id.clone(),
            })
        });
        DueBatch {
            due: due.collect(),
            failed: Vec::new(),
            next_at,
        }
    }

    pub(super) fn note_checks(&mut self, notes: &[CheckNote]) {
        for note in notes {
            let Ok(row) = self.rows.live_cluster(&note.cluster) else {
                continue;
            };
            let is_same = row.status.stamp == note.stamp.0;
            let Ok(row) = self.write().cluster_mut(&note.cluster) else {
                continue;
            };
            let status = &mut row.status;
            status.last_check_at = Some(millis(note.checked_at));
            if is_same {
                let next = millis(note.next_due_at).max(status.suspended_until.unwrap_or(0));
                status.due = Some((next, lane(DueReason::Periodic)));
                status.request_id = None;
                status.asked = None;
                status.stamp += 1;
            }
        }
    }
}
