//! What attempts reported: changes of objects and words. A few words that are told while work goes on share a row with
//! those that follow.

use std::collections::BTreeMap;

use evenkeel_core::{ObjectChange, OperationId};

use super::SqlStore;
use super::queue::Held;
use super::rows::{deflate, inflate, inflate_bytes};
use super::status::row_key;
use crate::cipher::Column;
use crate::sql::{Connection, Statement, batch, database, query, query_as, query_scalar};
use crate::{Error, TIMELINE_ENTRIES_MAX, TimelineEntry};

const KEEPING: &str = "keeping what an operation reports";
/// The most bytes that the changes or the timeline of one report unpack to; more than a report is let to hold.
const REPORT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Words of one attempt are kept together up to so many; each telling writes those of its row anew.
const TOGETHER_MAX: i64 = 64;

const INSERT_REPORT: Statement = Statement::each(
    "INSERT INTO operation_reports (operation_id, seq, attempt, at, changes, entries, timeline) \
     VALUES ($1, $2, $3, $4, $5, $6, $7)",
    "INSERT INTO operation_reports (operation_id, seq, attempt, at, changes, entries, timeline) \
     SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7)",
);
const COUNT_REPORTS: Statement = Statement::each(
    "UPDATE operations SET reports = $2, timeline_entries = $3 WHERE id = $1",
    "UPDATE operations o SET reports = n.reports, timeline_entries = n.entries \
     FROM unnest($1, $2, $3) AS n (id, reports, entries) WHERE o.id = n.id",
);

/// What an attempt did and said.
pub(super) type Said<'a> = (&'a Held, &'a [ObjectChange], &'a [TimelineEntry]);

