//! Metrics of the step engine. It reports through a trait of its own; whoever runs passes calls these.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;

use crate::{Error, Metrics};

/// Upper bounds in seconds: from a step that only computes to one that waits for a slow rollout.
const BUCKETS: [f64; 12] = [
    0.001, 0.005, 0.02, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 180.0, 600.0, 1800.0,
];

type Labels = Vec<(&'static str, String)>;

/// Durations and outcomes of steps and passes. Labels are names of pipelines and steps, which are few.
#[derive(Debug, Clone)]
pub struct StepMetrics {
    step_seconds: Family<Labels, Histogram>,
    steps: Family<Labels, Counter>,
    skips: Family<Labels, Counter>,
    pass_seconds: Family<Labels, Histogram>,
}

impl StepMetrics {
    /// Makes and registers them.
    ///
    /// # Errors
    /// When they are registered already.
    pub fn register(metrics: &Metrics) -> Result<Self, Error> {
        let histogram = || Family::new_with_constructor((|| Histogram::new(BUCKETS)) as fn() -> Histogram);
        let made = Self {
            step_seconds: histogram(),
            steps: Family::default(),
            skips: Family::default(),
            pass_seconds: histogram(),
        };
        metrics.register(
            "step_duration_seconds",
            "How long steps ran",
            made.step_seconds.clone(),
        )?;
        metrics.register("steps", "Steps that ran, by outcome", made.steps.clone())?;
        metrics.register(
            "steps_skipped",
            "Steps that did not run, by reason",
            made.skips.clone(),
        )?;
        metrics.register(
            "pass_duration_seconds",
            "How long passes took",
            made.pass_seconds.clone(),
        )?;
        Ok(made)
    }

    /// A step has ended.
    pub fn step_finished(&self, pipeline: &str, step: &str, outcome: &str, duration: Duration) {
        let labels = vec![("pipeline", pipeline.to_owned()), ("step", step.to_owned())];
        self.step_seconds
            .get_or_create(&labels)
            .observe(duration.as_secs_f64());
        let labels = [labels, vec![("outcome", outcome.to_owned())]].concat();
        self.steps.get_or_create(&labels).inc();
    }

    /// A step did not run.
    pub fn step_skipped(&self, pipeline: &str, step: &str, reason: &str) {
        let labels =
            [("pipeline", pipeline), ("step", step), ("reason", reason)].map(|(k, v)| (k, v.to_owned()));
        self.skips.get_or_create(&labels.to_vec()).inc();
    }

    /// A pass is over.
    pub fn pass_finished(&self, pipeline: &str, conclusion: &str, duration: Duration) {
        let labels = vec![
            ("pipeline", pipeline.to_owned()),
            ("conclusion", conclusion.to_owned()),
        ];
        self.pass_seconds
            .get_or_create(&labels)
            .observe(duration.as_secs_f64());
    }
}
