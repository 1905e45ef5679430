//! The calls that were recorded of lieutenant-api at b6f813a, in their order: ours answer the same, the faults that the record
//! lists aside.

use evenkeel_operator::resources::{Cluster, Tenant};
use evenkeel_server::lieutenant::{Oidc, VaultLogin};
use serde::Deserialize;
use serde_json::{Value, json};

use super::site::{API_URL, Site, TOMORROW, bootstrap_token, send, settings};

/// One recorded call.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    name: String,
    method: String,
    path: String,
    /// Who calls: nobody, garbage, somebody without rights; else one who may do everything.
    caller: Option<String>,
    content_type: Option<String>,
    body: Option<Value>,
    status: u16,
    answer_type: Option<String>,
    answer: Option<Value>,
}

const RECORD: &str = include_str!("../../data/lieutenant/calls.json");
/// The recorded bootstrap token.
const TOKEN: &str = "Zm9yLWFwaS11c2Utb25seQ==";

/// What ours answers where the record has a listed fault.
fn righted(call: &mut Call) {
    let refused = |reason: &str| Some(json!({ "reason": reason }));
    match call.name.as_str() {
        "list without token" => call.status = 401,
        "list with garbage token" => {
            call.status = 401;
            call.answer = refused("the server has asked for the client to provide credentials");
        }
        "unknown field" => {
            call.status = 400;
            call.answer = refused(
                "request body has an error: Error at \"/nonsense\": unknown field `nonsense`, expected one of `id`, \
                 `annotations`, `displayName`, `gitRepo`, `globalGitRepoURL`, `globalGitRepoRevision`",
            );
        }
        "patch: remove by null" => {
            call.status = 200;
            call.answer = Some(json!({
                "id": "t-api",
                "annotations": {
                    "c": "d",
                    "lieutenant.syn.tools/tenant-template": "default",
                    "syn.tools/protected-delete": "true",
                },
                "gitRepo": {
                    "type": "auto",
                    "url": "ssh://git@127.0.0.1:18300/group/sub/t-api.git",
                    "revision": "main",
                },
                "globalGitRepoRevision": "v1",
                "globalGitRepoURL": "ssh://git@git.example.org/g.git",
            }));
        }
        "create cluster for a missing tenant" => {
            call.status = 400;
            call.answer = refused("the tenant 't-none' does not exist: create it first");
        }
        "inventory" => call.status = 501,
        "wrong method" => call.status = 405,
        _ => {}
    }
    if let Some(answer) = &mut call.answer {
        let text = answer.to_string();
        let text = text.replace("http://127.0.0.1:8080/install", &format!("{API_URL}/install"));
        *answer = serde_json::from_str(&text).unwrap();
    }
}

/// Puts the record's placeholders where a value is another each time.
fn normalized(answer: Option<Value>, secrets: &[(&str, String)]) -> Option<Value> {
    let mut text = answer?.to_string();
    for (placeholder, value) in secrets {
        text = text.replace(value.as_str(), placeholder);
    }
    text = text.replace("\"2026-01-01T00:00:00Z\"", "\"<time>\"");
    let mut answer: Value = serde_json::from_str(&text).unwrap();
    if let Some(id) = answer.get_mut("id")
        && id.as_str().unwrap().split('-').count() == 4
    {
        *id = "t-<generated>".into();
    }
    Some(answer)
}

/// What the operator does between the calls.
async fn act_as_operator(site: &Site, after: &str) {
    match after {
        "create tenant" => {
            let _: Tenant = site
                .patch(
                    "t-api",
                    json!({
                        "metadata": {"annotations": {
                            "lieutenant.syn.tools/tenant-template": "default",
                            "syn.tools/protected-delete": "true",
                        }},
                        "spec": {"gitRepoURL": "ssh://git@127.0.0.1:18300/group/sub/t-api.git"},
                    }),
                )
                .await;
        }
        "create cluster" => {
            let _: Cluster = site
                .patch(
                    "c-api",
                    json!({
                        "metadata": {"annotations": {"syn.tools/protected-delete": "true"}},
                        "spec": {"gitRepoURL": "", "facts": {"ttfact": "yes"}},
                    }),
                )
                .await;
            site.patch_status("c-api", bootstrap_token(TOKEN)).await;
        }
        // What the predecessor accepted is in later lists.
        "create cluster for a missing tenant" => {
            let spec = json!({
                "displayName": "Lost",
                "tenantRef": {"name": "t-none"},
                "facts": {"cloud": "x", "lieutenant-instance": "inst1"},
            });
            site.seed_cluster("c-lost", spec, json!({})).await;
        }
        _ => {}
    }
}

