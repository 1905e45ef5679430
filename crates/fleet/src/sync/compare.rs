//! Two lists, and what sets them apart. Reads nothing and writes nothing.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_api::{Difference, Differing, Extra, Missing, Outcome, SyncReport};
use evenkeel_inventory::Cluster;
use jiff::Timestamp;

use crate::broker::Runtime;

/// The label by which a cluster says which of the broker's runtimes it is. None without it is the broker's.
pub(super) const RUNTIME: &str = "broker.evenkeel.dev/runtime";

/// One thing that the broker tells of a runtime.
type Told = fn(&Runtime) -> &str;

/// What the broker tells of a runtime, and the labels that clusters have it in. A cluster without one of them leaves it open.
const COMPARED: [(&str, Told); 5] = [
    ("broker.evenkeel.dev/global-account", |runtime| {
        &runtime.global_account_id
    }),
    ("broker.evenkeel.dev/sub-account", |runtime| {
        &runtime.sub_account_id
    }),
    ("broker.evenkeel.dev/shoot", |runtime| &runtime.shoot_name),
    ("broker.evenkeel.dev/region", |runtime| &runtime.region),
    ("broker.evenkeel.dev/plan", |runtime| &runtime.service_plan_name),
];

/// The runtime that a cluster says to be.
pub(super) fn runtime_of(cluster: &Cluster) -> Option<&str> {
    let runtime = cluster.labels.get(RUNTIME)?;
    Some(runtime.as_str()).filter(|runtime| !runtime.is_empty())
}

/// Compares the clusters that are the broker's with its list.
pub(super) fn compare(
    clusters: &[Cluster],
    runtimes: &BTreeMap<String, Runtime>,
    at: Timestamp,
) -> SyncReport {
    let known: BTreeSet<&str> = clusters.iter().filter_map(runtime_of).collect();
    let missing = runtimes
        .values()
        .filter(|runtime| runtime.is_settled() && !known.contains(runtime.runtime_id.as_str()))
        .map(|runtime| Missing {
            runtime: runtime.runtime_id.clone(),
            shoot: runtime.shoot_name.clone(),
        });
    let mut report = SyncReport {
        at,
        runtimes: runtimes.len(),
        clusters: clusters.len(),
        missing: missing.collect(),
        extra: Vec::new(),
        differing: Vec::new(),
        refused: None,
    };
    for cluster in clusters {
        let Some(id) = runtime_of(cluster) else {
            continue;
        };
        let (name, runtime) = (cluster.name.clone(), id.to_owned());
        match runtimes.get(id).filter(|runtime| !runtime.is_gone()) {
            // What is to go already needs nothing more.
            None if cluster.deletion.is_some() => {}
            None => report.extra.push(Extra {
                cluster: name,
                runtime,
                outcome: Outcome::Told,
            }),
            Some(theirs) => {
                let differences = differences(cluster, theirs);
                if !differences.is_empty() {
                    report.differing.push(Differing {
                        cluster: name,
                        runtime,
                        differences,
                        outcome: Outcome::Told,
                    });
                }
            }
        }
    }
    report
}

/// The labels of a cluster that are not as the broker says, each with what it should be.
pub(super) fn labels_to_change<'a>(
    labels: &BTreeMap<String, String>,
    runtime: &'a Runtime,
) -> Vec<(&'static str, String, &'a str)> {
    COMPARED
        .iter()
        .filter_map(|(label, of)| {
            let (ours, brokers) = (labels.get(*label)?, of(runtime));
            (!brokers.is_empty() && ours != brokers).then(|| (*label, ours.clone(), brokers))
        })
        .collect()
}

fn differences(cluster: &Cluster, runtime: &Runtime) -> Vec<Difference> {
    let difference = |what: &str, ours: &str, brokers: &str| Difference {
        what: what.to_owned(),
        ours: ours.to_owned(),
        brokers: brokers.to_owned(),
    };
    let mut found: Vec<Difference> = labels_to_change(&cluster.labels, runtime)
        .into_iter()
        .map(|(label, ours, brokers)| difference(label, &ours, brokers))
        .collect();
    // Who of the two is to go is for the broker to say, and a call of its own does.
    let is_going = cluster.deletion.is_some();
    if is_going != runtime.is_going() && (is_going || runtime.is_going()) {
        let ours = cluster.status.state.as_str();
        found.push(difference("state", ours, &runtime.status.state));
    }
    found
}
