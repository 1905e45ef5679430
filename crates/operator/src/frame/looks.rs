//! What looks at other systems found, kept from pass to pass in the status: a pass that is woken by an event does not ask a Git host
//! or Vault again for what it saw a moment ago (E10).
//!
//! Only a look that found all as it is to be is remembered, and only when the whole pass found nothing to do. So whatever a pass
//! changed is looked at once more by the next one, and a pass that fails remembers nothing.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use evenkeel_core::Digest;
use evenkeel_steps::{Conclusion, Freshness, Memo, Report};
use jiff::{RoundMode, Timestamp, TimestampRound, Unit};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::resources::Look;

/// The share of an interval for which a look counts: the pass that is due after the interval looks anew.
const COUNTS: f64 = 0.9;

/// By which share of that it may count shorter.
const SPREAD: f64 = 0.1;

/// The looks of one object, for one pass.
#[derive(Debug)]
pub(crate) struct Looks {
    freshness: Freshness,
    known: BTreeMap<String, Look>,
    kept: Mutex<BTreeMap<String, Look>>,
}

/// All that a look depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Input(String);

impl Input {
    /// Of anything that JSON can tell. Values of Secrets do not belong here, but the versions of those Secrets.
    pub(crate) fn of(input: &impl Serialize) -> Self {
        Self(Digest::of(serde_json::to_vec(input).unwrap_or_default()).to_string())
    }
}

impl Looks {
    /// Those that the status of an object has, of a kind that is looked at once in an `interval`; none unless it is to remember.
    pub(crate) fn new(known: Option<&BTreeMap<String, Look>>, interval: Duration, remember: bool) -> Self {
        let interval = if remember { interval } else { Duration::ZERO };
        Self {
            freshness: Freshness {
                ttl: interval.mul_f64(COUNTS),
                spread: SPREAD,
            },
            known: known.cloned().unwrap_or_default(),
            kept: Mutex::default(),
        }
    }

    /// What was found by the look of that name, if it still counts.
    pub(crate) fn found<T: DeserializeOwned>(&self, name: &str, input: &Input, now: Timestamp) -> Option<T> {
        let look = self.known.get(name)?;
        let memo = Memo {
            input: look.input.clone(),
            seen_at: look.at,
            value: look.found.as_deref().unwrap_or("null"),
        };
        let found = memo.fresh(&input.0, self.freshness, now)?;
        let value = serde_json::from_str(found).ok()?;
        self.kept().insert(name.to_owned(), look.clone());
        Some(value)
    }

    /// Notes that a look found all as it is to be, and what.
    pub(crate) fn saw(&self, name: &str, input: Input, now: Timestamp, found: &impl Serialize) {
        if self.freshness.ttl.is_zero() {
            return;
        }
        let found = serde_json::to_string(found).ok();
        // Never up: what was seen in the future does not count.
        let second = TimestampRound::new()
            .smallest(Unit::Second)
            .mode(RoundMode::Trunc);
        let look = Look {
            input: input.0,
            at: now.round(second).unwrap_or(now),
            found: found.filter(|found| found != "null"),
        };
        self.kept().insert(name.to_owned(), look);
    }

    /// What is remembered after a pass.
    pub(crate) fn after<S>(&self, report: &Report<S>) -> BTreeMap<String, Look> {
        match report.conclusion() {
            Conclusion::Unchanged => self.kept().clone(),
            _ => BTreeMap::new(),
        }
    }

    fn kept(&self) -> MutexGuard<'_, BTreeMap<String, Look>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
