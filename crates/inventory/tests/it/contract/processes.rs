//! Processes and their chores (K29).

use std::time::Duration;

use evenkeel_inventory::{Chore, Instance, Role, Signal};
use uuid::Uuid;

use crate::fixture::*;

const EVERY: Duration = Duration::from_secs(60);

fn instance(number: u128) -> Instance {
    Instance {
        id: Uuid::from_u128(number),
        host: format!("host-{number}"),
        version: "0.1.0".to_owned(),
        role: if number == 2 { Role::Worker } else { Role::All },
        draining: false,
    }
}

pub(crate) async fn processes_are_seen_and_forgotten<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let begin = fleet.now();
    let mut changed = fleet.store.signals().subscribe(Signal::InstancesChanged);
    fleet.store.note_instance(&instance(1)).await.unwrap();
    assert!(changed.changed().await, "one that is new is told of");
    fleet.advance(5);
    fleet.store.note_instance(&instance(2)).await.unwrap();
    fleet.advance(5);
    let draining = Instance {
        draining: true,
        ..instance(1)
    };
    fleet.store.note_instance(&draining).await.unwrap();
    let seen = fleet.store.instances(begin).await.unwrap();
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0].instance, draining);
    assert_eq!((seen[0].started_at, seen[0].last_seen_at), (begin, fleet.now()));
    assert_eq!(seen[1].instance, instance(2));
    // The second was silent for longer.
    let seen = fleet.store.instances(fleet.after(-1)).await.unwrap();
    assert_eq!(seen.len(), 1);
    fleet.store.forget_instances(fleet.after(-1)).await.unwrap();
    assert_eq!(fleet.store.instances(begin).await.unwrap().len(), 1);
    fleet.store.forget_instance(Uuid::from_u128(1)).await.unwrap();
    assert!(fleet.store.instances(begin).await.unwrap().is_empty());
}

pub(crate) async fn a_chore_is_done_by_one<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let take = |owner: u128| {
        fleet
            .store
            .take_chore(Chore::Clean, Uuid::from_u128(owner), LEASE, EVERY)
    };
    let takers = (0..8).map(take);
    let taken: Vec<_> = futures::future::join_all(takers)
        .await
        .into_iter()
        .filter_map(Result::unwrap)
        .collect();
    let [first] = taken[..] else { panic!("{taken:?}") };
    // Another chore is another's.
    let sync = fleet
        .store
        .take_chore(Chore::Sync, Uuid::from_u128(9), LEASE, EVERY)
        .await
        .unwrap();
    assert!(sync.is_some());
    // Kept, it stays; its holder gone, somebody else takes it, and the old fence is worth nothing.
    fleet.advance(10);
    let kept = fleet
        .store
        .keep_chore(Chore::Clean, first.fence, LEASE)
        .await
        .unwrap()
        .unwrap();
    assert!(kept.until > first.until);
    assert!(take(1).await.unwrap().is_none());
    fleet.advance(16);
    let second = take(2).await.unwrap().unwrap();
    assert!(second.fence > first.fence);
    let lost = fleet
        .store
        .keep_chore(Chore::Clean, first.fence, LEASE)
        .await
        .unwrap();
    assert_eq!(lost, None);
    fleet
        .store
        .end_chore(Chore::Clean, first.fence, true)
        .await
        .unwrap();
    assert!(take(3).await.unwrap().is_none(), "the second still has it");
    // Given back undone it is free at once; done, only after its pause.
    fleet
        .store
        .end_chore(Chore::Clean, second.fence, false)
        .await
        .unwrap();
    let third = take(3).await.unwrap().unwrap();
    fleet
        .store
        .end_chore(Chore::Clean, third.fence, true)
        .await
        .unwrap();
    fleet.advance(59);
    assert!(take(4).await.unwrap().is_none());
    fleet.advance(1);
    assert!(take(4).await.unwrap().is_some());
}
