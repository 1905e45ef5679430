//! All controllers as they run: what happens reaches whom it concerns at once (L31, L32).

use std::time::Duration;

use evenkeel_operator::resources::{Cluster, ConditionStatus, Tenant};
use evenkeel_telemetry::Tasks;
use evenkeel_testkit::eventually;
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