impl SqlStore {
    /// Keeps what attempts did and said, in one row a report; the oldest words beyond the bound go.
    pub(super) async fn append_reports(
        &self,
        connection: &mut Connection,
        reports: &[Said<'_>],
    ) -> Result<(), Error> {
        let now = self.now();
        let mut rows = batch(INSERT_REPORT);
        // Rows and entries of each operation so far.
        let mut counts: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
        for (held, changes, timeline) in reports {
            if changes.is_empty() && timeline.is_empty() {
                continue;
            }
            let mut timeline = TimelineEntry::within_bounds(timeline);
            let new = i64::try_from(timeline.len()).unwrap_or(i64::MAX);
            // How many rows an operation takes must not depend on how long it took.
            let said = match counts.contains_key(&*held.id) {
                true => Vec::new(),
                false => self.take_last_words(connection, held).await?,
            };
            let count = counts
                .entry(&held.id)
                .or_insert((held.reports, held.timeline_entries));
            *count = (
                count.0.saturating_add(i64::from(said.is_empty())),
                count.1.saturating_add(new),
            );
            timeline.splice(0..0, said);
            let entries = i64::try_from(timeline.len()).unwrap_or(i64::MAX);
            let packed_changes = (!changes.is_empty()).then(|| deflate(changes)).transpose()?;
            let sealed_timeline = match timeline.is_empty() {
                true => None,
                false => {
                    let key = row_key(&held.id, count.0);
                    Some(self.cipher.seal(Column::TIMELINE, &key, &deflate(&timeline)?)?)
                }
            };
            rows.push([
                held.id.clone().into(),
                count.0.into(),
                held.attempt.into(),
                now.into(),
                packed_changes.into(),
                entries.into(),
                sealed_timeline.into(),
            ]);
        }
        rows.execute(connection).await.map_err(database(KEEPING))?;
        let mut kept = batch(COUNT_REPORTS);
        for (operation, (reports, entries)) in counts {
            let entries = trim(connection, operation, entries).await?;
            kept.push([operation.to_owned().into(), reports.into(), entries.into()]);
        }
        kept.execute(connection)
            .await
            .map(drop)
            .map_err(database(KEEPING))
    }

    /// Takes back the last row of an attempt when it holds but a few words, so that the next ones are kept with them.
    async fn take_last_words(
        &self,
        connection: &mut Connection,
        held: &Held,
    ) -> Result<Vec<TimelineEntry>, Error> {
        if held.reports == 0 {
            return Ok(Vec::new());
        }
        let sealed: Option<Vec<u8>> = query_scalar(
            "SELECT timeline FROM operation_reports WHERE operation_id = $1 AND seq = $2 AND attempt = $3 \
             AND changes IS NULL AND timeline IS NOT NULL AND entries < $4",
        )
        .bind(&held.id)
        .bind(held.reports)
        .bind(held.attempt)
        .bind(TOGETHER_MAX)
        .fetch_optional(&mut *connection)
        .await
        .map_err(database(KEEPING))?;
        // What cannot be read stays as it is.
        let Some(Ok(words)) = sealed.map(|sealed| self.open_timeline(&held.id, held.reports, &sealed)) else {
            return Ok(Vec::new());
        };
        query("DELETE FROM operation_reports WHERE operation_id = $1 AND seq = $2")
            .bind(&held.id)
            .bind(held.reports)
            .execute(&mut *connection)
            .await
            .map_err(database(KEEPING))?;
        Ok(words)
    }

    /// The words of one report.
    fn open_timeline(&self, operation: &str, seq: i64, sealed: &[u8]) -> Result<Vec<TimelineEntry>, Error> {
        let key = row_key(operation, seq);
        let packed = self.cipher.open(Column::TIMELINE, &key, sealed)?;
        let json = inflate_bytes(packed.expose(), REPORT_BYTES_MAX)
            .map_err(|reason| Column::TIMELINE.unreadable(&key, reason))?;
        serde_json::from_slice(json.expose())
            .map_err(|_| Column::TIMELINE.unreadable(&key, "it is no timeline of this release"))
    }

    /// What an operation did to objects.
    pub(super) async fn read_changes(&self, id: &OperationId) -> Result<Vec<ObjectChange>, Error> {
        let key = id.to_string();
        let rows: Vec<(i64, Vec<u8>)> = query_as(
            "SELECT seq, changes FROM operation_reports WHERE operation_id = $1 AND changes IS NOT NULL ORDER BY seq",
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
            all.extend(unpack_changes(&changes, &row_key(&key, seq))?);
        }
        Ok(all)
    }

    /// What an operation said.
    pub(super) async fn read_timeline(&self, id: &OperationId) -> Result<Vec<TimelineEntry>, Error> {
        let operation = id.to_string();
        let rows: Vec<(i64, Vec<u8>)> = query_as(
            "SELECT seq, timeline FROM operation_reports WHERE operation_id = $1 AND timeline IS NOT NULL ORDER BY seq",
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
            all.extend(self.open_timeline(&operation, seq, &sealed)?);
        }
        let surplus = all.len().saturating_sub(TIMELINE_ENTRIES_MAX);
        Ok(all.split_off(surplus))
    }

    async fn operation_must_exist(&self, id: &OperationId) -> Result<(), Error> {
        query("SELECT 1 FROM operations WHERE id = $1")
            .bind(id.to_string())
            .fetch_optional(self.read())
            .await
            .map_err(database("looking for an operation"))?
            .map(drop)
            .ok_or_else(|| Error::not_found("operation", id))
    }
}

/// The changes of one report.
pub(super) fn unpack_changes(packed: &[u8], row: &str) -> Result<Vec<ObjectChange>, Error> {
    inflate(packed, REPORT_BYTES_MAX).map_err(|reason| Error::Unreadable {
        table: "operation_reports",
        column: "changes",
        row: row.to_owned(),
        reason: reason.to_owned(),
    })
}

/// Drops the oldest timelines of an operation as long as those after them fill the bound.
async fn trim(connection: &mut Connection, operation: &str, mut total: i64) -> Result<i64, Error> {
    let bound = i64::try_from(TIMELINE_ENTRIES_MAX).unwrap_or(i64::MAX);
    while total > bound {
        let oldest: Option<(i64, i64)> = query_as(
            "SELECT seq, entries FROM operation_reports WHERE operation_id = $1 AND timeline IS NOT NULL ORDER BY seq LIMIT 1",
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
            "DELETE FROM operation_reports WHERE operation_id = $1 AND seq = $2 AND changes IS NULL",
            "UPDATE operation_reports SET timeline = NULL WHERE operation_id = $1 AND seq = $2",
        ] {
            query(statement)
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
