//! The work: planned, claimed in batches, reported done, by several workers at once.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use evenkeel_core::{ClusterSpec, DueReason, OperationState, Strategy};
use evenkeel_inventory::{ClaimRequest, NewOperation, NewReconciliation, PutCluster, Report, Store};
use futures::future::try_join_all;
use jiff::Timestamp;

use crate::commands::bench::sample::p99;

/// Components of each cluster, without dependencies between them.
const COMPONENTS: usize = 20;
/// The most operations of one claim, and of one batch of reports.
const BATCH: u32 = 32;
/// Longer than any bench.
const LEASE: Duration = Duration::from_secs(3_600);

/// What was measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rates {
    /// Operations claimed in a second, when nothing but claiming goes on.
    pub(super) claims: f64,
    /// Operations claimed and reported done in a second.
    pub(super) operations: f64,
    /// The time that 99 of 100 claims take, in milliseconds, while reports go on beside.
    pub(super) claim_p99: f64,
    /// The same of batches of reports.
    pub(super) report_p99: f64,
}

/// How long calls took.
#[derive(Debug, Default)]
struct Calls {
    operations: u32,
    claims: Vec<Duration>,
    reports: Vec<Duration>,
}

/// Measures `clusters` clusters' operations twice: once only claimed, once claimed and reported.
pub(super) async fn measure(store: &dyn Store, clusters: usize, workers: usize) -> anyhow::Result<Rates> {
    let expected = u32::try_from(clusters * COMPONENTS).context("too many clusters")?;
    plan(store, "claimed", clusters).await?;
    let begin = Instant::now();
    let claimed = run(store, workers, false).await?;
    let claims = f64::from(claimed.operations) / begin.elapsed().as_secs_f64();
    ensure!(
        claimed.operations == expected,
        "{} of {expected} were claimed",
        claimed.operations
    );

    plan(store, "done", clusters).await?;
    let begin = Instant::now();
    let mut done = run(store, workers, true).await?;
    let operations = f64::from(done.operations) / begin.elapsed().as_secs_f64();
    ensure!(
        done.operations == expected,
        "{} of {expected} were done",
        done.operations
    );
    Ok(Rates {
        claims,
        operations,
        claim_p99: p99(&mut done.claims),
        report_p99: p99(&mut done.reports),
    })
}

/// Registers clusters and begins a run over each.
async fn plan(store: &dyn Store, prefix: &str, clusters: usize) -> anyhow::Result<()> {
    let names: Vec<_> = (0..COMPONENTS)
        .map(|number| format!("component-{number}"))
        .collect();
    let components: Vec<_> = names
        .iter()
        .map(|name| serde_json::json!({"name": name, "source": {"directory": {"path": "x"}}, "namespace": "apps"}))
        .collect();
    for number in 0..clusters {
        let document = serde_json::json!({"name": format!("{prefix}-{number}"), "components": components});
        let spec: ClusterSpec = serde_json::from_value(document)?;
        let put = store.put_cluster(PutCluster::new(spec)).await?;
        let operations = names.iter().map(|name| {
            Ok(NewOperation {
                component: name.parse()?,
                kind: Strategy::Install,
                version: put.version,
                cause: "it is new".to_owned(),
                depends_on: Vec::new(),
                carries: None,
            })
        });
        let new = NewReconciliation {
            cluster: put.id,
            version: put.version,
            strategy: Strategy::Install,
            reason: DueReason::Change,
            deadline: Timestamp::MAX,
            stamp: None,
            supersede: false,
            failing: None,
            operations: operations.collect::<anyhow::Result<_>>()?,
        };
        store.begin_reconciliation(new).await?;
    }
    Ok(())
}

/// Has workers claim until nothing is left, and report what they claimed if so wished.
async fn run(store: &dyn Store, workers: usize, reporting: bool) -> anyhow::Result<Calls> {
    let each = try_join_all((0..workers).map(|number| work(store, number, reporting))).await?;
    Ok(each.into_iter().fold(Calls::default(), |mut all, one| {
        all.operations += one.operations;
        all.claims.extend(one.claims);
        all.reports.extend(one.reports);
        all
    }))
}

async fn work(store: &dyn Store, number: usize, reporting: bool) -> anyhow::Result<Calls> {
    let request = ClaimRequest {
        worker: format!("bench-{number}"),
        limit: BATCH,
        lease: LEASE,
    };
    let mut calls = Calls::default();
    let mut empty = 0;
    // What others hold at this moment is passed over: an empty answer may be followed by a full one.
    while empty < 2 {
        let begin = Instant::now();
        let claimed: VecDeque<_> = store.claim(&request).await?.operations.into();
        calls.claims.push(begin.elapsed());
        empty = if claimed.is_empty() { empty + 1 } else { 0 };
        calls.operations += u32::try_from(claimed.len())?;
        if claimed.is_empty() || !reporting {
            continue;
        }
        let reports = claimed.into_iter().map(|claimed| Report {
            operation: claimed.id,
            fence: claimed.lease.fence,
            state: OperationState::Succeeded,
            changes: Vec::new(),
            timeline: Vec::new(),
        });
        let reports = reports.collect();
        let begin = Instant::now();
        for answer in store.report_all(reports).await? {
            answer?;
        }
        calls.reports.push(begin.elapsed());
    }
    Ok(calls)
}
