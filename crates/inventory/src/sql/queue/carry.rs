//! What a new run makes of the operations that are there already: equal ones change hands with row and id, and a new one
//! waits while another of its component has not stopped.

use std::collections::BTreeMap;

use evenkeel_core::{OperationId, OperationStateKind, Transition as _};

use super::{Held, LANE_AGEING_MILLIS, SqlStore, rank};
use crate::cipher::Column;
use crate::sql::{Connection, Statement, batch, database, query, query_as};
use crate::{Error, NewReconciliation};

const CARRYING: &str = "carrying operations over";

/// Notes which run operations are from that get another.
const NOTE_CARRIED: Statement = Statement::each(
    "INSERT INTO carried_operations (reconciliation_id, operation_id) SELECT $1, value FROM json_each($2)",
    "INSERT INTO carried_operations (reconciliation_id, operation_id) SELECT $1, unnest($2)",
);
/// Gives operations another run. One that waits for what its run may bring waits for what the other brings.
const MOVE: Statement = Statement::each(
    "UPDATE operations SET previous = CASE WHEN previous = reconciliation_id THEN $1 ELSE previous END, \
     reconciliation_id = $1 WHERE id IN (SELECT value FROM json_each($2))",
    "UPDATE operations SET previous = CASE WHEN previous = reconciliation_id THEN $1 ELSE previous END, \
     reconciliation_id = $1 WHERE id = ANY ($2)",
);
const FORGET_EDGES: Statement = Statement::each(
    "DELETE FROM operation_dependencies WHERE operation_id IN (SELECT value FROM json_each($1))",
    "DELETE FROM operation_dependencies WHERE operation_id = ANY ($1)",
);
/// An operation that waited for its next try is tried at once: what made it fail may be what was changed.
const PLACE: Statement = Statement::each(
    "UPDATE operations SET position = $2, due_lane = $3, blocked_by = $4, state = $5, \
     reason = CASE WHEN state = 'retrying' THEN NULL ELSE reason END, \
     until = CASE WHEN state = 'retrying' THEN NULL ELSE until END, \
     wake_at = CASE WHEN state = 'retrying' THEN NULL ELSE wake_at END, \
     rank = CASE WHEN state NOT IN ('pending', 'retrying') OR $4 > 0 THEN NULL WHEN rank < $6 THEN rank ELSE $6 END \
     WHERE id = $1",
    "UPDATE operations o SET position = n.position, due_lane = n.lane, blocked_by = n.blocked_by, state = n.state, \
     reason = CASE WHEN o.state = 'retrying' THEN NULL ELSE o.reason END, \
     until = CASE WHEN o.state = 'retrying' THEN NULL ELSE o.until END, \
     wake_at = CASE WHEN o.state = 'retrying' THEN NULL ELSE o.wake_at END, \
     rank = CASE WHEN o.state NOT IN ('pending', 'retrying') OR n.blocked_by > 0 THEN NULL \
     WHEN o.rank < n.rank THEN o.rank ELSE n.rank END \
     FROM unnest($1, $2, $3, $4, $5, $6) AS n (id, position, lane, blocked_by, state, rank) WHERE o.id = n.id",
);
/// The operations of a cluster that run and are of another run than this.
pub(in crate::sql) const FORMER: Statement = Statement::each(
    "SELECT id, component FROM operations WHERE cluster_id = $1 AND state = 'running' AND reconciliation_id <> $2 ORDER BY id",
    "SELECT id, component FROM operations WHERE cluster_id = $1 AND state = 'running' AND reconciliation_id <> $2 \
     ORDER BY id FOR NO KEY UPDATE",
);
/// The operations of a run that have not been claimed, first things first.
const UNCLAIMED: &str = "SELECT component, id FROM operations WHERE reconciliation_id = $1 AND state = 'pending' \
     AND attempt = 0 ORDER BY position";
