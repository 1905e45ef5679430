//! The release before this one goes on with a database that this one has brought up to date: every statement it knows is
//! prepared on today's schema (DESIGN §6).

use std::path::PathBuf;
use std::sync::Arc;

use evenkeel_core::ManualClock;
use evenkeel_inventory::SqlStore;
use sqlx::postgres::PgTypeInfo;
use sqlx::{
    AssertSqlSafe, Connection as _, Executor as _, PgConnection, Postgres, SqlSafeStr as _, SqliteConnection,
    Type,
};

use crate::fixture::*;

/// Names the folder with the statements of the last release; without it they are this release's own.
const FOLDER: &str = "EVENKEEL_EARLIER_STATEMENTS";
/// Fewer are a sign that the recording is broken.
const STATEMENTS_MIN: usize = 100;

fn folder() -> PathBuf {
    std::env::var_os(FOLDER).map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("statements"),
        PathBuf::from,
    )
}

/// The statements of a file, one a line.
fn statements(file: &str) -> Vec<String> {
    let path = folder().join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let statements: Vec<String> = text.lines().map(str::to_owned).collect();
    assert!(
        statements.len() >= STATEMENTS_MIN,
        "{}: {}",
        path.display(),
        statements.len()
    );
    statements
}

/// What SQLite does not understand, with its reasons.
async fn refused_by_sqlite(connection: &mut SqliteConnection, statements: Vec<String>) -> Vec<String> {
    let mut refused = Vec::new();
    for statement in statements {
        let text = AssertSqlSafe(statement.clone()).into_sql_str();
        if let Err(error) = connection.prepare(text).await {
            refused.push(format!("{error}: {statement}"));
        }
    }
    refused
}

/// The same of PostgreSQL, which has to know the types of the parameters.
async fn refused_by_postgres(connection: &mut PgConnection, statements: Vec<String>) -> Vec<String> {
    let mut refused = Vec::new();
    for statement in statements {
        let types: Vec<PgTypeInfo> = statement
            .rsplit_once(" /* ")
            .map(|(_, types)| types.trim_end_matches(" */").split(", ").map(type_of).collect())
            .unwrap_or_default();
        let text = AssertSqlSafe(statement.clone()).into_sql_str();
        if let Err(error) = connection.prepare_with(text, &types).await {
            refused.push(format!("{error}: {statement}"));
        }
    }
    refused
}

fn type_of(name: &str) -> PgTypeInfo {
    match name {
        "bigint" => <i64 as Type<Postgres>>::type_info(),
        "bigint[]" => <Vec<i64> as Type<Postgres>>::type_info(),
        "boolean" => <bool as Type<Postgres>>::type_info(),
        "boolean[]" => <Vec<bool> as Type<Postgres>>::type_info(),
        "text" => <String as Type<Postgres>>::type_info(),
        "text[]" => <Vec<String> as Type<Postgres>>::type_info(),
        "bytea" => <Vec<u8> as Type<Postgres>>::type_info(),
        "bytea[]" => <Vec<Vec<u8>> as Type<Postgres>>::type_info(),
        other => panic!("type {other}"),
    }
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new("2026-03-01T02:00:00Z".parse().unwrap()))
}

/// A SQLite file with today's schema.
async fn sqlite(directory: &tempfile::TempDir) -> SqliteConnection {
    let path = directory.path().join("db");
    let options = evenkeel_inventory::OpenOptions::file(path.clone(), directory.path().join("keys"));
    SqlStore::open(options, clock()).await.unwrap().close().await;
    SqliteConnection::connect(&format!("sqlite://{}", path.display()))
        .await
        .unwrap()
}

#[tokio::test]
async fn sqlite_understands_the_statements_of_the_last_release() {
    let directory = tempfile::tempdir().unwrap();
    let mut connection = sqlite(&directory).await;
    let refused = refused_by_sqlite(&mut connection, statements("sqlite.sql")).await;
    assert!(refused.is_empty(), "{refused:#?}");
}

#[tokio::test]
async fn postgres_understands_the_statements_of_the_last_release() {
    let fleet = Fleet::<Pg>::new().await;
    let mut connection = PgConnection::connect(&fleet.backend.url).await.unwrap();
    let refused = refused_by_postgres(&mut connection, statements("postgres.sql")).await;
    assert!(refused.is_empty(), "{refused:#?}");
}

#[tokio::test]
async fn a_column_that_is_gone_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let mut connection = sqlite(&directory).await;
    let gone = [
        "SELECT id FROM clusters".to_owned(),
        "SELECT gone FROM clusters".to_owned(),
    ];
    let refused = refused_by_sqlite(&mut connection, gone.to_vec()).await;
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert!(refused[0].contains("no such column: gone"), "{refused:?}");
}
