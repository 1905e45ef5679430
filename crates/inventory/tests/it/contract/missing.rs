//! K7, K44: an operation whose dependency is missing at the cluster waits with a deadline, is tried again when another
//! operation of its run has succeeded, or when somebody looks again, and pays no attempt for it.

use evenkeel_core::{OperationState, OperationStateKind};
use evenkeel_inventory::{ClaimedOperation, Signal};

use crate::fixture::*;

/// Claims two operations, those of `web` and of `kinds`.
async fn both<B: Backend>(fleet: &Fleet<B>) -> (ClaimedOperation, ClaimedOperation) {
    let id = fleet.cluster("c1", &["web", "kinds"]).await;
    let plan = fleet.plan(&id, &[("web", &[]), ("kinds", &[])]).await;
    fleet.store.begin_reconciliation(plan).await.unwrap();
    let mut claims = fleet.claims(8).await.operations;
    claims.sort_by(|a, b| b.component.cmp(&a.component));
    let kinds = claims.pop().unwrap();
    (claims.pop().unwrap(), kinds)
}

/// Reports that `claimed` misses something, and waits for it for `seconds`.
async fn misses<B: Backend>(fleet: &Fleet<B>, claimed: &ClaimedOperation, seconds: i64) -> OperationState {
    let waiting = OperationState::Waiting {
        reason: "a dependency that is missing: kind Widget".to_owned(),
        deadline: fleet.after(seconds),
    };
    let reported = fleet.store.report_missing(report(claimed, waiting.clone())).await;
    assert_eq!(reported.unwrap().state, OperationStateKind::Waiting);
    waiting
}

pub(crate) async fn what_is_missing_is_looked_for_when_another_succeeds<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let (web, kinds) = both(&fleet).await;
    let waiting = misses(&fleet, &web, 600).await;
    let shown = fleet.store.components(&web.cluster).await.unwrap().items;
    let shown = shown.iter().find(|item| item.component == web.component).unwrap();
    assert_eq!(shown.operation.as_ref().unwrap().state, waiting);
    assert!(fleet.claims(8).await.operations.is_empty());

    let mut ready = fleet.store.signals().subscribe(Signal::OperationReady);
    fleet.succeed(&kinds).await;
    assert!(ready.changed().await);
    let again = fleet.claim_one().await;
    assert_eq!((&again.id, again.attempt), (&web.id, 1));
    // Once more, and now nobody is left to bring it.
    misses(&fleet, &again, 600).await;
    assert!(fleet.claims(8).await.operations.is_empty());
    assert_eq!(fleet.store.recheck_missing(10).await.unwrap(), 1);
    assert_eq!(fleet.store.recheck_missing(10).await.unwrap(), 0);
    let again = fleet.claim_one().await;
    assert_eq!(again.attempt, 1);
    assert_eq!(fleet.succeed(&again).await.open, 0);
}

pub(crate) async fn a_failure_brings_nothing<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let (web, kinds) = both(&fleet).await;
    misses(&fleet, &web, 600).await;
    fleet.report(&kinds, failed("no luck")).await;
    assert!(fleet.claims(8).await.operations.is_empty());
    fleet.advance(600);
    let settled = fleet.claims(8).await.settled;
    assert_eq!(
        (&settled[0].operation, settled[0].state),
        (&web.id, OperationStateKind::Failed)
    );
    let reason = fleet.store.operation(&web.id).await.unwrap().state;
    assert!(reason.reason().unwrap().contains("kind Widget"), "{reason:?}");
}

pub(crate) async fn who_waits_for_an_answer_is_left_alone<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let (web, kinds) = both(&fleet).await;
    let waiting = OperationState::Waiting {
        reason: "consent".to_owned(),
        deadline: fleet.after(600),
    };
    fleet.report(&web, waiting).await;
    fleet.succeed(&kinds).await;
    assert_eq!(fleet.store.recheck_missing(10).await.unwrap(), 0);
    assert!(fleet.claims(8).await.operations.is_empty());
}

pub(crate) async fn the_next_run_may_bring_it<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let (web, _kinds) = both(&fleet).await;
    misses(&fleet, &web, 600).await;
    fleet.put(spec("c1", &["web", "kinds", "more"])).await;
    let mut next = fleet.plan(&web.cluster, &[("more", &[]), ("web", &[])]).await;
    next.supersede = true;
    next.operations[1].carries = Some(web.id.clone());
    let begun = fleet.store.begin_reconciliation(next).await.unwrap();
    assert_eq!(begun.operations[1], web.id);
    let more = fleet.claim_one().await;
    assert_eq!(more.component.as_str(), "more");
    fleet.succeed(&more).await;
    let again = fleet.claim_one().await;
    assert_eq!((&again.id, &again.reconciliation), (&web.id, &begun.id));
}
