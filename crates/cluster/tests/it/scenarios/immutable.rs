//! Fields that the server never changes: made again by rule, refused with a reason, never losing what is held.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use evenkeel_cluster::{Attempt, Error, ErrorClass, ManifestObject, ON_IMMUTABLE_CHANGE, Stop};
use evenkeel_core::{Fence, PlanAction};
use serde_json::{Value, json};

use super::immutable_pairs::{self, Expected, Pair};
use crate::component::{Component, planned};
use crate::documents::{autoscaler, config_map, deployment, doc, job, service, workload};
use crate::env::{Env, short};

fn documents(pairs: &[Pair], changed: impl Fn(&Pair) -> bool) -> Vec<ManifestObject> {
    pairs
        .iter()
        .map(|pair| {
            let object = if changed(pair) { &pair.after } else { &pair.before };
            doc("templates/pair.yaml", object.clone())
        })
        .collect()
}

fn path_of(component: &Component<'_>, pair: &Pair) -> String {
    let version = pair.before["apiVersion"].as_str().unwrap();
    let root = if version.contains('/') { "apis" } else { "api" };
    let global = [
        "clusterrolebindings",
        "storageclasses",
        "priorityclasses",
        "ingressclasses",
        "runtimeclasses",
        "persistentvolumes",
    ]
    .contains(&pair.collection);
    let namespace = if global {
        String::new()
    } else {
        format!("namespaces/{}/", component.namespace)
    };
    let name = pair.before["metadata"]["name"].as_str().unwrap();
    format!("/{root}/{version}/{namespace}{}/{name}", pair.collection)
}

fn named(pair: &Pair) -> String {
    format!(
        "{}/{}",
        pair.before["kind"].as_str().unwrap(),
        pair.before["metadata"]["name"].as_str().unwrap()
    )
}

/// The table is compared with the server: what it says never changes is what the server refuses to change.
pub(crate) async fn the_server_agrees_with_every_rule(env: &Env) {
    let component = Component::new(env);
    let pairs = immutable_pairs::all(&short(&env.name));
    component.apply(&documents(&pairs, |_| false)).await.unwrap();
    let mut uids = Vec::new();
    for pair in &pairs {
        let path = path_of(&component, pair);
        let (status, answer) = env
            .send(
                "PATCH",
                &format!("{path}?fieldManager=evenkeel&force=true&dryRun=All"),
                "application/apply-patch+yaml",
                Some(&pair.after),
            )
            .await;
        assert_eq!(status, 422, "{}: {answer}", pair.what);
        uids.push(env.must(&path).await["metadata"]["uid"].clone());
    }

    // All that is refused is named at once, and nothing is written.
    let before = env.cluster.requests();
    let refused = documents(&pairs, |pair| pair.expected == Expected::Refuse);
    let error = component.run(&refused).await.unwrap_err();
    assert_eq!(env.cluster.requests().since(&before).writes(), 0);
    assert_eq!(error.class(), ErrorClass::Invalid, "{error}");
    let Error::ImmutableFields(changes) = &error else {
        panic!("{error}")
    };
    for pair in pairs.iter().filter(|pair| pair.expected == Expected::Refuse) {
        let told = changes
            .iter()
            .find(|change| format!("{}/{}", change.object.kind, change.object.name) == named(pair))
            .unwrap_or_else(|| panic!("{} is not told: {error}", pair.what));
        assert!(
            told.fields.iter().any(|field| field.starts_with(pair.field)),
            "{}: {:?}",
            pair.what,
            told.fields
        );
    }
    let expected = pairs
        .iter()
        .filter(|pair| pair.expected == Expected::Refuse)
        .count();
    assert_eq!(changes.len(), expected, "{error}");

    // What is made again is shown before it is done, with the fields.
    let again = documents(&pairs, |pair| pair.expected != Expected::Refuse);
    let plan = component.plan(&again).await.unwrap();
    let shown: BTreeSet<String> = planned(plan.summary(), PlanAction::Recreate)
        .into_iter()
        .collect();
    let wanted: BTreeSet<String> = pairs
        .iter()
        .filter(|pair| pair.expected != Expected::Refuse)
        .map(named)
        .collect();
    assert_eq!(shown, wanted);
    for pair in pairs.iter().filter(|pair| pair.expected != Expected::Refuse) {
        let change = plan
            .summary()
            .changes
            .iter()
            .find(|change| format!("{}/{}", change.object.kind, change.object.name) == named(pair))
            .unwrap();
        let without_pods = change.reason.contains("without its pods");
        assert!(
            change.reason.contains(pair.field),
            "{}: {}",
            pair.what,
            change.reason
        );
        assert_eq!(
            without_pods,
            pair.expected == Expected::OrphanRecreate,
            "{}",
            change.reason
        );
    }
    let pass = component.apply(&again).await.unwrap();
    let done = pass.done();
    for (pair, uid) in pairs.iter().zip(uids) {
        let live = env.must(&path_of(&component, pair)).await;
        let is_new = live["metadata"]["uid"] != uid;
        assert_eq!(is_new, pair.expected != Expected::Refuse, "{}", pair.what);
        assert_eq!(
            done.contains(&format!("recreate {}", named(pair))),
            is_new,
            "{}: {done:?}",
            pair.what
        );
    }
    let pass = component.apply(&again).await.unwrap();
    assert!(pass.changes.is_empty(), "{:?}", pass.done());
}

