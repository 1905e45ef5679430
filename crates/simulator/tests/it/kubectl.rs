//! The simulator as kubectl sees it.

use std::path::PathBuf;
use std::process::Stdio;

use evenkeel_simulator::Cluster;
use tempfile::TempDir;
use tokio::process::Command;

use super::support::{eventually, start};

/// kubectl with a home and a kubeconfig of its own.
struct Kubectl {
    program: PathBuf,
    home: TempDir,
}

struct Output {
    success: bool,
    out: String,
    err: String,
}

impl Kubectl {
    fn new(cluster: &Cluster) -> Self {
        let program = evenkeel_realparts::kubectl().expect("kubectl is prepared by `cargo xtask test`");
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("kubeconfig"), cluster.kubeconfig()).unwrap();
        Self { program, home }
    }

    async fn run(&self, args: &[&str], input: &str) -> Output {
        let mut child = Command::new(&self.program)
            .args(args)
            .env("KUBECONFIG", self.home.path().join("kubeconfig"))
            .env("HOME", self.home.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut stdin, input.as_bytes())
            .await
            .unwrap();
        drop(stdin);
        let output = child.wait_with_output().await.unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Output {
            success: output.status.success(),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }

    async fn ok(&self, args: &[&str], input: &str) -> String {
        let output = self.run(args, input).await;
        assert!(output.success, "kubectl {args:?}: {}{}", output.out, output.err);
        output.out
    }
}

const WEB: &str = "
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {app: web}
spec:
  replicas: 2
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
        - name: web
          image: nginx:1
          ports: [{containerPort: 80}]
---
apiVersion: v1
kind: Service
metadata:
  name: web
spec:
  selector: {app: web}
  ports: [{port: 80}]
";

const SEEN: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: seen}, data: {a: b}}";
const TEAM: &str = "{apiVersion: v1, kind: Namespace, metadata: {name: team}}";

#[tokio::test]
async fn kubectl_gets_applies_and_deletes() {
    let (simulator, cluster) = start().await;
    let kubectl = Kubectl::new(&cluster);
    let first = ["apply", "--server-side", "--validate=false", "-f", "-"];
    let out = kubectl.ok(&first, WEB).await;
    assert!(out.contains("deployment.apps/web serverside-applied"), "{out}");
    kubectl
        .ok(&["rollout", "status", "deployment/web", "--timeout=20s"], "")
        .await;
    let out = kubectl.ok(&["get", "deployment,service", "-o", "wide"], "").await;
    let line = out
        .lines()
        .find(|line| line.starts_with("deployment.apps/web"))
        .unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words[1..4], ["2/2", "2", "2"], "{out}");
    let out = kubectl
        .ok(&["get", "pods", "-l", "app=web", "--no-headers"], "")
        .await;
    assert_eq!(
        out.lines()
            .filter(|line| line.contains("1/1") && line.contains("Running"))
            .count(),
        2,
        "{out}"
    );
    let out = kubectl
        .ok(
            &[
                "get",
                "deploy",
                "web",
                "-o",
                "jsonpath={.spec.template.spec.containers[0].image}",
            ],
            "",
        )
        .await;
    assert_eq!(out, "nginx:1");
    let out = kubectl.ok(&["delete", "-f", "-", "--timeout=20s"], WEB).await;
    assert!(out.contains("deployment.apps \"web\" deleted"), "{out}");
    eventually("the pods to go", || async {
        cluster
            .list("v1", "Pod", "default")
            .unwrap()
            .is_empty()
            .then_some(())
    })
    .await;
    simulator.stop().await;
}

#[tokio::test]
async fn kubectl_applies_on_the_client_too_and_moves_to_the_server() {
    let (simulator, cluster) = start().await;
    let kubectl = Kubectl::new(&cluster);
    let out = kubectl.ok(&["apply", "-f", "-"], WEB).await;
    assert!(out.contains("deployment.apps/web created"), "{out}");
    let out = kubectl.ok(&["apply", "-f", "-"], WEB).await;
    assert!(
        out.contains("deployment.apps/web unchanged") && out.contains("service/web unchanged"),
        "{out}"
    );
    let out = kubectl
        .ok(&["apply", "-f", "-"], &WEB.replace("nginx:1", "nginx:2"))
        .await;
    assert!(out.contains("deployment.apps/web configured"), "{out}");
    let out = kubectl
        .ok(
            &["apply", "--server-side", "-f", "-"],
            &WEB.replace("nginx:1", "nginx:3"),
        )
        .await;
    assert!(out.contains("deployment.apps/web serverside-applied"), "{out}");
    let other = ["apply", "--server-side", "--field-manager=other", "-f", "-"];
    let conflict = kubectl.run(&other, WEB).await;
    assert!(
        !conflict.success && conflict.err.contains("conflict with \"kubectl\""),
        "{}",
        conflict.err
    );
    simulator.stop().await;
}

