//! Whose objects they are, and who may write.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use evenkeel_cluster::{Attempt, Error, ErrorClass, Event, ON_CONFLICT, Owner, Stop, Unguarded, unobserved};
use evenkeel_core::{ClusterName, Fence, OnConflict, PlanAction};
use serde_json::json;

use crate::component::{Component, planned};
use crate::documents::{config_map, deployment, secret};
use crate::env::{Env, FLEET};

pub(crate) async fn a_foreign_object_stops_the_component(env: &Env) {
    let component = Component::new(env);
    component.make_namespace().await;
    let mut theirs = config_map("taken", "k", "theirs").object;
    theirs["metadata"]["labels"] = json!({"app.kubernetes.io/managed-by": "Helm"});
    env.make(&component.collection("configmaps"), &theirs).await;
    let documents = [
        config_map("taken", "k", "1"),
        config_map("free", "k", "1"),
        config_map("free-too", "k", "1"),
    ];
    let before = env.cluster.requests();
    let error = component.run(&documents).await.unwrap_err();
    assert!(
        matches!(&error, Error::Foreign(found) if found.len() == 1),
        "{error}"
    );
    let text = error.to_string();
    assert!(
        text.contains("ConfigMap/taken") && text.contains("Helm") && text.contains("adopt"),
        "{text}"
    );
    assert_eq!(error.class(), ErrorClass::Invalid);
    assert_eq!(
        env.cluster.requests().since(&before).writes(),
        0,
        "checked before the first write"
    );
    assert!(env.get(&component.path("configmaps", "free")).await.is_none());
    assert_eq!(
        env.must(&component.path("configmaps", "taken")).await["data"]["k"],
        "theirs"
    );
}

pub(crate) async fn adopting_takes_it_over(env: &Env) {
    let mut component = Component::new(env);
    component.make_namespace().await;
    let mut theirs = deployment("web", 1).object;
    theirs["metadata"]["annotations"] = json!({"theirs": "x"});
    env.make(&component.collection("deployments"), &theirs).await;
    env.until(
        "the controller to look",
        &component.path("deployments", "web"),
        |live| live["status"]["observedGeneration"] == 1,
    )
    .await;
    component.options.adopt = true;
    let pass = component.run(&[deployment("web", 1)]).await.unwrap();
    assert_eq!(pass.planned(PlanAction::Adopt), ["Deployment/web"]);
    let live = env.must(&component.path("deployments", "web")).await;
    assert_eq!(
        live["metadata"]["labels"]["applyset.kubernetes.io/part-of"],
        component.target.applyset_id()
    );
    assert_eq!(live["metadata"]["generation"], 1, "adoption causes no rollout");
    assert_eq!(live["metadata"]["annotations"]["theirs"], "x");
    // A different value is taken as well, once told to.
    let mut other = Component::named(env, "other");
    other.make_namespace().await;
    env.make(
        &other.collection("configmaps"),
        &config_map("a", "k", "theirs").object,
    )
    .await;
    other.options.adopt = true;
    other.run(&[config_map("a", "k", "ours")]).await.unwrap();
    assert_eq!(
        env.must(&other.path("configmaps", "a")).await["data"]["k"],
        "ours"
    );
    other.options.adopt = false;
    assert!(
        other
            .run(&[config_map("a", "k", "ours")])
            .await
            .unwrap()
            .changes
            .is_empty()
    );
}

pub(crate) async fn another_fleets_parent_is_refused(env: &Env) {
    let component = Component::new(env);
    let documents = [config_map("a", "k", "1")];
    component.run(&documents).await.unwrap();
    for (fleet, cluster) in [("other-fleet", "c1"), (FLEET, "other-cluster")] {
        let owner = Owner::new(fleet, ClusterName::new(cluster).unwrap()).unwrap();
        let target = env.cluster.component(&owner, component.target.name());
        let error = target.record().await.unwrap_err();
        assert!(matches!(&error, Error::OtherOwner { .. }), "{error}");
        let text = error.to_string();
        assert!(
            text.contains(FLEET) && text.contains(fleet) && text.contains(cluster),
            "{text}"
        );
        let options = evenkeel_cluster::DeleteOptions::default();
        assert!(matches!(
            target.delete(&component.attempt(), &options, &unobserved()).await,
            Err(Error::OtherOwner { .. })
        ));
        let check = env.cluster.check(&owner, &[]).await;
        assert!(
            matches!(check, Err(Error::OtherOwner { .. })),
            "the shared parent is another's too"
        );
    }
    env.must(&component.path("configmaps", "a")).await;
}

