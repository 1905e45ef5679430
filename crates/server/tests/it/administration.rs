//! Settings, history, changes, keys and the audit log over HTTP.

use evenkeel_api::{
    Code, InstanceState, KeyState, KnownHead, ListAudit, ListChanges, ListHistory, Problem, PutSetting,
    SettingFor,
};
use evenkeel_core::ClusterState;
use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::world::{World, component, document, simulated};

#[tokio::test]
async fn settings_are_set_for_everyone_a_group_and_a_cluster() {
    let world = World::idle().await;
    let mut grouped = document("c1", &[component("web")]);
    grouped["group"] = json!("blue");
    world.put_c1(&grouped).await;
    let everyone = SettingFor::default();
    let blue = SettingFor {
        group: Some("blue".to_owned()),
        ..SettingFor::default()
    };
    let c1 = SettingFor {
        cluster: Some("c1".parse().unwrap()),
        ..SettingFor::default()
    };
    let put = |value: serde_json::Value| PutSetting { value };
    let value = |of: SettingFor| {
        let api = &world.api;
        async move {
            let all = api.settings(&of).await.unwrap();
            let found = all
                .into_iter()
                .find(|setting| setting.name == "check-interval")
                .unwrap();
            (found.value, found.layer)
        }
    };
    assert_eq!(value(c1.clone()).await, (None, None));
    let name = "check-interval";
    for (of, minutes) in [(&everyone, "10m"), (&blue, "600s"), (&c1, "12m")] {
        world
            .api
            .put_setting(name, of, &put(json!(minutes)))
            .await
            .unwrap();
    }
    world
        .api
        .put_setting(name, &blue, &put(json!("11m")))
        .await
        .unwrap();
    let text = |text: &str| Some(json!(text));
    let layer = |layer: &str| Some(layer.to_owned());
    assert_eq!(value(c1.clone()).await, (text("12m"), layer("cluster")));
    let left = world.api.remove_setting(name, &c1).await.unwrap();
    assert_eq!((left.value, left.layer), (text("11m"), layer("group")));
    assert_eq!(value(everyone.clone()).await, (text("10m"), layer("default")));

    for (name, of, value, status, words) in [
        (
            "no-such",
            &everyone,
            json!(1),
            StatusCode::UNPROCESSABLE_ENTITY,
            "check-interval",
        ),
        (
            "failures-max",
            &everyone,
            json!("many"),
            StatusCode::UNPROCESSABLE_ENTITY,
            "whole number",
        ),
        (
            "failures-max",
            &everyone,
            json!([1]),
            StatusCode::BAD_REQUEST,
            "whole number",
        ),
        (
            "retention-runs",
            &c1,
            json!(5),
            StatusCode::UNPROCESSABLE_ENTITY,
            "everyone",
        ),
    ] {
        let error = world.api.put_setting(name, of, &put(value)).await.unwrap_err();
        let evenkeel_api::Error::Problem(problem) = error else {
            panic!("{error}")
        };
        assert_eq!(problem.status, status.as_u16(), "{problem}");
        assert!(problem.detail.contains(words), "{problem}");
    }
    let both = world.get("/v2/settings?cluster=c1&group=blue").await;
    assert_eq!(both.status, StatusCode::BAD_REQUEST);
    let nobody = world.get("/v2/settings?cluster=nobody").await;
    assert_eq!(nobody.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn whatever_was_asked_for_is_in_the_audit_log() {
    let world = World::idle().await;
    assert!(
        world
            .api
            .verify_audit(&KnownHead::default())
            .await
            .unwrap()
            .intact
    );
    let request = world.request(Method::PUT, "/v2/clusters/c1");
    let body = document("c1", &[component("web")]);
    let put = world
        .send(request.header("x-request-id", "ticket-17").json(&body))
        .await;
    assert_eq!(put.status, StatusCode::CREATED);
    world.api.reconcile(&"c1".parse().unwrap()).await.unwrap();
    let all = world.api.audit(&ListAudit::default()).await.unwrap();
    let told: Vec<_> = all.items.iter().map(|entry| &*entry.action).collect();
    assert_eq!(told, ["cluster.reconcile", "cluster.put"]);
    let put = &all.items[1];
    assert_eq!(
        (&*put.target, &*put.actor, put.request_id.as_deref()),
        ("cluster/c1", "anonymous", Some("ticket-17"))
    );
    let verdict = world.api.verify_audit(&KnownHead::default()).await.unwrap();
    assert_eq!((verdict.intact, verdict.entries, verdict.head), (true, 2, 2));
    let known = KnownHead {
        number: Some(verdict.head),
        digest: verdict.digest,
    };
    assert!(world.api.verify_audit(&known).await.unwrap().intact);
    let later = KnownHead {
        number: Some(9),
        ..known.clone()
    };
    let cut = world.api.verify_audit(&later).await.unwrap();
    assert!(!cut.intact && cut.fault.unwrap().contains("cut off"));
    let half = KnownHead {
        digest: None,
        ..known
    };
    assert!(world.api.verify_audit(&half).await.is_err());
    let filtered = ListAudit {
        target: Some("cluster/c1".to_owned()),
        limit: Some(1),
        ..ListAudit::default()
    };
    let page = world.api.audit(&filtered).await.unwrap();
    assert_eq!(page.items.len(), 1);
    let next = ListAudit {
        after: page.next,
        ..filtered
    };
    assert_eq!(world.api.audit(&next).await.unwrap().items[0].number, 1);
}

/// Also what was not allowed to happen: who tried what, by which name, and why not.
#[tokio::test]
async fn refused_calls_are_in_the_audit_log() {
    let world = World::idle().await;
    world.put_c1(&document("c1", &[component("web")])).await;
    let mut foreign = world.request(Method::DELETE, "/v2/clusters/c1");
    foreign = foreign.header("origin", "https://evil.example");
    let broken = world.request(Method::PUT, "/v2/clusters/c1?x=hunter2");
    let broken = broken
        .header("content-type", "application/json")
        .header("x-request-id", "ticket-18")
        .body("{hunter2");
    for (request, status) in [
        (foreign, StatusCode::FORBIDDEN),
        (broken, StatusCode::BAD_REQUEST),
        (
            world.request(Method::POST, "/v2/clusters/nobody/reconcile"),
            StatusCode::NOT_FOUND,
        ),
        (
            world.request(Method::DELETE, "/v2/keys/odd"),
            StatusCode::BAD_REQUEST,
        ),
        // These would have changed nothing.
        (
            world.request(Method::GET, "/v2/clusters/nobody"),
            StatusCode::NOT_FOUND,
        ),
        (
            world.request(Method::POST, "/v2/clusters/nobody/plan"),
            StatusCode::NOT_FOUND,
        ),
        (world.request(Method::POST, "/v2/nothing"), StatusCode::NOT_FOUND),
        (
            world.request(Method::DELETE, "/v2/audit"),
            StatusCode::METHOD_NOT_ALLOWED,
        ),
    ] {
        let answer = world.send(request).await;
        assert_eq!(answer.status, status, "{}", answer.text);
    }
    let all = world.api.audit(&ListAudit::default()).await.unwrap().items;
    let told: Vec<_> = all
        .iter()
        .rev()
        .skip(1)
        .map(|entry| {
            assert_eq!(entry.action, "call.refuse");
            let of = |field: &str| entry.detail[field].as_str().unwrap().to_owned();
            (entry.target.clone(), of("call"), of("code"))
        })
        .collect();
    let entry =
        |target: &str, call: &str, code: Code| (target.to_owned(), call.to_owned(), code.as_str().to_owned());
    assert_eq!(
        told,
        [
            entry("cluster/c1", "DELETE /v2/clusters/c1", Code::Elsewhere),
            entry("cluster/c1", "PUT /v2/clusters/c1", Code::Syntax),
            entry(
                "cluster/nobody",
                "POST /v2/clusters/nobody/reconcile",
                Code::NotFound
            ),
            entry("key/odd", "DELETE /v2/keys/odd", Code::Parameter),
        ]
    );
    assert_eq!(all[2].request_id.as_deref(), Some("ticket-18"));
    assert!(!format!("{all:?}").contains("hunter2"));
    assert!(
        world
            .api
            .verify_audit(&KnownHead::default())
            .await
            .unwrap()
            .intact
    );
}

#[tokio::test]
async fn instances_are_listed() {
    let world = World::working().await;
    // It makes itself known as soon as it can.
    let own = evenkeel_testkit::eventually("the process to be listed", async || {
        let mut all = world.api.instances().await.unwrap();
        all.pop().ok_or("nobody is listed")
    })
    .await;
    assert_eq!(
        (own.state, &*own.role),
        (InstanceState::Running, "all"),
        "{own:?}"
    );
    assert!(own.started <= own.last_seen, "{own:?}");
}

#[tokio::test]
async fn what_a_cluster_was_and_what_was_done_to_it_is_told() {
    let world = World::working().await;
    let (_simulator, cluster) = simulated("c1").await;
    let mut body = document("c1", &[component("web"), component("base")]);
    body["kubeconfig"] = json!(cluster.kubeconfig());
    world.put_c1(&body).await;
    world.until_ready("c1").await;
    let name = "c1".parse().unwrap();
    let history = world.api.history(&name, &ListHistory::default()).await.unwrap();
    let states: Vec<_> = history.items.iter().map(|past| past.state).collect();
    assert_eq!(states, [ClusterState::Reconciling, ClusterState::Pending]);
    assert!(
        history
            .items
            .iter()
            .all(|past| past.seconds >= 0 && past.since <= past.until)
    );
    let all = world
        .api
        .changes(&name, &ListChanges::default())
        .await
        .unwrap()
        .items;
    assert!(all.len() >= 2, "{all:?}");
    let web = ListChanges {
        kind: Some("ConfigMap".to_owned()),
        name: Some("web".to_owned()),
        namespace: Some("apps".to_owned()),
        component: Some("web".parse().unwrap()),
        ..ListChanges::default()
    };
    let web = world.api.changes(&name, &web).await.unwrap().items;
    let [change] = &web[..] else { panic!("{web:?}") };
    assert_eq!(change.action.as_str(), "create");
    assert!(change.request_id.is_some());
    let run = world.api.reconciliation(&change.reconciliation).await.unwrap();
    assert!(
        run.operations
            .iter()
            .any(|operation| operation.id == change.operation)
    );
    for wrong in [
        "/v2/clusters/c1/changes?component=No",
        "/v2/clusters/c1/changes?since=yesterday",
        "/v2/clusters/c1/changes?colour=red",
        "/v2/clusters/c1/history?limit=many",
        "/v2/audit?since=yesterday",
    ] {
        assert_eq!(world.get(wrong).await.status, StatusCode::BAD_REQUEST, "{wrong}");
    }
    let nobody = world.get("/v2/clusters/nobody/changes").await;
    assert_eq!(nobody.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn keys_are_shown_and_the_active_one_stays() {
    let world = World::idle().await;
    world.put_c1(&document("c1", &[component("web")])).await;
    let keys = world.api.keys().await.unwrap();
    let [key] = &keys.keys[..] else { panic!("{keys:?}") };
    assert_eq!((key.state, keys.unreadable), (KeyState::Active, 0));
    assert!(key.values > 0);
    let refused = world
        .send(world.request(Method::DELETE, &format!("/v2/keys/{}", key.id)))
        .await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    let problem: Problem = serde_json::from_str(&refused.text).unwrap();
    assert!(
        problem.code == Code::Conflict && problem.detail.contains(&key.id),
        "{problem}"
    );
    let odd = world.send(world.request(Method::DELETE, "/v2/keys/odd")).await;
    assert_eq!(odd.status, StatusCode::BAD_REQUEST);
    let unknown = world
        .send(world.request(Method::DELETE, "/v2/keys/00000001"))
        .await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
}

/// K6 over HTTP; what is compared and repaired is tested with the fleet.
#[tokio::test]
async fn without_an_environment_broker_there_is_nothing_to_compare_with() {
    let world = World::idle().await;
    let error = world.api.sync_broker().await.unwrap_err();
    let evenkeel_api::Error::Problem(problem) = error else {
        panic!("{error:?}")
    };
    assert_eq!((problem.code, problem.status), (Code::Conflict, 409));
    assert!(problem.detail.contains("--broker-url"), "{}", problem.detail);
}
