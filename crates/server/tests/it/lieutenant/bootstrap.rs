//! Fault B25 of the predecessor: a bootstrap token opens one manifest, and nobody can find out more by trying.

use std::sync::Arc;

use evenkeel_core::Clock as _;
use evenkeel_operator::resources::{BootstrapToken, Cluster};
use evenkeel_server::lieutenant;
use evenkeel_telemetry::logging::{self, Captured};
use evenkeel_telemetry::{LogFormat, LogOptions, SystemClock, Tasks};
use evenkeel_testkit::{CallFault, FaultProxy, eventually};
use futures::future::join_all;
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ObjectMeta, PostParams};
use kube::config::AuthInfo;
use serde_json::{Value, json};

use super::site::{Answer, Site, TOMORROW, YESTERDAY, bootstrap_token, config, send, settings};

/// Makes a cluster that can be bootstrapped. Gives back the token of its agent.
async fn cluster(site: &Site, name: &str, token: &str) -> String {
    let agent = site.account(name).await;
    site.seed_cluster(
        name,
        json!({"tenantRef": {"name": "t-one"}}),
        bootstrap_token(token),
    )
    .await;
    agent
}

/// Uses a token until the API has heard of it.
async fn install(site: &Site, token: &str) -> Answer {
    eventually("the token is known", async || {
        let answer = site.install(token).await;
        match answer.text.contains("Invalid token") || answer.status == 429 {
            true => Err(answer),
            false => Ok(answer),
        }
    })
    .await
}

fn agent_token(answer: &Answer) -> String {
    let items = answer.json()["items"].as_array().unwrap().clone();
    let secret = items.iter().find(|item| item["kind"] == "Secret").unwrap();
    secret["stringData"]["token"].as_str().unwrap().to_owned()
}

async fn is_valid(site: &Site, name: &str) -> Option<bool> {
    let cluster = site.api::<Cluster>().get(name).await.unwrap();
    cluster.status.unwrap().bootstrap_token.unwrap().token_valid
}

#[tokio::test]
async fn b25_of_many_uses_at_once_in_several_processes_one_gets_the_manifest() {
    let site = Site::new("b25-race").await;
    let other = site.replica().await;
    for round in 0..3 {
        let (name, token) = (format!("c-{round}"), format!("cmFjZQ{round}"));
        cluster(&site, &name, &token).await;
        // Both processes know of it: a caller was shown the address.
        let path = format!("/clusters/{name}");
        site.call("GET", &path, None).await.assert(200);
        send(&other, "GET", &path, Some(&site.token), None)
            .await
            .assert(200);
        let path = format!("/install/steward.json?token={token}");
        let uses = (0..8).map(|number| {
            let router = if number % 2 == 0 { &site.router } else { &other };
            send(router, "GET", &path, None, None)
        });
        let answers = join_all(uses).await;
        let opened = answers.iter().filter(|answer| answer.status == 200).count();
        assert_eq!(opened, 1, "{answers:?}");
        for answer in answers.iter().filter(|answer| answer.status != 200) {
            answer.assert(401);
            assert_eq!(answer.reason(), "Token already used or expired");
        }
        assert_eq!(is_valid(&site, &name).await, Some(false));
    }
}

#[tokio::test]
async fn b25_a_token_is_used_up_before_the_manifest_is_answered() {
    let proxy = FaultProxy::start(evenkeel_testkit::cluster("lieutenant").client().await).await;
    let site = Site::behind("b25-order", &proxy).await;
    let agent = cluster(&site, "c-one", "b3JkZXI=").await;
    site.call("GET", "/clusters/c-one", None).await.assert(200);
    // The calls of one use: the cluster, the agent's token, the mark.
    for (at, fault) in [
        (0, CallFault::CutBefore),
        (1, CallFault::InternalError),
        (2, CallFault::CutBefore),
        (2, CallFault::TooManyRequests),
    ] {
        proxy.fail(at, fault);
        let answer = site.install("b3JkZXI=").await;
        answer.assert(503);
        assert!(proxy.heal(), "{fault:?}: it did not happen");
        assert!(!answer.text.contains(&agent));
        assert_eq!(answer.headers["retry-after"], "1");
        assert_eq!(is_valid(&site, "c-one").await, Some(true), "{fault:?}");
    }
    // Somebody else writes in between: it is judged anew.
    proxy.fail(2, CallFault::Conflict);
    let answer = site.install("b3JkZXI=").await;
    assert_eq!(agent_token(answer.assert(200)), agent);
    assert!(proxy.heal());
    // The mark is gone, and whether it was us nobody can say: no manifest.
    cluster(&site, "c-two", "dHdv").await;
    site.call("GET", "/clusters/c-two", None).await.assert(200);
    proxy.fail(2, CallFault::CutAfter);
    site.install("dHdv").await.assert(503);
    assert!(proxy.heal());
    assert_eq!(is_valid(&site, "c-two").await, Some(false));
    let answer = site.install("dHdv").await;
    assert_eq!(answer.assert(401).reason(), "Token already used or expired");
}

