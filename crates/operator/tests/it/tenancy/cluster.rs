//! A cluster and what belongs to it (§3.3, §3.6).

use evenkeel_operator::resources::{Cluster, ConditionStatus, GitRepo, Tenant};
use evenkeel_testkit::CallFault;
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::Land;
use super::land::assert_condition;
use crate::git::file;

#[tokio::test]
async fn a_cluster_gets_all_that_belongs_to_it_and_the_second_round_writes_nothing() {
    let land = Land::new().await;
    land.tenant("t-one", json!({})).await;
    land.cluster("c-one", json!({ "tokenLifeTime": "4h" })).await;
    land.settle().await;

    let cluster: Cluster = land.get("c-one").await;
    assert_eq!(
        cluster.finalizers(),
        [
            "cluster.lieutenant.syn.tools",
            "cluster.lieutenant.syn.tools/pipelines"
        ]
    );
    assert_eq!(cluster.labels()["syn.tools/tenant"], "t-one");
    let owner = &cluster.owner_references()[0];
    assert_eq!(
        (owner.kind.as_str(), owner.name.as_str(), owner.controller),
        ("Tenant", "t-one", Some(true))
    );
    let spec = &cluster.spec;
    assert_eq!(spec.facts["from"], "template");
    assert!(spec.facts["created"].ends_with(" +0000 UTC"), "{:?}", spec.facts);
    assert_eq!(spec.facts["cloud"], "exo");
    let repo: GitRepo = land.get("c-one").await;
    assert_eq!(spec.git_repo_url, repo.status.as_ref().unwrap().url);
    assert_eq!(
        spec.git_host_keys.as_deref(),
        Some("git.example.org ssh-ed25519 KEY")
    );
    let template = serde_json::to_value(spec.git_repo_template.as_ref().unwrap()).unwrap();
    assert_eq!(template, serde_json::to_value(&repo.spec.template).unwrap());
    assert_eq!(template["displayName"], "A Cluster");
    assert_eq!(
        (&template["deletionPolicy"], &template["repoType"]),
        (&json!("Archive"), &json!("auto"))
    );
    let status = cluster.status.clone().unwrap();
    for kind in [
        "Ready",
        "RbacReady",
        "RepoReady",
        "TemplateRendered",
        "Validated",
        "VaultReady",
    ] {
        assert_condition(&status.conditions, kind, ConditionStatus::True, "");
    }
    assert_eq!(status.observed_generation, cluster.metadata.generation);
    assert!(status.compile_meta.is_some());
    let token = status.bootstrap_token.unwrap();
    assert_eq!(token.token_valid, Some(true));
    assert_eq!(token.token.unwrap().expose().len(), 24);

    let _: ServiceAccount = land.get("c-one").await;
    let role: Role = land.get("c-one").await;
    let rule = &role.rules.unwrap()[0];
    assert_eq!(
        rule.resources.as_deref().unwrap(),
        ["clusters", "clusters/status"]
    );
    assert_eq!(rule.resource_names.as_deref().unwrap(), ["c-one"]);
    assert_eq!(rule.verbs, ["get", "update", "patch"]);
    let binding: RoleBinding = land.get("c-one").await;
    assert_eq!(binding.role_ref.name, "c-one");
    let secret: Secret = land.get("c-one").await;
    let token = String::from_utf8(secret.data.unwrap()["token"].0.clone()).unwrap();
    assert_eq!(land.secret("t-one", "c-one").await, Some(token));
    assert!(land.project("c-one").await.is_some());
    let project = land.project("t-one").await.unwrap();
    let files = land.host().files(&project).await.unwrap();
    assert!(files.contains_key(&file("c-one.yml")) && files.contains_key(&file("common.yml")));

    // L25, by managedFields: no controller but its own wrote the cluster.
    let ours = ["test", "evenkeel-cluster"];
    for entry in cluster.metadata.managed_fields.unwrap() {
        assert!(ours.contains(&entry.manager.as_deref().unwrap()), "{entry:?}");
    }
    let tenant: Tenant = land.get("t-one").await;
    for entry in tenant.metadata.managed_fields.unwrap() {
        assert!(
            ["test", "evenkeel-tenant"].contains(&entry.manager.as_deref().unwrap()),
            "{entry:?}"
        );
    }
}

/// B7, B21: what cannot be done holds nothing else up, and is told.
#[tokio::test]
async fn a_broken_template_or_a_missing_tenant_holds_up_only_what_needs_it() {
    let land = Land::new().await;
    let template = json!({ "facts": { "good": "{{ .Name }}", "bad": "{{ .Nothing }}" } });
    land.tenant("t-one", json!({ "clusterTemplate": template })).await;
    land.cluster("c-one", json!({})).await;
    land.cluster("c-two", json!({ "tenantRef": { "name": "t-missing" } }))
        .await;
    land.cluster("c-own", json!({ "facts": { "bad": "given" } }))
        .await;
    land.settle().await;
    let status = land.get::<Cluster>("c-one").await.status.unwrap();
    assert_condition(
        &status.conditions,
        "TemplateRendered",
        ConditionStatus::False,
        "spec.clusterTemplate.facts.bad",
    );
    assert_condition(&status.conditions, "RbacReady", ConditionStatus::True, "");
    assert_condition(&status.conditions, "VaultReady", ConditionStatus::True, "");
    assert_condition(&status.conditions, "Ready", ConditionStatus::False, "facts.bad");
    assert_eq!(land.get::<Cluster>("c-one").await.spec.facts["good"], "c-one");
    let status = land.get::<Cluster>("c-two").await.status.unwrap();
    assert_condition(
        &status.conditions,
        "Validated",
        ConditionStatus::False,
        "there is no Tenant t-missing",
    );
    assert!(status.bootstrap_token.is_some());
    // What a cluster says itself needs no template.
    let status = land.get::<Cluster>("c-own").await.status.unwrap();
    assert_condition(&status.conditions, "TemplateRendered", ConditionStatus::True, "");
}