/// The pods of a StatefulSet and their claims go on while it is made again.
pub(crate) async fn a_stateful_set_is_made_again_around_its_pods(env: &Env) {
    let component = Component::new(env);
    let set = |size: &str| {
        let mut set = workload("StatefulSet", "db");
        set.object["spec"]["volumeClaimTemplates"] = json!([{"metadata": {"name": "data"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}}]);
        [service("db"), set]
    };
    component.run(&set("1Gi")).await.unwrap();
    let path = component.path("statefulsets", "db");
    let old = env.must(&path).await;
    let pod = env.must(&component.path("pods", "db-0")).await;
    let claim = env
        .must(&component.path("persistentvolumeclaims", "data-db-0"))
        .await;
    let pass = component.run(&set("2Gi")).await.unwrap();
    assert_eq!(pass.done(), ["recreate StatefulSet/db"]);
    let new = env.must(&path).await;
    assert_ne!(new["metadata"]["uid"], old["metadata"]["uid"]);
    assert_eq!(
        new.pointer("/spec/volumeClaimTemplates/0/spec/resources/requests/storage"),
        Some(&json!("2Gi"))
    );
    let taken_over = env
        .until(
            "the pod to be taken over",
            &component.path("pods", "db-0"),
            |pod| pod.pointer("/metadata/ownerReferences/0/uid") == new.pointer("/metadata/uid"),
        )
        .await;
    assert_eq!(
        taken_over["metadata"]["uid"], pod["metadata"]["uid"],
        "the pod went on"
    );
    let kept = env
        .must(&component.path("persistentvolumeclaims", "data-db-0"))
        .await;
    assert_eq!(kept["metadata"]["uid"], claim["metadata"]["uid"]);
    assert!(component.run(&set("2Gi")).await.unwrap().changes.is_empty());

    // Its pods would be nobody's under a selector that does not match them.
    let mut other = set("2Gi");
    other[1].object["spec"]["selector"]["matchLabels"] = json!({"app": "other"});
    other[1].object["spec"]["template"]["metadata"]["labels"] = json!({"app": "other"});
    let error = component.run(&other).await.unwrap_err().to_string();
    assert!(
        error.contains("spec.selector") && error.contains("does not"),
        "{error}"
    );
    // Nor are claims deleted by the way.
    let mut deleting = set("2Gi");
    deleting[1].object["spec"]["persistentVolumeClaimRetentionPolicy"] =
        json!({"whenDeleted": "Delete", "whenScaled": "Retain"});
    component.run(&deleting).await.unwrap();
    let mut asked = deleting.clone();
    asked[1].object["metadata"]["annotations"] = json!({ON_IMMUTABLE_CHANGE: "recreate"});
    asked[1].object["spec"]["podManagementPolicy"] = json!("Parallel");
    let error = component.run(&asked).await.unwrap_err().to_string();
    assert!(error.contains("whenDeleted"), "{error}");
}

