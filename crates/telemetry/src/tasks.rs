//! Supervised tasks. Nothing else in the product starts one.

mod registry;
mod service;

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{Instrument, Span};

pub use registry::RunningTask;
pub use service::Restart;

use crate::{BoxError, chain};
use registry::Registry;

/// How many blocking calls may run at once when nothing else is said. Tokio itself allows 512 threads, each with a
/// stack of its own.
pub const DEFAULT_BLOCKING_PERMITS: usize = 32;

/// How long aborted tasks have to go away at shutdown. Only one that never yields needs longer.
const ABORT_GRACE: Duration = Duration::from_secs(1);

/// A handle to all supervised tasks of a process (or of a test). Clones are cheap and mean the same tasks.
#[derive(Clone)]
pub struct Tasks(Arc<Inner>);

struct Inner {
    tracker: TaskTracker,
    token: CancellationToken,
    blocking: Arc<Semaphore>,
    registry: Arc<Registry>,
    fatal: Mutex<Option<String>>,
}

/// What a failure or panic of a task means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnError {
    /// It is logged; the rest goes on.
    Log,
    /// The process cannot go on without it: it is logged, and everything is cancelled.
    Shutdown,
}

/// What cancellation does to a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnCancel {
    /// The task looks at its token and ends by itself; shutdown waits for it.
    Wait,
    /// The task is dropped where it stands.
    Abort,
}

/// A task that was started. Dropping it changes nothing; the task runs on.
#[must_use = "drop it on purpose if nobody waits for the task: `drop(tasks.spawn(…))`"]
pub struct Task<T> {
    name: Cow<'static, str>,
    handle: JoinHandle<Result<T, TaskError>>,
}

/// How a task ended without a result.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// It returned an error.
    #[error("task {name} failed")]
    Failed {
        /// The task.
        name: Cow<'static, str>,
        /// The error.
        #[source]
        source: BoxError,
    },
    /// It panicked.
    #[error("task {name} panicked: {message}")]
    Panicked {
        /// The task.
        name: Cow<'static, str>,
        /// The panic's text.
        message: String,
    },
    /// It was dropped because everything was cancelled, or because somebody aborted it.
    #[error("task {name} was cancelled")]
    Cancelled {
        /// The task.
        name: Cow<'static, str>,
    },
}

/// What shutdown came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shutdown {
    /// The tasks that did not end in time and were aborted, by name.
    pub aborted: Vec<String>,
}

// === impl Tasks ===

impl Tasks {
    /// No tasks yet, [`DEFAULT_BLOCKING_PERMITS`] for blocking calls.
    pub fn new() -> Self {
        Self::with_blocking_permits(DEFAULT_BLOCKING_PERMITS)
    }

    /// No tasks yet, at most `permits` (at least 1) blocking calls at once.
    pub fn with_blocking_permits(permits: usize) -> Self {
        Self(Arc::new(Inner {
            tracker: TaskTracker::new(),
            token: CancellationToken::new(),
            blocking: Arc::new(Semaphore::new(permits.clamp(1, Semaphore::MAX_PERMITS))),
            registry: Arc::default(),
            fatal: Mutex::default(),
        }))
    }

    /// Starts a task. It gets a token that says when to end. Its lines carry `task=<name>` and the ids of the span
    /// that is current here.
    pub fn spawn<F, Fut, T, E>(
        &self,
        name: impl Into<Cow<'static, str>>,
        on_error: OnError,
        on_cancel: OnCancel,
        task: F,
    ) -> Task<T>
    where
        F: FnOnce(CancellationToken) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: Into<BoxError> + Send + 'static,
    {
        let name = name.into();
        let tasks = self.clone();
        let token = self.0.token.child_token();
        let registration = self.0.registry.enter(name.clone());
        let id = registration.id();
        let task_name = name.clone();
        let run = async move {
            let _registration = registration;
            let work = {
                let token = token.clone();
                // The closure is called inside, so that its panic is caught too.
                AssertUnwindSafe(async move { task(token).await }).catch_unwind()
            };
            let ended = match on_cancel {
                OnCancel::Wait => Some(work.await),
                OnCancel::Abort => {
                    tokio::select! {
                        biased;
                        ended = work => Some(ended),
                        () = token.cancelled() => None,
                    }
                }
            };
            let name = task_name;
            let result = match ended {
                Some(Ok(Ok(value))) => Ok(value),
                Some(Ok(Err(error))) => Err(TaskError::Failed {
                    name,
                    source: error.into(),
                }),
                Some(Err(panic)) => Err(TaskError::Panicked {
                    name,
                    message: panic_message(&*panic),
                }),
                None => Err(TaskError::Cancelled { name }),
            };
            if let Err(error) = &result {
                tasks.heard(error, on_error);
            }
            result
        };
        let handle = self.0.tracker.spawn(run.instrument(task_span(&name)));
        self.0.registry.started(id, handle.abort_handle());
        Task { name, handle }
    }

