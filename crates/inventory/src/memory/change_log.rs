//! The log of changes, run by run, newest first.

use async_trait::async_trait;
use evenkeel_core::{ClusterId, OperationId, ReconciliationId};

use super::{MemoryStore, Transaction};
use crate::{ChangeFilter, ChangeLog, Cursor, Error, Page, PageRequest, RecordedChange};

/// Runs that one call looks at.
const RUNS_MAX: usize = 500;

/// The place of a change: run, position of its operation, number of its report, place in that.
type Place = (String, usize, usize, usize);

fn cursor((run, position, report, change): &Place) -> Cursor {
    Cursor(format!("{run}/{position}/{report}/{change}"))
}

fn place(cursor: &Cursor) -> Option<Place> {
    let mut parts = cursor.0.rsplitn(4, '/');
    let mut number = || parts.next()?.parse().ok();
    let (change, report, position) = (number()?, number()?, number()?);
    Some((parts.next()?.to_owned(), position, report, change))
}

impl Transaction<'_> {
    fn changes_of_run(
        &self,
        run: &ReconciliationId,
        filter: &ChangeFilter,
        last: Option<&Place>,
        found: &mut Vec<(Place, RecordedChange)>,
    ) {
        let request_id = self.rows.runs.get(run).and_then(|run| run.request_id.clone());
        for (id, row) in self.rows.operations_of(run).into_iter().rev() {
            if filter
                .component
                .as_ref()
                .is_some_and(|component| *component != row.component)
            {
                continue;
            }
            for (number, report) in row.reports.iter().enumerate().rev() {
                for (index, change) in report.changes.iter().enumerate().rev() {
                    let place = (run.to_string(), row.position, number, index);
                    if last.is_some_and(|last| place >= *last) || !filter.wants(&change.object, change.at) {
                        continue;
                    }
                    let recorded = RecordedChange {
                        at: change.at,
                        object: change.object.clone(),
                        action: change.action,
                        component: row.component.clone(),
                        operation: OperationId::clone(id),
                        attempt: report.attempt,
                        reconciliation: run.clone(),
                        request_id: request_id.clone(),
                    };
                    found.push((place, recorded));
                }
            }
        }
    }

    fn object_changes(
        &self,
        cluster: &ClusterId,
        filter: &ChangeFilter,
        page: &PageRequest,
    ) -> Result<Page<RecordedChange>, Error> {
        self.rows.cluster(cluster)?;
        let limit = page.limit() as usize;
        let last = match &page.after {
            None => None,
            Some(cursor) => Some(place(cursor).ok_or_else(|| Error::not_found("page", cursor))?),
        };
        let mut runs: Vec<_> = self.rows.runs_of(cluster).map(|(id, _)| id).collect();
        runs.retain(|id| last.as_ref().is_none_or(|(run, ..)| id.to_string() <= *run));
        runs.reverse();
        let mut found = Vec::new();
        let mut next_run = None;
        for (number, run) in runs.into_iter().enumerate() {
            if found.len() > limit || number >= RUNS_MAX {
                next_run = Some(run);
                break;
            }
            self.changes_of_run(run, filter, last.as_ref(), &mut found);
        }
        let next = match (found.get(limit.saturating_sub(1)), next_run) {
            (Some((place, _)), _) if found.len() > limit => Some(cursor(place)),
            (_, Some(run)) => Some(cursor(&(run.to_string(), usize::MAX, usize::MAX, 0))),
            _ => None,
        };
        Ok(Page {
            items: found.into_iter().take(limit).map(|(_, change)| change).collect(),
            failed: Vec::new(),
            next,
        })
    }
}

#[async_trait]
impl ChangeLog for MemoryStore {
    async fn object_changes(
        &self,
        cluster: &ClusterId,
        filter: &ChangeFilter,
        page: &PageRequest,
    ) -> Result<Page<RecordedChange>, Error> {
        self.call("object_changes", |transaction| {
            transaction.object_changes(cluster, filter, page)
        })
        .await
    }
}
