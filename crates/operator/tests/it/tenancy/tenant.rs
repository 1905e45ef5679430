//! A tenant and what it pulls from its clusters (§3.2, §3.9, B11).

use evenkeel_operator::git::BlobDigest;
use evenkeel_operator::resources::{Cluster, ConditionStatus, GitRepo, Tenant};
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::Land;
use super::land::assert_condition;
use crate::git::file;

#[tokio::test]
async fn a_tenant_knows_its_clusters_in_its_role_and_its_repository() {
    let land = Land::new().await;
    land.tenant("t-one", json!({})).await;
    land.settle().await;
    let rules = |role: Role| role.rules.unwrap();
    // A25: no cluster, no rule; an empty list of names would mean all.
    assert_eq!(rules(land.get("t-one").await).len(), 1);
    land.cluster("c-one", json!({})).await;
    land.cluster("c-two", json!({})).await;
    land.settle().await;
    let role: Role = land.get("t-one").await;
    let names: Vec<_> = role
        .rules
        .unwrap()
        .into_iter()
        .map(|rule| rule.resource_names.unwrap())
        .collect();
    assert_eq!(
        names,
        [vec!["t-one"], vec!["c-one", "c-two"], vec!["c-one", "c-two"]]
    );
    let account: ServiceAccount = land.get("t-one").await;
    assert_eq!(account.labels()["app.kubernetes.io/managed-by"], "lieutenant");
    let project = land.project("t-one").await.unwrap();
    let files = land.host().files(&project).await.unwrap();
    assert_eq!(
        files[&file("c-one.yml")],
        BlobDigest::of(b"classes:\n- t-one.common\n")
    );
    let tenant: Tenant = land.get("t-one").await;
    assert!(
        tenant
            .spec
            .git_repo_url
            .as_deref()
            .unwrap()
            .ends_with("/t-one.git")
    );
    assert_condition(
        &tenant.status.unwrap().conditions,
        "Ready",
        ConditionStatus::True,
        "",
    );
    // An administrator may add subjects.
    let more = json!({ "subjects": [
        { "kind": "ServiceAccount", "name": "t-one", "namespace": land.namespace },
        { "kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "ada" },
    ] });
    let params = PatchParams::default();
    land.api::<RoleBinding>()
        .patch("t-one", &params, &Patch::Merge(&more))
        .await
        .unwrap();
    land.settle().await;
    assert_eq!(land.get::<RoleBinding>("t-one").await.subjects.unwrap().len(), 2);

    // A cluster that goes takes its file along; the tombstone does not pile up.
    land.delete::<Cluster>("c-two").await;
    land.settle().await;
    let files = land.host().files(&project).await.unwrap();
    assert!(!files.contains_key(&file("c-two.yml")) && files.contains_key(&file("c-one.yml")));
    let repo: GitRepo = land.get("t-one").await;
    let paths: Vec<_> = repo.spec.template.template_files.into_keys().collect();
    assert_eq!(paths, ["c-one.yml", "common.yml"]);
}

/// B11, B12: files of users stay theirs, files of pipelines follow the specification.
#[tokio::test]
async fn pipelines_get_their_files_and_variables_and_lose_them_again() {
    let land = Land::new().await;
    let template = json!({
        "path": land.group, "repoName": "t-one", "apiSecretRef": { "name": "git" },
        "templateFiles": { "README.md": "hello", "common.yml": "own: true\n" },
        "ciVariables": [{ "name": "PLAIN", "value": "v" }],
    });
    let pipeline = |content: &str| json!({ "enabled": true, "pipelineFiles": { ".gitlab-ci.yml": content } });
    let with =
        |pipeline: serde_json::Value| json!({ "gitRepoTemplate": template, "compilePipeline": pipeline });
    land.tenant("t-one", with(pipeline("stages: [build]"))).await;
    let token = json!({ "accessToken": { "secretRef": "c-one-token" } });
    land.cluster(
        "c-one",
        json!({ "enableCompilePipeline": true, "gitRepoTemplate": token }),
    )
    .await;
    land.cluster("c-two", json!({})).await;
    land.settle().await;
    let project = land.project("t-one").await.unwrap();
    let variables = land.host().variables(&project).await.unwrap();
    let names: Vec<&str> = variables.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "ACCESS_TOKEN_c_one",
            "CLUSTERS",
            "COMMODORE_API_TOKEN",
            "COMMODORE_API_URL",
            "PLAIN"
        ]
    );
    let value = |name: &str| variables[name].value.as_ref().unwrap().expose().clone();
    assert_eq!(value("CLUSTERS"), "c-one");
    assert_eq!(value("COMMODORE_API_URL"), "https://api.example.org");
    assert!(variables["COMMODORE_API_TOKEN"].is_masked);
    assert!(
        !variables["COMMODORE_API_TOKEN"]
            .options
            .as_ref()
            .unwrap()
            .is_protected
    );
    let tenant: Tenant = land.get("t-one").await;
    assert_eq!(
        tenant.status.unwrap().compile_pipeline.unwrap().clusters,
        ["c-one"]
    );
    let digest = async |path: &str| land.host().files(&project).await.unwrap().remove(&file(path));
    assert_eq!(digest("README.md").await, Some(BlobDigest::of(b"hello")));
    assert_eq!(digest("common.yml").await, Some(BlobDigest::of(b"own: true\n")));

    land.tenant("t-one", with(pipeline("stages: [test]"))).await;
    land.settle().await;
    assert_eq!(
        digest(".gitlab-ci.yml").await,
        Some(BlobDigest::of(b"stages: [test]"))
    );

    land.tenant("t-one", with(json!({ "enabled": false }))).await;
    land.settle().await;
    assert_eq!(digest(".gitlab-ci.yml").await, None);
    assert!(digest("README.md").await.is_some());
    let variables = land.host().variables(&project).await.unwrap();
    assert_eq!(variables.keys().collect::<Vec<_>>(), ["PLAIN"]);
    assert!(
        land.get::<Tenant>("t-one")
            .await
            .status
            .unwrap()
            .compile_pipeline
            .is_none()
    );
}

