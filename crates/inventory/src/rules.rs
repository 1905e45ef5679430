//! What every inventory decides in the same way, whatever its rows lie in: due times, places in the queue, and whether what
//! somebody says of a cluster still counts.

use evenkeel_core::{
    ClusterId, ClusterState, DueReason, Error as CoreError, ReconciliationId, ReconciliationState, Strategy,
    Transition as _,
};

use crate::sql::rows::{int, lane, millis};
use crate::{Due, Error, NewReconciliation, StatusChange};

/// How much longer something has to have waited to come before what is of the next more urgent lane. Lanes order what is
/// there at the same time; nothing starves.
pub(crate) const LANE_AGEING_MILLIS: i64 = 60 * 60 * 1_000;
/// How far one operation sets the next of its tenant back: about the time it holds a slot's share.
const SHARE_MILLIS: i64 = 20;
/// The furthest that an operation is set back, so that it is reached whatever its tenant asks for.
const SET_BACK_MAX_MILLIS: i64 = 10 * 60 * 1_000;

/// The place among others of the same queue of what becomes due or claimable at a moment.
pub(crate) fn rank(at: i64, lane: i64) -> i64 {
    at.saturating_add(lane.saturating_mul(LANE_AGEING_MILLIS))
}

/// The places in the queue of a tenant's operations that become ready together.
#[derive(Debug)]
pub(crate) struct Places {
    first: i64,
    next: i64,
}

impl Places {
    /// From `first` on, behind the `last` one that the tenant holds in the lane.
    pub(crate) fn behind(first: i64, last: Option<i64>) -> Self {
        let behind = last.map_or(first, |last| last.saturating_add(SHARE_MILLIS));
        Self {
            first,
            next: behind.clamp(first, first.saturating_add(SET_BACK_MAX_MILLIS)),
        }
    }

    /// The next one.
    pub(crate) fn take(&mut self) -> i64 {
        let place = self.next;
        self.next = place
            .saturating_add(SHARE_MILLIS)
            .min(self.first.saturating_add(SET_BACK_MAX_MILLIS));
        place
    }
}

/// Whether the operations that are `open` have to stop when a run of that state comes to another one; none when it has come to
/// its end already, and stays as it is.
///
/// # Errors
/// [`Error::Refused`] for a state that a run cannot come to so, [`Error::OperationsOpen`] for one that has not succeeded yet.
pub(crate) fn finish(
    id: &ReconciliationId,
    from: ReconciliationState,
    to: ReconciliationState,
    open: u32,
) -> Result<Option<bool>, Error> {
    from.check(to).map_err(Error::Refused)?;
    if from.is_final() {
        return Ok(None);
    }
    match to {
        ReconciliationState::Succeeded if open > 0 => Err(Error::OperationsOpen {
            reconciliation: id.clone(),
            open,
        }),
        ReconciliationState::Running | ReconciliationState::Superseded => {
            Err(Error::Refused(CoreError::Transition {
                what: "reconciliation state",
                from: from.as_str(),
                to: to.as_str(),
                allowed: "succeeded, failed, cancelled; superseded when another one begins".to_owned(),
            }))
        }
        _ => Ok(Some(open > 0)),
    }
}

/// A due time: the moment in milliseconds, and the lane.
pub(crate) type DueTime = (i64, i64);

/// What a due time becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DueWrite {
    /// As it is.
    Keep,
    /// Exactly this.
    Set(Option<DueTime>),
    /// This, unless the present one is more urgent.
    Merge(DueTime),
}

/// Whether due time `a` comes before `b`: among those due already by lane, else by time.
fn more_urgent(a: DueTime, b: DueTime, now: i64) -> bool {
    match a.0 <= now && b.0 <= now {
        true => (a.1, a.0) <= (b.1, b.0),
        false => a <= b,
    }
}

/// How a cluster stands, as far as it decides what may be written of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    pub(crate) state: ClusterState,
    pub(crate) observed_version: i64,
    /// The number of its newest configuration.
    pub(crate) version: i64,
    /// Whether it is to be deleted.
    pub(crate) deleting: bool,
    pub(crate) due: Option<DueTime>,
    pub(crate) stamp: i64,
    pub(crate) suspended_until: Option<i64>,
}

/// What follows from a status that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    /// What becomes of the due time.
    pub(crate) due: DueWrite,
    /// Whether all that people asked for is there, or cannot be.
    pub(crate) asked_is_over: bool,
}

impl Standing {
    /// Whether attempts or time were used up for the newest version: only a change or a person starts it again.
    fn is_given_up(&self) -> bool {
        self.state == ClusterState::Failed && self.observed_version == self.version
    }