/// An object's annotation wins over the rule of its kind, both ways, and never over what may not be deleted.
pub(crate) async fn an_annotation_decides(env: &Env) {
    let component = Component::new(env);
    let annotated = |mut document: ManifestObject, value: &str| {
        document.object["metadata"]["annotations"] = json!({ON_IMMUTABLE_CHANGE: value});
        document
    };
    let mut sealed = config_map("sealed", "k", "1");
    sealed.object["immutable"] = json!(true);
    let first = [deployment("web", 1), job("run"), sealed];
    component.run(&first).await.unwrap();
    let relabelled = |document: &ManifestObject| {
        let mut document = document.clone();
        document.object["spec"]["selector"]["matchLabels"] = json!({"app": "new"});
        document.object["spec"]["template"]["metadata"]["labels"] = json!({"app": "new"});
        document
    };
    let mut rerun = first[1].clone();
    rerun.object["spec"]["template"]["spec"]["containers"][0]["image"] = json!("registry.example/main:2");
    let mut resealed = first[2].clone();
    resealed.object["data"]["k"] = json!("2");
    let second = [
        annotated(relabelled(&first[0]), "recreate"),
        first[1].clone(),
        annotated(resealed, "recreate"),
    ];
    let mut done = component.run(&second).await.unwrap().done();
    done.sort();
    assert_eq!(done, ["recreate ConfigMap/sealed", "recreate Deployment/web"]);
    assert_eq!(
        env.must(&component.path("configmaps", "sealed")).await["data"]["k"],
        "2"
    );
    let third = [second[0].clone(), annotated(rerun, "error"), second[2].clone()];
    let error = component.run(&third).await.unwrap_err();
    assert!(
        matches!(&error, Error::ImmutableFields(changes) if changes.len() == 1 && changes[0].object.name == "run"),
        "{error}"
    );

    let volume = doc(
        "templates/pv.yaml",
        json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": component.namespace}, "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/tmp/a"}}}),
    );
    for (document, told) in [
        (annotated(volume, "recreate"), "never deleted"),
        (
            annotated(config_map("x", "k", "1"), "orphan-recreate"),
            "own no pods",
        ),
        (
            annotated(config_map("y", "k", "1"), "replace"),
            "expected recreate, orphan-recreate or error",
        ),
    ] {
        let error = Component::named(env, "wrong").run(&[document]).await.unwrap_err();
        assert!(
            matches!(error, Error::Manifest(_)) && error.to_string().contains(told),
            "{error}"
        );
    }
}

/// Broken off after the old object is gone, the next pass makes the new one.
pub(crate) async fn an_interrupted_recreation_is_completed(env: &Env) {
    let component = Component::new(env);
    component.run(&[job("run")]).await.unwrap();
    let mut changed = job("run");
    changed.object["spec"]["template"]["spec"]["containers"][0]["image"] = json!("registry.example/main:2");
    let writes = Arc::new(AtomicUsize::new(0));
    let attempt = Attempt {
        fence: Fence(100),
        // The number in the parent and the deletion.
        guard: Arc::new(move |_: Duration| {
            if writes.fetch_add(1, Ordering::Relaxed) < 2 {
                Ok(())
            } else {
                Err(Stop::LeaseEnded)
            }
        }),
    };
    let documents = [changed];
    let mut session = component
        .plan(&documents)
        .await
        .unwrap()
        .begin(attempt, component.observer());
    session.prepare_namespaces().await.unwrap();
    let error = session.apply().await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Stopped, "{error}");
    assert!(env.get(&component.path("jobs", "run")).await.is_none());
    let error = component.run(&documents).await.unwrap_err();
    assert!(matches!(error.class(), ErrorClass::Fenced(_)), "{error}");
    component.set_fence(101);
    let pass = component.run(&documents).await.unwrap();
    assert_eq!(pass.done(), ["create Job/run"]);
    let live = env.must(&component.path("jobs", "run")).await;
    assert_eq!(
        live.pointer("/spec/template/spec/containers/0/image"),
        Some(&json!("registry.example/main:2"))
    );
}

