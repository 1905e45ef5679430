use std::collections::BTreeMap;

use evenkeel_core::{
    ClusterState, ComponentName, ConfigurationVersion, DeleteMode, DueReason, ReconciliationState, Strategy,
};
use evenkeel_inventory::{CheckNote, Due, Error, Failing, FailureCount, PageRequest, Recorded, StatusChange};
use jiff::SignedDuration;

use crate::fixture::*;

fn change(state: ClusterState, version: u64) -> StatusChange {
    StatusChange::new(state, ConfigurationVersion(version))
}

pub(crate) async fn only_changes_are_recorded<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let id = fleet.cluster("c1", &["web"]).await;
    let store = &fleet.store;
    let began = fleet.now();
    fleet.advance(10);
    assert_eq!(
        store
            .record_status(&id, change(ClusterState::Ready, 1))
            .await
            .unwrap(),
        Recorded::Changed
    );
    let since = fleet.now();
    fleet.advance(5);
    assert_eq!(
        store
            .record_status(&id, change(ClusterState::Ready, 1))
            .await
            .unwrap(),
        Recorded::Unchanged
    );
    let why = |text: &str| StatusChange {
        reason: Some(text.to_owned()),
        ..change(ClusterState::Ready, 1)
    };
    assert_eq!(
        store.record_status(&id, why("one")).await.unwrap(),
        Recorded::Changed
    );
    assert_eq!(
        store.record_status(&id, why("one")).await.unwrap(),
        Recorded::Unchanged
    );
    let status = store.cluster(&id).await.unwrap().status;
    assert_eq!(
        (status.since, status.reason.as_deref()),
        (since, Some("one")),
        "another reason is no other state"
    );
    fleet.advance(5);
    store
        .record_status(&id, change(ClusterState::Degraded, 1))
        .await
        .unwrap();

    let page = store.status_history(&id, &PageRequest::first(1)).await.unwrap();
    let [ready] = &page.items[..] else {
        panic!("{page:?}")
    };
    assert_eq!(
        (ready.state, ready.since, ready.reason.as_deref()),
        (ClusterState::Ready, since, Some("one"))
    );
    assert_eq!(ready.duration(), SignedDuration::from_secs(10));
    let next = PageRequest::after(page.next.unwrap(), 1);
    let page = store.status_history(&id, &next).await.unwrap();
    assert_eq!(
        (page.items[0].state, page.items[0].since),
        (ClusterState::Pending, began)
    );
    assert!(page.next.is_none());
}

pub(crate) async fn the_table_of_states_holds<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let id = fleet.cluster("c1", &[]).await;
    let store = &fleet.store;
    let error = store
        .record_status(&id, change(ClusterState::DeleteFailed, 1))
        .await
        .unwrap_err();
    assert!(
        matches!(error, Error::Refused(_)) && error.to_string().contains("allowed are"),
        "{error}"
    );
    store
        .record_status(&id, change(ClusterState::Ready, 1))
        .await
        .unwrap();
    let error = store
        .record_status(&id, change(ClusterState::Failed, 1))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("from ready to failed"), "{error}");
    let error = store
        .record_status(&id, change(ClusterState::Ready, 7))
        .await
        .unwrap_err();
    assert!(
        matches!(error, Error::NotFound { .. }),
        "there is no version 7: {error}"
    );
    assert_eq!(
        store.cluster(&id).await.unwrap().status.state,
        ClusterState::Ready
    );
    let nobody = "nobody".parse().unwrap();
    let error = store
        .record_status(&nobody, change(ClusterState::Ready, 1))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error}");
}

pub(crate) async fn ready_never_speaks_of_an_older_version<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let id = fleet.cluster("c1", &["web"]).await;
    let run = fleet
        .store
        .begin_reconciliation(fleet.plan(&id, &[]).await)
        .await
        .unwrap();
    assert_eq!(fleet.store.cluster(&id).await.unwrap().status.due, None);
    fleet.put(spec("c1", &["web", "db"])).await;
    let end = finish(ReconciliationState::Succeeded, ClusterState::Ready, 1);
    assert_eq!(
        fleet.store.finish_reconciliation(&run.id, end).await.unwrap(),
        Recorded::Outdated
    );
    // The run ended; the cluster waits for version 2 and is due for it.
    assert_eq!(
        fleet.store.reconciliation(&run.id).await.unwrap().state,
        ReconciliationState::Succeeded
    );
    let status = fleet.store.cluster(&id).await.unwrap().status;
    assert_eq!(
        (status.state, status.observed_version.0),
        (ClusterState::Pending, 2)
    );
    assert_eq!(status.due, Some((fleet.now(), DueReason::Change)));

    fleet
        .store
        .request_deletion(&id, DeleteMode::Uninstall)
        .await
        .unwrap();
    let recorded = fleet
        .store
        .record_status(&id, change(ClusterState::Ready, 2))
        .await
        .unwrap();
    assert_eq!(recorded, Recorded::Outdated, "one that is to go is not ready");
}

