//! Runs operations.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use evenkeel_cluster::{ComponentTarget, ReadinessRules};
use evenkeel_core::{Clock, ComponentRevision, ComponentSpec, ObjectChange, Plan};
use evenkeel_source::{Content, Sources};
use evenkeel_steps::{
    Bundle, Cancel, CancelFns, Failure, Mode, Observer, Pass, PassOptions, Pipeline, Report, RetryPolicy,
    RuntimeFns, Spans, Unobserved,
};
use evenkeel_telemetry::{CancellationToken, Tasks, time};

use crate::declared::Declarations;
use crate::inputs::Considered;
use crate::kustomize::Kustomize;
use crate::operation::{Attached, Operation, Shared, capabilities};
use crate::outcome::End as EndOfRun;
use crate::pipeline::{self, PLAN, RENDERED, SESSION, obtain, render};
use crate::render::{RenderLimits, SharedRenders};
use crate::{Error, Outcome, Task, Values, Work};

/// Runs operations; shared by all of a process. Cheap to clone.
#[derive(Clone)]
pub struct Reconciler {
    shared: Shared,
    declarations: Arc<Declarations>,
    applying: Pipeline<Operation>,
    defining: Pipeline<Operation>,
    uninstalling: Pipeline<Operation>,
    orphaning: Pipeline<Operation>,
}

impl fmt::Debug for Reconciler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reconciler")
            .field("applying", &self.applying)
            .finish_non_exhaustive()
    }
}

/// The conditions of one run.
pub struct RunOptions {
    /// Whether anything is written.
    pub mode: Mode,
    /// When failures are due again.
    pub retry: RetryPolicy,
    /// How many tries of this operation failed before.
    pub failed_before: u32,
    /// A random number in `0.0..1.0`, from which back-off is spread.
    pub jitter: f64,
    /// Who hears of steps and their progress as they happen.
    pub observer: Arc<dyn Observer>,
    /// The sign to stop: no step starts after it, and nothing is waited for. Writes stop by the guard of the attempt.
    pub cancel: CancellationToken,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            mode: Mode::Live,
            retry: RetryPolicy::default(),
            failed_before: 0,
            jitter: 0.0,
            observer: Arc::new(Unobserved),
            cancel: CancellationToken::new(),
        }
    }
}

impl fmt::Debug for RunOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunOptions")
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}

impl Reconciler {
    /// A reconciler that takes charts and manifests from `sources`, and builds no kustomization.
    ///
    /// # Errors
    /// [`Error::Pipeline`] when the graph of steps is not valid, which a test of this crate rules out.
    pub fn new(sources: Arc<Sources>, tasks: Tasks, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        Ok(Self {
            shared: Shared {
                sources,
                kustomize: None,
                renders: Arc::new(SharedRenders::default()),
                render_limits: RenderLimits::default(),
                tasks,
                clock,
            },
            declarations: Arc::default(),
            applying: pipeline::applying(&())?,
            defining: pipeline::defining(&())?,
            uninstalling: pipeline::uninstalling(&())?,
            orphaning: pipeline::orphaning(&())?,
        })
    }

    /// The same, with steps and hooks that every pipeline is to have, whatever an operation is for (L12, L24). Takes the place of those
    /// of an earlier call; two bundles are given as a pair.
    ///
    /// # Errors
    /// [`Error::Pipeline`] when a step has the name of another one, or names one that not all pipelines have.
    pub fn with_bundle(mut self, every: &impl Bundle<Operation>) -> Result<Self, Error> {
        self.applying = pipeline::applying(every)?;
        self.defining = pipeline::defining(every)?;
        self.uninstalling = pipeline::uninstalling(every)?;
        self.orphaning = pipeline::orphaning(every)?;
        Ok(self)
    }

    /// The pipelines in words: applying, defining kinds, uninstalling, orphaning.
    pub fn describe(&self) -> [String; 4] {
        [
            &self.applying,
            &self.defining,
            &self.uninstalling,
            &self.orphaning,
        ]
        .map(|pipeline| pipeline.describe().to_string())
    }

    /// The same, and kustomizations are built with `kustomize`.
    #[must_use]
    pub fn with_kustomize(mut self, kustomize: Kustomize) -> Self {
        self.shared.kustomize = Some(kustomize);
        self
    }

    /// The same, with other bounds on a render.
    #[must_use]
    pub fn with_render_limits(mut self, limits: RenderLimits) -> Self {
        self.shared.render_limits = limits;
        self
    }

    pub(crate) fn set_declarations(&mut self, declarations: Declarations) {
        self.declarations = Arc::new(declarations);
    }

