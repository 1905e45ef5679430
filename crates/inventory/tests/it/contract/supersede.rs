//! A newer run takes the place of the one before: what is equal changes hands with row and id, what still runs is waited
//! for. The predecessor failed here: a newer version waited for the retries of the old one (K45).

use std::time::Duration;

use evenkeel_core::{OperationId, OperationState, OperationStateKind};
use evenkeel_inventory::{Begun, ClaimedOperation, Error, HeartbeatOutcome};

use crate::fixture::*;

/// The next version of cluster `c1`, with `operations` of which some go on as operations that there are.
async fn supersede<B: Backend>(
    fleet: &Fleet<B>,
    components: &[&str],
    operations: &[(&str, &[usize], Option<&OperationId>)],
) -> Begun {
    let id = fleet.put(spec("c1", components)).await.id;
    let plain: Vec<(&str, &[usize])> = operations
        .iter()
        .map(|(name, depends_on, _)| (*name, *depends_on))
        .collect();
    let mut plan = fleet.plan(&id, &plain).await;
    plan.supersede = true;
    for (operation, (_, _, carries)) in plan.operations.iter_mut().zip(operations) {
        operation.carries = carries.cloned();
    }
    fleet.store.begin_reconciliation(plan).await.unwrap()
}

pub(crate) async fn equal_operations_change_hands<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let store = &fleet.store;
    let id = fleet.cluster("c1", &["web", "db", "old"]).await;
    let first = store
        .begin_reconciliation(
            fleet
                .plan(&id, &[("web", &[]), ("db", &[0]), ("old", &[1])])
                .await,
        )
        .await
        .unwrap();
    let web = fleet.claim_one().await;
    let (web_id, db_id) = (&first.operations[0], &first.operations[1]);
    let second = supersede(
        &fleet,
        &["web", "db", "new"],
        &[
            ("new", &[], None),
            ("web", &[], Some(web_id)),
            ("db", &[0, 1], Some(db_id)),
        ],
    )
    .await;
    assert_eq!(&second.operations[1..], [web_id.clone(), db_id.clone()]);

    let operations = store.operations(&second.id).await.unwrap().items;
    let states: Vec<_> = operations
        .iter()
        .map(|item| (item.state.kind(), &item.reconciliation))
        .collect();
    use OperationStateKind::{Pending, Running};
    assert_eq!(
        states,
        [
            (Pending, &second.id),
            (Running, &second.id),
            (Pending, &second.id)
        ]
    );
    assert_eq!(operations[2].depends_on.len(), 2);
    // The run it began with still tells of it, and of what it lost.
    let old = store.operations(&first.id).await.unwrap().items;
    let told: Vec<_> = old
        .iter()
        .map(|item| (item.component.as_str(), item.state.kind()))
        .collect();
    assert_eq!(told[0], ("old", OperationStateKind::Superseded));
    assert_eq!(old.len(), 3);
    assert!(old[1..].iter().all(|item| item.reconciliation == second.id));

    // Its worker goes on as if nothing had happened: heartbeat and report under the id and fence it has.
    let beats = store
        .heartbeat(&[(web.id.clone(), web.lease.fence)], LEASE)
        .await
        .unwrap();
    assert!(matches!(beats[0].outcome, HeartbeatOutcome::Renewed(_)));
    let settled = fleet.succeed(&web).await;
    assert_eq!((&settled.reconciliation, settled.open), (&second.id, 2));
    let new = fleet.claim_one().await;
    assert_eq!(new.component.as_str(), "new");
    assert!(fleet.claims(8).await.operations.is_empty(), "db waits for both");
    fleet.succeed(&new).await;
    let db = fleet.claim_one().await;
    assert_eq!((&db.id, &db.reconciliation), (db_id, &second.id));
    assert_eq!(fleet.succeed(&db).await.open, 0);
}

