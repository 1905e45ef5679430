//! Following: each kind by one watch, taken up where it stopped.

use std::collections::HashMap;
use std::convert::Infallible;
use std::time::Duration;

use evenkeel_core::GroupKind;
use futures::future::{AbortHandle, Abortable, Aborted, BoxFuture};
use futures::stream::{FuturesUnordered, StreamExt as _};
use tokio::time::{Instant, sleep};

use super::DriftWatch;
use super::state::News;
use super::table::Asked;
use crate::connection::{WatchEvent, WatchStream};
use crate::live::{LiveObject, LiveObjects};
use crate::mark::{Version, short};
use crate::{Error, ErrorClass};

/// A watch that lived so long was a good one: the next is opened at once.
const STEADY: Duration = Duration::from_secs(5);

/// How following one kind ended.
enum Ended {
    /// It is watched no longer.
    Unwanted,
    /// It cannot be watched.
    Lost(Error),
}

/// How one watch ended.
enum Closed {
    /// The server ended it, or the way to it broke.
    Open,
    /// The server no longer knows what came after the last event, or what it says cannot be read: all is listed again.
    Behind,
}

/// What follows one kind, and the handle that stops it.
type Following<'a> = FuturesUnordered<Abortable<BoxFuture<'a, (u32, Ended)>>>;

impl DriftWatch {
    /// Follows the cluster until it cannot be watched any more, and gives why. Dropping the future stops watching.
    pub async fn run(&self) -> Error {
        let mut following: Following<'_> = FuturesUnordered::new();
        let mut handles: HashMap<u32, AbortHandle> = HashMap::new();
        let judging = self.judge_doubts();
        let mut judging = std::pin::pin!(judging);
        loop {
            self.start(&mut following, &mut handles);
            let ended = tokio::select! {
                () = self.shared.renewed.notified() => continue,
                Some(ended) = following.next() => ended,
                never = &mut judging => match never {},
            };
            match ended {
                Ok((id, Ended::Unwanted)) => {
                    handles.remove(&id);
                }
                Ok((id, Ended::Lost(error))) => {
                    self.tell(self.state().is_lost(id));
                    return error;
                }
                Err(Aborted) => {}
            }
        }
    }