/// B7: a Vault that is down keeps no repository from being made.
#[tokio::test]
async fn a_vault_that_is_down_keeps_no_repository_from_being_made() {
    let land = Land::new().await;
    land.tenant("t-one", json!({})).await;
    land.cluster("c-one", json!({})).await;
    for _ in 0..2 {
        land.round().await;
    }
    land.vault_proxy.fail(0, CallFault::InternalError);
    land.round().await;
    assert!(land.project("c-one").await.is_some());
    land.vault_proxy.heal();
    land.settle().await;
    assert!(land.secret("t-one", "c-one").await.is_some());
}

/// §3.3: made once, ended at its moment; what its user says of it stands.
#[tokio::test]
async fn the_bootstrap_token_ends_at_its_moment_and_a_used_one_stays_used() {
    let land = Land::new().await;
    land.tenant("t-one", json!({})).await;
    land.cluster("c-one", json!({ "tokenLifeTime": "1h" })).await;
    land.cluster("c-used", json!({})).await;
    land.cluster("c-bad", json!({ "tokenLifeTime": "soon" })).await;
    land.settle().await;
    let token = async |name: &str| {
        land.get::<Cluster>(name)
            .await
            .status
            .unwrap()
            .bootstrap_token
            .unwrap()
    };
    let first = token("c-one").await;
    let due = land
        .clusters
        .pass(&land.namespace, "c-one")
        .await
        .unwrap()
        .due
        .unwrap();
    assert_eq!(Some(due.at), first.valid_until, "{due:?}");
    // Lieutenant's API has handed it out.
    let used = json!({ "status": { "bootstrapToken": { "tokenValid": false } } });
    let params = PatchParams::default();
    land.api::<Cluster>()
        .patch_status("c-used", &params, &Patch::Merge(&used))
        .await
        .unwrap();
    land.clock.advance(SignedDuration::from_mins(61));
    land.settle().await;
    let ended = token("c-one").await;
    assert_eq!((ended.token, ended.token_valid), (first.token, Some(false)));
    assert_eq!(token("c-used").await.token_valid, Some(false));
    let status = land.get::<Cluster>("c-bad").await.status.unwrap();
    assert!(status.bootstrap_token.is_none());
    assert_condition(
        &status.conditions,
        "BootstrapTokenReady",
        ConditionStatus::False,
        "\"soon\" is no duration",
    );
    // Whoever takes it away gets a new one.
    let reset = json!({ "status": { "bootstrapToken": null } });
    land.api::<Cluster>()
        .patch_status("c-used", &params, &Patch::Merge(&reset))
        .await
        .unwrap();
    land.settle().await;
    assert_eq!(token("c-used").await.token_valid, Some(true));
}

/// A5, B20: somebody else looks after the repository.
#[tokio::test]
async fn the_address_of_an_unmanaged_repository_stays_as_it_is() {
    let land = Land::new().await;
    land.tenant("t-one", json!({ "clusterTemplate": {} })).await;
    let url = "ssh://git@elsewhere/x.git";
    land.cluster(
        "c-free",
        json!({ "gitRepoURL": url, "gitRepoTemplate": { "repoType": "unmanaged" } }),
    )
    .await;
    land.cluster("c-bare", json!({ "gitRepoURL": url })).await;
    land.settle().await;
    for name in ["c-free", "c-bare"] {
        let cluster: Cluster = land.get(name).await;
        assert_eq!(cluster.spec.git_repo_url.as_deref(), Some(url), "{name}");
        let conditions = cluster.status.unwrap().conditions;
        assert_condition(&conditions, "Ready", ConditionStatus::True, "");
        assert!(land.project(name).await.is_none());
    }
    assert!(land.api::<GitRepo>().get_opt("c-bare").await.unwrap().is_none());
}

/// B23: a GitRepo of somebody else that has the name is not taken.
#[tokio::test]
async fn a_repository_of_another_owner_is_not_taken() {
    let land = Land::new().await;
    land.tenant("t-one", json!({})).await;
    land.settle().await;
    land.tenant("c-same", json!({})).await;
    land.settle().await;
    let before: GitRepo = land.get("c-same").await;
    land.cluster("c-same", json!({})).await;
    land.settle().await;
    let status = land.get::<Cluster>("c-same").await.status.unwrap();
    assert_condition(
        &status.conditions,
        "RepoReady",
        ConditionStatus::False,
        "belongs to another object",
    );
    assert_eq!(land.get::<GitRepo>("c-same").await.spec, before.spec);
}
