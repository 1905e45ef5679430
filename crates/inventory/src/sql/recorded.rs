//! The statements that tests put to databases, for the releases to come: each later schema has to understand them as long as
//! this release may run on it (`statements/`, docs/database.md).

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex, PoisonError};

/// The variable that names the folder they are written to; without it nothing is recorded.
const FOLDER: &str = "EVENKEEL_RECORD_STATEMENTS";

/// A database's file in the folder, one statement a line; on PostgreSQL with the types of its parameters behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Database {
    Sqlite,
    Postgres,
}

impl Database {
    fn file(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite.sql",
            Self::Postgres => "postgres.sql",
        }
    }
}

/// Appends a statement that this process has not recorded yet. Many processes write to one file.
pub(super) fn note(database: Database, statement: &str, types: &[String]) {
    static PLACE: LazyLock<Option<PathBuf>> = LazyLock::new(|| std::env::var_os(FOLDER).map(PathBuf::from));
    static SEEN: Mutex<BTreeSet<(Database, String)>> = Mutex::new(BTreeSet::new());
    let Some(folder) = &*PLACE else { return };
    let line = match types {
        [] => format!("{statement}\n"),
        types => format!("{statement} /* {} */\n", types.join(", ")),
    };
    let is_new = SEEN
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .insert((database, line.clone()));
    if !is_new {
        return;
    }
    let path = folder.join(database.file());
    let written = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .and_then(|mut file| file.write_all(line.as_bytes()));
    if let Err(error) = written {
        tracing::error!(path = %path.display(), %error, "a statement is not recorded");
    }
}
