//! The definitions at a real API server: what the predecessor's users wrote is accepted and read without loss, what could
//! never be carried out is refused with the field.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use evenkeel_operator::resources::{Cluster, GitRepo, Tenant, TenantTemplate};
use evenkeel_testkit::{TestCluster, cluster};
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::{NamespaceResourceScope, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The cluster, with the definitions as they are shipped.
pub(crate) fn server() -> &'static TestCluster {
    static READY: OnceLock<()> = OnceLock::new();
    let cluster = cluster("main");
    READY.get_or_init(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds");
        let mut apply = cluster.kubectl();
        apply.args(["apply", "--server-side", "-f"]).arg(folder);
        succeed(&apply.output().unwrap());
        let mut wait = cluster.kubectl();
        wait.args([
            "wait",
            "--for=condition=Established",
            "--timeout=60s",
            "crd",
            "--all",
        ]);
        succeed(&wait.output().unwrap());
    });
    cluster
}

pub(crate) fn succeed(output: &Output) -> String {
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn with_input(mut command: Command, input: &str) -> Output {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

pub(crate) fn apply(namespace: &str, manifest: &str) -> Output {
    let mut command = server().kubectl();
    command.args([
        "-n",
        namespace,
        "apply",
        "--server-side",
        "--validate=strict",
        "-f",
        "-",
    ]);
    with_input(command, manifest)
}

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/lieutenant")
}

/// What is absent and what is empty mean the same.
fn without_empty(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), without_empty(value)))
            .filter(|(_, value)| {
                !value.is_null() && value.as_object().is_none_or(|fields| !fields.is_empty())
            })
            .collect(),
        Value::Array(items) => items.iter().map(without_empty).collect(),
        other => other.clone(),
    }
}

/// Reads all objects of a kind as our types, and asserts that writing them again gives what is stored. How many.
async fn assert_read_without_loss<K>(namespace: &str) -> usize
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + Serialize
        + DeserializeOwned
        + std::fmt::Debug,
{
    let client = server().client().await;
    let typed: Api<K> = Api::namespaced(client.clone(), namespace);
    let kind = kube::api::ApiResource::erase::<K>(&());
    let stored: Api<DynamicObject> = Api::namespaced_with(client, namespace, &kind);
    let typed = typed.list(&ListParams::default()).await.unwrap().items;
    let stored = stored.list(&ListParams::default()).await.unwrap().items;
    assert_eq!(typed.len(), stored.len());
    for (typed, stored) in typed.iter().zip(&stored) {
        let typed = serde_json::to_value(typed).unwrap();
        for part in ["spec", "status"] {
            assert_eq!(
                without_empty(&typed[part]),
                without_empty(&stored.data[part]),
                "{part} of {:?}",
                stored.metadata.name
            );
        }
    }
    typed.len()
}

