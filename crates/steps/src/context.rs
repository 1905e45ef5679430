//! What a running step sees.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;

use crate::graph::Graph;
use crate::observer::Announcer;
use crate::slot::AnyArc;
use crate::{Cancel, Change, Failure, Mode, Name, Runtime, Slot};

/// The most progress lines that a timeline entry keeps; older ones are dropped and counted.
pub const MAX_PROGRESS_LINES: usize = 200;

/// The longest progress line kept, in bytes; the rest is cut off.
pub const MAX_PROGRESS_LINE_BYTES: usize = 4096;

/// What a running step sees: the snapshot, the slots it declared, time, and a way to report progress. A cheap
/// handle; clone it freely.
pub struct Context<S>(Arc<Inner<S>>);

struct Inner<S> {
    pass: Arc<PassScope<S>>,
    node: usize,
    log: Mutex<StepLog>,
}

/// What all steps of one pass share.
pub(crate) struct PassScope<S> {
    pub(crate) graph: Arc<Graph<S>>,
    pub(crate) state: Arc<S>,
    /// One cell per slot of the graph.
    pub(crate) slots: Vec<OnceLock<AnyArc>>,
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) announcer: Announcer,
    pub(crate) cancel: Arc<dyn Cancel>,
    pub(crate) mode: Mode,
    pub(crate) attempt: u32,
    /// Verbs that no step may act on, each with the reason.
    pub(crate) forbidden: Vec<(String, String)>,
    /// The changes that each step may make, and the reason, if nothing else may be done.
    pub(crate) approved: Option<Approval>,
}

/// Changes by step, and the reason why they alone may be made.
pub(crate) type Approval = (Vec<(String, Vec<Change>)>, String);

/// What a step has left behind for its timeline entry.
#[derive(Debug, Default)]
pub(crate) struct StepLog {
    pub(crate) lines: Vec<ProgressLine>,
    pub(crate) dropped: usize,
    pub(crate) changes: Vec<Change>,
    pub(crate) due: Option<Due>,
}

/// A moment at which a step wants another pass although all is well, such as the renewal of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    /// When.
    pub at: Timestamp,
    /// What is due then.
    pub reason: String,
}

/// One line that a step reported while it ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgressLine {
    /// When.
    pub at: Timestamp,
    /// What.
    pub text: String,
}

/// A handle to report what a step is doing. Lines reach the observer at once and are kept, bounded, in the
/// step's timeline entry. It does not know the snapshot's type, so code below can take it.
#[derive(Clone)]
pub struct Progress(Arc<dyn Sink>);

trait Sink: Send + Sync {
    fn line(&self, text: String);
}

// === impl Context ===

