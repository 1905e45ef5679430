//! Every route does what it is for.

use evenkeel_api::{AcceptedChange, ListClusters, Rollback};
use evenkeel_core::{ClusterState, ConfigurationVersion, DeleteMode, OnRemove, Strategy};
use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::world::{World, component, document, simulated};

#[tokio::test]
async fn a_cluster_lives_through_the_api() {
    let world = World::working().await;
    let (simulator, cluster) = simulated("c1").await;
    let name = "c1".parse().unwrap();

    let mut first = document("c1", &[component("web"), component("base")]);
    first["components"][0]["dependsOn"] = json!(["base"]);
    first["tenant"] = json!("trade");
    first["labels"] = json!({"env": "prod"});
    let mut with_kubeconfig = first.clone();
    with_kubeconfig["kubeconfig"] = json!(cluster.kubeconfig());
    let created = world.put_c1(&with_kubeconfig).await;
    assert_eq!(created.status, StatusCode::CREATED);
    let created = created.json();
    assert_eq!(
        (&created["version"], &created["change"]),
        (&json!(1), &json!("created"))
    );
    let ready = world.until_ready("c1").await;
    assert_eq!(ready.observed_version, Some(ConfigurationVersion(1)));
    let components: Vec<_> = ready
        .components
        .iter()
        .map(|component| component.name.as_str())
        .collect();
    assert_eq!(components, ["base", "web"], "in the order of their dependencies");
    assert!(cluster.get("v1", "ConfigMap", "apps", "web").unwrap().is_some());

    // The same document again makes no version.
    let same = world.put_c1(&first).await;
    assert_eq!(same.status, StatusCode::OK);
    assert_eq!(
        (&same.json()["version"], &same.json()["change"]),
        (&json!(1), &json!("unchanged"))
    );

    // YAML, and a changed value.
    let yaml = "name: c1\ntenant: trade\nlabels: {env: prod}\ncomponents:\n- name: base\n  namespace: apps\n  \
                source: {directory: {path: plain}}\n  values: [{inline: {greeting: bonjour}}]\n  onRemove: orphan\n";
    let changed = world
        .put("/v2/clusters/c1", "application/yaml; charset=utf-8", yaml)
        .await
        .json();
    assert_eq!(
        (&changed["version"], &changed["change"]),
        (&json!(2), &json!("changed"))
    );
    world
        .until("c1", |status| {
            status.observed_version == Some(ConfigurationVersion(2)) && status.state == ClusterState::Ready
        })
        .await;
    let object = cluster.get("v1", "ConfigMap", "apps", "base").unwrap().unwrap();
    assert_eq!(object["data"]["greeting"], "bonjour");
    assert!(
        cluster.get("v1", "ConfigMap", "apps", "web").unwrap().is_none(),
        "no longer listed"
    );

    let got = world.api.cluster(&name).await.unwrap();
    assert!(got.has_kubeconfig && got.state == ClusterState::Ready);
    assert_eq!(got.spec.components[0].on_remove, OnRemove::Orphan);

    let versions = world.api.configurations(&name).await.unwrap();
    assert_eq!(
        versions
            .iter()
            .map(|version| version.version.0)
            .collect::<Vec<_>>(),
        [2, 1]
    );
    let one = world.get("/v2/clusters/c1/configurations/1").await.json();
    assert_eq!(one["spec"]["components"].as_array().unwrap().len(), 2);

    let runs = world.api.reconciliations(&name).await.unwrap();
    let strategies: Vec<_> = runs.iter().map(|run| (run.version.0, run.strategy)).collect();
    assert_eq!(strategies, [(2, Strategy::Upgrade), (1, Strategy::Install)]);
    let run = world.api.reconciliation(&runs[1].id).await.unwrap();
    let operations: Vec<_> = run
        .operations
        .iter()
        .map(|operation| operation.component.as_str())
        .collect();
    assert_eq!(operations, ["base", "web"]);
    for operation in &run.operations {
        assert!(operation.started.is_some() && operation.finished.is_some() && operation.attempts == 1);
        assert!(
            operation
                .timeline
                .iter()
                .any(|entry| entry.step.as_deref() == Some("apply"))
        );
        assert!(
            operation
                .changes
                .iter()
                .any(|change| change.object.to_string().contains("ConfigMap"))
        );
    }

    let back = Rollback {
        to: ConfigurationVersion(1),
        consent: [].into(),
    };
    let rolled = world.api.rollback(&name, &back).await.unwrap();
    assert_eq!((rolled.version.0, rolled.change), (3, AcceptedChange::Changed));
    world
        .until("c1", |status| {
            status.observed_version == Some(ConfigurationVersion(3)) && status.state == ClusterState::Ready
        })
        .await;
    assert!(cluster.get("v1", "ConfigMap", "apps", "web").unwrap().is_some());

    let again = world
        .api
        .put_kubeconfig(&name, &cluster.kubeconfig().to_owned().into())
        .await
        .unwrap();
    assert_eq!(again.change, AcceptedChange::Unchanged);
    let due = world
        .send(world.request(Method::POST, "/v2/clusters/c1/reconcile"))
        .await;
    assert_eq!(due.status, StatusCode::ACCEPTED);

    let deleted = world.send(world.request(Method::DELETE, "/v2/clusters/c1")).await;
    assert_eq!(deleted.status, StatusCode::ACCEPTED);
    evenkeel_testkit::eventually("the record to be gone", async || {
        match world.get("/v2/clusters/c1").await.status {
            StatusCode::NOT_FOUND => Ok(()),
            other => Err(other),
        }
    })
    .await;
    assert!(
        cluster.get("v1", "Namespace", "", "apps").unwrap().is_none(),
        "we made it"
    );
    let created = world.put_c1(&first).await;
    assert_eq!(created.status, StatusCode::CREATED, "the name can be used again");
    simulator.stop().await;
}

