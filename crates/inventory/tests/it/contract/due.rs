//! When clusters are looked at: the most urgent first, and nobody never.

use std::collections::BTreeMap;

use evenkeel_core::{ClusterId, ClusterState, DeleteMode, DueReason};
use evenkeel_inventory::{CheckNote, Due, DueBatch, DueCluster, Error, PageRequest, StatusChange};

use super::status::change;
use crate::fixture::*;

/// Ready clusters that nobody has to look at.
async fn never_due<B: Backend>(
    fleet: &Fleet<B>,
    names: &[&'static str],
) -> BTreeMap<&'static str, ClusterId> {
    let store = &fleet.store;
    let mut ids = BTreeMap::new();
    for name in names {
        let id = fleet.cluster(name, &[]).await;
        let ready = StatusChange {
            stamp: Some(store.cluster(&id).await.unwrap().status.stamp),
            due: Due::Never,
            ..change(ClusterState::Ready, 1)
        };
        store.record_status(&id, ready).await.unwrap();
        ids.insert(*name, id);
    }
    assert!(store.due_clusters(10).await.unwrap().due.is_empty());
    ids
}

fn names(batch: &DueBatch) -> Vec<&str> {
    batch.due.iter().map(|due| due.name.as_str()).collect()
}

pub(crate) async fn the_due_come_by_urgency<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let store = &fleet.store;
    let all = ["changed", "deleted", "drifted", "periodic", "retried", "later"];
    let ids = never_due(&fleet, &all).await;
    for (name, seconds, reason) in [
        ("periodic", -50, DueReason::Periodic),
        ("retried", -40, DueReason::Retry),
        ("drifted", -30, DueReason::Drift),
        ("changed", -20, DueReason::Change),
        ("later", 60, DueReason::Change),
    ] {
        store
            .make_due(&ids[name], fleet.after(seconds), reason)
            .await
            .unwrap();
    }
    store
        .request_deletion(&ids["deleted"], DeleteMode::Uninstall)
        .await
        .unwrap();
    let batch = store.due_clusters(10).await.unwrap();
    assert_eq!(
        names(&batch),
        ["deleted", "changed", "drifted", "retried", "periodic"]
    );
    assert_eq!(batch.next_at, Some(fleet.after(60)));
    let few = store.due_clusters(2).await.unwrap();
    assert_eq!(names(&few), ["deleted", "changed"]);
    assert_eq!(few.next_at, Some(fleet.now()), "there are more");
    // Made due again: the more urgent reason wins, whichever came first.
    store
        .make_due(&ids["periodic"], fleet.now(), DueReason::Change)
        .await
        .unwrap();
    store
        .make_due(&ids["changed"], fleet.now(), DueReason::Periodic)
        .await
        .unwrap();
    let batch = store.due_clusters(10).await.unwrap();
    assert_eq!(
        names(&batch),
        ["deleted", "changed", "periodic", "drifted", "retried"]
    );
    fleet.advance(60);
    assert_eq!(store.due_clusters(10).await.unwrap().due.len(), 6);
}

/// Nobody starves: an hour of waiting makes up for one lane.
pub(crate) async fn the_long_overdue_come_before_the_more_urgent<B: Backend>() {
    const HOUR: i64 = 3_600;
    let fleet = Fleet::<B>::new().await;
    let lanes = [
        (DueReason::Change, "changed", "changed-later"),
        (DueReason::Drift, "drifted", "drifted-later"),
        (DueReason::Retry, "retried", "retried-later"),
    ];
    let changed = lanes.iter().flat_map(|(_, sooner, later)| [*sooner, *later]);
    let ids = never_due(&fleet, &changed.chain(["overdue"]).collect::<Vec<_>>()).await;
    let make_due = async |name: &str, reason| {
        let made = fleet.store.make_due(&ids[name], fleet.now(), reason);
        made.await.unwrap();
    };
    make_due("overdue", DueReason::Periodic).await;
    // One lane more urgent after another, a second before its time is made up for, and a second after that.
    for (reason, sooner, later) in lanes.into_iter().rev() {
        fleet.advance(HOUR - 1);
        make_due(sooner, reason).await;
        fleet.advance(2);
        make_due(later, reason).await;
        fleet.advance(-1);
    }
    fleet.advance(HOUR);
    let batch = fleet.store.due_clusters(10).await.unwrap();
    let first = ["changed", "drifted", "retried", "overdue"];
    let rest = ["changed-later", "drifted-later", "retried-later"];
    assert_eq!(names(&batch), [&first[..], &rest].concat());
    assert_eq!(names(&fleet.store.due_clusters(4).await.unwrap()), first);
}

