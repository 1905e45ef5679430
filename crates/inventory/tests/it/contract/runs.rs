use std::collections::BTreeSet;

use evenkeel_core::{
    ClusterState, ComponentRevision, ConfigurationVersion, Digest, DueReason, OperationState,
    OperationStateKind, ReconciliationState, Strategy,
};
use evenkeel_inventory::{
    Error, HeartbeatOutcome, NewReconciliation, OPERATIONS_MAX, PageRequest, StopReason,
};
use tokio::task::JoinSet;

use crate::fixture::*;

pub(crate) async fn one_run_per_cluster_whoever_tries<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let id = fleet.cluster("c1", &["web"]).await;
    let plan = fleet.plan(&id, &[("web", &[])]).await;
    let mut tries = JoinSet::new();
    for _ in 0..32 {
        let (store, plan) = (fleet.store.clone(), plan.clone());
        tries.spawn(async move { store.begin_reconciliation(plan).await });
    }
    let answers = tries.join_all().await;
    let begun: Vec<_> = answers.iter().flatten().collect();
    assert_eq!(begun.len(), 1);
    for refusal in answers.iter().filter_map(|answer| answer.as_ref().err()) {
        assert!(
            matches!(refusal, Error::ReconciliationRunning { running } if *running == begun[0].id),
            "{refusal}"
        );
    }
    assert_eq!(fleet.claims(32).await.operations.len(), 1);
    let running = fleet.store.running_reconciliation(&id).await.unwrap().unwrap();
    assert_eq!(
        (running.id, running.state),
        (begun[0].id.clone(), ReconciliationState::Running)
    );
}

/// QDB-02.
pub(crate) async fn four_schedulers_begin_fifty_runs<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    for number in 0..50 {
        fleet.cluster(&format!("c{number}"), &["web"]).await;
    }
    let deadline = fleet.after(3_600);
    let mut schedulers = JoinSet::new();
    for _ in 0..4 {
        let store = fleet.store.clone();
        schedulers.spawn(async move {
            let mut begun = 0;
            for due in store.due_clusters(100).await.unwrap().due {
                let new = NewReconciliation {
                    cluster: due.id.clone(),
                    version: due.version,
                    strategy: Strategy::Install,
                    reason: due.reason,
                    deadline,
                    stamp: Some(due.stamp),
                    supersede: true,
                    failing: None,
                    operations: Vec::new(),
                };
                match store.begin_reconciliation(new).await {
                    Ok(run) => {
                        begun += 1;
                        // Over before the others have looked: the stamp still tells them.
                        let end = finish(ReconciliationState::Succeeded, ClusterState::Ready, due.version.0);
                        store.finish_reconciliation(&run.id, end).await.unwrap();
                    }
                    Err(Error::Outdated(_)) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            begun
        });
    }
    let begun: usize = schedulers.join_all().await.into_iter().sum();
    assert_eq!(begun, 50);
}

pub(crate) async fn a_newer_version_supersedes<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let store = &fleet.store;
    let id = fleet.cluster("c1", &["web", "db"]).await;
    let first = store
        .begin_reconciliation(fleet.plan(&id, &[("web", &[]), ("db", &[0])]).await)
        .await
        .unwrap();
    let running = fleet.claim_one().await;
    fleet.put(spec("c1", &["web", "db", "cache"])).await;
    let mut plan = fleet
        .plan(&id, &[("web", &[]), ("db", &[]), ("cache", &[])])
        .await;
    let refused = store.begin_reconciliation(plan.clone()).await.unwrap_err();
    assert!(
        matches!(refused, Error::ReconciliationRunning { .. }),
        "{refused}"
    );
    plan.supersede = true;
    let second = store.begin_reconciliation(plan).await.unwrap();
    assert_eq!(second.superseded.as_ref(), Some(&first.id));

    let old = store.reconciliation(&first.id).await.unwrap();
    assert_eq!(
        (old.state, old.finished_at),
        (ReconciliationState::Superseded, Some(fleet.now()))
    );
    let operations = store.operations(&first.id).await.unwrap().items;
    assert_eq!(operations[0].state, OperationState::Running);
    assert_eq!(operations[0].stop, Some(StopReason::Superseded));
    assert_eq!(operations[1].state, OperationState::Superseded);

    // The component that still runs is not given to anybody; the others are.
    let claimed = fleet.claims(8).await.operations;
    let components: BTreeSet<_> = claimed.iter().map(|claim| claim.component.to_string()).collect();
    assert_eq!(components, BTreeSet::from(["cache".to_owned(), "db".to_owned()]));
    let beats = store
        .heartbeat(&[(running.id.clone(), running.lease.fence)], LEASE)
        .await
        .unwrap();
    assert!(
        matches!(beats[0].outcome, HeartbeatOutcome::Stop(lease, StopReason::Superseded) if lease.fence == running.lease.fence)
    );
    // It wanted to try again: the order to stop decides.
    let retrying = OperationState::Retrying {
        reason: "timeout".to_owned(),
        next_at: fleet.after(5),
    };
    assert_eq!(
        fleet.report(&running, retrying).await.state,
        OperationStateKind::Superseded
    );
    let web = fleet.claim_one().await;
    assert_eq!(web.reconciliation, second.id);
    assert!(web.lease.fence > running.lease.fence);
    // What the old one says does not show over the new one.
    let page = store.components(&id).await.unwrap();
    let shown = page
        .items
        .iter()
        .find(|item| item.component == web.component)
        .unwrap();
    let operation = shown.operation.as_ref().unwrap();
    assert_eq!(
        (&operation.id, &operation.state),
        (&web.id, &OperationState::Running)
    );
}

