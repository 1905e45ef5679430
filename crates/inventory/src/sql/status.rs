//! The present of each cluster, and its past.

use std::collections::BTreeMap;

use async_trait::async_trait;
use evenkeel_core::{
    ClusterId, ClusterState, ComponentName, ComponentRevision, ConfigurationVersion, DueReason,
    OperationState, OperationStateKind, Transition as _,
};
use evenkeel_telemetry::request;
use jiff::Timestamp;

use super::SqlStore;
use super::clusters::end_of_life;
use super::due::{due_columns, forget_asked};
use super::lock::Lock;
use super::rows::int;
use crate::cipher::Column;
use crate::rules::{DueTime, DueWrite, Standing};
use crate::sql::{Cells, Connection, Row, database, query, repeating};
use crate::status::record_each;
use crate::{
    Asked, CheckNote, ComponentOperation, ComponentStatus, Cursor, Due, DueBatch, Error, FailureCount, Page,
    PageRequest, PastStatus, Recorded, RowFailure, Signal, StatusChange, Statuses,
};

/// A cluster's one row of status, read inside the transaction that will write it.
pub(super) struct Present {
    pub(super) id: String,
    pub(super) state: ClusterState,
    since: i64,
    observed_version: i64,
    reason: Option<Vec<u8>>,
    pub(super) due: Option<DueTime>,
    pub(super) stamp: i64,
    failures: i64,
    pub(super) suspended_until: Option<i64>,
    /// What a person asked for, as it is kept.
    pub(super) asked: Option<String>,
    changes: i64,
    /// Whose the cluster is; empty when it is nobody's.
    pub(super) tenant: String,
    /// The cluster's newest configuration.
    pub(super) version: i64,
    /// Whether the cluster is to be deleted.
    pub(super) deleting: bool,
}

/// What the row becomes.
pub(super) struct Next<'a> {
    pub(super) state: ClusterState,
    pub(super) observed_version: i64,
    pub(super) reason: Option<&'a str>,
    pub(super) due: DueWrite,
    pub(super) failures: FailureCount,
}

impl Present {
    /// The row of a cluster, which nobody else writes until the transaction ends.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Unreadable`].
    pub(super) async fn load(connection: &mut Connection, id: &str) -> Result<Self, Error> {
        connection.lock(Lock::Cluster(id)).await?;
        let row = query(
            "SELECT s.state, s.since, s.observed_version, s.reason, s.due_lane, s.next_due_at, s.due_stamp, s.failures, \
             s.suspended_until, s.asked, s.changes, c.version, coalesce(c.tenant, '') AS tenant, c.deletion_requested_at IS NOT NULL AS deleting \
             FROM cluster_status s JOIN clusters c ON c.id = s.cluster_id WHERE s.cluster_id = $1",
        )
        .bind(id)
        .fetch_optional(&mut *connection)
        .await
        .map_err(database("reading a cluster's status"))?
        .ok_or_else(|| Error::not_found("cluster", id))?;
        let cells = Cells::new(&row, "cluster_status", id);
        let lane: i64 = cells.get("due_lane")?;
        Ok(Self {
            id: id.to_owned(),
            state: cells.parse("state")?,
            since: cells.get("since")?,
            observed_version: cells.get("observed_version")?,
            reason: cells.get("reason")?,
            due: cells.get::<Option<i64>>("next_due_at")?.map(|at| (at, lane)),
            stamp: cells.get("due_stamp")?,
            failures: cells.get("failures")?,
            suspended_until: cells.get("suspended_until")?,
            asked: cells.get("asked")?,
            changes: cells.get("changes")?,
            version: cells.get("version")?,
            tenant: cells.get("tenant")?,
            deleting: cells.get("deleting")?,
        })
    }

    /// What of it decides what may be written.
    pub(super) fn standing(&self) -> Standing {
        Standing {
            state: self.state,
            observed_version: self.observed_version,
            version: self.version,
            deleting: self.deleting,
            due: self.due,
            stamp: self.stamp,
            suspended_until: self.suspended_until,
        }
    }
}

