//! Removing, by each policy (A17, B8, B9, B10).

use evenkeel_operator::resources::DeletionPolicy;
use evenkeel_operator::vault::{Engine, Removal, SecretStore as _, Vault};
use reqwest::Method;
use serde_json::Value;

use super::{call, engine, path, secret, store};

/// Secrets at the path of a cluster, below it, deep below it, and beside it.
async fn fill(store: &Vault) {
    for place in [
        "t-one/c-one",
        "t-one/c-one/steward",
        "t-one/c-one/deep/er/one",
        "t-one/c-one/deep/er/two",
        "t-one/c-one-b/steward",
        "t-two/c-one/steward",
    ] {
        let _ = store.set(&path(place), "token", &secret("one")).await.unwrap();
    }
    let _ = store
        .set(&path("t-one/c-one/steward"), "token", &secret("two"))
        .await
        .unwrap();
}

fn versions(mount: &str, place: &str) -> Value {
    call(Method::GET, &format!("{mount}/metadata/{place}"), &Value::Null)["data"]["versions"].clone()
}

#[tokio::test]
async fn deleting_takes_everything_below_and_nothing_beside() {
    for version in [Engine::V1, Engine::V2] {
        let mount = engine(version);
        let store = store(&mount, version);
        fill(&store).await;
        let cluster = path("t-one/c-one");
        assert_eq!(store.below(&cluster).await.unwrap().len(), 4);
        let removal = store.remove(&cluster, DeletionPolicy::Delete).await.unwrap();
        assert_eq!(removal, Removal { removed: 4, kept: 0 }, "{version:?}");
        assert_eq!(store.below(&cluster).await.unwrap(), []);
        assert_eq!(store.below(&path("t-one")).await.unwrap().len(), 1);
        assert_eq!(store.below(&path("t-two")).await.unwrap().len(), 1);
        let again = store.remove(&cluster, DeletionPolicy::Delete).await.unwrap();
        assert_eq!(again, Removal { removed: 0, kept: 0 });
    }
}

#[tokio::test]
async fn archiving_deletes_every_version_softly_and_once() {
    let mount = engine(Engine::V2);
    let store = store(&mount, Engine::V2);
    fill(&store).await;
    let cluster = path("t-one/c-one");
    let removal = store.remove(&cluster, DeletionPolicy::Archive).await.unwrap();
    assert_eq!(removal, Removal { removed: 4, kept: 0 });
    let found = versions(&mount, "t-one/c-one/steward");
    assert_eq!(found.as_object().unwrap().len(), 2);
    for version in found.as_object().unwrap().values() {
        assert_ne!(version["deletion_time"], "");
        assert_eq!(version["destroyed"], false);
    }
    assert_eq!(store.read(&path("t-one/c-one/steward")).await.unwrap().data, None);
    assert_ne!(
        store.read(&path("t-one/c-one-b/steward")).await.unwrap().data,
        None
    );
    let again = store.remove(&cluster, DeletionPolicy::Archive).await.unwrap();
    assert_eq!(again, Removal { removed: 0, kept: 0 });
    // It can be brought back.
    let body = serde_json::json!({ "versions": [2] });
    call(
        Method::POST,
        &format!("{mount}/undelete/t-one/c-one/steward"),
        &body,
    );
    let data = store
        .read(&path("t-one/c-one/steward"))
        .await
        .unwrap()
        .data
        .unwrap();
    assert_eq!(data.get("token"), Some("two"));
}

/// B8: to keep everything is done at once, and is no error. What cannot be archived is kept too: deleting is not archiving.
#[tokio::test]
async fn what_is_to_be_kept_is_kept() {
    for (version, policy) in [
        (Engine::V1, DeletionPolicy::Retain),
        (Engine::V2, DeletionPolicy::Retain),
        (Engine::V1, DeletionPolicy::Archive),
    ] {
        let mount = engine(version);
        let store = store(&mount, version);
        fill(&store).await;
        let removal = store.remove(&path("t-one/c-one"), policy).await.unwrap();
        assert_eq!(removal, Removal { removed: 0, kept: 4 }, "{version:?} {policy:?}");
        let data = store
            .read(&path("t-one/c-one/steward"))
            .await
            .unwrap()
            .data
            .unwrap();
        assert_eq!(data.get("token"), Some("two"));
    }
}

/// B10: what never was is as good as removed.
#[tokio::test]
async fn nothing_is_removed_where_nothing_is() {
    for version in [Engine::V1, Engine::V2] {
        let store = store(&engine(version), version);
        for policy in [
            DeletionPolicy::Delete,
            DeletionPolicy::Archive,
            DeletionPolicy::Retain,
        ] {
            let removal = store.remove(&path("t-one/c-gone"), policy).await.unwrap();
            assert_eq!(removal, Removal { removed: 0, kept: 0 });
        }
    }
}
