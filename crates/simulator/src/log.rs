//! Who wrote what, as a server's request log has it.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// A request that changed something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedWrite {
    /// The verb of Kubernetes authorization: `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verb: &'static str,
    /// What was written: `deployments.apps`, `pods/status`.
    pub resource: String,
    /// The namespace; empty for cluster-wide kinds.
    pub namespace: String,
    /// The object's name; empty where the path names none.
    pub name: String,
    /// How the client calls itself.
    pub user_agent: String,
    /// The cluster's resource version afterwards; those of later writes are larger.
    pub revision: u64,
}

/// The last writes of a cluster, if they are kept.
#[derive(Debug, Default)]
pub(crate) struct WriteLog(Mutex<(usize, VecDeque<LoggedWrite>)>);

impl WriteLog {
    pub(crate) fn keep(&self, writes: usize) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0 = writes;
    }

    pub(crate) fn note(&self, write: impl FnOnce() -> LoggedWrite) {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (kept, writes) = &mut *log;
        if *kept == 0 {
            return;
        }
        if writes.len() >= *kept {
            writes.pop_front();
        }
        writes.push_back(write());
    }

    pub(crate) fn all(&self) -> Vec<LoggedWrite> {
        let log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        log.1.iter().cloned().collect()
    }
}
