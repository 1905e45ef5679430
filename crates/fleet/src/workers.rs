//! Who does operations: claims them, holds their leases, reports what came of them.
//!
//! ```text
//! OperationReady, or the next moment ──▶ claim up to the free slots ──▶ an operation each, in its own task
//!                                                                            │ asks before each write
//! heartbeat: one renewal for all, also at OperationStop ──────────────▶ Hold (lease, stop)
//! progress: what operations say, told together ◀───────────────────────── Timeline
//! ```

mod hold;
mod operation;
mod outcome;
mod timeline;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use evenkeel_core::{Fence, OperationId, OperationState};
use evenkeel_inventory::{ClaimRequest, ClaimedOperation, Report, Signal};
use evenkeel_telemetry::{CancellationToken, OnCancel, OnError};
use tokio::sync::Notify;
use tracing::Instrument as _;

use crate::fleet::Inner;
use crate::{bookkeeper, pause};
pub(crate) use hold::Hold;
pub(crate) use operation::work_at_target;
pub(crate) use timeline::Timeline;

/// The longest without asking the inventory, should a signal ever be lost.
const BACKSTOP: Duration = Duration::from_secs(30);
/// After the inventory failed, before it is asked again.
const TROUBLE_PAUSE: Duration = Duration::from_secs(1);
/// What operations say is gathered for this long and told together.
const PROGRESS_EVERY: Duration = Duration::from_millis(250);

/// The operations that this process works on.
#[derive(Default)]
pub(crate) struct Workers {
    running: Mutex<BTreeMap<OperationId, Arc<Work>>>,
    ended: Notify,
    spoke: Arc<Notify>,
}

/// One operation that is being worked on.
struct Work {
    hold: Arc<Hold>,
    timeline: Arc<Timeline>,
}

impl Workers {
    fn running(&self) -> MutexGuard<'_, BTreeMap<OperationId, Arc<Work>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it works on nothing.
    pub(crate) fn is_idle(&self) -> bool {
        self.running().is_empty()
    }

    fn held(&self) -> Vec<(OperationId, Arc<Work>)> {
        self.running()
            .iter()
            .map(|(id, work)| (id.clone(), Arc::clone(work)))
            .collect()
    }
}

/// Frees an operation's slot, however its task ends.
struct Slot {
    inner: Arc<Inner>,
    operation: OperationId,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.inner.workers.running().remove(&self.operation);
        self.inner.workers.ended.notify_one();
    }
}

/// Claims operations as they become ready.
///
/// # Errors
/// None; what the inventory fails with is tried again.
pub(crate) async fn serve(
    inner: Arc<Inner>,
    stop: CancellationToken,
) -> Result<(), std::convert::Infallible> {
    // Subscribed before the first claim, so that no change falls between the two.
    let mut ready = inner.store.signals().subscribe(Signal::OperationReady);
    while !stop.is_cancelled() {
        let free = inner.settings.slots.saturating_sub(inner.workers.running().len());
        let wait = if free == 0 {
            BACKSTOP
        } else {
            claim(&inner, free).await
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(()),
            more = ready.changed() => if !more { return Ok(()) },
            () = inner.workers.ended.notified() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
    Ok(())
}

/// Claims up to `free` operations and starts them. Answers when to claim again if nothing happens.
async fn claim(inner: &Arc<Inner>, free: usize) -> Duration {
    let request = ClaimRequest {
        worker: inner.settings.worker.clone(),
        limit: u32::try_from(free).unwrap_or(u32::MAX),
        lease: inner.settings.lease,
    };
    let claims = match inner.store.claim_within(&request, &inner.settings.limits).await {
        Ok(claims) => claims,
        Err(error) => {
            tracing::error!(%error, "no operations could be claimed");
            return TROUBLE_PAUSE;
        }
    };
    for settled in &claims.settled {
        bookkeeper::settled(inner, settled).await;
    }
    for operation in claims.operations {
        start(inner, operation);
    }
    match claims.next_at {
        Some(next) => pause::until(&*inner.clock, next).min(BACKSTOP),
        None => BACKSTOP,
    }
}

fn start(inner: &Arc<Inner>, operation: ClaimedOperation) {
    let timeline = Arc::new(Timeline::new(
        Arc::clone(&inner.clock),
        Arc::clone(&inner.workers.spoke),
    ));
    let hold = Arc::new(Hold::new(
        &operation.id,
        operation.lease,
        Arc::clone(&inner.clock),
    ));
    let work = Arc::new(Work {
        hold: Arc::clone(&hold),
        timeline: Arc::clone(&timeline),
    });
    inner.workers.running().insert(operation.id.clone(), work);
    let slot = Slot {
        inner: Arc::clone(inner),
        operation: operation.id.clone(),
    };
    let tasks = inner.tasks.clone();
    let inner = Arc::clone(inner);
    let task = async move |ending| {
        let _slot = slot;
        // Made inside the task, so that it carries the task's name and not that of whoever started it.
        let span = tracing::info_span!(
            "operation",
            cluster = tracing::field::Empty,
            reconciliation_id = %operation.reconciliation,
            operation_id = %operation.id,
            component = operation.component.as_str(),
            request_id = operation.request_id,
        );
        operation::run(&inner, operation, &hold, &timeline, ending)
            .instrument(span)
            .await;
        Ok::<_, std::convert::Infallible>(())
    };
    drop(tasks.spawn("operation", OnError::Log, OnCancel::Wait, task));
}

/// Renews the leases of all operations together, and hears which of them should stop.
///
/// # Errors
/// None; what the inventory fails with is tried again, and leases run out meanwhile.
pub(crate) async fn heartbeat(
    inner: Arc<Inner>,
    stop: CancellationToken,
) -> Result<(), std::convert::Infallible> {
    let mut asked = inner.store.signals().subscribe(Signal::OperationStop);
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            more = asked.changed() => if !more { return Ok(()) },
            () = tokio::time::sleep(inner.settings.heartbeat) => {}
        }
        renew(&inner).await;
    }
    // Operations need their leases until they have ended and said so.
    while !inner.workers.running().is_empty() {
        tokio::select! {
            biased;
            () = inner.workers.ended.notified() => {}
            () = tokio::time::sleep(inner.settings.heartbeat) => renew(&inner).await,
        }
    }
    Ok(())
}

