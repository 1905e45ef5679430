//! What was done to which object (K27).

use evenkeel_core::{ClusterId, ClusterState};
use evenkeel_core::{ObjectChange, ObjectRef, OperationState, PlanAction, ReconciliationState, Strategy};
use evenkeel_inventory::{ChangeFilter, Error, PageRequest, RecordedChange};
use evenkeel_telemetry::request::scope;

use crate::fixture::*;

fn object(kind: &str, namespace: Option<&str>, name: &str) -> ObjectRef {
    ObjectRef {
        group: String::new(),
        kind: kind.to_owned(),
        namespace: namespace.map(ToOwned::to_owned),
        name: name.to_owned(),
    }
}

/// A run in which each component touches its ConfigMap twice, and the namespace once; a minute apart.
async fn run<B: Backend>(fleet: &Fleet<B>, cluster: &ClusterId, action: PlanAction) {
    let mut plan = fleet.plan(cluster, &[("db", &[]), ("web", &[0])]).await;
    plan.strategy = Strategy::Upgrade;
    let run = fleet.store.begin_reconciliation(plan).await.unwrap().id;
    for component in ["db", "web"] {
        let claimed = fleet.claim_one().await;
        assert_eq!(claimed.component.as_str(), component);
        for end in [false, true] {
            let state = match end {
                true => OperationState::Succeeded,
                false => OperationState::Running,
            };
            let change = |object: ObjectRef| ObjectChange {
                object,
                action,
                at: fleet.now(),
            };
            let mut said = report(&claimed, state);
            said.changes
                .push(change(object("ConfigMap", Some("apps"), component)));
            if end {
                said.changes.push(change(object("Namespace", None, component)));
            }
            fleet.store.report(said).await.unwrap();
            fleet.advance(1);
        }
    }
    let end = finish(ReconciliationState::Succeeded, ClusterState::Ready, 1);
    fleet.store.finish_reconciliation(&run, end).await.unwrap();
    fleet.advance(60);
}

fn shown(changes: &[RecordedChange]) -> Vec<String> {
    let text = |change: &RecordedChange| format!("{} {} {}", change.component, change.action, change.object);
    changes.iter().map(text).collect()
}

pub(crate) async fn changes_are_found_by_object_and_time<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let store = &fleet.store;
    let a = scope("r-1".to_owned(), fleet.cluster("a", &["db", "web"])).await;
    let b = fleet.cluster("b", &["db", "web"]).await;
    run(&fleet, &a, PlanAction::Create).await;
    let middle = fleet.now();
    run(&fleet, &b, PlanAction::Create).await;
    run(&fleet, &a, PlanAction::Update).await;
    let ask = |filter: ChangeFilter| {
        let a = &a;
        async move {
            store
                .object_changes(a, &filter, &PageRequest::default())
                .await
                .unwrap()
        }
    };
    let any = ChangeFilter::default;
    let text = |text: &str| Some(text.to_owned());
    let all = ask(any()).await;
    assert!(all.next.is_none() && all.failed.is_empty());
    assert_eq!(
        shown(&all.items),
        [
            "web update Namespace/web",
            "web update ConfigMap/web in namespace apps",
            "web update ConfigMap/web in namespace apps",
            "db update Namespace/db",
            "db update ConfigMap/db in namespace apps",
            "db update ConfigMap/db in namespace apps",
            "web create Namespace/web",
            "web create ConfigMap/web in namespace apps",
            "web create ConfigMap/web in namespace apps",
            "db create Namespace/db",
            "db create ConfigMap/db in namespace apps",
            "db create ConfigMap/db in namespace apps",
        ]
    );
    let first = all.items.last().unwrap();
    assert_eq!((first.attempt, first.request_id.as_deref()), (1, Some("r-1")));
    assert_eq!(all.items[0].request_id, None);
    let operation = store.operation(&first.operation).await.unwrap();
    assert_eq!(operation.reconciliation, first.reconciliation);

    let web = ChangeFilter {
        component: Some("web".parse().unwrap()),
        until: Some(middle),
        ..any()
    };
    assert_eq!(shown(&ask(web).await.items)[0], "web create Namespace/web");
    let one = ChangeFilter {
        kind: text("ConfigMap"),
        namespace: text("apps"),
        name: text("db"),
        since: Some(middle),
        ..any()
    };
    assert_eq!(
        shown(&ask(one).await.items),
        vec!["db update ConfigMap/db in namespace apps"; 2]
    );
    let none = ChangeFilter {
        kind: text("Secret"),
        ..any()
    };
    assert!(ask(none).await.items.is_empty());
    let nobody = "nobody".parse().unwrap();
    assert!(matches!(
        store
            .object_changes(&nobody, &any(), &PageRequest::default())
            .await,
        Err(Error::NotFound { .. })
    ));
}

pub(crate) async fn changes_come_in_pages<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let a = fleet.cluster("a", &["db", "web"]).await;
    // More runs than are read together.
    for _ in 0..23 {
        run(&fleet, &a, PlanAction::Update).await;
    }
    let filter = ChangeFilter::default();
    let whole = fleet
        .store
        .object_changes(&a, &filter, &PageRequest::default())
        .await
        .unwrap();
    assert_eq!(whole.items.len(), 23 * 6);
    for limit in [1, 5, 6, 50] {
        let (mut page, mut read) = (PageRequest::first(limit), Vec::new());
        loop {
            let part = fleet.store.object_changes(&a, &filter, &page).await.unwrap();
            assert!(part.items.len() <= limit as usize);
            read.extend(part.items);
            match part.next {
                Some(next) => page = PageRequest::after(next, limit),
                None => break,
            }
        }
        assert_eq!(read, whole.items, "{limit}");
    }
    let error = fleet
        .store
        .object_changes(&a, &filter, &PageRequest::after("nowhere".parse().unwrap(), 5))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error}");
}
