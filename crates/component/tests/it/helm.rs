//! K34: hooks run in the order in which the real Helm runs them, and leave the same objects.

use std::collections::BTreeMap;

use evenkeel_component::End;

use crate::bench::Bench;

/// Hooks of all sorts: equal weights, weights that are none, policies.
fn templates() -> Vec<(&'static str, String)> {
    let map = |name: &str, events: &str, more: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  annotations:\n    helm.sh/hook: {events}\n{more}"
        )
    };
    let weight = |weight: &str| format!("    helm.sh/hook-weight: '{weight}'\n");
    let policy = |policy: &str| format!("    helm.sh/hook-delete-policy: {policy}\n");
    let account = map("z-sa", "pre-install,pre-upgrade", "").replace("ConfigMap", "ServiceAccount");
    let job = "
apiVersion: batch/v1
kind: Job
metadata:
  name: a-job
  annotations:
    helm.sh/hook: pre-install,pre-upgrade
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
spec:
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: example.com/migrate:1}]
";
    vec![
        ("1", job.to_owned()),
        ("2", account),
        ("3", map("b", "pre-install,pre-upgrade", &weight("10"))),
        ("4", map("m", "pre-install", &weight("-5"))),
        ("5", map("bad", "pre-install", &weight("x"))),
        ("6", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\ndata: {k: {{ .Values.k | default \"1\" | quote }}}\n".to_owned()),
        ("7", map("after", "post-install,post-upgrade", &policy("hook-succeeded"))),
        ("8", map("still", "post-install,post-upgrade", &policy("hook-failed"))),
        ("9", map("gone", "pre-delete", &policy("hook-succeeded"))),
    ]
}

/// The names of the objects that were written, in the order of their first write, from the server's own log.
fn written(requests: &[evenkeel_testkit::AuditedRequest], namespace: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for request in requests {
        let path = request.uri.split('?').next().unwrap_or_default();
        let Some((_, object)) = path.split_once(&format!("/namespaces/{namespace}/")) else {
            continue;
        };
        let is_write = ["create", "patch"].contains(&request.verb.as_str());
        if let Some((collection, name)) = object.split_once('/')
            && is_write
            && ["configmaps", "serviceaccounts", "jobs"].contains(&collection)
        {
            names.push(name.to_owned());
        }
    }
    names
}

/// Names and data of everything in the namespace that is not Kubernetes' own.
async fn left(bench: &Bench, namespace: &str) -> BTreeMap<String, serde_json::Value> {
    let mut found = BTreeMap::new();
    for path in [
        "/api/v1 configmaps",
        "/api/v1 serviceaccounts",
        "/apis/batch/v1 jobs",
    ] {
        let (root, collection) = path.split_once(' ').unwrap();
        let request = http::Request::get(format!("{root}/namespaces/{namespace}/{collection}"));
        let listed: serde_json::Value = bench
            .cluster
            .raw_client()
            .request(request.body(Vec::new()).unwrap())
            .await
            .unwrap();
        for item in listed["items"].as_array().unwrap() {
            let name = item["metadata"]["name"].as_str().unwrap();
            if !["kube-root-ca.crt", "default"].contains(&name) {
                found.insert(format!("{collection}/{name}"), item["data"].clone());
            }
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn hooks_run_as_the_real_helm_runs_them() {
    let bench = Bench::real("helm_hooks").await;
    for (name, text) in templates() {
        bench.write(&format!("templates/{name}.yaml"), &text);
    }
    let cluster = evenkeel_testkit::cluster("component");
    let theirs = "helm-hooks-theirs";
    let helm = |arguments: &[&str]| {
        let mut command = cluster.helm();
        command
            .args(arguments)
            .args(["--namespace", theirs, "--timeout", "60s"]);
        let output = command.output().unwrap();
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    };
    let chart = bench.chart_path();

    for (verb, k) in [("install", "1"), ("upgrade", "2")] {
        let mark = cluster.mark();
        let set = format!("k={k}");
        let mut arguments = vec![verb, "helm-hooks", &chart, "--set", &set];
        if verb == "install" {
            arguments.push("--create-namespace");
        }
        helm(&arguments);
        let helms = written(&cluster.requests_of("Helm/", mark), theirs);
        let mark = cluster.mark();
        let outcome = bench.apply(&format!("k: '{k}'")).await;
        assert_eq!(outcome.end, End::Succeeded, "{outcome:#?}");
        let ours = written(&cluster.requests_of("evenkeel/", mark), bench.namespace.as_str());
        assert!(helms.len() > 4, "{helms:?}");
        assert_eq!(ours, helms, "{verb}");
        assert_eq!(
            left(&bench, bench.namespace.as_str()).await,
            left(&bench, theirs).await,
            "{verb}"
        );
    }

    helm(&["uninstall", "helm-hooks"]);
    assert_eq!(bench.uninstall().await.end, End::Succeeded);
    // Helm leaves what hooks made; here it goes with the component.
    let still: Vec<String> = left(&bench, theirs).await.into_keys().collect();
    assert_eq!(
        still,
        [
            "configmaps/b",
            "configmaps/bad",
            "configmaps/m",
            "configmaps/still",
            "serviceaccounts/z-sa"
        ]
    );
    assert!(left(&bench, bench.namespace.as_str()).await.is_empty());
}
