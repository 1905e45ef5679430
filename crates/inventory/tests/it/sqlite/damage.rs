//! Rows that cannot be read: each fails alone.

use evenkeel_core::{ClusterId, ClusterState, ConfigurationVersion, OperationState};
use evenkeel_inventory::{CheckNote, ClusterFilter, Clusters as _, Error, PageRequest, StatusChange};

use super::meddle;
use crate::fixture::*;

async fn three() -> (Fleet<Sqlite>, Vec<ClusterId>, std::path::PathBuf) {
    let fleet = Fleet::<Sqlite>::new().await;
    let mut ids = Vec::new();
    for name in ["a", "b", "c"] {
        let id = fleet.cluster(name, &["web"]).await;
        let change = StatusChange {
            reason: Some("fine".to_owned()),
            ..StatusChange::new(ClusterState::Ready, ConfigurationVersion(1))
        };
        fleet.store.record_status(&id, change).await.unwrap();
        ids.push(id);
    }
    let path = fleet.backend.directory.path().join("db");
    (fleet, ids, path)
}

#[tokio::test]
async fn a_bad_row_does_not_spoil_the_list() {
    for damage in [
        "UPDATE cluster_status SET state = 'fabulous' WHERE name = 'b'",
        "UPDATE cluster_status SET reason = x'00' WHERE name = 'b'",
        "UPDATE cluster_status SET reason = (SELECT reason FROM cluster_status WHERE name = 'a') WHERE name = 'b'",
        "UPDATE cluster_status SET due_lane = 77 WHERE name = 'b'",
        "UPDATE cluster_status SET observed_version = -1 WHERE name = 'b'",
        "UPDATE clusters SET labels = '[' WHERE name = 'b'",
        "UPDATE clusters SET deletion_requested_at = 5, deletion_mode = 'somehow' WHERE name = 'b'",
    ] {
        let (fleet, ids, path) = three().await;
        assert_eq!(meddle(&path, damage).await, 1);
        let page = fleet
            .store
            .clusters(&ClusterFilter::default(), &PageRequest::default())
            .await
            .unwrap();
        let names: Vec<_> = page.items.iter().map(|cluster| cluster.name.as_str()).collect();
        assert_eq!(names, ["a", "c"], "{damage}");
        assert_eq!(page.failed[0].row, ids[1].as_str());
        assert!(
            matches!(page.failed[0].error, Error::Unreadable { .. }),
            "{:?}",
            page.failed
        );
        assert!(fleet.store.cluster(&ids[1]).await.is_err());
        assert!(fleet.store.cluster(&ids[0]).await.is_ok());
        // One row a page: the bad one does not end the walk either.
        let first = fleet
            .store
            .clusters(&ClusterFilter::default(), &PageRequest::first(1))
            .await
            .unwrap();
        let second = PageRequest::after(first.next.unwrap(), 1);
        let second = fleet
            .store
            .clusters(&ClusterFilter::default(), &second)
            .await
            .unwrap();
        assert_eq!((second.items.len(), second.failed.len()), (0, 1));
        let third = PageRequest::after(second.next.unwrap(), 1);
        assert_eq!(
            fleet
                .store
                .clusters(&ClusterFilter::default(), &third)
                .await
                .unwrap()
                .items
                .len(),
            1
        );
    }
}

#[tokio::test]
async fn a_bad_row_does_not_stop_the_scheduler() {
    let (fleet, ids, path) = three().await;
    assert_eq!(
        meddle(
            &path,
            "UPDATE cluster_status SET name = 'No Name!' WHERE name = 'b'"
        )
        .await,
        1
    );
    let batch = fleet.store.due_clusters(8).await.unwrap();
    assert_eq!((batch.due.len(), batch.failed.len()), (2, 1));
    assert_eq!(batch.failed[0].row, ids[1].as_str());
    let notes: Vec<_> = batch
        .due
        .iter()
        .map(|due| CheckNote {
            cluster: due.id.clone(),
            stamp: due.stamp,
            checked_at: fleet.now(),
            next_due_at: fleet.after(60),
        })
        .collect();
    fleet.store.note_checks(&notes).await.unwrap();
    assert_eq!(fleet.store.due_clusters(8).await.unwrap().due.len(), 0);
    // A status nobody can read keeps that cluster from a run, and only that one.
    meddle(
        &path,
        "UPDATE cluster_status SET state = 'fabulous' WHERE name = 'No Name!'",
    )
    .await;
    for (index, id) in ids.iter().enumerate() {
        let plan = match index {
            1 => {
                let mut plan = fleet.plan(&ids[0], &[]).await;
                plan.cluster = id.clone();
                plan
            }
            _ => fleet.plan(id, &[("web", &[])]).await,
        };
        assert_eq!(fleet.store.begin_reconciliation(plan).await.is_ok(), index != 1);
    }
    assert_eq!(fleet.claims(8).await.operations.len(), 2);
}

