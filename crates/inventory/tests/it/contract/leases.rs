//! Who may work on an operation, until when, and what becomes of those who may no longer.

use evenkeel_core::OperationState;
use evenkeel_inventory::{Error, Heartbeat, HeartbeatOutcome, Level};
use jiff::{SignedDuration, Timestamp};

use super::queue::{entry, retrying};
use crate::fixture::*;

pub(crate) async fn fences_grow<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let (a, b) = (
        fleet.cluster("a", &["web"]).await,
        fleet.cluster("b", &["web"]).await,
    );
    let mut last = fence(0);
    for _ in 0..3 {
        let mut plan = fleet.plan(&a, &[("web", &[])]).await;
        plan.supersede = true;
        fleet.store.begin_reconciliation(plan).await.unwrap();
        for _ in 0..2 {
            let claimed = fleet.claim_one().await;
            assert!(claimed.lease.fence > last);
            last = claimed.lease.fence;
            fleet.report(&claimed, retrying(&fleet, 0)).await;
        }
        let claimed = fleet.claim_one().await;
        assert_eq!(claimed.attempt, 3);
        last = claimed.lease.fence;
        fleet.succeed(&claimed).await;
    }
    fleet
        .store
        .begin_reconciliation(fleet.plan(&b, &[("web", &[])]).await)
        .await
        .unwrap();
    assert_eq!(
        fleet.claim_one().await.lease.fence,
        fence(1),
        "each cluster has its own"
    );
}

/// QDB-04.
pub(crate) async fn a_paused_worker_cannot_overwrite<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let id = fleet.cluster("c1", &["web"]).await;
    fleet
        .store
        .begin_reconciliation(fleet.plan(&id, &[("web", &[])]).await)
        .await
        .unwrap();
    let paused = fleet.claim_one().await;
    fleet.advance(45);
    let other = fleet.claim_one().await;
    assert_eq!((&other.id, other.attempt), (&paused.id, 2));
    let beats = fleet
        .store
        .heartbeat(&[(paused.id.clone(), paused.lease.fence)], LEASE)
        .await
        .unwrap();
    assert_eq!(beats[0].outcome, HeartbeatOutcome::Lost);
    let mut progress = report(&paused, OperationState::Running);
    progress.timeline.push(entry(&fleet, "still here"));
    for late in [
        progress,
        report(&paused, OperationState::Succeeded),
        report(&paused, failed("x")),
    ] {
        let error = fleet.store.report(late).await.unwrap_err();
        assert!(
            matches!(&error, Error::LeaseLost { current, fence, .. } if *current == other.lease.fence && *fence == paused.lease.fence),
            "{error}"
        );
    }
    fleet.report(&other, failed("no luck")).await;
    let error = fleet
        .store
        .report(report(&paused, OperationState::Succeeded))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::LeaseLost { .. }), "{error}");
    assert_eq!(
        fleet.store.operation(&paused.id).await.unwrap().state,
        failed("no luck")
    );
    let said = fleet.store.operation_timeline(&paused.id).await.unwrap();
    assert!(said.iter().all(|entry| entry.message != "still here"));
}

pub(crate) async fn an_expired_lease_returns_the_work<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let id = fleet.cluster("c1", &["web"]).await;
    fleet
        .store
        .begin_reconciliation(fleet.plan(&id, &[("web", &[])]).await)
        .await
        .unwrap();
    let first = fleet.claim_one().await;
    let claims = fleet.claims(8).await;
    assert!(claims.operations.is_empty());
    assert_eq!(claims.next_at, Some(first.lease.until), "when to look again");
    fleet.advance(14);
    assert!(fleet.claims(8).await.operations.is_empty());
    fleet.advance(1);
    let second = fleet.claim_one().await;
    assert_eq!((&second.id, second.attempt), (&first.id, 2));
    let operation = fleet.store.operation(&first.id).await.unwrap();
    assert_eq!(operation.lease, Some(("w1".to_owned(), second.lease.until)));
    let said = fleet.store.operation_timeline(&first.id).await.unwrap();
    assert!(
        said[0].level == Level::Warning
            && said[0].message.contains("worker w1")
            && said[0].message.contains("attempt 1"),
        "{said:?}"
    );
}