#[tokio::test]
async fn lists_are_filtered_and_paged() {
    let world = World::idle().await;
    for (name, tenant, env) in [("a", "t1", "prod"), ("b", "t1", "test"), ("c", "t2", "prod")] {
        let mut document = document(name, &[component(&format!("of-{name}"))]);
        document["tenant"] = json!(tenant);
        document["group"] = json!(format!("g-{env}"));
        document["labels"] = json!({"env": env});
        let answer = world
            .put(
                &format!("/v2/clusters/{name}"),
                "application/json",
                document.to_string(),
            )
            .await;
        assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
    }
    let names = async |query: &str| {
        let page = world.get(&format!("/v2/clusters{query}")).await.json();
        page["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names("").await, ["a", "b", "c"]);
    assert_eq!(names("?tenant=t1").await, ["a", "b"]);
    assert_eq!(names("?group=g-prod").await, ["a", "c"]);
    assert_eq!(names("?label=env%3Dprod").await, ["a", "c"]);
    assert_eq!(names("?component=of-b").await, ["b"]);
    assert_eq!(names("?state=pending&tenant=t2").await, ["c"]);
    assert!(names("?state=ready").await.is_empty());

    let first = world
        .api
        .clusters(&ListClusters {
            limit: Some(2),
            ..ListClusters::default()
        })
        .await
        .unwrap();
    assert_eq!(first.items.len(), 2);
    let rest = ListClusters {
        limit: Some(2),
        after: first.next,
        ..ListClusters::default()
    };
    let rest = world.api.clusters(&rest).await.unwrap();
    assert_eq!((rest.items.len(), rest.next), (1, None));
    assert_eq!(rest.items[0].name.as_str(), "c");
}

#[tokio::test]
async fn a_cluster_can_be_forgotten() {
    let world = World::working().await;
    world.put_c1(&document("c1", &[component("web")])).await.json();
    let name = "c1".parse().unwrap();
    world
        .until("c1", |status| {
            status
                .reason
                .as_ref()
                .is_some_and(|reason| reason.contains("kubeconfig"))
        })
        .await;
    world.api.delete_cluster(&name, DeleteMode::Forget).await.unwrap();
    evenkeel_testkit::eventually("the record to be gone", async || {
        match world.api.cluster(&name).await {
            Err(evenkeel_api::Error::Problem(problem)) if problem.status == 404 => Ok(()),
            other => Err(other),
        }
    })
    .await;
}

#[tokio::test]
async fn a_control_plane_that_was_made_anew_is_confirmed() {
    let world = World::working().await;
    let (old, cluster) = simulated("c1").await;
    let mut document = document("c1", &[component("web")]);
    document["kubeconfig"] = json!(cluster.kubeconfig());
    world.put_c1(&document).await.json();
    world.until_ready("c1").await;
    let confirm = || world.send(world.request(Method::POST, "/v2/clusters/c1/confirm-identity"));

    // Another cluster answers now: nothing is done to it until somebody says that it is the right one.
    let (new, other) = simulated("anew").await;
    document["kubeconfig"] = json!(other.kubeconfig());
    world.put_c1(&document).await.json();
    let stopped = world
        .until("c1", |status| status.state == ClusterState::Degraded)
        .await;
    assert!(
        stopped
            .reason
            .unwrap()
            .starts_with("identity: another cluster answers")
    );
    assert!(other.get("v1", "Namespace", "", "apps").unwrap().is_none());
    assert_eq!(confirm().await.status, StatusCode::ACCEPTED);
    world.until_ready("c1").await;
    assert!(other.get("v1", "ConfigMap", "apps", "web").unwrap().is_some());

    // One that cannot be asked who it is is not confirmed.
    new.stop().await;
    confirm()
        .await
        .refuses(evenkeel_api::Code::Cluster, &["c1", "cannot be reached"]);
    old.stop().await;
}
