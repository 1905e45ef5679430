//! The id of an API call goes with the work that it sets off, across tasks and processes.

use evenkeel_core::{DueReason, OperationState};
use evenkeel_inventory::{CheckNote, StatusChange};
use evenkeel_telemetry::request::scope;

use crate::fixture::{Backend, Fleet, spec};

async fn due<B: Backend>(fleet: &Fleet<B>) -> Option<String> {
    let due = fleet.store.due_clusters(8).await.unwrap().due;
    assert_eq!(due.len(), 1, "{due:?}");
    due[0].request_id.clone()
}

fn id(text: &str) -> Option<String> {
    Some(text.to_owned())
}

pub(crate) async fn a_call_is_known_to_what_it_sets_off<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let put = |components: &'static [&'static str]| fleet.put(spec("c1", components));
    let cluster = scope("r-1".to_owned(), put(&["web"])).await.id;
    assert_eq!(due(&fleet).await, id("r-1"));
    let plan = fleet.plan(&cluster, &[("web", &[])]).await;
    fleet.store.begin_reconciliation(plan).await.unwrap();
    let fleet = fleet.crash().await;
    let claimed = fleet.claim_one().await;
    assert_eq!(claimed.request_id, id("r-1"));
    let again = OperationState::Retrying {
        reason: "busy".to_owned(),
        next_at: fleet.now(),
    };
    fleet.report(&claimed, again).await;
    assert_eq!(
        fleet.claim_one().await.request_id,
        id("r-1"),
        "a retry is of the same call"
    );

    let put = |components: &'static [&'static str]| fleet.put(spec("c1", components));
    scope("r-2".to_owned(), put(&["web", "db"])).await;
    assert_eq!(due(&fleet).await, id("r-2"), "the newest call counts");
    let asked = fleet.store.make_due(&cluster, fleet.now(), DueReason::Change);
    scope("r-3".to_owned(), asked).await.unwrap();
    assert_eq!(due(&fleet).await, id("r-3"));
    // Somebody else's later moment leaves the call's due time, and so its id, as they are.
    fleet
        .store
        .make_due(&cluster, fleet.after(60), DueReason::Drift)
        .await
        .unwrap();
    assert_eq!(due(&fleet).await, id("r-3"));
    let mut plan = fleet.plan(&cluster, &[("db", &[])]).await;
    plan.supersede = true;
    fleet.store.begin_reconciliation(plan).await.unwrap();
    assert_eq!(fleet.claim_one().await.request_id, id("r-3"));
}

pub(crate) async fn what_comes_by_itself_was_asked_for_by_nobody<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let cluster = scope("r-1".to_owned(), fleet.put(spec("c1", &["web"]))).await.id;
    let status = fleet.store.cluster(&cluster).await.unwrap().status;
    let note = CheckNote {
        cluster: cluster.clone(),
        stamp: status.stamp,
        checked_at: fleet.now(),
        next_due_at: fleet.after(60),
    };
    fleet.store.note_checks(&[note]).await.unwrap();
    fleet.advance(60);
    assert_eq!(due(&fleet).await, None, "the call was answered by the check");

    let asked = fleet.store.make_due(&cluster, fleet.now(), DueReason::Change);
    scope("r-2".to_owned(), asked).await.unwrap();
    let stamp = fleet.store.cluster(&cluster).await.unwrap().status.stamp;
    let change = StatusChange {
        due: evenkeel_inventory::Due::At(fleet.now(), DueReason::Retry),
        stamp: Some(stamp),
        ..StatusChange::new(
            evenkeel_core::ClusterState::Degraded,
            evenkeel_core::ConfigurationVersion(1),
        )
    };
    fleet.store.record_status(&cluster, change).await.unwrap();
    assert_eq!(due(&fleet).await, None, "a retry comes by itself");
    let plan = fleet.plan(&cluster, &[("web", &[])]).await;
    fleet.store.begin_reconciliation(plan).await.unwrap();
    assert_eq!(fleet.claim_one().await.request_id, None);
}
