//! Reports of workers, and what is kept of them.

use evenkeel_core::{ObjectChange, OperationId, OperationState, OperationStateKind, Transition as _};

use super::Transaction;
use super::rows::{Previous, ReportRow};
use crate::sql::rows::millis;
use crate::{Error, Report, Settled, Signal, TIMELINE_ENTRIES_MAX, TimelineEntry};

impl Transaction<'_> {
    /// Takes reports one after the other; what is refused writes nothing.
    pub(super) fn report_all(&mut self, reports: &[Report]) -> Vec<Result<Settled, Error>> {
        let answers: Vec<_> = reports.iter().map(|report| self.report(report)).collect();
        let states = || answers.iter().flatten().map(|settled| settled.state);
        if states().any(OperationStateKind::is_final) {
            self.signal(Signal::OperationSettled);
        }
        if states().any(|state| state != OperationStateKind::Running) {
            self.signal(Signal::OperationReady);
        }
        answers
    }

    /// Takes the report of an operation that waits for what another of its run may bring.
    pub(super) fn report_missing(&mut self, report: &Report) -> Result<Settled, Error> {
        let answer = self.report_all(std::slice::from_ref(report)).pop();
        let settled = answer.unwrap_or_else(|| Err(Error::not_found("operation", &report.operation)))?;
        if settled.state == OperationStateKind::Waiting
            && let Some(row) = self.write().operations.get_mut(&report.operation)
        {
            row.previous = Some(Previous::Run);
        }
        Ok(settled)
    }

    fn report(&mut self, report: &Report) -> Result<Settled, Error> {
        let id = &report.operation;
        let row = self.rows.operation(id)?;
        let (present, wanted) = (row.kind_of_state(), report.state.kind());
        let speaks = row.fence == report.fence;
        // A final report is delivered until it is acknowledged.
        if speaks && present == wanted && present != OperationStateKind::Running {
            return self.settled(id, Vec::new());
        }
        if !speaks || present != OperationStateKind::Running {
            return Err(Error::LeaseLost {
                operation: id.clone(),
                fence: report.fence,
                current: row.fence,
            });
        }
        present.check(wanted).map_err(Error::Refused)?;
        let stopped = row.stopped();
        self.append_report(id, &report.changes, &report.timeline);
        let skipped = match (wanted, stopped) {
            (OperationStateKind::Running, _) => Vec::new(),
            (wanted, _) if wanted.is_final() => self.end(id, report.state.clone())?,
            (_, Some(stopped)) => self.end(id, stopped)?,
            (_, None) => {
                self.give_back(id, &report.state);
                Vec::new()
            }
        };
        self.settled(id, skipped)
    }

    /// Returns an operation to the queue: at once, after a while, or once what it waits for has come.
    fn give_back(&mut self, id: &OperationId, state: &OperationState) {
        let now = self.now;
        let Some(row) = self.write().operations.get_mut(id) else {
            return;
        };
        row.queue(now);
        // Only a try that failed is one.
        if state.kind() != OperationStateKind::Retrying {
            row.attempt = row.attempt.saturating_sub(1);
        }
        if let Some(until) = state.until() {
            row.rank = None;
            row.wake_at = Some(millis(until));
        }
        row.state = state.clone();
        self.show(id);
    }

    /// Keeps what an attempt did and said; the oldest words beyond the bound go.
    pub(super) fn append_report(
        &mut self,
        id: &OperationId,
        changes: &[ObjectChange],
        timeline: &[TimelineEntry],
    ) {
        if changes.is_empty() && timeline.is_empty() {
            return;
        }
        let timeline = TimelineEntry::within_bounds(timeline);
        let Some(row) = self.write().operations.get_mut(id) else {
            return;
        };
        row.reports.push(ReportRow {
            attempt: row.attempt,
            changes: changes.to_vec(),
            timeline,
        });
        let mut total: usize = row.reports.iter().map(|report| report.timeline.len()).sum();
        for report in &mut row.reports {
            if total <= TIMELINE_ENTRIES_MAX || total - report.timeline.len() < TIMELINE_ENTRIES_MAX {
                break;
            }
            total -= report.timeline.len();
            report.timeline.clear();
        }
    }

    pub(super) fn changes_of(&self, id: &OperationId) -> Result<Vec<ObjectChange>, Error> {
        let reports = &self.rows.operation(id)?.reports;
        Ok(reports
            .iter()
            .flat_map(|report| report.changes.iter().cloned())
            .collect())
    }

    pub(super) fn timeline_of(&self, id: &OperationId) -> Result<Vec<TimelineEntry>, Error> {
        let reports = &self.rows.operation(id)?.reports;
        let mut all: Vec<_> = reports
            .iter()
            .flat_map(|report| report.timeline.iter().cloned())
            .collect();
        let surplus = all.len().saturating_sub(TIMELINE_ENTRIES_MAX);
        Ok(all.split_off(surplus))
    }
}