pub(crate) async fn what_ended_meanwhile_is_made_anew<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let id = fleet.cluster("c1", &["web", "db"]).await;
    let first = fleet
        .store
        .begin_reconciliation(fleet.plan(&id, &[("web", &[]), ("db", &[])]).await)
        .await
        .unwrap();
    let claims = fleet.claims(8).await.operations;
    let web = claims
        .iter()
        .find(|claim| claim.component.as_str() == "web")
        .unwrap();
    fleet.succeed(web).await;
    let web_id = &first.operations[0];
    let second = supersede(&fleet, &["web"], &[("web", &[], Some(web_id))]).await;
    assert_ne!(&second.operations[0], web_id);
    // One that was told to stop is not carried over by the next either.
    let db_id = &first.operations[1];
    let third = supersede(&fleet, &["web", "db"], &[("db", &[], Some(db_id))]).await;
    assert_ne!(&third.operations[0], db_id);
    // Nor does one operation go on as two, or as that of another component.
    let mut twice = fleet.plan(&id, &[("web", &[]), ("db", &[])]).await;
    twice.supersede = true;
    for operation in &mut twice.operations {
        operation.carries = Some(third.operations[0].clone());
    }
    let refused = fleet.store.begin_reconciliation(twice.clone()).await.unwrap_err();
    assert!(matches!(refused, Error::Plan { .. }), "{refused}");
    twice.operations.truncate(1);
    let fourth = fleet.store.begin_reconciliation(twice).await.unwrap();
    assert_ne!(fourth.operations[0], third.operations[0]);
}

pub(crate) async fn a_carried_retry_is_tried_at_once<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let id = fleet.cluster("c1", &["web"]).await;
    let first = fleet
        .store
        .begin_reconciliation(fleet.plan(&id, &[("web", &[])]).await)
        .await
        .unwrap();
    let web = fleet.claim_one().await;
    let later = OperationState::Retrying {
        reason: "no luck".to_owned(),
        next_at: fleet.after(600),
    };
    fleet.report(&web, later).await;
    assert!(fleet.claims(8).await.operations.is_empty());
    let second = supersede(
        &fleet,
        &["web", "db"],
        &[("web", &[], Some(&first.operations[0]))],
    )
    .await;
    let components = fleet.store.components(&id).await.unwrap().items;
    let shown = components
        .iter()
        .find(|item| item.component.as_str() == "web")
        .unwrap();
    assert_eq!(shown.operation.as_ref().unwrap().state, OperationState::Pending);
    let again = fleet.claim_one().await;
    assert_eq!((&again.id, again.attempt), (&second.operations[0], 2));
}

pub(crate) async fn a_new_operation_waits_for_the_former<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let store = &fleet.store;
    let id = fleet.cluster("c1", &["web"]).await;
    store
        .begin_reconciliation(fleet.plan(&id, &[("web", &[])]).await)
        .await
        .unwrap();
    let hooked = fleet.claim_one().await;
    supersede(&fleet, &["web", "db"], &[("web", &[], None), ("db", &[0], None)]).await;
    // Whichever run it is of.
    let third = supersede(
        &fleet,
        &["web", "db", "x"],
        &[("web", &[], None), ("db", &[0], None)],
    )
    .await;
    let waiting = store.operation(&third.operations[0]).await.unwrap().state;
    let OperationState::Waiting { reason, deadline } = &waiting else {
        panic!("{waiting:?}");
    };
    assert!(reason.contains(&hooked.id.to_string()), "{reason}");
    assert_eq!(*deadline, fleet.after(3_600));
    let components = store.components(&id).await.unwrap().items;
    let shown = components
        .iter()
        .find(|item| item.component.as_str() == "web")
        .unwrap();
    assert_eq!(shown.operation.as_ref().unwrap().state, waiting);
    assert!(fleet.claims(8).await.operations.is_empty());

    fleet.succeed(&hooked).await;
    let web = fleet.claim_one().await;
    assert_eq!((&web.id, web.attempt), (&third.operations[0], 1));
    fleet.succeed(&web).await;
    assert_eq!(fleet.claim_one().await.id, third.operations[1]);
}

pub(crate) async fn the_former_ends_with_its_lease<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let id = fleet.cluster("c1", &["web"]).await;
    fleet
        .store
        .begin_reconciliation(fleet.plan(&id, &[("web", &[])]).await)
        .await
        .unwrap();
    let dead = fleet.claim_one().await;
    let second = supersede(&fleet, &["web", "db"], &[("web", &[], None)]).await;
    fleet.advance(16);
    let claims = fleet.claims(8).await;
    assert_eq!(claims.settled[0].operation, dead.id);
    assert_eq!(claims.operations[0].id, second.operations[0]);
    assert!(claims.operations[0].lease.fence > dead.lease.fence);
}

