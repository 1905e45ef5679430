//! The snapshot that an operation's steps work on.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use evenkeel_chart::{Capabilities, KubeVersion};
use evenkeel_cluster::{Cluster, ErrorClass, Event, ObjectState, Observer, Record, Stop};
use evenkeel_core::{Clock, ConsentNeeded, Fence, ObjectChange, ObjectDiff};
use evenkeel_source::Sources;
use evenkeel_steps::{Failure, Progress};
use evenkeel_telemetry::Tasks;

use crate::failure::at_target;
use crate::kustomize::Kustomize;
use crate::render::{RenderLimits, SharedRenders};
use crate::{Error, Task, Work};

/// What all operations of a process share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) sources: Arc<Sources>,
    pub(crate) kustomize: Option<Kustomize>,
    pub(crate) renders: Arc<SharedRenders>,
    pub(crate) render_limits: RenderLimits,
    pub(crate) tasks: Tasks,
    pub(crate) clock: Arc<dyn Clock>,
}

/// One operation as it was found: the task, what the target remembers, what it can do. Bundles are generic over it, and see nothing of
/// it.
pub struct Operation {
    pub(crate) task: Task,
    pub(crate) shared: Shared,
    pub(crate) record: Option<Record>,
    pub(crate) capabilities: Capabilities,
    relay: Arc<Relay>,
    fenced: OnceLock<Fence>,
    consent: OnceLock<Box<ConsentNeeded>>,
    stopped: OnceLock<Stop>,
    not_ready: AtomicBool,
    missing: AtomicBool,
    removed: Mutex<Vec<ObjectChange>>,
    diffs: Mutex<Vec<ObjectDiff>>,
}

impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operation")
            .field("task", &self.task)
            .finish_non_exhaustive()
    }
}

/// Passes what happens at the target to the step that is running.
#[derive(Default)]
pub(crate) struct Relay(Mutex<Option<Progress>>);

/// The relay of one operation, for as long as it runs: the step it tells holds the operation, which holds the relay, so
/// whoever runs it lets go of the step at the end.
#[derive(Default)]
pub(crate) struct Attached(Arc<Relay>);

