//! What only SQLite promises: one process, one file, and what stands in it.

mod audit;
mod damage;
mod exhausted;
mod kill;
mod opening;
mod rotation;
pub(crate) mod secrets;

use std::path::Path;

use sqlx::Connection as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};

/// A connection beside the store, as somebody with the file in hand has.
async fn raw(path: &Path) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(path).foreign_keys(false);
    SqliteConnection::connect_with(&options).await.unwrap()
}

/// Runs a statement on the file behind the store's back; answers how many rows it touched.
async fn meddle(path: &Path, statement: &'static str) -> u64 {
    let mut connection = raw(path).await;
    let done = sqlx::query(statement).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    done.rows_affected()
}
