//! Keys of several processes on one database (K17, K29).

use evenkeel_inventory::{
    Clusters as _, Error, KeyringFile, Keys as _, PutCluster, SqlStore, Store, reencrypt_all,
};
use jiff::SignedDuration;

use crate::fixture::*;
use crate::sqlite::secrets::{filled, read_all};

/// A process on the database of `first` that has its key ring elsewhere, as on another machine.
async fn elsewhere(first: &Pg) -> (tempfile::TempDir, SqlStore) {
    let directory = tempfile::tempdir().unwrap();
    std::fs::copy(first.directory.path().join("keys"), directory.path().join("keys")).unwrap();
    let store = SqlStore::open(Pg::options(&first.url, &directory), first.clock.clone())
        .await
        .unwrap();
    (directory, store)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_encrypts_once_all_processes_hold_it() {
    let fleet = filled::<Pg>().await;
    let first = &fleet.backend.store;
    let (directory, second) = elsewhere(&fleet.backend).await;
    let (ring, other) = (
        fleet.backend.ring(),
        KeyringFile::new(directory.path().join("keys")),
    );
    let old = ring.keys().unwrap()[0].id;
    let new = ring.add(fleet.now()).unwrap();
    ring.activate(None).unwrap();
    // The second has not heard of it: what the first wrote under it, it could not read.
    for _ in 0..2 {
        let agreement = first.refresh_keys().await.unwrap();
        assert_eq!((agreement.active, agreement.wanted), (old, Some(new)));
        assert_eq!(agreement.waiting_for.len(), 1);
    }
    let put = PutCluster::new(spec("c2", &[])).with_kubeconfig(secret("x"));
    let id = first.put_cluster(put).await.unwrap().id;
    assert_eq!(content(&second.kubeconfig(&id).await.unwrap()), "x");
    // Its ring gets the key, but is behind in which one is active: that turns nobody back.
    std::fs::copy(ring.path(), other.path()).unwrap();
    let mut text: serde_json::Value = serde_json::from_slice(&std::fs::read(other.path()).unwrap()).unwrap();
    text["active"] = serde_json::json!(old.to_string());
    std::fs::write(other.path(), text.to_string()).unwrap();
    assert_eq!(second.refresh_keys().await.unwrap().active, old);
    assert_eq!(first.refresh_keys().await.unwrap().active, new);
    let put = PutCluster::new(spec("c3", &[])).with_kubeconfig(secret("y"));
    let id = first.put_cluster(put).await.unwrap().id;
    assert_eq!(content(&second.kubeconfig(&id).await.unwrap()), "y");
    // The second still encrypts with the old one, so that stays.
    fleet.clock.advance(SignedDuration::from_secs(30));
    let error = first.remove_key(old).await.unwrap_err().to_string();
    assert!(error.contains("still encrypts"), "{error}");
    assert_eq!(second.refresh_keys().await.unwrap().active, new);
    let error = first.remove_key(old).await.unwrap_err().to_string();
    assert!(error.contains("try again in 31 s"), "{error}");
    fleet.clock.advance(SignedDuration::from_secs(31));

    // Both encrypt again at the same time; together they do it all.
    let begun = fleet.now();
    let (one, two) = tokio::join!(
        reencrypt_all(&**first, begun, |_| true),
        reencrypt_all(&second, begun, |_| true)
    );
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_eq!((one.unreadable, two.unreadable), (0, 0));
    reencrypt_all(&**first, begun, |_| true).await.unwrap();
    first.remove_key(old).await.unwrap();
    ring.remove(old).unwrap();
    assert!(matches!(other.remove(old), Err(Error::KeyRefused { .. })));
    other.activate(None).unwrap();
    other.remove(old).unwrap();
    first.refresh_keys().await.unwrap();
    read_all(&second as &dyn Store).await;
    second.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_ended_is_not_waited_for() {
    for peacefully in [true, false] {
        let fleet = filled::<Pg>().await;
        let first = &fleet.backend.store;
        let (_directory, second) = elsewhere(&fleet.backend).await;
        let ring = fleet.backend.ring();
        let new = ring.add(fleet.now()).unwrap();
        ring.activate(None).unwrap();
        assert_ne!(first.refresh_keys().await.unwrap().active, new);
        if peacefully {
            second.close().await;
        } else {
            drop(second);
            fleet.clock.advance(SignedDuration::from_secs(59));
            assert_ne!(first.refresh_keys().await.unwrap().active, new);
            fleet.clock.advance(SignedDuration::from_secs(2));
        }
        assert_eq!(first.refresh_keys().await.unwrap().active, new);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_starts_without_the_key_is_told_which() {
    let fleet = filled::<Pg>().await;
    let directory = tempfile::tempdir().unwrap();
    let kept = directory.path().join("keys");
    let ring = fleet.backend.ring();
    std::fs::copy(ring.path(), &kept).unwrap();
    let new = ring.add(fleet.now()).unwrap();
    ring.activate(None).unwrap();
    assert_eq!(fleet.store.refresh_keys().await.unwrap().active, new);
    let error = SqlStore::open(Pg::options(&fleet.backend.url, &directory), fleet.clock.clone())
        .await
        .unwrap_err();
    assert!(
        matches!(&error, Error::KeyMissing { key, .. } if *key == new),
        "{error}"
    );
    assert!(error.to_string().contains(&new.to_string()), "{error}");
}
