//! Workloads that live, and scripts that make them fail.

use evenkeel_simulator::{BEHAVIOUR_ANNOTATION, Cluster};
use serde_json::{Value, json};

use super::support::{eventually, object_where, start};

fn condition<'v>(object: &'v Value, kind: &str) -> Option<&'v Value> {
    object["status"]["conditions"]
        .as_array()?
        .iter()
        .find(|condition| condition["type"] == kind)
}

fn is(object: &Value, kind: &str, status: &str) -> bool {
    condition(object, kind).is_some_and(|condition| condition["status"] == status)
}

fn deployment(name: &str, replicas: i64, script: &str) -> Value {
    let annotations = if script.is_empty() {
        json!({})
    } else {
        json!({BEHAVIOUR_ANNOTATION: script})
    };
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}}})
}

fn job(name: &str, script: &str, spec: Value) -> Value {
    let mut job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": "default",
        "annotations": {BEHAVIOUR_ANNOTATION: script}}, "spec": {"template": {"spec": {"restartPolicy": "Never",
        "containers": [{"name": "c", "image": "i:1"}]}}}});
    for (field, value) in spec.as_object().unwrap() {
        job["spec"][field] = value.clone();
    }
    job
}

async fn count(cluster: &Cluster, kind: &str, api_version: &str, expected: usize) {
    eventually(&format!("{expected} of {kind}"), || async {
        (cluster.list(api_version, kind, "default").unwrap().len() == expected).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_failing_deployment_says_so() {
    let (simulator, cluster) = start().await;
    cluster.create("t", deployment("broken", 1, "fail")).unwrap();
    let broken = object_where(&cluster, "apps/v1", "Deployment", "default", "broken", |object| {
        is(object, "Progressing", "False")
    })
    .await;
    assert_eq!(
        condition(&broken, "Progressing").unwrap()["reason"],
        "ProgressDeadlineExceeded"
    );
    assert!(is(&broken, "Available", "False"));
    let crashed = eventually("a crashed pod", || async {
        let pods = cluster.list("v1", "Pod", "default").unwrap();
        let waiting = pods
            .first()?
            .pointer("/status/containerStatuses/0/state/waiting")?;
        Some(waiting.clone())
    })
    .await;
    assert_eq!(crashed["reason"], "CrashLoopBackOff");
    // Repaired by hand, it recovers.
    let fixed = json!({"metadata": {"annotations": {BEHAVIOUR_ANNOTATION: null}},
        "spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i:2"}]}}}});
    cluster
        .patch("t", "apps/v1", "Deployment", "default", "broken", fixed)
        .unwrap();
    object_where(&cluster, "apps/v1", "Deployment", "default", "broken", |object| {
        is(object, "Available", "True")
            && condition(object, "Progressing").unwrap()["reason"] == "NewReplicaSetAvailable"
    })
    .await;
    simulator.stop().await;
}

#[tokio::test]
async fn a_stuck_deployment_stays_unavailable_but_progressing() {
    let (simulator, cluster) = start().await;
    cluster.create("t", deployment("stuck", 1, "stuck")).unwrap();
    let stuck = object_where(&cluster, "apps/v1", "Deployment", "default", "stuck", |object| {
        object["status"]["updatedReplicas"] == 1
    })
    .await;
    assert!(
        is(&stuck, "Available", "False") && is(&stuck, "Progressing", "True"),
        "{stuck}"
    );
    simulator.stop().await;
}

#[tokio::test]
async fn owned_objects_go_with_their_owner_in_the_way_that_was_asked() {
    let (simulator, cluster) = start().await;
    cluster.create("t", deployment("web", 2, "")).unwrap();
    object_where(&cluster, "apps/v1", "Deployment", "default", "web", |o| {
        o["status"]["availableReplicas"] == 2
    })
    .await;
    cluster.delete("apps/v1", "Deployment", "default", "web").unwrap();
    count(&cluster, "ReplicaSet", "apps/v1", 0).await;
    count(&cluster, "Pod", "v1", 0).await;
    // An object whose owner never existed goes too.
    let orphan = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "o", "namespace": "default",
        "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x",
            "uid": "89062b0e-904d-4c0c-8417-39794718cf47"}]}});
    cluster.create("t", orphan).unwrap();
    eventually("the orphan to go", || async {
        cluster
            .get("v1", "ConfigMap", "default", "o")
            .unwrap()
            .is_none()
            .then_some(())
    })
    .await;
    simulator.stop().await;
}