const WAIT: Statement = Statement::each(
    "UPDATE operations SET state = 'waiting', reason = $2, until = $3, wake_at = $3, rank = NULL, previous = $4 WHERE id = $1",
    "UPDATE operations o SET state = 'waiting', reason = n.reason, until = n.until, wake_at = n.until, rank = NULL, \
     previous = n.previous FROM unnest($1, $2, $3, $4) AS n (id, reason, until, previous) WHERE o.id = n.id",
);
/// Lets those go on that waited for operations which have ended.
pub(in crate::sql) const FOLLOW: Statement = Statement::each(
    "UPDATE operations SET state = 'pending', reason = NULL, until = NULL, wake_at = NULL, previous = NULL, \
     rank = CASE WHEN blocked_by = 0 THEN $2 + due_lane * $3 END \
     WHERE previous IN (SELECT value FROM json_each($1)) AND state = 'waiting' RETURNING id",
    "UPDATE operations SET state = 'pending', reason = NULL, until = NULL, wake_at = NULL, previous = NULL, \
     rank = CASE WHEN blocked_by = 0 THEN $2 + due_lane * $3 END \
     WHERE previous = ANY ($1) AND state = 'waiting' RETURNING id",
);

/// An operation that another run takes over.
pub(in crate::sql) struct Carried {
    held: Held,
    state: OperationStateKind,
}

impl Carried {
    /// Its id.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    pub(in crate::sql) fn id(&self) -> Result<OperationId, Error> {
        self.held.id.parse().map_err(Error::Invalid)
    }

    /// Its id as text.
    pub(in crate::sql) fn key(&self) -> &str {
        &self.held.id
    }

    /// Whether somebody works on it, so that it waits for none of the run's others. One that waits, for whatever, is claimed
    /// anew one day, and then what it depends on has to be there.
    pub(in crate::sql) fn is_under_way(&self) -> bool {
        self.state == OperationStateKind::Running
    }

    /// The state it has in the run that takes it over.
    fn next(&self) -> OperationStateKind {
        match self.state {
            OperationStateKind::Retrying => OperationStateKind::Pending,
            state => state,
        }
    }
}

/// A new run, and until when its operations may wait for those of earlier ones.
pub(in crate::sql) struct Former<'a> {
    pub(in crate::sql) cluster: &'a str,
    pub(in crate::sql) run: &'a str,
    pub(in crate::sql) until: i64,
}

impl SqlStore {
    /// The operations of run `former` that `new` wants to carry over and can, by their position in it. One that ended
    /// meanwhile, or was told to stop, cannot: a new one takes its place.
    pub(in crate::sql) async fn carry(
        &self,
        connection: &mut Connection,
        former: &str,
        new: &NewReconciliation,
    ) -> Result<BTreeMap<usize, Carried>, Error> {
        let wanted: Vec<(usize, String, &str)> = new
            .operations
            .iter()
            .enumerate()
            .filter_map(|(position, operation)| {
                let id = operation.carries.as_ref()?.to_string();
                Some((position, id, operation.component.as_str()))
            })
            .collect();
        let mut carried = BTreeMap::new();
        if wanted.is_empty() {
            return Ok(carried);
        }
        let ids: Vec<String> = wanted.iter().map(|(_, id, _)| id.clone()).collect();
        let mut held = Held::load_all(connection, &ids).await?;
        for (position, id, component) in wanted {
            let Some(held) = held.remove(&id) else {
                continue;
            };
            let Ok(state) = held.state.parse::<OperationStateKind>() else {
                continue;
            };
            let is_open = !state.is_final() && held.stop.is_none();
            if is_open && held.reconciliation == former && held.component == component {
                carried.insert(position, Carried { held, state });
            }
        }
        Ok(carried)
    }

    /// Gives the operations `ids` of run `from` to run `to`.
    pub(in crate::sql) async fn take_over(
        &self,
        connection: &mut Connection,
        from: &str,
        to: &str,
        ids: &Vec<String>,
    ) -> Result<(), Error> {
        if ids.is_empty() {
            return Ok(());
        }
        for (statement, run) in [(MOVE, to), (NOTE_CARRIED, from)] {
            query(statement)
                .bind(run)
                .bind(ids)
                .execute(&mut *connection)
                .await
                .map_err(database(CARRYING))?;
        }
        query(FORGET_EDGES)
            .bind(ids)
            .execute(connection)
            .await
            .map(drop)
            .map_err(database(CARRYING))
    }

