//! The inventory: all that is known of clusters, what each should run, how it is, and the queue of work.
//!
//! ```text
//!   server   fleet                    traits by subject: Clusters, Configurations, Statuses, Reconciliations, Queue,
//!      \      /                       Archives, Renders, Settings, Processes, Keys, Audit, …; together: Store
//!    dyn Store ──── Signals           what changed, coalesced: nobody polls
//!        │
//!     SqlStore                        every SQL statement of the product; what differs stands side by side
//!      │    │
//!   SQLite PostgreSQL                 one file and one process; one server and any number of processes
//!
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
mod audit;
mod canonical;
mod change_log;
mod cipher;
mod clusters;
mod configurations;
mod consents;
mod error;
mod keys;
#[cfg(feature = "memory")]
mod memory;
mod page;
mod postgres;
mod processes;
mod queue;
mod reconciliations;
mod renders;
mod retention;
mod revisions;
mod rotation;
mod rules;
mod settings;
mod signals;
mod sql;
mod sqlite;
mod status;
mod store;

pub use archives::{ARCHIVE_BYTES_MAX, Archives};
pub use audit::{Audit, AuditAction, AuditEntry, AuditFault, AuditFilter, AuditVerdict};
pub use change_log::{ChangeFilter, ChangeLog, RecordedChange};
pub use clusters::{
    Change, Cluster, ClusterFilter, Clusters, Deletion, DeletionOutcome, Identity, PutCluster, PutOutcome,
};
pub use configurations::{Configuration, ConfigurationSummary, Configurations};
pub use consents::{Consent, ConsentKey, Consents, DELETIONS_KEPT, Question};
pub use error::Error;
pub use keys::{KeyId, KeySource, Keyring, KeyringFile, RingKey};
#[cfg(feature = "memory")]
pub use memory::{Link, MemoryDatabase, MemoryStore, PerfectLink};
pub use page::{Cursor, PAGE_MAX, Page, PageRequest, RowFailure};
pub use processes::{Chore, Instance, Processes, Role, SeenInstance, UnknownRole};
pub use queue::{
    ClaimLimits, ClaimRequest, ClaimedOperation, Claims, Heartbeat, HeartbeatOutcome, Level, Queue, Report,
    Settled, StopReason, TIMELINE_ENTRIES_MAX, TIMELINE_MESSAGE_BYTES_MAX, TimelineEntry,
};
pub use reconciliations::{
    Begun, Failing, Finish, NewOperation, NewReconciliation, OPERATIONS_MAX, Operation, Reconciliation,
    Reconciliations,
};
pub use renders::{RENDER_BYTES_MAX, RENDERS_KEPT, Renders};
pub use retention::{Cleaned, Retention, RetentionPolicy};
pub use revisions::Revisions;
pub use rotation::{
    KEYS_REFRESH, KeyAgreement, KeyState, KeyStatus, Keys, Reencrypted, RotationPlace, reencrypt_all,
};
pub use settings::{
    SETTINGS, Setting, SettingDefinition, SettingKind, SettingLayer, SettingLayers, SettingScope, Settings,
};
pub use signals::{Signal, Signals, Subscription};
pub use sql::{
    Location, OpenOptions, POSTGRES_CONNECTIONS, PostgresOptions, SqlStore, Synchronous, TimeSource,
};
pub use status::{
    Asked, CheckNote, ClusterStatus, ComponentOperation, ComponentStatus, Due, DueBatch, DueCluster,
    DueStamp, FailureCount, PastStatus, Recorded, RowMeasures, StatusChange, Statuses,
};
pub use store::Store;
