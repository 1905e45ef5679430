//! One pass over one object.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use evenkeel_core::Clock;
use evenkeel_steps::{
    Budget, Cancel, Conclusion, Ending, Failure, Guard, Name, Never, Observer, Pass, PassOptions, Report,
    RetryPolicy, RuntimeFns, Skip, Spans,
};
use evenkeel_telemetry::metrics::StepMetrics;
use evenkeel_telemetry::time;
use jiff::Timestamp;
use kube::{Resource as _, ResourceExt as _};
use serde_json::{Map, Value, json};
use tracing::{Span, warn};

use super::condition::{Setting, conditions};
use super::event::Events;
use super::{
    Access, Identity, Kind, Managed as _, OBSERVE_ONLY, ORPHAN, PROTECTION, Snapshot as _, is_orphaned,
    status,
};

/// How much time a pass has for reading and for its steps, and for its status on top.
const BUDGET: Budget = Budget {
    work: Duration::from_secs(600),
    publish: Duration::from_secs(30),
};

/// The share of an interval by which it may be shorter, so that objects made together are not always looked at together.
const INTERVAL_SPREAD: f64 = 0.1;

/// Runs passes over the objects of one kind.
pub(crate) struct Passes<K> {
    kind: K,
    access: Access,
    clock: Arc<dyn Clock>,
    events: Events,
    metrics: Option<StepMetrics>,
    retry: RetryPolicy,
    /// How many passes in a row failed, by uid. One entry for each object that fails now.
    attempts: Mutex<HashMap<String, u32>>,
}

/// How a pass ended.
#[derive(Clone, Debug)]
pub struct Passed {
    /// The pass in one word; none if there is no such object.
    pub conclusion: Option<Conclusion>,
    /// When the next one is due.
    pub due: Option<Due>,
    /// The timeline, one line per step.
    pub timeline: String,
}

/// When the next pass is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// When.
    pub at: Timestamp,
    /// Why.
    pub reason: String,
}

struct Frame<'a, K: Kind> {
    passes: &'a Passes<K>,
    object: K::Object,
    attempt: u32,
}