impl<S: Send + Sync + 'static> Context<S> {
    pub(crate) fn new(pass: Arc<PassScope<S>>, node: usize) -> Self {
        Self(Arc::new(Inner {
            pass,
            node,
            log: Mutex::default(),
        }))
    }

    /// The snapshot that the pass gathered. Nobody changes it during the pass.
    pub fn state(&self) -> &S {
        &self.0.pass.state
    }

    /// The snapshot, shared.
    pub fn shared_state(&self) -> Arc<S> {
        Arc::clone(&self.0.pass.state)
    }

    /// The step's own name.
    pub fn step(&self) -> &Name {
        &self.0.pass.graph.nodes[self.0.node].name
    }

    /// The value of a slot that the step declared as needed.
    ///
    /// # Errors
    /// A [bug](crate::FailureClass::Bug) when the step did not declare it, or only as optional and it is empty.
    pub fn get<T: Send + Sync + 'static>(&self, slot: Slot<T>) -> Result<Arc<T>, Failure> {
        self.find(slot)?.ok_or_else(|| {
            Failure::bug(format!(
                "step {} reads the optional slot {}, which is empty",
                self.step(),
                slot.name()
            ))
        })
    }

    /// The value of a slot that the step declared, or `None` when it is optional and empty.
    ///
    /// # Errors
    /// A [bug](crate::FailureClass::Bug) when the step did not declare it.
    pub fn find<T: Send + Sync + 'static>(&self, slot: Slot<T>) -> Result<Option<Arc<T>>, Failure> {
        let id = slot.id();
        let node = &self.0.pass.graph.nodes[self.0.node];
        let need = node
            .needs
            .iter()
            .find(|need| need.id.name == id.name && need.id.type_id == id.type_id);
        let Some(need) = need else {
            return Err(Failure::bug(format!(
                "step {} reads slot {id:?} without declaring it",
                node.name
            )));
        };
        let value = self.0.pass.slots.get(need.slot).and_then(OnceLock::get);
        Ok(value.and_then(|value| Arc::clone(value).downcast::<T>().ok()))
    }

    /// A handle to report progress.
    pub fn progress(&self) -> Progress {
        Progress(Arc::clone(&self.0) as Arc<dyn Sink>)
    }

    /// The wall clock.
    pub fn now(&self) -> Timestamp {
        self.0.pass.runtime.now()
    }

    /// Time since any fixed point, for measuring.
    pub fn elapsed(&self) -> Duration {
        self.0.pass.runtime.elapsed()
    }

    /// A timer.
    pub fn sleep(&self, delay: Duration) -> BoxFuture<'static, ()> {
        self.0.pass.runtime.sleep(delay)
    }

    /// Asks for a pass at this very moment, however the step ends: a deadline that is exact, such as the renewal of a
    /// token. Of several the earliest counts.
    pub fn due(&self, at: Timestamp, reason: impl Into<String>) {
        let mut log = self.log();
        if log.due.as_ref().is_none_or(|due| at < due.at) {
            log.due = Some(Due {
                at,
                reason: reason.into(),
            });
        }
    }

    /// Whether the pass is to end. A long step asks at each point where it can stop cleanly, and then returns
    /// [`Outcome::stop`](crate::Outcome::stop).
    pub fn is_cancelled(&self) -> bool {
        self.0.pass.cancel.is_cancelled()
    }

    /// Ends when the pass is to end.
    pub fn cancelled(&self) -> BoxFuture<'static, ()> {
        self.0.pass.cancel.cancelled()
    }

    /// Whether this pass writes or only plans.
    pub fn mode(&self) -> Mode {
        self.0.pass.mode
    }

    /// How many passes in a row have failed before this one.
    pub fn attempt(&self) -> u32 {
        self.0.pass.attempt
    }

    pub(crate) fn planned(&self, changes: Vec<Change>) {
        self.log().changes = changes;
    }

    pub(crate) fn take_log(&self) -> StepLog {
        std::mem::take(&mut *self.log())
    }

    fn log(&self) -> std::sync::MutexGuard<'_, StepLog> {
        self.0.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S> Clone for Context<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S> fmt::Debug for Context<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.0.pass.graph.nodes[self.0.node].name;
        f.debug_struct("Context")
            .field("step", name)
            .finish_non_exhaustive()
    }
}

// === impl Progress ===

impl Progress {
    /// Reports one line, such as `applied 40 of 200 objects`. It must hold no secret.
    pub fn line(&self, text: impl Into<String>) {
        self.0.line(text.into());
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Progress")
    }
}

impl<S: Send + Sync> Sink for Inner<S> {
    fn line(&self, mut text: String) {
        if text.len() > MAX_PROGRESS_LINE_BYTES {
            text.truncate(text.floor_char_boundary(MAX_PROGRESS_LINE_BYTES));
            text.push('…');
        }
        let graph = &self.pass.graph;
        let name = &graph.nodes[self.node].name;
        self.pass
            .announcer
            .tell(|observer| observer.step_progress(&graph.name, name, &text));
        let line = ProgressLine {
            at: self.pass.runtime.now(),
            text,
        };
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        if log.lines.len() == MAX_PROGRESS_LINES {
            log.lines.remove(0);
            log.dropped += 1;
        }
        log.lines.push(line);
    }
}
