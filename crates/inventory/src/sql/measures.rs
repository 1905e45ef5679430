//! How much is in the database and how much was written to it: for benches and tests.

use super::SqlStore;
use crate::sql::{Pool, database, query_scalar};
use crate::{Error, RowMeasures};

/// The tables that grow with what is done.
const ROWS: &str = "SELECT (SELECT count(*) FROM cluster_configurations) + (SELECT count(*) FROM cluster_status) \
     + (SELECT count(*) FROM status_history) + (SELECT count(*) FROM components) + (SELECT count(*) FROM reconciliations) \
     + (SELECT count(*) FROM operations) + (SELECT count(*) FROM operation_dependencies) \
     + (SELECT count(*) FROM operation_reports) + (SELECT count(*) FROM carried_operations) + (SELECT count(*) FROM renders)";

impl SqlStore {
    /// How many rows there are in the tables that grow with what is done, and how many were written since the database was
    /// opened. Walks through tables: not for a fleet at work.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn row_measures(&self) -> Result<RowMeasures, Error> {
        let doing = "counting rows";
        let rows: i64 = query_scalar(ROWS)
            .fetch_one(self.read())
            .await
            .map_err(database(doing))?;
        let written = match self.read() {
            Pool::Postgres(_) => None,
            // All writes of SQLite go through one connection, which counts them.
            Pool::Sqlite { .. } => {
                let mut transaction = self.write(doing).await?;
                let written: i64 = query_scalar("SELECT total_changes()")
                    .fetch_one(&mut *transaction)
                    .await
                    .map_err(database(doing))?;
                transaction.rollback(doing).await?;
                Some(super::rows::uint(written))
            }
        };
        Ok(RowMeasures {
            rows: super::rows::uint(rows),
            written,
        })
    }
}