impl SqlStore {
    /// Writes a cluster's status: the old state goes to the history when the state or its version changes. Answers
    /// whether anything a reader sees changed.
    ///
    /// # Errors
    /// [`Error::Refused`] for a change that is not in the table; [`Error::Database`].
    pub(super) async fn write_status(
        &self,
        connection: &mut Connection,
        present: &Present,
        next: Next<'_>,
    ) -> Result<bool, Error> {
        let id = &*present.id;
        present.state.check(next.state).map_err(Error::Refused)?;
        let now = self.now();
        // A reason that can no longer be read must not keep the cluster from getting a new one.
        let old_reason = match self
            .cipher
            .open_text(Column::STATUS_REASON, id, present.reason.as_deref())
        {
            Ok(reason) => reason,
            Err(error) => {
                tracing::warn!(cluster = id, %error, "a status reason cannot be read and is replaced");
                Some("(unreadable)".to_owned())
            }
        };
        let moved = present.state != next.state || present.observed_version != next.observed_version;
        let changed = moved || old_reason.as_deref() != next.reason;
        let (due, due_set) = present.standing().due_after(next.due, now);
        let failures = match next.failures {
            FailureCount::Keep => present.failures,
            FailureCount::Reset => 0,
            FailureCount::Add => present.failures.saturating_add(1),
        };
        if !changed && !due_set && failures == present.failures {
            return Ok(false);
        }
        if moved {
            let seq = present.changes.saturating_add(1);
            let reason =
                self.cipher
                    .seal_text(Column::HISTORY_REASON, &row_key(id, seq), old_reason.as_deref())?;
            query(
                "INSERT INTO status_history (cluster_id, seq, state, observed_version, reason, since, until) \
                 VALUES ($1, $2, $3, $4, $5, $6, $7)",
            )
            .bind(id)
            .bind(seq)
            .bind(present.state.as_str())
            .bind(present.observed_version)
            .bind(reason)
            .bind(present.since)
            .bind(now)
            .execute(&mut *connection)
            .await
            .map_err(database("recording a status"))?;
        }
        let reason = self.cipher.seal_text(Column::STATUS_REASON, id, next.reason)?;
        let (next_due_at, due_lane) = due_columns(due);
        let request = request::current();
        // A due time that stays belongs to the call that set it.
        let asked = due_set && (due != present.due || request.is_some());
        query(
            "UPDATE cluster_status SET state = $2, since = $3, observed_version = $4, reason = $5, due_lane = $6, \
             next_due_at = $7, due_stamp = $8, failures = $9, changes = $10, request_id = CASE WHEN $11 THEN $12 ELSE request_id END \
             WHERE cluster_id = $1",
        )
        .bind(id)
        .bind(next.state.as_str())
        .bind(if moved { now } else { present.since })
        .bind(next.observed_version)
        .bind(reason)
        .bind(due_lane)
        .bind(next_due_at)
        .bind(present.stamp.saturating_add(i64::from(due_set)))
        .bind(failures)
        .bind(present.changes.saturating_add(i64::from(moved)))
        .bind(asked)
        .bind(request)
        .execute(&mut *connection)
        .await
        .map_err(database("recording a status"))?;
        Ok(changed)
    }

    /// Records a status that somebody reports, unless it speaks of the past.
    ///
    /// # Errors
    /// As [`Statuses::record_status`].
    pub(super) async fn apply_status(
        &self,
        connection: &mut Connection,
        cluster: &ClusterId,
        change: &StatusChange,
    ) -> Result<Recorded, Error> {
        let present = Present::load(connection, cluster.as_str()).await?;
        let Some(counted) = present.standing().judge(cluster, change)? else {
            return Ok(Recorded::Outdated);
        };
        let mut changed = self
            .write_status(
                connection,
                &present,
                Next {
                    state: change.state,
                    observed_version: int(change.observed_version.0),
                    reason: change.reason.as_deref(),
                    due: counted.due,
                    failures: change.failures,
                },
            )
            .await?;
        if counted.asked_is_over {
            forget_asked(connection, &present).await?;
        }
        if let Some(not_ready) = &change.not_ready {
            changed |= self.write_not_ready(connection, cluster, not_ready).await?;
        }
        if change.state == ClusterState::Deleted && present.state != ClusterState::Deleted {
            end_of_life(connection, cluster, self.now()).await?;
        }
        Ok(if changed {
            Recorded::Changed
        } else {
            Recorded::Unchanged
        })
    }

