//! What attempts reported: changes of objects and words, one row a report.

use evenkeel_core::{ObjectChange, OperationId};
use sqlx::sqlite::SqliteConnection;

use super::SqliteStore;
use super::queue::Held;
use super::rows::{database, deflate, inflate, inflate_bytes};
use super::status::row_key;
use crate::cipher::Column;
use crate::{Error, TIMELINE_ENTRIES_MAX, TIMELINE_MESSAGE_BYTES_MAX, TimelineEntry};

const KEEPING: &str = "keeping what an operation reports";
/// The most bytes that the changes or the timeline of one report unpack to; more than a report is let to hold.
const REPORT_BYTES_MAX: usize = 64 * 1024 * 1024;

impl SqliteStore {
    /// Keeps what an attempt did and said, in one row; the oldest words beyond the bound go.
    pub(super) async fn append_report(
        &self,
        connection: &mut SqliteConnection,
        held: &Held,
        changes: &[ObjectChange],
        timeline: &[TimelineEntry],
    ) -> Result<(), Error> {
        if changes.is_empty() && timeline.is_empty() {
            return Ok(());
        }
        let surplus = timeline.len().saturating_sub(TIMELINE_ENTRIES_MAX);
        let mut timeline = timeline.get(surplus..).unwrap_or_default().to_vec();
        for entry in &mut timeline {
            cut(&mut entry.message);
        }
        let entries = i64::try_from(timeline.len()).unwrap_or(i64::MAX);
        let seq = held.reports.saturating_add(1);
        let packed_changes = (!changes.is_empty()).then(|| deflate(&changes)).transpose()?;
        let sealed_timeline = match timeline.is_empty() {
            true => None,
            false => {
                let key = row_key(&held.id, seq);
                Some(self.cipher.seal(Column::TIMELINE, &key, &deflate(&timeline)?)?)
            }
        };
        sqlx::query(
            "INSERT INTO operation_reports (operation_id, seq, attempt, at, changes, entries, timeline) \
             VALUES (?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(&held.id)
        .bind(seq)
        .bind(held.attempt)
        .bind(self.now())
        .bind(packed_changes)
        .bind(entries)
        .bind(sealed_timeline)
        .execute(&mut *connection)
        .await
        .map_err(database(KEEPING))?;
        let total = held.timeline_entries.saturating_add(entries);
        let total = trim(connection, &held.id, total).await?;
        sqlx::query("UPDATE operations SET reports = ?2, timeline_entries = ?3 WHERE id = ?1")
            .bind(&held.id)
            .bind(seq)
            .bind(total)
            .execute(connection)
            .await
            .map(drop)
            .map_err(database(KEEPING))
    }

    /// What an operation did to objects.
    pub(super) async fn read_changes(&self, id: &OperationId) -> Result<Vec<ObjectChange>, Error> {
        let key = id.to_string();
        let rows: Vec<(i64, Vec<u8>)> = sqlx::query_as(
            "SELECT seq, changes FROM operation_reports WHERE operation_id = ? AND changes IS NOT NULL ORDER BY seq",
        )
        .bind(&key)
        .fetch_all(self.read())
        .await
        .map_err(database("reading object changes"))?;
        if rows.is_empty() {
            self.operation_must_exist(id).await?;
        }
        let mut all = Vec::new();
        for (seq, changes) in rows {
            let changes: Vec<ObjectChange> =
                inflate(&changes, REPORT_BYTES_MAX).map_err(|reason| Error::Unreadable {
                    table: "operation_reports",
                    column: "changes",
                    row: row_key(&key, seq),
                    reason: reason.to_owned(),
                })?;
            all.extend(changes);
        }
        Ok(all)
    }

    /// What an operation said.
    pub(super) async fn read_timeline(&self, id: &OperationId) -> Result<Vec<TimelineEntry>, Error> {
        let operation = id.to_string();
        let rows: Vec<(i64, Vec<u8>)> = sqlx::query_as(
            "SELECT seq, timeline FROM operation_reports WHERE operation_id = ? AND timeline IS NOT NULL ORDER BY seq",
        )
        .bind(&operation)
        .fetch_all(self.read())
        .await
        .map_err(database("reading a timeline"))?;
        if rows.is_empty() {
            self.operation_must_exist(id).await?;
        }
        let mut all: Vec<TimelineEntry> = Vec::new();
        for (seq, sealed) in rows {
            let key = row_key(&operation, seq);
            let packed = self.cipher.open(Column::TIMELINE, &key, &sealed)?;
            let json = inflate_bytes(packed.expose(), REPORT_BYTES_MAX)
                .map_err(|reason| Column::TIMELINE.unreadable(&key, reason))?;
            let entries: Vec<TimelineEntry> = serde_json::from_slice(json.expose())
                .map_err(|_| Column::TIMELINE.unreadable(&key, "it is no timeline of this release"))?;
            all.extend(entries);
        }
        let surplus = all.len().saturating_sub(TIMELINE_ENTRIES_MAX);
        Ok(all.split_off(surplus))
    }

    async fn operation_must_exist(&self, id: &OperationId) -> Result<(), Error> {
        sqlx::query("SELECT 1 FROM operations WHERE id = ?")
            .bind(id.to_string())
            .fetch_optional(self.read())
            .await
            .map_err(database("looking for an operation"))?
            .map(drop)
            .ok_or_else(|| Error::not_found("operation", id))
    }
}

/// Drops the oldest timelines of an operation as long as those after them fill the bound.
async fn trim(connection: &mut SqliteConnection, operation: &str, mut total: i64) -> Result<i64, Error> {
    let bound = i64::try_from(TIMELINE_ENTRIES_MAX).unwrap_or(i64::MAX);
    while total > bound {
        let oldest: Option<(i64, i64)> = sqlx::query_as(
            "SELECT seq, entries FROM operation_reports WHERE operation_id = ? AND timeline IS NOT NULL ORDER BY seq LIMIT 1",
        )
        .bind(operation)
        .fetch_optional(&mut *connection)
        .await
        .map_err(database(KEEPING))?;
        let Some((seq, entries)) = oldest.filter(|(_, entries)| total.saturating_sub(*entries) >= bound)
        else {
            break;
        };
        for statement in [
            "DELETE FROM operation_reports WHERE operation_id = ? AND seq = ? AND changes IS NULL",
            "UPDATE operation_reports SET timeline = NULL WHERE operation_id = ? AND seq = ?",
        ] {
            sqlx::query(statement)
                .bind(operation)
                .bind(seq)
                .execute(&mut *connection)
                .await
                .map_err(database(KEEPING))?;
        }
        total = total.saturating_sub(entries);
    }
    Ok(total)
}

/// Cuts a message to its bound, between characters.
fn cut(message: &mut String) {
    if message.len() > TIMELINE_MESSAGE_BYTES_MAX {
        let end = message.floor_char_boundary(TIMELINE_MESSAGE_BYTES_MAX);
        message.truncate(end);
        message.push('…');
    }
}
