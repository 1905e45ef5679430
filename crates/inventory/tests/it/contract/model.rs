//! Random moves of workers, time and planners against the queue, with its promises checked after each.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_core::{
    ClusterId, ComponentName, Fence, OperationId, OperationState, OperationStateKind, Transition as _,
};
use evenkeel_inventory::{ClaimedOperation, Error, HeartbeatOutcome};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

use crate::fixture::*;

const CLUSTERS: usize = 2;
const COMPONENTS: [&str; 4] = ["a", "b", "c", "d"];
/// Each component may wait for those before it.
const DEPENDS: [&[usize]; 4] = [&[], &[0], &[0], &[1, 2]];
const RUNS: usize = 48;
const MOVES: usize = 60;

#[derive(Clone, Debug)]
enum Move {
    Begin { cluster: usize },
    Claim { limit: u32 },
    Report { worker: usize, outcome: u8 },
    Heartbeat { worker: usize },
    Advance { seconds: i64 },
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let step = prop_oneof![
        2 => (0..CLUSTERS).prop_map(|cluster| Move::Begin { cluster }),
        4 => (1..4_u32).prop_map(|limit| Move::Claim { limit }),
        6 => (any::<prop::sample::Index>(), 0..6_u8).prop_map(|(worker, outcome)| Move::Report { worker: worker.index(32), outcome }),
        2 => any::<prop::sample::Index>().prop_map(|worker| Move::Heartbeat { worker: worker.index(32) }),
        3 => (0..20_i64).prop_map(|seconds| Move::Advance { seconds }),
    ];
    prop::collection::vec(step, 1..MOVES)
}

/// What the model remembers: every claim ever made, by whoever may still speak of it.
#[derive(Default)]
struct Memory {
    claims: Vec<ClaimedOperation>,
    fences: BTreeMap<(ClusterId, ComponentName), Fence>,
    finals: BTreeMap<OperationId, OperationStateKind>,
}

impl Memory {
    /// The newest claim of an operation is the only one that may be heard.
    fn is_newest(&self, claim: &ClaimedOperation) -> bool {
        let mut same = self.claims.iter().filter(|other| other.id == claim.id);
        same.all(|other| other.lease.fence <= claim.lease.fence)
    }
}

pub(crate) async fn the_queue_keeps_its_promises<B: Backend>() {
    let mut runner = TestRunner::default();
    for _ in 0..RUNS {
        let moves = moves().new_tree(&mut runner).unwrap().current();
        run::<B>(&moves).await;
    }
}

async fn run<B: Backend>(moves: &[Move]) {
    let fleet = Fleet::<B>::new().await;
    let mut ids = Vec::new();
    for number in 0..CLUSTERS {
        ids.push(fleet.cluster(&format!("c{number}"), &COMPONENTS).await);
    }
    let mut memory = Memory::default();
    for (number, step) in moves.iter().enumerate() {
        apply(&fleet, &ids, step, &mut memory).await;
        check(
            &fleet,
            &ids,
            &mut memory,
            &format!("after move {number} of {moves:?}"),
        )
        .await;
    }
    drain(&fleet, &ids, moves).await;
}

