//! What is kept of the past, and for how long: by age, by number, failures longer.
//!
//! A deletion of a cluster is soft at first: its record and history stay, its name and secrets are free at once. After a
//! time the rest goes too.

use std::time::Duration;

use async_trait::async_trait;
use evenkeel_core::ClusterId;

use crate::Error;

/// What is kept. Ages count from the end of a run, a state or a life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetentionPolicy {
    /// Runs of a cluster that are kept whatever their number of failures; older ones that ended well go.
    pub runs: u32,
    /// A run that ended well goes after this time.
    pub run_age: Duration,
    /// A run that failed goes after this time.
    pub failed_run_age: Duration,
    /// A state that a cluster was in is forgotten after this time.
    pub history_age: Duration,
    /// Newest configuration versions of a cluster that are kept; older ones go when nothing speaks of them.
    pub configurations: u32,
    /// What is left of a deleted cluster goes after this time.
    pub deleted_cluster_age: Duration,
    /// Entries of the audit log go after this time.
    pub audit_age: Duration,
}

/// A day.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl Default for RetentionPolicy {
    fn default() -> Self {
        Self {
            runs: 150,
            run_age: 4 * DAY,
            failed_run_age: 30 * DAY,
            history_age: 30 * DAY,
            configurations: 50,
            deleted_cluster_age: 365 * DAY,
            audit_age: 400 * DAY,
        }
    }
}

/// What one step has removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Runs, with their operations and logs.
    pub runs: u64,
    /// Past states.
    pub states: u64,
    /// Configuration versions.
    pub configurations: u64,
    /// Kubeconfigs that no version names.
    pub kubeconfigs: u64,
    /// Deleted clusters.
    pub clusters: u64,
    /// Entries of the audit log.
    pub audit: u64,
    /// Where the next step begins; none when everything was looked at.
    pub next: Option<ClusterId>,
}

impl Cleaned {
    /// Adds what the next step has removed.
    pub fn and(&mut self, step: Self) {
        self.runs += step.runs;
        self.states += step.states;
        self.configurations += step.configurations;
        self.kubeconfigs += step.kubeconfigs;
        self.clusters += step.clusters;
        self.audit += step.audit;
        self.next = step.next;
    }

    /// Whether anything was removed.
    pub fn is_nothing(&self) -> bool {
        let sum =
            self.runs + self.states + self.configurations + self.kubeconfigs + self.clusters + self.audit;
        sum == 0
    }
}

/// Forgetting.
#[async_trait]
pub trait Retention: Send + Sync {
    /// Looks at some clusters after `after` and removes what the policy does not keep, in short transactions that wait for
    /// nobody. What never goes: a run that has not ended, the newest run of a cluster, the newest configuration, and any
    /// that a kept run, a component or the status speaks of.
    ///
    /// # Errors
    /// [`Error::Database`].
    async fn clean(&self, policy: &RetentionPolicy, after: Option<&ClusterId>) -> Result<Cleaned, Error>;

    /// Removes entries at the beginning of the audit log, some at a time; answers how many. What is left can still be
    /// verified.
    ///
    /// # Errors
    /// [`Error::Database`].
    async fn clean_audit(&self, policy: &RetentionPolicy) -> Result<u64, Error>;
}
