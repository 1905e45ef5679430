//! What is asked for in the wrong way is refused at once, with the reason; what is shown holds no secret.

use evenkeel_api::{AcceptedChange, ClusterDocument, ListClusters, Rollback};
use evenkeel_core::{ClusterState, ConfigurationVersion, Sensitive};
use evenkeel_fleet::Error;
use serde_json::{Value, json};

use crate::world::{World, component, name, values, with};

fn back(to: u64) -> Rollback {
    Rollback {
        to: ConfigurationVersion(to),
        consent: [].into(),
    }
}

async fn refused(world: &World, document: Value) -> Error {
    let document = ClusterDocument::from_value(document).unwrap();
    world
        .fleet()
        .put_cluster(&name("blue"), document)
        .await
        .expect_err("it is refused")
}

#[tokio::test]
async fn wrong_documents_are_refused_with_the_field() {
    let world = World::new().await;
    world.map_chart("map");
    let web = component("web", "map");
    let cases = [
        (
            json!({"name": "blue", "components": [with(web.clone(), json!({"dependsOn": ["nope"]}))]}),
            "components[0].dependsOn[0]: component \"nope\" is not listed",
        ),
        (
            json!({"name": "blue", "components": [
                with(component("a", "map"), json!({"dependsOn": ["b"]})),
                with(component("b", "map"), json!({"dependsOn": ["a"]})),
            ]}),
            "cycle a → b → a",
        ),
        (
            json!({"name": "green", "components": []}),
            "the document is about cluster green, the path names blue",
        ),
        (
            json!({"name": "blue", "components": [component("web", "../../etc")]}),
            "components[0].source.directory",
        ),
        (
            json!({"name": "blue", "components": [component("web", "not-there")]}),
            "components[0].source.directory",
        ),
        (
            json!({"name": "blue", "components": [with(web.clone(), json!({"source": {"archive":
                {"digest": format!("sha256:{}", "0".repeat(64))}}}))]}),
            "is not there: upload it first",
        ),
    ];
    for (document, expected) in cases {
        let error = refused(&world, document).await.to_string();
        assert!(error.contains(expected), "{expected:?} is missing in {error:?}");
    }
    assert!(world.fleet().cluster(&name("blue")).await.is_err());
}

#[tokio::test]
async fn a_kubeconfig_that_runs_programs_is_refused() {
    let world = World::new().await;
    let good = world.cluster("blue").kubeconfig().to_owned();
    let token = format!("token: {}", world.cluster("blue").token());
    for (bad, field) in [
        (
            good.replace(
                &token,
                "exec: {apiVersion: client.authentication.k8s.io/v1, command: sh}",
            ),
            "users[0].user.exec",
        ),
        (
            good.replace(&token, "tokenFile: /etc/passwd"),
            "users[0].user.tokenFile",
        ),
    ] {
        let error = world
            .put_with("blue", json!([]), &bad)
            .await
            .expect_err("it is refused");
        assert!(
            matches!(&error, Error::Kubeconfig(_)) && error.to_string().contains(field),
            "{error}"
        );
    }
}

#[tokio::test]
async fn secret_values_are_used_kept_and_never_shown() {
    let world = World::new().await;
    world.map_chart("map");
    let secret = |text: &str| {
        with(
            component("web", "map"),
            json!({"values": [{"secret": {"text": text}}]}),
        )
    };
    world.put("blue", json!([secret("hunter2")])).await;
    world.ready("blue").await;
    assert_eq!(world.text("blue", "web").as_deref(), Some("hunter2"));

    let shown = world.fleet().cluster(&name("blue")).await.unwrap();
    let shown = serde_json::to_string(&shown.spec).unwrap();
    assert!(!shown.contains("hunter2"), "{shown}");
    // What was read can be sent back: the masked value stays what it was.
    let mut document: Value = serde_json::from_str(&shown).unwrap();
    document["labels"] = json!({"env": "prod"});
    let document = ClusterDocument::from_value(document).unwrap();
    let accepted = world.fleet().put_cluster(&name("blue"), document).await.unwrap();
    assert_eq!(accepted.change, AcceptedChange::Changed);
    world.ready("blue").await;
    assert_eq!(world.text("blue", "web").as_deref(), Some("hunter2"));
    let old = world
        .fleet()
        .configuration(&name("blue"), ConfigurationVersion(1))
        .await
        .unwrap();
    assert!(!format!("{:?}", serde_json::to_value(&old.spec)).contains("hunter2"));
}

