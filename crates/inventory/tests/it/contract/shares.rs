//! Who gets how much of the queue (K30): limits over all processes, turns between tenants, and what a person asked for.

use std::collections::BTreeMap;

use evenkeel_core::{ClusterId, DueReason, OperationStateKind};
use evenkeel_inventory::{Asked, ClaimLimits, ClaimedOperation};

use crate::fixture::*;

/// A cluster of a tenant with one run over its components.
async fn with_run<B: Backend>(fleet: &Fleet<B>, name: &str, tenant: &str, components: &[&str]) -> ClusterId {
    let mut spec = spec(name, components);
    spec.tenant = (!tenant.is_empty()).then(|| tenant.to_owned());
    let id = fleet.put(spec).await.id;
    let operations: Vec<(&str, &[usize])> =
        components.iter().map(|component| (*component, &[][..])).collect();
    let plan = fleet.plan(&id, &operations).await;
    fleet.store.begin_reconciliation(plan).await.unwrap();
    id
}

async fn claim_within<B: Backend>(fleet: &Fleet<B>, most: u32, limits: ClaimLimits) -> Vec<ClaimedOperation> {
    fleet
        .store
        .claim_within(&claim(most), &limits)
        .await
        .unwrap()
        .operations
}

fn by_cluster(claimed: &[ClaimedOperation]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for operation in claimed {
        *counts.entry(operation.cluster.to_string()).or_insert(0) += 1;
    }
    counts
}

pub(crate) async fn limits_hold_over_all_claims<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let total = ClaimLimits {
        total: Some(3),
        ..ClaimLimits::default()
    };
    with_run(&fleet, "c1", "a", &["web", "db", "x", "y", "z"]).await;
    let first = claim_within(&fleet, 2, total).await;
    assert_eq!(first.len(), 2);
    assert_eq!(claim_within(&fleet, 8, total).await.len(), 1);
    assert!(claim_within(&fleet, 8, total).await.is_empty(), "three run");
    fleet.succeed(&first[0]).await;
    let next = claim_within(&fleet, 8, total).await;
    assert_eq!(next.len(), 1);
    assert!(next[0].lease.fence.0 > 0);
    assert_eq!(
        fleet.claims(8).await.operations.len(),
        1,
        "who sets no limit has none"
    );
}

pub(crate) async fn a_tenant_with_its_share_is_passed_over<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let limits = ClaimLimits {
        per_tenant: Some(2),
        ..ClaimLimits::default()
    };
    let a = with_run(&fleet, "c1", "a", &["web", "db", "x", "y"]).await;
    let b = with_run(&fleet, "c2", "b", &["web"]).await;
    let nobody = with_run(&fleet, "c3", "", &["web", "db", "x"]).await;
    let claimed = claim_within(&fleet, 16, limits).await;
    let expected = BTreeMap::from([(a.to_string(), 2), (b.to_string(), 1), (nobody.to_string(), 2)]);
    assert_eq!(by_cluster(&claimed), expected);
    assert!(claim_within(&fleet, 16, limits).await.is_empty());
    let of_a = claimed.iter().find(|operation| operation.cluster == a).unwrap();
    fleet.succeed(of_a).await;
    let next = claim_within(&fleet, 16, limits).await;
    assert_eq!(by_cluster(&next), BTreeMap::from([(a.to_string(), 1)]));
}

pub(crate) async fn a_component_with_its_share_is_passed_over<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let limits = ClaimLimits {
        per_component: Some(1),
        ..ClaimLimits::default()
    };
    for name in ["c1", "c2", "c3"] {
        with_run(&fleet, name, "a", &["web", "db"]).await;
    }
    let claimed = claim_within(&fleet, 16, limits).await;
    let components: Vec<_> = claimed
        .iter()
        .map(|operation| operation.component.to_string())
        .collect();
    assert_eq!(components.len(), 2, "{components:?}");
    assert_ne!(components[0], components[1]);
    fleet.succeed(&claimed[0]).await;
    let next = claim_within(&fleet, 16, limits).await;
    assert_eq!(next.len(), 1);
    assert_eq!(next[0].component, claimed[0].component);
}

pub(crate) async fn tenants_take_turns_in_the_queue<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let names: Vec<String> = (0..50).map(|number| format!("component-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    with_run(&fleet, "c1", "greedy", &names).await;
    let modest = with_run(&fleet, "c2", "modest", &["web"]).await;
    // Both at the same moment; the one that asks for little does not wait for the one that asks for much.
    let claimed = fleet.claims(2).await.operations;
    assert!(
        claimed.iter().any(|operation| operation.cluster == modest),
        "{claimed:?}"
    );
    // What a tenant asked for earlier still comes first, and all of it comes.
    assert_eq!(fleet.claims(256).await.operations.len(), 49);
}

pub(crate) async fn what_was_asked_is_kept_until_it_is_acted_upon<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let store = &fleet.store;
    let id = fleet.cluster("c1", &["web"]).await;
    let web = Asked {
        force: false,
        components: ["web".parse().unwrap()].into(),
    };
    let force = Asked {
        force: true,
        ..Asked::default()
    };
    store.ask(&id, web.clone()).await.unwrap();
    store.ask(&id, force).await.unwrap();
    store.ask(&id, Asked::default()).await.unwrap();
    let cluster = store.cluster(&id).await.unwrap();
    let both = Asked { force: true, ..web };
    assert_eq!(cluster.status.asked, both);
    let due = store.due_clusters(8).await.unwrap().due.remove(0);
    assert_eq!(due.reason, DueReason::Change);
    store
        .begin_reconciliation(fleet.plan(&id, &[("web", &[])]).await)
        .await
        .unwrap();
    assert!(store.cluster(&id).await.unwrap().status.asked.is_nothing());
    // What is asked while the run is under way is for the next one.
    store.ask(&id, both.clone()).await.unwrap();
    let web = fleet.claim_one().await;
    assert_eq!(fleet.succeed(&web).await.state, OperationStateKind::Succeeded);
    assert_eq!(store.cluster(&id).await.unwrap().status.asked, both);
    assert!(store.ask(&"nobody".parse().unwrap(), both).await.is_err());
}