async fn apply<B: Backend>(fleet: &Fleet<B>, ids: &[ClusterId], step: &Move, memory: &mut Memory) {
    match *step {
        Move::Begin { cluster } => {
            let operations: Vec<_> = COMPONENTS.iter().copied().zip(DEPENDS).collect();
            let mut plan = fleet.plan(&ids[cluster], &operations).await;
            plan.supersede = true;
            fleet.store.begin_reconciliation(plan).await.unwrap();
        }
        Move::Claim { limit } => {
            for claim in fleet.claims(limit).await.operations {
                let key = (claim.cluster.clone(), claim.component.clone());
                let last = memory.fences.insert(key, claim.lease.fence);
                assert!(
                    last.is_none_or(|last| last < claim.lease.fence),
                    "fences only grow: {claim:?}"
                );
                memory.claims.push(claim);
            }
        }
        Move::Report { worker, outcome } => {
            let Some(claim) = memory.claims.get(worker) else {
                return;
            };
            let state = match outcome {
                0 => OperationState::Running,
                1 => OperationState::Pending,
                2 => OperationState::Retrying {
                    reason: "r".to_owned(),
                    next_at: fleet.after(7),
                },
                3 => failed("f"),
                _ => OperationState::Succeeded,
            };
            let before = fleet.store.operation(&claim.id).await.unwrap();
            let answer = fleet.store.report(report(claim, state.clone())).await;
            match &answer {
                Ok(settled) => {
                    assert!(memory.is_newest(claim), "an old attempt was heard: {claim:?}");
                    let stopped = before.stop.is_some() && !state.kind().is_final();
                    assert!(settled.state == state.kind() || stopped, "{settled:?}");
                }
                Err(Error::LeaseLost { .. }) => {
                    let after = fleet.store.operation(&claim.id).await.unwrap();
                    assert_eq!(before, after, "a refused report changes nothing");
                    let holds = before.state == OperationState::Running && before.fence == claim.lease.fence;
                    assert!(!holds, "the holder was refused: {claim:?}");
                }
                Err(error) => panic!("{error}"),
            }
        }
        Move::Heartbeat { worker } => {
            let Some(claim) = memory.claims.get(worker) else {
                return;
            };
            let beats = fleet
                .store
                .heartbeat(&[(claim.id.clone(), claim.lease.fence)], LEASE)
                .await
                .unwrap();
            let operation = fleet.store.operation(&claim.id).await.unwrap();
            let holds = operation.state == OperationState::Running && operation.fence == claim.lease.fence;
            assert_eq!(holds, beats[0].outcome != HeartbeatOutcome::Lost);
        }
        Move::Advance { seconds } => fleet.advance(seconds),
    }
}

async fn check<B: Backend>(fleet: &Fleet<B>, ids: &[ClusterId], memory: &mut Memory, context: &str) {
    for id in ids {
        let runs = fleet
            .store
            .reconciliations(id, &Default::default())
            .await
            .unwrap()
            .items;
        let live = runs.iter().filter(|run| run.finished_at.is_none()).count();
        assert!(live <= 1, "{live} live runs {context}");
        let mut running = BTreeSet::new();
        for run in runs {
            let operations = fleet.store.operations(&run.id).await.unwrap().items;
            let state: BTreeMap<_, _> = operations
                .iter()
                .map(|item| (&item.id, item.state.kind()))
                .collect();
            for operation in &operations {
                let kind = operation.state.kind();
                if kind == OperationStateKind::Running {
                    assert!(
                        running.insert(operation.component.clone()),
                        "two attempts of one component {context}"
                    );
                    assert!(operation.lease.is_some(), "{context}");
                } else {
                    assert!(
                        operation.lease.is_none() && operation.stop.is_none(),
                        "{operation:?} {context}"
                    );
                }
                if operation.started_at.is_some() {
                    let met = operation
                        .depends_on
                        .iter()
                        .all(|id| state[id] == OperationStateKind::Succeeded);
                    assert!(met, "it began too early: {operation:?} {context}");
                }
                assert_eq!(
                    kind.is_final(),
                    operation.finished_at.is_some(),
                    "{operation:?} {context}"
                );
                if let Some(last) = memory.finals.get(&operation.id) {
                    assert_eq!(*last, kind, "a final state changed {context}");
                } else if kind.is_final() {
                    memory.finals.insert(operation.id.clone(), kind);
                }
            }
        }
    }
}

/// Whatever happened, honest workers bring every run to its end.
async fn drain<B: Backend>(fleet: &Fleet<B>, ids: &[ClusterId], moves: &[Move]) {
    for _ in 0..64 {
        let claims = fleet.claims(8).await;
        for claim in &claims.operations {
            fleet.succeed(claim).await;
        }
        if claims.operations.is_empty() {
            match claims.next_at {
                None => break,
                Some(at) => fleet
                    .clock
                    .advance(at.duration_since(fleet.now()).max(jiff::SignedDuration::ZERO)),
            }
        }
    }
    for id in ids {
        for run in fleet
            .store
            .reconciliations(id, &Default::default())
            .await
            .unwrap()
            .items
        {
            let operations = fleet.store.operations(&run.id).await.unwrap().items;
            let open: Vec<_> = operations
                .iter()
                .filter(|item| item.finished_at.is_none())
                .collect();
            assert!(open.is_empty(), "stuck: {open:?} after {moves:?}");
        }
    }
}
