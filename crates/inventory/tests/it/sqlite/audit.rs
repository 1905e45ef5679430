//! What somebody with the file in hand can do to the audit log: nothing that is not noticed.

use evenkeel_core::Digest;
use evenkeel_telemetry::request::scope;

use super::meddle;
use crate::fixture::*;

#[tokio::test]
async fn whatever_is_changed_is_noticed() {
    for (damage, number, problem) in [
        ("UPDATE audit SET actor = 'nobody' WHERE number = 3", 3, "changed"),
        ("UPDATE audit SET at = at + 1 WHERE number = 1", 1, "changed"),
        ("UPDATE audit SET detail = '{}' WHERE number = 5", 5, "changed"),
        (
            "UPDATE audit SET request_id = NULL WHERE number = 2",
            2,
            "changed",
        ),
        (
            "UPDATE audit SET digest = zeroblob(32) WHERE number = 2",
            2,
            "changed",
        ),
        (
            "UPDATE audit SET target = 'cluster/c9' WHERE number = 4",
            4,
            "changed",
        ),
        ("DELETE FROM audit WHERE number = 1", 1, "missing"),
        ("DELETE FROM audit WHERE number = 3", 3, "missing"),
        ("DELETE FROM audit WHERE number = 5", 5, "missing"),
        ("DELETE FROM audit_ends", 0, "head is missing"),
        ("UPDATE audit_ends SET number = 4", 4, "head was changed"),
        (
            "UPDATE audit_ends SET number = 4, digest = (SELECT digest FROM audit WHERE number = 4)",
            4,
            "head was changed",
        ),
        // A beginning may be gone, but only when we took it.
        (
            "INSERT INTO audit_ends SELECT 'anchor', number, digest, digest FROM audit WHERE number = 2",
            2,
            "anchor was changed",
        ),
        (
            "UPDATE audit SET number = CASE number WHEN 2 THEN -3 WHEN 3 THEN -2 ELSE number END; UPDATE audit SET number = abs(number)",
            2,
            "changed",
        ),
    ] {
        let fleet = Fleet::<Sqlite>::new().await;
        for number in 0..5 {
            scope(format!("r-{number}"), fleet.cluster(&format!("c{number}"), &[])).await;
        }
        let path = fleet.backend.directory.path().join("db");
        for statement in damage.split("; ") {
            meddle(&path, statement).await;
        }
        let fault = fleet.store.verify_audit(None).await.unwrap().fault.expect(damage);
        assert_eq!(fault.number, number, "{damage}: {fault}");
        assert!(fault.problem.contains(problem), "{damage}: {fault}");
        // It is no reason to stop.
        if !damage.contains("audit_ends") {
            scope("r".to_owned(), fleet.cluster("late", &[])).await;
        }
    }
}

/// An older copy of the end is as good as the newer one; who wrote down the newer one notices.
#[tokio::test]
async fn an_end_that_was_cut_off_is_noticed_by_who_wrote_it_down() {
    let fleet = Fleet::<Sqlite>::new().await;
    let path = fleet.backend.directory.path().join("db");
    scope("r-1".to_owned(), fleet.cluster("a", &[])).await;
    meddle(&path, "CREATE TABLE saved AS SELECT * FROM audit_ends").await;
    scope("r-2".to_owned(), fleet.cluster("b", &[])).await;
    let head = fleet.store.verify_audit(None).await.unwrap().head;
    let known = (head.0, head.1.unwrap());
    assert_eq!(fleet.store.verify_audit(Some(known)).await.unwrap().fault, None);
    meddle(&path, "DELETE FROM audit WHERE number = 2").await;
    meddle(&path, "DELETE FROM audit_ends").await;
    meddle(&path, "INSERT INTO audit_ends SELECT * FROM saved").await;
    assert_eq!(fleet.store.verify_audit(None).await.unwrap().fault, None);
    let fault = fleet
        .store
        .verify_audit(Some(known))
        .await
        .unwrap()
        .fault
        .unwrap();
    assert!(fault.problem.contains("cut off"), "{fault}");
    scope("r-3".to_owned(), fleet.cluster("c", &[])).await;
    let fault = fleet
        .store
        .verify_audit(Some(known))
        .await
        .unwrap()
        .fault
        .unwrap();
    assert!(fault.problem.contains("not the one"), "{fault}");
    assert_ne!(known.1, Digest::of(""));
}
