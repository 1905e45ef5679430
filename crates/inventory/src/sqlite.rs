//! The inventory on embedded SQLite: one process, one file.
//!
//! One file per subject, each with the statements of its subject. A statement is static text; a list travels as one
//! bound JSON text that `json_each` takes apart.

mod keys;
mod migrations;
mod open;
mod rows;

pub use open::{Location, OpenOptions, SqliteStore, Synchronous};