    /// Writes which components are not ready, touching only those that change.
    pub(super) async fn write_not_ready(
        &self,
        connection: &mut Connection,
        cluster: &ClusterId,
        not_ready: &BTreeMap<ComponentName, String>,
    ) -> Result<bool, Error> {
        let doing = || database("recording which components are ready");
        let rows = query(
            "SELECT component, not_ready FROM components WHERE cluster_id = $1 AND not_ready IS NOT NULL",
        )
        .bind(cluster.as_str())
        .fetch_all(&mut *connection)
        .await
        .map_err(doing())?;
        let mut present = BTreeMap::new();
        for row in &rows {
            let cells = Cells::new(row, "components", cluster.as_str());
            let component: String = cells.get("component")?;
            let key = component_key(cluster.as_str(), &component);
            // One that cannot be read is unlike every new one and is replaced.
            let reason = cells
                .secret_text(&self.cipher, Column::COMPONENT_NOT_READY, &key)
                .unwrap_or(None);
            present.insert(component, reason);
        }
        let mut changes: Vec<(&str, Option<&str>)> = present
            .keys()
            .filter(|component| !not_ready.contains_key(component.as_str()))
            .map(|component| (component.as_str(), None))
            .collect();
        changes.extend(
            not_ready
                .iter()
                .filter(|(component, reason)| {
                    present.get(component.as_str()).and_then(Option::as_ref) != Some(*reason)
                })
                .map(|(component, reason)| (component.as_str(), Some(reason.as_str()))),
        );
        for (component, reason) in &changes {
            let key = component_key(cluster.as_str(), component);
            let sealed = self
                .cipher
                .seal_text(Column::COMPONENT_NOT_READY, &key, *reason)?;
            query("UPDATE components SET not_ready = $3 WHERE cluster_id = $1 AND component = $2")
                .bind(cluster.as_str())
                .bind(component)
                .bind(sealed)
                .execute(&mut *connection)
                .await
                .map_err(doing())?;
        }
        Ok(!changes.is_empty())
    }

    fn component_status(&self, row: &Row, cluster: &ClusterId) -> Result<ComponentStatus, Error> {
        let cells = Cells::new(row, "components", cluster.as_str());
        let component: ComponentName = cells.parse("component")?;
        let key = component_key(cluster.as_str(), component.as_str());
        let cells = Cells::new(row, "components", &*key);
        let operation = match cells.get::<Option<&str>>("operation_id")? {
            None => None,
            Some(_) => {
                let reason = cells.secret_text(&self.cipher, Column::COMPONENT_REASON, &key)?;
                Some(ComponentOperation {
                    id: cells.parse("operation_id")?,
                    kind: cells.named("kind")?,
                    version: ConfigurationVersion(cells.number("version")?),
                    state: operation_state(cells.parse("state")?, reason, cells.time_option("until")?),
                    since: cells.time("since")?,
                })
            }
        };
        Ok(ComponentStatus {
            component,
            listed: cells.get::<i64>("listed")? != 0,
            operation,
            revision: ComponentRevision(cells.number("revision")?),
            not_ready: cells.secret_text(&self.cipher, Column::COMPONENT_NOT_READY, &key)?,
        })
    }

    fn past_status(&self, row: &Row, key: &str) -> Result<PastStatus, Error> {
        let cells = Cells::new(row, "status_history", key);
        Ok(PastStatus {
            state: cells.parse("state")?,
            observed_version: ConfigurationVersion(cells.number("observed_version")?),
            reason: cells.secret_text(&self.cipher, Column::HISTORY_REASON, key)?,
            since: cells.time("since")?,
            until: cells.time("until")?,
        })
    }
}

/// The key of a row that belongs to a cluster and has a number.
pub(super) fn row_key(cluster: &str, number: i64) -> String {
    format!("{cluster}/{number}")
}

/// The key of a component's row.
pub(super) fn component_key(cluster: &str, component: &str) -> String {
    format!("{cluster}/{component}")
}

/// A state with its details, from where they are stored.
pub(super) fn operation_state(
    kind: OperationStateKind,
    reason: Option<String>,
    until: Option<Timestamp>,
) -> OperationState {
    let reason = reason.unwrap_or_default();
    let until = until.unwrap_or(Timestamp::UNIX_EPOCH);
    match kind {
        OperationStateKind::Pending => OperationState::Pending,
        OperationStateKind::Waiting => OperationState::Waiting {
            reason,
            deadline: until,
        },
        OperationStateKind::Running => OperationState::Running,
        OperationStateKind::Retrying => OperationState::Retrying {
            reason,
            next_at: until,
        },
        OperationStateKind::Succeeded => OperationState::Succeeded,
        OperationStateKind::Skipped => OperationState::Skipped { reason },
        OperationStateKind::Superseded => OperationState::Superseded,
        OperationStateKind::Cancelled => OperationState::Cancelled,
        OperationStateKind::Failed => OperationState::Failed { reason },
    }
}

impl SqlStore {
    /// One try.
    async fn record_status_once(
        &self,
        cluster: &ClusterId,
        change: &StatusChange,
    ) -> Result<Recorded, Error> {
        let doing = "recording a status";
        let mut transaction = self.write(doing).await?;
        let recorded = self.apply_status(&mut transaction, cluster, change).await?;
        transaction.commit(doing).await?;
        self.tell(recorded, change);
        Ok(recorded)
    }