    /// Follows what is to be followed and is not, and stops what is not to be.
    fn start<'a>(&'a self, following: &mut Following<'a>, handles: &mut HashMap<u32, AbortHandle>) {
        let wanted: Vec<u32> = self.state().table.kinds.iter().map(|kind| kind.id).collect();
        handles.retain(|id, handle| {
            let keep = wanted.contains(id);
            if !keep {
                handle.abort();
            }
            keep
        });
        for id in wanted {
            handles.entry(id).or_insert_with(|| {
                let (handle, registration) = AbortHandle::new_pair();
                let follow: BoxFuture<'a, (u32, Ended)> =
                    Box::pin(async move { (id, self.follow(id).await) });
                following.push(Abortable::new(follow, registration));
                handle
            });
        }
    }

    /// Follows one kind, watch after watch.
    async fn follow(&self, id: u32) -> Ended {
        let mut at = String::new();
        let first = self.state().table.kind(id).map(|kind| kind.position.to_string());
        at.push_str(first.as_deref().unwrap_or_default());
        let mut failures: u32 = 0;
        let mut well_at = Instant::now();
        loop {
            let Some(asked) = self.state().asked(id) else {
                return Ended::Unwanted;
            };
            let mut opened_at = None;
            let closed = self.watch_once(id, &asked, &mut at, &mut opened_at).await;
            self.state().set_open(id, false);
            if opened_at.is_some() {
                well_at = Instant::now();
            }
            failures = match opened_at {
                Some(opened_at) if opened_at.elapsed() >= STEADY => 0,
                // Not opened, or lost at once.
                _ => failures.saturating_add(1),
            };
            let asked_pause = match closed {
                Ok(Closed::Open) => Duration::ZERO,
                Ok(Closed::Behind) => {
                    at.clear();
                    Duration::ZERO
                }
                Err(error) => {
                    // What is served may be another thing when it comes back.
                    self.distrust();
                    match error.class() {
                        ErrorClass::RateLimited(pause) => pause,
                        ErrorClass::Unreachable | ErrorClass::Transient
                            if well_at.elapsed() < self.shared.options.outage_max =>
                        {
                            tracing::debug!(%error, "a watch is opened again later");
                            Duration::ZERO
                        }
                        _ => return Ended::Lost(error),
                    }
                }
            };
            let pause = self.pause(id, failures).max(asked_pause);
            if !pause.is_zero() {
                sleep(pause).await;
            }
        }
    }

    /// Lists the kind when nothing is known of it, then reads one watch to its end.
    async fn watch_once(
        &self,
        id: u32,
        asked: &Asked,
        at: &mut String,
        opened_at: &mut Option<Instant>,
    ) -> Result<Closed, Error> {
        // Never closed, so that there always is a turn.
        let turn = self.shared.opening.acquire().await.ok();
        if at.is_empty() {
            *at = self.list_and_compare(id, asked).await?;
        } else {
            self.state().resume(id, at);
        }
        let opened = self
            .cluster()
            .watch_metadata(&asked.resource, asked.selection(), at, self.lifetime(id))
            .await;
        let mut stream = match opened {
            Ok(stream) => stream,
            Err(Error::Expired { .. }) => return Ok(Closed::Behind),
            Err(error) => return Err(error),
        };
        drop(turn);
        *opened_at = Some(Instant::now());
        self.state().set_open(id, true);
        self.read(id, &mut stream, &asked.resource.kind.group_kind(), at)
            .await
    }

    /// Reads a watch until it ends.
    async fn read(
        &self,
        id: u32,
        stream: &mut WatchStream,
        kind: &GroupKind,
        at: &mut String,
    ) -> Result<Closed, Error> {
        loop {
            let event = match stream.next().await {
                Ok(Some(event)) => event,
                Ok(None) => return Ok(Closed::Open),
                Err(Error::Expired { .. } | Error::Decode { .. }) => return Ok(Closed::Behind),
                Err(error) => return Err(error),
            };
            let (raw, gone) = match &event {
                WatchEvent::Applied(raw) => (raw, false),
                WatchEvent::Deleted(raw) => (raw, true),
                WatchEvent::Bookmark(raw) => {
                    let Ok(mark) = LiveObject::read(raw.get().as_bytes(), "watch") else {
                        return Ok(Closed::Behind);
                    };
                    let (before, now) = (Version::of(at), Version::of(&mark.resource_version));
                    // A cluster that was put back to an older state counts from there.
                    if now != before && now.is_at_most(before) {
                        return Ok(Closed::Behind);
                    }
                    *at = mark.resource_version;
                    continue;
                }
            };
            let Ok(live) = LiveObject::read(raw.get().as_bytes(), "watch") else {
                return Ok(Closed::Behind);
            };
            let news = self.state().saw(id, &live, gone, |rules| {
                self.cluster().is_known_good(rules, kind, &live)
            });
            self.tell(news);
            *at = live.resource_version;
        }
    }

    /// Lists a kind and compares it with what was found; gives the version of the list.
    async fn list_and_compare(&self, id: u32, asked: &Asked) -> Result<String, Error> {
        let listed = self
            .cluster()
            .list_live(&asked.resource, asked.selection())
            .await?;
        let kind = asked.resource.kind.group_kind();
        let objects: LiveObjects = listed
            .items
            .into_iter()
            .map(|live| (live.reference(&kind), live))
            .collect();
        let news = self.state().listed(id, &objects, |live, rules| {
            self.cluster().is_known_good(rules, &kind, live)
        });
        self.tell(news);
        Ok(listed.resource_version)
    }

    /// Wakes whoever waits for news.
    pub(super) fn tell(&self, news: News) {
        if news.alarm {
            self.shared.alarm.notify_one();
        }
        if news.doubt {
            self.shared.doubts.notify_one();
        }
    }

    /// How long the server is asked to keep a watch of this kind: a little less for each than for the one before.
    fn lifetime(&self, id: u32) -> Duration {
        let longest = self.shared.options.lifetime;
        longest - longest.mul_f64(0.25 * share(id, self.cluster().server()))
    }

    /// The pause after so many failures in a row, each kind at its own moment.
    fn pause(&self, id: u32, failures: u32) -> Duration {
        if failures == 0 {
            return Duration::ZERO;
        }
        let options = &self.shared.options;
        let doubled = options
            .pause_first
            .saturating_mul(2_u32.saturating_pow(failures - 1))
            .min(options.pause_longest);
        doubled.mul_f64(1.0 - 0.25 * share(id, self.cluster().server()))
    }
}

/// A number from 0 to 1 that is another for every kind of every cluster.
fn share(id: u32, server: &str) -> f64 {
    let mixed = short(server)
        .rotate_left(id % 64)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    f64::from((mixed >> 32) as u32) / f64::from(u32::MAX)
}

/// So that a loop without an end can be selected on.
pub(super) type Never = Infallible;
