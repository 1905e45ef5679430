use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions};

use super::*;

const SECOND: Migration = Migration {
    number: 2,
    name: "second",
    min_binary: "0.1.0",
    sql: "CREATE TABLE extra (id INTEGER PRIMARY KEY) STRICT; CREATE INDEX extra_id ON extra (id);",
};

async fn pool(path: &Path) -> SqlitePool {
    SqlitePoolOptions::new()
        .max_connections(1)
        .connect_with(SqliteConnectOptions::new().filename(path).create_if_missing(true))
        .await
        .unwrap()
}

fn backups(directory: &tempfile::TempDir) -> Vec<PathBuf> {
    std::fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "bak"))
        .collect()
}

async fn tables(pool: &SqlitePool) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM sqlite_schema WHERE type = 'table'")
        .fetch_one(pool)
        .await
        .unwrap()
}

#[tokio::test]
async fn an_empty_database_is_filled_and_a_filled_one_copied_first() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("db");
    let pool = pool(&path).await;
    run(&pool, &path, ALL, Timestamp::UNIX_EPOCH).await.unwrap();
    assert!(backups(&directory).is_empty(), "nothing to lose, nothing to copy");
    let before = tables(&pool).await;
    run(&pool, &path, ALL, Timestamp::UNIX_EPOCH).await.unwrap();
    assert_eq!(tables(&pool).await, before, "migrating twice does nothing");

    sqlx::query("INSERT INTO settings VALUES ('default', 'k', '1', 0)")
        .execute(&pool)
        .await
        .unwrap();
    let mut more = ALL.to_vec();
    more.push(SECOND);
    run(&pool, &path, &more, Timestamp::UNIX_EPOCH).await.unwrap();
    assert_eq!(tables(&pool).await, before + 1);
    let [copy] = backups(&directory).try_into().unwrap();
    assert_eq!(
        std::fs::metadata(&copy).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let copied = self::pool(&copy).await;
    assert_eq!(tables(&copied).await, before, "the copy is as it was");
    let settings: i64 = sqlx::query_scalar("SELECT count(*) FROM settings")
        .fetch_one(&copied)
        .await
        .unwrap();
    assert_eq!(settings, 1);
}

#[tokio::test]
async fn a_failed_migration_leaves_the_schema_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("db");
    let pool = pool(&path).await;
    run(&pool, &path, ALL, Timestamp::UNIX_EPOCH).await.unwrap();
    let before = tables(&pool).await;
    let broken = Migration {
        sql: "CREATE TABLE extra (id INTEGER) STRICT; CREATE TABLE clusters (id INTEGER) STRICT;",
        ..SECOND
    };
    let more = [ALL[0], broken];
    assert!(matches!(
        run(&pool, &path, &more, Timestamp::UNIX_EPOCH).await,
        Err(Error::Database { .. })
    ));
    assert_eq!(tables(&pool).await, before);
    let more = [ALL[0], SECOND];
    run(&pool, &path, &more, Timestamp::UNIX_EPOCH).await.unwrap();
}

#[tokio::test]
async fn an_older_binary_is_refused_only_below_the_stated_minimum() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("db");
    let pool = pool(&path).await;
    // A newer release added something this one can live with.
    run(&pool, &path, &[ALL[0], SECOND], Timestamp::UNIX_EPOCH)
        .await
        .unwrap();
    run(&pool, &path, ALL, Timestamp::UNIX_EPOCH).await.unwrap();
    // And then something it cannot.
    let third = Migration {
        number: 3,
        name: "third",
        min_binary: "999.0.0",
        sql: "CREATE TABLE third (id INTEGER PRIMARY KEY) STRICT;",
    };
    run(&pool, &path, &[ALL[0], SECOND, third], Timestamp::UNIX_EPOCH)
        .await
        .unwrap();
    let error = run(&pool, &path, ALL, Timestamp::UNIX_EPOCH).await.unwrap_err();
    assert!(matches!(&error, Error::BinaryTooOld { schema: 3, .. }), "{error}");
    assert!(error.to_string().contains("999.0.0"), "{error}");
}

#[test]
fn versions_compare_by_number() {
    assert!(version("0.10.0") > version("0.9.9"));
    assert!(version("1.0.0-rc.1") == version("1.0.0"));
    assert!(version("garbage") < version("0.0.1"));
}
