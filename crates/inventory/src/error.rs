//! What can go wrong.

use std::fmt::Display;
use std::path::PathBuf;

use evenkeel_core::{
    ClusterId, ClusterName, ComponentName, ConfigurationVersion, Digest, Fence, OperationId, ReconciliationId,
};

use crate::KeyId;

/// What the inventory refuses or cannot do. No message holds the content of a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A specification or name that the domain refuses.
    #[error(transparent)]
    Invalid(evenkeel_core::Error),
    /// A change of state that is not in the table.
    #[error(transparent)]
    Refused(evenkeel_core::Error),
    /// There is no such thing.
    #[error("{what} {id:?} does not exist")]
    NotFound {
        /// What was looked for.
        what: &'static str,
        /// Its name or id.
        id: String,
    },
    /// Another live cluster has this name.
    #[error("the name {name} belongs to cluster {owner}: delete that one first or take another name")]
    NameTaken {
        /// The name.
        name: ClusterName,
        /// Who has it.
        owner: ClusterId,
    },
    /// A cluster's name cannot change.
    #[error("cluster {cluster} is named {name}, which cannot change: delete it and register the new name")]
    NameImmutable {
        /// The cluster.
        cluster: ClusterId,
        /// Its name.
        name: ClusterName,
    },
    /// The id names a cluster that was deleted.
    #[error("cluster id {0} belonged to a cluster that was deleted: an id is used once")]
    IdUsed(ClusterId),
    /// The cluster is to be deleted and takes no changes.
    #[error("cluster {0} is being deleted and takes no changes")]
    BeingDeleted(ClusterId),
    /// The newest version is not the expected one.
    #[error(
        "expected configuration version {expected}, found {found}: read the cluster again and repeat the change"
    )]
    VersionMismatch {
        /// The version the caller knew.
        expected: ConfigurationVersion,
        /// The newest.
        found: ConfigurationVersion,
    },
    /// A configuration names an archive that was not uploaded.
    #[error("component {component}: archive {digest} is not there: upload it first")]
    ArchiveUnknown {
        /// The component.
        component: ComponentName,
        /// The archive.
        digest: Digest,
    },
    /// A cluster has a live reconciliation.
    #[error("reconciliation {running} runs on its cluster")]
    ReconciliationRunning {
        /// The live one.
        running: ReconciliationId,
    },
    /// Somebody acted on the cluster meanwhile.
    #[error("cluster {0} changed since it was looked at: look again")]
    Outdated(ClusterId),
    /// A plan of operations that cannot be carried out.
    #[error("the operations of a reconciliation of cluster {cluster} are not valid: {reason}")]
    Plan {
        /// The cluster.
        cluster: ClusterId,
        /// What is wrong with it.
        reason: String,
    },
    /// A run cannot end as long as operations of it are not final.
    #[error("reconciliation {reconciliation} has {open} operations that are not final")]
    OperationsOpen {
        /// The run.
        reconciliation: ReconciliationId,
        /// How many.
        open: u32,
    },
    /// The attempt that speaks no longer holds the operation.
    #[error(
        "operation {operation} is no longer held under fence {fence} (now {current}): stop, write nothing more"
    )]
    LeaseLost {
        /// The operation.
        operation: OperationId,
        /// The fence of the attempt that speaks.
        fence: Fence,
        /// The newest fence of the operation.
        current: Fence,
    },
    /// A setting that there is not, or a value that it cannot have.
    #[error("setting {key}: {problem}")]
    Setting {
        /// Its name.
        key: String,
        /// What is wrong, and what was expected.
        problem: String,
    },
    /// A text with a NUL character, which no database keeps.
    #[error("{what} holds a NUL character: remove it")]
    NulCharacter {
        /// Which text.
        what: &'static str,
    },
    /// Something is larger than its bound.
    #[error("{what} has {size} bytes, at most {max} are accepted")]
    TooLarge {
        /// What.
        what: &'static str,
        /// Its size in bytes.
        size: usize,
        /// The bound in bytes.
        max: usize,
    },
    /// A row that cannot be read: damaged, moved or written by something else. Only this row is concerned.
    #[error("{table}.{column} of row {row:?} cannot be read: {reason}")]
    Unreadable {
        /// The table.
        table: &'static str,
        /// The column.
        column: &'static str,
        /// The row's key.
        row: String,
        /// Why, without any content.
        reason: String,
    },
    /// The key ring lacks a key that the database needs.
    #[error(
        "the key ring {ring} lacks key {key}, which this database was encrypted with: restore the key ring file"
    )]
    KeyMissing {
        /// The missing key.
        key: KeyId,
        /// Where the ring was read.
        ring: String,
    },
    /// The key ring has another key under an id that the database knows.
    #[error(
        "key {key} of the key ring {ring} is not the one this database was encrypted with: restore the right file"
    )]
    KeyWrong {
        /// The key.
        key: KeyId,
        /// Where the ring was read.
        ring: String,
    },
    /// A key cannot be treated so now.
    #[error("key {key}: {reason}")]
    KeyRefused {
        /// The key.
        key: KeyId,
        /// Why not, and what to do.
        reason: String,
    },
    /// The key ring cannot be read or made.
    #[error("key ring {ring}: {reason}")]
    KeyRing {
        /// Where it was read.
        ring: String,
        /// Why not.
        reason: String,
    },
    /// Another process has the database open.
    #[error(
        "{path} is in use by {holder}: SQLite serves one Evenkeel process; stop that one or use another --database"
    )]
    InUse {
        /// The database file.
        path: PathBuf,
        /// Who has it, as far as known.
        holder: String,
    },
    /// The database was written by a newer release that this one must not touch.
    #[error("the database has schema {schema}, which needs Evenkeel {min_binary} or newer; this is {binary}")]
    BinaryTooOld {
        /// The schema's number.
        schema: i64,
        /// The oldest release that may use it.
        min_binary: String,
        /// This release.
        binary: &'static str,
    },
    /// The database server is too old.
    #[error("the database server is PostgreSQL {found}, at least {min} is needed: upgrade it")]
    ServerTooOld {
        /// Its major release.
        found: i64,
        /// The oldest supported.
        min: i64,
    },
    /// A database URL that cannot be used. It is not shown: it may hold a password.
    #[error("the database URL cannot be used: {reason}")]
    DatabaseUrl {
        /// What is wrong with it.
        reason: String,
    },
    /// A file or directory.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The database itself.
    #[error("the database failed while {doing}: {source}")]
    Database {
        /// What was being done.
        doing: &'static str,
        /// Whether the same call may succeed when repeated: busy, locked, pool exhausted.
        transient: bool,
        /// What it said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Error {
    pub(crate) fn not_found(what: &'static str, id: impl Display) -> Self {
        Self::NotFound {
            what,
            id: id.to_string(),
        }
    }

    /// Whether the same call may succeed when repeated, changed by nobody.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Database { transient: true, .. })
    }
}