    /// Runs a call that blocks on a thread of its own, once one of the permits is free.
    ///
    /// # Errors
    /// [`TaskError::Panicked`] when it panics, [`TaskError::Cancelled`] when the runtime goes away before it starts.
    pub async fn blocking<T, F>(&self, name: impl Into<Cow<'static, str>>, call: F) -> Result<T, TaskError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let name = name.into();
        let Ok(permit) = Arc::clone(&self.0.blocking).acquire_owned().await else {
            return Err(TaskError::Cancelled { name });
        };
        let registration = self.0.registry.enter(name.clone());
        let span = Span::current();
        let handle = self.0.tracker.spawn_blocking(move || {
            let (_permit, _registration) = (permit, registration);
            span.in_scope(|| catch_unwind(AssertUnwindSafe(call)))
        });
        match handle.await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(panic)) => {
                let error = TaskError::Panicked {
                    name,
                    message: panic_message(&*panic),
                };
                self.heard(&error, OnError::Log);
                Err(error)
            }
            Err(_) => Err(TaskError::Cancelled { name }),
        }
    }

    /// A token that is cancelled with everything else. Cancelling it cancels nothing else.
    pub fn token(&self) -> CancellationToken {
        self.0.token.child_token()
    }

    /// Asks every task to end.
    pub fn cancel(&self) {
        self.0.token.cancel();
    }

    /// Whether every task was asked to end.
    pub fn is_cancelled(&self) -> bool {
        self.0.token.is_cancelled()
    }

    /// Ends when every task was asked to end.
    pub async fn cancelled(&self) {
        self.0.token.cancelled().await;
    }

    /// Why everything was cancelled, if a task with [`OnError::Shutdown`] is to blame.
    pub fn fatal(&self) -> Option<String> {
        self.0
            .fatal
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The tasks that run, oldest first.
    pub fn running(&self) -> Vec<RunningTask> {
        self.0.registry.running()
    }

    /// Asks every task to end, waits up to `deadline`, and aborts what is left.
    pub async fn shutdown(&self, deadline: Duration) -> Shutdown {
        self.cancel();
        self.0.tracker.close();
        if tokio::time::timeout(deadline, self.0.tracker.wait())
            .await
            .is_ok()
        {
            return Shutdown::default();
        }
        let aborted = self.0.registry.abort_all();
        tracing::warn!(tasks = aborted.join(", "), deadline = ?deadline, "tasks did not end in time and were aborted");
        // Whatever still runs then never yields; waiting longer would not help.
        let _ = tokio::time::timeout(ABORT_GRACE, self.0.tracker.wait()).await;
        Shutdown { aborted }
    }

    /// Drops every task where it stands, as the end of the process would: none gets to say goodbye.
    pub fn kill(&self) {
        drop(self.0.registry.abort_all());
    }

    fn heard(&self, error: &TaskError, on_error: OnError) {
        let text = chain(error).to_string();
        match (error, on_error) {
            (TaskError::Cancelled { .. }, _) => tracing::debug!("{text}"),
            (_, OnError::Log) => tracing::error!("{text}"),
            (_, OnError::Shutdown) => {
                tracing::error!("{text}; the process cannot go on without it and stops");
                self.0
                    .fatal
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .get_or_insert(text);
                self.cancel();
            }
        }
    }
}

impl Default for Tasks {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tasks")
            .field("running", &self.0.tracker.len())
            .field("cancelled", &self.is_cancelled())
            .finish_non_exhaustive()
    }
}

/// A span for the task. Where the filter wants none, the current one, so that its ids are not lost.
fn task_span(name: &str) -> Span {
    let span = tracing::info_span!("task", task = name);
    if span.is_disabled() { Span::current() } else { span }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without text")
        .to_owned()
}

// === impl Task ===

impl<T> Task<T> {
    /// The task's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it has ended.
    pub fn is_finished(&self) -> bool {
        self.handle.is_finished()
    }

    /// Drops the task where it stands.
    pub fn abort(&self) {
        self.handle.abort();
    }

    /// Waits for its result.
    ///
    /// # Errors
    /// How it ended without one. That was logged already.
    pub async fn join(self) -> Result<T, TaskError> {
        let Self { name, handle } = self;
        match handle.await {
            Ok(result) => result,
            Err(_) => Err(TaskError::Cancelled { name }),
        }
    }
}

impl<T> fmt::Debug for Task<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Task({})", self.name)
    }
}