#[tokio::test]
async fn b25_a_token_stands_in_no_log_and_may_come_in_a_header_or_a_body() {
    let logs = Captured::new();
    let options = LogOptions {
        format: LogFormat::Json,
        filter: "trace".to_owned(),
    };
    let subscriber = logging::subscriber(&options, Arc::new(SystemClock), logs.clone()).unwrap();
    let _logging = tracing::subscriber::set_default(subscriber);
    let site = Site::new("b25-log").await;
    let mut agents = Vec::new();
    for name in ["c-query", "c-header", "c-body"] {
        agents.push(cluster(&site, name, &format!("s3cr3t-{name}")).await);
        site.call("GET", &format!("/clusters/{name}"), None)
            .await
            .assert(200);
    }
    let path = "/install/steward.json";
    let query = install(&site, "s3cr3t-c-query").await;
    assert_eq!(agent_token(query.assert(200)), agents[0]);
    assert_eq!(query.headers["cache-control"], "no-store");
    let header = send(&site.router, "GET", path, Some("s3cr3t-c-header"), None).await;
    assert_eq!(agent_token(header.assert(200)), agents[1]);
    let body = Some(("application/json", json!({"token": "s3cr3t-c-body"}).to_string()));
    let body = send(&site.router, "POST", path, None, body).await;
    assert_eq!(agent_token(body.assert(200)), agents[2]);
    site.install("s3cr3t-unknown").await.assert(401);
    site.call_as(None, "GET", &format!("{path}?token=s3cr3t&token=s3cr3t"))
        .await
        .assert(400);
    let lines = logs.lines().join("\n");
    assert!(lines.contains("/install/steward.json"), "{lines}");
    assert!(lines.contains("c-query"));
    for secret in ["s3cr3t", site.token.as_str(), &agents[0], &agents[1], &agents[2]] {
        assert!(!lines.contains(secret), "{secret} in the log");
    }
}

#[tokio::test]
async fn b25_tokens_that_open_nothing_cost_the_server_nothing_and_are_limited() {
    let site = Site::new("b25-limit").await;
    cluster(&site, "c-one", "bGltaXQ=").await;
    cluster(&site, "c-used", "dXNlZA==").await;
    install(&site, "dXNlZA==").await.assert(200);
    let mark = site.cluster.mark();
    let answers = join_all((0..40).map(|number| {
        let token = if number % 2 == 0 {
            format!("guess-{number}")
        } else {
            "dXNlZA==".to_owned()
        };
        let site = &site;
        async move { site.install(&token).await }
    }))
    .await;
    let limited: Vec<&Answer> = answers.iter().filter(|answer| answer.status == 429).collect();
    assert!(limited.len() >= 19, "{}", limited.len());
    assert_eq!(limited[0].headers["retry-after"], "1");
    assert!(
        answers
            .iter()
            .all(|answer| [401, 429].contains(&answer.status.as_u16()))
    );
    let asked = || {
        let all = site.cluster.requests_of("", mark);
        let path = format!("/namespaces/{}/clusters", site.namespace);
        all.iter().filter(|request| request.uri.contains(&path)).count()
    };
    assert_eq!(asked(), 0);
    // Whoever has a good token gets through.
    install(&site, "bGltaXQ=").await.assert(200);
    assert_eq!(asked(), 2);
    // And later all others are heard again.
    site.clock.advance(SignedDuration::from_secs(10));
    site.install("guess").await.assert(401);
}