#[tokio::test]
async fn foreground_deletion_waits_and_orphaning_spares() {
    let (simulator, cluster) = start().await;
    let http = super::support::Http::new(&simulator, &cluster);
    for (name, policy) in [("fore", "Foreground"), ("orph", "Orphan")] {
        cluster.create("t", deployment(name, 1, "")).unwrap();
        object_where(&cluster, "apps/v1", "Deployment", "default", name, |o| {
            o["status"]["availableReplicas"] == 1
        })
        .await;
        let path = format!("/apis/apps/v1/namespaces/default/deployments/{name}?propagationPolicy={policy}");
        assert_eq!(http.send("DELETE", &path, &[], None).await.unwrap().code, 200);
        eventually("the owner to go", || async {
            cluster
                .get("apps/v1", "Deployment", "default", name)
                .unwrap()
                .is_none()
                .then_some(())
        })
        .await;
        let left = cluster.list("apps/v1", "ReplicaSet", "default").unwrap();
        match policy {
            "Foreground" => assert!(left.is_empty(), "{left:?}"),
            _ => assert_eq!(left[0]["metadata"].get("ownerReferences"), None),
        }
    }
    simulator.stop().await;
}

#[tokio::test]
async fn jobs_complete_fail_and_expire() {
    let (simulator, cluster) = start().await;
    cluster
        .create("t", job("good", "", json!({"completions": 3, "parallelism": 2})))
        .unwrap();
    cluster
        .create("t", job("bad", "fail", json!({"backoffLimit": 1})))
        .unwrap();
    cluster
        .create("t", job("short", "", json!({"ttlSecondsAfterFinished": 0})))
        .unwrap();
    let good = object_where(&cluster, "batch/v1", "Job", "default", "good", |o| {
        is(o, "Complete", "True")
    })
    .await;
    assert_eq!(
        (
            &good["status"]["succeeded"],
            &good["status"]["completionTime"].is_string()
        ),
        (&json!(3), &true)
    );
    let bad = object_where(&cluster, "batch/v1", "Job", "default", "bad", |o| {
        is(o, "Failed", "True")
    })
    .await;
    assert_eq!(
        condition(&bad, "Failed").unwrap()["reason"],
        "BackoffLimitExceeded"
    );
    assert_eq!(bad["status"]["failed"], 2);
    eventually("the short-lived job to go", || async {
        cluster
            .get("batch/v1", "Job", "default", "short")
            .unwrap()
            .is_none()
            .then_some(())
    })
    .await;
    simulator.stop().await;
}

