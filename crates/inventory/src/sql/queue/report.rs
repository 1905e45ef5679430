//! Reports of workers, and what is kept of them.

use std::collections::{BTreeSet, HashMap};

use evenkeel_core::{ComponentName, Fence, OperationState, OperationStateKind, Transition as _};

use super::{End, Held, SqlStore, WaitsFor, rank};
use crate::cipher::Column;
use crate::sql::lock::Lock;
use crate::sql::rows::{int, list, millis, uint};
use crate::sql::{Connection, Statement, batch_at_once, database};
use crate::{Error, Report, Settled, Signal};

const REPORTING: &str = "taking a report";
/// Returns operations to the queue.
const GIVE_BACK: Statement = Statement::each(
    "UPDATE operations SET state = n.state, reason = n.reason, until = n.until, wake_at = n.until, rank = n.rank, \
     attempt = n.attempt, previous = n.previous, lease_owner = NULL, lease_until = NULL \
     FROM (SELECT value ->> 0 AS id, value ->> 1 AS state, unhex(value ->> 2) AS reason, value ->> 3 AS until, \
     value ->> 4 AS rank, value ->> 5 AS attempt, value ->> 6 AS previous FROM json_each($1)) AS n \
     WHERE operations.id = n.id",
    "UPDATE operations o SET state = n.state, reason = n.reason, until = n.until, wake_at = n.until, rank = n.rank, \
     attempt = n.attempt, previous = n.previous, lease_owner = NULL, lease_until = NULL \
     FROM unnest($1, $2, $3, $4, $5, $6, $7) AS n (id, state, reason, until, rank, attempt, previous) WHERE o.id = n.id",
);

impl SqlStore {
    /// Takes reports in one transaction, or, where a row cannot be read, one by one.
    pub(super) async fn take_reports(
        &self,
        reports: &[Report],
    ) -> Result<Vec<Result<Settled, Error>>, Error> {
        match self.take_batch(reports, WaitsFor::Answer).await {
            // Met half-way: nothing of the batch counts, and each report is taken alone.
            Err(Error::Unreadable { .. } | Error::Invalid(_)) => {
                let mut answers = Vec::with_capacity(reports.len());
                for report in reports {
                    let alone = std::slice::from_ref(report);
                    match self.take_batch(alone, WaitsFor::Answer).await {
                        Ok(answer) => answers.extend(answer),
                        Err(error @ (Error::Unreadable { .. } | Error::Invalid(_))) => {
                            answers.push(Err(error))
                        }
                        Err(error) => return Err(error),
                    }
                }
                Ok(answers)
            }
            answers => answers,
        }
    }

    /// Takes reports in one transaction. Refusals are answers: they come before anything is written.
    pub(super) async fn take_batch(
        &self,
        reports: &[Report],
        waits_for: WaitsFor,
    ) -> Result<Vec<Result<Settled, Error>>, Error> {
        let keys = list(reports.iter().map(|report| &report.operation));
        let mut transaction = self.write(REPORTING).await?;
        transaction.lock(Lock::RunsOf(&keys)).await?;
        let held = Held::load_all(&mut transaction, &keys).await?;
        let verdicts = judge(&held, reports, &keys);
        self.write_reports(&mut transaction, reports, &verdicts).await?;
        let skipped = self
            .write_states(&mut transaction, reports, &verdicts, waits_for)
            .await?;
        let answers = self.answers(&mut transaction, verdicts, skipped).await?;
        transaction.commit(REPORTING).await?;
        let states = || answers.iter().flatten().map(|settled| settled.state);
        if states().any(OperationStateKind::is_final) {
            self.signal(Signal::OperationSettled);
        }
        if states().any(|state| state != OperationStateKind::Running) {
            self.signal(Signal::OperationReady);
        }
        Ok(answers)
    }

