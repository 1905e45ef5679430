//! One component: its attempts, until it is done, failed for good, out of time or interrupted.

use std::sync::Arc;
use std::time::{Duration, Instant};

use evenkeel_cluster::{Attempt, Cluster, ComponentTarget, Error, ErrorClass, Owner, Stop};
use evenkeel_component::{
    Agreement, End, Outcome, Reconciler, RenderedSiblings, RunOptions, SiblingSet, TargetLedger, Task, Work,
};
use evenkeel_core::{DeleteKind, Fence, ObjectChange, OnConflict};
use evenkeel_steps::{Backoff, Mode, Observer, RetryPolicy};
use evenkeel_telemetry::{CancellationToken, time};

use super::inputs::Inputs;
use super::report::{ComponentReport, State};

/// A delay longer than any timeout: what only a person can put right is not tried again.
const NEVER: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
/// When a failed attempt is followed by another one. Somebody is watching, so it is tried soon.
const RETRY: RetryPolicy = RetryPolicy {
    backoff: Backoff {
        first: Duration::from_secs(1),
        steady: 3,
        cap: Duration::from_secs(15),
    },
    conflict: Duration::from_millis(100),
    forbidden: NEVER,
    bug: NEVER,
};

/// What is done with every component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Intent {
    Apply {
        adopt: bool,
        on_conflict: OnConflict,
        wait: bool,
    },
    Delete {
        wait: bool,
        strip_finalizers: bool,
    },
}

/// What all components of one run share.
#[derive(Debug)]
pub(crate) struct Runner {
    pub(crate) reconciler: Reconciler,
    pub(crate) cluster: Cluster,
    pub(crate) owner: Owner,
    pub(crate) intent: Intent,
    pub(crate) mode: Mode,
    /// What the user has agreed to delete.
    pub(crate) agreement: Agreement,
    /// The components among which objects may move.
    pub(crate) siblings: Option<Arc<SiblingSet>>,
    pub(crate) timeout: Duration,
    pub(crate) cancel: CancellationToken,
}

impl Runner {
    /// Runs one component to its end. `retrying` hears why there is another attempt.
    pub(crate) async fn run(
        &self,
        inputs: &Inputs,
        observer: Arc<dyn Observer>,
        retrying: impl Fn(&str),
    ) -> ComponentReport {
        let started = Instant::now();
        let mut report = ComponentReport::new(&inputs.name, &inputs.namespace);
        let target = self.target(inputs);
        let mut changes = Vec::new();
        let mut failed_before = 0;
        loop {
            let left = self.timeout.saturating_sub(started.elapsed());
            let outcome = self
                .attempt(&target, inputs, failed_before, left, Arc::clone(&observer))
                .await;
            let again = match outcome {
                Ok(outcome) => {
                    changes.extend(outcome.changes.iter().cloned());
                    let again = self.pause(&outcome, started);
                    if again.is_none() {
                        self.conclude(&mut report, outcome, &changes);
                    }
                    again
                }
                Err(error) => {
                    let again = self.pause_after(&error, failed_before, started);
                    if again.is_none() {
                        report.fail(error.to_string());
                    }
                    again
                }
            };
            let Some((reason, pause)) = again else { break };
            retrying(&reason);
            failed_before += 1;
            tokio::select! {
                () = time::sleep(pause) => {}
                () = self.cancel.cancelled() => {
                    report.stop(format!("the last attempt had failed: {reason}"));
                    break;
                }
            }
        }
        report.took(started.elapsed());
        report
    }

    fn target(&self, inputs: &Inputs) -> ComponentTarget {
        let target = self.cluster.component(&self.owner, &inputs.name);
        match &self.siblings {
            None => target,
            Some(set) => target.with_siblings(Arc::new(RenderedSiblings::new(
                self.reconciler.clone(),
                self.cluster.clone(),
                self.owner.clone(),
                Arc::clone(set),
            ))),
        }
    }

