//! The inventory on embedded SQLite: one process, one file.
//!
//! One file per subject, each with the statements of its subject. A statement is static text; a list travels as one
//! bound JSON text that `json_each` takes apart.

mod archives;
mod changes;
mod clusters;
mod configurations;
mod due;
mod keys;
mod list;
mod migrations;
mod open;
mod queue;
mod reconciliations;
mod renders;
mod revisions;
mod rows;
mod settings;
mod status;

pub use open::{Location, OpenOptions, SqliteStore, Synchronous};

#[cfg(test)]
mod tests;
