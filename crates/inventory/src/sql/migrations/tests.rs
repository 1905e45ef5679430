use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions};

use super::*;

/// One more than there are.
const NEXT: Migration = Migration {
    number: ALL[ALL.len() - 1].number + 1,
    name: "next",
    min_binary: "0.1.0",
    sql: Statement::each(
        "CREATE TABLE extra (id INTEGER PRIMARY KEY) STRICT; CREATE INDEX extra_id ON extra (id);",
        "CREATE TABLE extra (id BIGINT PRIMARY KEY); CREATE INDEX extra_id ON extra (id);",
    ),
};

async fn run(pool: &SqlitePool, path: &Path, migrations: &[Migration], now: Timestamp) -> Result<(), Error> {
    let shared = Pool::Sqlite {
        writer: pool.clone(),
        readers: pool.clone(),
    };
    super::run(&shared, Some(path), migrations, now).await
}

fn with(more: &[Migration]) -> Vec<Migration> {
    ALL.iter().chain(more).copied().collect()
}

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
    let more = with(&[NEXT]);
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
        sql: Statement::same("CREATE TABLE extra (id INTEGER); CREATE TABLE clusters (id INTEGER);"),
        ..NEXT
    };
    let more = with(&[broken]);
    assert!(matches!(
        run(&pool, &path, &more, Timestamp::UNIX_EPOCH).await,
        Err(Error::Database { .. })
    ));
    assert_eq!(tables(&pool).await, before);
    let more = with(&[NEXT]);
    run(&pool, &path, &more, Timestamp::UNIX_EPOCH).await.unwrap();
}

#[tokio::test]
async fn an_older_binary_is_refused_only_below_the_stated_minimum() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("db");
    let pool = pool(&path).await;
    // A newer release added something this one can live with.
    run(&pool, &path, &with(&[NEXT]), Timestamp::UNIX_EPOCH)
        .await
        .unwrap();
    run(&pool, &path, ALL, Timestamp::UNIX_EPOCH).await.unwrap();
    // And then something it cannot.
    let third = Migration {
        number: NEXT.number + 1,
        name: "third",
        min_binary: "999.0.0",
        sql: Statement::same("CREATE TABLE third (id INTEGER PRIMARY KEY);"),
    };
    run(&pool, &path, &with(&[NEXT, third]), Timestamp::UNIX_EPOCH)
        .await
        .unwrap();
    let error = run(&pool, &path, ALL, Timestamp::UNIX_EPOCH).await.unwrap_err();
    assert!(
        matches!(&error, Error::BinaryTooOld { schema, .. } if *schema == third.number),
        "{error}"
    );
    assert!(error.to_string().contains("999.0.0"), "{error}");
}

#[test]
fn versions_compare_by_number() {
    assert!(version("0.10.0") > version("0.9.9"));
    assert!(version("1.0.0-rc.1") == version("1.0.0"));
    assert!(version("garbage") < version("0.0.1"));
}

/// On both databases: a database of the release before, filled, is brought up to date and loses nothing.
#[tokio::test]
async fn the_previous_schema_is_brought_up_to_date() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("db");
    let file = pool(&path).await;
    let sqlite = Pool::Sqlite {
        writer: file.clone(),
        readers: file,
    };
    let server = evenkeel_realparts::Postgres::start().unwrap();
    let postgres = Pool::Postgres(sqlx::PgPool::connect(&server.url()).await.unwrap());
    for pool in [sqlite, postgres] {
        let before = ALL.split_last().unwrap().1;
        super::run(&pool, None, before, Timestamp::UNIX_EPOCH)
            .await
            .unwrap();
        let mut transaction = pool.write("filling").await.unwrap();
        transaction
            .script("INSERT INTO settings VALUES ('default', 'k', '1', 0)")
            .await
            .unwrap();
        transaction.commit("filling").await.unwrap();
        for _ in 0..2 {
            super::run(&pool, None, ALL, Timestamp::UNIX_EPOCH).await.unwrap();
        }
        let mut transaction = pool.write("looking").await.unwrap();
        let steps: Vec<(i64, String)> =
            query_as("SELECT number, name FROM schema_migrations ORDER BY number")
                .fetch_all(&mut *transaction)
                .await
                .unwrap();
        assert_eq!(steps.len(), ALL.len());
        let kept: Vec<(String, String)> = query_as("SELECT key, value FROM settings")
            .fetch_all(&mut *transaction)
            .await
            .unwrap();
        assert_eq!(kept, [("k".to_owned(), "1".to_owned())]);
    }
}

/// A step that fails half-way leaves nothing, and an older binary is refused, on PostgreSQL as on SQLite.
#[tokio::test]
async fn a_failed_step_leaves_nothing_on_postgres() {
    let server = evenkeel_realparts::Postgres::start().unwrap();
    let pool = Pool::Postgres(sqlx::PgPool::connect(&server.url()).await.unwrap());
    let broken = Migration {
        sql: Statement::same("CREATE TABLE extra (id BIGINT); CREATE TABLE clusters (id BIGINT)"),
        ..NEXT
    };
    let run =
        async |migrations: &[Migration]| super::run(&pool, None, migrations, Timestamp::UNIX_EPOCH).await;
    run(ALL).await.unwrap();
    assert!(run(&with(&[broken])).await.is_err());
    run(&with(&[NEXT])).await.unwrap();
    let demanding = Migration {
        number: NEXT.number + 1,
        min_binary: "999.0.0",
        sql: Statement::same("CREATE TABLE third (id BIGINT PRIMARY KEY)"),
        ..NEXT
    };
    run(&with(&[NEXT, demanding])).await.unwrap();
    let error = run(ALL).await.unwrap_err();
    assert!(matches!(error, Error::BinaryTooOld { .. }), "{error}");
}
