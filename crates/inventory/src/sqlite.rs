//! Embedded SQLite: one process, one file.

mod open;

pub(crate) use open::{File, open, private_file};
