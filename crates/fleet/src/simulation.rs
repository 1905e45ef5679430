//! Deterministic simulation of queue, scheduler and bookkeeper (DESIGN §12, level 5).
//!
//! ```text
//!   schedule (from a seed)      what people ask for and what fails, when
//!        │
//!   processes                   the real scheduler, looks, workers, bookkeeper; killed, paused, cut off, with wrong clocks
//!        │            │
//!   MemoryStore     model       rows that are checked after every call │ clusters that refuse old fences
//! ```
//! One thread, virtual time, and every source of chance from the seed: the same seed gives the same schedule, call by call.
//! The rows keep invariants 4 and 5 of DESIGN §4 after every call (see the store's promises); no two attempts may write at
//! once while clocks are right; and when all faults have ended, every cluster comes to be as its owner asked, whatever is
//! broken for good elsewhere (invariant 6).

mod chance;
mod clusters;
mod goal;
mod link;
mod process;
mod schedule;
mod trace;
mod world;

use std::sync::Arc;

use schedule::Schedule;
use world::World;

/// What came of one schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The seed it was made from.
    pub seed: u64,
    /// A digest of everything that happened, in order.
    pub digest: u64,
    /// How many things happened: calls, their answers, writes at clusters, faults.
    pub steps: u64,
    /// What went wrong.
    pub fault: Option<String>,
    /// What happened, if it was to be kept.
    pub trace: Vec<String>,
}

impl Outcome {
    /// How to see it again.
    pub fn replay(&self) -> String {
        format!("cargo xtask simulate --seed {} --schedules 1 --trace", self.seed)
    }
}

/// Runs the schedule of a seed to its end, or to the first fault.
///
/// # Errors
/// [`std::io::Error`] when the runtime cannot be made.
pub fn run(seed: u64, keep_trace: bool) -> std::io::Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()?;
    let outcome = runtime.block_on(async {
        let world = Arc::new(World::new(seed, keep_trace));
        let fault = Schedule::new(Arc::clone(&world)).run().await;
        world.outcome(seed, fault)
    });
    // What the schedule has left behind, dropped as it stands.
    drop(runtime);
    Ok(outcome)
}
