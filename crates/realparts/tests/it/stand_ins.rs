use crate::support::{apply, ask, cluster, expect};

/// A Deployment whose Pods follow `script`.
fn deployment(script: &str) -> String {
    format!(
        "apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  replicas: 2
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata:
      labels: {{app: web}}
      annotations: {{stand-in.evenkeel.dev/pod: {script}}}
    spec:
      containers: [{{name: main, image: registry.example/web:1}}]
"
    )
}

#[test]
fn deployments_become_available_and_follow_a_changed_script() {
    let cluster = cluster();
    apply(cluster, "deployments", &deployment("ready"));
    let available = [
        "get",
        "deployment",
        "web",
        "-n",
        "deployments",
        "-o",
        "jsonpath={.status.availableReplicas}",
    ];
    expect(cluster, &available, "2");
    let pods = [
        "annotate",
        "pods",
        "--all",
        "-n",
        "deployments",
        "--overwrite",
        "stand-in.evenkeel.dev/pod=unready",
    ];
    ask(cluster, &pods);
    expect(cluster, &available, "");
}

#[test]
fn a_failing_image_is_told_by_status_and_event() {
    let cluster = cluster();
    apply(cluster, "images", &deployment("image-error"));
    let reason = "jsonpath={.items[0].status.containerStatuses[0].state.waiting.reason}";
    expect(
        cluster,
        &["get", "pods", "-n", "images", "-o", reason],
        "ImagePullBackOff",
    );
    let reasons = [
        "get",
        "events",
        "-n",
        "images",
        "--field-selector=reason=Failed",
        "-o",
        "jsonpath={.items[0].type}",
    ];
    expect(cluster, &reasons, "Warning");
}

#[test]
fn jobs_complete() {
    let cluster = cluster();
    let job = "apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: registry.example/once:1}]
";
    apply(cluster, "jobs", job);
    expect(
        cluster,
        &[
            "get",
            "job",
            "once",
            "-n",
            "jobs",
            "-o",
            "jsonpath={.status.succeeded}",
        ],
        "1",
    );
}

#[test]
fn stateful_sets_get_their_volumes_and_daemon_sets_their_node() {
    let cluster = cluster();
    let both = "apiVersion: apps/v1
kind: StatefulSet
metadata: {name: store}
spec:
  serviceName: store
  replicas: 2
  selector: {matchLabels: {app: store}}
  template:
    metadata: {labels: {app: store}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: registry.example/store:1}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec:
      accessModes: [ReadWriteOnce]
      resources: {requests: {storage: 1Gi}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: registry.example/agent:1}]
---
apiVersion: v1
kind: Service
metadata: {name: edge}
spec:
  type: LoadBalancer
  ports: [{port: 80}]
";
    apply(cluster, "sets", both);
    expect(
        cluster,
        &[
            "get",
            "statefulset",
            "store",
            "-n",
            "sets",
            "-o",
            "jsonpath={.status.readyReplicas}",
        ],
        "2",
    );
    let claim = [
        "get",
        "pvc",
        "data-store-0",
        "-n",
        "sets",
        "-o",
        "jsonpath={.status.phase} {.status.capacity.storage}",
    ];
    expect(cluster, &claim, "Bound 1Gi");
    expect(
        cluster,
        &[
            "get",
            "daemonset",
            "agent",
            "-n",
            "sets",
            "-o",
            "jsonpath={.status.numberReady}",
        ],
        "1",
    );
    let address = ask(
        cluster,
        &[
            "get",
            "service",
            "edge",
            "-n",
            "sets",
            "-o",
            "jsonpath={.status.loadBalancer.ingress[0].ip}",
        ],
    );
    assert!(address.starts_with("198.51.100."), "{address}");

    // With the claims the volumes go; the namespace ends when all Pods have.
    ask(cluster, &["delete", "namespace", "sets", "--timeout=60s"]);
    expect(cluster, &["get", "pv", "-o", "name"], "");
}

#[test]
fn a_held_pod_stays_terminating_until_it_is_let_go() {
    let cluster = cluster();
    let pod = "apiVersion: v1
kind: Pod
metadata:
  name: slow
  annotations: {stand-in.evenkeel.dev/hold-termination: \"\", stand-in.evenkeel.dev/delay-ms: \"50\"}
spec:
  containers: [{name: main, image: registry.example/slow:1}]
";
    apply(cluster, "held", pod);
    expect(
        cluster,
        &[
            "get",
            "pod",
            "slow",
            "-n",
            "held",
            "-o",
            "jsonpath={.status.phase}",
        ],
        "Running",
    );
    ask(cluster, &["delete", "pod", "slow", "-n", "held", "--wait=false"]);
    let grace = "jsonpath={.metadata.deletionGracePeriodSeconds}";
    expect(cluster, &["get", "pod", "slow", "-n", "held", "-o", grace], "30");
    ask(
        cluster,
        &[
            "annotate",
            "pod",
            "slow",
            "-n",
            "held",
            "stand-in.evenkeel.dev/hold-termination-",
        ],
    );
    expect(cluster, &["get", "pods", "-n", "held", "-o", "name"], "");
}

#[test]
fn logs_are_what_the_annotation_says() {
    let cluster = cluster();
    let pod = "apiVersion: v1
kind: Pod
metadata:
  name: chatty
  annotations: {stand-in.evenkeel.dev/log: \"one\\ntwo\\nthree\"}
spec:
  containers: [{name: main, image: registry.example/chatty:1}]
";
    apply(cluster, "logs", pod);
    expect(cluster, &["logs", "chatty", "-n", "logs"], "one\ntwo\nthree");
    assert_eq!(
        ask(cluster, &["logs", "chatty", "-n", "logs", "--tail=1"]),
        "three"
    );
}
