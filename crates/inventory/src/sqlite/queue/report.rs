//! Reports of workers, and what is kept of them.

use evenkeel_core::{OperationState, OperationStateKind, Transition as _};
use sqlx::sqlite::SqliteConnection;

use super::{Held, SqliteStore, rank};
use crate::cipher::Column;
use crate::sqlite::rows::{database, int, millis, uint};
use crate::{Error, Report, Settled, Signal};

const REPORTING: &str = "taking a report";

impl SqliteStore {
    pub(super) async fn take_reports(
        &self,
        reports: Vec<Report>,
    ) -> Result<Vec<Result<Settled, Error>>, Error> {
        match self.take_batch(&reports).await {
            // A row that cannot be read, met half-way: nothing of the batch counts, and each report is taken alone.
            Err(Error::Unreadable { .. } | Error::Invalid(_)) => {
                let mut answers = Vec::with_capacity(reports.len());
                for report in reports {
                    match self.take_batch(&[report]).await {
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
    async fn take_batch(&self, reports: &[Report]) -> Result<Vec<Result<Settled, Error>>, Error> {
        let mut answers = Vec::with_capacity(reports.len());
        let mut transaction = self.write(REPORTING).await?;
        for report in reports {
            match self.take_report(&mut transaction, report).await {
                Ok(settled) => answers.push(Ok(settled)),
                Err(refusal @ (Error::NotFound { .. } | Error::LeaseLost { .. } | Error::Refused(_))) => {
                    answers.push(Err(refusal));
                }
                Err(error) => return Err(error),
            }
        }
        transaction.commit().await.map_err(database(REPORTING))?;
        let states = || answers.iter().flatten().map(|settled| settled.state);
        if states().any(OperationStateKind::is_final) {
            self.signals.send(Signal::OperationSettled);
        }
        if states().any(|state| state != OperationStateKind::Running) {
            self.signals.send(Signal::OperationReady);
        }
        Ok(answers)
    }

    async fn take_report(
        &self,
        connection: &mut SqliteConnection,
        report: &Report,
    ) -> Result<Settled, Error> {
        let Report {
            operation,
            fence,
            state,
            changes,
            timeline,
        } = report;
        let held = Held::load(connection, &operation.to_string()).await?;
        let present: OperationStateKind = held.state.parse().map_err(Error::Refused)?;
        let wanted = state.kind();
        let speaks = held.fence == int(fence.0);
        // A final report is delivered until it is acknowledged: the second time it changes nothing.
        if speaks && present == wanted && present != OperationStateKind::Running {
            return self.settled(connection, &held, present, Vec::new()).await;
        }
        if !speaks || present != OperationStateKind::Running {
            return Err(Error::LeaseLost {
                operation: operation.clone(),
                fence: *fence,
                current: evenkeel_core::Fence(uint(held.fence)),
            });
        }
        present.check(wanted).map_err(Error::Refused)?;
        self.append_report(connection, &held, changes, timeline).await?;
        if wanted == OperationStateKind::Running {
            return self.settled(connection, &held, wanted, Vec::new()).await;
        }
        if wanted.is_final() {
            return self.settle(connection, &held, wanted, state.reason()).await;
        }
        match held.stopped() {
            Some(stopped) => self.settle(connection, &held, stopped, None).await,
            None => self.give_back(connection, &held, state).await,
        }
    }

    /// Returns an operation to the queue: at once, after a while, or once what it waits for has come.
    async fn give_back(
        &self,
        connection: &mut SqliteConnection,
        held: &Held,
        state: &OperationState,
    ) -> Result<Settled, Error> {
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
        sqlx::query(
            "UPDATE operations SET state = ?2, reason = ?3, until = ?4, wake_at = ?4, rank = ?5, attempt = ?6, \
             lease_owner = NULL, lease_until = NULL WHERE id = ?1",
        )
        .bind(&held.id)
        .bind(kind.as_str())
        .bind(reason)
        .bind(until)
        .bind(claimable)
        .bind(attempt)
        .execute(&mut *connection)
        .await
        .map_err(database(REPORTING))?;
        self.show_component(connection, held, kind, state.reason(), until)
            .await?;
        self.settled(connection, held, kind, Vec::new()).await
    }
}
