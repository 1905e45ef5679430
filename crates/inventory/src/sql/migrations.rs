//! The schema and how it grows. A migration only adds; what it replaces is removed a release later.

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::connection::{Connection, Pool};
use super::failures::database;
use super::rows::millis;
use super::statement::{Statement, query, query_as};
use crate::Error;
use crate::sqlite::private_file;

/// This release.
const BINARY: &str = env!("CARGO_PKG_VERSION");

/// The number of the advisory lock that one migrating process holds on PostgreSQL: "evenkeel" in ASCII.
const ADVISORY_LOCK: i64 = 0x6576_656e_6b65_656c;

/// One step of the schema.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Migration {
    /// From 1, without gaps.
    pub(super) number: i64,
    /// What it adds.
    pub(super) name: &'static str,
    /// The oldest release that may use the database afterwards.
    pub(super) min_binary: &'static str,
    /// Its statements.
    pub(super) sql: Statement,
}

/// All steps, in order.
pub(crate) const ALL: &[Migration] = &[
    Migration {
        number: 1,
        name: "first",
        min_binary: "0.1.0",
        sql: Statement::each(
            include_str!("../../migrations/sqlite/0001_first.sql"),
            include_str!("../../migrations/postgres/0001_first.sql"),
        ),
    },
    Migration {
        number: 2,
        name: "processes",
        min_binary: "0.1.0",
        sql: Statement::each(
            include_str!("../../migrations/sqlite/0002_processes.sql"),
            include_str!("../../migrations/postgres/0002_processes.sql"),
        ),
    },
    Migration {
        number: 3,
        name: "keys",
        min_binary: "0.1.0",
        sql: Statement::each(
            include_str!("../../migrations/sqlite/0003_keys.sql"),
            include_str!("../../migrations/postgres/0003_keys.sql"),
        ),
    },
    Migration {
        number: 4,
        name: "audit",
        min_binary: "0.1.0",
        sql: Statement::each(
            include_str!("../../migrations/sqlite/0004_audit.sql"),
            include_str!("../../migrations/postgres/0004_audit.sql"),
        ),
    },
    Migration {
        number: 5,
        name: "supersede",
        min_binary: "0.1.0",
        sql: Statement::each(
            include_str!("../../migrations/sqlite/0005_supersede.sql"),
            include_str!("../../migrations/postgres/0005_supersede.sql"),
        ),
    },
    Migration {
        number: 6,
        name: "consents",
        min_binary: "0.1.0",
        sql: Statement::each(
            include_str!("../../migrations/sqlite/0006_consents.sql"),
            include_str!("../../migrations/postgres/0006_consents.sql"),
        ),
    },
    Migration {
        number: 7,
        name: "scheduling",
        min_binary: "0.1.0",
        sql: Statement::each(
            include_str!("../../migrations/sqlite/0007_scheduling.sql"),
            include_str!("../../migrations/postgres/0007_scheduling.sql"),
        ),
    },
    Migration {
        number: 8,
        name: "sources",
        min_binary: "0.1.0",
        sql: Statement::each(
            include_str!("../../migrations/sqlite/0008_sources.sql"),
            include_str!("../../migrations/postgres/0008_sources.sql"),
        ),
    },
    Migration {
        number: 9,
        name: "roles",
        min_binary: "0.1.0",
        sql: Statement::each(
            include_str!("../../migrations/sqlite/0009_roles.sql"),
            include_str!("../../migrations/postgres/0009_roles.sql"),
        ),
    },
];

const SCHEMA_TABLE: Statement = Statement::each(
    "CREATE TABLE IF NOT EXISTS schema_migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL, \
     min_binary TEXT NOT NULL, applied_by TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT",
    "CREATE TABLE IF NOT EXISTS schema_migrations (number BIGINT PRIMARY KEY, name TEXT NOT NULL, \
     min_binary TEXT NOT NULL, applied_by TEXT NOT NULL, applied_at BIGINT NOT NULL)",
);
const HAS_SCHEMA_TABLE: Statement = Statement::each(
    "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'schema_migrations'",
    "SELECT 1 FROM pg_tables WHERE schemaname = current_schema() AND tablename = 'schema_migrations'",
);
/// Whoever migrates, does it alone; the others wait this long, then find it done. A table that is in use makes a
/// migration fail soon, before everybody queues behind it.
const PREPARE: &str = "SET LOCAL lock_timeout = '60s'; SET LOCAL statement_timeout = '15min'";
const PREPARED: &str = "SET LOCAL lock_timeout = '5s'";