#[tokio::test]
async fn what_was_written_for_the_predecessor_is_accepted_and_read_without_loss() {
    let namespace = server().namespace("predecessor").await;
    let mut files: Vec<PathBuf> = std::fs::read_dir(testdata())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| !path.ends_with("stored.yaml"))
        .collect();
    files.sort();
    assert_eq!(files.len(), 11);
    for file in files {
        let manifest = std::fs::read_to_string(&file).unwrap();
        let output = apply(&namespace, &manifest);
        assert!(
            output.status.success(),
            "{}: {}",
            file.display(),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    assert_eq!(assert_read_without_loss::<Tenant>(&namespace).await, 2);
    assert_eq!(assert_read_without_loss::<Cluster>(&namespace).await, 4);
    assert_eq!(assert_read_without_loss::<GitRepo>(&namespace).await, 3);
    assert_eq!(assert_read_without_loss::<TenantTemplate>(&namespace).await, 1);
}

#[tokio::test]
async fn what_the_predecessor_stored_is_accepted_with_its_status_and_read_without_loss() {
    let namespace = server().namespace("stored").await;
    let manifest = std::fs::read_to_string(testdata().join("stored.yaml")).unwrap();
    succeed(&apply(&namespace, &manifest));
    let mut status = server().kubectl();
    status.args([
        "-n",
        &namespace,
        "apply",
        "--server-side",
        "--subresource=status",
        "-f",
        "-",
    ]);
    succeed(&with_input(status, &manifest));
    let clusters: Api<Cluster> = Api::namespaced(server().client().await, &namespace);
    let cluster = clusters.get("c-one").await.unwrap();
    let token = cluster.status.unwrap().bootstrap_token.unwrap();
    assert_eq!(token.token.as_ref().unwrap().expose(), "Zm9yLW9uZS11c2Utb25seQ==");
    assert_eq!(token.valid_until.unwrap().to_string(), "2026-08-25T09:15:07Z");
    assert!(!format!("{token:?}").contains("Zm9y"), "{token:?}");
    assert!(assert_read_without_loss::<Tenant>(&namespace).await >= 2);
    assert!(assert_read_without_loss::<Cluster>(&namespace).await >= 4);
    assert!(assert_read_without_loss::<GitRepo>(&namespace).await >= 4);
    assert_eq!(assert_read_without_loss::<TenantTemplate>(&namespace).await, 1);
}

#[tokio::test]
async fn an_object_without_a_spec_is_one_with_an_empty_spec() {
    let namespace = server().namespace("bare").await;
    for kind in ["Tenant", "Cluster", "TenantTemplate"] {
        let manifest = format!("{{apiVersion: syn.tools/v1alpha1, kind: {kind}, metadata: {{name: bare}}}}");
        succeed(&apply(&namespace, &manifest));
    }
    let client = server().client().await;
    let tenants: Api<Tenant> = Api::namespaced(client.clone(), &namespace);
    assert_eq!(tenants.get("bare").await.unwrap().spec, Default::default());
    let clusters: Api<Cluster> = Api::namespaced(client, &namespace);
    assert_eq!(clusters.get("bare").await.unwrap().spec, Default::default());
}

#[tokio::test]
async fn what_cannot_be_carried_out_is_refused_with_the_field() {
    let namespace = server().namespace("refused").await;
    let cases = [
        (
            "GitRepo",
            "{path: tenants}",
            "spec.repoName: Required value: a repository that is not unmanaged needs a name",
        ),
        (
            "GitRepo",
            "{repoName: a, deletionPolicy: Destroy}",
            "spec.deletionPolicy: Unsupported value: \"Destroy\"",
        ),
        (
            "Tenant",
            "{clusterTemplate: {creationPolicy: Take}}",
            "spec.clusterTemplate.creationPolicy: Unsupported value: \"Take\"",
        ),
        (
            "GitRepo",
            "{repoName: a, repoType: managed}",
            "spec.repoType: Unsupported value: \"managed\"",
        ),
        (
            "GitRepo",
            "{repoName: a, ciVariables: [{name: A, value: a}, {name: B, value: b, valueFrom: {secretKeyRef: {name: s, key: k}}}]}",
            "spec.ciVariables[1]: Invalid value: a variable has a value or says where its value comes from, not both",
        ),
        (
            "TenantTemplate",
            "{clusterTemplate: {gitRepoTemplate: {ciVariables: [{name: B, value: b, valueFrom: {}}]}}}",
            "spec.clusterTemplate.gitRepoTemplate.ciVariables[0]: Invalid value: a variable has a value or says",
        ),
        (
            "Tenant",
            "{gitRepoTemplate: {ciVariables: [{value: a}]}}",
            "spec.gitRepoTemplate.ciVariables[0].name: Required value",
        ),
        (
            "Cluster",
            "{gitRepoTemplate: {ciVariables: [{name: A, valueFrom: {secretKeyRef: {name: s}}}]}}",
            "spec.gitRepoTemplate.ciVariables[0].valueFrom.secretKeyRef.key: Required value",
        ),
        (
            "Cluster",
            "{facts: {cloud: 7}}",
            ".spec.facts.cloud: expected string",
        ),
        (
            "Cluster",
            "{displayname: x}",
            ".spec.displayname: field not declared in schema",
        ),
    ];
    for (kind, spec, expected) in cases {
        let manifest = format!(
            "{{apiVersion: syn.tools/v1alpha1, kind: {kind}, metadata: {{name: broken}}, spec: {spec}}}"
        );
        let output = apply(&namespace, &manifest);
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "accepted: {manifest}");
        assert!(
            message.contains(expected),
            "{manifest}\nexpected: {expected}\nfound: {message}"
        );
    }
}