#[tokio::test]
async fn b25_what_is_over_is_neither_shown_nor_opened() {
    let site = Site::new("b25-over").await;
    let expired =
        json!({"bootstrapToken": {"token": "b3Zlcg==", "validUntil": YESTERDAY, "tokenValid": true}});
    let spec = json!({"tenantRef": {"name": "t-one"}});
    site.account("c-over").await;
    site.seed_cluster("c-over", spec.clone(), expired).await;
    let shown = site.call("GET", "/clusters/c-over", None).await.json();
    assert_eq!(shown.get("installURL"), None, "{shown}");
    let answer = install(&site, "b3Zlcg==").await;
    assert_eq!(answer.assert(401).reason(), "Token already used or expired");
    // The same moment by moment.
    site.account("c-soon").await;
    site.seed_cluster("c-soon", spec.clone(), bootstrap_token("c29vbg=="))
        .await;
    let shown = site.call("GET", "/clusters/c-soon", None).await.json();
    assert_eq!(
        shown["installURL"],
        "https://api.example.org/install/steward.json?token=c29vbg=="
    );
    let until: jiff::Timestamp = TOMORROW.parse().unwrap();
    site.clock.advance(until.duration_since(site.clock.now()));
    let shown = site.call("GET", "/clusters/c-soon", None).await.json();
    assert_eq!(shown.get("installURL"), None);
    install(&site, "c29vbg==").await.assert(401);
}

#[tokio::test]
async fn b25_the_newest_token_of_the_agent_is_given_and_without_one_nothing_is_used_up() {
    let site = Site::new("b25-newest").await;
    let spec = json!({"tenantRef": {"name": "t-one"}});
    site.seed_cluster("c-one", spec, bootstrap_token("bmV3ZXN0"))
        .await;
    let answer = install(&site, "bmV3ZXN0").await;
    answer.assert(503);
    assert!(answer.reason().starts_with("Unable to find token for Cluster."));
    assert_eq!(is_valid(&site, "c-one").await, Some(true));
    // Two of the same second are told apart by name.
    site.account("c-one").await;
    let newest = site.account_token("c-one", "c-one-second").await;
    let answer = install(&site, "bmV3ZXN0").await;
    assert_eq!(agent_token(answer.assert(200)), newest);
}

/// Another writer that has not heard of the use makes the status what it was.
#[tokio::test]
async fn b25_a_used_token_stays_used_when_an_older_status_is_written() {
    let site = Site::new("b25-older").await;
    cluster(&site, "c-one", "b2xkZXI=").await;
    install(&site, "b2xkZXI=").await.assert(200);
    site.patch_status("c-one", bootstrap_token("b2xkZXI=")).await;
    site.call("GET", "/clusters/c-one", None).await.assert(200);
    let answer = site.install("b2xkZXI=").await;
    assert_eq!(answer.assert(401).reason(), "Token already used or expired");
    // A reset makes a new token, which is good.
    site.patch_status("c-one", bootstrap_token("bmV4dA==")).await;
    install(&site, "bmV4dA==").await.assert(200);
}

#[tokio::test]
async fn only_the_head_of_the_manifest_uses_nothing_up() {
    let site = Site::new("head").await;
    cluster(&site, "c-one", "aGVhZA==").await;
    site.call("GET", "/clusters/c-one", None).await.assert(200);
    let path = "/install/steward.json?token=aGVhZA==";
    site.call_as(None, "HEAD", path).await.assert(405);
    assert_eq!(is_valid(&site, "c-one").await, Some(true));
    site.call_as(None, "GET", path).await.assert(200);
}

