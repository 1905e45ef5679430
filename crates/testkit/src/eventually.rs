//! Waiting for a condition, with a bound.

use std::fmt::Debug;
use std::time::Duration;

use tokio::time::Instant;

/// How long [`eventually`] waits. Long, since a busy machine is no fault of the code: what is to be fast is measured
/// by benches.
pub const BOUND: Duration = Duration::from_secs(60);

/// Pauses between two looks: short at first, for most things are done soon.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// Looks again and again until `look` is `Ok`, and gives back what it holds.
///
/// ```
/// # use evenkeel_testkit::eventually;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let mut looks = 0;
/// let seen = eventually("the third look", async || {
///     looks += 1;
///     if looks == 3 { Ok(looks) } else { Err(format!("look {looks}")) }
/// })
/// .await;
/// assert_eq!(seen, 3);
/// # }
/// ```
///
/// # Panics
/// After [`BOUND`], with `what` and what was seen last.
pub async fn eventually<T, E: Debug>(what: &str, look: impl AsyncFnMut() -> Result<T, E>) -> T {
    eventually_within(BOUND, what, look).await
}

/// As [`eventually`], with a bound of its own.
///
/// # Panics
/// After `bound`, with `what` and what was seen last.
pub async fn eventually_within<T, E: Debug>(
    bound: Duration,
    what: &str,
    mut look: impl AsyncFnMut() -> Result<T, E>,
) -> T {
    let end = Instant::now() + bound;
    let mut pause = FIRST_PAUSE;
    let mut last = None;
    loop {
        match tokio::time::timeout_at(end, look()).await {
            Ok(Ok(seen)) => return seen,
            Ok(Err(seen)) => last = Some(seen),
            Err(_) => {
                panic!("{what}: not within {bound:?}; the last look did not end; seen before: {last:?}")
            }
        }
        if Instant::now() + pause > end {
            panic!("{what}: not within {bound:?}; seen last: {last:?}");
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
