//! The gate before another system: one that is down, or has had enough, is left alone for a while, whoever wants to call it
//! (E13). Objects of other systems go on.
//!
//! ```text
//! open ── five failures in a row, or a wish to be left alone ──▶ shut until …
//!   ▲                                                             │ time is up
//!   └────────────── the trial succeeds ──────────────── one trial ┘ (fails: shut for longer)
//! ```

mod budget;
mod headers;

use std::fmt;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use evenkeel_core::Clock;
use evenkeel_telemetry::metrics::GateMetrics;
use jiff::Timestamp;
use tracing::{info, warn};

use budget::Budget;
pub(crate) use headers::{exhausted_until, pause};

use crate::Error;

/// After how many failures in a row, of whichever calls, a system counts as down.
const FAILURES: u32 = 5;

/// For how long it is left alone then. Each trial that fails doubles it.
const FIRST_PAUSE: Duration = Duration::from_secs(10);

/// The longest that it is left alone because it fails.
const PAUSE_MAX: Duration = Duration::from_secs(300);

/// How much later than possible others come back at most: not all at once.
const SPREAD_MAX: Duration = Duration::from_secs(60);

/// How long others wait while one tries.
const TRIAL_PAUSE: Duration = Duration::from_secs(10);

/// What is the same for all gates.
#[derive(Clone)]
pub(crate) struct GateTerms {
    pub(crate) clock: Arc<dyn Clock>,
    /// How many calls a system gets in a second at most.
    pub(crate) calls_per_second: Option<NonZeroU32>,
    /// Set once, if anybody counts.
    pub(crate) metrics: Arc<OnceLock<GateMetrics>>,
}

/// What all share who call one system with one set of credentials. Others keep their own: a wrong certificate authority, or a token
/// that has had too many calls, is no reason to leave a host alone for everybody.
#[derive(Clone)]
pub(crate) struct Gate(Arc<Inner>);

struct Inner {
    host: String,
    /// The Secret by which it is called; empty where there is only one way.
    secret: String,
    terms: GateTerms,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    /// Calls that failed in a row.
    failures: u32,
    /// How long it is left alone when it fails next.
    pause: Duration,
    budget: Option<Budget>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    Shut {
        until: Timestamp,
        why: String,
    },
    /// One call finds out.
    Trial {
        why: String,
    },
}

/// The right to make one call; told how it ended. One that is dropped untold says nothing of the system.
#[derive(Debug)]
#[must_use]
pub(crate) struct Passage {
    gate: Gate,
    is_trial: bool,
    /// For how long to wait before the call.
    pub(crate) wait: Duration,
}

/// How a call ended, for the gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sign {
    /// It answered, whatever.
    Alive,
    /// It answered, and wants no more calls before then.
    Sated(Timestamp),
    /// It cannot be reached, or cannot serve.
    Failing(&'static str),
}

impl Gate {
    /// A gate before `host`, a name with its port.
    pub(crate) fn new(host: String, secret: String, terms: &GateTerms) -> Self {
        let now = terms.clock.now();
        let gate = Self(Arc::new(Inner {
            host,
            secret,
            terms: terms.clone(),
            state: Mutex::new(State {
                phase: Phase::Open,
                failures: 0,
                pause: FIRST_PAUSE,
                budget: terms.calls_per_second.map(|rate| Budget::new(rate, now)),
            }),
        }));
        gate.show(&Phase::Open);
        gate
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.0.terms.clock.now()
    }

