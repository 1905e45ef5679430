//! Races for one object with others who write it, too.
//!
//! Every write of ours names the version that it was decided on (DESIGN §4.4), so whoever writes in between makes it fail with
//! 409. That is nothing wrong: the object is looked at once more, and the write is tried again. A controller in the middle of
//! a rollout writes an object many times a second, so the tries are bounded by time, not by number, and lie further and further
//! apart.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use evenkeel_core::ObjectRef;
use tokio::time::{Instant, sleep};

use crate::connection::Guard;
use crate::discovery::Resource;
use crate::live::LiveObject;
use crate::objects::{DeletePreconditions, Propagation};
use crate::{Cluster, Error};

/// Waited after the first lost race; it doubles up to [`PAUSE_MAX`].
const PAUSE_MIN: Duration = Duration::from_millis(5);
/// The longest pause: short enough for many tries within the bound.
const PAUSE_MAX: Duration = Duration::from_millis(250);

/// A write that lost every race until its bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostRace {
    /// What was being done.
    pub doing: String,
    /// How often it was tried.
    pub tries: u32,
    /// How long.
    pub within: Duration,
    /// The field managers that had written last when it was looked at again, and how often each.
    pub writers: BTreeMap<String, u32>,
}

impl fmt::Display for LostRace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            doing,
            tries,
            within,
            writers,
        } = self;
        let seconds = within.as_secs_f64();
        write!(
            f,
            "{doing}: somebody else wrote it in between, {tries} times within {seconds:.1} s"
        )?;
        let mut writers: Vec<_> = writers.iter().collect();
        writers.sort_by_key(|(name, times)| (std::cmp::Reverse(**times), name.as_str()));
        for (index, (name, times)) in writers.into_iter().enumerate() {
            let lead = if index == 0 { ": " } else { ", " };
            write!(f, "{lead}{name} ({times})")?;
        }
        f.write_str("; find out why it is written all the time")
    }
}

/// The tries of one write. Each lost one is told to [`Race::look_again`].
#[derive(Debug)]
pub(crate) struct Race {
    doing: String,
    started: Instant,
    deadline: Instant,
    pause: Duration,
    lost: u32,
    writers: BTreeMap<String, u32>,
}

impl Race {
    /// Begins one, within the bound of the cluster's limits.
    pub(crate) fn new(cluster: &Cluster, doing: impl Into<String>) -> Self {
        let started = Instant::now();
        Self {
            doing: doing.into(),
            started,
            deadline: started + cluster.limits().race_within,
            pause: PAUSE_MIN,
            lost: 0,
            writers: BTreeMap::new(),
        }
    }

    /// Nor later than `deadline`, by which the caller must be done.
    pub(crate) fn by(mut self, deadline: Instant) -> Self {
        self.deadline = self.deadline.min(deadline);
        self
    }

    /// The object as it is now, after a try was lost; none when it is gone.
    ///
    /// It is read after the pause: the younger the look, the likelier the next try wins.
    ///
    /// # Errors
    /// [`Error::LostRace`] when the bound is reached; whatever the look fails with.
    pub(crate) async fn look_again(
        &mut self,
        cluster: &Cluster,
        resource: &Resource,
        object: &ObjectRef,
    ) -> Result<Option<LiveObject>, Error> {
        self.lost += 1;
        let over = Instant::now() + self.pause >= self.deadline;
        if !over {
            sleep(self.pause).await;
            self.pause = (self.pause * 2).min(PAUSE_MAX);
        }
        let now = cluster.get_live(resource, object).await?;
        if let Some(writer) = now.as_ref().and_then(LiveObject::last_other_writer) {
            *self.writers.entry(writer).or_default() += 1;
        }
        if over { Err(self.given_up()) } else { Ok(now) }
    }

    fn given_up(&self) -> Error {
        Error::LostRace(Box::new(LostRace {
            doing: self.doing.clone(),
            tries: self.lost,
            within: self.started.elapsed(),
            writers: self.writers.clone(),
        }))
    }
}

/// What became of one deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deleted {
    /// The server will remove it, or has.
    Asked,
    /// It was gone already.
    Gone,
    /// It is no longer ours to delete; it stays.
    NotOurs,
}

/// Which object is to be deleted.
pub(crate) struct Doomed<'a> {
    pub(crate) resource: &'a Resource,
    pub(crate) object: &'a ObjectRef,
    /// As it was seen.
    pub(crate) uid: &'a str,
    pub(crate) resource_version: &'a str,
}

/// Asks for the deletion of the very object that was seen, also when others write it meanwhile, as long as it `still` is one
/// to delete.
///
/// # Errors
/// [`Error::LostRace`]; whatever a request fails with.
pub(crate) async fn delete(
    cluster: &Cluster,
    doomed: Doomed<'_>,
    propagation: Propagation,
    guard: Guard<'_>,
    still: &(dyn Fn(&LiveObject) -> bool + Sync),
) -> Result<Deleted, Error> {
    let Doomed {
        resource,
        object,
        uid,
        resource_version,
    } = doomed;
    let mut race = Race::new(cluster, format!("delete {object}"));
    let mut resource_version = resource_version.to_owned();
    loop {
        let preconditions = DeletePreconditions {
            uid,
            resource_version: &resource_version,
        };
        match cluster
            .delete(resource, object, preconditions, propagation, guard)
            .await
        {
            Ok(true) => return Ok(Deleted::Asked),
            Ok(false) => return Ok(Deleted::Gone),
            Err(Error::Conflict { .. }) => match race.look_again(cluster, resource, object).await? {
                None => return Ok(Deleted::Gone),
                Some(now) if now.uid != uid || !still(&now) => return Ok(Deleted::NotOurs),
                Some(now) if now.is_deleting() => return Ok(Deleted::Asked),
                Some(now) => resource_version = now.resource_version,
            },
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_says_who_wrote_and_how_often() {
        let lost = LostRace {
            doing: "apply Deployment/shop/web".to_owned(),
            tries: 62,
            within: Duration::from_millis(14_900),
            writers: BTreeMap::from([("argo".to_owned(), 2), ("kube-controller-manager".to_owned(), 60)]),
        };
        assert_eq!(
            lost.to_string(),
            "apply Deployment/shop/web: somebody else wrote it in between, 62 times within 14.9 s: \
             kube-controller-manager (60), argo (2); find out why it is written all the time"
        );
    }
}
