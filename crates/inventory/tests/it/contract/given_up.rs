//! What a run has given up stays given up: no check by interval, no drift and no look that began earlier takes it up again
//! with the same version as if it were new work. A change or a person does.

use std::collections::BTreeMap;

use evenkeel_core::{ClusterId, ClusterState, ConfigurationVersion, DueReason, ReconciliationState};
use evenkeel_inventory::{CheckNote, Due, DueCluster, DueStamp, Error, Finish, Recorded, StatusChange};

use crate::fixture::*;

/// A cluster of version 1 whose run fails component `web`, degraded meanwhile and so due for checks by interval; and its run.
async fn failing<B: Backend>(fleet: &Fleet<B>) -> (ClusterId, evenkeel_core::ReconciliationId) {
    let id = fleet.cluster("c1", &["web"]).await;
    let run = fleet
        .store
        .begin_reconciliation(fleet.plan(&id, &[("web", &[])]).await)
        .await
        .unwrap();
    let web = fleet.claim_one().await;
    let degraded = StatusChange {
        due: Due::At(fleet.after(60), DueReason::Periodic),
        ..StatusChange::new(ClusterState::Degraded, ConfigurationVersion(1))
    };
    fleet.store.record_status(&id, degraded).await.unwrap();
    fleet.report(&web, failed("no luck")).await;
    (id, run.id)
}

/// The end of a run that was the last one, as somebody says it who had read due time `stamp`.
fn given_up(stamp: Option<DueStamp>) -> Finish {
    let mut finish = finish(ReconciliationState::Failed, ClusterState::Failed, 1);
    finish.status.due = Due::Never;
    finish.status.stamp = stamp;
    finish.status.reason = Some("given up".to_owned());
    finish
}

async fn due<B: Backend>(fleet: &Fleet<B>) -> Vec<DueCluster> {
    fleet.store.due_clusters(10).await.unwrap().due
}

async fn state<B: Backend>(fleet: &Fleet<B>, id: &ClusterId) -> (ClusterState, bool) {
    let status = fleet.store.cluster(id).await.unwrap().status;
    (status.state, status.due.is_some())
}

pub(crate) async fn what_a_run_gives_up_no_check_takes_up<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let store = &fleet.store;
    let (id, run) = failing(&fleet).await;
    // A check by interval comes between what the end of the run is decided from, and the end.
    let read = store.cluster(&id).await.unwrap().status.stamp;
    fleet.advance(61);
    let look = due(&fleet).await.remove(0);
    let note = CheckNote {
        cluster: id.clone(),
        stamp: look.stamp,
        checked_at: fleet.now(),
        next_due_at: fleet.after(60),
    };
    store.note_checks(&[note]).await.unwrap();
    store
        .finish_reconciliation(&run, given_up(Some(read)))
        .await
        .unwrap();
    assert_eq!(state(&fleet, &id).await, (ClusterState::Failed, false));
    fleet.advance(86_400);
    assert!(due(&fleet).await.is_empty());

    // Nor does a look that had begun before.
    for change in [
        StatusChange {
            due: Due::At(fleet.after(60), DueReason::Periodic),
            stamp: Some(look.stamp),
            not_ready: Some(BTreeMap::new()),
            ..StatusChange::new(ClusterState::Ready, ConfigurationVersion(1))
        },
        StatusChange {
            due: Due::At(fleet.after(5), DueReason::Retry),
            stamp: Some(look.stamp),
            ..StatusChange::new(ClusterState::Degraded, ConfigurationVersion(1))
        },
    ] {
        assert_eq!(
            store.record_status(&id, change).await.unwrap(),
            Recorded::Outdated
        );
    }
    for reason in [DueReason::Periodic, DueReason::Drift, DueReason::Retry] {
        let mut again = fleet.plan(&id, &[("web", &[])]).await;
        again.reason = reason;
        let refused = store.begin_reconciliation(again).await.unwrap_err();
        assert!(matches!(refused, Error::Outdated(_)), "{reason:?}: {refused}");
    }
    assert_eq!(state(&fleet, &id).await, (ClusterState::Failed, false));

    // A person does, and so does another version.
    let asked = fleet.plan(&id, &[("web", &[])]).await;
    store.begin_reconciliation(asked).await.unwrap();
    assert_eq!(state(&fleet, &id).await.0, ClusterState::Reconciling);
}

pub(crate) async fn what_was_asked_for_meanwhile_is_done<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let store = &fleet.store;
    let (id, run) = failing(&fleet).await;
    let read = store.cluster(&id).await.unwrap().status.stamp;
    store.make_due(&id, fleet.now(), DueReason::Change).await.unwrap();
    store
        .finish_reconciliation(&run, given_up(Some(read)))
        .await
        .unwrap();
    assert_eq!(state(&fleet, &id).await, (ClusterState::Failed, true));
    let asked = due(&fleet).await.remove(0);
    assert_eq!(asked.reason, DueReason::Change);
    let mut again = fleet.plan(&id, &[("web", &[])]).await;
    again.stamp = Some(asked.stamp);
    store.begin_reconciliation(again).await.unwrap();
}
