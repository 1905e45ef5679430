//! Who watches a pass: spans, metrics, live timelines.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::report::{Conclusion, Ending, Skip};
use crate::{Mode, Name};

/// Hears what happens in a pass, as it happens. Every method has an empty default. Calls are quick and never
/// block; a panic in one is swallowed, as watching must not break what is watched.
pub trait Observer: Send + Sync {
    /// A pass begins.
    fn pass_started(&self, pipeline: &Name, mode: Mode) {
        let _ = (pipeline, mode);
    }

    /// A span around the step. The engine polls the step inside it.
    fn step_span(&self, pipeline: &Name, step: &Name) -> Option<Box<dyn StepSpan>> {
        let _ = (pipeline, step);
        None
    }

    /// A step starts.
    fn step_started(&self, pipeline: &Name, step: &Name) {
        let _ = (pipeline, step);
    }

    /// A step reports a line.
    fn step_progress(&self, pipeline: &Name, step: &Name, line: &str) {
        let _ = (pipeline, step, line);
    }

    /// A step that started has ended.
    fn step_finished(&self, pipeline: &Name, step: &Name, ending: &Ending, duration: Duration) {
        let _ = (pipeline, step, ending, duration);
    }

    /// A step does not run.
    fn step_skipped(&self, pipeline: &Name, step: &Name, skip: &Skip) {
        let _ = (pipeline, step, skip);
    }

    /// A pass is over, publish included.
    fn pass_finished(&self, pipeline: &Name, conclusion: Conclusion, duration: Duration) {
        let _ = (pipeline, conclusion, duration);
    }
}

/// A span that a step is polled in.
pub trait StepSpan: Send + Sync {
    /// Enters the span, calls `poll` once, leaves the span.
    fn within(&self, poll: &mut dyn FnMut());
}

/// Watches nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observer for Unobserved {}

/// Both watch.
impl<A: Observer, B: Observer> Observer for (A, B) {
    fn pass_started(&self, pipeline: &Name, mode: Mode) {
        self.0.pass_started(pipeline, mode);
        self.1.pass_started(pipeline, mode);
    }

    fn step_span(&self, pipeline: &Name, step: &Name) -> Option<Box<dyn StepSpan>> {
        match (self.0.step_span(pipeline, step), self.1.step_span(pipeline, step)) {
            (Some(outer), Some(inner)) => Some(Box::new(Nested(outer, inner))),
            (one, other) => one.or(other),
        }
    }

    fn step_started(&self, pipeline: &Name, step: &Name) {
        self.0.step_started(pipeline, step);
        self.1.step_started(pipeline, step);
    }

    fn step_progress(&self, pipeline: &Name, step: &Name, line: &str) {
        self.0.step_progress(pipeline, step, line);
        self.1.step_progress(pipeline, step, line);
    }

    fn step_finished(&self, pipeline: &Name, step: &Name, ending: &Ending, duration: Duration) {
        self.0.step_finished(pipeline, step, ending, duration);
        self.1.step_finished(pipeline, step, ending, duration);
    }

    fn step_skipped(&self, pipeline: &Name, step: &Name, skip: &Skip) {
        self.0.step_skipped(pipeline, step, skip);
        self.1.step_skipped(pipeline, step, skip);
    }

    fn pass_finished(&self, pipeline: &Name, conclusion: Conclusion, duration: Duration) {
        self.0.pass_finished(pipeline, conclusion, duration);
        self.1.pass_finished(pipeline, conclusion, duration);
    }
}

struct Nested(Box<dyn StepSpan>, Box<dyn StepSpan>);

impl StepSpan for Nested {
    fn within(&self, poll: &mut dyn FnMut()) {
        self.0.within(&mut || self.1.within(poll));
    }
}

/// Calls an observer and outlives its panics.
#[derive(Clone)]
pub(crate) struct Announcer(pub(crate) Arc<dyn Observer>);

impl Announcer {
    pub(crate) fn tell<R: Default>(&self, call: impl FnOnce(&dyn Observer) -> R) -> R {
        catch_unwind(AssertUnwindSafe(|| call(&*self.0))).unwrap_or_default()
    }
}

impl fmt::Debug for Announcer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Announcer")
    }
}
