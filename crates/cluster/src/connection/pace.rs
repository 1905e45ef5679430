//! How many requests one cluster is sent at a time: more while it answers quickly, fewer when it says that it is busy.
//!
//! Additive increase, multiplicative decrease, as TCP does it. A server that names a time to wait is left alone for it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// The fewest requests at a time.
const LEAST: f64 = 1.0;
/// How many times the number that it starts with the number may grow to.
const GROWTH_MAX: f64 = 4.0;
/// What is left of the number when the server is busy or does not answer.
const BUSY_FACTOR: f64 = 0.5;
/// What is left of the number when an answer was slow.
const SLOW_FACTOR: f64 = 0.9;
/// An answer is slow when it took so many times the fastest one…
const SLOW_TIMES: u32 = 8;
/// …and at least this long.
const SLOW_LEAST: Duration = Duration::from_secs(1);
/// Between two decreases: requests that were under way at the first tell nothing new.
const DECREASE_INTERVAL: Duration = Duration::from_secs(1);
/// The longest time that a request waits because the server asked for it; beyond, its caller is told.
const HELD_MAX: Duration = Duration::from_secs(5);

/// What became of a request, as far as its pace goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// It was answered.
    Answered,
    /// The server asked to be left alone.
    Busy(Duration),
    /// No answer came.
    Lost,
}

/// The pace of one cluster.
#[derive(Debug)]
pub(super) struct Pace {
    state: Mutex<State>,
    freed: Notify,
    most: f64,
}

#[derive(Debug)]
struct State {
    /// The number of requests at a time; whole ones count.
    limit: f64,
    in_flight: usize,
    fastest: Option<Duration>,
    lowered_at: Option<Instant>,
    held_until: Option<Instant>,
}

/// The right to send one request, given back when dropped.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    pace: &'a Pace,
    started: Instant,
}

impl Pace {
    /// Begins with `start` requests at a time.
    pub(super) fn new(start: usize) -> Self {
        let start = f64::from(u32::try_from(start.max(1)).unwrap_or(u32::MAX));
        Self {
            state: Mutex::new(State {
                limit: start,
                in_flight: 0,
                fastest: None,
                lowered_at: None,
                held_until: None,
            }),
            freed: Notify::new(),
            most: start * GROWTH_MAX,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a turn; how long the server still asks to be left alone, when that is too long to wait for here.
    pub(super) async fn turn(&self) -> Result<Turn<'_>, Duration> {
        loop {
            let mut freed = std::pin::pin!(self.freed.notified());
            freed.as_mut().enable();
            let now = Instant::now();
            let held = {
                let mut state = self.state();
                let held = state.held_until.filter(|until| *until > now);
                if held.is_none() && (state.in_flight as f64) < state.limit.floor().max(LEAST) {
                    state.in_flight += 1;
                    return Ok(Turn {
                        pace: self,
                        started: now,
                    });
                }
                held
            };
            match held {
                Some(until) if until - now > HELD_MAX => return Err(until - now),
                Some(until) => sleep_until(until).await,
                None => freed.await,
            }
        }
    }

    /// How many requests may be sent at a time now.
    #[cfg(test)]
    fn limit(&self) -> usize {
        self.state().limit.floor() as usize
    }
}

impl Turn<'_> {
    /// Notes what became of the request.
    pub(super) fn settle(self, seen: Seen) {
        let now = Instant::now();
        let took = now - self.started;
        let mut state = self.pace.state();
        match seen {
            Seen::Answered => {
                let fastest = state.fastest.map_or(took, |fastest| fastest.min(took));
                // What was fast once need not be for ever: the bound creeps up.
                state.fastest = Some(fastest + fastest / 256);
                if took > SLOW_LEAST && took > fastest * SLOW_TIMES {
                    state.lower(SLOW_FACTOR, now);
                } else {
                    let before = state.limit.floor();
                    state.limit = (state.limit + 1.0 / state.limit).min(self.pace.most);
                    if state.limit.floor() > before {
                        self.pace.freed.notify_one();
                    }
                }
            }
            Seen::Busy(pause) => {
                state.lower(BUSY_FACTOR, now);
                let until = now + pause;
                state.held_until = Some(state.held_until.map_or(until, |held| held.max(until)));
            }
            Seen::Lost => state.lower(BUSY_FACTOR, now),
        }
    }
}

impl State {
    fn lower(&mut self, factor: f64, now: Instant) {
        if self.lowered_at.is_none_or(|at| now - at >= DECREASE_INTERVAL) {
            self.limit = (self.limit * factor).max(LEAST);
            self.lowered_at = Some(now);
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.pace.state();
        state.in_flight = state.in_flight.saturating_sub(1);
        drop(state);
        self.pace.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_grows_while_answers_come_and_halves_when_the_server_is_busy() {
        let pace = Pace::new(4);
        for _ in 0..200 {
            pace.turn().await.expect("a turn").settle(Seen::Answered);
        }
        assert_eq!(pace.limit(), 16, "never beyond its bound");
        let turns = [pace.turn().await, pace.turn().await];
        for turn in turns {
            turn.expect("a turn").settle(Seen::Busy(Duration::from_secs(2)));
        }
        assert_eq!(pace.limit(), 8, "two that were under way at once count once");
        let started = Instant::now();
        pace.turn().await.expect("a turn").settle(Seen::Lost);
        assert_eq!(started.elapsed(), Duration::from_secs(2), "it is left alone");
        assert_eq!(pace.limit(), 4);
        pace.turn()
            .await
            .expect("a turn")
            .settle(Seen::Busy(Duration::from_secs(60)));
        let left = pace.turn().await.expect_err("too long to wait");
        assert_eq!(left, Duration::from_secs(60));
    }

    #[tokio::test(start_paused = true)]
    async fn slow_answers_lower_it() {
        let pace = Pace::new(10);
        pace.turn().await.expect("a turn").settle(Seen::Answered);
        let turn = pace.turn().await.expect("a turn");
        advance(Duration::from_secs(3)).await;
        turn.settle(Seen::Answered);
        assert_eq!(pace.limit(), 9);
    }

    #[tokio::test(start_paused = true)]
    async fn turns_are_given_back_also_when_a_request_is_left() {
        let pace = Pace::new(1);
        let first = pace.turn().await.expect("a turn");
        let waiting = pace.turn();
        let mut waiting = std::pin::pin!(waiting);
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(first);
        assert!(waiting.now_or_never().is_some());
        for _ in 0..3 {
            let turn = pace.turn().now_or_never().expect("free").expect("a turn");
            assert!(pace.turn().now_or_never().is_none(), "cancelled while it waited");
            drop(turn);
        }
    }
}
