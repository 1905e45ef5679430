//! Workers, planners and bookkeepers at the same time, each at random; whatever they do, nothing is done twice.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use evenkeel_core::{
    ClusterId, ClusterState, ComponentName, DueReason, Fence, OperationState, ReconciliationState, Strategy,
    Transition as _,
};
use evenkeel_inventory::{
    Error, HeartbeatOutcome, NewOperation, NewReconciliation, Recorded, StatusChange, Store,
};
use jiff::Timestamp;
use tokio::task::JoinSet;

use crate::fixture::*;

const CLUSTERS: usize = 5;
const COMPONENTS: [&str; 4] = ["a", "b", "c", "d"];
/// Each component may wait for those before it.
const DEPENDS: [&[usize]; 4] = [&[], &[0], &[0], &[1, 2]];
const WORKERS: u64 = 8;
const PLANNERS: u64 = 2;
/// Plans of each planner.
const PLANS: usize = 150;
/// How long the whole may take on a busy machine.
const BOUND: Duration = Duration::from_secs(240);

/// Numbers at random, the same for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// What everybody sees of everybody's work.
#[derive(Default)]
struct Watch {
    held: Mutex<HashMap<(ClusterId, ComponentName), Fence>>,
    newest: Mutex<HashMap<(ClusterId, ComponentName), Fence>>,
    planning_is_over: AtomicBool,
    done: AtomicU64,
}

impl Watch {
    /// Somebody got a component: nobody else has it, and the fence is higher than all before.
    fn take(&self, component: &(ClusterId, ComponentName), fence: Fence) {
        let other = self.held.lock().unwrap().insert(component.clone(), fence);
        assert_eq!(other, None, "{component:?} is worked on twice");
        let before = self.newest.lock().unwrap().insert(component.clone(), fence);
        assert!(before.is_none_or(|before| before < fence), "{before:?} {fence:?}");
    }

    fn give(&self, component: &(ClusterId, ComponentName)) {
        self.held.lock().unwrap().remove(component);
    }
}

