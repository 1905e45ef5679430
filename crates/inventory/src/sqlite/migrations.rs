//! The schema and how it grows. A migration only adds; what it replaces is removed a release later.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use sqlx::sqlite::SqlitePool;
use sqlx::{Row as _, Sqlite, Transaction};

use super::open::private_file;
use super::rows::{database, millis};
use crate::Error;

/// This release.
const BINARY: &str = env!("CARGO_PKG_VERSION");

/// One step of the schema.
#[derive(Clone, Copy, Debug)]
pub(super) struct Migration {
    /// From 1, without gaps.
    pub(super) number: i64,
    /// What it adds.
    pub(super) name: &'static str,
    /// The oldest release that may use the database afterwards.
    pub(super) min_binary: &'static str,
    /// Its statements.
    pub(super) sql: &'static str,
}

/// All steps, in order.
pub(super) const ALL: &[Migration] = &[Migration {
    number: 1,
    name: "first",
    min_binary: "0.1.0",
    sql: include_str!("../../migrations/sqlite/0001_first.sql"),
}];

/// Brings the schema to the newest of `migrations`. A filled database is copied beside itself first.
///
/// # Errors
/// [`Error::BinaryTooOld`], [`Error::Io`], [`Error::Database`].
pub(super) async fn run(
    writer: &SqlitePool,
    path: &Path,
    migrations: &[Migration],
    now: Timestamp,
) -> Result<(), Error> {
    let mut transaction = begin(writer).await?;
    let present = present(&mut transaction).await?;
    // The copy cannot be made inside a transaction; nobody else has the database open (lock file).
    transaction
        .rollback()
        .await
        .map_err(database("reading the schema"))?;
    if let Some((schema, min_binary)) = &present
        && version(BINARY) < version(min_binary)
    {
        return Err(Error::BinaryTooOld {
            schema: *schema,
            min_binary: min_binary.clone(),
            binary: BINARY,
        });
    }
    let number = present.as_ref().map_or(0, |(number, _)| *number);
    let missing: Vec<_> = migrations
        .iter()
        .filter(|migration| migration.number > number)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    if present.is_some() {
        copy(writer, path, number, now).await?;
    }
    let mut transaction = begin(writer).await?;
    sqlx::query(
        "CREATE TABLE IF NOT EXISTS schema_migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL, \
         min_binary TEXT NOT NULL, applied_by TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT",
    )
    .execute(&mut *transaction)
    .await
    .map_err(database("preparing the schema"))?;
    for migration in missing {
        sqlx::raw_sql(migration.sql)
            .execute(&mut *transaction)
            .await
            .map_err(database("migrating the schema"))?;
        sqlx::query("INSERT INTO schema_migrations (number, name, min_binary, applied_by, applied_at) VALUES (?, ?, ?, ?, ?)")
            .bind(migration.number)
            .bind(migration.name)
            .bind(migration.min_binary)
            .bind(BINARY)
            .bind(millis(now))
            .execute(&mut *transaction)
            .await
            .map_err(database("migrating the schema"))?;
    }
    transaction
        .commit()
        .await
        .map_err(database("migrating the schema"))
}

async fn begin(writer: &SqlitePool) -> Result<Transaction<'static, Sqlite>, Error> {
    writer
        .begin_with("BEGIN IMMEDIATE")
        .await
        .map_err(database("locking the schema"))
}

/// The schema's number and the oldest release that may use it; none for an empty file.
async fn present(transaction: &mut Transaction<'static, Sqlite>) -> Result<Option<(i64, String)>, Error> {
    let reading = || database("reading the schema");
    let exists =
        sqlx::query("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'schema_migrations'")
            .fetch_optional(&mut **transaction)
            .await
            .map_err(reading())?;
    if exists.is_none() {
        return Ok(None);
    }
    sqlx::query("SELECT number, min_binary FROM schema_migrations ORDER BY number DESC LIMIT 1")
        .fetch_optional(&mut **transaction)
        .await
        .map_err(reading())?
        .map(|row| {
            Ok((
                row.try_get(0).map_err(reading())?,
                row.try_get(1).map_err(reading())?,
            ))
        })
        .transpose()
}

/// Copies the database to `<path>.schema-<number>.<time>.bak`, readable by its owner alone. An earlier copy is never
/// overwritten: the migration it was made for may have failed half-way on a broken disk.
async fn copy(writer: &SqlitePool, path: &Path, number: i64, now: Timestamp) -> Result<(), Error> {
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