/// A36: the tenant of a cluster is set once.
#[tokio::test]
async fn a_cluster_stays_with_its_tenant() {
    let namespace = server().namespace("moved").await;
    let of = |spec: &str| {
        format!(
            "{{apiVersion: syn.tools/v1alpha1, kind: Cluster, metadata: {{name: c-moved}}, spec: {spec}}}"
        )
    };
    // As long as there is none, it can be set.
    succeed(&apply(&namespace, &of("{displayName: A}")));
    succeed(&apply(&namespace, &of("{tenantRef: {name: ''}}")));
    succeed(&apply(&namespace, &of("{tenantRef: {name: t-one}}")));
    succeed(&apply(
        &namespace,
        &of("{displayName: B, tenantRef: {name: t-one}}"),
    ));
    for other in [
        "{tenantRef: {name: t-two}}",
        "{tenantRef: {name: ''}}",
        "{displayName: B}",
    ] {
        let output = apply(&namespace, &of(other));
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{other}");
        assert!(
            message.contains("spec.tenantRef: Forbidden: the tenant of a cluster cannot be changed"),
            "{message}"
        );
    }
    // A template is not a cluster: its tenant is nobody's.
    let template = |name: &str| {
        format!(
            "{{apiVersion: syn.tools/v1alpha1, kind: Tenant, metadata: {{name: t-moved}}, \
             spec: {{clusterTemplate: {{tenantRef: {{name: {name}}}}}}}}}"
        )
    };
    succeed(&apply(&namespace, &template("t-one")));
    succeed(&apply(&namespace, &template("t-two")));
}

#[tokio::test]
async fn tables_have_the_predecessors_columns_and_whether_all_is_well() {
    let namespace = server().namespace("tables").await;
    let object = "{apiVersion: syn.tools/v1alpha1, kind: GitRepo, metadata: {name: g-one}, \
                  spec: {repoName: one, displayName: The First}, \
                  status: {phase: created, conditions: [{type: Ready, status: 'False', reason: Failing, message: m, \
                  lastTransitionTime: '2026-08-25T09:15:07Z', observedGeneration: 1}]}}";
    succeed(&apply(&namespace, object));
    let mut status = server().kubectl();
    status.args([
        "-n",
        &namespace,
        "apply",
        "--server-side",
        "--subresource=status",
        "-f",
        "-",
    ]);
    succeed(&with_input(status, object));
    let mut get = server().kubectl();
    get.args(["-n", &namespace, "get", "gitrepos.syn.tools"]);
    let table = succeed(&get.output().unwrap());
    let mut lines = table.lines().map(|line| {
        line.split("  ")
            .map(str::trim)
            .filter(|cell| !cell.is_empty())
            .collect::<Vec<_>>()
    });
    assert_eq!(
        lines.next().unwrap(),
        ["NAME", "DISPLAY NAME", "REPO NAME", "PHASE", "READY", "AGE"]
    );
    assert_eq!(
        lines.next().unwrap()[..5],
        ["g-one", "The First", "one", "created", "False"]
    );
}

/// E7: several writers keep a condition each.
#[tokio::test]
async fn conditions_of_two_writers_stand_side_by_side() {
    let namespace = server().namespace("conditions").await;
    let object = "{apiVersion: syn.tools/v1alpha1, kind: Tenant, metadata: {name: t-one}}";
    succeed(&apply(&namespace, object));
    for kind in ["Ready", "RepoReady"] {
        let object = format!(
            "{{apiVersion: syn.tools/v1alpha1, kind: Tenant, metadata: {{name: t-one}}, status: {{conditions: \
             [{{type: {kind}, status: 'True', reason: Converged, message: '', \
             lastTransitionTime: '2026-08-25T09:15:07Z'}}]}}}}"
        );
        let mut status = server().kubectl();
        status.args(["-n", &namespace, "apply", "--server-side", "--subresource=status"]);
        status.args(["--field-manager", kind, "-f", "-"]);
        succeed(&with_input(status, &object));
    }
    let tenants: Api<Tenant> = Api::namespaced(server().client().await, &namespace);
    let conditions = tenants.get("t-one").await.unwrap().status.unwrap().conditions;
    let kinds: Vec<&str> = conditions
        .iter()
        .map(|condition| condition.kind.as_str())
        .collect();
    assert_eq!(kinds, ["Ready", "RepoReady"]);
}