    /// One try at all of them, or none.
    async fn record_together(&self, changes: &[(ClusterId, StatusChange)]) -> Result<Vec<Recorded>, Error> {
        let doing = "recording statuses";
        let mut transaction = self.write(doing).await?;
        // Whoever locks several clusters does so in one order.
        let mut order: Vec<usize> = (0..changes.len()).collect();
        order.sort_by_key(|place| changes.get(*place).map(|(cluster, _)| cluster));
        let mut answers = vec![Recorded::Unchanged; changes.len()];
        for place in order {
            if let (Some((cluster, change)), Some(answer)) = (changes.get(place), answers.get_mut(place)) {
                *answer = self.apply_status(&mut transaction, cluster, change).await?;
            }
        }
        transaction.commit(doing).await?;
        for ((_, change), recorded) in changes.iter().zip(&answers) {
            self.tell(*recorded, change);
        }
        Ok(answers)
    }

    /// Tells whoever waits for what a status changes.
    fn tell(&self, recorded: Recorded, change: &StatusChange) {
        if recorded == Recorded::Changed {
            self.signal(Signal::ClusterChanged);
        }
        if change.due != Due::Keep && recorded != Recorded::Outdated {
            self.signal(Signal::ClusterDue);
        }
    }
}

#[async_trait]
impl Statuses for SqlStore {
    async fn components(&self, cluster: &ClusterId) -> Result<Page<ComponentStatus>, Error> {
        let rows = query(
            "SELECT component, listed, operation_id, kind, version, state, since, until, reason, revision, not_ready \
             FROM components WHERE cluster_id = $1 AND (listed = 1 OR (operation_id IS NOT NULL \
             AND NOT (kind = 'delete' AND state = 'succeeded'))) ORDER BY component",
        )
        .bind(cluster.as_str())
        .fetch_all(self.read())
        .await
        .map_err(database("listing components"))?;
        if rows.is_empty() {
            self.must_exist(cluster).await?;
        }
        let mut page = Page {
            items: Vec::with_capacity(rows.len()),
            failed: Vec::new(),
            next: None,
        };
        for row in &rows {
            match self.component_status(row, cluster) {
                Ok(component) => page.items.push(component),
                Err(error) => page.failed.push(RowFailure {
                    row: Cells::new(row, "components", "")
                        .get("component")
                        .unwrap_or_default(),
                    error,
                }),
            }
        }
        Ok(page)
    }

    async fn status_history(
        &self,
        cluster: &ClusterId,
        page: &PageRequest,
    ) -> Result<Page<PastStatus>, Error> {
        let before = page.number_cursor()?;
        let limit = page.limit();
        let rows = query(
            "SELECT seq, state, observed_version, reason, since, until FROM status_history \
             WHERE cluster_id = $1 AND seq < $2 ORDER BY seq DESC LIMIT $3",
        )
        .bind(cluster.as_str())
        .bind(before)
        .bind(i64::from(limit) + 1)
        .fetch_all(self.read())
        .await
        .map_err(database("listing status history"))?;
        if rows.is_empty() {
            self.must_exist(cluster).await?;
        }
        Ok(Page::collect(&rows, limit, |row| {
            let seq = Cells::new(row, "status_history", cluster.as_str())
                .get("seq")
                .unwrap_or(0);
            let key = row_key(cluster.as_str(), seq);
            let past = self.past_status(row, &key);
            (Cursor(seq.to_string()), key, past)
        }))
    }

    async fn due_clusters(&self, limit: u32) -> Result<DueBatch, Error> {
        repeating(|| self.due_batch(limit)).await
    }

    async fn make_due(&self, cluster: &ClusterId, at: Timestamp, reason: DueReason) -> Result<(), Error> {
        repeating(|| self.merge_due(cluster, at, reason)).await
    }

    async fn ask(&self, cluster: &ClusterId, asked: Asked) -> Result<(), Error> {
        repeating(|| self.ask_once(cluster, &asked)).await
    }

    async fn suspend(&self, cluster: &ClusterId, until: Option<Timestamp>) -> Result<(), Error> {
        repeating(|| self.suspend_until(cluster, until)).await
    }

    async fn record_status(&self, cluster: &ClusterId, change: StatusChange) -> Result<Recorded, Error> {
        repeating(|| self.record_status_once(cluster, &change)).await
    }

    async fn record_statuses(&self, changes: Vec<(ClusterId, StatusChange)>) -> Vec<Result<Recorded, Error>> {
        if changes.len() > 1
            && let Ok(answers) = self.record_together(&changes).await
        {
            return answers.into_iter().map(Ok).collect();
        }
        record_each(self, changes).await
    }

    async fn note_checks(&self, notes: &[CheckNote]) -> Result<(), Error> {
        repeating(|| self.note(notes)).await
    }
}