async fn worker(store: Arc<dyn Store>, watch: Arc<Watch>, now: Timestamp, seed: u64) {
    let mut dice = Dice(seed);
    loop {
        let limit = u32::try_from(1 + dice.roll(32)).unwrap();
        let claims = store.claim(&claim(limit)).await.unwrap();
        if claims.operations.is_empty() {
            let idle = watch.held.lock().unwrap().is_empty();
            if idle && watch.planning_is_over.load(Ordering::Relaxed) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let component =
            |of: &evenkeel_inventory::ClaimedOperation| (of.cluster.clone(), of.component.clone());
        for claimed in &claims.operations {
            watch.take(&component(claimed), claimed.lease.fence);
        }
        let beats: Vec<_> = claims
            .operations
            .iter()
            .map(|claimed| (claimed.id.clone(), claimed.lease.fence))
            .collect();
        for beat in store.heartbeat(&beats, LEASE).await.unwrap() {
            assert_ne!(beat.outcome, HeartbeatOutcome::Lost, "no lease ends in this test");
        }
        let mut reports = Vec::new();
        for claimed in &claims.operations {
            let state = match dice.roll(10) {
                0 => failed("no luck"),
                1 => OperationState::Pending,
                2 => OperationState::Retrying {
                    reason: "once more".to_owned(),
                    next_at: now,
                },
                _ => OperationState::Succeeded,
            };
            reports.push(report(claimed, state));
            // Before the answer: from the commit on it may be another's.
            watch.give(&component(claimed));
        }
        // Some one by one, some together.
        let rest = reports.split_off(reports.len() / 2);
        for answer in store.report_all(reports).await.unwrap() {
            answer.unwrap();
            watch.done.fetch_add(1, Ordering::Relaxed);
        }
        for report in rest {
            store.report(report).await.unwrap();
            watch.done.fetch_add(1, Ordering::Relaxed);
        }
    }
}

async fn planner(store: Arc<dyn Store>, clusters: Arc<Vec<ClusterId>>, seed: u64) {
    let mut dice = Dice(seed);
    for _ in 0..PLANS {
        let cluster = &clusters[usize::try_from(dice.roll(CLUSTERS as u64)).unwrap()];
        let version = store.cluster(cluster).await.unwrap().version;
        let operation = |(name, depends_on): (&&str, &&[usize])| NewOperation {
            component: name.parse().unwrap(),
            kind: Strategy::Repair,
            version,
            cause: "at random".to_owned(),
            depends_on: depends_on.to_vec(),
            carries: None,
        };
        let new = NewReconciliation {
            cluster: cluster.clone(),
            version,
            strategy: Strategy::Repair,
            reason: DueReason::Change,
            deadline: Timestamp::MAX,
            stamp: None,
            supersede: dice.roll(2) == 0,
            failing: None,
            operations: COMPONENTS.iter().zip(&DEPENDS).map(operation).collect(),
        };
        match store.begin_reconciliation(new).await {
            // Running, or changed by the other planner since it was read.
            Ok(_) | Err(Error::ReconciliationRunning { .. } | Error::Outdated(_)) => {}
            Err(error) => panic!("{error}"),
        }
        // Configurations change meanwhile.
        if dice.roll(4) == 0 {
            let name = store.cluster(cluster).await.unwrap().name;
            let mut changed = spec(name.as_str(), &COMPONENTS);
            changed
                .labels
                .insert("roll".to_owned(), dice.roll(1_000).to_string());
            store
                .put_cluster(evenkeel_inventory::PutCluster::new(changed))
                .await
                .unwrap();
        }
    }
}

/// Ends the runs that are through; two do, and only one of them is right.
async fn bookkeeper(store: Arc<dyn Store>, watch: Arc<Watch>) {
    loop {
        let over = watch.planning_is_over.load(Ordering::Relaxed);
        let settled = store.settled_reconciliations(100).await.unwrap();
        if over && settled.is_empty() && watch.held.lock().unwrap().is_empty() {
            return;
        }
        for run in settled {
            let version = store.reconciliation(&run).await.unwrap().version;
            let end = evenkeel_inventory::Finish {
                state: ReconciliationState::Succeeded,
                reason: None,
                status: StatusChange::new(ClusterState::Ready, version),
            };
            match store.finish_reconciliation(&run, end).await {
                Ok(Recorded::Changed | Recorded::Unchanged | Recorded::Outdated) => {}
                // Superseded in between.
                Err(Error::Refused(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

pub(crate) async fn everybody_at_once<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let mut clusters = Vec::new();
    for number in 0..CLUSTERS {
        clusters.push(fleet.cluster(&format!("c{number}"), &COMPONENTS).await);
    }
    let (clusters, watch) = (Arc::new(clusters), Arc::new(Watch::default()));
    let (mut planners, mut others) = (JoinSet::new(), JoinSet::new());
    for seed in 0..PLANNERS {
        planners.spawn(planner(fleet.store.clone(), clusters.clone(), 100 + seed));
    }
    for seed in 0..WORKERS {
        others.spawn(worker(fleet.store.clone(), watch.clone(), fleet.now(), seed));
    }
    for _ in 0..2 {
        others.spawn(bookkeeper(fleet.store.clone(), watch.clone()));
    }
    let all = async {
        while let Some(ended) = planners.join_next().await {
            ended.unwrap();
        }
        watch.planning_is_over.store(true, Ordering::Relaxed);
        while let Some(ended) = others.join_next().await {
            ended.unwrap();
        }
    };
    tokio::time::timeout(BOUND, all).await.unwrap();
    // What is left is final, and the promises of the rows hold.
    assert!(fleet.claims(100).await.operations.is_empty());
    for cluster in clusters.iter() {
        for run in fleet
            .store
            .reconciliations(cluster, &Default::default())
            .await
            .unwrap()
            .items
        {
            for operation in fleet.store.operations(&run.id).await.unwrap().items {
                assert!(operation.state.kind().is_final(), "{operation:?}");
            }
        }
    }
    assert!(watch.done.load(Ordering::Relaxed) > 100);
}
