//! Tenants and clusters that are deleted (§3.10, B1 to B4, B8 to B10; the recorded steps 12 to 15).

use evenkeel_operator::TenancySettings;
use evenkeel_operator::resources::{Cluster, ConditionStatus, GitRepo, Tenant};
use evenkeel_testkit::{CallFault, eventually};
use k8s_openapi::api::events::v1::Event;
use serde_json::json;

use super::Land;
use super::land::assert_condition;

#[tokio::test]
async fn what_vault_keeps_of_a_cluster_goes_as_the_cluster_says() {
    let land = Land::new().await;
    land.tenant("t-one", json!({})).await;
    for (name, policy) in [("c-d", "Delete"), ("c-a", "Archive"), ("c-r", "Retain")] {
        land.cluster(name, json!({ "deletionPolicy": policy })).await;
    }
    land.settle().await;
    for name in ["c-d", "c-a", "c-r"] {
        assert!(land.secret("t-one", name).await.is_some(), "{name}");
        land.delete::<Cluster>(name).await;
    }
    land.settle().await;
    for name in ["c-d", "c-a", "c-r"] {
        assert!(
            land.api::<Cluster>().get_opt(name).await.unwrap().is_none(),
            "{name}"
        );
    }
    assert!(land.secret("t-one", "c-d").await.is_none());
    assert!(land.secret("t-one", "c-a").await.is_none());
    assert!(land.secret("t-one", "c-r").await.is_some());
    // Their repositories follow, with the policy that reached them.
    eventually("the GitRepos go", async || {
        land.round().await;
        let left = land
            .api::<GitRepo>()
            .list(&Default::default())
            .await
            .unwrap()
            .items
            .len();
        if left == 1 { Ok(()) } else { Err(left) }
    })
    .await;
    assert!(land.project("c-d").await.is_none());
    assert!(land.project("c-a").await.unwrap().is_archived);
    assert!(!land.project("c-r").await.unwrap().is_archived);
}

/// Step 13: a protected cluster loses nothing.
#[tokio::test]
async fn a_protected_cluster_keeps_its_secret_and_its_finalizers() {
    let land = Land::with(TenancySettings {
        protect: true,
        ..TenancySettings::default()
    })
    .await;
    land.tenant("t-one", json!({})).await;
    land.cluster("c-one", json!({})).await;
    land.settle().await;
    land.delete::<Cluster>("c-one").await;
    land.settle().await;
    let cluster: Cluster = land.get("c-one").await;
    assert_eq!(cluster.metadata.finalizers.unwrap().len(), 2);
    assert_condition(
        &cluster.status.unwrap().conditions,
        "DeletionBlocked",
        ConditionStatus::True,
        "it is protected",
    );
    assert!(land.secret("t-one", "c-one").await.is_some());
    land.annotate::<Cluster>("c-one", "syn.tools/protected-delete", "false")
        .await;
    land.settle().await;
    assert!(land.api::<Cluster>().get_opt("c-one").await.unwrap().is_none());
    assert!(land.secret("t-one", "c-one").await.is_none());
    // Its repository is protected by itself, and says so.
    eventually("the GitRepo says why it stays", async || {
        land.round().await;
        let status = land.get::<GitRepo>("c-one").await.status.unwrap_or_default();
        let says = status.conditions.iter().any(|condition| {
            condition.kind == "DeletionBlocked" && condition.status == ConditionStatus::True
        });
        if says { Ok(()) } else { Err(status.conditions) }
    })
    .await;
    assert!(!land.project("c-one").await.unwrap().is_archived);
}

/// B2, B3: no cluster is stranded.
#[tokio::test]
async fn a_tenant_waits_for_its_clusters_and_a_cluster_needs_no_tenant_to_go() {
    let land = Land::new().await;
    land.tenant("t-one", json!({})).await;
    land.cluster("c-one", json!({})).await;
    land.settle().await;
    land.delete::<Tenant>("t-one").await;
    land.settle().await;
    let tenant: Tenant = land.get("t-one").await;
    assert_condition(
        &tenant.status.unwrap().conditions,
        "DeletionBlocked",
        ConditionStatus::True,
        "it has clusters: delete c-one first",
    );
    assert!(!land.project("t-one").await.unwrap().is_archived);
    land.delete::<Cluster>("c-one").await;
    land.settle().await;
    assert!(land.api::<Cluster>().get_opt("c-one").await.unwrap().is_none());
    land.settle().await;
    assert!(land.api::<Tenant>().get_opt("t-one").await.unwrap().is_none());
    // A tenant that is gone without having been asked.
    land.cluster("c-alone", json!({ "tenantRef": { "name": "t-gone" } }))
        .await;
    land.settle().await;
    land.delete::<Cluster>("c-alone").await;
    land.settle().await;
    assert!(land.api::<Cluster>().get_opt("c-alone").await.unwrap().is_none());
}

/// E9: a Vault that is gone for good keeps no object for ever, if somebody says so.
#[tokio::test]
async fn a_cluster_goes_without_vault_only_when_it_is_told_to() {
    let land = Land::new().await;
    land.tenant("t-one", json!({})).await;
    land.cluster("c-one", json!({ "deletionPolicy": "Delete" })).await;
    land.settle().await;
    land.vault_proxy.fail_all(Some(CallFault::InternalError));
    land.delete::<Cluster>("c-one").await;
    for _ in 0..5 {
        land.clusters.pass(&land.namespace, "c-one").await.unwrap();
    }
    let cluster: Cluster = land.get("c-one").await;
    assert_condition(
        &cluster.status.unwrap().conditions,
        "DeletionBlocked",
        ConditionStatus::True,
        "vault-removal",
    );
    land.annotate::<Cluster>("c-one", "evenkeel.dev/orphan", "true")
        .await;
    land.clusters.pass(&land.namespace, "c-one").await.unwrap();
    assert!(land.api::<Cluster>().get_opt("c-one").await.unwrap().is_none());
    land.vault_proxy.fail_all(None);
    assert!(land.secret("t-one", "c-one").await.is_some());
    eventually("it is told as an event", async || {
        let events = land.api::<Event>().list(&Default::default()).await.unwrap().items;
        let told = events
            .iter()
            .any(|event| event.reason.as_deref() == Some("Orphaned"));
        if told { Ok(()) } else { Err(events.len()) }
    })
    .await;
}
