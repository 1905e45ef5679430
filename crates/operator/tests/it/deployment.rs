//! `deploy/operator`, as people apply it.

use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::admission::{apply, server, succeed};

const NAMESPACE: &str = "lieutenant";
const ACCOUNT: &str = "system:serviceaccount:lieutenant:evenkeel-operator";

fn kubectl(arguments: &[&str]) -> Output {
    server().kubectl().args(arguments).output().unwrap()
}

fn read(kind: &str, name: &str) -> Value {
    let text = succeed(&kubectl(&["-n", NAMESPACE, "get", kind, name, "-o", "json"]));
    serde_json::from_str(&text).unwrap()
}

#[test]
fn the_manifests_are_accepted_by_a_namespace_that_takes_no_others() {
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": { "name": NAMESPACE, "labels": { "pod-security.kubernetes.io/enforce": "restricted" } },
    });
    succeed(&apply("default", &namespace.to_string()));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/operator");
    let folder = folder.to_str().unwrap();
    let flags = [
        "apply",
        "--server-side",
        "--validate=strict",
        "--warnings-as-errors",
        "-f",
    ];
    succeed(&kubectl(&[&flags[..], &[folder]].concat()));

    // The pod itself is admitted, by the rules of the namespace and with its account.
    let deployment = read("deployment", "evenkeel-operator");
    let template = &deployment["spec"]["template"];
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "trial", "labels": template["metadata"]["labels"] },
        "spec": template["spec"],
    });
    succeed(&apply(NAMESPACE, &pod.to_string()));
    succeed(&kubectl(&[
        "-n",
        NAMESPACE,
        "delete",
        "pod",
        "trial",
        "--force",
        "--grace-period=0",
    ]));

    let container = &template["spec"]["containers"][0];
    assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
    for (probe, path) in [("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")] {
        assert_eq!(container[probe]["httpGet"]["path"], path, "{probe}");
    }
    // The Service finds the pods and their port.
    let service = read("service", "evenkeel-operator-metrics");
    assert_eq!(service["spec"]["selector"], template["metadata"]["labels"]);
    let ports = container["ports"].as_array().unwrap();
    assert!(
        ports
            .iter()
            .any(|port| port["name"] == service["spec"]["ports"][0]["targetPort"])
    );

    // It may what it has to in its own namespace, and nothing elsewhere.
    for (namespace, verb, resource, may) in [
        (NAMESPACE, "list", "secrets", true),
        (NAMESPACE, "patch", "clusters.syn.tools", true),
        (NAMESPACE, "delete", "clusters.syn.tools", false),
        (NAMESPACE, "get", "pods", false),
        ("default", "get", "secrets", false),
        ("default", "list", "clusters.syn.tools", false),
    ] {
        let told = kubectl(&["-n", namespace, "auth", "can-i", verb, resource, "--as", ACCOUNT]);
        assert_eq!(told.status.success(), may, "{verb} {resource} in {namespace}");
    }
}