#[tokio::test]
async fn an_uploaded_archive_is_a_source() {
    let world = World::new().await;
    world.map_chart("map");
    let error = world
        .fleet()
        .put_archive(bytes::Bytes::from_static(b"no chart"))
        .await
        .expect_err("no chart");
    assert!(matches!(error, Error::Sources(_)), "{error}");
    let archive = world.pack("map");
    let uploaded = world.fleet().put_archive(archive.into()).await.unwrap();
    let source = json!({"source": {"archive": {"digest": uploaded.digest.to_string()}}});
    world
        .put("blue", json!([with(component("web", "map"), source)]))
        .await;
    world.ready("blue").await;
    assert_eq!(world.text("blue", "web").as_deref(), Some("first"));
}

#[tokio::test]
async fn an_archive_of_manifests_is_a_source_without_values() {
    let world = World::new().await;
    let manifest =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: apps}\ndata: {text: plain}\n";
    world.write("plain", "web.yaml", manifest);
    std::fs::remove_file(world.chart_file("plain", "Chart.yaml")).unwrap();
    let uploaded = world
        .fleet()
        .put_archive(world.pack("plain").into())
        .await
        .unwrap();
    let source = json!({"source": {"archive": {"digest": uploaded.digest.to_string()}}});
    let web = with(component("web", "plain"), source);
    let valued = values(web.clone(), json!({"text": "other"}));
    let error = refused(&world, json!({"name": "blue", "components": [valued]})).await;
    let Error::Sources(fields) = &error else {
        panic!("{error}")
    };
    assert_eq!(fields.len(), 1, "{error}");
    assert_eq!(
        fields[0].to_string(),
        "components[0].values: expected none: the source holds manifests, which takes no values"
    );
    world.put("blue", json!([web])).await;
    world.ready("blue").await;
    assert_eq!(world.text("blue", "web").as_deref(), Some("plain"));
}

#[tokio::test]
async fn a_directory_that_turns_into_manifests_fails_its_component_alone() {
    let world = World::new().await;
    world.map_chart("map");
    world.map_chart("other");
    let valued = values(component("web", "map"), json!({"text": "mine"}));
    world
        .put("blue", json!([valued, component("next", "other")]))
        .await;
    world.ready("blue").await;
    std::fs::remove_file(world.chart_file("map", "Chart.yaml")).unwrap();
    std::fs::remove_file(world.chart_file("map", "values.yaml")).unwrap();
    let manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n";
    std::fs::write(world.chart_file("map", "templates/map.yaml"), manifest).unwrap();
    world.fleet().reconcile(&name("blue")).await.unwrap();
    let told = |status: &evenkeel_api::ClusterStatus| {
        format!("{status:?}").contains("is made from manifests, which takes no values")
    };
    world.until("blue", "the component's failure", told).await;
    assert_eq!(
        world.text("blue", "web").as_deref(),
        Some("mine"),
        "nothing is taken away"
    );
}

#[tokio::test]
async fn lists_and_histories_show_what_was_accepted() {
    let world = World::new().await;
    world.map_chart("map");
    world.put("blue", json!([component("web", "map")])).await;
    world.put("green", json!([])).await;
    let again = world.put("green", json!([])).await;
    assert_eq!(again.change, AcceptedChange::Unchanged);
    for cluster in ["blue", "green"] {
        world.ready(cluster).await;
    }
    let all = listed(&world, &ListClusters::default()).await;
    assert_eq!(all, ["blue", "green"]);
    let with_web = ListClusters {
        component: Some("web".parse().unwrap()),
        ..ListClusters::default()
    };
    assert_eq!(listed(&world, &with_web).await, ["blue"]);
    let failed = ListClusters {
        state: Some(ClusterState::Failed),
        ..ListClusters::default()
    };
    assert!(listed(&world, &failed).await.is_empty());

    world
        .put(
            "blue",
            json!([values(component("web", "map"), json!({"text": "x"}))]),
        )
        .await;
    let versions = world.fleet().configurations(&name("blue")).await.unwrap();
    let versions: Vec<_> = versions.iter().map(|version| version.version.0).collect();
    assert_eq!(versions, [2, 1]);
    for to in [2, 3] {
        let error = world
            .fleet()
            .rollback(&name("blue"), &back(to))
            .await
            .expect_err("refused");
        assert!(matches!(error, Error::Rollback { .. }), "{error}");
    }
    let kubeconfig = Sensitive::new(world.cluster("blue").kubeconfig().to_owned());
    let same = world
        .fleet()
        .put_kubeconfig(&name("blue"), kubeconfig.into())
        .await
        .unwrap();
    assert_eq!(same.change, AcceptedChange::Unchanged);
}

async fn listed(world: &World, list: &ListClusters) -> Vec<String> {
    let page = world.fleet().clusters(list).await.unwrap();
    page.items
        .iter()
        .map(|cluster| cluster.name.to_string())
        .collect()
}
