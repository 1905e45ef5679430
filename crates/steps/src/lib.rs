//! The step engine: checked graphs of named steps.
//!
//! Component operations and custom-resource passes are the same thing: look at the world, decide which of some
//! small actions are needed, do them in the right order, say truthfully what came of it, and come back at the
//! right time. This crate is that thing and nothing else. It knows nothing of Kubernetes or fleets and does no
//! I/O; time, cancellation and observation come in through [`Runtime`], [`Cancel`] and [`Observer`].
//!
//! ```text
//!             ┌────────┐   ┌───────┐   ┌────────┐   ┌─────────────────────┐   ┌─────────┐
//!  one pass:  │ gather │ → │ guard │ → │ select │ → │ run                 │ → │ publish │
//!             └────────┘   └───────┘   └────────┘   │  observe→plan→act   │   └─────────┘
//!              snapshot     stop or     predicates  │  per step, in order │    always
//!                           restrict                └─────────────────────┘
//! ```
//!
//! * A [`Step`] declares its name, the typed [`Slot`]s it needs and provides, optional `after` and `before`, a
//!   weight for ties, the named [`Predicate`] that selects it, and a timeout. [`step`] makes one from a closure.
//! * A [`Pipeline`] is a graph of steps, checked when it is built: every mistake is reported, cycles with the way
//!   round. One worker runs it in topological order, ties by (weight, name); more workers only start earlier.
//! * An [`Outcome`] cannot be dropped, a [`Failure`] has a class that decides when the next pass is due, and the
//!   earliest wish wins ([`Report::requeue`]). A failed step blocks its descendants and nothing else. Every step
//!   that does not run says why ([`Skip`]).
//! * [`Pass::publish`] always runs, also after failures, timeouts, panics, and cancellation.
//! * In a [dry run](Mode::DryRun) steps stop after their plan. [`Guard::forbid`] keeps a live pass from changes with
//!   certain verbs.
//! * [`Pipeline::teardown`] is the way back, in reverse order. [`Bundle`]s are shared by many pipelines, a [`Hook`]
//!   runs around every step, [`once`] makes a call that must not be made twice, [`Memo`] spares a look.
//! * A [`Permission`] is something that a step asks of what is outside. It declares them, and [`ask`] refuses the others.
//! * [`Report::conditions`] says how it stands, for people.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//! use evenkeel_steps::{
//!     Change, Conclusion, Decision, Failure, Guard, Mode, Outcome, Pass, PassOptions, Pipeline, Predicate, Report,
//!     RuntimeFns, Slot, step,
//! };
//!
//! // What one pass looks at.
//! struct Garden { dry: bool, frost: bool, litres: u32 }
//!
//! // What one step hands to another.
//! struct Can { litres: u32 }
//! const CAN: Slot<Can> = Slot::new("can");
//!
//! let dry = Predicate::new("dry", |garden: &Garden| garden.dry);
//! let frost = Predicate::new("frost", |garden: &Garden| garden.frost);
//!
//! let pipeline = Pipeline::builder("garden")
//!     .step(step("water").needs(CAN).when(dry.clone()).decide(|_, can| async move {
//!         if can.litres == 0 {
//!             return Err(Failure::invalid("the can is empty: put a bigger one out"));
//!         }
//!         let plan = vec![Change::new("water", "roses").detail(format!("{} l", can.litres))];
//!         Ok(Decision::act(plan, async move { Ok(Outcome::changed("roses watered")) }))
//!     }))
//!     .step(step("fill").provides(CAN).when(dry & !frost).run(|cx, ()| async move {
//!         Ok(Outcome::Done(Can { litres: cx.state().litres }))
//!     }))
//!     .build()?;
//!
//! // The frame around the steps.
//! struct Evening(Arc<Garden>);
//! impl Pass for Evening {
//!     type State = Garden;
//!     async fn gather(&self) -> Result<Arc<Garden>, Failure> {
//!         Ok(Arc::clone(&self.0))
//!     }
//!     async fn publish(&self, report: &Report<Garden>) -> Result<(), Failure> {
//!         println!("{report}");
//!         Ok(())
//!     }
//! }
//!
//! # let clock = || jiff::Timestamp::UNIX_EPOCH;
//! # let elapsed = || Duration::ZERO;
//! # fn block_on<F: Future>(future: F) -> F::Output {
//! #     let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
//! #     match std::pin::pin!(future).poll(&mut cx) {
//! #         std::task::Poll::Ready(output) => output,
//! #         std::task::Poll::Pending => unreachable!("these steps never wait"),
//! #     }
//! # }
//! let runtime = Arc::new(RuntimeFns::new(clock, elapsed, |_| Box::pin(std::future::pending())));
//! let options = PassOptions::new(runtime);
//!
//! let evening = Evening(Arc::new(Garden { dry: true, frost: false, litres: 5 }));
//! let plan = block_on(pipeline.run(&evening, options.clone().mode(Mode::DryRun)));
//! assert_eq!(plan.conclusion(), Conclusion::Planned);
//! assert_eq!(plan.changes().next().unwrap().1.to_string(), "water roses: 5 l");
//!
//! let report = block_on(pipeline.run(&evening, options.clone()));
//! assert_eq!(report.to_string(), "\
//! garden: changed
//!   fill  done
//!   water  changed: roses watered
//!     water roses: 5 l
//! ");
//!
//! // In a frost nobody fills the can, so watering is skipped, and says why.
//! let evening = Evening(Arc::new(Garden { dry: true, frost: true, litres: 5 }));
//! let report = block_on(pipeline.run(&evening, options));
//! assert_eq!(report.to_string(), "\
//! garden: unchanged
//!   fill  skipped: only when dry & !frost, but frost is true
//!   water  skipped: no can: fill was skipped: only when dry & !frost, but frost is true
//! ");
//! # Ok::<(), evenkeel_steps::Error>(())
//! ```

