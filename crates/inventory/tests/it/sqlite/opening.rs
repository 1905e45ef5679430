use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use evenkeel_core::ManualClock;
use evenkeel_inventory::{Clusters as _, Error, KeySource, OpenOptions, PutCluster, SqlStore};
use jiff::Timestamp;

use super::meddle;
use crate::fixture::*;

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(Timestamp::UNIX_EPOCH))
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn files_are_private_and_directories_made() {
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("state/evenkeel");
    let options = OpenOptions::file(directory.join("db"), directory.join("keys"));
    let store = SqlStore::open(options, clock()).await.unwrap();
    store.put_cluster(PutCluster::new(spec("c1", &[]))).await.unwrap();
    assert_eq!(mode(&directory), 0o700);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&directory).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(mode(&entry.path()), 0o600, "{:?}", entry.path());
        names.push(entry.file_name().into_string().unwrap());
    }
    names.sort();
    assert_eq!(names, ["db", "db-shm", "db-wal", "db.lock", "keys"]);
}

#[tokio::test]
async fn a_second_process_is_told_who_has_it() {
    let directory = tempfile::tempdir().unwrap();
    let first = SqlStore::open(Sqlite::options(&directory), clock())
        .await
        .unwrap();
    let error = SqlStore::open(Sqlite::options(&directory), clock())
        .await
        .unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::InUse { .. }), "{text}");
    assert!(
        text.contains(&format!("process {}", std::process::id())),
        "{text}"
    );
    drop(first);
    SqlStore::open(Sqlite::options(&directory), clock())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_temporary_store_leaves_nothing() {
    let store = SqlStore::open(OpenOptions::temporary(), clock()).await.unwrap();
    store.put_cluster(PutCluster::new(spec("c1", &[]))).await.unwrap();
    let directory = store.path().unwrap().parent().unwrap().to_owned();
    assert_eq!(mode(&directory), 0o700);
    drop(store);
    assert!(!directory.exists());
}

#[tokio::test]
async fn what_is_there_is_found_again() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqlStore::open(Sqlite::options(&directory), clock())
        .await
        .unwrap();
    let put = PutCluster::new(spec("c1", &["web"])).with_kubeconfig(secret("x"));
    let outcome = store.put_cluster(put).await.unwrap();
    store.close().await;
    assert!(store.cluster(&outcome.id).await.is_err(), "closed is closed");
    drop(store);
    let store = SqlStore::open(Sqlite::options(&directory), clock())
        .await
        .unwrap();
    assert_eq!(content(&store.kubeconfig(&outcome.id).await.unwrap()), "x");
}

#[tokio::test]
async fn a_newer_schema_is_refused_only_when_it_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("db");
    drop(
        SqlStore::open(Sqlite::options(&directory), clock())
            .await
            .unwrap(),
    );
    meddle(
        &path,
        "INSERT INTO schema_migrations VALUES (900, 'later', '0.1.0', '9.0.0', 0)",
    )
    .await;
    drop(
        SqlStore::open(Sqlite::options(&directory), clock())
            .await
            .unwrap(),
    );
    meddle(
        &path,
        "INSERT INTO schema_migrations VALUES (901, 'later', '9.0.0', '9.0.0', 0)",
    )
    .await;
    let error = SqlStore::open(Sqlite::options(&directory), clock())
        .await
        .unwrap_err();
    let text = error.to_string();
    assert!(
        matches!(error, Error::BinaryTooOld { schema: 901, .. }) && text.contains("9.0.0"),
        "{text}"
    );
}

/// A key file of a new, unrelated database.
async fn other_keys() -> (tempfile::TempDir, KeySource) {
    let directory = tempfile::tempdir().unwrap();
    drop(
        SqlStore::open(Sqlite::options(&directory), clock())
            .await
            .unwrap(),
    );
    let keys = KeySource::File(directory.path().join("keys"));
    (directory, keys)
}

fn ids_in(keys: &Path) -> Vec<String> {
    let ring: serde_json::Value = serde_json::from_slice(&std::fs::read(keys).unwrap()).unwrap();
    [&ring["keys"][0]["id"], &ring["contentHash"]["id"]]
        .map(|id| id.as_str().unwrap().to_owned())
        .to_vec()
}

