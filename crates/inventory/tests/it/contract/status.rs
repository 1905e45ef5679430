use std::collections::BTreeMap;

use evenkeel_core::{
    ClusterState, ComponentName, ConfigurationVersion, DeleteMode, DueReason, ReconciliationState, Strategy,
};
use evenkeel_inventory::{Due, Error, Failing, FailureCount, PageRequest, Recorded, StatusChange};
use jiff::SignedDuration;

use crate::fixture::*;

pub(super) fn change(state: ClusterState, version: u64) -> StatusChange {
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