#[tokio::test]
async fn a_reason_nobody_can_read_is_replaced() {
    let (fleet, ids, path) = three().await;
    meddle(
        &path,
        "UPDATE cluster_status SET reason = x'e701' WHERE name = 'b'",
    )
    .await;
    assert!(fleet.store.cluster(&ids[1]).await.is_err());
    let change = StatusChange::new(ClusterState::Degraded, ConfigurationVersion(1));
    fleet.store.record_status(&ids[1], change).await.unwrap();
    assert_eq!(
        fleet.store.cluster(&ids[1]).await.unwrap().status.state,
        ClusterState::Degraded
    );
    let history = fleet
        .store
        .status_history(&ids[1], &PageRequest::default())
        .await
        .unwrap();
    assert_eq!(history.items[0].reason.as_deref(), Some("(unreadable)"));
}

#[tokio::test]
async fn a_bad_operation_fails_alone_and_is_not_claimed_for_ever() {
    for damage in [
        "UPDATE operations SET cause = x'00' WHERE component = 'b'",
        "UPDATE operations SET kind = 'dance' WHERE component = 'b'",
        "UPDATE operations SET version = -1 WHERE component = 'b'",
        "UPDATE operations SET due_lane = -3 WHERE component = 'b'",
    ] {
        let fleet = Fleet::<Sqlite>::new().await;
        let id = fleet.cluster("c1", &["a", "b", "c", "d"]).await;
        let plan = fleet
            .plan(&id, &[("a", &[]), ("b", &[]), ("c", &[1]), ("d", &[])])
            .await;
        let run = fleet.store.begin_reconciliation(plan).await.unwrap().id;
        assert_eq!(
            meddle(&fleet.backend.directory.path().join("db"), damage).await,
            1
        );
        let claims = fleet.claims(8).await;
        let names: Vec<_> = claims
            .operations
            .iter()
            .map(|claim| claim.component.as_str())
            .collect();
        assert_eq!(names, ["a", "d"], "{damage}");
        let [settled] = &claims.settled[..] else {
            panic!("{claims:?}")
        };
        assert_eq!((settled.component.as_str(), settled.open), ("b", 2));
        assert_eq!(settled.skipped[0].as_str(), "c");
        for claim in &claims.operations {
            fleet.succeed(claim).await;
        }
        assert!(fleet.claims(8).await.operations.is_empty());
        assert_eq!(
            fleet.store.settled_reconciliations(8).await.unwrap(),
            std::slice::from_ref(&run)
        );
        let page = fleet.store.operations(&run).await.unwrap();
        assert_eq!(page.items.len() + page.failed.len(), 4, "{damage}");
    }
}

#[tokio::test]
async fn an_operation_in_an_unknown_state_ends() {
    let fleet = Fleet::<Sqlite>::new().await;
    let id = fleet.cluster("c1", &["a", "b"]).await;
    let plan = fleet.plan(&id, &[("a", &[]), ("b", &[])]).await;
    let run = fleet.store.begin_reconciliation(plan).await.unwrap().id;
    let claims = fleet.claims(8).await.operations;
    let path = fleet.backend.directory.path().join("db");
    meddle(
        &path,
        "UPDATE operations SET state = 'floating' WHERE component = 'b'",
    )
    .await;
    let (a, b) = (&claims[0], &claims[1]);
    let answers = fleet
        .store
        .report_all(vec![
            report(b, OperationState::Succeeded),
            report(a, OperationState::Succeeded),
        ])
        .await
        .unwrap();
    assert!(answers[0].is_err() && answers[1].is_ok());
    fleet.advance(60);
    let claims = fleet.claims(8).await;
    assert_eq!(claims.settled[0].component.as_str(), "b");
    assert_eq!(fleet.store.settled_reconciliations(8).await.unwrap(), [run]);
}

#[tokio::test]
async fn one_bad_configuration_leaves_the_others() {
    let (fleet, ids, path) = three().await;
    fleet.put(spec("b", &["web", "db"])).await;
    meddle(
        &path,
        "UPDATE cluster_configurations SET spec = x'e701' WHERE version = 1",
    )
    .await;
    assert!(fleet.store.newest_configuration(&ids[0]).await.is_err());
    assert!(fleet.store.newest_configuration(&ids[1]).await.is_ok());
    // A new version needs nothing of the old one.
    fleet.put(spec("a", &["web", "db"])).await;
    assert!(fleet.store.newest_configuration(&ids[0]).await.is_ok());
    let error = fleet
        .store
        .configuration(&ids[0], ConfigurationVersion(1))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Unreadable { .. }), "{error}");
    assert!(fleet.backend.store.cluster(&ids[0]).await.is_ok());
}

#[tokio::test]
async fn a_changed_archive_is_not_served() {
    let fleet = Fleet::<Sqlite>::new().await;
    let (one, two) = (
        fleet.store.put_archive(b"one".to_vec()).await.unwrap(),
        fleet.store.put_archive(b"two".to_vec()).await.unwrap(),
    );
    let path = fleet.backend.directory.path().join("db");
    meddle(
        &path,
        "UPDATE archives SET content = CAST('evil' AS BLOB) WHERE content = CAST('one' AS BLOB)",
    )
    .await;
    assert!(matches!(
        fleet.store.archive(&one).await,
        Err(Error::Unreadable { .. })
    ));
    assert_eq!(fleet.store.archive(&two).await.unwrap(), b"two");
}
