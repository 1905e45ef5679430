//! The present of each cluster, and its past.

use async_trait::async_trait;
use evenkeel_core::{ClusterId, ClusterState, ConfigurationVersion, DueReason, Transition as _};
use evenkeel_telemetry::request;
use jiff::Timestamp;

use super::rows::HistoryRow;
use super::{MemoryStore, Transaction};
use crate::rules::DueWrite;
use crate::sql::rows::{int, lane, millis, moment, uint};
use crate::{
    Asked, CheckNote, ComponentStatus, Cursor, Due, DueBatch, Error, FailureCount, Page, PageRequest,
    PastStatus, Recorded, Signal, StatusChange, Statuses,
};

/// What a row of status becomes.
pub(super) struct Next<'a> {
    pub(super) state: ClusterState,
    pub(super) observed_version: i64,
    pub(super) reason: Option<&'a str>,
    pub(super) due: DueWrite,
    pub(super) failures: FailureCount,
}

impl Transaction<'_> {
    /// Writes a cluster's status. Answers whether anything a reader sees changed.
    pub(super) fn write_status(&mut self, id: &ClusterId, next: &Next<'_>) -> Result<bool, Error> {
        let (now, request) = (self.now, request::current());
        let row = self.rows.cluster(id)?;
        let present = &row.status;
        present.state.check(next.state).map_err(Error::Refused)?;
        let moved = present.state != next.state || present.observed_version != next.observed_version;
        let changed = moved || present.reason.as_deref() != next.reason;
        let (due, due_set) = row.standing().due_after(next.due, now);
        let failures = match next.failures {
            FailureCount::Keep => present.failures,
            FailureCount::Reset => 0,
            FailureCount::Add => present.failures.saturating_add(1),
        };
        if !changed && !due_set && failures == present.failures {
            return Ok(false);
        }
        if moved {
            let past = HistoryRow {
                state: present.state,
                observed_version: present.observed_version,
                reason: present.reason.clone(),
                since: present.since,
                until: now,
            };
            let key = (id.clone(), present.changes + 1);
            self.write().history.insert(key, past);
        }
        let status = &mut self.write().cluster_mut(id)?.status;
        if moved {
            status.since = now;
            status.changes += 1;
        }
        // A due time that stays belongs to the call that set it.
        if due_set && (due != status.due || request.is_some()) {
            status.request_id = request;
        }
        status.state = next.state;
        status.observed_version = next.observed_version;
        status.reason = next.reason.map(ToOwned::to_owned);
        status.due = due;
        status.stamp += i64::from(due_set);
        status.failures = failures;
        Ok(changed)
    }

    /// Records a status that somebody reports, unless it speaks of the past.
    pub(super) fn apply_status(&mut self, id: &ClusterId, change: &StatusChange) -> Result<Recorded, Error> {
        let row = self.rows.cluster(id)?;
        let before = row.status.state;
        let Some(counted) = row.standing().judge(id, change)? else {
            return Ok(Recorded::Outdated);
        };
        let next = Next {
            state: change.state,
            observed_version: int(change.observed_version.0),
            reason: change.reason.as_deref(),
            due: counted.due,
            failures: change.failures,
        };
        let mut changed = self.write_status(id, &next)?;
        if counted.asked_is_over {
            self.write().cluster_mut(id)?.status.asked = None;
        }
        if let Some(not_ready) = &change.not_ready {
            changed |= self.write_not_ready(id, not_ready);
        }
        if change.state == ClusterState::Deleted && before != ClusterState::Deleted {
            self.end_of_life(id)?;
        }
        Ok(match changed {
            true => Recorded::Changed,
            false => Recorded::Unchanged,
        })
    }

    fn record_status(&mut self, id: &ClusterId, change: &StatusChange) -> Result<Recorded, Error> {
        let recorded = self.apply_status(id, change)?;
        if recorded == Recorded::Changed {
            self.signal(Signal::ClusterChanged);
        }
        if change.due != Due::Keep && recorded != Recorded::Outdated {
            self.signal(Signal::ClusterDue);
        }
        Ok(recorded)
    }
}

#[async_trait]
impl Statuses for MemoryStore {
    async fn components(&self, cluster: &ClusterId) -> Result<Page<ComponentStatus>, Error> {
        self.call("components", |transaction| {
            transaction.rows.cluster(cluster)?;
            Ok(Page {
                items: transaction.rows.component_statuses(cluster),
                ..Page::default()
            })
        })
        .await
    }

    async fn status_history(
        &self,
        cluster: &ClusterId,
        page: &PageRequest,
    ) -> Result<Page<PastStatus>, Error> {
        self.call("status_history", |transaction| {
            let before = page.number_cursor()?;
            transaction.rows.cluster(cluster)?;
            let limit = page.limit();
            let rows: Vec<_> = transaction
                .rows
                .history
                .range((cluster.clone(), i64::MIN)..(cluster.clone(), before))
                .rev()
                .take(limit as usize + 1)
                .collect();
            Ok(Page::collect(&rows, limit, |((_, seq), row)| {
                let past = PastStatus {
                    state: row.state,
                    observed_version: ConfigurationVersion(uint(row.observed_version)),
                    reason: row.reason.clone(),
                    since: moment(row.since),
                    until: moment(row.until),
                };
                (Cursor(seq.to_string()), seq.to_string(), Ok(past))
            }))
        })
        .await
    }

    async fn due_clusters(&self, limit: u32) -> Result<DueBatch, Error> {
        self.call("due_clusters", |transaction| Ok(transaction.due_batch(limit)))
            .await
    }

    async fn make_due(&self, cluster: &ClusterId, at: Timestamp, reason: DueReason) -> Result<(), Error> {
        let due = (millis(at), lane(reason));
        self.call("make_due", |transaction| {
            transaction.make_due(cluster, due, reason)
        })
        .await
    }

    async fn ask(&self, cluster: &ClusterId, asked: Asked) -> Result<(), Error> {
        self.call("ask", |transaction| transaction.ask(cluster, &asked))
            .await
    }

    async fn suspend(&self, cluster: &ClusterId, until: Option<Timestamp>) -> Result<(), Error> {
        let until = until.map(millis);
        self.call("suspend", |transaction| transaction.suspend(cluster, until))
            .await
    }

    async fn record_status(&self, cluster: &ClusterId, change: StatusChange) -> Result<Recorded, Error> {
        self.call("record_status", |transaction| {
            transaction.record_status(cluster, &change)
        })
        .await
    }

    async fn note_checks(&self, notes: &[CheckNote]) -> Result<(), Error> {
        self.call("note_checks", |transaction| {
            transaction.note_checks(notes);
            Ok(())
        })
        .await
    }
}
