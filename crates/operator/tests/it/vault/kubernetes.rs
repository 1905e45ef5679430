//! Login by a service account of a real Kubernetes cluster (OPR-07).

use std::path::Path;

use evenkeel_operator::Error;
use evenkeel_operator::resources::DeletionPolicy;
use evenkeel_operator::vault::{Engine, Login, SecretStore as _, Vault, VaultSettings, Written};
use evenkeel_testkit::{FaultProxy, TestCluster, cluster};
use kube::config::Kubeconfig;
use reqwest::Method;
use serde_json::{Value, json};

use super::{call, engine, path, root, secret, server, settings};

const POLICY: &str = r#"
path "MOUNT/data/*" { capabilities = ["read", "create", "update", "delete"] }
path "MOUNT/metadata/*" { capabilities = ["read", "list", "delete"] }
path "MOUNT/delete/*" { capabilities = ["update"] }
"#;

fn succeed(cluster: &TestCluster, arguments: &[&str]) -> String {
    let output = cluster.kubectl().args(arguments).output().unwrap();
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn new_token(cluster: &TestCluster, namespace: &str, file: &Path) {
    let token = succeed(cluster, &["-n", namespace, "create", "token", "operator"]);
    std::fs::write(file, format!("{token}\n")).unwrap();
}

/// Lets service account `operator` of a new namespace log in, with the rights that Lieutenant's documentation asks for. Gives back
/// the login.
async fn prepare(mount: &str, ttl: &str, folder: &Path) -> (Login, String) {
    let cluster = cluster("main");
    let namespace = cluster.namespace("vault").await;
    succeed(
        cluster,
        &["-n", &namespace, "create", "serviceaccount", "operator"],
    );
    // Vault asks the cluster about a token with that very token.
    let binding = format!("--serviceaccount={namespace}:operator");
    let name = format!("{namespace}-delegator");
    succeed(
        cluster,
        &[
            "create",
            "clusterrolebinding",
            &name,
            "--clusterrole=system:auth-delegator",
            &binding,
        ],
    );
    let login_path = format!("kubernetes-{mount}");
    call(
        Method::POST,
        &format!("sys/auth/{login_path}"),
        &json!({ "type": "kubernetes" }),
    );
    let kubeconfig = Kubeconfig::from_yaml(cluster.kubeconfig()).unwrap();
    let entry = kubeconfig.clusters[0].cluster.clone().unwrap();
    let authority = entry.certificate_authority_data.unwrap();
    let authority = decode(&authority);
    call(
        Method::POST,
        &format!("auth/{login_path}/config"),
        &json!({
            "kubernetes_host": cluster.url(), "kubernetes_ca_cert": String::from_utf8(authority).unwrap(),
            "disable_local_ca_jwt": true,
        }),
    );
    call(
        Method::PUT,
        &format!("sys/policies/acl/{mount}"),
        &json!({ "policy": POLICY.replace("MOUNT", mount) }),
    );
    call(
        Method::POST,
        &format!("auth/{login_path}/role/lieutenant-operator"),
        &json!({
            "bound_service_account_names": ["operator"], "bound_service_account_namespaces": [namespace],
            "token_policies": [mount], "token_ttl": ttl, "token_max_ttl": ttl,
        }),
    );
    let token_file = folder.join("token");
    new_token(cluster, &namespace, &token_file);
    let login = Login::Kubernetes {
        mount: login_path,
        role: "lieutenant-operator".to_owned(),
        token_file,
    };
    (login, namespace)
}

/// Base 64, by the parser of the Kubernetes types.
fn decode(text: &str) -> Vec<u8> {
    let bytes: k8s_openapi::ByteString = serde_json::from_value(Value::String(text.to_owned())).unwrap();
    bytes.0
}

async fn proxied(mount: &str, login: Login) -> (Vault, FaultProxy) {
    let proxy = FaultProxy::before(&server().url()).await;
    let settings = VaultSettings {
        address: proxy.url().parse().unwrap(),
        ..settings(mount, Engine::V2, login)
    };
    (Vault::new(&settings).unwrap(), proxy)
}

fn logins(proxy: &FaultProxy) -> usize {
    proxy
        .passed()
        .iter()
        .filter(|call| call.ends_with("/login"))
        .count()
}

/// OPR-07: a token that is taken no more is replaced once, with the service account's present token, and the call goes on; callers
/// share the login; a revoked token takes no secret with it.
#[tokio::test]
async fn a_token_that_has_ended_is_replaced_by_one_login_with_the_present_token_file() {
    let folder = evenkeel_testkit::temp_dir();
    let mount = engine(Engine::V2);
    let (login, namespace) = prepare(&mount, "1h", folder.path()).await;
    let (store, proxy) = proxied(&mount, login).await;
    let place = path("t-one/c-one/steward");
    assert_eq!(
        store.set(&place, "token", &secret("one")).await.unwrap(),
        Written::Changed
    );
    assert_eq!(logins(&proxy), 1);

    // The kubelet has replaced the file, and somebody revokes what we have.
    std::fs::write(folder.path().join("token"), "no token any more").unwrap();
    let revoke = format!("sys/leases/revoke-prefix/auth/kubernetes-{mount}");
    call(Method::PUT, &revoke, &json!({}));
    let error = store.read(&place).await.unwrap_err();
    assert!(
        error.to_string().contains("log in as lieutenant-operator"),
        "{error}"
    );
    new_token(cluster("main"), &namespace, &folder.path().join("token"));
    let before = logins(&proxy);
    let places: Vec<_> = (0..10).map(|_| place.clone()).collect();
    for result in futures::future::join_all(places.iter().map(|place| store.read(place))).await {
        assert_eq!(result.unwrap().data.unwrap().get("token"), Some("one"));
    }
    assert_eq!(logins(&proxy), before + 1);
}

/// OPR-07: at the end of all renewals there is a fresh login, without a failed call.
#[tokio::test]
async fn at_the_end_of_all_renewals_there_is_a_new_login() {
    let folder = evenkeel_testkit::temp_dir();
    let mount = engine(Engine::V2);
    let (login, _) = prepare(&mount, "10s", folder.path()).await;
    let (store, proxy) = proxied(&mount, login).await;
    evenkeel_testkit::eventually("a second login", async || {
        store.set(&path("a"), "token", &secret("one")).await.unwrap();
        let logins = logins(&proxy);
        if logins >= 2 { Ok(()) } else { Err(logins) }
    })
    .await;
}

#[tokio::test]
async fn a_service_account_without_the_role_is_told() {
    let folder = evenkeel_testkit::temp_dir();
    let mount = engine(Engine::V2);
    let (login, _) = prepare(&mount, "1h", folder.path()).await;
    let Login::Kubernetes {
        mount: login_path,
        token_file,
        ..
    } = login
    else {
        panic!("not by Kubernetes");
    };
    let other = |role: &str, token_file| Login::Kubernetes {
        mount: login_path.clone(),
        role: role.to_owned(),
        token_file,
    };
    let wrong = Vault::new(&settings(&mount, Engine::V2, other("nobody", token_file))).unwrap();
    let error = wrong.read(&path("a")).await.unwrap_err();
    assert!(error.to_string().contains("log in as nobody"), "{error}");
    let missing = other("lieutenant-operator", folder.path().join("missing"));
    let missing = Vault::new(&settings(&mount, Engine::V2, missing)).unwrap();
    let error = missing.read(&path("a")).await.unwrap_err();
    assert!(matches!(error, Error::File { .. }), "{error}");
}

/// Servers without namespaces are all that can be had here: what they would be asked is seen at the proxy. Every call names the
/// namespace, logins and looks at our own token among them.
#[tokio::test]
async fn every_call_names_the_namespace() {
    let folder = evenkeel_testkit::temp_dir();
    let mount = engine(Engine::V2);
    let (by_account, _) = prepare(&mount, "1h", folder.path()).await;
    for login in [by_account, root()] {
        let proxy = FaultProxy::before(&server().url()).await;
        proxy.strip("x-vault-namespace");
        let settings = VaultSettings {
            address: proxy.url().parse().unwrap(),
            namespace: Some("team/one".to_owned()),
            ..settings(&mount, Engine::V2, login)
        };
        let store = Vault::new(&settings).unwrap();
        let place = path("t-one/c-one/steward");
        let _ = store.set(&place, "token", &secret("one")).await.unwrap();
        // It is refused, and then looked whether our own token is known.
        let forbidden = VaultSettings {
            mount: "no-such-engine".to_owned(),
            ..settings.clone()
        };
        let _ = Vault::new(&forbidden).unwrap().read(&place).await;
        store
            .remove(&path("t-one/c-one"), DeletionPolicy::Delete)
            .await
            .unwrap();
        let (calls, named) = (proxy.passed(), proxy.headers("x-vault-namespace"));
        assert!(calls.len() >= 6, "{calls:?}");
        for (call, namespace) in calls.iter().zip(&named) {
            assert_eq!(namespace.as_deref(), Some("team/one"), "{call}");
        }
        let of_ourselves = |call: &&String| call.ends_with("/login") || call.ends_with("/lookup-self");
        assert!(calls.iter().find(of_ourselves).is_some(), "{calls:?}");
    }
}
