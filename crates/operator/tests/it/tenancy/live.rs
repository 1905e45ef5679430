//! All controllers as they run: what happens reaches whom it concerns at once (L31, L32).

use std::time::Duration;

use evenkeel_operator::resources::{Cluster, ConditionStatus, Tenant};
use evenkeel_telemetry::Tasks;
use evenkeel_testkit::eventually;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::Land;
use crate::git::file;

#[tokio::test(flavor = "multi_thread")]
async fn a_new_cluster_reaches_its_tenants_repository_by_events_alone() {
    let land = Land::new().await;
    let tasks = Tasks::new();
    land.run(&tasks);
    // The cluster first: it waits for its tenant.
    land.cluster("c-one", json!({})).await;
    land.tenant("t-one", json!({})).await;
    let has_file = async |name: &str| {
        eventually("the file of the cluster", async || {
            let Some(project) = land.project("t-one").await else {
                return Err("no repository".to_owned());
            };
            let files = land.host().files(&project).await.unwrap();
            if files.contains_key(&file(name)) {
                Ok(())
            } else {
                Err(format!("{:?}", files.keys()))
            }
        })
        .await;
    };
    has_file("c-one.yml").await;
    land.cluster("c-two", json!({})).await;
    has_file("c-two.yml").await;
    eventually("all is ready", async || {
        let mut unready = Vec::new();
        for name in ["c-one", "c-two"] {
            let cluster: Cluster = land.get(name).await;
            let conditions = cluster.status.unwrap_or_default().conditions;
            let is_ready = conditions
                .iter()
                .any(|condition| condition.kind == "Ready" && condition.status == ConditionStatus::True);
            if !is_ready || cluster.spec.git_repo_url.is_none() || land.secret("t-one", name).await.is_none()
            {
                unready.push((name, conditions));
            }
        }
        if unready.is_empty() { Ok(()) } else { Err(unready) }
    })
    .await;
    land.delete::<Cluster>("c-one").await;
    land.delete::<Cluster>("c-two").await;
    land.delete::<Tenant>("t-one").await;
    eventually("the tenant goes", async || {
        let left = land.api::<Tenant>().get_opt("t-one").await.unwrap();
        left.map_or(Ok(()), |tenant| Err(tenant.status))
    })
    .await;
    let ended = tasks.shutdown(Duration::from_secs(20)).await;
    assert!(ended.aborted.is_empty(), "{ended:?}");
}

/// Passes over a tenant or a cluster so far: each reads its RoleBinding once.
fn looks(land: &Land, name: &str) -> usize {
    let end = format!("/rolebindings/{name}");
    let calls = land.kubernetes.passed();
    calls
        .iter()
        .filter(|call| call.starts_with("GET ") && call.ends_with(&end))
        .count()
}

/// Lists and watches of all clusters so far.
fn lists(land: &Land) -> usize {
    let calls = land.kubernetes.passed();
    calls.iter().filter(|call| call.ends_with("/clusters")).count()
}

/// Waits until the controllers have nothing more to do.
async fn rest(land: &Land) {
    const LOOKS: usize = 10;
    let (mut before, mut calm) = (0, 0);
    eventually("nothing happens any more", async || {
        let requests = land.kubernetes.requests();
        calm = if requests == before { calm + 1 } else { 0 };
        before = requests;
        if calm >= LOOKS { Ok(()) } else { Err(requests) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_reads_is_no_reason_to_look_and_nobody_lists_all_clusters() {
    let land = Land::new().await;
    let tasks = Tasks::new();
    land.tenant("t-one", json!({})).await;
    for name in ["c-one", "c-two"] {
        land.cluster(name, json!({})).await;
    }
    land.run(&tasks);
    eventually("the clusters have their addresses", async || {
        let mut missing = Vec::new();
        for name in ["c-one", "c-two"] {
            let cluster: Cluster = land.get(name).await;
            missing.extend(cluster.spec.git_repo_url.is_none().then_some(name));
        }
        if missing.is_empty() { Ok(()) } else { Err(missing) }
    })
    .await;
    rest(&land).await;
    let (tenant, other, listed) = (looks(&land, "t-one"), looks(&land, "c-two"), lists(&land));
    // An agent tells what it found out: its cluster's templates may read that, and nobody else does.
    for number in 0..5 {
        let own = looks(&land, "c-one");
        let facts = json!({ "status": { "facts": { "nodes": number.to_string() } } });
        let params = PatchParams::default();
        let clusters = land.api::<Cluster>();
        clusters
            .patch_status("c-one", &params, &Patch::Merge(&facts))
            .await
            .unwrap();
        eventually("a look at the cluster", async || {
            let now = looks(&land, "c-one");
            if now > own { Ok(()) } else { Err(now) }
        })
        .await;
    }
    rest(&land).await;
    assert_eq!(looks(&land, "t-one"), tenant);
    // What the tenant's status says is nobody's business but its own.
    let status = json!({ "status": { "compilePipeline": { "clusters": ["somebody"] } } });
    let tenants = land.api::<Tenant>();
    tenants
        .patch_status("t-one", &PatchParams::default(), &Patch::Merge(&status))
        .await
        .unwrap();
    rest(&land).await;
    assert_eq!(looks(&land, "c-two"), other);
    // A new cluster is its tenant's business, and found without a list of all.
    land.cluster("c-three", json!({})).await;
    eventually("a look at the tenant", async || {
        let now = looks(&land, "t-one");
        if now > tenant { Ok(()) } else { Err(now) }
    })
    .await;
    rest(&land).await;
    let project = land.project("t-one").await.unwrap();
    let files = land.host().files(&project).await.unwrap();
    assert!(files.contains_key(&file("c-three.yml")), "{:?}", files.keys());
    assert_eq!(lists(&land), listed);
    let ended = tasks.shutdown(Duration::from_secs(20)).await;
    assert!(ended.aborted.is_empty(), "{ended:?}");
}
