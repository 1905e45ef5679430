//! Fairness between tenants: the place of an operation in the queue is set back by what its tenant has waiting there already.
//!
//! A tenant alone in the queue loses nothing by it, since places order and do not delay. One that asks for a thousand
//! operations at once fills a stretch of places, into which the operations of others come as they are made.

use super::{SqlStore, rank};
use crate::Error;
use crate::sql::{Connection, database, query_scalar};

/// How far one operation sets the next of its tenant back: about the time it holds a slot's share.
pub(crate) const SHARE_MILLIS: i64 = 20;
/// The furthest that an operation is set back, so that it is reached whatever its tenant asks for.
pub(crate) const SET_BACK_MAX_MILLIS: i64 = 10 * 60 * 1_000;

/// The last place that a tenant holds in a lane.
pub(in crate::sql) const LAST_PLACE: &str =
    "SELECT max(rank) FROM operations WHERE tenant = $1 AND due_lane = $2 AND rank IS NOT NULL";

/// The places of a tenant's operations that become ready together.
pub(in crate::sql) struct Places {
    first: i64,
    next: i64,
}

impl Places {
    /// The next one.
    pub(in crate::sql) fn take(&mut self) -> i64 {
        let place = self.next;
        self.next = place
            .saturating_add(SHARE_MILLIS)
            .min(self.first.saturating_add(SET_BACK_MAX_MILLIS));
        place
    }
}

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
        let behind = last.map_or(first, |last| last.saturating_add(SHARE_MILLIS));
        Ok(Places {
            first,
            next: behind.clamp(first, first.saturating_add(SET_BACK_MAX_MILLIS)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_set_back_for_ever() {
        let mut places = Places {
            first: 1_000,
            next: 1_000,
        };
        assert_eq!([places.take(), places.take()], [1_000, 1_020]);
        for _ in 0..100_000 {
            places.take();
        }
        assert_eq!(places.take(), 1_000 + SET_BACK_MAX_MILLIS);
    }
}
