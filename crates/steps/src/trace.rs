//! The observer that speaks `tracing`.

use std::time::Duration;

use tracing::{Level, Span, debug, info, span, warn};

use crate::report::{Conclusion, Ending, Skip};
use crate::{FailureClass, Mode, Name, Observer, StepSpan};

/// Puts each step into a span `step` with the fields `pipeline` and `step`, below the span that is current where
/// the pass is started, and logs its end: changes at info, failures at warn, all else at debug.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spans;

struct TracingSpan(Span);

impl StepSpan for TracingSpan {
    fn within(&self, poll: &mut dyn FnMut()) {
        self.0.in_scope(poll);
    }
}

impl Observer for Spans {
    fn pass_started(&self, pipeline: &Name, mode: Mode) {
        debug!(%pipeline, ?mode, "pass started");
    }

    fn step_span(&self, pipeline: &Name, step: &Name) -> Option<Box<dyn StepSpan>> {
        let span = span!(Level::INFO, "step", %pipeline, %step);
        if span.is_disabled() {
            None
        } else {
            Some(Box::new(TracingSpan(span)))
        }
    }

    fn step_started(&self, pipeline: &Name, step: &Name) {
        debug!(%pipeline, %step, "step started");
    }

    fn step_progress(&self, pipeline: &Name, step: &Name, line: &str) {
        debug!(%pipeline, %step, "{line}");
    }

    fn step_finished(&self, pipeline: &Name, step: &Name, ending: &Ending, duration: Duration) {
        let outcome = ending.label();
        let seconds = duration.as_secs_f64();
        match ending {
            // A conflict is quiet: somebody else was faster, and the retry is at once.
            Ending::Failed(failure) if failure.class() != FailureClass::Conflict => {
                let mut text = failure.to_string();
                let mut source = std::error::Error::source(failure);
                while let Some(cause) = source {
                    let told = cause.to_string();
                    // Many errors quote their cause already.
                    if !text.contains(&told) {
                        text.push_str(": ");
                        text.push_str(&told);
                    }
                    source = cause.source();
                }
                warn!(%pipeline, %step, outcome, class = failure.class().label(), seconds, "step failed: {text}");
            }
            Ending::Interrupted { .. } => warn!(%pipeline, %step, outcome, seconds, "step {ending}"),
            Ending::Changed { .. } => info!(%pipeline, %step, outcome, seconds, "step {ending}"),
            _ => debug!(%pipeline, %step, outcome, seconds, "step {ending}"),
        }
    }

    fn step_skipped(&self, pipeline: &Name, step: &Name, skip: &Skip) {
        debug!(%pipeline, %step, reason = skip.label(), "step skipped: {skip}");
    }

    fn pass_finished(&self, pipeline: &Name, conclusion: Conclusion, duration: Duration) {
        debug!(%pipeline, conclusion = conclusion.label(), seconds = duration.as_secs_f64(), "pass finished");
    }
}
