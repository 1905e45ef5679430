//! Pools, transactions, and what a query can be run on.

use std::ops::{Deref, DerefMut};

use sqlx::postgres::{PgPool, Postgres};
use sqlx::sqlite::{Sqlite, SqlitePool};

use super::failures::{commit_failed, database};
use crate::Error;

/// The connections of a store.
pub(crate) enum Pool {
    /// One connection writes, each transaction `BEGIN IMMEDIATE`; a few read, and never wait for it (WAL).
    Sqlite { writer: SqlitePool, readers: SqlitePool },
    /// Any connection does anything; row locks keep writers apart.
    Postgres(PgPool),
}

impl Pool {
    /// Begins a transaction that writes; rolled back when dropped.
    pub(crate) async fn write(&self, doing: &'static str) -> Result<Transaction, Error> {
        match self {
            Self::Sqlite { writer, .. } => begin_immediately(writer)
                .await
                .map(|open| Transaction(Connection::Sqlite(open))),
            Self::Postgres(pool) => pool
                .begin_with("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
                .await
                .map(|open| Transaction(Connection::Postgres(open))),
        }
        .map_err(database(doing))
    }

    /// Begins a snapshot over several reading statements.
    pub(crate) async fn snapshot(&self, doing: &'static str) -> Result<Transaction, Error> {
        match self {
            Self::Sqlite { readers, .. } => readers
                .begin()
                .await
                .map(|open| Transaction(Connection::Sqlite(open))),
            Self::Postgres(pool) => pool
                .begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                .await
                .map(|open| Transaction(Connection::Postgres(open))),
        }
        .map_err(database(doing))
    }

    /// Ends all connections.
    pub(crate) async fn close(&self) {
        match self {
            Self::Sqlite { writer, readers } => {
                readers.close().await;
                writer.close().await;
            }
            Self::Postgres(pool) => pool.close().await,
        }
    }
}

/// Begins a transaction that writes, on SQLite's one connection for that.
///
/// A disk that is full, or fails, makes SQLite end a transaction by itself. The library still counts it as open and would
/// refuse every later one, so such a connection is given up for a new one.
async fn begin_immediately(writer: &SqlitePool) -> Result<sqlx::Transaction<'static, Sqlite>, sqlx::Error> {
    match writer.begin_with("BEGIN IMMEDIATE").await {
        Err(sqlx::Error::InvalidSavePointStatement) => {
            if let Err(error) = writer.acquire().await?.close().await {
                tracing::debug!(%error, "a connection that failed could not be closed in peace");
            }
            writer.begin_with("BEGIN IMMEDIATE").await
        }
        begun => begun,
    }
}

/// A connection inside a transaction.
pub(crate) enum Connection {
    Sqlite(sqlx::Transaction<'static, Sqlite>),
    Postgres(sqlx::Transaction<'static, Postgres>),
}

impl Connection {
    /// Whether other transactions may write at the same time, so that rows have to be locked.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, Self::Postgres(_))
    }

    /// Runs several statements without parameters.
    pub(crate) async fn script(&mut self, text: &'static str) -> Result<(), sqlx::Error> {
        match self {
            Self::Sqlite(open) => sqlx::raw_sql(text).execute(&mut **open).await.map(drop),
            Self::Postgres(open) => sqlx::raw_sql(text).execute(&mut **open).await.map(drop),
        }
    }
}

/// An open transaction; rolled back when dropped.
pub(crate) struct Transaction(Connection);

impl Transaction {
    /// Makes it count.
    ///
    /// # Errors
    /// [`Error::Database`]; when the connection is lost in this moment, nobody knows whether it counts.
    pub(crate) async fn commit(self, doing: &'static str) -> Result<(), Error> {
        match self.0 {
            Connection::Sqlite(open) => open.commit().await,
            Connection::Postgres(open) => open.commit().await,
        }
        .map_err(commit_failed(doing))
    }

    /// Undoes it.
    pub(crate) async fn rollback(self, doing: &'static str) -> Result<(), Error> {
        match self.0 {
            Connection::Sqlite(open) => open.rollback().await,
            Connection::Postgres(open) => open.rollback().await,
        }
        .map_err(database(doing))
    }
}

impl Deref for Transaction {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.0
    }
}

impl DerefMut for Transaction {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.0
    }
}

/// What a query is run on: any free connection, or an open transaction.
pub(crate) enum Executor<'c> {
    Pool(&'c Pool),
    Connection(&'c mut Connection),
}

impl<'c> From<&'c Pool> for Executor<'c> {
    fn from(pool: &'c Pool) -> Self {
        Self::Pool(pool)
    }
}

impl<'c> From<&'c mut Connection> for Executor<'c> {
    fn from(connection: &'c mut Connection) -> Self {
        Self::Connection(connection)
    }
}