pub(crate) async fn a_component_is_never_run_twice_at_once<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let id = fleet.cluster("c1", &["web"]).await;
    // A move to another namespace: the same component twice in one run, here even without an order between them.
    let plan = fleet.plan(&id, &[("web", &[]), ("web", &[])]).await;
    fleet.store.begin_reconciliation(plan).await.unwrap();
    let first = fleet.claim_one().await;
    assert!(fleet.claims(8).await.operations.is_empty());
    fleet.succeed(&first).await;
    let second = fleet.claim_one().await;
    assert_ne!(first.id, second.id);
    assert!(second.lease.fence > first.lease.fence);
}

pub(crate) async fn plans_are_checked<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let id = fleet.cluster("c1", &[]).await;
    let many: Vec<(&str, &[usize])> = vec![("a", &[]); OPERATIONS_MAX + 1];
    for (operations, expected) in [
        (&[("a", &[1][..])][..], "does not exist"),
        (&[("a", &[0])], "cycle"),
        (&[("a", &[2]), ("b", &[0]), ("c", &[1])], "cycle"),
        (&many, "at most"),
    ] {
        let error = fleet
            .store
            .begin_reconciliation(fleet.plan(&id, operations).await)
            .await
            .unwrap_err();
        assert!(
            matches!(error, Error::Plan { .. }) && error.to_string().contains(expected),
            "{error}"
        );
    }
    assert!(fleet.store.running_reconciliation(&id).await.unwrap().is_none());
    // A dependency named twice counts once.
    let plan = fleet.plan(&id, &[("a", &[]), ("b", &[0, 0])]).await;
    let run = fleet.store.begin_reconciliation(plan).await.unwrap();
    let a = fleet.claim_one().await;
    fleet.succeed(&a).await;
    let b = fleet.claim_one().await;
    assert_eq!(
        fleet.store.operation(&b.id).await.unwrap().depends_on,
        [run.operations[0].clone()]
    );
}

pub(crate) async fn a_run_ends_once<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let store = &fleet.store;
    let id = fleet.cluster("c1", &["web"]).await;
    let run = store
        .begin_reconciliation(fleet.plan(&id, &[("web", &[])]).await)
        .await
        .unwrap()
        .id;
    let ready = || finish(ReconciliationState::Succeeded, ClusterState::Ready, 1);
    let error = store.finish_reconciliation(&run, ready()).await.unwrap_err();
    assert!(matches!(error, Error::OperationsOpen { open: 1, .. }), "{error}");
    for state in [ReconciliationState::Running, ReconciliationState::Superseded] {
        let error = store
            .finish_reconciliation(&run, finish(state, ClusterState::Ready, 1))
            .await
            .unwrap_err();
        assert!(matches!(error, Error::Refused(_)), "{error}");
    }
    // A status that is refused takes the whole end back.
    let claimed = fleet.claim_one().await;
    assert_eq!(fleet.succeed(&claimed).await.open, 0);
    let error = store
        .finish_reconciliation(
            &run,
            finish(ReconciliationState::Succeeded, ClusterState::DeleteFailed, 1),
        )
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Refused(_)), "{error}");
    assert_eq!(
        store.reconciliation(&run).await.unwrap().state,
        ReconciliationState::Running
    );
    store.finish_reconciliation(&run, ready()).await.unwrap();
    store.finish_reconciliation(&run, ready()).await.unwrap();
    let error = store
        .finish_reconciliation(
            &run,
            finish(ReconciliationState::Failed, ClusterState::Degraded, 1),
        )
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Refused(_)), "{error}");
    assert_eq!(
        store.cluster(&id).await.unwrap().status.state,
        ClusterState::Ready
    );
}

