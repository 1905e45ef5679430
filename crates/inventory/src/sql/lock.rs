//! Row locks, where other transactions may write at the same time.

use super::connection::Connection;
use super::failures::database;
use super::statement::query;
use crate::Error;

/// What a transaction is about. The order in which several are taken stands in the documentation of [`super`].
pub(super) enum Lock<'a> {
    /// Record, configuration, status and runs of one cluster.
    Cluster(&'a str),
    /// The end of operations of one run.
    Run(&'a str),
    /// The same for the runs of many operations.
    RunsOf(&'a Vec<String>),
    /// A text that stands for something which has no row of its own.
    Name(&'a str),
    /// The end of the audit log.
    Audit,
}

impl Connection {
    /// Waits until nobody else has it. On SQLite, where one transaction writes at a time, it is there already.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub(super) async fn lock(&mut self, lock: Lock<'_>) -> Result<(), Error> {
        if !self.is_shared() {
            return Ok(());
        }
        let query = match lock {
            Lock::Cluster(id) => {
                query("SELECT 1 FROM clusters WHERE id = $1 FOR NO KEY UPDATE").bind(id)
            }
            Lock::Run(id) => {
                query("SELECT 1 FROM reconciliations WHERE id = $1 FOR NO KEY UPDATE").bind(id)
            }
            Lock::RunsOf(operations) => query(
                "SELECT 1 FROM reconciliations WHERE id IN \
                 (SELECT reconciliation_id FROM operations WHERE id = ANY ($1)) ORDER BY id FOR NO KEY UPDATE",
            )
            .bind(operations),
            Lock::Audit => query("SELECT pg_advisory_xact_lock(hashtextextended('evenkeel audit', 1))"),
            Lock::Name(name) => {
                query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))").bind(name)
            }
        };
        query
            .fetch_all(self)
            .await
            .map(drop)
            .map_err(database("locking a row"))
    }
}
