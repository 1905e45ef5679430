//! What is kept of the past (`runs` by age and number, failures longer), and what never goes.

use std::time::Duration;

use evenkeel_core::{
    ClusterId, ClusterState, ConfigurationVersion, DeleteMode, OperationState, ReconciliationId,
    ReconciliationState, Strategy,
};
use evenkeel_inventory::{
    Cleaned, ClusterFilter, Error, PageRequest, PutCluster, RetentionPolicy, StatusChange,
};

use crate::fixture::*;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const DAY_SECONDS: i64 = 24 * 60 * 60;

fn policy() -> RetentionPolicy {
    RetentionPolicy {
        runs: 3,
        run_age: 4 * DAY,
        failed_run_age: 30 * DAY,
        history_age: 10 * DAY,
        configurations: 2,
        deleted_cluster_age: 100 * DAY,
        audit_age: 400 * DAY,
    }
}

/// A whole pass.
async fn clean<B: Backend>(fleet: &Fleet<B>, policy: &RetentionPolicy) -> Cleaned {
    let mut all = Cleaned::default();
    loop {
        let step = fleet.store.clean(policy, all.next.take().as_ref()).await.unwrap();
        all.and(step);
        if all.next.is_none() {
            return all;
        }
    }
}

/// A run of one operation that ends so.
async fn run<B: Backend>(
    fleet: &Fleet<B>,
    cluster: &ClusterId,
    ends: ReconciliationState,
) -> ReconciliationId {
    let mut plan = fleet.plan(cluster, &[("web", &[]), ("db", &[0])]).await;
    plan.strategy = Strategy::Upgrade;
    let version = plan.version.0;
    let run = fleet.store.begin_reconciliation(plan).await.unwrap().id;
    let well = ends == ReconciliationState::Succeeded;
    for _ in 0..if well { 2 } else { 1 } {
        let claimed = fleet.claim_one().await;
        let mut said = report(
            &claimed,
            if well {
                OperationState::Succeeded
            } else {
                failed("no")
            },
        );
        said.timeline.push(evenkeel_inventory::TimelineEntry {
            at: fleet.now(),
            level: evenkeel_inventory::Level::Info,
            step: None,
            message: "said".to_owned(),
        });
        fleet.store.report(said).await.unwrap();
    }
    let state = if well {
        ClusterState::Ready
    } else {
        ClusterState::Degraded
    };
    fleet
        .store
        .finish_reconciliation(&run, finish(ends, state, version))
        .await
        .unwrap();
    run
}

async fn left<B: Backend>(fleet: &Fleet<B>, cluster: &ClusterId) -> Vec<ReconciliationId> {
    let page = PageRequest::default();
    let runs = fleet.store.reconciliations(cluster, &page).await.unwrap();
    assert!(runs.failed.is_empty());
    runs.items.into_iter().rev().map(|run| run.id).collect()
}

