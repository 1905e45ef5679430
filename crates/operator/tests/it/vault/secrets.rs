//! Reading and writing.

use evenkeel_operator::Error;
use evenkeel_operator::vault::{Engine, Reading, SecretData, SecretPath, SecretStore as _, Version, Written};
use reqwest::Method;
use serde_json::{Value, json};

use super::{call, engine, path, secret, shown, store};

#[tokio::test]
async fn a_key_is_set_once_and_others_stay() {
    for version in [Engine::V1, Engine::V2] {
        let mount = engine(version);
        let store = store(&mount, version);
        let place = path("t-one/c-one/steward");
        assert_eq!(store.read(&place).await.unwrap().data, None);
        assert_eq!(
            store.set(&place, "token", &secret("one")).await.unwrap(),
            Written::Changed
        );
        assert_eq!(
            store.set(&place, "token", &secret("one")).await.unwrap(),
            Written::Unchanged
        );
        // What somebody else keeps beside it, be it no text.
        let area = if version == Engine::V2 { "data/" } else { "" };
        let both = json!({ "token": "one", "note": { "by": ["hand"] } });
        let body = if version == Engine::V2 {
            json!({ "data": both })
        } else {
            both
        };
        call(Method::POST, &format!("{mount}/{area}t-one/c-one/steward"), &body);
        assert_eq!(
            store.set(&place, "token", &secret("two")).await.unwrap(),
            Written::Changed
        );
        let found = call(
            Method::GET,
            &format!("{mount}/{area}t-one/c-one/steward"),
            &Value::Null,
        );
        let found = if version == Engine::V2 {
            &found["data"]["data"]
        } else {
            &found["data"]
        };
        assert_eq!(
            *found,
            json!({ "token": "two", "note": { "by": ["hand"] } }),
            "{version:?}"
        );
        let read = store.read(&place).await.unwrap().data.unwrap();
        assert_eq!(read.get("token"), Some("two"));
        let text = format!("{read:?}");
        assert!(text.contains("note") && !text.contains("two"), "{text}");
    }
}

/// A second pass writes nothing (E14): Vault counts versions.
#[tokio::test]
async fn what_is_so_already_makes_no_version() {
    let mount = engine(Engine::V2);
    let store = store(&mount, Engine::V2);
    for _ in 0..3 {
        let _ = store.set(&path("a/b"), "token", &secret("same")).await.unwrap();
    }
    assert_eq!(shown(&mount, "a/b")["metadata"]["version"], 1);
}

#[tokio::test]
async fn who_wrote_in_between_is_not_overwritten() {
    let mount = engine(Engine::V2);
    let store = store(&mount, Engine::V2);
    let place = path("a/b");
    let before = store.read(&place).await.unwrap();
    assert_eq!(before.version, Version::Numbered(0));
    let _ = store.set(&place, "token", &secret("theirs")).await.unwrap();
    let mut data = SecretData::default();
    data.set("token", &secret("ours"));
    let error = store.write(&place, &data, before.version).await.unwrap_err();
    assert!(matches!(error, Error::Conflict { .. }), "{error}");
    assert_eq!(shown(&mount, "a/b")["data"], json!({ "token": "theirs" }));
}

/// A secret that was deleted softly has no data and keeps its number: a write that takes it for new is refused by Vault.
#[tokio::test]
async fn a_softly_deleted_secret_is_written_again() {
    let mount = engine(Engine::V2);
    let store = store(&mount, Engine::V2);
    let place = path("a/b");
    for value in ["one", "two"] {
        let _ = store.set(&place, "token", &secret(value)).await.unwrap();
    }
    call(Method::DELETE, &format!("{mount}/data/a/b"), &Value::Null);
    let expected = Reading {
        data: None,
        version: Version::Numbered(2),
    };
    assert_eq!(store.read(&place).await.unwrap(), expected);
    assert_eq!(
        store.set(&place, "token", &secret("three")).await.unwrap(),
        Written::Changed
    );
    assert_eq!(shown(&mount, "a/b")["data"], json!({ "token": "three" }));
}

/// An engine that is not there is no empty engine: whoever took it for one would write, or believe that all is gone.
#[tokio::test]
async fn a_missing_engine_is_an_error() {
    let _ = engine(Engine::V2);
    let store = store("nowhere", Engine::V2);
    let error = store.read(&path("a/b")).await.unwrap_err();
    assert!(matches!(error, Error::Refused { status: 404, .. }), "{error}");
    assert!(error.to_string().contains("read the secret a/b"), "{error}");
    let error = store.below(&path("a")).await.unwrap_err();
    assert!(matches!(error, Error::Refused { status: 404, .. }), "{error}");
}

#[test]
fn paths_lead_where_they_say() {
    for bad in [&[][..], &["a", ""], &["a", ".."], &["."], &["a/b"], &["a\n"]] {
        let error = SecretPath::new(bad.iter().copied()).unwrap_err();
        assert!(matches!(error, Error::Invalid { .. }), "{bad:?}");
    }
    assert_eq!(
        SecretPath::new(["t-one", "c one"]).unwrap().to_string(),
        "t-one/c one"
    );
}

/// What has a meaning in an address has none in a name.
#[tokio::test]
async fn odd_names_are_kept() {
    let mount = engine(Engine::V2);
    let store = store(&mount, Engine::V2);
    let place = SecretPath::new(["t one", "c?x=1#%2F"]).unwrap();
    let _ = store.set(&place, "token", &secret("a")).await.unwrap();
    assert_eq!(
        store.below(&SecretPath::new(["t one"]).unwrap()).await.unwrap(),
        [place]
    );
}