pub(crate) async fn a_higher_fence_is_refused(env: &Env) {
    let component = Component::new(env);
    let documents = [config_map("a", "k", "1")];
    component.run(&documents).await.unwrap();
    let attempt = |fence| Attempt {
        fence: Fence(fence),
        guard: Arc::new(Unguarded),
    };
    let changed = [config_map("a", "k", "2")];
    // The newer attempt takes its fence while the older one has its plan ready.
    let mut older = component
        .plan(&changed)
        .await
        .unwrap()
        .begin(attempt(8), unobserved());
    let mut newer = component
        .plan(&changed)
        .await
        .unwrap()
        .begin(attempt(9), unobserved());
    newer.take_fence().await.unwrap();
    let error = older.apply().await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Fenced(Fence(9)), "{error}");
    assert_eq!(
        env.must(&component.path("configmaps", "a")).await["data"]["k"],
        "1"
    );
    newer.apply().await.unwrap();
    newer.record(&component.inputs(&changed)).await.unwrap();
    assert_eq!(component.target.record().await.unwrap().unwrap().fence, Fence(9));
    // One that began before and comes back late cannot record.
    let third = [config_map("a", "k", "3")];
    let mut late = component
        .plan(&third)
        .await
        .unwrap()
        .begin(attempt(10), unobserved());
    late.apply().await.unwrap();
    let mut newest = component
        .plan(&third)
        .await
        .unwrap()
        .begin(attempt(11), unobserved());
    newest.take_fence().await.unwrap();
    let error = late.record(&component.inputs(&third)).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Fenced(Fence(11)), "{error}");
}

pub(crate) async fn the_guard_stops_at_an_object_boundary(env: &Env) {
    let component = Component::new(env);
    let documents: Vec<_> = (0..12)
        .map(|index| config_map(&format!("c{index}"), "k", "1"))
        .collect();
    let allowed = Arc::new(AtomicUsize::new(8));
    let left = Arc::clone(&allowed);
    let guard = move |longest: Duration| {
        assert_eq!(longest, Duration::from_secs(9));
        let taken = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        taken.map(drop).map_err(|_| Stop::Cancelled)
    };
    let attempt = Attempt {
        fence: Fence(1),
        guard: Arc::new(guard),
    };
    let before = env.cluster.requests();
    let mut session = component
        .plan(&documents)
        .await
        .unwrap()
        .begin(attempt, unobserved());
    session.prepare_namespaces().await.unwrap();
    let error = session.apply().await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Stopped, "{error}");
    assert_eq!(
        env.cluster.requests().since(&before).writes(),
        8,
        "not one write more than the guard allowed"
    );
    let made = session.changes().len();
    assert!(made > 1 && made < 13, "{made}");
    assert_eq!(
        component
            .run(&documents)
            .await
            .unwrap()
            .plan
            .count(PlanAction::None),
        0
    );
    assert!(component.run(&documents).await.unwrap().changes.is_empty());
}