pub(crate) async fn a_deadline_ends_what_is_left<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let store = &fleet.store;
    let id = fleet.cluster("c1", &["web", "db"]).await;
    let run = store
        .begin_reconciliation(fleet.plan(&id, &[("web", &[]), ("db", &[])]).await)
        .await
        .unwrap()
        .id;
    let running = fleet.claims(1).await.operations.remove(0);
    assert!(store.overdue_reconciliations(8).await.unwrap().is_empty());
    fleet.advance(3_600);
    assert_eq!(
        store.overdue_reconciliations(8).await.unwrap(),
        std::slice::from_ref(&run)
    );
    let end = finish(ReconciliationState::Failed, ClusterState::Degraded, 1);
    store.finish_reconciliation(&run, end).await.unwrap();
    assert!(store.overdue_reconciliations(8).await.unwrap().is_empty());
    // The run has ended; its worker may write until it knows.
    assert!(store.running_reconciliation(&id).await.unwrap().is_none());
    assert_eq!(
        store.worked_on(&id).await.unwrap(),
        BTreeSet::from([running.component.clone()])
    );
    let states: Vec<_> = store
        .operations(&run)
        .await
        .unwrap()
        .items
        .into_iter()
        .map(|item| item.state)
        .collect();
    assert!(
        states.contains(&OperationState::Cancelled) && states.contains(&OperationState::Running),
        "{states:?}"
    );
    // Its lease is long over: the next claim ends it too, and nothing is left.
    let claims = fleet.claims(8).await;
    assert!(claims.operations.is_empty());
    assert_eq!(
        (&claims.settled[0].operation, claims.settled[0].open),
        (&running.id, 0)
    );
    assert_eq!(
        store.operation(&running.id).await.unwrap().state,
        OperationState::Cancelled
    );
    assert!(store.worked_on(&id).await.unwrap().is_empty());
}

pub(crate) async fn a_run_is_about_the_newest_version<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let id = fleet.cluster("c1", &["web"]).await;
    let old = fleet.plan(&id, &[("web", &[])]).await;
    fleet.put(spec("c1", &["web", "db"])).await;
    let error = fleet.store.begin_reconciliation(old.clone()).await.unwrap_err();
    assert!(matches!(error, Error::Outdated(_)), "{error}");
    let mut future = old.clone();
    future.version = ConfigurationVersion(3);
    let error = fleet.store.begin_reconciliation(future).await.unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error}");
    let mut delete = fleet.plan(&id, &[]).await;
    delete.strategy = Strategy::Delete;
    let error = fleet.store.begin_reconciliation(delete).await.unwrap_err();
    assert!(
        matches!(error, Error::Outdated(_)),
        "nobody asked for a deletion: {error}"
    );
    let mut unknown = old;
    unknown.cluster = "nobody".parse().unwrap();
    let error = fleet.store.begin_reconciliation(unknown).await.unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error}");
}

pub(crate) async fn settled_runs_are_found_again<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let (a, b) = (fleet.cluster("a", &["web"]).await, fleet.cluster("b", &[]).await);
    let run = fleet.plan(&a, &[("web", &[])]).await;
    let run = fleet.store.begin_reconciliation(run).await.unwrap().id;
    assert!(fleet.store.settled_reconciliations(8).await.unwrap().is_empty());
    let empty = fleet
        .store
        .begin_reconciliation(fleet.plan(&b, &[]).await)
        .await
        .unwrap()
        .id;
    assert_eq!(
        fleet.store.settled_reconciliations(8).await.unwrap(),
        std::slice::from_ref(&empty)
    );
    let claimed = fleet.claim_one().await;
    fleet.report(&claimed, failed("no luck")).await;
    let fleet = fleet.crash().await;
    let found: BTreeSet<_> = fleet
        .store
        .settled_reconciliations(8)
        .await
        .unwrap()
        .into_iter()
        .collect();
    assert_eq!(found, BTreeSet::from([run.clone(), empty]));
    let end = finish(ReconciliationState::Failed, ClusterState::Degraded, 1);
    fleet.store.finish_reconciliation(&run, end).await.unwrap();
    assert_eq!(fleet.store.settled_reconciliations(8).await.unwrap().len(), 1);
}