    pub(crate) fn declarations(&self) -> &Declarations {
        &self.declarations
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// What decides the objects of a component, without rendering it: for telling whether it has to be looked at.
    ///
    /// Costs no request to the target unless values are kept there, and reads no file of an unchanged directory.
    ///
    /// # Errors
    /// What obtaining the chart, the values or the cluster's version fails with.
    pub async fn consider(
        &self,
        target: &ComponentTarget,
        spec: &ComponentSpec,
    ) -> Result<Considered, Error> {
        let content = self.shared.sources.content(&spec.source, spec.format).await?;
        let given = Values::of(spec)?;
        obtain::refuse_values(target.name(), &given, &content)?;
        let values = obtain::resolve(target, &given, &spec.namespace).await?;
        let capabilities = capabilities(target.cluster()).await?;
        let place = render::Place {
            name: target.name(),
            namespace: &spec.namespace,
            force_namespace: spec.force_namespace,
        };
        let shared = &self.shared;
        let considered = render::consider(shared, &content, &values, &capabilities, place).await?;
        Ok(considered
            .with_readiness(&ReadinessRules::seal_of(&spec.readiness))
            .with_hooks(spec.hooks)
            .with_conflicts(spec.on_conflict))
    }

    /// Whether what a component renders may define kinds of its own: told from its files, without rendering them. Its
    /// operation says what is wrong with what cannot be read.
    pub async fn may_define(&self, spec: &ComponentSpec) -> bool {
        let content = self.shared.sources.content(&spec.source, spec.format).await;
        match content {
            Ok(Content::Chart(chart)) => chart.may_define_kinds(),
            Ok(Content::Manifests(manifests)) => {
                let mut objects = manifests.objects().iter();
                objects.any(|object| object.object["kind"] == "CustomResourceDefinition")
            }
            // What it builds is not in its files alone.
            Ok(Content::Kustomization(_)) => true,
            Err(_) => false,
        }
    }

    /// Runs one operation to its end: done, failed, to be tried again, or told to stop by its guard.
    pub async fn run(&self, task: Task, options: RunOptions) -> Outcome {
        let pipeline = match task.work {
            Work::Apply { .. } => &self.applying,
            Work::Define { .. } => &self.defining,
            Work::Uninstall { .. } => &self.uninstalling,
            Work::Orphan => &self.orphaning,
        };
        let clock = Arc::clone(&self.shared.clock);
        let mode = options.mode;
        let runtime = RuntimeFns::new(move || clock.now(), time::elapsed, time::sleep);
        let pass_options = PassOptions::new(Arc::new(runtime))
            .observer(Arc::new((Spans, Shareable(options.observer))))
            .mode(options.mode)
            .cancel(cancel(options.cancel))
            .retry(options.retry)
            .attempt(options.failed_before, options.jitter);
        let pass = ComponentPass {
            task,
            shared: self.shared.clone(),
            attached: Attached::default(),
            end: Mutex::default(),
        };
        let report = Box::pin(pipeline.run(&pass, pass_options)).await;
        let end = pass.end.into_inner().unwrap_or_else(PoisonError::into_inner);
        let outcome = Outcome::of(&report, end.changes, end.plan);
        let end_of_run = match outcome.end {
            // Nobody waits for anything in a dry run.
            EndOfRun::Missing { reason } if mode == Mode::DryRun => EndOfRun::Failed { reason },
            end => end,
        };
        Outcome {
            revision: end.revision,
            end: end_of_run,
            ..outcome
        }
    }
}

fn cancel(token: CancellationToken) -> impl Cancel {
    let asked = token.clone();
    CancelFns::new(
        move || asked.is_cancelled(),
        move || Box::pin(token.clone().cancelled_owned()),
    )
}

/// The frame around the steps of one operation.
struct ComponentPass {
    task: Task,
    shared: Shared,
    attached: Attached,
    end: Mutex<End>,
}

/// What publish saves of the steps' work.
#[derive(Default)]
struct End {
    changes: Vec<ObjectChange>,
    plan: Option<Plan>,
    revision: Option<ComponentRevision>,
}

impl Pass for ComponentPass {
    type State = Operation;

    async fn gather(&self) -> Result<Arc<Operation>, Failure> {
        Operation::gather(self.task.clone(), self.shared.clone(), &self.attached)
            .await
            .map(Arc::new)
    }

    async fn publish(&self, report: &Report<Operation>) -> Result<(), Failure> {
        let session = report.value(SESSION);
        let applied = match &session {
            Some(session) => session.lock().await.changes().to_vec(),
            None => Vec::new(),
        };
        let removed = report
            .state
            .as_ref()
            .map(|operation| operation.removed())
            .unwrap_or_default();
        let plan = report.value(PLAN).map(|plan| Plan::clone(&plan));
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        *end = End {
            changes: applied.into_iter().chain(removed).collect(),
            plan,
            revision: report.value(RENDERED).map(|rendered| rendered.revision),
        };
        Ok(())
    }
}

/// An observer behind a pointer.
struct Shareable(Arc<dyn Observer>);

impl Observer for Shareable {
    fn step_started(&self, pipeline: &evenkeel_steps::Name, step: &evenkeel_steps::Name) {
        self.0.step_started(pipeline, step);
    }

    fn step_progress(&self, pipeline: &evenkeel_steps::Name, step: &evenkeel_steps::Name, line: &str) {
        self.0.step_progress(pipeline, step, line);
    }

    fn step_finished(
        &self,
        pipeline: &evenkeel_steps::Name,
        step: &evenkeel_steps::Name,
        ending: &evenkeel_steps::Ending,
        duration: std::time::Duration,
    ) {
        self.0.step_finished(pipeline, step, ending, duration);
    }
}