pub(crate) async fn kubectl_understands_the_set(env: &Env) {
    let component = Component::new(env);
    component
        .run(&[config_map("a", "k", "1"), secret("s", "k", "1")])
        .await
        .unwrap();
    let parent = env.must(&component.parent_path()).await;
    let (labels, annotations) = (&parent["metadata"]["labels"], &parent["metadata"]["annotations"]);
    assert_eq!(
        labels["applyset.kubernetes.io/id"],
        component.target.applyset_id()
    );
    assert_eq!(labels["evenkeel.dev/fleet"], FLEET);
    assert_eq!(annotations["applyset.kubernetes.io/tooling"], "evenkeel/v1");
    assert_eq!(
        annotations["applyset.kubernetes.io/contains-group-kinds"],
        "ConfigMap,Secret"
    );
    assert_eq!(
        annotations["applyset.kubernetes.io/additional-namespaces"],
        component.namespace.as_str()
    );
    // kubectl recomputes the id, reads the annotations and sees that the set is not its own.
    let folder = evenkeel_testkit::temp_dir();
    let file = folder.path().join("a.json");
    let mut extra = config_map("by-kubectl", "k", "1").object;
    extra["metadata"]["namespace"] = json!(component.namespace);
    std::fs::write(&file, extra.to_string()).unwrap();
    let output = env
        .kubectl()
        .env("KUBECTL_APPLYSET", "true")
        .args(["apply", "--prune", "-n", "evenkeel-system", "-f"])
        .arg(&file)
        .arg(format!("--applyset=secret/{}", component.target.parent_name()))
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success());
    assert!(
        told.contains("evenkeel"),
        "it sees that another tool manages the set: {told}"
    );
    env.must(&component.path("configmaps", "a")).await;
    let plan = component.plan(&[]).await.unwrap();
    assert_eq!(planned(plan.summary(), PlanAction::Delete).len(), 2);
}

/// Who comes from another tool wants what that tool set to go when it is no longer rendered.
pub(crate) async fn adopting_takes_over_from_other_tools(env: &Env) {
    let mut component = Component::new(env);
    component.make_namespace().await;
    let mut theirs = config_map("a", "ours", "1").object;
    theirs["data"]["only-theirs"] = json!("x");
    theirs["metadata"]["annotations"] = json!({"kubectl.kubernetes.io/last-applied-configuration": "{}"});
    let path = format!(
        "{}?fieldManager=kubectl-client-side-apply",
        component.collection("configmaps")
    );
    env.make(&path, &theirs).await;
    env.change(
        &component.path("configmaps", "a"),
        &json!({"data": {"by-hand": "y"}}),
    )
    .await;
    component.options.adopt = true;
    let documents = [config_map("a", "ours", "1")];
    let pass = component.run(&documents).await.unwrap();
    assert_eq!(pass.planned(PlanAction::Adopt), ["ConfigMap/a"]);
    let live = env.must(&component.path("configmaps", "a")).await;
    assert_eq!(
        live["data"],
        json!({"ours": "1", "by-hand": "y"}),
        "what a person added is left alone"
    );
    assert!(live["metadata"].get("annotations").is_none());
    assert!(component.run(&documents).await.unwrap().changes.is_empty());
}

/// What others own with other values is taken, left or an error, as the object says.
pub(crate) async fn fields_of_others_are_forced_left_or_refused(env: &Env) {
    let component = Component::new(env);
    let annotated = |value: Option<&str>, key: &str| {
        let mut document = config_map("a", key, "ours");
        document.object["data"]["app.x"] = json!("ours");
        document.object["data"]["rest"] = json!(key);
        if let Some(value) = value {
            document.object["metadata"]["annotations"] = json!({ON_CONFLICT: value});
        }
        [document]
    };
    component.run(&annotated(Some("leave"), "first")).await.unwrap();
    let path = component.path("configmaps", "a");
    let theirs = json!({"data": {"app.x": "theirs"}});
    env.change(&path, &theirs).await;
    let pass = component.run(&annotated(Some("leave"), "second")).await.unwrap();
    assert_eq!(pass.done(), ["update ConfigMap/a"]);
    let live = env.must(&path).await;
    assert_eq!(
        live["data"],
        json!({"app.x": "theirs", "second": "ours", "rest": "second"})
    );
    let left = |component: &Component<'_>| {
        let events = component.events.lock().unwrap();
        events.iter().find_map(|event| match event {
            Event::Left { conflicts, .. } => Some(conflicts.clone()),
            _ => None,
        })
    };
    let conflicts = left(&component).expect("it is told");
    assert!(
        conflicts.iter().any(|conflict| conflict.manager == "somebody"),
        "{conflicts:?}"
    );
    assert!(
        component
            .run(&annotated(Some("leave"), "second"))
            .await
            .unwrap()
            .changes
            .is_empty()
    );

    let error = component
        .run(&annotated(Some("error"), "third"))
        .await
        .unwrap_err();
    let told = error.to_string();
    assert!(told.contains("somebody") && told.contains("app.x"), "{told}");
    assert_eq!(
        env.must(&path).await["data"]["rest"],
        "second",
        "nothing of it was applied"
    );

    let pass = component.run(&annotated(None, "fourth")).await.unwrap();
    assert_eq!(pass.done(), ["update ConfigMap/a"]);
    assert_eq!(env.must(&path).await["data"]["app.x"], "ours");
    assert!(
        component
            .events
            .lock()
            .unwrap()
            .iter()
            .any(|event| matches!(event, Event::Forced { .. }))
    );

    let error = component.run(&annotated(Some("never"), "x")).await.unwrap_err();
    assert!(
        matches!(error, Error::Manifest(_)) && error.to_string().contains(ON_CONFLICT),
        "{error}"
    );
}