/// What somebody put in the place of the object in the meantime is not deleted.
pub(crate) async fn only_what_was_looked_at_is_made_again(env: &Env) {
    let component = Component::new(env);
    component.run(&[job("run"), job("touched")]).await.unwrap();
    let again: Vec<ManifestObject> = ["run", "touched"]
        .into_iter()
        .map(|name| {
            let mut changed = job(name);
            changed.object["spec"]["template"]["spec"]["containers"][0]["image"] =
                json!("registry.example/main:2");
            changed
        })
        .collect();
    let mut session = component.session(&again).await.unwrap();
    let path = component.path("jobs", "run");
    env.send(
        "DELETE",
        &path,
        "application/json",
        Some(&json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"})),
    )
    .await;
    env.until_gone(&path).await;
    let theirs = env.make(&component.collection("jobs"), &job("run").object).await;
    // A new version of the same object is no obstacle.
    env.change(
        &component.path("jobs", "touched"),
        &json!({"metadata": {"labels": {"theirs": "x"}}}),
    )
    .await;
    session.prepare_namespaces().await.unwrap();
    let error = session.apply().await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Conflict, "{error}");
    let live = env.must(&path).await;
    assert_eq!(live["metadata"]["uid"], theirs["metadata"]["uid"], "{error}");
    let touched = env.must(&component.path("jobs", "touched")).await;
    assert_eq!(
        touched.pointer("/spec/template/spec/containers/0/image"),
        Some(&json!("registry.example/main:2"))
    );
}

/// A workload under an autoscaler keeps its replicas when it is made again.
pub(crate) async fn replicas_survive_being_made_again(env: &Env) {
    let component = Component::new(env);
    let set = |service: &str| {
        let mut set = workload("StatefulSet", "db");
        set.object["spec"]["serviceName"] = json!(service);
        let mut hpa = autoscaler("db");
        hpa.object["spec"]["scaleTargetRef"]["kind"] = json!("StatefulSet");
        [set, hpa]
    };
    component.run(&set("a")).await.unwrap();
    let path = component.path("statefulsets", "db");
    env.change(&format!("{path}/scale"), &json!({"spec": {"replicas": 3}}))
        .await;
    let pass = component.run(&set("b")).await.unwrap();
    assert_eq!(pass.done(), ["recreate StatefulSet/db"]);
    let live = env.must(&path).await;
    assert_eq!(live.pointer("/spec/replicas"), Some(&json!(3)));
    assert_eq!(live.pointer("/spec/serviceName"), Some(&Value::from("b")));
    env.change(&format!("{path}/scale"), &json!({"spec": {"replicas": 4}}))
        .await;
    assert!(component.run(&set("b")).await.unwrap().changes.is_empty());
    assert_eq!(env.must(&path).await.pointer("/spec/replicas"), Some(&json!(4)));
}

/// A volume that somebody grew by hand is not drift, and shrinking it is refused without touching the data.
/// APL-06: what the cluster filled in is no drift, a claim never shrinks, and nothing deletes it without its own annotation.
pub(crate) async fn a_grown_claim_is_kept(env: &Env) {
    let component = Component::new(env);
    let class = format!("{}-grows", short(&env.name));
    env.make(
        "/apis/storage.k8s.io/v1/storageclasses",
        &json!({"metadata": {"name": class}, "provisioner": "evenkeel.dev/test", "allowVolumeExpansion": true}),
    )
    .await;
    let claim = |size: &str, label: &str| {
        [doc(
            "templates/pvc.yaml",
            json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "labels": {"team": label}},
                   "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": class, "resources": {"requests": {"storage": size}}}}),
        )]
    };
    component.run(&claim("10Gi", "a")).await.unwrap();
    let path = component.path("persistentvolumeclaims", "data");
    let uid = env.must(&path).await["metadata"]["uid"].clone();
    env.change(
        &path,
        &json!({"spec": {"resources": {"requests": {"storage": "20Gi"}}}}),
    )
    .await;
    let pass = component.apply(&claim("10Gi", "a")).await.unwrap();
    assert!(pass.changes.is_empty(), "{:?}", pass.done());
    assert!(!matches!(
        component.check(&claim("10Gi", "a")).await,
        evenkeel_cluster::Verdict::Differs(_)
    ));
    // The chart follows, and goes on from there; going back is refused.
    let pass = component.apply(&claim("20Gi", "b")).await.unwrap();
    assert_eq!(pass.done(), ["update PersistentVolumeClaim/data"]);
    let error = component.apply(&claim("5Gi", "b")).await.unwrap_err();
    assert!(
        matches!(&error, Error::ImmutableFields(changes) if changes[0].fields == ["spec.resources.requests.storage"]),
        "{error}"
    );
    assert_eq!(env.must(&path).await["metadata"]["uid"], uid);
}