pub(crate) async fn heartbeats_keep_the_lease<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let id = fleet.cluster("c1", &["web", "db"]).await;
    fleet
        .store
        .begin_reconciliation(fleet.plan(&id, &[("web", &[]), ("db", &[])]).await)
        .await
        .unwrap();
    let claimed = fleet.claims(8).await.operations;
    let unknown = (
        evenkeel_core::OperationId::new(id.clone(), uuid::Uuid::nil()),
        fence(1),
    );
    for _ in 0..10 {
        fleet.advance(10);
        let mine: Vec<_> = claimed
            .iter()
            .map(|claim| (claim.id.clone(), claim.lease.fence))
            .chain([unknown.clone()])
            .collect();
        let beats = fleet.store.heartbeat(&mine, LEASE).await.unwrap();
        for (beat, claim) in beats.iter().zip(&claimed) {
            let Heartbeat {
                operation,
                outcome: HeartbeatOutcome::Renewed(lease),
            } = beat
            else {
                panic!("{beat:?}")
            };
            assert_eq!(
                (operation, lease.fence, lease.until),
                (&claim.id, claim.lease.fence, fleet.after(15))
            );
        }
        assert_eq!(beats[2].outcome, HeartbeatOutcome::Lost);
        assert!(fleet.claims(8).await.operations.is_empty());
    }
    fleet.succeed(&claimed[0]).await;
    let beats = fleet
        .store
        .heartbeat(&[(claimed[0].id.clone(), claimed[0].lease.fence)], LEASE)
        .await
        .unwrap();
    assert_eq!(beats[0].outcome, HeartbeatOutcome::Lost, "it is over");
    assert!(fleet.store.heartbeat(&[], LEASE).await.unwrap().is_empty());
}

pub(crate) async fn a_higher_fence_at_the_target_is_taken_over<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let id = fleet.cluster("c1", &["web"]).await;
    fleet
        .store
        .begin_reconciliation(fleet.plan(&id, &[("web", &[])]).await)
        .await
        .unwrap();
    let claimed = fleet.claim_one().await;
    let web = "web".parse().unwrap();
    fleet.store.raise_fence(&id, &web, fence(41)).await.unwrap();
    fleet.store.raise_fence(&id, &web, fence(7)).await.unwrap();
    fleet.report(&claimed, OperationState::Pending).await;
    assert_eq!(fleet.claim_one().await.lease.fence, fence(42));
    let unknown = "nothing".parse().unwrap();
    assert!(matches!(
        fleet.store.raise_fence(&id, &unknown, fence(1)).await,
        Err(Error::NotFound { .. })
    ));
}

/// QDB-08: whatever was committed is there again, and nobody has to unlock anything.
pub(crate) async fn a_crash_loses_nothing<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let id = fleet.cluster("c1", &["a", "b", "c"]).await;
    let plan = fleet.plan(&id, &[("a", &[]), ("b", &[0]), ("c", &[1])]).await;
    let run = fleet.store.begin_reconciliation(plan).await.unwrap();
    let a = fleet.claim_one().await;
    fleet.succeed(&a).await;
    let b = fleet.claim_one().await;
    let fleet = fleet.crash().await;
    let running = fleet.store.running_reconciliation(&id).await.unwrap().unwrap();
    assert_eq!(running.id, run.id);
    assert!(
        fleet.claims(8).await.operations.is_empty(),
        "b's lease still counts: its worker may live"
    );
    fleet.advance(15);
    let again = fleet.claim_one().await;
    assert_eq!((&again.id, again.attempt), (&b.id, 2));
    assert!(again.lease.fence > b.lease.fence);
    let fleet = fleet.crash().await;
    assert_eq!(
        fleet.succeed(&again).await.open,
        1,
        "the claim outlives the process that granted it"
    );
    let c = fleet.claim_one().await;
    assert_eq!(fleet.succeed(&c).await.open, 0);
}

/// Whoever holds a lease compares its end with the present before each write. The store tells the time that this is done
/// in; a machine's own clock may be an hour off.
pub(crate) async fn leases_are_in_the_time_that_the_store_tells<B: Backend>() {
    for hours in [-1, 0, 1] {
        let fleet =
            Fleet::<B>::as_shipped(evenkeel_telemetry::time::now() + SignedDuration::from_hours(hours)).await;
        let clock = fleet.store.clock();
        let id = fleet.cluster("c1", &["web"]).await;
        let mut plan = fleet.plan(&id, &[("web", &[])]).await;
        plan.deadline = clock.now() + SignedDuration::from_hours(1);
        fleet.store.begin_reconciliation(plan).await.unwrap();

        let lease = SignedDuration::try_from(LEASE).unwrap();
        let ends_between = |before: Timestamp, until: Timestamp, after: Timestamp| {
            // The database keeps milliseconds, and a server that answers slowly is known less exactly; hours it is not off.
            let askew = SignedDuration::from_mins(1);
            assert!(
                before + lease - askew <= until && until <= after + lease + askew,
                "{hours} h: {before} + {lease:#} <= {until} <= {after} + {lease:#}"
            );
        };
        let before = clock.now();
        let claimed = fleet.claim_one().await;
        ends_between(before, claimed.lease.until, clock.now());
        let before = clock.now();
        let beats = [(claimed.id.clone(), claimed.lease.fence)];
        let beats = fleet.store.heartbeat(&beats, LEASE).await.unwrap();
        let HeartbeatOutcome::Renewed(renewed) = beats[0].outcome else {
            panic!("{beats:?}")
        };
        ends_between(before, renewed.until, clock.now());
    }
}
