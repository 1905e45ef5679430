//! The simulator as kube-rs sees it.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kube::api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::discovery::Discovery;
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;

use super::support::{client, eventually, start};

fn config_map(name: &str, data: &[(&str, &str)]) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        data: Some(
            data.iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect(),
        ),
        ..ConfigMap::default()
    }
}

async fn maps() -> (evenkeel_simulator::Simulator, Api<ConfigMap>, Client) {
    let (simulator, cluster) = start().await;
    let client = client(&cluster).await;
    (simulator, Api::namespaced(client.clone(), "default"), client)
}

#[tokio::test]
async fn discovery_finds_the_same_kinds_both_ways() {
    let (simulator, _, client) = maps().await;
    let kinds = |discovery: &Discovery| {
        let mut kinds: Vec<String> = discovery
            .groups()
            .flat_map(|group| group.recommended_resources())
            .map(|(resource, capabilities)| {
                format!(
                    "{}/{} {:?}",
                    resource.api_version, resource.kind, capabilities.scope
                )
            })
            .collect();
        kinds.sort();
        kinds
    };
    let legacy = kinds(&Discovery::new(client.clone()).run().await.unwrap());
    let aggregated = kinds(&Discovery::new(client.clone()).run_aggregated().await.unwrap());
    assert_eq!(legacy, aggregated);
    assert!(
        legacy.contains(&"apps/v1/Deployment Namespaced".to_owned()),
        "{legacy:?}"
    );
    assert!(legacy.len() > 50, "{} kinds", legacy.len());
    let version = client.apiserver_version().await.unwrap();
    assert_eq!((version.major.as_str(), version.minor.as_str()), ("1", "37"));
    simulator.stop().await;
}

#[tokio::test]
async fn objects_are_created_read_changed_and_deleted() {
    let (simulator, maps, _) = maps().await;
    let created = maps
        .create(&PostParams::default(), &config_map("a", &[("x", "1")]))
        .await
        .unwrap();
    assert!(created.uid().is_some() && created.resource_version().is_some());
    let mut changed = created.clone();
    changed.data = Some(BTreeMap::from([("x".to_owned(), "2".to_owned())]));
    let replaced = maps.replace("a", &PostParams::default(), &changed).await.unwrap();
    assert_ne!(replaced.resource_version(), created.resource_version());
    let stale = maps
        .replace("a", &PostParams::default(), &changed)
        .await
        .unwrap_err();
    assert!(
        matches!(&stale, kube::Error::Api(status) if status.code == 409),
        "{stale:?}"
    );
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    assert!(maps.get_opt("a").await.unwrap().is_none());
    simulator.stop().await;
}

#[tokio::test]
async fn lists_come_in_pages_that_show_one_moment() {
    let (simulator, maps, _) = maps().await;
    for number in 0..10 {
        let map = config_map(&format!("page-{number}"), &[("n", "1")]);
        maps.create(&PostParams::default(), &map).await.unwrap();
    }
    let first = maps.list(&ListParams::default().limit(4)).await.unwrap();
    assert_eq!(first.items.len(), 4);
    let token = first.metadata.continue_.clone().unwrap();
    assert_eq!(
        first.metadata.remaining_item_count,
        Some(7),
        "with kube-root-ca.crt"
    );
    // What happens in between does not show.
    maps.create(&PostParams::default(), &config_map("zz-late", &[]))
        .await
        .unwrap();
    maps.delete("page-9", &DeleteParams::default()).await.unwrap();
    let rest = maps
        .list(&ListParams::default().limit(100).continue_token(&token))
        .await
        .unwrap();
    let names: Vec<String> = rest.items.iter().map(|map| map.name_any()).collect();
    assert!(
        names.contains(&"page-9".to_owned()) && !names.contains(&"zz-late".to_owned()),
        "{names:?}"
    );
    assert_eq!(first.items.len() + rest.items.len(), 11);
    assert_eq!(rest.metadata.resource_version, first.metadata.resource_version);
    simulator.stop().await;
}