pub(crate) async fn the_due_come_by_urgency<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let store = &fleet.store;
    let mut ids = BTreeMap::new();
    for name in ["changed", "deleted", "drifted", "periodic", "retried", "later"] {
        let id = fleet.cluster(name, &[]).await;
        store
            .record_status(
                &id,
                StatusChange {
                    stamp: Some(store.cluster(&id).await.unwrap().status.stamp),
                    due: Due::Never,
                    ..change(ClusterState::Ready, 1)
                },
            )
            .await
            .unwrap();
        ids.insert(name, id);
    }
    assert!(store.due_clusters(10).await.unwrap().due.is_empty());
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
    let names = |batch: &evenkeel_inventory::DueBatch| {
        batch
            .due
            .iter()
            .map(|due| due.name.to_string())
            .collect::<Vec<_>>()
    };
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

pub(crate) async fn a_check_does_not_wipe_out_a_change<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let id = fleet.cluster("c1", &[]).await;
    let note = |due: &evenkeel_inventory::DueCluster| CheckNote {
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

pub(crate) async fn failures_are_counted_per_version<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let id = fleet.cluster("c1", &["web"]).await;
    for expected in 1..=3 {
        let run = fleet
            .store
            .begin_reconciliation(fleet.plan(&id, &[]).await)
            .await
            .unwrap();
        let mut end = finish(ReconciliationState::Failed, ClusterState::Degraded, 1);
        end.reason = Some("no luck".to_owned());
        end.status.failures = FailureCount::Add;
        end.status.due = Due::At(fleet.after(30), DueReason::Retry);
        fleet.store.finish_reconciliation(&run.id, end).await.unwrap();
        let status = fleet.store.cluster(&id).await.unwrap().status;
        assert_eq!(status.failures, expected);
        assert_eq!(status.due, Some((fleet.after(30), DueReason::Retry)));
        let run = fleet.store.reconciliation(&run.id).await.unwrap();
        assert_eq!(run.reason.as_deref(), Some("no luck"));
    }
    fleet.put(spec("c1", &["web", "db"])).await;
    assert_eq!(fleet.store.cluster(&id).await.unwrap().status.failures, 0);
}

pub(crate) async fn components_that_are_not_ready_are_named<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let id = fleet.cluster("c1", &["web", "db", "cache"]).await;
    let store = &fleet.store;
    let with = |reasons: &[(&str, &str)]| StatusChange {
        not_ready: Some(
            reasons
                .iter()
                .map(|(component, reason)| (component.parse().unwrap(), (*reason).to_owned()))
                .collect(),
        ),
        ..change(ClusterState::Degraded, 1)
    };
    let shown = || async {
        let page = store.components(&id).await.unwrap();
        assert!(page.failed.is_empty() && page.next.is_none());
        let shown = page
            .items
            .iter()
            .map(|item| (item.component.to_string(), item.not_ready.clone()));
        shown
            .filter_map(|(component, reason)| Some((component, reason?)))
            .collect::<Vec<_>>()
    };
    assert!(shown().await.is_empty());
    let both = with(&[("web", "0 of 2 replicas"), ("db", "crash loop")]);
    assert_eq!(
        store.record_status(&id, both.clone()).await.unwrap(),
        Recorded::Changed
    );
    assert_eq!(store.record_status(&id, both).await.unwrap(), Recorded::Unchanged);
    assert_eq!(shown().await.len(), 2);
    let other = with(&[("web", "1 of 2 replicas")]);
    assert_eq!(store.record_status(&id, other).await.unwrap(), Recorded::Changed);
    assert_eq!(shown().await, [("web".to_owned(), "1 of 2 replicas".to_owned())]);
    // Kept by those who do not speak of it, wiped by an operation that found it ready.
    store
        .record_status(&id, change(ClusterState::Degraded, 1))
        .await
        .unwrap();
    assert_eq!(shown().await.len(), 1);
    store
        .begin_reconciliation(fleet.plan(&id, &[("web", &[])]).await)
        .await
        .unwrap();
    let claimed = fleet.claim_one().await;
    assert_eq!(shown().await.len(), 1);
    fleet.succeed(&claimed).await;
    assert!(shown().await.is_empty());
}

pub(crate) async fn clusters_are_counted_by_state<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    for name in ["a", "b", "c", "d"] {
        fleet.cluster(name, &[]).await;
    }
    let a = fleet
        .store
        .cluster_by_name(&"a".parse().unwrap())
        .await
        .unwrap()
        .id;
    let b = fleet
        .store
        .cluster_by_name(&"b".parse().unwrap())
        .await
        .unwrap()
        .id;
    fleet
        .store
        .record_status(&a, change(ClusterState::Ready, 1))
        .await
        .unwrap();
    fleet
        .store
        .request_deletion(&b, DeleteMode::Forget)
        .await
        .unwrap();
    let counts = fleet.store.cluster_counts().await.unwrap();
    let expected = BTreeMap::from([(ClusterState::Pending, 2), (ClusterState::Ready, 1)]);
    assert_eq!(counts, expected);
}