    /// Keeps what was done and said.
    async fn write_reports(
        &self,
        connection: &mut Connection,
        reports: &[Report],
        verdicts: &[Verdict<'_>],
    ) -> Result<(), Error> {
        let said: Vec<_> = reports
            .iter()
            .zip(verdicts)
            .filter_map(|(report, verdict)| {
                let held = match verdict {
                    Verdict::Progress(held) | Verdict::End(held, _) | Verdict::Back(held, _) => *held,
                    Verdict::Refused(_) | Verdict::Known(..) => return None,
                };
                Some((held, &*report.changes, &*report.timeline))
            })
            .collect();
        self.append_reports(connection, &said).await
    }

    /// Moves the operations. Answers the components skipped because of each report.
    async fn write_states(
        &self,
        connection: &mut Connection,
        reports: &[Report],
        verdicts: &[Verdict<'_>],
        waits_for: WaitsFor,
    ) -> Result<Vec<Vec<ComponentName>>, Error> {
        let (mut ends, mut places, mut back) = (Vec::new(), Vec::new(), Vec::new());
        for (place, (report, verdict)) in reports.iter().zip(verdicts).enumerate() {
            match verdict {
                Verdict::End(held, state) => {
                    // A stop is not what the worker's words are about.
                    let reason = report.state.reason().filter(|_| *state == report.state.kind());
                    ends.push(End {
                        held,
                        state: *state,
                        reason,
                    });
                    places.push(place);
                }
                Verdict::Back(held, _) => back.push((*held, &report.state)),
                _ => {}
            }
        }
        self.give_back(connection, &back, waits_for).await?;
        let mut skipped = vec![Vec::new(); reports.len()];
        for (place, components) in places.into_iter().zip(self.end_all(connection, &ends).await?) {
            if let Some(of_report) = skipped.get_mut(place) {
                *of_report = components;
            }
        }
        Ok(skipped)
    }

    /// The answers, each as if the reports had been taken one after the other.
    async fn answers(
        &self,
        connection: &mut Connection,
        verdicts: Vec<Verdict<'_>>,
        skipped: Vec<Vec<ComponentName>>,
    ) -> Result<Vec<Result<Settled, Error>>, Error> {
        let about = verdicts.iter().filter_map(Verdict::about);
        let runs: BTreeSet<_> = about.map(|(held, _)| &held.reconciliation).collect();
        let mut open = match runs.is_empty() {
            true => HashMap::new(),
            false => self.open_operations(connection, list(runs)).await?,
        };
        // Backwards: what a later report ended was open when the earlier ones were taken.
        let mut answers = Vec::with_capacity(verdicts.len());
        for (verdict, skipped) in verdicts.into_iter().zip(skipped).rev() {
            let ended = match &verdict {
                Verdict::End(..) => 1 + i64::try_from(skipped.len()).unwrap_or(0),
                _ => 0,
            };
            match (verdict.about(), verdict) {
                (Some((held, state)), _) => {
                    let left = open.entry(held.reconciliation.clone()).or_default();
                    answers.push(Ok(held.settled(state, skipped, *left)?));
                    *left = left.saturating_add(ended);
                }
                (None, Verdict::Refused(refusal)) => answers.push(Err(refusal)),
                (None, _) => {}
            }
        }
        answers.reverse();
        Ok(answers)
    }

    /// Returns operations to the queue: at once, after a while, or once what they wait for has come.
    async fn give_back(
        &self,
        connection: &mut Connection,
        back: &[(&Held, &OperationState)],
        waits_for: WaitsFor,
    ) -> Result<(), Error> {
        let mut rows = batch_at_once(GIVE_BACK);
        let mut shown = Vec::with_capacity(back.len());
        for (held, state) in back {
            let kind = state.kind();
            let until = state.until().map(millis);
            let claimable = (kind == OperationStateKind::Pending).then(|| rank(self.now(), held.lane));
            // Only a try that failed is one.
            let attempt = match kind {
                OperationStateKind::Retrying => held.attempt,
                _ => held.attempt.saturating_sub(1),
            };
            let reason = self
                .cipher
                .seal_text(Column::OPERATION_REASON, &held.id, state.reason())?;
            rows.push([
                held.id.clone().into(),
                kind.as_str().into(),
                reason.into(),
                until.into(),
                claimable.into(),
                attempt.into(),
                (kind == OperationStateKind::Waiting && waits_for == WaitsFor::Dependency)
                    .then(|| held.reconciliation.clone())
                    .into(),
            ]);
            shown.push((*held, kind, state.reason(), until));
        }
        rows.execute(connection).await.map_err(database(REPORTING))?;
        self.show_components(connection, &shown).await
    }
}

/// What becomes of a report.
enum Verdict<'h> {
    /// It is refused.
    Refused(Error),
    /// It was taken before: the second time it changes nothing.
    Known(&'h Held, OperationStateKind),
    /// The operation goes on.
    Progress(&'h Held),
    /// The operation ends, so.
    End(&'h Held, OperationStateKind),
    /// The operation returns to the queue.
    Back(&'h Held, OperationStateKind),
}

impl<'h> Verdict<'h> {
    /// The operation and the state it is in afterwards.
    fn about(&self) -> Option<(&'h Held, OperationStateKind)> {
        match self {
            Self::Refused(_) => None,
            Self::Known(held, state) | Self::End(held, state) | Self::Back(held, state) => {
                Some((*held, *state))
            }
            Self::Progress(held) => Some((*held, OperationStateKind::Running)),
        }
    }
}

/// Decides about reports in their order, from the operations as they are before the first.
fn judge<'h>(held: &'h HashMap<String, Held>, reports: &[Report], keys: &[String]) -> Vec<Verdict<'h>> {
    // The states that earlier reports of the batch have led to.
    let mut moved: HashMap<&str, OperationStateKind> = HashMap::new();
    let mut verdicts = Vec::with_capacity(reports.len());
    for (report, key) in reports.iter().zip(keys) {
        let verdict = match held.get(key) {
            None => Verdict::Refused(Error::not_found("operation", key)),
            Some(held) => held.judge(report, moved.get(key.as_str()).copied()),
        };
        if let Some((_, state)) = verdict.about() {
            moved.insert(key, state);
        }
        verdicts.push(verdict);
    }
    verdicts
}

impl Held {
    /// Decides about a report on an operation that is in state `moved`, or as its row says.
    fn judge(&self, report: &Report, moved: Option<OperationStateKind>) -> Verdict<'_> {
        let present = match moved {
            Some(state) => state,
            None => match self.state.parse() {
                Ok(state) => state,
                Err(error) => return Verdict::Refused(Error::Refused(error)),
            },
        };
        let wanted = report.state.kind();
        let speaks = self.fence == int(report.fence.0);
        // A final report is delivered until it is acknowledged.
        if speaks && present == wanted && present != OperationStateKind::Running {
            return Verdict::Known(self, present);
        }
        if !speaks || present != OperationStateKind::Running {
            return Verdict::Refused(Error::LeaseLost {
                operation: report.operation.clone(),
                fence: report.fence,
                current: Fence(uint(self.fence)),
            });
        }
        if let Err(error) = present.check(wanted) {
            return Verdict::Refused(Error::Refused(error));
        }
        match (wanted, self.stopped()) {
            (OperationStateKind::Running, _) => Verdict::Progress(self),
            (wanted, _) if wanted.is_final() => Verdict::End(self, wanted),
            (_, Some(stopped)) => Verdict::End(self, stopped),
            (wanted, None) => Verdict::Back(self, wanted),
        }
    }
}