#[tokio::test]
async fn a_deployment_rolls_out_and_its_pods_become_ready() {
    let (simulator, _, client) = maps().await;
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "default");
    let web = |image: &str| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 3,
            "selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": image}]}}}})
    };
    let ready = |generation: i64| {
        let deployments = deployments.clone();
        async move {
            let status = deployments.get("web").await.unwrap().status?;
            let done = status.observed_generation? >= generation
                && status.updated_replicas? == 3
                && status.available_replicas? == 3
                && status.replicas? == 3;
            done.then_some(())
        }
    };
    let apply = PatchParams::apply("test");
    deployments
        .patch("web", &apply, &Patch::Apply(web("nginx:1")))
        .await
        .unwrap();
    eventually("the first rollout", || ready(1)).await;
    deployments
        .patch("web", &apply, &Patch::Apply(web("nginx:2")))
        .await
        .unwrap();
    eventually("the second rollout", || ready(2)).await;
    let pods: Api<Pod> = Api::namespaced(client, "default");
    let pods = eventually("old pods to go", || async {
        let pods = pods
            .list(&ListParams::default().labels("app=web"))
            .await
            .unwrap()
            .items;
        (pods.len() == 3).then_some(pods)
    })
    .await;
    for pod in pods {
        assert_eq!(pod.spec.unwrap().containers[0].image.as_deref(), Some("nginx:2"));
        assert_eq!(pod.status.unwrap().phase.as_deref(), Some("Running"));
    }
    simulator.stop().await;
}

#[tokio::test]
async fn an_apply_that_changes_nothing_writes_nothing() {
    let (simulator, _, client) = maps().await;
    let deployments: Api<Deployment> = Api::namespaced(client, "default");
    let web = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 0,
        "selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "nginx:1",
                "resources": {"requests": {"cpu": "0.5", "memory": "1024Mi"}}}]}}}});
    let apply = PatchParams::apply("test").force();
    deployments
        .patch("web", &apply, &Patch::Apply(&web))
        .await
        .unwrap();
    let settled = eventually("the controller to settle", || async {
        let seen = deployments.get("web").await.unwrap();
        let observed = seen.status.as_ref().and_then(|status| status.observed_generation);
        let complete = seen.status.as_ref()?.conditions.as_ref()?.len() == 2;
        (observed == seen.metadata.generation && complete).then_some(seen)
    })
    .await;
    let again = deployments
        .patch("web", &apply, &Patch::Apply(&web))
        .await
        .unwrap();
    assert_eq!(again.resource_version(), settled.resource_version());
    assert_eq!(again.metadata.managed_fields, settled.metadata.managed_fields);
    simulator.stop().await;
}

#[tokio::test]
async fn a_namespace_takes_its_content_along() {
    let (simulator, _, client) = maps().await;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = Namespace {
        metadata: ObjectMeta {
            name: Some("gone".into()),
            ..ObjectMeta::default()
        },
        ..Namespace::default()
    };
    namespaces
        .create(&PostParams::default(), &namespace)
        .await
        .unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client, "gone");
    eventually("the root certificates", || async {
        maps.get_opt("kube-root-ca.crt").await.unwrap()
    })
    .await;
    let mut held = config_map("held", &[]);
    held.metadata.finalizers = Some(vec!["example.dev/hold".into()]);
    maps.create(&PostParams::default(), &held).await.unwrap();
    namespaces.delete("gone", &DeleteParams::default()).await.unwrap();
    // A finalizer holds the namespace, and the status says which one.
    let waiting = eventually("the report of what is left", || async {
        let namespace = namespaces.get("gone").await.unwrap();
        namespace
            .status
            .clone()?
            .conditions
            .map(|conditions| (namespace, conditions))
    })
    .await;
    assert_eq!(waiting.0.status.unwrap().phase.as_deref(), Some("Terminating"));
    let texts: Vec<String> = waiting
        .1
        .iter()
        .filter_map(|condition| condition.message.clone())
        .collect();
    assert!(
        texts
            .iter()
            .any(|text| text.contains("example.dev/hold in 1 resource instances")),
        "{texts:?}"
    );
    let late = maps
        .create(&PostParams::default(), &config_map("late", &[]))
        .await
        .unwrap_err();
    assert!(
        matches!(&late, kube::Error::Api(status) if status.code == 403),
        "{late:?}"
    );
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    maps.patch("held", &PatchParams::default(), &release)
        .await
        .unwrap();
    eventually("the namespace to go", || async {
        namespaces.get_opt("gone").await.unwrap().is_none().then_some(())
    })
    .await;
    simulator.stop().await;
}

#[tokio::test]
async fn a_wrong_token_is_refused() {
    let (simulator, cluster) = start().await;
    let wrong = cluster.kubeconfig().replace(cluster.token(), "wrong");
    let kubeconfig = kube::config::Kubeconfig::from_yaml(&wrong).unwrap();
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap();
    let client = Client::try_from(config).unwrap();
    let error = Api::<Namespace>::all(client).get("default").await.unwrap_err();
    assert!(
        matches!(&error, kube::Error::Api(status) if status.code == 401),
        "{error:?}"
    );
    simulator.stop().await;
}