#[tokio::test]
async fn kubectl_watches_scales_and_explains_errors() {
    let (simulator, cluster) = start().await;
    let kubectl = Kubectl::new(&cluster);
    kubectl.ok(&["apply", "--server-side", "-f", "-"], WEB).await;
    kubectl.ok(&["scale", "deployment/web", "--replicas=3"], "").await;
    kubectl
        .ok(
            &[
                "wait",
                "deployment/web",
                "--for=jsonpath={.status.availableReplicas}=3",
                "--timeout=20s",
            ],
            "",
        )
        .await;
    let missing = kubectl.run(&["get", "deployment", "nope"], "").await;
    assert!(
        missing.err.contains("deployments.apps \"nope\" not found"),
        "{}",
        missing.err
    );
    let unknown = kubectl
        .run(
            &["apply", "--server-side", "--validate=strict", "-f", "-"],
            &WEB.replace("replicas", "replicaz"),
        )
        .await;
    assert!(
        unknown
            .err
            .contains(".spec.replicaz: field not declared in schema"),
        "{}",
        unknown.err
    );
    let resources = kubectl.ok(&["api-resources", "--no-headers"], "").await;
    assert!(
        resources.lines().count() > 50 && resources.contains("deploy"),
        "{resources}"
    );
    let version = kubectl.ok(&["version"], "").await;
    assert!(version.contains("Server Version: v1.37.2"), "{version}");
    let watched = [
        "get",
        "configmaps",
        "--watch",
        "--output-watch-events",
        "--request-timeout=2s",
    ];
    let (watched, ()) = tokio::join!(kubectl.run(&watched, ""), async {
        eventually("the watch", || async {
            (cluster.counters().verb("watch") > 0).then_some(())
        })
        .await;
        kubectl.ok(&["apply", "--server-side", "-f", "-"], SEEN).await;
    });
    assert!(
        watched
            .out
            .lines()
            .any(|line| line.starts_with("ADDED") && line.contains("seen")),
        "{}",
        watched.out
    );
    simulator.stop().await;
}

#[tokio::test]
async fn kubectl_patches_labels_and_restarts() {
    let (simulator, cluster) = start().await;
    let kubectl = Kubectl::new(&cluster);
    kubectl.ok(&["apply", "-f", "-"], TEAM).await;
    kubectl.ok(&["apply", "-n", "team", "-f", "-"], WEB).await;
    kubectl
        .ok(
            &["set", "image", "deployment/web", "web=nginx:2", "-n", "team"],
            "",
        )
        .await;
    kubectl
        .ok(&["label", "deployment/web", "tier=front", "-n", "team"], "")
        .await;
    kubectl
        .ok(&["annotate", "deployment/web", "note=x", "-n", "team"], "")
        .await;
    kubectl
        .ok(&["rollout", "restart", "deployment/web", "-n", "team"], "")
        .await;
    kubectl
        .ok(
            &[
                "rollout",
                "status",
                "deployment/web",
                "-n",
                "team",
                "--timeout=20s",
            ],
            "",
        )
        .await;
    let object = cluster
        .get("apps/v1", "Deployment", "team", "web")
        .unwrap()
        .unwrap();
    assert_eq!(
        object["spec"]["template"]["spec"]["containers"][0]["image"],
        "nginx:2"
    );
    assert_eq!(object["metadata"]["labels"]["tier"], "front");
    kubectl
        .ok(&["delete", "namespace", "team", "--timeout=20s"], "")
        .await;
    assert!(cluster.get("v1", "Namespace", "", "team").unwrap().is_none());
    simulator.stop().await;
}