pub(crate) async fn a_check_does_not_wipe_out_a_change<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let id = fleet.cluster("c1", &[]).await;
    let note = |due: &DueCluster| CheckNote {
        cluster: due.id.clone(),
        stamp: due.stamp,
        checked_at: fleet.now(),
        next_due_at: fleet.after(300),
    };
    let due = fleet.store.due_clusters(1).await.unwrap().due.remove(0);
    fleet.put(spec("c1", &["web"])).await;
    fleet.store.note_checks(&[note(&due)]).await.unwrap();
    let status = fleet.store.cluster(&id).await.unwrap().status;
    assert_eq!(status.last_check_at, Some(fleet.now()));
    assert_eq!(
        status.due,
        Some((fleet.now(), DueReason::Change)),
        "the change is still to be looked at"
    );
    // And a run decided upon before the change does not begin.
    let mut plan = fleet.plan(&id, &[]).await;
    plan.stamp = Some(due.stamp);
    assert!(matches!(
        fleet.store.begin_reconciliation(plan).await,
        Err(Error::Outdated(_))
    ));

    let due = fleet.store.due_clusters(1).await.unwrap().due.remove(0);
    fleet.store.note_checks(&[note(&due)]).await.unwrap();
    let status = fleet.store.cluster(&id).await.unwrap().status;
    assert_eq!(status.due, Some((fleet.after(300), DueReason::Periodic)));
    // A late word about a due time that was acted upon changes nothing.
    let late = CheckNote {
        next_due_at: fleet.after(900),
        ..note(&due)
    };
    fleet.store.note_checks(&[late]).await.unwrap();
    assert_eq!(fleet.store.cluster(&id).await.unwrap().status.due, status.due);
}

pub(crate) async fn many_checks_are_noted_at_once<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    for number in 0..50 {
        fleet.cluster(&format!("c{number}"), &[]).await;
    }
    let due = fleet.store.due_clusters(100).await.unwrap().due;
    assert_eq!(due.len(), 50);
    let notes: Vec<_> = due
        .iter()
        .enumerate()
        .map(|(number, due)| CheckNote {
            cluster: due.id.clone(),
            stamp: due.stamp,
            checked_at: fleet.now(),
            next_due_at: fleet.after(100 + i64::try_from(number).unwrap()),
        })
        .collect();
    fleet.store.note_checks(&notes).await.unwrap();
    fleet.store.note_checks(&[]).await.unwrap();
    let batch = fleet.store.due_clusters(100).await.unwrap();
    assert!(batch.due.is_empty());
    assert_eq!(batch.next_at, Some(fleet.after(100)));
    for note in &notes {
        let cluster = fleet.store.cluster(&note.cluster).await.unwrap();
        assert_eq!(cluster.status.due, Some((note.next_due_at, DueReason::Periodic)));
        let history = fleet
            .store
            .status_history(&note.cluster, &PageRequest::default())
            .await
            .unwrap();
        assert!(history.items.is_empty(), "a check leaves no history");
    }
}

pub(crate) async fn a_suspended_cluster_is_not_due<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let store = &fleet.store;
    let id = fleet.cluster("c1", &[]).await;
    store.suspend(&id, Some(fleet.after(600))).await.unwrap();
    assert!(store.due_clusters(1).await.unwrap().due.is_empty());
    fleet.put(spec("c1", &["web"])).await;
    store.make_due(&id, fleet.now(), DueReason::Drift).await.unwrap();
    let batch = store.due_clusters(1).await.unwrap();
    assert!(batch.due.is_empty());
    assert_eq!(batch.next_at, Some(fleet.after(600)));
    assert_eq!(
        store.cluster(&id).await.unwrap().status.suspended_until,
        Some(fleet.after(600))
    );
    store.suspend(&id, None).await.unwrap();
    assert_eq!(
        store.due_clusters(1).await.unwrap().due[0].reason,
        DueReason::Change
    );
    // The time itself ends it too, and a deletion does not wait.
    store.suspend(&id, Some(fleet.after(600))).await.unwrap();
    fleet.advance(600);
    assert_eq!(store.due_clusters(1).await.unwrap().due.len(), 1);
    store.suspend(&id, Some(fleet.after(600))).await.unwrap();
    store.request_deletion(&id, DeleteMode::Uninstall).await.unwrap();
    assert_eq!(
        store.due_clusters(1).await.unwrap().due[0].reason,
        DueReason::Deletion
    );
}
