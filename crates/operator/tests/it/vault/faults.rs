//! Faults between us and a real Vault, and tokens that end (A13, OPR-07).

use evenkeel_core::Sensitive;
use evenkeel_operator::Error;
use evenkeel_operator::resources::DeletionPolicy;
use evenkeel_operator::vault::{Engine, Login, SecretStore as _, Vault, VaultSettings, Written};
use evenkeel_steps::FailureClass;
use evenkeel_testkit::{CallFault, FaultProxy};
use reqwest::Method;
use serde_json::{Value, json};

use super::{call, engine, path, root, secret, server, settings, shown, store};

/// A store whose calls go through a proxy. Its patience ends before that of the test.
async fn proxied(mount: &str, login: Login) -> (Vault, FaultProxy) {
    let proxy = FaultProxy::before(&server().url()).await;
    let settings = VaultSettings {
        address: proxy.url().parse().unwrap(),
        timeout: std::time::Duration::from_secs(5),
        ..settings(mount, Engine::V2, login)
    };
    (Vault::new(&settings).unwrap(), proxy)
}

/// Everything that the operator does to one cluster's secret.
async fn pass(store: &Vault) -> Result<(), Error> {
    let place = path("t-one/c-one/steward");
    let _ = store.set(&place, "token", &secret("one")).await?;
    let _ = store.set(&place, "token", &secret("two")).await?;
    store
        .remove(&path("t-one/c-one"), DeletionPolicy::Archive)
        .await?;
    let _ = store.set(&place, "token", &secret("three")).await?;
    store
        .remove(&path("t-one/c-gone"), DeletionPolicy::Delete)
        .await?;
    Ok(())
}

/// E14: after any single fault the same pass again ends in the same state.
#[tokio::test]
async fn after_any_single_fault_the_next_pass_ends_as_if_there_had_been_none() {
    let mount = engine(Engine::V2);
    let (store, proxy) = proxied(&mount, root()).await;
    pass(&store).await.unwrap();
    let calls = proxy.requests();
    assert!(calls > 10, "{calls}");
    for fault in CallFault::ALL {
        for at in 0..calls {
            // A hanging call costs its whole timeout: once says it.
            if fault == CallFault::Hang && at != 3 {
                continue;
            }
            let mount = engine(Engine::V2);
            let (store, proxy) = proxied(&mount, root()).await;
            proxy.fail(at, fault);
            let error = pass(&store).await;
            assert!(proxy.heal(), "{fault:?} at {at} was not met");
            match (fault, error) {
                (CallFault::Conflict, Err(_)) => {}
                (CallFault::TooManyRequests, Err(error)) => assert!(
                    matches!(error.class(), FailureClass::RateLimited { .. }),
                    "{fault:?} at {at}: {error}"
                ),
                (_, Err(error)) => {
                    assert_eq!(
                        error.class(),
                        FailureClass::Transient,
                        "{fault:?} at {at}: {error}"
                    );
                }
                (_, Ok(())) => panic!("{fault:?} at {at} was not told"),
            }
            pass(&store).await.unwrap();
            assert_eq!(
                shown(&mount, "t-one/c-one/steward")["data"],
                json!({ "token": "three" }),
                "{fault:?} at {at}"
            );
        }
    }
}

/// An answer that got lost does not make a second version: what is there is looked at first.
#[tokio::test]
async fn a_write_whose_answer_is_lost_is_not_done_twice() {
    let mount = engine(Engine::V2);
    let (store, proxy) = proxied(&mount, root()).await;
    // Look up the token, read, write.
    proxy.fail(2, CallFault::CutAfter);
    let place = path("a/b");
    store.set(&place, "token", &secret("one")).await.unwrap_err();
    assert!(proxy.heal());
    assert_eq!(
        store.set(&place, "token", &secret("one")).await.unwrap(),
        Written::Unchanged
    );
    assert_eq!(shown(&mount, "a/b")["metadata"]["version"], 1);
}

fn token(body: &Value) -> Sensitive<String> {
    let answer = call(Method::POST, "auth/token/create", body);
    secret(answer["auth"]["client_token"].as_str().unwrap())
}

#[tokio::test]
async fn a_token_without_rights_is_told_with_the_secret() {
    let mount = engine(Engine::V2);
    let poor = Vault::new(&settings(
        &mount,
        Engine::V2,
        Login::Token(token(&json!({ "policies": ["default"] }))),
    ))
    .unwrap();
    let error = poor.read(&path("t-one/c-one/steward")).await.unwrap_err();
    assert_eq!(error.class(), FailureClass::Forbidden);
    assert!(
        error.to_string().contains("read the secret t-one/c-one/steward"),
        "{error}"
    );
}

#[tokio::test]
async fn a_token_that_was_revoked_is_told_as_such_and_is_not_shown() {
    let mount = engine(Engine::V2);
    let given = token(&json!({}));
    let store = Vault::new(&settings(&mount, Engine::V2, Login::Token(given.clone()))).unwrap();
    let _ = store.set(&path("a"), "token", &secret("one")).await.unwrap();
    call(
        Method::POST,
        "auth/token/revoke",
        &json!({ "token": given.expose() }),
    );
    let error = store.read(&path("a")).await.unwrap_err();
    assert_eq!(error.class(), FailureClass::Forbidden);
    let text = format!("{error} {error:?} {store:?}");
    assert!(text.contains("give another"), "{text}");
    assert!(!text.contains(given.expose().as_str()), "{text}");
}

/// A token is renewed while it lives. On a machine that stalls it may end first, which is told; then another is tried.
#[tokio::test]
async fn a_token_is_renewed_before_it_ends() {
    let mount = engine(Engine::V2);
    let new_token = || token(&json!({ "ttl": "6s", "explicit_max_ttl": "10m", "renewable": true }));
    let (mut store, mut proxy) = proxied(&mount, Login::Token(new_token())).await;
    evenkeel_testkit::eventually("a renewal", async || {
        let result = store.set(&path("a"), "token", &secret("one")).await;
        let is_renewed = proxy
            .passed()
            .iter()
            .any(|call| call == "POST /v1/auth/token/renew-self");
        match result {
            Ok(_) if is_renewed => Ok(()),
            Ok(_) => Err("not yet".to_owned()),
            Err(error) => {
                (store, proxy) = proxied(&mount, Login::Token(new_token())).await;
                Err(error.to_string())
            }
        }
    })
    .await;
}

#[tokio::test]
async fn many_callers_share_one_look_at_the_token() {
    let mount = engine(Engine::V2);
    let (store, proxy) = proxied(&mount, root()).await;
    let places: Vec<_> = (0..20).map(|number| path(&format!("a/{number}"))).collect();
    let reads = places.iter().map(|place| store.read(place));
    for result in futures::future::join_all(reads).await {
        result.unwrap();
    }
    let lookups = proxy
        .passed()
        .iter()
        .filter(|call| call.contains("lookup-self"))
        .count();
    assert_eq!(lookups, 1);
    assert_eq!(proxy.requests(), 21);
}

/// A13: a Vault that is not there is told at each use and is no crash.
#[tokio::test]
async fn a_vault_that_is_not_there_is_told() {
    let _ = store(&engine(Engine::V2), Engine::V2);
    let settings = VaultSettings::new("http://127.0.0.1:1".parse().unwrap(), root());
    let error = Vault::new(&settings).unwrap().read(&path("a")).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    let settings = VaultSettings::new("ftp://127.0.0.1/".parse().unwrap(), root());
    assert!(matches!(Vault::new(&settings), Err(Error::Invalid { .. })));
}
