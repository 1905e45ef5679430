//! One pass over one object.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use evenkeel_core::Clock;
use evenkeel_steps::{
    Budget, Cancel, Change, Conclusion, Ending, Failure, Guard, Mode, Name, Never, Observer, Pass,
    PassOptions, Permission, Pipeline, Report, RetryPolicy, RuntimeFns, Skip, Spans, only_reading,
};
use evenkeel_telemetry::metrics::StepMetrics;
use evenkeel_telemetry::time;
use jiff::Timestamp;
use k8s_openapi::api::events::v1::Event;
use kube::{Resource as _, ResourceExt as _};
use serde_json::{Map, Value, json};
use tracing::{Span, warn};

use super::condition::{Setting, conditions};
use super::event::Events;
use super::{
    APPROVED_PLAN, Access, Identity, Kind, Managed as _, OBSERVE_ONLY, ORPHAN, ObjectPlan, PROTECTION,
    Snapshot as _, is_orphaned, permission, plan, status,
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
    /// Whether passes plan and do not act, whatever the objects say.
    observes: bool,
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
    /// Whether nobody but the caller hears of it.
    is_silent: bool,
    /// What may be done although passes may only plan, by step.
    approved: Option<Vec<(String, Vec<Change>)>>,
}

impl<K: Kind> Passes<K> {
    pub(crate) fn new(kind: K, access: Access, clock: Arc<dyn Clock>, controller: &str) -> Self {
        Self {
            events: Events::new(access.client(), controller),
            metrics: None,
            observes: false,
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
        let options = self
            .options()
            .observer(self.observer())
            .attempt(attempt, rand::random())
            .cancel(cancel);
        let approved = self.approved(&object).await;
        let pipeline = self.pipeline(&object);
        let frame = Frame {
            passes: self,
            object,
            attempt,
            is_silent: false,
            approved,
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

    /// What a pass over an object would do. The object need not be the one that is stored: it may be how that would be after a
    /// change. Writes nothing anywhere, not even a status, and counts as no pass.
    pub(crate) async fn plan(&self, object: K::Object) -> ObjectPlan {
        let report = self.dry_run(&object).await;
        ObjectPlan::of(&object, &report)
    }

    async fn dry_run(&self, object: &K::Object) -> Report<K::State> {
        let frame = Frame {
            passes: self,
            object: object.clone(),
            attempt: 0,
            is_silent: true,
            approved: None,
        };
        let options = self.options().mode(Mode::DryRun);
        Box::pin(self.pipeline(object).run(&frame, options)).await
    }

    /// What may be done to an object that is only observed: what somebody has seen and approved, as long as it is still the plan.
    async fn approved(&self, object: &K::Object) -> Option<Vec<(String, Vec<Change>)>> {
        let digest = object.annotations().get(APPROVED_PLAN)?;
        self.why_observed(object)?;
        let report = self.dry_run(object).await;
        plan::approved(object, &report, digest)
    }

    /// Why passes over an object may only plan, if so.
    fn why_observed(&self, object: &K::Object) -> Option<String> {
        let annotation = object.annotations().get(OBSERVE_ONLY);
        if annotation.is_some_and(|value| value == "true") {
            return Some(format!("the annotation {OBSERVE_ONLY} says so"));
        }
        self.observes.then(|| "the operator only observes".to_owned())
    }

    fn options(&self) -> PassOptions {
        let clock = Arc::clone(&self.clock);
        let runtime = RuntimeFns::new(move || clock.now(), time::elapsed, time::sleep);
        PassOptions::new(Arc::new(runtime))
            .budget(BUDGET)
            .retry(self.retry)
    }

    fn pipeline(&self, object: &K::Object) -> &Pipeline<K::State> {
        if object.meta().deletion_timestamp.is_some() {
            self.kind.teardown()
        } else {
            self.kind.pipeline()
        }
    }

    /// All that is asked of what is outside, each with who asks: a step, or a part of the frame.
    pub(crate) fn permissions(&self) -> Vec<(String, Permission)> {
        let pipelines = [self.kind.pipeline(), self.kind.teardown()];
        let of_steps = pipelines.into_iter().flat_map(|pipeline| {
            let steps = pipeline.permissions();
            steps.map(|(step, permission)| (format!("{}: step {step}", pipeline.name()), permission.clone()))
        });
        let name = self.kind.pipeline().name();
        let frame = [
            ("watch", permission::watch::<K::Object>().to_vec()),
            ("pass", vec![permission::get::<K::Object>()]),
            ("status", vec![permission::patch_status::<K::Object>()]),
            ("events", permission::keep::<Event>().to_vec()),
            ("gather", self.kind.reads()),
            ("watches", self.kind.watches()),
        ];
        let of_frame = frame.into_iter().flat_map(|(who, permissions)| {
            let who = format!("{name}: {who}");
            permissions
                .into_iter()
                .map(move |permission| (who.clone(), permission))
        });
        of_steps.chain(of_frame).collect()
    }

    /// Counts steps and passes from now on.
    pub(crate) fn measure(&mut self, metrics: StepMetrics) {
        self.metrics = Some(metrics);
    }

    /// Lets passes plan and not act.
    pub(crate) fn observe(&mut self, observes: bool) {
        self.observes = observes;
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
        let kind = &self.passes.kind;
        let gathered = only_reading("gather", kind.reads(), kind.gather(self.object.clone())).await;
        gathered.map(Arc::new)
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
        let Some(why) = self.passes.why_observed(object) else {
            return guard;
        };
        guard.and(match &self.approved {
            Some(changes) => Guard::approved(
                changes.clone(),
                format!("only the approved plan is carried out: {why}"),
            ),
            None => Guard::plan_only(why),
        })
    }

    async fn publish(&self, report: &Report<K::State>) -> Result<(), Failure> {
        if self.is_silent {
            return Ok(());
        }
        let passes = self.passes;
        let is_live = report.mode == Mode::Live;
        if is_live && report.step(RELEASE).is_some_and(|entry| entry.ending.succeeded()) {
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
        // The plan is of this pass, or none.
        fields.remove("plan");
        fields.insert("observedGeneration".to_owned(), json!(object.meta().generation));
        fields.insert("conditions".to_owned(), json!(after));
        if let Some(plan) = plan::summary(object, report).filter(|_| !is_live) {
            fields.insert("plan".to_owned(), json!(plan));
        }
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