pub(crate) async fn runs_go_by_age_and_number<B: Backend>() {
    use ReconciliationState::{Failed, Succeeded};
    let fleet = Fleet::<B>::new().await;
    let (a, b) = (
        fleet.cluster("a", &["web", "db"]).await,
        fleet.cluster("b", &["web", "db"]).await,
    );
    let mut runs = Vec::new();
    for ends in [
        Failed, Succeeded, Succeeded, Failed, Succeeded, Succeeded, Succeeded,
    ] {
        runs.push(run(&fleet, &a, ends).await);
        fleet.advance(60);
    }
    let other = run(&fleet, &b, Succeeded).await;
    assert!(clean(&fleet, &RetentionPolicy::default()).await.is_nothing());
    // By number: what ended well goes beyond the newest three, what failed stays.
    let cleaned = clean(&fleet, &policy()).await;
    assert_eq!(cleaned.runs, 2);
    let kept = [&runs[0], &runs[3], &runs[4], &runs[5], &runs[6]];
    assert_eq!(left(&fleet, &a).await.iter().collect::<Vec<_>>(), kept);
    assert!(matches!(
        fleet.store.operations(&runs[1]).await,
        Err(Error::NotFound { .. })
    ));
    assert!(clean(&fleet, &policy()).await.is_nothing(), "twice is once");
    // By age: what ended well goes, but not the newest of a cluster.
    fleet.advance(5 * DAY_SECONDS);
    clean(&fleet, &policy()).await;
    let kept = [&runs[0], &runs[3], &runs[6]];
    assert_eq!(left(&fleet, &a).await.iter().collect::<Vec<_>>(), kept);
    assert_eq!(left(&fleet, &b).await, std::slice::from_ref(&other));
    // What failed goes later.
    fleet.advance(26 * DAY_SECONDS);
    assert_eq!(clean(&fleet, &policy()).await.runs, 2);
    assert_eq!(left(&fleet, &a).await, std::slice::from_ref(&runs[6]));
    let operations = fleet.store.operations(&runs[6]).await.unwrap().items;
    assert_eq!((operations.len(), operations[1].depends_on.len()), (2, 1));
    assert_eq!(
        fleet
            .store
            .operation_timeline(&operations[0].id)
            .await
            .unwrap()
            .len(),
        1
    );
    assert_eq!(left(&fleet, &b).await, [other]);
}

pub(crate) async fn what_is_spoken_of_stays<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let put = |number: u32| {
        let mut document = spec("a", &["web", "db"]);
        document.labels.insert("number".to_owned(), number.to_string());
        PutCluster::new(document).with_kubeconfig(secret(&format!("kubeconfig {number}")))
    };
    let a = fleet.store.put_cluster(put(1)).await.unwrap().id;
    let first = run(&fleet, &a, ReconciliationState::Succeeded).await;
    for number in 2..=6 {
        fleet.store.put_cluster(put(number)).await.unwrap();
    }
    // Version 1 is the one that the run and the components speak of.
    let versions = || async {
        let page = PageRequest::default();
        let versions = fleet.store.configurations(&a, &page).await.unwrap();
        versions
            .items
            .iter()
            .map(|version| version.version.0)
            .collect::<Vec<_>>()
    };
    let cleaned = clean(&fleet, &policy()).await;
    assert_eq!((cleaned.configurations, cleaned.kubeconfigs), (3, 3));
    assert_eq!(versions().await, [6, 5, 1]);
    assert_eq!(
        content(&fleet.store.kubeconfig(&a).await.unwrap()),
        "kubeconfig 6"
    );
    // A run that goes on, and one whose worker still ends, are nobody's to remove.
    let plan = fleet.plan(&a, &[("web", &[])]).await;
    let running = fleet.store.begin_reconciliation(plan).await.unwrap().id;
    let claimed = fleet.claim_one().await;
    fleet.advance(200 * DAY_SECONDS);
    let mut plan = fleet.plan(&a, &[("db", &[])]).await;
    plan.supersede = true;
    let newest = fleet.store.begin_reconciliation(plan).await.unwrap().id;
    let cleaned = clean(&fleet, &policy()).await;
    assert_eq!(cleaned.runs, 1, "the first one");
    assert_eq!(left(&fleet, &a).await, [running.clone(), newest.clone()]);
    assert_ne!(first, running);
    assert_eq!(fleet.store.operation(&claimed.id).await.unwrap().id, claimed.id);
    assert_eq!(versions().await, [6, 5], "version 1 is spoken of no more");
    // The last word of that worker lets it go.
    fleet
        .store
        .report(report(&claimed, OperationState::Succeeded))
        .await
        .unwrap();
    assert_eq!(clean(&fleet, &policy()).await.runs, 1);
    assert_eq!(left(&fleet, &a).await, [newest]);
}

