//! Keys are replaced while everything goes on (K17).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use evenkeel_core::{ClusterState, ConfigurationVersion};
use evenkeel_inventory::{Error, KeyId, PageRequest, PutCluster, StatusChange, Store, reencrypt_all};
use jiff::Timestamp;

use crate::fixture::*;
use crate::sqlite::secrets::{filled, read_all};

/// Longer than any call may take that sealed with a key before it was replaced.
const GRACE: i64 = 120;

/// A new key that encrypts from now on; answers the old and the new one.
async fn replace<B: Database>(fleet: &Fleet<B>) -> (KeyId, KeyId) {
    let ring = fleet.backend.ring();
    let old = ring
        .keys()
        .unwrap()
        .into_iter()
        .find(|key| key.active)
        .unwrap()
        .id;
    let new = ring.add(fleet.now()).unwrap();
    let agreement = fleet.store.refresh_keys().await.unwrap();
    assert_eq!(agreement.active, old, "a key that was added encrypts nothing yet");
    ring.activate(None).unwrap();
    let agreement = fleet.store.refresh_keys().await.unwrap();
    assert_eq!((agreement.active, agreement.waiting_for.len()), (new, 0));
    assert!(agreement.leftovers);
    (old, new)
}

async fn pass(store: &dyn Store, begun: Timestamp) -> u64 {
    let done = reencrypt_all(store, begun, |_| true).await.unwrap();
    assert!(done.is_clean(), "{done:?}");
    done.changed
}

async fn rows(store: &dyn Store) -> BTreeMap<KeyId, u64> {
    let status = store.key_status().await.unwrap();
    assert_eq!((status.damaged, status.unknown.len()), (0, 0));
    status.keys.iter().map(|key| (key.id, key.rows)).collect()
}

/// CRY-01, CRY-03: history, what was deleted softly and what is null included.
pub(crate) async fn a_rotation_reaches_every_value<B: Database>() {
    let fleet = filled::<B>().await;
    let gone = fleet.cluster("gone", &["web"]).await;
    fleet
        .store
        .request_deletion(&gone, evenkeel_core::DeleteMode::Forget)
        .await
        .unwrap();
    let (old, new) = replace(&fleet).await;
    let before = rows(&*fleet.store).await;
    assert!(before[&old] > 10, "{before:?}");
    assert_eq!(before[&new], 0);
    // Both live: what is under the old key is read, what is written is under the new one.
    read_all(&*fleet.store).await;
    let put = PutCluster::new(spec("c2", &["web"])).with_kubeconfig(secret("another"));
    let second = fleet.store.put_cluster(put).await.unwrap().id;
    assert!(rows(&*fleet.store).await[&new] >= 2);

    fleet.advance(GRACE);
    assert_eq!(pass(&*fleet.store, fleet.now()).await, before[&old]);
    assert_eq!(pass(&*fleet.store, fleet.now()).await, 0, "twice is once");
    let after = rows(&*fleet.store).await;
    assert_eq!(after[&old], 0);
    read_all(&*fleet.store).await;
    assert!(!fleet.store.refresh_keys().await.unwrap().leftovers);

    // Nothing needs the old key: not a process that starts, and nothing that it reads.
    fleet.store.remove_key(old).await.unwrap();
    fleet.store.remove_key(old).await.unwrap();
    fleet.backend.ring().remove(old).unwrap();
    let fleet = fleet.crash().await;
    read_all(&*fleet.store).await;
    assert_eq!(
        content(&fleet.store.kubeconfig(&second).await.unwrap()),
        "another"
    );
    let status = fleet.store.key_status().await.unwrap();
    assert!(status.keys[0].removed_at.is_some() && status.keys[1].active);
    // Content hashes outlive it: an equal configuration still makes no new version.
    let again = fleet.put(spec("c2", &["web"])).await;
    assert_eq!(again.change, evenkeel_inventory::Change::Unchanged);
    // And the next rotation is like the first, once the process that crashed is no longer waited for.
    fleet.advance(GRACE);
    let (second_key, third) = replace(&fleet).await;
    assert_eq!(second_key, new);
    fleet.advance(GRACE);
    pass(&*fleet.store, fleet.now()).await;
    let after = rows(&*fleet.store).await;
    assert_eq!((after[&second_key], after[&third] > 10), (0, true));
    read_all(&*fleet.store).await;
}

/// CRY-01: whatever moment it ends at, every value can be read, and the rest is done later.
pub(crate) async fn a_rotation_goes_on_where_it_was_cut_off<B: Database>() {
    let mut fleet = filled::<B>().await;
    let (old, _) = replace(&fleet).await;
    let whole = rows(&*fleet.store).await[&old];
    let (mut changed, mut batches) = (0, 0);
    loop {
        // Always the first batches only, then the end.
        let mut place = None;
        for _ in 0..=batches {
            let done = fleet.store.reencrypt(place).await.unwrap();
            changed += done.changed;
            place = done.next;
            if place.is_none() {
                break;
            }
        }
        batches += 1;
        fleet = fleet.crash().await;
        read_all(&*fleet.store).await;
        if place.is_none() {
            break;
        }
        assert!(
            fleet.store.refresh_keys().await.unwrap().leftovers,
            "it is not forgotten"
        );
    }
    assert!(batches > 5);
    assert_eq!(changed, whole, "each value was encrypted again once");
    assert_eq!(rows(&*fleet.store).await[&old], 0);
}