impl Drop for Attached {
    fn drop(&mut self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Operation {
    /// Looks at the target: one read of the parent, discovery from the client's cache.
    pub(crate) async fn gather(task: Task, shared: Shared, attached: &Attached) -> Result<Self, Failure> {
        let capabilities = capabilities(task.target.cluster()).await?;
        let take_over = matches!(task.work, Work::Apply { adopt: true, .. });
        let record = task.target.record_of(take_over).await.map_err(at_target)?;
        Ok(Self {
            task,
            shared,
            record,
            capabilities,
            relay: Arc::clone(&attached.0),
            fenced: OnceLock::new(),
            consent: OnceLock::new(),
            stopped: OnceLock::new(),
            not_ready: AtomicBool::new(false),
            missing: AtomicBool::new(false),
            removed: Mutex::default(),
            diffs: Mutex::default(),
        })
    }

    /// From now on what happens at the target is told as progress of this step.
    pub(crate) fn attach(&self, progress: Progress) {
        *self.relay.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(progress);
    }

    /// Tells the running step what happens at the target.
    pub(crate) fn observer(&self) -> Observer {
        let relay = Arc::clone(&self.relay);
        Arc::new(move |event| {
            let progress = relay.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if let (Some(progress), Some(line)) = (progress, line(&event)) {
                progress.line(line);
            }
        })
    }

    /// A failure at the target; remembers what ends the whole operation.
    pub(crate) fn failed(&self, error: evenkeel_cluster::Error) -> Failure {
        if let evenkeel_cluster::Error::NeedsConsent(needed) = &error {
            let _ = self.consent.set(needed.clone());
        }
        match error.class() {
            ErrorClass::Fenced(at_target) => {
                let _ = self.fenced.set(at_target);
            }
            ErrorClass::Stopped => {
                let _ = self.stopped.set(stop_of(&error));
            }
            ErrorClass::NotReady => self.not_ready.store(true, Ordering::Relaxed),
            _ => {}
        }
        if matches!(error, evenkeel_cluster::Error::UnknownKinds(_)) {
            self.missing.store(true, Ordering::Relaxed);
        }
        at_target(error)
    }

    /// Notes what was removed, so that it is told also when a later object fails.
    pub(crate) fn note_removed(&self, changes: Vec<ObjectChange>) {
        self.removed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(changes);
    }

    /// What was removed.
    pub(crate) fn removed(&self) -> Vec<ObjectChange> {
        self.removed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Notes how the fields of objects would change, in a dry run.
    pub(crate) fn note_diffs(&self, diffs: Vec<ObjectDiff>) {
        *self.diffs.lock().unwrap_or_else(PoisonError::into_inner) = diffs;
    }

    /// How the fields of objects would change.
    pub(crate) fn diffs(&self) -> Vec<ObjectDiff> {
        self.diffs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The higher number found at the target, if that ended the operation.
    pub(crate) fn fenced(&self) -> Option<Fence> {
        self.fenced.get().copied()
    }

    /// What it would delete only with consent, if that ended it.
    pub(crate) fn needs_consent(&self) -> Option<&ConsentNeeded> {
        self.consent.get().map(Box::as_ref)
    }

    /// Whether it ended because objects were not ready, or not gone.
    pub(crate) fn not_ready(&self) -> bool {
        self.not_ready.load(Ordering::Relaxed)
    }

    /// Whether it needs kinds that the cluster does not serve.
    pub(crate) fn misses_something(&self) -> bool {
        self.missing.load(Ordering::Relaxed)
    }

    /// Why the guard ended the operation, if it did.
    pub(crate) fn stopped(&self) -> Option<Stop> {
        self.stopped.get().copied()
    }
}

/// What charts can see of a cluster; from the client's cache after the first time.
///
/// # Errors
/// Whatever the requests fail with, and a version that cannot be read.
pub async fn capabilities(cluster: &Cluster) -> Result<Capabilities, Error> {
    // Apart from the caller's future, which is large enough without those of two requests.
    let asked = Box::pin(async { tokio::try_join!(cluster.kubernetes_version(), cluster.discovery()) });
    let (version, discovery) = asked.await?;
    let kube_version =
        KubeVersion::parse(&version).map_err(|source| Error::Capabilities(Box::new(source)))?;
    Ok(Capabilities {
        kube_version,
        api_versions: discovery.api_versions().into_iter().collect(),
    })
}

fn stop_of(error: &evenkeel_cluster::Error) -> Stop {
    match error {
        evenkeel_cluster::Error::Stopped { why, .. } => *why,
        evenkeel_cluster::Error::Objects(errors) => errors
            .iter()
            .map(|failed| stop_of(&failed.error))
            .next()
            .unwrap_or(Stop::Cancelled),
        _ => Stop::Cancelled,
    }
}

fn line(event: &Event) -> Option<String> {
    match event {
        Event::Changed { object, action } => Some(format!("{action} {object}")),
        Event::Forced { object, conflicts } => {
            let taken = conflicts
                .iter()
                .map(|conflict| format!("{} from {}", conflict.field, conflict.manager));
            Some(format!(
                "took fields of {object}: {}",
                taken.collect::<Vec<_>>().join(", ")
            ))
        }
        Event::Left { object, conflicts } => {
            let left = conflicts
                .iter()
                .map(|conflict| format!("{} to {}", conflict.field, conflict.manager));
            Some(format!(
                "left fields of {object}: {}",
                left.collect::<Vec<_>>().join(", ")
            ))
        }
        Event::Readiness(ObjectState {
            object, readiness, ..
        }) => Some(format!("{object}: {readiness}")),
        Event::Gone(object) => Some(format!("{object} is gone")),
        Event::Waiting(what) => Some(what.clone()),
        _ => None,
    }
}