/// The component's policy counts for every object that does not say something else by its annotation, and another policy is
/// worth another apply.
pub(crate) async fn a_component_says_what_becomes_of_fields_of_others(env: &Env) {
    let mut component = Component::new(env);
    let documents = |value: &str| {
        let mut own = config_map("own", "x", value);
        own.object["metadata"]["annotations"] = json!({ON_CONFLICT: "force"});
        [config_map("a", "x", value), own]
    };
    component.run(&documents("first")).await.unwrap();
    let (a, own) = (
        component.path("configmaps", "a"),
        component.path("configmaps", "own"),
    );
    for path in [&a, &own] {
        env.change(path, &json!({"data": {"x": "theirs"}})).await;
    }

    component.options.on_conflict = OnConflict::Refuse;
    let error = component.run(&documents("second")).await.unwrap_err();
    assert_eq!(
        error.class(),
        ErrorClass::Invalid,
        "trying again changes nothing: {error}"
    );
    let told = error.to_string();
    for part in ["ConfigMap/a in namespace", ".data.x is owned by somebody"] {
        assert!(told.contains(part), "{part:?}: {told}");
    }
    assert_eq!(env.must(&a).await["data"]["x"], "theirs");

    component.options.on_conflict = OnConflict::Leave;
    component.run(&documents("second")).await.unwrap();
    assert_eq!(env.must(&a).await["data"]["x"], "theirs");
    assert_eq!(env.must(&own).await["data"]["x"], "second", "its annotation wins");
    assert!(
        component
            .run(&documents("second"))
            .await
            .unwrap()
            .changes
            .is_empty()
    );

    component.options.on_conflict = OnConflict::Force;
    let pass = component.run(&documents("second")).await.unwrap();
    assert_eq!(pass.done(), ["update ConfigMap/a"]);
    assert_eq!(env.must(&a).await["data"]["x"], "second");
    assert!(
        component
            .run(&documents("second"))
            .await
            .unwrap()
            .changes
            .is_empty()
    );
}