#[tokio::test]
async fn stateful_sets_daemon_sets_claims_and_services_settle() {
    let (simulator, cluster) = start().await;
    let template = json!({"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}});
    let selector = json!({"matchLabels": {"app": "x"}});
    let claim = json!({"metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    cluster
        .create(
            "t",
            json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db",
            "namespace": "default"}, "spec": {"serviceName": "db", "replicas": 2, "selector": selector,
            "template": template, "volumeClaimTemplates": [claim]}}),
        )
        .unwrap();
    cluster
        .create(
            "t",
            json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent",
            "namespace": "default"}, "spec": {"selector": selector, "template": template}}),
        )
        .unwrap();
    cluster
        .create(
            "t",
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "lb", "namespace": "default"},
            "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}}),
        )
        .unwrap();
    let set = object_where(&cluster, "apps/v1", "StatefulSet", "default", "db", |o| {
        o["status"]["readyReplicas"] == 2
    })
    .await;
    assert_eq!(set["status"]["currentRevision"], set["status"]["updateRevision"]);
    let daemon = object_where(&cluster, "apps/v1", "DaemonSet", "default", "agent", |o| {
        o["status"]["numberReady"] == 1
    })
    .await;
    assert_eq!(daemon["status"]["desiredNumberScheduled"], 1);
    for name in ["data-db-0", "data-db-1"] {
        let bound = |object: &Value| object["status"]["phase"] == "Bound";
        object_where(&cluster, "v1", "PersistentVolumeClaim", "default", name, bound).await;
    }
    object_where(&cluster, "v1", "Service", "default", "lb", |object| {
        object.pointer("/status/loadBalancer/ingress/0/ip").is_some()
    })
    .await;
    // A new image rolls through both.
    let image = json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i:2"}]}}}});
    cluster
        .patch("t", "apps/v1", "StatefulSet", "default", "db", image.clone())
        .unwrap();
    cluster
        .patch("t", "apps/v1", "DaemonSet", "default", "agent", image)
        .unwrap();
    object_where(&cluster, "apps/v1", "StatefulSet", "default", "db", |object| {
        let status = &object["status"];
        status["observedGeneration"] == 2
            && status["updatedReplicas"] == 2
            && status["readyReplicas"] == 2
            && status["currentRevision"] == status["updateRevision"]
    })
    .await;
    object_where(&cluster, "apps/v1", "DaemonSet", "default", "agent", |object| {
        object["status"]["observedGeneration"] == 2
            && object["status"]["updatedNumberScheduled"] == 1
            && object["status"]["numberReady"] == 1
    })
    .await;
    simulator.stop().await;
}

#[tokio::test]
async fn a_definition_serves_its_kind_and_takes_its_objects_along() {
    let (simulator, cluster) = start().await;
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gears.example.dev"}, "spec": {"group": "example.dev", "scope": "Cluster",
        "names": {"plural": "gears", "kind": "Gear"}, "versions": [
            {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object",
                "properties": {"spec": {"type": "object", "properties": {"teeth": {"type": "integer", "default": 8}}}}}}},
            {"name": "v1beta1", "served": true, "storage": false,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}});
    assert!(cluster.list("example.dev/v1", "Gear", "").is_err());
    cluster.create("t", definition).unwrap();
    object_where(
        &cluster,
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "",
        "gears.example.dev",
        |object| is(object, "Established", "True"),
    )
    .await;
    let gear =
        json!({"apiVersion": "example.dev/v1beta1", "kind": "Gear", "metadata": {"name": "g"}, "spec": {}});
    cluster.create("t", gear).unwrap();
    let stored = cluster.get("example.dev/v1", "Gear", "", "g").unwrap().unwrap();
    assert_eq!(stored["apiVersion"], "example.dev/v1");
    cluster
        .delete(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            "",
            "gears.example.dev",
        )
        .unwrap();
    eventually("the kind to go", || async {
        cluster.list("example.dev/v1", "Gear", "").is_err().then_some(())
    })
    .await;
    simulator.stop().await;
}

