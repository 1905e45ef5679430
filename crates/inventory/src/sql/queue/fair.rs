//! Fairness between tenants: the place of an operation in the queue is set back by what its tenant has waiting there already.
//!
//! A tenant alone in the queue loses nothing by it, since places order and do not delay. One that asks for a thousand
//! operations at once fills a stretch of places, into which the operations of others come as they are made.

use super::{SqlStore, rank};
use crate::Error;
use crate::rules::Places;
use crate::sql::{Connection, database, query_scalar};

/// The last place that a tenant holds in a lane.
pub(in crate::sql) const LAST_PLACE: &str =
    "SELECT max(rank) FROM operations WHERE tenant = $1 AND due_lane = $2 AND rank IS NOT NULL";

impl SqlStore {
    /// Places in `lane` for operations of `tenant`, behind those that it has there.
    pub(in crate::sql) async fn places(
        &self,
        connection: &mut Connection,
        tenant: &str,
        lane: i64,
    ) -> Result<Places, Error> {
        let first = rank(self.now(), lane);
        let last: Option<i64> = query_scalar(LAST_PLACE)
            .bind(tenant)
            .bind(lane)
            .fetch_one(connection)
            .await
            .map_err(database("looking for a place in the queue"))?;
        Ok(Places::behind(first, last))
    }
}