    async fn attempt(
        &self,
        target: &ComponentTarget,
        inputs: &Inputs,
        failed_before: u32,
        left: Duration,
        observer: Arc<dyn Observer>,
    ) -> Result<Outcome, Error> {
        let work = self.work(inputs, left);
        let take_over = matches!(work, Work::Apply { adopt: true, .. });
        // Above whatever was there last, so that the attempt counts as the newest.
        let fence = match self.mode {
            Mode::Live => {
                let record = tokio::select! {
                    record = target.record_of(take_over) => record?,
                    () = self.cancel.cancelled() => None,
                };
                record.map_or(Fence(1), |record| record.fence.next())
            }
            Mode::DryRun => Fence(1),
        };
        let cancel = self.cancel.clone();
        let guard = move |_longest: Duration| {
            if cancel.is_cancelled() {
                Err(Stop::Cancelled)
            } else {
                Ok(())
            }
        };
        let task = Task {
            target: target.clone(),
            work,
            attempt: Attempt {
                fence,
                guard: Arc::new(guard),
            },
            ledger: Arc::new(TargetLedger::new(target.clone()).with_agreement(self.agreement.clone())),
        };
        let options = RunOptions {
            mode: self.mode,
            retry: RETRY,
            failed_before,
            jitter: 0.0,
            observer,
            cancel: self.cancel.clone(),
        };
        Ok(self.reconciler.run(task, options).await)
    }

    fn work(&self, inputs: &Inputs, left: Duration) -> Work {
        match self.intent {
            Intent::Apply {
                adopt,
                on_conflict,
                wait,
            } => Work::Apply {
                source: inputs.source.clone(),
                format: None,
                values: inputs.values.clone(),
                namespace: inputs.namespace.clone(),
                force_namespace: false,
                adopt,
                on_conflict,
                readiness: inputs.readiness.clone(),
                ready_within: wait.then_some(left),
                hooks: inputs.hooks,
                hooks_within: left,
                proxies: None,
            },
            Intent::Delete {
                wait,
                strip_finalizers,
            } => Work::Uninstall {
                gone_within: left,
                hooks: inputs.hooks,
                kind: DeleteKind::System,
                blocking: wait,
                strip_finalizers,
            },
        }
    }

    /// Whether there is another attempt: why, and after how long.
    fn pause(&self, outcome: &Outcome, started: Instant) -> Option<(String, Duration)> {
        // What was not ready in time, or failed for good, has had its time.
        if self.mode == Mode::DryRun || outcome.not_ready || self.cancel.is_cancelled() {
            return None;
        }
        let (reason, at) = match &outcome.end {
            End::Retry { reason, at } => (reason, at),
            End::Waiting { reason, until } => (reason, until),
            _ => return None,
        };
        let pause = Duration::try_from(at.duration_since(time::now())).unwrap_or_default();
        self.fits(pause, started).then(|| (reason.clone(), pause))
    }

    /// The same, of an attempt that did not get as far as its pipeline.
    fn pause_after(&self, error: &Error, failed_before: u32, started: Instant) -> Option<(String, Duration)> {
        let pause = match error.class() {
            ErrorClass::Transient | ErrorClass::Unreachable => RETRY.backoff.delay(failed_before, 0.0),
            ErrorClass::RateLimited(pause) => pause,
            _ => return None,
        };
        (!self.cancel.is_cancelled() && self.fits(pause, started)).then(|| (error.to_string(), pause))
    }

    fn fits(&self, pause: Duration, started: Instant) -> bool {
        started.elapsed() + pause < self.timeout
    }

    fn conclude(&self, report: &mut ComponentReport, outcome: Outcome, changes: &[ObjectChange]) {
        report.revision = outcome.revision;
        let planned = self.mode == Mode::DryRun;
        report.count(outcome.plan.as_ref(), changes, planned);
        report.diffs.clone_from(&outcome.diffs);
        match outcome.end {
            End::Succeeded | End::Planned => {
                report.state = match self.intent {
                    _ if planned => State::Planned,
                    Intent::Apply { wait: true, .. } => State::Ready,
                    Intent::Apply { wait: false, .. } => State::Applied,
                    Intent::Delete { wait: true, .. } => State::Deleted,
                    Intent::Delete { wait: false, .. } => State::Deleting,
                };
            }
            End::Failed { reason }
            | End::Missing { reason }
            | End::Retry { reason, .. }
            | End::Waiting { reason, .. } => {
                report.fail(reason);
            }
            End::NeedsConsent(needed) => report.fail(format!(
                "{needed}; nothing was done: if that is meant, run it again with --consent={}, or --consent for whatever \
                 would be deleted",
                needed.digest()
            )),
            End::Stopped(_) => report.stop("it was interrupted".to_owned()),
            End::Fenced { .. } => {
                report.fail("somebody else began to work on it meanwhile: run the command again".to_owned());
            }
        }
    }
}
