//! Bounds on what one client may do, and a count of what it did.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::applyset::record::RECORD_MAX;

/// The bounds of one client. Every call has one of these timeouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// TCP and TLS connection together.
    pub connect_timeout: Duration,
    /// A whole GET or LIST page.
    pub read_timeout: Duration,
    /// A whole POST, PUT, PATCH or DELETE. A write begins only while the caller's lease outlasts this.
    pub write_timeout: Duration,
    /// How long a write is tried that others outrun again and again; see [`LostRace`](crate::LostRace). Each try asks the
    /// lease anew.
    pub race_within: Duration,
    /// A watch that says nothing for this long, not even a bookmark, is taken for dead.
    pub watch_idle_timeout: Duration,
    /// Requests in flight at one time; watches do not count.
    pub in_flight: usize,
    /// Objects written at one time inside one phase.
    pub apply_concurrency: usize,
    /// Idle connections kept.
    pub idle_connections: usize,
    /// How long an idle connection is kept.
    pub idle_timeout: Duration,
    /// Objects per page of a LIST.
    pub page_size: usize,
    /// The largest answer that is read, in bytes.
    pub answer_max: usize,
    /// The most bytes of a component's record, packed and in base64, that one Secret holds; beyond, its objects are kept in
    /// Secrets of their own.
    pub record_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            read_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(9),
            race_within: Duration::from_secs(15),
            watch_idle_timeout: Duration::from_secs(120),
            in_flight: 8,
            apply_concurrency: 4,
            idle_connections: 2,
            idle_timeout: Duration::from_secs(30),
            page_size: 500,
            answer_max: 64 * 1024 * 1024,
            record_max: RECORD_MAX,
        }
    }
}

/// What a request does, as Kubernetes names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(usize)]
pub enum Verb {
    /// Read one object, or discovery.
    Get,
    /// Read many objects.
    List,
    /// Follow changes.
    Watch,
    /// Make one object.
    Create,
    /// Replace one object.
    Update,
    /// Change one object; server-side apply.
    Patch,
    /// Delete one object.
    Delete,
    /// Ask what a change would do, without doing it.
    DryRun,
}

impl Verb {
    /// Every verb.
    pub const ALL: [Self; 8] = [
        Self::Get,
        Self::List,
        Self::Watch,
        Self::Create,
        Self::Update,
        Self::Patch,
        Self::Delete,
        Self::DryRun,
    ];

    /// Whether it changes the cluster.
    pub fn is_write(self) -> bool {
        matches!(self, Self::Create | Self::Update | Self::Patch | Self::Delete)
    }

    /// The name Kubernetes uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DryRun => "dry-run",
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How many requests a client has sent since it was made, by verb.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCounts([u64; Verb::ALL.len()]);

impl RequestCounts {
    /// How many of `verb`.
    pub fn of(&self, verb: Verb) -> u64 {
        self.0.get(verb as usize).copied().unwrap_or_default()
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Those that could change the cluster.
    pub fn writes(&self) -> u64 {
        Verb::ALL
            .iter()
            .filter(|verb| verb.is_write())
            .map(|verb| self.of(*verb))
            .sum()
    }

    /// What was sent since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut difference = *self;
        for (count, before) in difference.0.iter_mut().zip(earlier.0) {
            *count = count.saturating_sub(before);
        }
        difference
    }
}

/// The counters behind [`RequestCounts`].
#[derive(Debug, Default)]
pub(crate) struct RequestCounter([AtomicU64; Verb::ALL.len()]);

impl RequestCounter {
    pub(crate) fn count(&self, verb: Verb) {
        if let Some(counter) = self.0.get(verb as usize) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn counts(&self) -> RequestCounts {
        let mut counts = RequestCounts::default();
        for (count, counter) in counts.0.iter_mut().zip(&self.0) {
            *count = counter.load(Ordering::Relaxed);
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_are_counted_apart() {
        let counter = RequestCounter::default();
        for verb in Verb::ALL {
            counter.count(verb);
        }
        counter.count(Verb::List);
        let counts = counter.counts();
        assert_eq!(
            (counts.total(), counts.writes(), counts.of(Verb::List)),
            (9, 4, 2)
        );
        counter.count(Verb::Patch);
        assert_eq!(counter.counts().since(&counts).total(), 1);
    }
}