#[tokio::test]
async fn a_missing_ring_is_an_error_that_names_the_key() {
    let directory = tempfile::tempdir().unwrap();
    let keys = directory.path().join("keys");
    drop(
        SqlStore::open(Sqlite::options(&directory), clock())
            .await
            .unwrap(),
    );
    let ids = ids_in(&keys);
    let saved = std::fs::read(&keys).unwrap();
    std::fs::remove_file(&keys).unwrap();
    let error = SqlStore::open(Sqlite::options(&directory), clock())
        .await
        .unwrap_err();
    let text = error.to_string();
    assert!(
        matches!(error, Error::KeyMissing { .. }) && ids.iter().any(|id| text.contains(id)),
        "{text}"
    );
    assert!(!keys.exists(), "no new ring for a filled database");
    std::fs::write(&keys, saved).unwrap();
    SqlStore::open(Sqlite::options(&directory), clock())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_wrong_ring_is_an_error_that_names_the_key() {
    let directory = tempfile::tempdir().unwrap();
    let keys = directory.path().join("keys");
    drop(
        SqlStore::open(Sqlite::options(&directory), clock())
            .await
            .unwrap(),
    );
    let ids = ids_in(&keys);
    let (_other, source) = other_keys().await;
    let options = OpenOptions {
        keys: source,
        ..Sqlite::options(&directory)
    };
    let error = SqlStore::open(options, clock()).await.unwrap_err();
    let text = error.to_string();
    assert!(
        matches!(error, Error::KeyMissing { .. }) && ids.iter().any(|id| text.contains(id)),
        "{text}"
    );

    // The right ids with other keys under them.
    let mut ring: serde_json::Value = serde_json::from_slice(&std::fs::read(&keys).unwrap()).unwrap();
    ring["keys"][0]["key"] = ring["contentHash"]["key"].clone();
    let text = KeySource::Text(secret(&ring.to_string()));
    let options = OpenOptions {
        keys: text,
        ..Sqlite::options(&directory)
    };
    let error = SqlStore::open(options, clock()).await.unwrap_err();
    let text = error.to_string();
    assert!(
        matches!(error, Error::KeyWrong { .. }) && text.contains(&ids[0]),
        "{text}"
    );
    let key = ring["contentHash"]["key"].as_str().unwrap().to_owned();
    assert!(!text.contains(&key));
}

#[tokio::test]
async fn two_keys_live_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let keys = directory.path().join("keys");
    let store = SqlStore::open(Sqlite::options(&directory), clock())
        .await
        .unwrap();
    let put = |name: &str| PutCluster::new(spec(name, &["web"])).with_kubeconfig(secret(name));
    let old = store.put_cluster(put("old")).await.unwrap().id;
    drop(store);
    // Another ring's data key becomes the active one; the content-hash key stays.
    let (other, _) = other_keys().await;
    let read =
        |path: &Path| serde_json::from_slice::<serde_json::Value>(&std::fs::read(path).unwrap()).unwrap();
    let (mut ring, second) = (read(&keys), read(&other.path().join("keys")));
    ring["active"] = second["active"].clone();
    ring["keys"]
        .as_array_mut()
        .unwrap()
        .push(second["keys"][0].clone());
    std::fs::write(&keys, ring.to_string()).unwrap();

    let store = SqlStore::open(Sqlite::options(&directory), clock())
        .await
        .unwrap();
    let new = store.put_cluster(put("new")).await.unwrap().id;
    assert_eq!(content(&store.kubeconfig(&old).await.unwrap()), "old");
    assert_eq!(content(&store.kubeconfig(&new).await.unwrap()), "new");
    let again = store.put_cluster(put("old")).await.unwrap();
    assert_eq!(
        again.change,
        evenkeel_inventory::Change::Unchanged,
        "equal stays equal under a new key"
    );
    drop(store);
    // The old key may not go while the database knows it.
    ring["keys"].as_array_mut().unwrap().remove(0);
    std::fs::write(&keys, ring.to_string()).unwrap();
    let error = SqlStore::open(Sqlite::options(&directory), clock())
        .await
        .unwrap_err();
    assert!(matches!(error, Error::KeyMissing { .. }), "{error}");
}

#[tokio::test]
async fn a_ring_that_is_there_serves_an_empty_database() {
    let (other, source) = other_keys().await;
    let directory = tempfile::tempdir().unwrap();
    let before = std::fs::read(other.path().join("keys")).unwrap();
    let options = OpenOptions {
        keys: source,
        ..Sqlite::options(&directory)
    };
    SqlStore::open(options, clock()).await.unwrap();
    assert_eq!(std::fs::read(other.path().join("keys")).unwrap(), before);
    assert!(!directory.path().join("keys").exists());
}
