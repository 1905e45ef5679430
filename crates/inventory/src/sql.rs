//! The subjects of the inventory as SQL, one file each, written once for both databases.
//!
//! ```text
//!   subjects (clusters, queue, status, …)   SQL, row mapping, encryption, transitions
//!        │
//!   statement ── connection ── row          one face: text, parameters, transactions, cells
//!        │
//!   sqlite │ postgres                       opening, schema, locks on files, notifications
//! ```
//!
//! SQLite has one writer, so whatever a transaction has read still holds when it writes. PostgreSQL has many, so there
//! a transaction first locks the row that stands for what it is about, always in this order:
//!
//! 1. `clusters`: everything about one cluster's record, configuration, status and runs;
//! 2. `reconciliations`, in order of id: everything that ends operations of a run and counts what is left;
//! 3. `operations`, in order of id: a claim never waits for one but skips it;
//! 4. `components`, in order of their key;
//! 5. the end of the audit log, as the last act before the commit.
//!
//! What encrypts values again and what removes old rows pass over every row that somebody else has locked.

mod archives;
mod audit;
mod change_log;
mod changes;
mod clusters;
mod configurations;
mod connection;
mod consents;
mod due;
mod failures;
mod keys;
mod kubeconfigs;
mod list;
mod lock;
mod measures;
pub(crate) mod migrations;
mod options;
mod processes;
mod queue;
mod reconciliations;
#[cfg(feature = "recorded-statements")]
mod recorded;
mod renders;
mod retention;
mod revisions;
mod rotation;
mod row;
pub(crate) mod rows;
mod settings;
mod statement;
mod status;
mod store;

pub(crate) use connection::{Connection, Pool};
pub(crate) use failures::{database, repeating};
pub use options::{Location, OpenOptions, POSTGRES_CONNECTIONS, PostgresOptions, Synchronous, TimeSource};
pub(crate) use row::{Cells, Row};
pub(crate) use statement::{Statement, batch, batch_at_once, query, query_as, query_scalar};
pub use store::SqlStore;
pub(crate) use store::{Home, Opened, STATEMENTS};

#[cfg(test)]
mod tests;
