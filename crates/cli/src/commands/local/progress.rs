//! What goes on: a line that moves per component on a terminal, plain lines elsewhere. All on standard error.

use std::time::Duration;

use evenkeel_core::ComponentName;
use evenkeel_steps::{Ending, Name, Observer};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::report::{ComponentReport, State};
use crate::output::{self, OutputFormat};

/// How often a moving line moves.
const TICK: Duration = Duration::from_millis(120);

/// Where all components show what goes on.
#[derive(Clone, Debug)]
pub(crate) struct Progress(Look);

#[derive(Clone, Debug)]
enum Look {
    Bars(MultiProgress),
    Lines,
    /// For programs, which read the result.
    Silent,
}

impl Progress {
    /// The look that fits standard error and the format of the result.
    pub(super) fn new(format: OutputFormat) -> Self {
        Self(if format != OutputFormat::Table {
            Look::Silent
        } else if output::has_terminal() {
            Look::Bars(MultiProgress::new())
        } else {
            Look::Lines
        })
    }

    /// One component begins.
    pub(crate) fn component(&self, name: &ComponentName) -> ComponentProgress {
        let bar = match &self.0 {
            Look::Bars(bars) => {
                let bar = bars.add(ProgressBar::new_spinner());
                if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix:.bold} {wide_msg}") {
                    bar.set_style(style);
                }
                bar.set_prefix(name.to_string());
                bar.enable_steady_tick(TICK);
                Some(bar)
            }
            Look::Lines | Look::Silent => None,
        };
        ComponentProgress {
            progress: self.clone(),
            name: name.clone(),
            bar,
        }
    }

    /// Says in full why a component did not succeed, at once and in every look.
    pub(super) fn ended(&self, report: &ComponentReport) {
        let Some(reason) = &report.reason else { return };
        let name = &report.name;
        self.note(&match report.state {
            State::Skipped => format!("component {name} is skipped: {reason}"),
            State::Stopped => format!("component {name} is stopped: {reason}"),
            _ => format!("error: component {name}: {reason}"),
        });
    }

    /// One line beside what moves.
    pub(super) fn note(&self, text: &str) {
        match &self.0 {
            Look::Bars(bars) => bars.suspend(|| output::note(text)),
            Look::Lines | Look::Silent => output::note(text),
        }
    }
}

/// What goes on with one component.
#[derive(Debug)]
pub(crate) struct ComponentProgress {
    progress: Progress,
    name: ComponentName,
    bar: Option<ProgressBar>,
}

impl ComponentProgress {
    /// An attempt failed, and another one follows.
    pub(super) fn retrying(&self, reason: &str) {
        self.line(&format!("will be tried again: {reason}"));
    }

    /// It ended.
    pub(super) fn finish(&self, report: &ComponentReport) {
        let summary = report.summary();
        match &self.bar {
            Some(bar) => {
                let mark = if report.is_success() { "✓" } else { "✗" };
                if let Ok(style) =
                    ProgressStyle::with_template(&format!("{mark} {{prefix:.bold}} {{wide_msg}}"))
                {
                    bar.set_style(style);
                }
                bar.finish_with_message(summary);
            }
            // A plan is told in full by its table.
            None if report.state == State::Planned => {}
            None => self.line(&summary),
        }
    }

    fn line(&self, text: &str) {
        match (&self.bar, &self.progress.0) {
            (Some(bar), _) => bar.set_message(text.to_owned()),
            (None, Look::Silent) => {}
            (None, _) => output::note(&format!("{}: {text}", self.name)),
        }
    }
}

impl Observer for ComponentProgress {
    fn step_started(&self, _pipeline: &Name, step: &Name) {
        // In a pipe the steps say what they do; that they begin is worth no line.
        if let Some(bar) = &self.bar {
            bar.set_message(step.to_string());
        }
    }

    fn step_progress(&self, _pipeline: &Name, step: &Name, line: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(format!("{step}: {line}")),
            None => self.line(line),
        }
    }

    fn step_finished(&self, _pipeline: &Name, _step: &Name, _ending: &Ending, _duration: Duration) {}
}
