//! A process that is killed, for real, in the middle of a rotation, and values that no key opens.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;

use evenkeel_core::ManualClock;
use evenkeel_inventory::{
    ClusterFilter, Clusters as _, Configurations as _, Keys as _, OpenOptions, PageRequest, PutCluster,
    SqlStore, reencrypt_all,
};
use jiff::Timestamp;

use super::meddle;
use crate::fixture::*;

/// Where the child finds its database; unset in the parent.
const DATABASE: &str = "EVENKEEL_TEST_ROTATION_DATABASE";
/// Values that are encrypted again: a kubeconfig and a specification for each cluster.
const CLUSTERS: u32 = 500;

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(Timestamp::UNIX_EPOCH))
}

async fn open(directory: &std::path::Path) -> SqlStore {
    let options = OpenOptions::file(directory.join("db"), directory.join("keys"));
    SqlStore::open(options, clock()).await.unwrap()
}

/// The file is free for another process once the store is gone.
async fn close(store: SqlStore) {
    store.close().await;
}

/// Not a test by itself: what the child runs. It says each batch aloud.
#[tokio::test]
async fn child() {
    let Some(directory) = std::env::var_os(DATABASE) else {
        return;
    };
    let store = open(std::path::Path::new(&directory)).await;
    let mut place = None;
    loop {
        let done = store.reencrypt(place).await.unwrap();
        eprintln!("batch {} {}", done.changed, done.unreadable);
        place = done.next;
        if place.is_none() {
            break;
        }
    }
    eprintln!("whole");
}

async fn every_value_is_there(store: &SqlStore) {
    let mut page = PageRequest::first(500);
    let mut read = 0;
    loop {
        let clusters = store.clusters(&ClusterFilter::default(), &page).await.unwrap();
        assert!(clusters.failed.is_empty(), "{:?}", clusters.failed);
        for cluster in clusters.items {
            assert_eq!(
                content(&store.kubeconfig(&cluster.id).await.unwrap()),
                cluster.name.as_str()
            );
            assert_eq!(
                store.newest_configuration(&cluster.id).await.unwrap().spec.name,
                cluster.name
            );
            read += 1;
        }
        match clusters.next {
            Some(next) => page = PageRequest::after(next, 500),
            None => break,
        }
    }
    assert_eq!(read, CLUSTERS);
}

/// CRY-01: 1,000 values, kill -9 after some, all readable, run again, the rest is done.
#[tokio::test]
async fn a_rotation_survives_kills() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path()).await;
    for number in 0..CLUSTERS {
        let name = format!("c{number}");
        let put = PutCluster::new(spec(&name, &[])).with_kubeconfig(secret(&name));
        store.put_cluster(put).await.unwrap();
    }
    let ring = evenkeel_inventory::KeyringFile::new(directory.path().join("keys"));
    let old = ring.keys().unwrap()[0].id;
    ring.add(Timestamp::UNIX_EPOCH).unwrap();
    ring.activate(None).unwrap();
    close(store).await;
    let mut left = u64::from(CLUSTERS) * 2;
    for lines in [1, 2, 4, 20, 40] {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "sqlite::rotation::child", "--nocapture"])
            .env(DATABASE, directory.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let said: Vec<String> = BufReader::new(child.stderr.take().unwrap())
            .lines()
            .map(Result::unwrap)
            .take(lines)
            .collect();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(said.len(), lines, "{said:?}");
        assert!(said.iter().all(|line| line.ends_with(" 0")), "{said:?}");
        let store = open(directory.path()).await;
        every_value_is_there(&store).await;
        let rows = store.key_status().await.unwrap().keys[0].rows;
        assert!(rows <= left, "what was done stays done");
        left = rows;
        let error = store.remove_key(old).await.unwrap_err();
        assert!(error.to_string().contains(&old.to_string()), "{error}");
        assert!(store.refresh_keys().await.unwrap().leftovers);
        close(store).await;
    }
    assert!(0 < left && left < u64::from(CLUSTERS) * 2, "{left}");
    let store = open(directory.path()).await;
    let pass = reencrypt_all(&store, Timestamp::UNIX_EPOCH, |_| true)
        .await
        .unwrap();
    assert_eq!((pass.changed, pass.is_clean()), (left, true));
    store.remove_key(old).await.unwrap();
    ring.remove(old).unwrap();
    close(store).await;
    let store = open(directory.path()).await;
    every_value_is_there(&store).await;
}

#[tokio::test]
async fn a_value_that_no_key_opens_stops_nothing() {
    let fleet = Fleet::<Sqlite>::new().await;
    let mut ids = Vec::new();
    for name in ["a", "b", "c"] {
        let put = PutCluster::new(spec(name, &[])).with_kubeconfig(secret(name));
        ids.push(fleet.store.put_cluster(put).await.unwrap().id);
    }
    let ring = fleet.backend.ring();
    let old = ring.keys().unwrap()[0].id;
    ring.add(fleet.now()).unwrap();
    ring.activate(None).unwrap();
    fleet.store.refresh_keys().await.unwrap();
    let path = fleet.backend.directory.path().join("db");
    // One was cut, one is plain.
    meddle(
        &path,
        "UPDATE kubeconfigs SET content = substr(content, 1, 20) WHERE cluster_id = (SELECT id FROM clusters WHERE name = 'b')",
    )
    .await;
    meddle(
        &path,
        "UPDATE cluster_configurations SET spec = CAST('{}' AS BLOB) WHERE cluster_id = (SELECT id FROM clusters WHERE name = 'c')",
    )
    .await;
    let pass = reencrypt_all(&*fleet.store, fleet.now(), |_| true).await.unwrap();
    assert_eq!((pass.changed, pass.unreadable, pass.passed_over), (4, 2, 0));
    let named: Vec<_> = pass.named.iter().map(|failure| failure.row.clone()).collect();
    assert_eq!(
        named,
        [
            format!("kubeconfigs.content {}/1", ids[1]),
            format!("cluster_configurations.spec {}/1", ids[2])
        ]
    );
    assert!(fleet.store.kubeconfig(&ids[0]).await.is_ok());
    let status = fleet.store.key_status().await.unwrap();
    assert_eq!((status.keys[0].rows, status.damaged), (1, 1));
    // What is left of the cut one says that it needs the old key; that is told, and the key stays.
    let error = fleet.store.remove_key(old).await.unwrap_err().to_string();
    assert!(error.contains(&format!("{}/1", ids[1])), "{error}");
    assert!(fleet.store.refresh_keys().await.unwrap().leftovers);
    // Replaced, it needs nothing any more.
    fleet
        .store
        .put_kubeconfig(&ids[1], secret("new").into())
        .await
        .unwrap();
    meddle(&path, "DELETE FROM kubeconfigs WHERE length(content) = 20").await;
    fleet.store.remove_key(old).await.unwrap();
}