pub(crate) async fn a_deleted_cluster_goes_in_the_end<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let mut grown = spec("a", &["web", "db"]);
    grown.labels.insert("env".to_owned(), "prod".to_owned());
    let digest = fleet.store.put_archive(b"chart".to_vec()).await.unwrap();
    grown.components[0].source = evenkeel_core::SourceRef::Archive { digest };
    let put = PutCluster::new(grown).with_kubeconfig(secret("k"));
    let a = fleet.store.put_cluster(put).await.unwrap().id;
    run(&fleet, &a, ReconciliationState::Failed).await;
    run(&fleet, &a, ReconciliationState::Succeeded).await;
    let b = fleet.cluster("b", &["web", "db"]).await;
    run(&fleet, &b, ReconciliationState::Succeeded).await;
    // Softly: nobody finds it by name, its history stays.
    fleet
        .store
        .request_deletion(&a, DeleteMode::Forget)
        .await
        .unwrap();
    let page = PageRequest::default();
    assert!(fleet.store.kubeconfig(&a).await.is_err());
    assert_eq!(left(&fleet, &a).await.len(), 2);
    assert!(fleet.store.status_history(&a, &page).await.unwrap().items.len() > 2);
    fleet.advance(99 * DAY_SECONDS);
    assert_eq!(clean(&fleet, &policy()).await.clusters, 0);
    assert_eq!(fleet.store.cluster(&a).await.unwrap().id, a);
    // In the end: nothing of it is left, and its id is free.
    fleet.advance(2 * DAY_SECONDS);
    assert_eq!(clean(&fleet, &policy()).await.clusters, 1);
    assert!(matches!(
        fleet.store.cluster(&a).await,
        Err(Error::NotFound { .. })
    ));
    assert!(matches!(
        fleet.store.reconciliations(&a, &page).await,
        Err(Error::NotFound { .. })
    ));
    assert_eq!(
        fleet.store.remove_unused_archives(fleet.now(), 10).await.unwrap(),
        1
    );
    let again = PutCluster {
        id: Some(a.clone()),
        ..PutCluster::new(spec("a", &[]))
    };
    assert_eq!(fleet.store.put_cluster(again).await.unwrap().id, a);
    let clusters = fleet
        .store
        .clusters(&ClusterFilter::default(), &page)
        .await
        .unwrap();
    assert_eq!(clusters.items.len(), 2);
    assert_eq!(left(&fleet, &b).await.len(), 1);
}

/// Claims, reports and changes go on while much is removed.
pub(crate) async fn cleaning_disturbs_nobody<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let mut ids = Vec::new();
    for number in 0..4 {
        ids.push(fleet.cluster(&format!("c{number}"), &["web", "db"]).await);
    }
    let ends = [ReconciliationState::Failed, ReconciliationState::Succeeded];
    for round in 0..12 {
        for id in &ids {
            run(&fleet, id, ends[round % 2]).await;
        }
        fleet.advance(60);
    }
    let tight = RetentionPolicy {
        runs: 1,
        run_age: Duration::from_millis(1),
        failed_run_age: Duration::from_millis(1),
        history_age: Duration::from_millis(1),
        ..policy()
    };
    let work = async {
        for _ in 0..5 {
            for id in &ids {
                run(&fleet, id, ReconciliationState::Succeeded).await;
                let change = StatusChange::new(ClusterState::Degraded, ConfigurationVersion(1));
                fleet.store.record_status(id, change).await.unwrap();
            }
        }
    };
    let one = async {
        for _ in 0..20 {
            clean(&fleet, &tight).await;
        }
    };
    let two = async {
        for _ in 0..20 {
            clean(&fleet, &tight).await;
        }
    };
    tokio::join!(work, one, two);
    fleet.advance(60);
    clean(&fleet, &tight).await;
    for id in &ids {
        assert_eq!(left(&fleet, id).await.len(), 1, "the newest");
        let history = fleet
            .store
            .status_history(id, &PageRequest::default())
            .await
            .unwrap();
        assert!(history.items.is_empty());
        assert_eq!(
            fleet.store.cluster(id).await.unwrap().status.state,
            ClusterState::Degraded
        );
    }
    assert!(fleet.store.settled_reconciliations(10).await.unwrap().is_empty());
}