    /// Lets a call through, or says when to come back.
    pub(crate) fn enter(&self, system: &'static str, doing: &str) -> Result<Passage, Error> {
        let now = self.now();
        let mut state = self.state();
        let (is_trial, refused) = match &state.phase {
            Phase::Open => (false, None),
            Phase::Shut { until, why } if *until > now => {
                let left = Duration::try_from(until.duration_since(now)).unwrap_or_default();
                (false, Some((left, why.clone())))
            }
            Phase::Shut { .. } => (true, None),
            Phase::Trial { why } => (false, Some((TRIAL_PAUSE, why.clone()))),
        };
        if let Some((left, why)) = refused {
            drop(state);
            if let Some(metrics) = self.0.terms.metrics.get() {
                metrics.held_back(&self.0.host, &self.0.secret);
            }
            return Err(Error::HeldBack {
                system,
                doing: doing.to_owned(),
                host: self.0.host.clone(),
                why,
                after: left + left.min(SPREAD_MAX).mul_f64(rand::random::<f64>()),
            });
        }
        if is_trial && let Phase::Shut { why, .. } = state.phase.clone() {
            state.phase = Phase::Trial { why };
            self.show(&state.phase);
        }
        let wait = state
            .budget
            .as_mut()
            .map_or(Duration::ZERO, |budget| budget.take(now));
        Ok(Passage {
            gate: self.clone(),
            is_trial,
            wait,
        })
    }

    fn settle(&self, sign: &Sign, is_trial: bool) {
        let now = self.now();
        let mut state = self.state();
        let was = state.phase.clone();
        match sign {
            Sign::Alive => {
                state.failures = 0;
                // What began before it was shut says nothing of how it is since.
                if is_trial {
                    state.phase = Phase::Open;
                    state.pause = FIRST_PAUSE;
                }
            }
            Sign::Sated(until) => {
                state.failures = 0;
                let until = match &state.phase {
                    Phase::Shut { until: known, .. } => *until.max(known),
                    Phase::Open | Phase::Trial { .. } => *until,
                };
                state.phase = Phase::Shut {
                    until,
                    why: "it has had too many calls and asks for a pause".to_owned(),
                };
            }
            Sign::Failing(how) => {
                state.failures = state.failures.saturating_add(1);
                let is_down = is_trial || state.phase == Phase::Open && state.failures >= FAILURES;
                if is_down {
                    state.phase = Phase::Shut {
                        until: now.checked_add(state.pause).unwrap_or(Timestamp::MAX),
                        why: format!(
                            "{FAILURES} calls or more failed in a row, and the last one because {how}"
                        ),
                    };
                    state.pause = (state.pause * 2).min(PAUSE_MAX);
                }
            }
        }
        let phase = state.phase.clone();
        drop(state);
        self.show(&phase);
        match (&was, &phase) {
            (Phase::Open, Phase::Shut { until, why }) => {
                warn!(host = self.0.host, secret = self.0.secret, %until, why, "a host is left alone for a while");
            }
            (Phase::Trial { .. }, Phase::Open) => {
                info!(host = self.0.host, secret = self.0.secret, "a host answers again")
            }
            _ => {}
        }
    }

    /// The trial ended without a word: the next caller is the next trial.
    fn give_up_trial(&self) {
        let mut state = self.state();
        if let Phase::Trial { why } = state.phase.clone() {
            state.phase = Phase::Shut {
                until: self.now(),
                why,
            };
        }
    }

