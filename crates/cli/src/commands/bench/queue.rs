//! The queue on both databases: claims, and operations from claim to final report.

mod load;

use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use evenkeel_inventory::{KeySource, Location, OpenOptions, PostgresOptions, SqlStore, Synchronous};
use evenkeel_realparts::{Durability, Postgres};
use evenkeel_telemetry::SystemClock;

use self::load::Rates;
use super::figures::{Figures, Goal};
use crate::output;

/// How many claims, and operations, a second there should be on two cores.
const GOAL: f64 = 5_000.0;
/// Workers at PostgreSQL. SQLite has one writer: more would only wait.
const WORKERS: usize = 4;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Clusters, with 20 operations each
    #[arg(long, value_name = "COUNT", default_value_t = 500)]
    clusters: usize,
    /// Only on SQLite, which needs no server
    #[arg(long)]
    sqlite_only: bool,
}

pub(super) async fn run(arguments: &Arguments) -> anyhow::Result<Figures> {
    let mut figures = Figures::default();
    // In the working directory: a temporary one may be in memory, where no commit waits for a disk.
    let folder = tempfile::Builder::new()
        .prefix("evenkeel-bench-")
        .tempdir_in(".")
        .context("a folder cannot be made here")?;
    let keys = || KeySource::File(folder.path().join("keys"));
    if !arguments.sqlite_only {
        output::note("PostgreSQL, fsync on");
        let server = Postgres::start_with(Durability::On, &[])?;
        let location = Location::Postgres(server.url().parse::<PostgresOptions>()?);
        let rates = measure(arguments, location, keys(), WORKERS).await?;
        postgres(&mut figures, rates);
    }
    output::note("SQLite, synchronous=FULL");
    std::fs::remove_file(folder.path().join("keys")).ok();
    let location = Location::File(folder.path().join("db"));
    let rates = measure(arguments, location, keys(), 1).await?;
    sqlite(&mut figures, rates);
    Ok(figures)
}

async fn measure(
    arguments: &Arguments,
    location: Location,
    keys: KeySource,
    workers: usize,
) -> anyhow::Result<Rates> {
    let options = OpenOptions {
        location,
        keys,
        synchronous: Synchronous::Full,
    };
    let store = SqlStore::open(options, Arc::new(SystemClock)).await?;
    let rates = load::measure(&store, arguments.clusters, workers).await;
    store.close().await;
    rates
}

fn postgres(figures: &mut Figures, rates: Rates) {
    let goal = Goal::AtLeast(GOAL);
    figures.goal("postgres.claims_per_s", rates.claims, goal, CLAIMS);
    figures.goal("postgres.operations_per_s", rates.operations, goal, OPERATIONS);
    figures.told("postgres.claim_p99_ms", rates.claim_p99, CLAIM_P99);
    figures.told("postgres.report_p99_ms", rates.report_p99, REPORT_P99);
}

fn sqlite(figures: &mut Figures, rates: Rates) {
    let goal = Goal::AtLeast(GOAL);
    figures.goal("sqlite.claims_per_s", rates.claims, goal, CLAIMS);
    figures.goal("sqlite.operations_per_s", rates.operations, goal, OPERATIONS);
    figures.told("sqlite.claim_p99_ms", rates.claim_p99, CLAIM_P99);
    figures.told("sqlite.report_p99_ms", rates.report_p99, REPORT_P99);
}

const CLAIMS: &str = "operations claimed a second, in batches of 32";
const OPERATIONS: &str = "operations a second from claim to final report";
const CLAIM_P99: &str = "99 of 100 claims of 32 take less";
const REPORT_P99: &str = "99 of 100 batches of 32 reports take less";