pub(crate) async fn a_rotation_does_not_undo_what_others_write<B: Database>() {
    let fleet = Fleet::<B>::new().await;
    let mut ids = Vec::new();
    for number in 0..12 {
        ids.push(fleet.cluster(&format!("c{number}"), &["web"]).await);
    }
    let change = |state, reason: String| StatusChange {
        reason: Some(reason),
        ..StatusChange::new(state, ConfigurationVersion(1))
    };
    let done = AtomicBool::new(false);
    let write = async {
        for round in 0..30 {
            for id in &ids {
                let state = [ClusterState::Degraded, ClusterState::Ready][round % 2];
                let recorded = change(state, format!("round {round}"));
                fleet.store.record_status(id, recorded).await.unwrap();
            }
        }
        done.store(true, Ordering::Relaxed);
    };
    let rotate = async {
        let mut rotations = 0;
        while !done.load(Ordering::Relaxed) || rotations == 0 {
            fleet.backend.ring().add(fleet.now()).unwrap();
            fleet.backend.ring().activate(None).unwrap();
            fleet.store.refresh_keys().await.unwrap();
            reencrypt_all(&*fleet.store, fleet.now(), |_| true).await.unwrap();
            rotations += 1;
            tokio::task::yield_now().await;
        }
    };
    tokio::join!(write, rotate);
    for id in &ids {
        let cluster = fleet.store.cluster(id).await.unwrap();
        assert_eq!(cluster.status.reason.as_deref(), Some("round 29"));
        let history = fleet
            .store
            .status_history(id, &PageRequest::default())
            .await
            .unwrap();
        assert_eq!((history.items.len(), history.failed.len()), (30, 0));
        assert_eq!(history.items[0].reason.as_deref(), Some("round 28"));
    }
    fleet.advance(GRACE);
    pass(&*fleet.store, fleet.now()).await;
    let active = fleet.store.refresh_keys().await.unwrap().active;
    let used = rows(&*fleet.store).await;
    assert!(
        used.iter().all(|(id, rows)| *id == active || *rows == 0),
        "{used:?}"
    );
}

pub(crate) async fn a_key_in_use_is_not_removed<B: Database>() {
    let fleet = filled::<B>().await;
    let store = &fleet.store;
    let refused = |answer: Result<(), Error>, key: KeyId, why: &str| {
        let error = answer.unwrap_err();
        assert!(
            matches!(&error, Error::KeyRefused { key: named, .. } if *named == key),
            "{error}"
        );
        let text = error.to_string();
        assert!(text.contains(why) && text.contains(&key.to_string()), "{text}");
    };
    let unknown = KeyId(1);
    assert!(matches!(
        store.remove_key(unknown).await,
        Err(Error::NotFound { .. })
    ));
    let (old, new) = replace(&fleet).await;
    refused(store.remove_key(new).await, new, "active");
    fleet.advance(GRACE);
    refused(store.remove_key(old).await, old, "kubeconfigs.content");
    pass(&**store, fleet.now()).await;
    store.remove_key(old).await.unwrap();
    // A ring that still has it does not bring it back.
    assert_eq!(store.refresh_keys().await.unwrap().active, new);
    // One that would have it encrypt again is refused, by name.
    let path = fleet.backend.ring().path().to_owned();
    let mut text: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    text["active"] = serde_json::json!(old.to_string());
    std::fs::write(&path, text.to_string()).unwrap();
    refused(store.refresh_keys().await.map(drop), old, "removed");
    read_all(&**store).await;
}

pub(crate) async fn a_broken_ring_leaves_the_keys_in_use<B: Database>() {
    let fleet = filled::<B>().await;
    let ring = fleet.backend.ring();
    let first = ring.keys().unwrap()[0].id;
    let path = ring.path().to_owned();
    let good = std::fs::read(&path).unwrap();
    let mut other: serde_json::Value = serde_json::from_slice(&good).unwrap();
    other["keys"][0]["key"] = serde_json::json!("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
    let mut lacking: serde_json::Value = serde_json::from_slice(&good).unwrap();
    lacking["keys"][0]["id"] = serde_json::json!("00000001");
    lacking["active"] = serde_json::json!("00000001");
    for (bad, named) in [
        (b"{".to_vec(), "line 1"),
        (other.to_string().into_bytes(), &*first.to_string()),
        (lacking.to_string().into_bytes(), &*first.to_string()),
    ] {
        std::fs::write(&path, &bad).unwrap();
        let error = fleet.store.refresh_keys().await.unwrap_err().to_string();
        assert!(error.contains(named), "{error}");
        assert!(!error.contains("AAAAAAAA"), "{error}");
        read_all(&*fleet.store).await;
    }
    std::fs::remove_file(&path).unwrap();
    let error = fleet.store.refresh_keys().await.unwrap_err();
    assert!(
        matches!(&error, Error::KeyMissing { key, .. } if *key == first || key.to_string().len() == 8),
        "{error}"
    );
    assert!(!path.exists(), "a ring that is lost is not made anew");
    read_all(&*fleet.store).await;
    std::fs::write(&path, &good).unwrap();
    fleet.store.refresh_keys().await.unwrap();
    fleet.cluster("c2", &["web"]).await;
}