    /// Whether the cluster is due for something that a person or program asked for.
    fn is_asked_for(&self) -> bool {
        let asked = [lane(DueReason::Deletion), lane(DueReason::Change)];
        self.due.is_some_and(|(_, lane)| asked.contains(&lane))
    }

    /// The due time after `write`, and whether it was set.
    pub(crate) fn due_after(&self, write: DueWrite, now: i64) -> (Option<DueTime>, bool) {
        let resumed = |(at, lane): DueTime| match self.suspended_until {
            Some(until) if lane != self::lane(DueReason::Deletion) => (at.max(until), lane),
            _ => (at, lane),
        };
        match (write, self.due) {
            (DueWrite::Keep, due) => (due, false),
            (DueWrite::Set(due), _) => (due.map(resumed), true),
            (DueWrite::Merge(new), present) => {
                let new = resumed(new);
                let urgent = match present {
                    Some(present) if more_urgent(present, new, now) => present,
                    _ => new,
                };
                (Some(urgent), true)
            }
        }
    }

    /// Judges a status that somebody reports; none when it speaks of the past.
    ///
    /// # Errors
    /// [`Error::NotFound`] when it is about a version that does not exist.
    pub(crate) fn judge(&self, id: &ClusterId, change: &StatusChange) -> Result<Option<Counted>, Error> {
        let about_deletion = matches!(
            change.state,
            ClusterState::Deleting | ClusterState::DeleteFailed | ClusterState::Deleted
        );
        let observed_version = int(change.observed_version.0);
        if !about_deletion && (observed_version < self.version || self.deleting) {
            return Ok(None);
        }
        if observed_version > self.version {
            return Err(unknown_version(id, observed_version));
        }
        let of_the_past = change.stamp.is_some_and(|stamp| stamp.0 != self.stamp);
        // What was looked at before it was given up says nothing of it any more.
        if of_the_past && self.is_given_up() && self.due.is_none() {
            return Ok(None);
        }
        // A run has begun since: what it does is not known to who saw nothing left before it.
        if of_the_past && change.state == ClusterState::Deleted {
            return Ok(None);
        }
        let acted_upon = change.stamp.is_some_and(|stamp| stamp.0 == self.stamp) || self.due.is_none();
        let gives_up = change.state == ClusterState::Failed && change.due == Due::Never;
        let due = match (change.due, acted_upon) {
            // The next check by interval would take up as new what has just been given up.
            (Due::Never, false) if gives_up && !self.is_asked_for() => DueWrite::Set(None),
            (Due::Keep, _) | (Due::Never, false) => DueWrite::Keep,
            (Due::Never, true) => DueWrite::Set(None),
            (Due::At(at, reason), true) => DueWrite::Set(Some((millis(at), lane(reason)))),
            (Due::At(at, reason), false) => DueWrite::Merge((millis(at), lane(reason))),
        };
        let is_over = matches!(change.due, Due::Never | Due::At(_, DueReason::Periodic));
        Ok(Some(Counted {
            due,
            asked_is_over: acted_upon && is_over,
        }))
    }

    /// Whether a run may begin.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the cluster's life has ended or its version does not exist, [`Error::BeingDeleted`],
    /// [`Error::Outdated`].
    pub(crate) fn admits(&self, new: &NewReconciliation) -> Result<(), Error> {
        let cluster = &new.cluster;
        if self.state == ClusterState::Deleted {
            return Err(Error::not_found("cluster", cluster));
        }
        let version = int(new.version.0);
        if version > self.version {
            return Err(unknown_version(cluster, version));
        }
        if self.deleting && new.strategy != Strategy::Delete {
            return Err(Error::BeingDeleted(cluster.clone()));
        }
        let unwanted = !self.deleting && new.strategy == Strategy::Delete;
        let acted_upon = new.stamp.is_some_and(|stamp| stamp.0 != self.stamp);
        let by_itself = !matches!(new.reason, DueReason::Change | DueReason::Deletion);
        let given_up = by_itself && self.is_given_up();
        match version < self.version || unwanted || acted_upon || given_up {
            true => Err(Error::Outdated(cluster.clone())),
            false => Ok(()),
        }
    }
}

fn unknown_version(cluster: &ClusterId, version: i64) -> Error {
    Error::not_found("configuration version", format!("{cluster}/{version}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_set_back_for_ever() {
        let mut places = Places::behind(1_000, None);
        assert_eq!([places.take(), places.take()], [1_000, 1_020]);
        for _ in 0..100_000 {
            places.take();
        }
        assert_eq!(places.take(), 1_000 + SET_BACK_MAX_MILLIS);
        assert_eq!(Places::behind(1_000, Some(3_000)).take(), 3_020);
    }
}
