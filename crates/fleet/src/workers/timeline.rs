//! What an operation says while it runs, kept until it is told.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use evenkeel_core::Clock;
use evenkeel_inventory::{Level, TimelineEntry};
use evenkeel_steps::{Ending, Name, Observer};
use evenkeel_telemetry::metrics::StepMetrics;
use tokio::sync::Notify;

/// How many lines wait to be told; when there are more, the oldest make room and are counted.
const LINES_MAX: usize = 500;

/// The lines of one operation that were not told yet.
pub(crate) struct Timeline {
    clock: Arc<dyn Clock>,
    lines: Mutex<Lines>,
    spoke: Arc<Notify>,
}

#[derive(Default)]
struct Lines {
    entries: VecDeque<TimelineEntry>,
    dropped: usize,
}

impl Timeline {
    /// `spoke` is told of every line.
    pub(crate) fn new(clock: Arc<dyn Clock>, spoke: Arc<Notify>) -> Self {
        Self {
            clock,
            lines: Mutex::default(),
            spoke,
        }
    }

    pub(crate) fn say(&self, level: Level, step: Option<&str>, message: String) {
        let entry = TimelineEntry {
            at: self.clock.now(),
            level,
            step: step.map(str::to_owned),
            message,
        };
        self.lines().push(entry);
        self.spoke.notify_one();
    }

    /// Everything that was not told yet.
    pub(crate) fn take(&self) -> Vec<TimelineEntry> {
        let Lines { entries, dropped } = std::mem::take(&mut *self.lines());
        let mut entries: Vec<_> = entries.into();
        if dropped > 0
            && let Some(at) = entries.first().map(|entry| entry.at)
        {
            entries.insert(
                0,
                TimelineEntry {
                    at,
                    level: Level::Warning,
                    step: None,
                    message: format!(
                        "{dropped} lines are left out: they came faster than they could be kept"
                    ),
                },
            );
        }
        entries
    }

    /// What could not be told is told with the next lines.
    pub(crate) fn put_back(&self, told: Vec<TimelineEntry>) {
        let mut lines = self.lines();
        let since = std::mem::take(&mut lines.entries);
        for entry in told.into_iter().chain(since) {
            lines.push(entry);
        }
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lines {
    fn push(&mut self, entry: TimelineEntry) {
        if self.entries.len() >= LINES_MAX {
            self.entries.pop_front();
            self.dropped += 1;
        }
        self.entries.push_back(entry);
    }
}

/// Hears the steps of one operation: into its timeline and the metrics, and what they say into the log.
pub(crate) struct Listener {
    pub(crate) timeline: Arc<Timeline>,
    pub(crate) metrics: StepMetrics,
    pub(crate) span: tracing::Span,
}

impl Observer for Listener {
    fn step_progress(&self, _pipeline: &Name, step: &Name, line: &str) {
        self.span
            .in_scope(|| tracing::debug!(step = step.as_str(), "{line}"));
        self.timeline
            .say(Level::Info, Some(step.as_str()), line.to_owned());
    }

    fn step_finished(&self, pipeline: &Name, step: &Name, ending: &Ending, duration: std::time::Duration) {
        let level = match ending {
            Ending::Failed(_) => Level::Error,
            Ending::Waiting { .. } | Ending::Stopped { .. } | Ending::Interrupted(_) => Level::Warning,
            Ending::Done | Ending::Changed { .. } | Ending::Planned | Ending::Skipped(_) => Level::Info,
        };
        self.metrics
            .step_finished(pipeline.as_str(), step.as_str(), word(ending), duration);
        let message = format!("{ending} ({} ms)", duration.as_millis());
        self.timeline.say(level, Some(step.as_str()), message);
    }
}

/// One word for metrics.
fn word(ending: &Ending) -> &'static str {
    match ending {
        Ending::Done => "done",
        Ending::Changed { .. } => "changed",
        Ending::Planned => "planned",
        Ending::Waiting { .. } => "waiting",
        Ending::Stopped { .. } => "stopped",
        Ending::Failed(_) => "failed",
        Ending::Interrupted(_) => "interrupted",
        Ending::Skipped(_) => "skipped",
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_core::ManualClock;
    use jiff::Timestamp;

    use super::*;

    fn timeline() -> Timeline {
        Timeline::new(Arc::new(ManualClock::new(Timestamp::UNIX_EPOCH)), Arc::default())
    }

    fn messages(entries: &[TimelineEntry]) -> Vec<&str> {
        entries.iter().map(|entry| entry.message.as_str()).collect()
    }

    #[test]
    fn lines_are_told_once_and_in_order() {
        let timeline = timeline();
        timeline.say(Level::Info, Some("apply"), "a".to_owned());
        timeline.say(Level::Info, None, "b".to_owned());
        let told = timeline.take();
        assert_eq!(messages(&told), ["a", "b"]);
        assert!(timeline.take().is_empty());
        timeline.say(Level::Info, None, "c".to_owned());
        timeline.put_back(told);
        assert_eq!(messages(&timeline.take()), ["a", "b", "c"]);
    }

    #[test]
    fn it_is_bounded_and_says_what_is_missing() {
        let timeline = timeline();
        for number in 0..LINES_MAX + 3 {
            timeline.say(Level::Info, None, number.to_string());
        }
        let told = timeline.take();
        assert_eq!(told.len(), LINES_MAX + 1);
        assert!(messages(&told)[0].starts_with("3 lines") && messages(&told)[1] == "3");
    }
}
