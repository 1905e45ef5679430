//! How the demo looks: a board that is redrawn on a terminal, plain lines elsewhere.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use evenkeel_api::ClusterStatus;
use evenkeel_core::{ClusterState, OperationStateKind};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::output;

/// How often a spinner turns.
const TICK: Duration = Duration::from_millis(100);

/// One line for each cluster.
pub(crate) struct Show {
    board: Board,
}

/// A handle to the lines.
#[derive(Clone)]
pub(crate) struct Board(Arc<Mutex<Lines>>);

struct Lines {
    /// On a terminal.
    bars: Option<MultiProgress>,
    clusters: BTreeMap<String, Line>,
}

struct Line {
    bar: Option<ProgressBar>,
    said: String,
}

impl Show {
    pub(crate) fn new(clusters: [String; 3]) -> Self {
        let bars = output::is_interactive().then(MultiProgress::new);
        let line = |name: String| {
            (
                name,
                Line {
                    bar: None,
                    said: String::new(),
                },
            )
        };
        let lines = Lines {
            bars,
            clusters: clusters.into_iter().map(line).collect(),
        };
        Self {
            board: Board(Arc::new(Mutex::new(lines))),
        }
    }

    pub(crate) fn board(&self) -> Board {
        self.board.clone()
    }

    /// Ends the redrawing: what stands there stays, and other lines may follow.
    pub(crate) fn settle(&mut self) {
        let mut lines = self.board.0.lock().unwrap_or_else(PoisonError::into_inner);
        for line in lines.clusters.values_mut() {
            if let Some(bar) = line.bar.take() {
                bar.abandon();
            }
        }
    }
}

impl Board {
    /// Shows how a cluster is now.
    pub(crate) fn update(&self, status: &ClusterStatus) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bars = lines.bars.clone();
        let Some(line) = lines.clusters.get_mut(status.name.as_str()) else {
            return;
        };
        let text = text(status);
        if line.said == text {
            return;
        }
        line.said.clone_from(&text);
        match bars {
            Some(bars) => line
                .bar
                .get_or_insert_with(|| bars.add(spinner()))
                .set_message(text),
            // A reader that went away is noticed at the next act.
            None => drop(output::line(&text)),
        }
    }
}

fn spinner() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(TICK);
    bar
}

fn text(status: &ClusterStatus) -> String {
    let components: Vec<_> = status
        .components
        .iter()
        .map(|component| {
            let mark = match component.state.as_ref().map(|state| state.kind()) {
                Some(OperationStateKind::Succeeded) if component.not_ready.is_none() => "✓",
                Some(OperationStateKind::Running) => "…",
                Some(
                    OperationStateKind::Failed | OperationStateKind::Retrying | OperationStateKind::Skipped,
                ) => "✗",
                _ => "·",
            };
            format!("{mark} {}", component.name)
        })
        .collect();
    let reason = match (&status.reason, status.state) {
        (Some(reason), ClusterState::Degraded | ClusterState::Failed) => format!("  ({reason})"),
        _ => String::new(),
    };
    format!(
        "{:<6} {:<12} {}{reason}",
        status.name.as_str(),
        status.state.as_str(),
        components.join("  ")
    )
}