pub(crate) async fn who_waits_for_the_former_keeps_its_dependencies<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let store = &fleet.store;
    let id = fleet.cluster("c1", &["db", "web"]).await;
    store
        .begin_reconciliation(fleet.plan(&id, &[("web", &[])]).await)
        .await
        .unwrap();
    let former = fleet.claim_one().await;
    let second = supersede(
        &fleet,
        &["db", "web", "x"],
        &[("db", &[], None), ("web", &[0], None)],
    )
    .await;
    // The third goes on with what the second had, and has something new before it.
    let third = supersede(
        &fleet,
        &["db", "web", "y"],
        &[
            ("y", &[], None),
            ("db", &[], Some(&second.operations[0])),
            ("web", &[0, 1], Some(&second.operations[1])),
        ],
    )
    .await;
    let web = store.operation(&third.operations[2]).await.unwrap();
    assert_eq!(web.id, second.operations[1]);
    assert_eq!(web.state.kind(), OperationStateKind::Waiting);
    assert_eq!(web.depends_on.len(), 2);

    fleet.succeed(&former).await;
    let claims = fleet.claims(8).await.operations;
    let mut names: Vec<_> = claims.iter().map(|claim| claim.component.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["db", "y"], "web has to wait for both");
    for claim in &claims {
        assert!(fleet.claims(8).await.operations.is_empty());
        fleet.succeed(claim).await;
    }
    let web = fleet.claim_one().await;
    assert_eq!((&web.id, web.attempt), (&third.operations[2], 1));
    assert_eq!(fleet.succeed(&web).await.open, 0);
}

/// Two operations that wait for former ones until the same deadline, the second of which depends on the first.
async fn waiting_for_hooks<B: Backend>(fleet: &Fleet<B>) -> (Vec<ClaimedOperation>, Begun) {
    let id = fleet.cluster("c1", &["web", "db"]).await;
    fleet
        .store
        .begin_reconciliation(fleet.plan(&id, &[("web", &[]), ("db", &[])]).await)
        .await
        .unwrap();
    let hooked = fleet.claims(8).await.operations;
    assert_eq!(hooked.len(), 2);
    let second = supersede(
        fleet,
        &["web", "db", "x"],
        &[("web", &[], None), ("db", &[0], None)],
    )
    .await;
    (hooked, second)
}

pub(crate) async fn what_ended_with_another_is_not_ended_again<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let store = &fleet.store;
    let (hooked, second) = waiting_for_hooks(&fleet).await;
    let held: Vec<_> = hooked
        .iter()
        .map(|operation| (operation.id.clone(), operation.lease.fence))
        .collect();
    store.heartbeat(&held, Duration::from_secs(7_200)).await.unwrap();
    fleet.advance(3_601);
    let claims = fleet.claims(8).await;
    assert!(claims.operations.is_empty());
    let [web, db] = &second.operations[..] else {
        panic!("{second:?}")
    };
    let [settled] = &claims.settled[..] else {
        panic!("{:?}", claims.settled)
    };
    let skipped: Vec<&str> = settled.skipped.iter().map(|name| name.as_str()).collect();
    assert_eq!(
        (&settled.operation, settled.state, &skipped[..], settled.open),
        (web, OperationStateKind::Failed, &["db"][..], 0)
    );
    let state = store.operation(db).await.unwrap().state;
    assert!(matches!(state, OperationState::Skipped { .. }), "{state:?}");
}

/// What they waited for came no later than the deadline.
pub(crate) async fn who_is_let_go_on_at_the_deadline_does<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let store = &fleet.store;
    let (hooked, second) = waiting_for_hooks(&fleet).await;
    fleet.advance(3_601);
    let claims = fleet.claims(8).await;
    let mut ended: Vec<_> = claims.settled.iter().map(|settled| &settled.operation).collect();
    ended.sort();
    let mut former: Vec<_> = hooked.iter().map(|operation| &operation.id).collect();
    former.sort();
    assert_eq!(ended, former);
    let [web, db] = &second.operations[..] else {
        panic!("{second:?}")
    };
    let [claimed] = &claims.operations[..] else {
        panic!("{:?}", claims.operations)
    };
    assert_eq!(&claimed.id, web);
    let state = store.operation(db).await.unwrap().state;
    assert_eq!(state, OperationState::Pending, "it depends on the other");
    fleet.succeed(claimed).await;
    assert_eq!(&fleet.claim_one().await.id, db);
}