/// The objects of a Helm release change hands without a rollout, and what Helm alone had set goes.
pub(crate) async fn a_helm_release_is_taken_over_without_a_restart(env: &Env) {
    let mut component = Component::new(env);
    component.make_namespace().await;
    let mut theirs = deployment("web", 1).object;
    theirs["metadata"]["labels"] =
        json!({"app": "web", "app.kubernetes.io/managed-by": "Helm", "helm.sh/chart": "web-1"});
    theirs["metadata"]["annotations"] =
        json!({"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": component.namespace});
    env.make(
        &format!("{}?fieldManager=helm", component.collection("deployments")),
        &theirs,
    )
    .await;
    let path = component.path("deployments", "web");
    let before = env
        .until("the pod to be ready", &path, |live| {
            live["status"]["readyReplicas"] == 1
        })
        .await;
    let pods = env.must(&component.collection("pods")).await;
    // Rendered as the release was, Helm's own marks included or not.
    let mut ours = deployment("web", 1);
    ours.object["metadata"]["labels"] = json!({"app": "web", "helm.sh/chart": "web-1"});
    let error = component.run(&[ours.clone()]).await.unwrap_err().to_string();
    assert!(error.contains("Helm release web"), "{error}");
    component.options.adopt = true;
    let pass = component.run(&[ours.clone()]).await.unwrap();
    assert_eq!(pass.done(), ["adopt Deployment/web"]);
    let live = env.must(&path).await;
    assert_eq!(live["spec"], before["spec"], "nothing of it changed");
    let sets = env.must(&component.collection("replicasets")).await;
    assert_eq!(sets["items"].as_array().map(Vec::len), Some(1), "no rollout");
    assert_eq!(live["metadata"]["uid"], before["metadata"]["uid"]);
    assert!(
        live["metadata"]["annotations"]
            .get("meta.helm.sh/release-name")
            .is_none(),
        "{live}"
    );
    let still = env.must(&component.collection("pods")).await;
    assert_eq!(
        still.pointer("/items/0/metadata/uid"),
        pods.pointer("/items/0/metadata/uid"),
        "the pod goes on"
    );
    component.options.adopt = false;
    assert!(component.run(&[ours]).await.unwrap().changes.is_empty());
}

/// A release that the real Helm installed: its pods go on, and its record stays Helm's own.
pub(crate) async fn a_release_of_the_real_helm_is_taken_over(env: &Env) {
    let mut component = Component::new(env);
    let chart = evenkeel_testkit::temp_dir();
    std::fs::create_dir(chart.path().join("templates")).unwrap();
    std::fs::write(
        chart.path().join("Chart.yaml"),
        "apiVersion: v2\nname: web\nversion: 0.1.0\n",
    )
    .unwrap();
    let documents = [
        deployment("web", 1),
        crate::documents::service("web"),
        config_map("settings", "k", "1"),
    ];
    for (index, document) in documents.iter().enumerate() {
        let file = chart.path().join(format!("templates/{index}.yaml"));
        std::fs::write(file, document.object.to_string()).unwrap();
    }
    let mut helm = env.helm();
    helm.args([
        "install",
        "web",
        "--create-namespace",
        "--namespace",
        &component.namespace,
    ])
    .arg(chart.path());
    let output = helm.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let path = component.path("deployments", "web");
    let before = env
        .until("the pod to be ready", &path, |live| {
            live["status"]["readyReplicas"] == 1
        })
        .await;
    let collection = component.collection("pods");
    let pod = async || {
        let pods = env.must(&collection).await;
        pods["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|pod| pod["metadata"]["uid"].clone())
            .collect::<Vec<_>>()
    };
    let pods = pod().await;
    let release = component.path("secrets", "sh.helm.release.v1.web.v1");
    let remembered = env.must(&release).await;
    let error = component.run(&documents).await.unwrap_err().to_string();
    assert!(error.contains("Helm release web"), "{error}");

    component.options.adopt = true;
    let mut done = component.run(&documents).await.unwrap().done();
    done.sort();
    assert_eq!(
        done,
        [
            "adopt ConfigMap/settings",
            "adopt Deployment/web",
            "adopt Service/web"
        ]
    );
    let after = env.must(&path).await;
    // Annotations of Helm's go, and those of a Deployment count its generation up; nothing else changes.
    assert_eq!(after["spec"], before["spec"]);
    let sets = env.must(&component.collection("replicasets")).await;
    assert_eq!(sets["items"].as_array().map(Vec::len), Some(1), "no rollout");
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(pod().await, pods, "the pods go on");
    assert_eq!(env.must(&release).await, remembered, "Helm's record is Helm's");
    component.options.adopt = false;
    assert!(component.run(&documents).await.unwrap().changes.is_empty());
    // What Helm had set alone goes with what is no longer rendered; Helm's own record still stays.
    component.run(&documents[1..]).await.unwrap();
    env.until_gone(&path).await;
    env.must(&release).await;
}
