//! The inventory: all that is known of clusters, what each should run, how it is, and the queue of work.
//!
//! ```text
//!   server   fleet                    traits by subject: Clusters, Configurations, Statuses, Reconciliations,
//!      \      /                       Queue, Artifacts, Settings; together: Store
//!    dyn Store ──── Signals           what changed, coalesced: nobody polls
//!        │
//!   SqliteStore     (Postgres next)   every SQL statement of the product, one folder per database
//!        │
//!   Cipher ── Keyring                 columns with secrets are encrypted before they reach a statement
//! ```
//!
//! Rules that hold everywhere:
//! - one call, one transaction; no call of a store waits for anything but the database;
//! - history is never changed: a cluster's present is one row, what was is appended;
//! - a row that cannot be read fails alone: lists return the others and say which one failed;
//! - SQL is static text with bound parameters;
//! - time is the store's [`Clock`](evenkeel_core::Clock), in whole milliseconds.

mod archives;
mod canonical;
mod cipher;
mod clusters;
mod configurations;
mod error;
mod keys;
mod page;
mod queue;
mod reconciliations;
mod renders;
mod revisions;
mod settings;
mod signals;
mod sqlite;
mod status;
mod store;

pub use archives::{ARCHIVE_BYTES_MAX, Archives};
pub use clusters::{
    Change, Cluster, ClusterFilter, Clusters, Deletion, DeletionOutcome, Identity, PutCluster, PutOutcome,
};
pub use configurations::{Configuration, ConfigurationSummary, Configurations};
pub use error::Error;
pub use keys::{KeyId, KeySource, Keyring};
pub use page::{Cursor, PAGE_MAX, Page, PageRequest, RowFailure};
pub use queue::{
    ClaimRequest, ClaimedOperation, Claims, Heartbeat, HeartbeatOutcome, Level, Queue, Report, Settled,
    StopReason, TIMELINE_ENTRIES_MAX, TIMELINE_MESSAGE_BYTES_MAX, TimelineEntry,
};
pub use reconciliations::{
    Begun, Finish, NewOperation, NewReconciliation, OPERATIONS_MAX, Operation, Reconciliation,
    Reconciliations,
};
pub use renders::{RENDER_BYTES_MAX, RENDERS_KEPT, Renders};
pub use revisions::Revisions;
pub use settings::{Setting, SettingScope, Settings};
pub use signals::{Signal, Signals, Subscription};
pub use sqlite::{Location, OpenOptions, SqliteStore, Synchronous};
pub use status::{
    CheckNote, ClusterStatus, ComponentOperation, ComponentStatus, Due, DueBatch, DueCluster, DueStamp,
    FailureCount, PastStatus, Recorded, StatusChange, Statuses,
};
pub use store::Store;
