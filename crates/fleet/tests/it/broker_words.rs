//! A cluster's life in the broker's words (K33): the same situations, brought about again, have the names that the
//! predecessor's mothership gave them when it was recorded. What the broker is shown is from its calls, what is kept for
//! itself and the operations are from its database.

use std::collections::VecDeque;
use std::time::Duration;

use evenkeel_api::{ClusterStatus, Suspend};
use evenkeel_core::{
    BrokerStatus, ClusterFacts, DeleteMode, OperationFacts, OperationState, OperationStateKind,
    ReconciliationState, Strategy,
};
use evenkeel_inventory::{Clusters as _, PageRequest, Reconciliations as _};
use evenkeel_simulator::{Fault, FaultRule};
use serde::Deserialize;
use serde_json::json;

use crate::world::{World, component, name, settings, state, values};

/// How long a look takes at least that is to find a cluster as it was left; far longer than it takes to read its status.
const SLOW: Duration = Duration::from_secs(2);

#[derive(Deserialize)]
struct Situation {
    situation: String,
    shown: String,
    /// The same unless it says otherwise.
    kept: Option<String>,
    #[serde(default)]
    operations: Vec<String>,
}

/// The situations, as they were recorded one after the other.
struct Recorded(VecDeque<Situation>);

impl Recorded {
    fn read() -> Self {
        Self(serde_json::from_str(include_str!("../data/broker.json")).unwrap())
    }

    #[track_caller]
    fn next(&mut self, situation: &str, status: BrokerStatus) -> Vec<String> {
        let next = self.0.pop_front().unwrap();
        assert_eq!(next.situation, situation);
        assert_eq!(status.shown().as_str(), next.shown, "{situation}");
        assert_eq!(status.as_str(), next.kept.unwrap_or(next.shown), "{situation}");
        next.operations
    }
}

fn operation(component: &str, kind: Strategy, state: &OperationState, attempts: u32) -> String {
    let kind = match kind {
        Strategy::Delete => "delete",
        _ => "reconcile",
    };
    let name = OperationFacts::new(state, attempts).name();
    format!("{component} {kind} {name}")
}

async fn newest_operations(world: &World) -> Vec<String> {
    let run = world.newest_run("blue").await;
    let mut operations: Vec<_> = run
        .operations
        .iter()
        .map(|one| operation(one.component.as_str(), one.strategy, &one.state, one.attempts))
        .collect();
    operations.sort();
    operations
}

#[tokio::test]
async fn a_life_has_the_names_that_were_recorded() {
    let mut recorded = Recorded::read();
    let mut settings = settings();
    // A failed run is not followed by another.
    settings.retry_first = Duration::from_secs(600);
    settings.retry_longest = Duration::from_secs(600);
    let world = World::with(settings).await;
    for chart in ["map", "broken"] {
        world.map_chart(chart);
    }
    world.write("broken", "templates/broken.yaml", "a: {{ fail \"for good\" }}\n");
    world.engine_chart("blue", "engine");
    let cluster = world.cluster("blue");
    let not_yet = || {
        cluster
            .faults()
            .add(FaultRule::always(Fault::Latency(SLOW)).times(1))
    };
    let told = async || world.status("blue").await.broker_status;
    let map = |name: &str, text: &str| values(component(name, "map"), json!({"text": text}));

    not_yet();
    world
        .put(
            "blue",
            json!([
                map("istio", "1"),
                map("base", "1"),
                component("eventing", "engine")
            ]),
        )
        .await;
    recorded.next("create", told().await);
    let running = |status: &ClusterStatus| state(status, "eventing") == Some(OperationStateKind::Running);
    let status = world.until("blue", "eventing is waited for", running).await;
    recorded.next("status while it is worked on", status.broker_status);
    world.say("blue", "eventing", "True").await;
    let status = world.ready("blue").await;
    let operations = recorded.next("status when ready", status.broker_status);
    assert_eq!(newest_operations(&world).await, operations);

    not_yet();
    world
        .put(
            "blue",
            json!([
                map("istio", "2"),
                map("base", "2"),
                component("eventing", "broken")
            ]),
        )
        .await;
    recorded.next("changed configuration", told().await);
    evenkeel_testkit::eventually("the run has failed", async || {
        match world.newest_run("blue").await.summary.state {
            ReconciliationState::Failed => Ok(()),
            state => Err(state),
        }
    })
    .await;
    let operations = recorded.next("status after an error", told().await);
    assert_eq!(newest_operations(&world).await, operations);

    world
        .fleet()
        .suspend(&name("blue"), Suspend::default())
        .await
        .unwrap();
    recorded.next("disable", told().await);
    world.put("blue", json!([map("base", "3")])).await;
    recorded.next("put while disabled", told().await);
    not_yet();
    world.fleet().resume(&name("blue")).await.unwrap();
    recorded.next("enable", told().await);

    let hold = |finalizers: serde_json::Value| {
        let patch = json!({"metadata": {"finalizers": finalizers}});
        let patched = cluster.patch("somebody", "v1", "ConfigMap", "apps", "base", patch);
        patched.unwrap();
    };
    hold(json!(["example.com/hold"]));
    let blue = world.status("blue").await.id;
    not_yet();
    world.delete("blue", DeleteMode::Uninstall).await;
    recorded.next("delete", told().await);
    let running = |status: &ClusterStatus| state(status, "base") == Some(OperationStateKind::Running);
    let status = world.until("blue", "base is being deleted", running).await;
    recorded.next("status while it is deleted", status.broker_status);
    hold(json!([]));
    world.gone("blue").await;

    let store = world.store();
    let facts = ClusterFacts {
        state: store.cluster(&blue).await.unwrap().status.state,
        suspended: false,
        failed_before: false,
        live: None,
    };
    let mut operations = recorded.next("the row of a deleted cluster", facts.status());
    let runs = store
        .reconciliations(&blue, &PageRequest::default())
        .await
        .unwrap();
    let deleted = store.operations(&runs.items[0].id).await.unwrap().items;
    for one in &deleted {
        let seen = operation(one.component.as_str(), one.kind, &one.state, one.attempt);
        operations.retain(|operation| *operation != seen);
    }
    assert_eq!(operations, [""; 0], "{deleted:?}");
    assert!(recorded.0.is_empty());
}