mod bundle;
mod condition;
mod context;
mod describe;
mod error;
mod execute;
mod graph;
mod guarded;
mod hook;
mod intent;
mod memo;
mod name;
mod observer;
mod outcome;
mod pass;
mod permission;
mod pipeline;
mod predicate;
mod report;
mod retry;
mod run;
mod runtime;
mod schedule;
mod slot;
mod step;
mod teardown;
mod trace;

pub use bundle::Bundle;
pub use condition::{Condition, ConditionReason, TOLERATED_ATTEMPTS, Verdict};
pub use context::{Context, Due, MAX_PROGRESS_LINE_BYTES, MAX_PROGRESS_LINES, Progress, ProgressLine};
pub use describe::Description;
pub use error::{Error, Problem};
pub use hook::{Hook, ON_ERROR_TIMEOUT};
pub use intent::{Creation, Existence, Intent, Intents, Once, Record, once};
pub use memo::{Freshness, Memo};
pub use name::Name;
pub use observer::{Observer, StepSpan, Unobserved};
pub use outcome::{Change, Decision, Delay, Failure, FailureClass, Outcome};
pub use pass::{
    Budget, DEFAULT_CANCEL_GRACE, DEFAULT_GATHER_TIMEOUT, DEFAULT_PUBLISH_TIMEOUT, Guard, Mode, Pass,
    PassOptions, Restriction, RestrictionKind,
};
pub use permission::{Permission, ask, only_reading};
pub use pipeline::{Pipeline, PipelineBuilder};
pub use predicate::Predicate;
pub use report::{Conclusion, Ending, Entry, Interruption, Phase, Report, Requeue, Skip, Trouble};
pub use retry::{Backoff, RetryPolicy};
pub use runtime::{Cancel, CancelFns, Never, Runtime, RuntimeFns};
pub use slot::{Needs, OptionalSlot, Provides, Slot, SlotId, SlotNeed, Values};
pub use step::{ClosureStep, DEFAULT_STEP_TIMEOUT, Effect, Plan, Spec, Step, step};
pub use trace::Spans;