async fn renew(inner: &Inner) {
    let held = inner.workers.held();
    let operations: Vec<(OperationId, Fence)> = held
        .iter()
        .map(|(id, work)| (id.clone(), work.hold.fence()))
        .collect();
    if operations.is_empty() {
        return;
    }
    let answers = match inner.store.heartbeat(&operations, inner.settings.lease).await {
        Ok(answers) => answers,
        Err(error) => {
            tracing::error!(%error, operations = operations.len(), "leases could not be renewed");
            return;
        }
    };
    for (answer, (id, work)) in answers.into_iter().zip(held) {
        if work.hold.heard(&answer.outcome) {
            tracing::warn!(operation_id = %id, "the lease was lost");
        }
    }
}

/// Tells the inventory what operations say while they run.
///
/// # Errors
/// None; what is not told now is told with the next report.
pub(crate) async fn tell_progress(
    inner: Arc<Inner>,
    stop: CancellationToken,
) -> Result<(), std::convert::Infallible> {
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(()),
            () = inner.workers.spoke.notified() => {}
        }
        tokio::time::sleep(PROGRESS_EVERY).await;
        let mut told = Vec::new();
        let mut reports = Vec::new();
        for (operation, work) in inner.workers.held() {
            let timeline = work.timeline.take();
            if !timeline.is_empty() {
                reports.push(Report {
                    operation,
                    fence: work.hold.fence(),
                    state: OperationState::Running,
                    changes: Vec::new(),
                    timeline: timeline.clone(),
                });
                told.push((work, timeline));
            }
        }
        if reports.is_empty() {
            continue;
        }
        if let Err(error) = inner.store.report_all(reports).await {
            tracing::warn!(%error, "progress could not be told");
            for (work, timeline) in told {
                work.timeline.put_back(timeline);
            }
        }
    }
}

/// Hands final reports in, many at once.
///
/// # Errors
/// None; each answer goes to whoever reported.
pub(crate) async fn write_reports(
    inner: Arc<Inner>,
    stop: CancellationToken,
) -> Result<(), std::convert::Infallible> {
    let write = |reports: Vec<Report>| {
        let store = Arc::clone(&inner.store);
        async move {
            let count = reports.len();
            match store.report_all(reports.clone()).await {
                Ok(answers) if answers.len() == count => answers,
                // An error for all is given to nobody: each is tried alone, and hears its own.
                _ => {
                    let mut answers = Vec::with_capacity(count);
                    for report in reports {
                        answers.push(store.report(report).await);
                    }
                    answers
                }
            }
        }
    };
    inner.reports.serve(stop, write).await;
    Ok(())
}