/// What docs/lieutenant-api.md asks for is enough, and no more is needed.
#[tokio::test]
async fn our_own_rights_are_few() {
    let site = Site::new("rights").await;
    let rules = json!([
        {"apiGroups": ["syn.tools"], "resources": ["clusters"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["syn.tools"], "resources": ["clusters/status"], "verbs": ["patch"]},
        {"apiGroups": ["syn.tools"], "resources": ["tenants"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"]},
    ]);
    let own = site.caller("lieutenant-api", rules).await;
    let mut config = config(site.cluster.kubeconfig()).await;
    config.auth_info = AuthInfo {
        token: Some(own.into()),
        ..AuthInfo::default()
    };
    let tasks = Tasks::new();
    let clock = Arc::clone(&site.clock) as _;
    let router = lieutenant::router(settings(&site.namespace), &config, clock, &tasks).unwrap();
    site.seed_tenant("t-one", json!({})).await;
    let body = Some((
        "application/json",
        json!({"id": "c-one", "tenant": "t-one"}).to_string(),
    ));
    send(&router, "POST", "/clusters", Some(&site.token), body)
        .await
        .assert(201);
    site.account("c-one").await;
    site.patch_status("c-one", bootstrap_token("ZmV3")).await;
    send(&router, "GET", "/clusters/c-one", Some(&site.token), None)
        .await
        .assert(200);
    let path = "/install/steward.json?token=ZmV3";
    send(&router, "GET", path, None, None).await.assert(200);
    tasks.cancel();
}

/// Until the clusters are known, nobody can say that a token is wrong.
#[tokio::test]
async fn while_the_server_cannot_be_asked_no_token_is_called_invalid() {
    let tasks = Tasks::new();
    let mut config = config(evenkeel_testkit::cluster("lieutenant").kubeconfig()).await;
    config.cluster_url = "https://127.0.0.1:1".parse().unwrap();
    let clock = Arc::new(SystemClock);
    let router = lieutenant::router(settings("nowhere"), &config, clock, &tasks).unwrap();
    let answer = send(&router, "GET", "/install/steward.json?token=x", None, None).await;
    answer.assert(503);
    assert_eq!(answer.reason(), "the clusters are not known yet: try again");
    let answer = send(&router, "GET", "/clusters", Some("token"), None).await;
    assert_eq!(
        answer.assert(503).json(),
        json!({"reason": "the Kubernetes API server cannot be asked at present: try again"})
    );
    let health = send(&router, "GET", "/healthz", None, None).await;
    assert_eq!(health.assert(200).text, "ok");
    let _: Value = send(&router, "GET", "/", None, None).await.json();
    tasks.cancel();
}

/// B24: the status has only the hash of a token, and who may read the Secret with it is shown the address.
#[tokio::test]
async fn b24_a_token_in_a_secret_opens_once_and_is_shown_to_who_may_read_the_secret() {
    let site = Site::new("b24-hidden").await;
    let agent = site.account("c-one").await;
    let token = json!({
        "tokenHash": BootstrapToken::hash("aGlkZGVu"), "validUntil": TOMORROW, "tokenValid": true,
    });
    let spec = json!({"tenantRef": {"name": "t-one"}});
    site.seed_cluster("c-one", spec, json!({ "bootstrapToken": token }))
        .await;
    let shows = async |token: &str| {
        let answer = site.call_as(Some(token), "GET", "/clusters/c-one").await;
        answer.assert(200).json().get("installURL").cloned()
    };
    assert_eq!(shows(&site.token).await, None, "there is no Secret");
    let secret = |text: &str| Secret {
        metadata: ObjectMeta {
            name: Some(BootstrapToken::secret_name("c-one")),
            ..ObjectMeta::default()
        },
        string_data: Some([(BootstrapToken::KEY.to_owned(), text.to_owned())].into()),
        ..Secret::default()
    };
    let secrets = site.api::<Secret>();
    let how = PostParams::default();
    secrets.create(&how, &secret("b3RoZXI=")).await.unwrap();
    assert_eq!(shows(&site.token).await, None, "it is of another time");
    secrets
        .replace("c-one-bootstrap-token", &how, &secret("aGlkZGVu"))
        .await
        .unwrap();
    let address = "https://api.example.org/install/steward.json?token=aGlkZGVu";
    assert_eq!(shows(&site.token).await, Some(json!(address)));
    let rules = json!([{"apiGroups": ["syn.tools"], "resources": ["clusters"], "verbs": ["get", "list"]}]);
    let reader = site.caller("reader", rules).await;
    assert_eq!(
        shows(&reader).await,
        None,
        "who may not read Secrets is shown none"
    );

    site.install(token["tokenHash"].as_str().unwrap())
        .await
        .assert(401);
    let answer = install(&site, "aGlkZGVu").await;
    assert_eq!(agent_token(answer.assert(200)), agent);
    let answer = site.install("aGlkZGVu").await;
    assert_eq!(answer.assert(401).reason(), "Token already used or expired");
    assert_eq!(shows(&site.token).await, None);
}
