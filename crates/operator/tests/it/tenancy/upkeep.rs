//! What others did to a cluster and to what belongs to it (B6, B22, B32, L24).

use evenkeel_operator::resources::{Cluster, ConditionStatus, GitRepo, Tenant};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::Land;
use super::land::assert_condition;

/// B6: of one pass both specification and status are stored, and the first bootstrap token is the only one.
#[tokio::test]
async fn specification_and_status_of_one_pass_are_both_stored() {
    let land = Land::new().await;
    land.tenant("t-one", json!({})).await;
    land.settle().await;
    land.cluster("c-one", json!({})).await;
    land.clusters.pass(&land.namespace, "c-one").await.unwrap();
    let first: Cluster = land.get("c-one").await;
    assert_eq!(first.spec.facts["from"], "template");
    let token = |cluster: Cluster| cluster.status.unwrap().bootstrap_token.unwrap().token;
    let made = token(first).unwrap();
    land.settle().await;
    let kept = token(land.get("c-one").await).unwrap();
    assert_eq!(kept.expose(), made.expose());
}

/// B22: owners that somebody else gave stay, and the tenant is appended.
#[tokio::test]
async fn owners_that_others_gave_a_cluster_stay() {
    let land = Land::new().await;
    land.tenant("t-one", json!({})).await;
    land.cluster("c-one", json!({})).await;
    let secret: Secret = land.get("git").await;
    let theirs = json!({ "apiVersion": "v1", "kind": "Secret", "name": "git", "uid": secret.uid() });
    let owners = json!({ "metadata": { "ownerReferences": [theirs] } });
    land.api::<Cluster>()
        .patch("c-one", &PatchParams::default(), &Patch::Merge(&owners))
        .await
        .unwrap();
    land.settle().await;
    let cluster: Cluster = land.get("c-one").await;
    let owners: Vec<_> = cluster
        .owner_references()
        .iter()
        .map(|owner| (owner.kind.as_str(), owner.controller))
        .collect();
    assert_eq!(owners, [("Secret", None), ("Tenant", Some(true))]);
}

/// B32: rights are as they should be, and what somebody changed in them comes back.
#[tokio::test]
async fn rights_of_a_cluster_that_somebody_changed_come_back() {
    let land = Land::new().await;
    land.tenant("t-one", json!({})).await;
    land.cluster("c-one", json!({})).await;
    land.settle().await;
    let (role, binding): (Role, RoleBinding) = (land.get("c-one").await, land.get("c-one").await);
    let params = PatchParams::default();
    let nothing = json!({ "rules": [] });
    land.api::<Role>()
        .patch("c-one", &params, &Patch::Merge(&nothing))
        .await
        .unwrap();
    let nobody =
        json!({ "subjects": [{ "kind": "ServiceAccount", "name": "nobody", "namespace": "default" }] });
    land.api::<RoleBinding>()
        .patch("c-one", &params, &Patch::Merge(&nobody))
        .await
        .unwrap();
    land.settle().await;
    assert_eq!(land.get::<Role>("c-one").await.rules, role.rules);
    assert_eq!(land.get::<RoleBinding>("c-one").await.subjects, binding.subjects);
}

/// L24: claiming, protection and release are steps of every kind.
#[tokio::test]
async fn what_all_kinds_have_in_common_is_in_the_pipeline_of_each() {
    let land = Land::new().await;
    land.tenant("t-one", json!({})).await;
    land.cluster("c-one", json!({})).await;
    land.settle().await;
    let passes = async || {
        [
            land.tenants
                .pass(&land.namespace, "t-one")
                .await
                .unwrap()
                .timeline,
            land.clusters
                .pass(&land.namespace, "c-one")
                .await
                .unwrap()
                .timeline,
            land.repos.pass(&land.namespace, "c-one").await.unwrap().timeline,
        ]
    };
    for timeline in passes().await {
        assert!(timeline.contains("claim"), "{timeline}");
    }
    for finalizers in [
        land.get::<Tenant>("t-one").await.metadata.finalizers,
        land.get::<Cluster>("c-one").await.metadata.finalizers,
        land.get::<GitRepo>("c-one").await.metadata.finalizers,
    ] {
        assert_eq!(finalizers.unwrap()[0], "cluster.lieutenant.syn.tools");
    }
}

/// B1: a protected cluster whose deletion was asked for stays in its tenant's repository.
#[tokio::test]
async fn a_protected_cluster_keeps_its_file_in_the_tenants_repository() {
    let land = Land::new().await;
    land.tenant("t-one", json!({})).await;
    land.cluster("c-one", json!({})).await;
    land.annotate::<Cluster>("c-one", "syn.tools/protected-delete", "true")
        .await;
    land.settle().await;
    land.delete::<Cluster>("c-one").await;
    land.settle().await;
    let conditions = land.get::<Cluster>("c-one").await.status.unwrap().conditions;
    assert_condition(
        &conditions,
        "DeletionBlocked",
        ConditionStatus::True,
        "it is protected",
    );
    let files = async || {
        let project = land.project("t-one").await.unwrap();
        land.host().files(&project).await.unwrap()
    };
    assert!(files().await.contains_key(&crate::git::file("c-one.yml")));
    land.annotate::<Cluster>("c-one", "syn.tools/protected-delete", "false")
        .await;
    land.settle().await;
    assert!(!files().await.contains_key(&crate::git::file("c-one.yml")));
}
