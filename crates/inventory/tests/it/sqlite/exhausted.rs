//! A disk without room, and a file that somebody else has locked: calls fail for a while, and nothing is lost.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use evenkeel_core::{Digest, ManualClock};
use evenkeel_inventory::{
    Archives as _, ClusterFilter, Clusters as _, OpenOptions, PageRequest, PutCluster, SqlStore,
};
use jiff::Timestamp;
use sqlx::Connection as _;

use super::raw;
use crate::fixture::*;

/// Where the child finds its database; unset in the parent.
const DATABASE: &str = "EVENKEEL_TEST_FULL_DATABASE";
/// How large a file of the child may become, in the shell's units of at least 512 bytes.
const LIMIT: &str = "8192";

async fn open(directory: &std::path::Path) -> SqlStore {
    let options = OpenOptions::file(directory.join("db"), directory.join("keys"));
    let clock = Arc::new(ManualClock::new(Timestamp::UNIX_EPOCH));
    SqlStore::open(options, clock).await.unwrap()
}

/// An archive that cannot be made smaller.
fn archive(number: u64) -> Vec<u8> {
    let digests = (0..8_192_u64).map(|part| Digest::of_parts([number.to_be_bytes(), part.to_be_bytes()]));
    digests.flat_map(|digest| *digest.as_bytes()).collect()
}

/// Not a test by itself: what the child runs, until its files are as large as they may be.
#[tokio::test]
async fn child() {
    let Some(directory) = std::env::var_os(DATABASE) else {
        return;
    };
    let store = open(std::path::Path::new(&directory)).await;
    let put = |name: &str| PutCluster::new(spec(name, &["web"])).with_kubeconfig(secret(name));
    store.put_cluster(put("early")).await.unwrap();
    let mut number = 0;
    let error = loop {
        match store.put_archive(archive(number)).await {
            Ok(digest) => eprintln!("kept {digest}"),
            Err(error) => break error,
        }
        number += 1;
    };
    assert!(error.is_transient(), "{error:?}");
    // What was there is read as before, and each call says the same again.
    let page = PageRequest::default();
    let clusters = store.clusters(&ClusterFilter::default(), &page).await.unwrap();
    assert_eq!((clusters.items.len(), clusters.failed.len()), (1, 0));
    assert_eq!(
        content(&store.kubeconfig(&clusters.items[0].id).await.unwrap()),
        "early"
    );
    for _ in 0..3 {
        let error = store.put_archive(archive(number)).await.unwrap_err();
        assert!(error.is_transient(), "{error:?}");
    }
    eprintln!("full");
}

#[tokio::test]
async fn a_full_disk_loses_nothing_that_was_acknowledged() {
    let directory = tempfile::tempdir().unwrap();
    let limited =
        format!("trap '' XFSZ; ulimit -f {LIMIT}; exec \"$0\" --exact sqlite::exhausted::child --nocapture");
    let child = Command::new("sh")
        .args(["-c", &limited])
        .arg(std::env::current_exe().unwrap())
        .env(DATABASE, directory.path())
        .stdout(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8(child.stderr).unwrap();
    assert!(child.status.success(), "{said}");
    assert!(said.lines().any(|line| line == "full"), "{said}");
    // With room again everything that was acknowledged is there, and work goes on.
    let store = open(directory.path()).await;
    let kept: Vec<Digest> = said
        .lines()
        .filter_map(|line| line.strip_prefix("kept ")?.parse().ok())
        .collect();
    assert!(kept.len() > 2, "{said}");
    for digest in kept {
        store.archive(&digest).await.unwrap();
    }
    store
        .put_cluster(PutCluster::new(spec("late", &[])))
        .await
        .unwrap();
    store.put_archive(archive(u64::MAX)).await.unwrap();
}

#[tokio::test]
async fn a_locked_file_is_waited_for_and_not_for_ever() {
    let fleet = Fleet::<Sqlite>::new().await;
    let id = fleet.cluster("a", &["web"]).await;
    let path = fleet.backend.directory.path().join("db");
    let mut other = raw(&path).await;
    sqlx::raw_sql("BEGIN IMMEDIATE")
        .execute(&mut other)
        .await
        .unwrap();
    let begin = Instant::now();
    let put = fleet.store.put_cluster(PutCluster::new(spec("b", &[]))).await;
    let error = put.unwrap_err();
    assert!(
        error.is_transient() && error.to_string().contains("locked"),
        "{error}"
    );
    assert!(begin.elapsed() < Duration::from_secs(60));
    // Reading waits for nobody.
    assert_eq!(fleet.store.cluster(&id).await.unwrap().id, id);
    sqlx::raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
    other.close().await.unwrap();
    fleet.cluster("b", &[]).await;
}
