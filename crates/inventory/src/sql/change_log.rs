//! The log of changes, run by run, newest first.

use async_trait::async_trait;
use evenkeel_core::{ClusterId, ComponentName, ObjectChange};

use super::SqlStore;
use super::changes::unpack_changes;
use super::status::row_key;
use crate::sql::{Cells, Row, Statement, database, query, query_as};
use crate::{ChangeFilter, ChangeLog, Cursor, Error, Page, PageRequest, RecordedChange, RowFailure};

const READING: &str = "reading the log of changes";
/// Runs that are read together.
const RUNS_TOGETHER: i64 = 20;
/// Runs that one call looks at.
const RUNS_MAX: usize = 500;

/// Runs of a cluster up to one, newest first.
pub(super) const RUNS: &str = "SELECT id, request_id FROM reconciliations WHERE cluster_id = $1 AND ($2 IS NULL OR id <= $2) \
     ORDER BY id DESC LIMIT $3";
/// What was reported of runs, the newest last.
macro_rules! reports {
    ($runs:literal) => {
        concat!(
            "SELECT o.reconciliation_id, o.id, o.component, o.position, p.seq, p.attempt, p.changes FROM operations AS o \
             CROSS JOIN operation_reports AS p WHERE o.reconciliation_id ", $runs,
            " AND p.operation_id = o.id AND p.changes IS NOT NULL AND ($2 IS NULL OR o.component = $2) \
             ORDER BY o.reconciliation_id, o.position, p.seq"
        )
    };
}
pub(super) const REPORTS: Statement = Statement::each(
    reports!("IN (SELECT value FROM json_each($1))"),
    reports!("= ANY ($1)"),
);

/// The place of a change: run, position of its operation, number of its report, place in that.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    run: String,
    position: i64,
    report: i64,
    change: usize,
}

impl Place {
    fn cursor(&self) -> Cursor {
        let Self {
            run,
            position,
            report,
            change,
        } = self;
        Cursor(format!("{run}/{position}/{report}/{change}"))
    }

    fn read(cursor: &Cursor) -> Option<Self> {
        let mut parts = cursor.0.rsplitn(4, '/');
        let mut number = || parts.next()?.parse().ok();
        let (change, report, position) = (number()?, number()?, number()?);
        Some(Self {
            run: parts.next().filter(|run| !run.contains('\0'))?.to_owned(),
            position,
            report,
            change: usize::try_from(change).ok()?,
        })
    }
}

impl SqlStore {
    /// Adds what a report holds, newest first, as far as it is wanted and comes after `last`.
    fn add_changes(
        row: &Row,
        request_id: Option<&str>,
        filter: &ChangeFilter,
        last: Option<&Place>,
        into: &mut Vec<(Place, RecordedChange)>,
    ) -> Result<(), Error> {
        let id: String = Cells::new(row, "operation_reports", "").get("id")?;
        let seq: i64 = Cells::new(row, "operation_reports", &*id).get("seq")?;
        let key = row_key(&id, seq);
        let cells = Cells::new(row, "operation_reports", &*key);
        let changes: Vec<ObjectChange> = unpack_changes(cells.get("changes")?, &key)?;
        for (change, done) in changes.into_iter().enumerate().rev() {
            let place = Place {
                run: cells.get("reconciliation_id")?,
                position: cells.get("position")?,
                report: seq,
                change,
            };
            if last.is_some_and(|last| place >= *last) || !filter.wants(&done.object, done.at) {
                continue;
            }
            let recorded = RecordedChange {
                at: done.at,
                object: done.object,
                action: done.action,
                component: cells.parse("component")?,
                operation: cells.parse("id")?,
                attempt: cells.count("attempt")?,
                reconciliation: cells.parse("reconciliation_id")?,
                request_id: request_id.map(ToOwned::to_owned),
            };
            into.push((place, recorded));
        }
        Ok(())
    }
}

#[async_trait]
impl ChangeLog for SqlStore {
    async fn object_changes(
        &self,
        cluster: &ClusterId,
        filter: &ChangeFilter,
        page: &PageRequest,
    ) -> Result<Page<RecordedChange>, Error> {
        let limit = page.limit() as usize;
        let last = match &page.after {
            None => None,
            Some(cursor) => Some(Place::read(cursor).ok_or_else(|| Error::not_found("page", cursor))?),
        };
        let component = filter.component.as_ref().map(ComponentName::as_str);
        let mut found = Vec::new();
        let mut answer = Page::default();
        let (mut from, mut looked_at) = (last.as_ref().map(|last| last.run.clone()), 0);
        loop {
            let runs: Vec<(String, Option<String>)> = query_as(RUNS)
                .bind(cluster.as_str())
                .bind(from.as_deref())
                .bind(RUNS_TOGETHER + 1)
                .fetch_all(self.read())
                .await
                .map_err(database(READING))?;
            if runs.is_empty() && looked_at == 0 {
                self.must_exist(cluster).await?;
            }
            let together = usize::try_from(RUNS_TOGETHER).unwrap_or(usize::MAX);
            let (now, later) = runs.split_at(runs.len().min(together));
            let ids: Vec<String> = now.iter().map(|(id, _)| id.clone()).collect();
            let rows = query(REPORTS)
                .bind(&ids)
                .bind(component)
                .fetch_all(self.read())
                .await
                .map_err(database(READING))?;
            for row in rows.iter().rev() {
                let run: String = row.at(0).map_err(database(READING))?;
                let request_id = now
                    .iter()
                    .find(|(id, _)| *id == run)
                    .and_then(|(_, request)| request.as_deref());
                if let Err(error) = Self::add_changes(row, request_id, filter, last.as_ref(), &mut found) {
                    answer.failed.push(RowFailure { row: run, error });
                }
            }
            looked_at += ids.len();
            from = later.first().map(|(id, _)| id.clone());
            if found.len() > limit || from.is_none() || looked_at >= RUNS_MAX {
                break;
            }
        }
        answer.next = match (found.get(limit.saturating_sub(1)), &from) {
            (Some((place, _)), _) if found.len() > limit => Some(place.cursor()),
            // Everything of the runs that were looked at was given; the next page begins before all of the next run's.
            (_, Some(run)) => Some(
                Place {
                    run: run.clone(),
                    position: i64::MAX,
                    report: i64::MAX,
                    change: 0,
                }
                .cursor(),
            ),
            _ => None,
        };
        answer.items = found.into_iter().take(limit).map(|(_, change)| change).collect();
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_again_and_in_order() {
        let place = |run: &str, position, report, change| Place {
            run: run.to_owned(),
            position,
            report,
            change,
        };
        let here = place("c--0192f0c1", 3, 2, 1);
        assert_eq!(Place::read(&here.cursor()), Some(here.clone()));
        assert!(place("c--0192f0c2", 0, 0, 0) > here && place("c--0192f0c1", 3, 2, 0) < here);
        for odd in ["", "a", "a/b/c/d", "a/1/2/-3", "a\0/1/2/3"] {
            assert_eq!(Place::read(&Cursor(odd.to_owned())), None, "{odd}");
        }
    }
}