pub(crate) async fn runs_are_listed_newest_first<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let id = fleet.cluster("c1", &["web"]).await;
    let other = fleet.cluster("c2", &["web"]).await;
    fleet
        .store
        .begin_reconciliation(fleet.plan(&other, &[]).await)
        .await
        .unwrap();
    let mut expected = Vec::new();
    // All within one millisecond: the ids keep the order.
    for _ in 0..5 {
        let mut plan = fleet.plan(&id, &[]).await;
        plan.supersede = true;
        expected.insert(0, fleet.store.begin_reconciliation(plan).await.unwrap().id);
    }
    let mut request = PageRequest::first(2);
    let mut found = Vec::new();
    loop {
        let page = fleet.store.reconciliations(&id, &request).await.unwrap();
        found.extend(page.items.into_iter().map(|run| run.id));
        match page.next {
            Some(next) => request = PageRequest::after(next, 2),
            None => break,
        }
    }
    assert_eq!(found, expected);
    let run = fleet.store.reconciliation(&expected[0]).await.unwrap();
    assert_eq!(
        (run.strategy, run.due_reason),
        (Strategy::Install, DueReason::Change)
    );
    assert_eq!(run.deadline, fleet.after(3_600));
    let nobody = "nobody".parse().unwrap();
    assert!(matches!(
        fleet
            .store
            .reconciliations(&nobody, &PageRequest::default())
            .await,
        Err(Error::NotFound { .. })
    ));
}

pub(crate) async fn a_deleted_component_begins_anew<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let store = &fleet.store;
    let id = fleet.cluster("c1", &["web", "db"]).await;
    let (web, inputs) = ("web".parse().unwrap(), Digest::of("v1"));
    store
        .begin_reconciliation(fleet.plan(&id, &[("web", &[])]).await)
        .await
        .unwrap();
    let install = fleet.claim_one().await;
    assert_eq!(
        store.resolve_revision(&id, &web, &inputs).await.unwrap(),
        ComponentRevision(1)
    );
    assert_eq!(
        store
            .resolve_revision(&id, &web, &Digest::of("v2"))
            .await
            .unwrap(),
        ComponentRevision(2)
    );
    fleet.succeed(&install).await;

    fleet.put(spec("c1", &["db"])).await;
    let page = store.components(&id).await.unwrap();
    let gone = page.items.iter().find(|item| item.component == web).unwrap();
    assert!(!gone.listed);
    let operation = gone.operation.as_ref().unwrap();
    assert_eq!(
        (operation.version, operation.kind),
        (ConfigurationVersion(1), Strategy::Install)
    );

    let mut plan = fleet.plan(&id, &[("web", &[])]).await;
    plan.supersede = true;
    plan.operations[0].kind = Strategy::Delete;
    plan.operations[0].version = ConfigurationVersion(1);
    store.begin_reconciliation(plan).await.unwrap();
    let delete = fleet.claim_one().await;
    assert_eq!(
        (delete.kind, delete.version),
        (Strategy::Delete, ConfigurationVersion(1))
    );
    fleet.succeed(&delete).await;
    let components = store.components(&id).await.unwrap().items;
    assert!(
        components.iter().all(|item| item.component != web),
        "it is gone: {components:?}"
    );

    fleet.put(spec("c1", &["web", "db"])).await;
    assert_eq!(
        store
            .resolve_revision(&id, &web, &Digest::of("v2"))
            .await
            .unwrap(),
        ComponentRevision(1)
    );
    let mut plan = fleet.plan(&id, &[("web", &[])]).await;
    plan.supersede = true;
    store.begin_reconciliation(plan).await.unwrap();
    assert!(
        fleet.claim_one().await.lease.fence > delete.lease.fence,
        "fences never go back"
    );
}