impl<K: Kind> Passes<K> {
    pub(crate) fn new(kind: K, access: Access, clock: Arc<dyn Clock>, controller: &str) -> Self {
        Self {
            events: Events::new(access.client(), controller),
            metrics: None,
            kind,
            access,
            clock,
            retry: RetryPolicy::default(),
            attempts: Mutex::default(),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Brings one object a pass further.
    ///
    /// # Errors
    /// When the object itself cannot be read; everything else is told in its status.
    pub(crate) async fn pass(&self, namespace: &str, name: &str) -> Result<Passed, Failure> {
        self.pass_until(namespace, name, Never).await
    }

    /// As [`Self::pass`], until `cancel` says to stop.
    ///
    /// # Errors
    /// As [`Self::pass`].
    pub(crate) async fn pass_until(
        &self,
        namespace: &str,
        name: &str,
        cancel: impl Cancel + 'static,
    ) -> Result<Passed, Failure> {
        let Some(object) = self.access.find::<K::Object>(namespace, name).await? else {
            return Ok(Passed {
                conclusion: None,
                due: None,
                timeline: String::new(),
            });
        };
        let uid = object.uid().unwrap_or_default();
        let attempt = self.attempt(&uid);
        Span::current().record("attempt", attempt);
        let clock = Arc::clone(&self.clock);
        let runtime = RuntimeFns::new(move || clock.now(), time::elapsed, time::sleep);
        let options = PassOptions::new(Arc::new(runtime))
            .observer(self.observer())
            .budget(BUDGET)
            .retry(self.retry)
            .attempt(attempt, rand::random())
            .cancel(cancel);
        let is_deleting = object.meta().deletion_timestamp.is_some();
        let pipeline = if is_deleting {
            self.kind.teardown()
        } else {
            self.kind.pipeline()
        };
        let frame = Frame {
            passes: self,
            object,
            attempt,
        };
        let report = Box::pin(pipeline.run(&frame, options)).await;
        let conclusion = report.conclusion();
        self.ended(&uid, conclusion);
        let due = report.requeue().map(|requeue| Due {
            at: requeue.at,
            reason: format!("{}: {}", requeue.wanted_by, requeue.reason),
        });
        Ok(Passed {
            conclusion: Some(conclusion),
            due: due.into_iter().chain(self.periodic()).min_by_key(|due| due.at),
            timeline: report.to_string(),
        })
    }

    pub(crate) fn describe(&self) -> [String; 2] {
        [self.kind.pipeline(), self.kind.teardown()].map(|pipeline| pipeline.describe().to_string())
    }

    /// Counts steps and passes from now on.
    pub(crate) fn measure(&mut self, metrics: StepMetrics) {
        self.metrics = Some(metrics);
    }

    fn observer(&self) -> Arc<dyn Observer> {
        match &self.metrics {
            Some(metrics) => Arc::new((Spans, Counted(metrics.clone()))),
            None => Arc::new(Spans),
        }
    }

    fn periodic(&self) -> Option<Due> {
        let interval = self.kind.interval()?;
        let spread = INTERVAL_SPREAD * rand::random::<f64>();
        let at = self.now().checked_add(interval.mul_f64(1.0 - spread)).ok()?;
        Some(Due {
            at,
            reason: "it is looked at from time to time".to_owned(),
        })
    }

    fn attempt(&self, uid: &str) -> u32 {
        let attempts = self.attempts.lock().unwrap_or_else(PoisonError::into_inner);
        attempts.get(uid).copied().unwrap_or_default()
    }

    fn ended(&self, uid: &str, conclusion: Conclusion) {
        let mut attempts = self.attempts.lock().unwrap_or_else(PoisonError::into_inner);
        match conclusion {
            Conclusion::Failed | Conclusion::OutOfTime => {
                let attempt = attempts.entry(uid.to_owned()).or_default();
                *attempt = attempt.saturating_add(1);
            }
            Conclusion::Cancelled => {}
            _ => {
                attempts.remove(uid);
            }
        }
    }
}

impl<K: Kind> Pass for Frame<'_, K> {
    type State = K::State;

    async fn gather(&self) -> Result<Arc<K::State>, Failure> {
        self.passes.kind.gather(self.object.clone()).await.map(Arc::new)
    }

    /// Before anything else (B1): a protected object is not torn down, whatever its steps would do.
    fn guard(&self, state: &K::State) -> Guard {
        let object = state.object();
        let mut guard = Guard::Proceed;
        if object.meta().deletion_timestamp.is_some()
            && let Some(value) = object.annotations().get(PROTECTION)
            // What cannot be read protects.
            && value != "false"
        {
            guard = Guard::stop(format!(
                "it is protected: set the annotation {PROTECTION} to \"false\" to let it be deleted"
            ));
        }
        guard = guard.and(self.passes.kind.guard(state));
        if object
            .annotations()
            .get(OBSERVE_ONLY)
            .is_some_and(|value| value == "true")
        {
            guard = guard.and(Guard::plan_only(format!("the annotation {OBSERVE_ONLY} says so")));
        }
        guard
    }

    async fn publish(&self, report: &Report<K::State>) -> Result<(), Failure> {
        let passes = self.passes;
        if report.step(RELEASE).is_some_and(|entry| entry.ending.succeeded()) {
            // Nobody is left to be told; that something was left behind is told all the same.
            if is_orphaned(&self.object) {
                warn!(object = %Identity::of(&self.object), "let go by the annotation {ORPHAN}: what is outside stays");
                passes.events.orphaned(&self.object).await;
            }
            return Ok(());
        }
        let object = &self.object;
        let before = object.conditions();
        let setting = Setting {
            previous: before,
            known: K::CONDITIONS,
            generation: object.meta().generation,
            now: passes.now(),
            attempt: self.attempt,
            is_deleting: object.meta().deletion_timestamp.is_some(),
        };
        let after = conditions(report, &setting);
        let mut wanted = match &report.state {
            Some(state) => passes.kind.status(state, report),
            None => object.status_value(),
        };
        let fields = wanted.as_object_mut().map(std::mem::take).unwrap_or_default();
        let mut fields: Map<String, Value> = fields
            .into_iter()
            .filter(|(name, value)| K::STATUS_FIELDS.contains(&name.as_str()) && !status::is_empty(value))
            .collect();
        fields.insert("observedGeneration".to_owned(), json!(object.meta().generation));
        fields.insert("conditions".to_owned(), json!(after));
        if status::publish(&passes.access, object, K::STATUS_FIELDS, &fields).await? {
            passes.events.transitions(object, before, &after).await;
        }
        Ok(())
    }
}

/// Counts what it hears.
struct Counted(StepMetrics);

impl Observer for Counted {
    fn step_finished(&self, pipeline: &Name, step: &Name, ending: &Ending, duration: Duration) {
        self.0
            .step_finished(pipeline.as_str(), step.as_str(), ending.label(), duration);
    }

    fn step_skipped(&self, pipeline: &Name, step: &Name, skip: &Skip) {
        self.0
            .step_skipped(pipeline.as_str(), step.as_str(), skip.label());
    }

    fn pass_finished(&self, pipeline: &Name, conclusion: Conclusion, duration: Duration) {
        self.0
            .pass_finished(pipeline.as_str(), conclusion.label(), duration);
    }
}

/// The step that lets go of an object, after which it may be gone.
pub(crate) const RELEASE: &str = "release";

impl<K> std::fmt::Debug for Passes<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Passes").finish_non_exhaustive()
    }
}

impl std::fmt::Display for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}