/// Brings the schema to the newest of `migrations`. A filled SQLite file (`file`) is copied beside itself first.
///
/// # Errors
/// [`Error::BinaryTooOld`], [`Error::Io`], [`Error::Database`].
pub(crate) async fn run(
    pool: &Pool,
    file: Option<&Path>,
    migrations: &[Migration],
    now: Timestamp,
) -> Result<(), Error> {
    let (locking, migrating) = ("locking the schema", "migrating the schema");
    let mut transaction = pool.write(locking).await?;
    let before = present(&mut transaction).await?;
    // The copy cannot be made inside a transaction; nobody else has the file open (lock file).
    transaction.rollback("reading the schema").await?;
    if missing(&before, migrations)?.is_empty() {
        return Ok(());
    }
    if let (Some((number, _)), Some(file)) = (&before, file) {
        copy(pool, file, *number, now).await?;
    }
    let mut transaction = pool.write(locking).await?;
    if transaction.is_shared() {
        transaction.script(PREPARE).await.map_err(database(locking))?;
        query("SELECT pg_advisory_xact_lock($1)")
            .bind(ADVISORY_LOCK)
            .execute(&mut *transaction)
            .await
            .map_err(database(locking))?;
        transaction.script(PREPARED).await.map_err(database(locking))?;
    }
    // Another process may have been faster.
    let present = present(&mut transaction).await?;
    let missing = missing(&present, migrations)?;
    query(SCHEMA_TABLE)
        .execute(&mut *transaction)
        .await
        .map_err(database("preparing the schema"))?;
    for migration in missing {
        let Statement { sqlite, postgres } = migration.sql;
        let script = if transaction.is_shared() { postgres } else { sqlite };
        transaction.script(script).await.map_err(database(migrating))?;
        query("INSERT INTO schema_migrations (number, name, min_binary, applied_by, applied_at) VALUES ($1, $2, $3, $4, $5)")
            .bind(migration.number)
            .bind(migration.name)
            .bind(migration.min_binary)
            .bind(BINARY)
            .bind(millis(now))
            .execute(&mut *transaction)
            .await
            .map_err(database(migrating))?;
    }
    transaction.commit(migrating).await
}

/// The steps that a database lacks.
fn missing<'m>(
    present: &Option<(i64, String)>,
    migrations: &'m [Migration],
) -> Result<Vec<&'m Migration>, Error> {
    if let Some((schema, min_binary)) = present
        && version(BINARY) < version(min_binary)
    {
        return Err(Error::BinaryTooOld {
            schema: *schema,
            min_binary: min_binary.clone(),
            binary: BINARY,
        });
    }
    let number = present.as_ref().map_or(0, |(number, _)| *number);
    Ok(migrations
        .iter()
        .filter(|migration| migration.number > number)
        .collect())
}

/// The schema's number and the oldest release that may use it; none for an empty database.
async fn present(connection: &mut Connection) -> Result<Option<(i64, String)>, Error> {
    let reading = || database("reading the schema");
    let exists = query(HAS_SCHEMA_TABLE)
        .fetch_optional(&mut *connection)
        .await
        .map_err(reading())?;
    if exists.is_none() {
        return Ok(None);
    }
    query_as::<(i64, String)>("SELECT number, min_binary FROM schema_migrations ORDER BY number DESC LIMIT 1")
        .fetch_optional(connection)
        .await
        .map_err(reading())
}

/// Copies the database to `<path>.schema-<number>.<time>.bak`, readable by its owner alone. An earlier copy is never
/// overwritten: the migration it was made for may have failed half-way on a broken disk.
async fn copy(pool: &Pool, path: &Path, number: i64, now: Timestamp) -> Result<(), Error> {
    let Pool::Sqlite { writer, .. } = pool else {
        return Ok(());
    };
    let mut time = millis(now);
    let to = loop {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".schema-{number}.{time}.bak"));
        let to = PathBuf::from(name);
        // SQLite copies into an empty file; made here, it has our mode.
        match private_file(std::fs::OpenOptions::new().create_new(true), &to) {
            Ok(_) => break to,
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => time += 1,
            Err(source) => return Err(Error::Io { path: to, source }),
        }
    };
    sqlx::query("VACUUM INTO ?")
        .bind(to.to_string_lossy().into_owned())
        .execute(writer)
        .await
        .map_err(database("copying the database before its schema changes"))?;
    tracing::info!(copy = %to.display(), "copied the database before its schema changes");
    Ok(())
}

/// A release's number, without what follows a `-` or `+`.
fn version(text: &str) -> [u64; 3] {
    let numbers = text.split(['-', '+']).next().unwrap_or_default();
    let mut parts = numbers.split('.').map(|part| part.parse().unwrap_or(0));
    std::array::from_fn(|_| parts.next().unwrap_or(0))
}

#[cfg(test)]
mod tests;