    /// Gives carried operations their place among those of their new run: `(operation, position, blocked by)`.
    pub(in crate::sql) async fn place_carried(
        &self,
        connection: &mut Connection,
        run: &str,
        lane: i64,
        places: &[(&Carried, i64, i64)],
    ) -> Result<(), Error> {
        let now = self.now();
        let mut rows = batch(PLACE);
        let mut shown = Vec::new();
        for (carried, position, blocked_by) in places {
            rows.push([
                carried.held.id.clone().into(),
                (*position).into(),
                lane.into(),
                (*blocked_by).into(),
                carried.next().as_str().into(),
                rank(now, lane).into(),
            ]);
            if carried.next() != carried.state {
                shown.push((&carried.held, carried.next(), None, None));
            }
        }
        rows.execute(connection).await.map_err(database(CARRYING))?;
        if !places.is_empty() {
            tracing::debug!(run, operations = places.len(), "operations were carried over");
        }
        self.show_components(connection, &shown).await
    }

    /// Lets the new operations of a run wait whose component has one that still runs: it was told to stop and does so at
    /// its next object boundary, or when its hook has ended.
    pub(in crate::sql) async fn wait_for_former(
        &self,
        connection: &mut Connection,
        run: &Former<'_>,
    ) -> Result<(), Error> {
        let running: Vec<(String, String)> = query_as(FORMER)
            .bind(run.cluster)
            .bind(run.run)
            .fetch_all(&mut *connection)
            .await
            .map_err(database(CARRYING))?;
        if running.is_empty() {
            return Ok(());
        }
        let mut former: BTreeMap<String, String> = running
            .into_iter()
            .map(|(id, component)| (component, id))
            .collect();
        let unclaimed: Vec<(String, String)> = query_as(UNCLAIMED)
            .bind(run.run)
            .fetch_all(&mut *connection)
            .await
            .map_err(database(CARRYING))?;
        let mut waiting = Vec::new();
        for (component, id) in unclaimed {
            // A later one of the same component waits for the first.
            if let Some(previous) = former.remove(&component) {
                let reason = format!(
                    "operation {previous} of this component was told to stop and has not ended; it is let go on to the end of \
                     what it is doing"
                );
                waiting.push((id, previous, reason));
            }
        }
        if waiting.is_empty() {
            return Ok(());
        }
        let mut rows = batch(WAIT);
        let ids: Vec<String> = waiting.iter().map(|(id, ..)| id.clone()).collect();
        for (id, previous, reason) in &waiting {
            let sealed = self
                .cipher
                .seal(Column::OPERATION_REASON, id, reason.as_bytes())?;
            rows.push([
                id.clone().into(),
                Some(sealed).into(),
                run.until.into(),
                previous.clone().into(),
            ]);
        }
        rows.execute(connection).await.map_err(database(CARRYING))?;
        let held = Held::load_all(connection, &ids).await?;
        let shown: Vec<_> = waiting
            .iter()
            .filter_map(|(id, _, reason)| {
                let held = held.get(id)?;
                Some((
                    held,
                    OperationStateKind::Waiting,
                    Some(&**reason),
                    Some(run.until),
                ))
            })
            .collect();
        self.show_components(connection, &shown).await
    }

    /// Lets those go on that waited for the operations `ended`.
    pub(super) async fn follow(&self, connection: &mut Connection, ended: &Vec<String>) -> Result<(), Error> {
        let freed = query(FOLLOW)
            .bind(ended)
            .bind(self.now())
            .bind(LANE_AGEING_MILLIS)
            .fetch_all(&mut *connection)
            .await
            .map_err(database("resuming operations"))?;
        if freed.is_empty() {
            return Ok(());
        }
        let ids = freed
            .iter()
            .map(|row| row.at::<String>(0).map_err(database("resuming operations")))
            .collect::<Result<Vec<_>, _>>()?;
        let held = Held::load_all(connection, &ids).await?;
        let shown: Vec<_> = held
            .values()
            .map(|held| (held, OperationStateKind::Pending, None, None))
            .collect();
        self.show_components(connection, &shown).await
    }
}