    fn show(&self, phase: &Phase) {
        if let Some(metrics) = self.0.terms.metrics.get() {
            metrics.shown(&self.0.host, &self.0.secret, *phase == Phase::Open);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Passage {
    /// Tells how the call ended.
    pub(crate) fn ended(mut self, sign: &Sign) {
        self.gate.settle(sign, std::mem::take(&mut self.is_trial));
    }
}

impl Drop for Passage {
    fn drop(&mut self) {
        if self.is_trial {
            self.gate.give_up_trial();
        }
    }
}

impl fmt::Debug for GateTerms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GateTerms")
            .field("calls_per_second", &self.calls_per_second)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate")
            .field("host", &self.0.host)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_core::ManualClock;
    use evenkeel_steps::FailureClass;
    use jiff::SignedDuration;

    use super::*;

    const DOWN: Sign = Sign::Failing("it cannot be reached");

    fn gate() -> (Gate, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::new(Timestamp::UNIX_EPOCH));
        let terms = GateTerms {
            clock: Arc::clone(&clock) as _,
            calls_per_second: None,
            metrics: Arc::default(),
        };
        let gate = Gate::new("git.example.org".to_owned(), "ns/git".to_owned(), &terms);
        (gate, clock)
    }

    fn enter(gate: &Gate) -> Result<Passage, Error> {
        gate.enter("GitLab", "look for the repository a/b")
    }

    /// How long to stay away, in seconds; none if a call may be made.
    fn held_back(gate: &Gate) -> Option<f64> {
        match enter(gate) {
            Ok(_) => None,
            Err(Error::HeldBack { after, .. }) => Some(after.as_secs_f64()),
            Err(error) => panic!("{error}"),
        }
    }

    fn fail(gate: &Gate, times: u32) {
        for _ in 0..times {
            enter(gate).unwrap().ended(&DOWN);
        }
    }

    #[test]
    fn failures_that_are_not_in_a_row_shut_nothing() {
        let (gate, _) = gate();
        for _ in 0..10 {
            fail(&gate, FAILURES - 1);
            enter(&gate).unwrap().ended(&Sign::Alive);
        }
        assert_eq!(held_back(&gate), None);
    }

    #[test]
    fn who_is_down_is_tried_by_one_and_for_longer_and_longer() {
        let (gate, clock) = gate();
        fail(&gate, FAILURES);
        for pause in [10, 20, 40, 80, 160, 300, 300] {
            let left = held_back(&gate).unwrap();
            let most = pause as f64 + f64::min(pause as f64, 60.0);
            assert!((pause as f64..=most).contains(&left), "{left} of {pause}");
            clock.advance(SignedDuration::from_millis(pause * 1000 - 1));
            assert!(held_back(&gate).is_some(), "not a moment before");
            clock.advance(SignedDuration::from_millis(1));
            let trial = enter(&gate).unwrap();
            assert!(held_back(&gate).is_some(), "one at a time");
            trial.ended(&DOWN);
        }
        clock.advance(SignedDuration::from_secs(300));
        enter(&gate).unwrap().ended(&Sign::Alive);
        assert_eq!(held_back(&gate), None);
        // It begins anew.
        fail(&gate, FAILURES);
        assert!(held_back(&gate).unwrap() <= 20.0);
    }

    #[test]
    fn a_wish_to_be_left_alone_is_kept_to_the_moment_and_counts_as_life() {
        let (gate, clock) = gate();
        fail(&gate, FAILURES - 1);
        let until = |seconds| Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds);
        let (one, other) = (enter(&gate).unwrap(), enter(&gate).unwrap());
        one.ended(&Sign::Sated(until(90)));
        // The later wish wins, and a success that began before changes nothing.
        other.ended(&Sign::Sated(until(30)));
        assert!(held_back(&gate).unwrap() >= 90.0);
        clock.advance(SignedDuration::from_secs(89));
        let error = enter(&gate).unwrap_err();
        assert!(matches!(error.class(), FailureClass::RateLimited { .. }));
        assert!(
            error
                .to_string()
                .contains("GitLab at git.example.org is left alone for now"),
            "{error}"
        );
        clock.advance(SignedDuration::from_secs(1));
        enter(&gate).unwrap().ended(&Sign::Alive);
        assert_eq!(held_back(&gate), None);
        fail(&gate, FAILURES - 1);
        assert_eq!(held_back(&gate), None, "the failures before are forgotten");
    }

    #[test]
    fn calls_that_began_before_neither_open_nor_prolong() {
        let (gate, clock) = gate();
        let early: Vec<Passage> = (0..10).map(|_| enter(&gate).unwrap()).collect();
        fail(&gate, FAILURES);
        let mut early = early.into_iter();
        early.next().unwrap().ended(&Sign::Alive);
        assert!(held_back(&gate).is_some());
        for passage in early {
            passage.ended(&DOWN);
        }
        clock.advance(SignedDuration::from_secs(10));
        assert_eq!(held_back(&gate), None);
    }

    #[test]
    fn a_trial_that_is_dropped_bars_nobody() {
        let (gate, clock) = gate();
        fail(&gate, FAILURES);
        clock.advance(SignedDuration::from_secs(10));
        drop(enter(&gate).unwrap());
        let trial = enter(&gate).unwrap();
        assert!(held_back(&gate).is_some());
        trial.ended(&Sign::Alive);
        assert_eq!(held_back(&gate), None);
    }
}