/// K48: a run that tries again what failed leaves the cluster degraded; each component recovers by itself, and a run that knows
/// of no failure begins anew.
pub(crate) async fn what_is_tried_again_leaves_the_cluster_degraded<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let id = fleet.cluster("c1", &["db", "web"]).await;
    let name = |component: &str| -> ComponentName { component.parse().unwrap() };
    let mut plan = fleet.plan(&id, &[("db", &[]), ("web", &[0])]).await;
    plan.failing = Some(Failing {
        reason: "component db: no connection; and 1 more component".to_owned(),
        components: BTreeMap::from([
            (name("db"), "no connection".to_owned()),
            (name("web"), "no such chart".to_owned()),
        ]),
    });
    let unready = || async {
        let components = fleet.store.components(&id).await.unwrap().items;
        let unready = components
            .into_iter()
            .filter_map(|item| Some((item.component.to_string(), item.not_ready?)));
        unready.collect::<Vec<_>>()
    };
    let first = fleet.store.begin_reconciliation(plan).await.unwrap();
    let status = fleet.store.cluster(&id).await.unwrap().status;
    assert_eq!(status.state, ClusterState::Degraded);
    assert_eq!(
        status.reason.as_deref(),
        Some("component db: no connection; and 1 more component")
    );
    let told = |component: &str, reason: &str| (component.to_owned(), reason.to_owned());
    assert_eq!(
        unready().await,
        [told("db", "no connection"), told("web", "no such chart")]
    );

    let claimed = fleet.claim_one().await;
    fleet.succeed(&claimed).await;
    assert_eq!(unready().await, [told("web", "no such chart")]);

    let mut plan = fleet.plan(&id, &[("db", &[]), ("web", &[0])]).await;
    plan.supersede = true;
    let second = fleet.store.begin_reconciliation(plan).await.unwrap();
    assert_eq!(second.superseded, Some(first.id));
    let status = fleet.store.cluster(&id).await.unwrap().status;
    assert_eq!((status.state, status.reason), (ClusterState::Reconciling, None));
}

/// Who looked at a cluster before a run began does not know what it does, and that nothing was left says nothing any more.
pub(crate) async fn an_old_look_ends_no_life<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let store = &fleet.store;
    let id = fleet.cluster("c1", &["web"]).await;
    store.request_deletion(&id, DeleteMode::Uninstall).await.unwrap();
    let looked = store.due_clusters(10).await.unwrap().due[0].stamp;
    let mut plan = fleet.plan(&id, &[("web", &[])]).await;
    plan.strategy = Strategy::Delete;
    plan.reason = DueReason::Deletion;
    plan.operations[0].kind = Strategy::Delete;
    let run = store.begin_reconciliation(plan).await.unwrap().id;
    let gone = StatusChange {
        due: Due::Never,
        stamp: Some(looked),
        ..change(ClusterState::Deleted, 1)
    };
    assert_eq!(store.record_status(&id, gone).await.unwrap(), Recorded::Outdated);
    assert_eq!(
        store.cluster(&id).await.unwrap().status.state,
        ClusterState::Deleting
    );

    let web = fleet.claim_one().await;
    fleet.succeed(&web).await;
    let finished = finish(ReconciliationState::Succeeded, ClusterState::Deleted, 1);
    store.finish_reconciliation(&run, finished).await.unwrap();
    assert_eq!(
        store.cluster(&id).await.unwrap().status.state,
        ClusterState::Deleted
    );
}

pub(crate) async fn one_that_is_refused_keeps_no_other_away<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let store = &fleet.store;
    let mut ids = Vec::new();
    for name in ["c1", "c2", "c3"] {
        ids.push(fleet.cluster(name, &["web"]).await);
    }
    let all = |states: [StatusChange; 3]| ids.iter().cloned().zip(states).collect::<Vec<_>>();
    let ready = || change(ClusterState::Ready, 1);
    // The last comes first in the order of names.
    let mut backwards = all([ready(), ready(), change(ClusterState::Degraded, 1)]);
    backwards.reverse();
    let answers = store.record_statuses(backwards).await;
    assert!(
        answers
            .iter()
            .all(|answer| matches!(answer, Ok(Recorded::Changed))),
        "{answers:?}"
    );
    let unknown = change(ClusterState::Ready, 9);
    let answers = store
        .record_statuses(all([change(ClusterState::Degraded, 1), unknown, ready()]))
        .await;
    assert!(
        matches!(
            &answers[..],
            [
                Ok(Recorded::Changed),
                Err(Error::NotFound { .. }),
                Ok(Recorded::Changed)
            ]
        ),
        "{answers:?}"
    );
    let mut states = Vec::new();
    for id in &ids {
        states.push(store.cluster(id).await.unwrap().status.state);
    }
    assert_eq!(
        states,
        [ClusterState::Degraded, ClusterState::Ready, ClusterState::Ready]
    );
}