/// The clusters that were there before, as a recorded list shows them.
async fn seed(site: &Site, calls: &[Call]) {
    let list = calls
        .iter()
        .find(|call| call.name == "list clusters sorted")
        .unwrap();
    for cluster in list.answer.as_ref().unwrap().as_array().unwrap() {
        let id = cluster["id"].as_str().unwrap();
        if !["c-bad", "c-unmanaged"].contains(&id) {
            continue;
        }
        let spec = json!({
            "displayName": cluster["displayName"],
            "tenantRef": {"name": cluster["tenant"]},
            "facts": cluster.get("facts").cloned().unwrap_or_else(|| json!({})),
        });
        let status = match cluster.get("installURL") {
            Some(_) => {
                json!({"bootstrapToken": {"token": "T1RIRVI=", "validUntil": TOMORROW, "tokenValid": true}})
            }
            None => json!({}),
        };
        site.seed_cluster(id, spec, status).await;
        let mut patch = json!({"metadata": {"annotations": cluster["annotations"]}});
        if let Some(url) = cluster["gitRepo"].get("url") {
            patch["spec"] =
                json!({"gitRepoURL": url, "gitRepoTemplate": {"repoType": cluster["gitRepo"]["type"]}});
        }
        let _: Cluster = site.patch(id, patch).await;
    }
}

#[tokio::test]
async fn the_recorded_calls_are_answered_the_same() {
    let mut settings = settings("lieutenant");
    settings.version = "unreleased".to_owned();
    settings.oidc = Some(Oidc {
        discovery_url: "https://sso.example.org/d".to_owned(),
        client_id: "lt".to_owned(),
    });
    settings.vault = Some(VaultLogin {
        address: "http://127.0.0.1:18200".to_owned(),
        login_method: None,
    });
    let kubeconfig = evenkeel_testkit::cluster("lieutenant").kubeconfig();
    let site = Site::with(settings, kubeconfig).await;
    let nobody = site.caller("nobody", json!([])).await;
    let account = site.account("c-api").await;
    let secrets = [
        ("<bootstrap token>", TOKEN.to_owned()),
        ("<bootstrap token>", "T1RIRVI=".to_owned()),
        ("<service account token>", account),
    ];
    let mut calls: Vec<Call> = serde_json::from_str(RECORD).unwrap();
    assert_eq!(calls.len(), 44);
    seed(&site, &calls).await;
    for call in &mut calls {
        righted(call);
        let token = match call.caller.as_deref() {
            None => Some(site.token.as_str()),
            Some("no token") => None,
            Some("garbage token") => Some("garbage"),
            Some("token without rights") => Some(nobody.as_str()),
            Some(other) => panic!("{other}"),
        };
        let path = call.path.replace("<bootstrap token>", TOKEN);
        let media_type = call.content_type.as_deref().unwrap_or("application/json");
        let body = |body: &Value| Some((media_type, body.to_string()));
        if call.name == "create cluster" {
            // The record's last fault: a fact that is a number disappears.
            let answer = send(
                &site.router,
                &call.method,
                &path,
                token,
                body(call.body.as_ref().unwrap()),
            )
            .await;
            answer.assert(400);
            assert!(
                answer.reason().contains("Error at \"/facts/n\""),
                "{}",
                answer.reason()
            );
            call.body.as_mut().unwrap()["facts"] = json!({"cloud": "exo"});
        }
        let sent = call.body.as_ref().and_then(body);
        let answer = send(&site.router, &call.method, &path, token, sent).await;
        assert_eq!(
            answer.status.as_u16(),
            call.status,
            "{}: {}",
            call.name,
            answer.text
        );
        let media_type = answer
            .headers
            .get("content-type")
            .map(|value| value.to_str().unwrap());
        assert_eq!(
            media_type,
            call.answer_type.as_deref().filter(|_| call.status != 204),
            "{}",
            call.name
        );
        let text = Some(answer.text).filter(|text| !text.is_empty());
        let given = text.map(|text| serde_json::from_str(&text).unwrap_or(Value::String(text)));
        assert_eq!(normalized(given, &secrets), call.answer, "{}", call.name);
        act_as_operator(&site, &call.name).await;
    }
}
