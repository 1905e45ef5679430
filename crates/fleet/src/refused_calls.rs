//! Calls that would have changed something and were refused: written to the audit log, as what was done is.
//!
//! Whoever may call may also be refused as often as he likes, so their number is bounded. What is left out is counted, and the
//! next entry tells how much it was.

use std::sync::{Mutex, PoisonError};

use evenkeel_inventory::AuditAction;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::Fleet;

/// The most refused calls that one process writes down in each [`PERIOD`].
const WRITTEN_MAX: u32 = 60;
const PERIOD: SignedDuration = SignedDuration::from_secs(60);

/// How many were written down of late.
#[derive(Debug, Default)]
pub(crate) struct RefusedCalls(Mutex<Period>);

#[derive(Debug, Default)]
struct Period {
    began: Option<Timestamp>,
    written: u32,
    left_out: u64,
}

impl RefusedCalls {
    /// Whether one more is to be written down; with it, how many were left out since the last one.
    fn admit(&self, now: Timestamp) -> Option<u64> {
        let mut period = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let in_it = |began: Timestamp| began <= now && now.duration_since(began) < PERIOD;
        if !period.began.is_some_and(in_it) {
            period.began = Some(now);
            period.written = 0;
        }
        if period.written == WRITTEN_MAX {
            period.left_out = period.left_out.saturating_add(1);
            return None;
        }
        period.written += 1;
        Some(std::mem::take(&mut period.left_out))
    }
}

impl Fleet {
    /// Writes to the audit log that a call was refused: `call` is its method and path, `target` what it was about, `code` the
    /// stable code of the answer. The answer does not depend on it: what cannot be written is logged.
    pub async fn note_refused_call(&self, call: String, target: String, code: &str) {
        let Some(left_out) = self.inner().refused_calls.admit(self.clock().now()) else {
            tracing::warn!(%call, code, "too many calls are refused for each to be in the audit log");
            return;
        };
        let detail = match left_out {
            0 => json!({"call": call, "code": code}),
            left_out => json!({"call": call, "code": code, "leftOut": left_out}),
        };
        let action = AuditAction::RefuseCall;
        if let Err(error) = self.store().note_done(action, &target, detail).await {
            tracing::error!(%call, code, %error, "a refused call is not in the audit log");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::constant(1_767_225_600, 0);

    #[test]
    fn their_number_is_bounded_and_what_is_left_out_is_counted() {
        let calls = RefusedCalls::default();
        for _ in 0..WRITTEN_MAX {
            assert_eq!(calls.admit(START), Some(0));
        }
        for _ in 0..3 {
            assert_eq!(calls.admit(START + SignedDuration::from_secs(59)), None);
        }
        assert_eq!(calls.admit(START + PERIOD), Some(3));
        assert_eq!(calls.admit(START + PERIOD), Some(0));
        // A clock that is set back does not silence it.
        for _ in 0..WRITTEN_MAX {
            calls.admit(START + PERIOD);
        }
        assert_eq!(calls.admit(START), Some(2));
    }
}