/// The recorded step 10: what the template says fills gaps, and what the tenant says wins.
#[tokio::test]
async fn the_template_fills_in_what_a_tenant_leaves_out() {
    let land = Land::new().await;
    let global = "ssh://git@git.example.org/global2.git";
    land.template(json!({
        "displayName": "from default", "globalGitRepoURL": global, "deletionPolicy": "Delete",
        "gitRepoTemplate": { "path": land.group, "apiSecretRef": { "name": "git" }, "templateFiles": { "a.txt": "A" } },
        "clusterTemplate": { "facts": { "ttfact": "yes" }, "enableCompilePipeline": true },
    }))
    .await;
    let spec = json!({
        "displayName": "", "gitRepoTemplate": { "repoName": "t-two" },
        "clusterTemplate": { "facts": { "own": "1" }, "enableCompilePipeline": false },
    });
    land.tenant("t-two", spec).await;
    land.settle().await;
    let tenant: Tenant = land.get("t-two").await;
    assert_eq!(
        tenant.annotations()["lieutenant.syn.tools/tenant-template"],
        "default"
    );
    let spec = serde_json::to_value(&tenant.spec).unwrap();
    assert_eq!(spec["displayName"], "from default");
    assert_eq!(spec["globalGitRepoURL"], global);
    assert_eq!(spec["deletionPolicy"], "Delete");
    assert_eq!(spec["gitRepoTemplate"]["path"], json!(land.group));
    assert_eq!(spec["gitRepoTemplate"]["deletionPolicy"], "Delete");
    assert_eq!(
        spec["clusterTemplate"]["facts"],
        json!({ "own": "1", "ttfact": "yes" })
    );
    // `false` is an answer.
    assert_eq!(spec["clusterTemplate"]["enableCompilePipeline"], false);
    assert!(land.project("t-two").await.is_some());
    // As ever, what was filled in once does not follow the template.
    land.template(json!({ "displayName": "another", "gitRepoTemplate": { "path": "elsewhere" } }))
        .await;
    land.settle().await;
    let tenant: Tenant = land.get("t-two").await;
    assert_eq!(tenant.spec.display_name.as_deref(), Some("from default"));
    assert_eq!(tenant.spec.global_git_repo_url.as_deref(), Some(global));
}