/// As the real controller: a slice as soon as there is a service, with what stands behind it; it goes with the service.
#[tokio::test]
async fn endpoint_slices_follow_pods() {
    let (_simulator, cluster) = start().await;
    let slices = |cluster: &Cluster| {
        cluster
            .list("discovery.k8s.io/v1", "EndpointSlice", "default")
            .unwrap()
    };
    let of_web = |cluster: &Cluster| {
        let mut all = slices(cluster).into_iter();
        all.find(|slice| slice["metadata"]["labels"]["kubernetes.io/service-name"] == "web")
    };
    let service = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "web", "namespace": "default", "labels": {"team": "shop"}},
        "spec": {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}]}});
    cluster.create("t", service).unwrap();
    let empty = eventually("a slice", || async { of_web(&cluster) }).await;
    // As the real server shows a list without entries.
    let is_empty = |slice: &Value| slice["endpoints"].as_array().is_none_or(Vec::is_empty);
    assert!(is_empty(&empty), "{empty}");
    assert_eq!(empty["metadata"]["labels"]["team"], "shop");
    assert_eq!(
        empty["metadata"]["labels"]["endpointslice.kubernetes.io/managed-by"],
        "endpointslice-controller.k8s.io"
    );

    cluster.create("t", deployment("web", 2, "")).unwrap();
    cluster.create("t", deployment("other", 1, "")).unwrap();
    let ready = |slice: &Value| {
        let endpoints = slice["endpoints"].as_array().into_iter().flatten();
        endpoints
            .filter(|endpoint| endpoint["conditions"]["ready"] == true)
            .count()
    };
    let full = eventually("two ready endpoints", || async {
        of_web(&cluster).filter(|slice| ready(slice) == 2)
    })
    .await;
    assert_eq!(full["metadata"]["uid"], empty["metadata"]["uid"]);
    assert_eq!(full["endpoints"].as_array().unwrap().len(), 2);
    assert_eq!(
        full["ports"],
        json!([{"name": "http", "port": 8080, "protocol": "TCP"}])
    );
    assert_eq!(full["endpoints"][0]["targetRef"]["kind"], "Pod");

    cluster
        .patch(
            "t",
            "apps/v1",
            "Deployment",
            "default",
            "web",
            json!({"spec": {"replicas": 0}}),
        )
        .unwrap();
    eventually("no endpoint", || async { of_web(&cluster).filter(is_empty) }).await;
    // Nothing changes any more, and nothing is written.
    let settled = of_web(&cluster).unwrap();
    cluster
        .patch(
            "t",
            "v1",
            "Service",
            "default",
            "web",
            json!({"metadata": {"annotations": {"a": "b"}}}),
        )
        .unwrap();
    cluster.create("t", deployment("third", 1, "")).unwrap();
    object_where(&cluster, "apps/v1", "Deployment", "default", "third", |object| {
        is(object, "Available", "True")
    })
    .await;
    assert_eq!(
        of_web(&cluster).unwrap()["metadata"]["resourceVersion"],
        settled["metadata"]["resourceVersion"]
    );

    cluster.delete("v1", "Service", "default", "web").unwrap();
    eventually("its slice to go with it", || async {
        of_web(&cluster).is_none().then_some(())
    })
    .await;
}

/// A pod that runs and is not ready is listed as such; a service without a selector is somebody else's matter.
#[tokio::test]
async fn endpoint_slices_tell_what_is_not_ready() {
    let (_simulator, cluster) = start().await;
    cluster.create("t", deployment("web", 1, "stuck")).unwrap();
    for (name, spec) in [
        (
            "web",
            json!({"selector": {"app": "web"}, "ports": [{"port": 80}]}),
        ),
        (
            "hasty",
            json!({"selector": {"app": "web"}, "publishNotReadyAddresses": true, "ports": [{"port": 80}]}),
        ),
        ("elsewhere", json!({"ports": [{"port": 80}]})),
    ] {
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "default"}, "spec": spec});
        cluster.create("t", service).unwrap();
    }
    let endpoint = |name: &'static str| {
        let cluster = &cluster;
        move || async move {
            let all = cluster
                .list("discovery.k8s.io/v1", "EndpointSlice", "default")
                .unwrap();
            let mut all = all.into_iter();
            let slice =
                all.find(|slice| slice["metadata"]["labels"]["kubernetes.io/service-name"] == name)?;
            slice["endpoints"].get(0).cloned()
        }
    };
    let stuck = eventually("its endpoint", endpoint("web")).await;
    assert_eq!(
        stuck["conditions"],
        json!({"ready": false, "serving": false, "terminating": false})
    );
    let hasty = eventually("its endpoint", endpoint("hasty")).await;
    assert_eq!(hasty["conditions"]["ready"], true);
    let all = cluster
        .list("discovery.k8s.io/v1", "EndpointSlice", "default")
        .unwrap();
    assert_eq!(all.len(), 2);
}
