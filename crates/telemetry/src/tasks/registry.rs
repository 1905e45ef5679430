//! Which tasks run.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::AbortHandle;

use crate::time;

/// A task that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningTask {
    /// Its name.
    pub name: Cow<'static, str>,
    /// For how long it has been running.
    pub age: Duration,
}

#[derive(Default)]
pub(super) struct Registry(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    next: u64,
    tasks: BTreeMap<u64, Entry>,
}

struct Entry {
    name: Cow<'static, str>,
    since: Duration,
    abort: Option<AbortHandle>,
}

/// The task is registered as long as this lives.
pub(super) struct Registration {
    registry: Arc<Registry>,
    id: u64,
}

impl Registry {
    pub(super) fn enter(self: &Arc<Self>, name: Cow<'static, str>) -> Registration {
        let mut entries = self.lock();
        let id = entries.next;
        entries.next += 1;
        entries.tasks.insert(
            id,
            Entry {
                name,
                since: time::elapsed(),
                abort: None,
            },
        );
        Registration {
            registry: Arc::clone(self),
            id,
        }
    }

    /// The task may have ended already.
    pub(super) fn started(&self, id: u64, abort: AbortHandle) {
        if let Some(entry) = self.lock().tasks.get_mut(&id) {
            entry.abort = Some(abort);
        }
    }

    pub(super) fn running(&self) -> Vec<RunningTask> {
        let now = time::elapsed();
        let entries = self.lock();
        let age = |entry: &Entry| now.saturating_sub(entry.since);
        entries
            .tasks
            .values()
            .map(|entry| RunningTask {
                name: entry.name.clone(),
                age: age(entry),
            })
            .collect()
    }

    /// Aborts all and says their names. A blocking call cannot be aborted, but is named too.
    pub(super) fn abort_all(&self) -> Vec<String> {
        let entries = self.lock();
        for abort in entries.tasks.values().filter_map(|entry| entry.abort.as_ref()) {
            abort.abort();
        }
        entries
            .tasks
            .values()
            .map(|entry| entry.name.to_string())
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Registration {
    pub(super) fn id(&self) -> u64 {
        self.id
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.registry.lock().tasks.remove(&self.id);
    }
}
