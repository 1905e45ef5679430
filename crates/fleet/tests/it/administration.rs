//! Settings and keys that are changed while the fleet works.

use std::time::Duration;

use evenkeel_api as api;
use evenkeel_core::ClusterState;
use evenkeel_inventory::{KeyringFile, Keys as _};
use serde_json::json;

use crate::world::{BOUND, World, component, name};

/// Waits until `look` says so.
async fn eventually<F: Future<Output = bool>>(what: &str, look: impl Fn() -> F) {
    let end = tokio::time::Instant::now() + BOUND;
    while !look().await {
        assert!(tokio::time::Instant::now() < end, "{what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn of(cluster: Option<&str>, group: Option<&str>) -> api::SettingFor {
    api::SettingFor {
        cluster: cluster.map(name),
        group: group.map(ToOwned::to_owned),
    }
}

/// Nothing is looked at by interval in these tests, until a setting says so: for one cluster, then for everyone.
#[tokio::test]
async fn a_setting_counts_where_it_is_used() {
    let world = World::new().await;
    world.map_chart("web");
    for cluster in ["blue", "green"] {
        world.put(cluster, json!([component("web", "web")])).await;
        world.ready(cluster).await;
    }
    let checked = async |cluster: &str| world.status(cluster).await.checked;
    world
        .fleet()
        .put_setting("check-interval", &of(Some("blue"), None), Some(json!("1s")))
        .await
        .unwrap();
    // Read before the look is asked for, which may be over before anybody asks again.
    let first = (checked("blue").await, checked("green").await);
    // The next look finds the next due time by the new interval; a person asks for that look.
    for cluster in ["blue", "green"] {
        world.fleet().reconcile(&name(cluster)).await.unwrap();
    }
    eventually("both are looked at", || async {
        checked("blue").await != first.0 && checked("green").await != first.1
    })
    .await;
    let (blue, green) = (checked("blue").await, checked("green").await);
    eventually("blue is looked at again by itself", || async {
        checked("blue").await != blue
    })
    .await;
    assert_eq!(checked("green").await, green, "green is not");
    assert_eq!(world.status("blue").await.state, ClusterState::Ready);
}

/// K17: a mothership at work takes a new key up, goes on, and encrypts again what the old one encrypted.
#[tokio::test]
async fn a_new_key_is_taken_up_while_clusters_are_worked_on() {
    let world = World::new().await;
    world.map_chart("web");
    world.put("blue", json!([component("web", "web")])).await;
    world.ready("blue").await;
    let ring = KeyringFile::new(world.key_file());
    let old = ring.keys().unwrap()[0].id;
    ring.add(jiff::Timestamp::UNIX_EPOCH).unwrap();
    let new = ring.activate(None).unwrap();
    world.put("green", json!([component("web", "web")])).await;
    world.ready("green").await;
    eventually("everything is under the new key", || async {
        let status = world.store().key_status().await.unwrap();
        let rows = |id| {
            status
                .keys
                .iter()
                .find(|key| key.id == id)
                .map_or(0, |key| key.rows)
        };
        rows(new) > 0 && rows(old) == 0
    })
    .await;
    for cluster in ["blue", "green"] {
        world.fleet().reconcile(&name(cluster)).await.unwrap();
        world.ready(cluster).await;
    }
    world.fleet().remove_key(&old.to_string()).await.unwrap();
    ring.remove(old).unwrap();
    let keys = world.fleet().keys().await.unwrap();
    assert_eq!(keys.unreadable, 0);
    let states: Vec<_> = keys.keys.iter().map(|key| key.state).collect();
    assert_eq!(states, [api::KeyState::Removed, api::KeyState::Active]);
}
