//! `evenkeel demo`: a whole fleet in one process, for the first minute with Evenkeel.

pub(crate) mod charts;
mod show;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use evenkeel_api::{Client, ClusterDocument, ClusterStatus, StatusWait};
use evenkeel_core::{ClusterName, ClusterState, Sensitive};
use evenkeel_fleet::{KubeconfigClusters, Settings};
use evenkeel_inventory::OpenOptions;
use evenkeel_simulator::{Options, Simulator};
use evenkeel_source::DirectoryPolicy;
use evenkeel_telemetry::{OnCancel, OnError, Tasks};
use serde_json::json;

use crate::commands::mothership::{Mothership, Sources};
use crate::output;
use show::Show;

/// The simulated clusters and the set of components each runs.
const CLUSTERS: [(&str, charts::Set); 3] = [
    ("amber", charts::Set::Shop),
    ("birch", charts::Set::Shop),
    ("coral", charts::Set::Website),
];
/// How often the demo's mothership looks at an unchanged cluster: drift is healed while one watches.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// How long each act may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// Watch a fleet become ready, drift and heal, in one process and without anything installed.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// End after the show instead of serving on
    #[arg(long)]
    once: bool,
    /// Where the REST API listens; a free port by default
    #[arg(long, value_name = "ADDRESS", default_value_t = SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))]
    listen: SocketAddr,
}

pub(crate) async fn run(arguments: Arguments, tasks: Tasks) -> anyhow::Result<()> {
    let directory = tempfile::tempdir().context("no temporary directory can be made")?;
    charts::write(directory.path())?;
    let simulator = Simulator::start(Options::default()).await?;
    for (name, _) in CLUSTERS {
        simulator.add_cluster(name)?;
    }
    let settings = Settings {
        check_interval: CHECK_INTERVAL,
        fleet_name: "demo".to_owned(),
        ..Settings::default()
    };
    let directories = DirectoryPolicy::Below(directory.path().to_owned());
    let mothership = Mothership::start(
        OpenOptions::temporary(),
        Sources {
            directories,
            remote: None,
            kubeconfigs: KubeconfigClusters::default(),
            signatures: None,
        },
        settings,
        arguments.listen,
        tasks.clone(),
    )
    .await?;
    let address = mothership.address;
    let server = tasks.spawn("mothership", OnError::Shutdown, OnCancel::Wait, |_| {
        mothership.serve()
    });
    let client = Client::new(&format!("http://{address}"))?;

    let show = async {
        output::line("Evenkeel demo: three simulated clusters, one mothership, all in this process.\n")?;
        let mut show = Show::new(CLUSTERS.map(|(name, _)| name.to_owned()));
        register(&client, &simulator).await?;
        everything_ready(&client, &mut show).await?;
        drift_and_heal(&client, &simulator, &mut show).await?;
        invitation(
            &simulator,
            address,
            directory.path().join("kubeconfig"),
            arguments.once,
        )
    };
    let shown = tokio::select! {
        shown = show => shown,
        () = tasks.cancelled() => Ok(()),
    };
    if shown.is_err() || arguments.once {
        tasks.cancel();
    }
    let served = server.join().await;
    simulator.stop().await;
    shown?;
    served.map_err(Into::into)
}

/// Act one: the clusters are registered with the components they should run.
async fn register(client: &Client, simulator: &Simulator) -> anyhow::Result<()> {
    for (name, set) in CLUSTERS {
        let document = json!({"name": name, "tenant": set.tenant(), "components": set.components()});
        let mut document = ClusterDocument::from_value(document)?;
        document.kubeconfig = Some(Sensitive::new(simulator.kubeconfig(name)?).into());
        client.put_cluster(&document).await?;
        output::line(&format!("registered {name}: {}", set.describe()))?;
    }
    output::line("")
}

/// Act two: they become ready.
async fn everything_ready(client: &Client, show: &mut Show) -> anyhow::Result<()> {
    let started = std::time::Instant::now();
    let follow = CLUSTERS.map(|(name, _)| {
        follow(client, name, show.board(), |status| {
            status.state == ClusterState::Ready
        })
    });
    let ready = tokio::time::timeout(PATIENCE, futures::future::try_join_all(follow)).await;
    show.settle();
    match ready {
        Ok(ready) => ready?,
        Err(_) => bail!(
            "the clusters did not become ready within {} s",
            PATIENCE.as_secs()
        ),
    };
    output::line(&format!(
        "\nall clusters are ready after {:.1} s\n",
        started.elapsed().as_secs_f64()
    ))
}

/// Act three: somebody deletes a Deployment, and it comes back.
async fn drift_and_heal(client: &Client, simulator: &Simulator, show: &mut Show) -> anyhow::Result<()> {
    let (cluster, set) = CLUSTERS[0];
    let victim = set.victim();
    let before = client.status(&cluster.parse()?).await?.reconciliation;
    let api = simulator
        .cluster(cluster)
        .with_context(|| format!("the simulator lost cluster {cluster}"))?;
    output::line(&format!(
        "somebody deletes Deployment {victim} of {cluster} behind our back ..."
    ))?;
    charts::delete_deployment(&api, set.namespace(), victim)?;
    let started = std::time::Instant::now();
    // Healed is: another reconciliation ran, and the cluster is ready again.
    let healed = follow(client, cluster, show.board(), |status| {
        status.state == ClusterState::Ready && status.reconciliation != before
    });
    let healed = tokio::time::timeout(PATIENCE, healed).await;
    show.settle();
    match healed {
        Ok(healed) => healed?,
        Err(_) => bail!("{cluster} was not healed within {} s", PATIENCE.as_secs()),
    };
    if !charts::has_deployment(&api, set.namespace(), victim) {
        bail!("{cluster} says it is ready, but Deployment {victim} is not there");
    }
    output::line(&format!(
        "\nhealed: Deployment {victim} is back after {:.1} s\n",
        started.elapsed().as_secs_f64()
    ))
}

/// Follows one cluster until it is as wanted. The server holds each call until something changes.
async fn follow(
    client: &Client,
    name: &str,
    board: show::Board,
    is_there: impl Fn(&ClusterStatus) -> bool,
) -> anyhow::Result<ClusterStatus> {
    let name: ClusterName = name.parse()?;
    let mut status = client.status(&name).await?;
    loop {
        board.update(&status);
        if is_there(&status) {
            return Ok(status);
        }
        status = client
            .status_after(&name, &StatusWait::after(status.revision))
            .await?;
    }
}

/// What to try next.
fn invitation(
    simulator: &Simulator,
    address: SocketAddr,
    kubeconfig: PathBuf,
    once: bool,
) -> anyhow::Result<()> {
    if once {
        return Ok(());
    }
    let (cluster, set) = CLUSTERS[0];
    std::fs::write(&kubeconfig, simulator.kubeconfig(cluster)?)
        .context("the kubeconfig cannot be written")?;
    let program = std::env::args().next().unwrap_or_else(|| "evenkeel".to_owned());
    output::line(&format!(
        "Try it yourself while this runs (Ctrl-C ends it):\n\n  \
         export EVENKEEL_SERVER=http://{address}\n  \
         {program} cluster list\n  \
         {program} cluster status {cluster}\n  \
         {program} cluster history {cluster}\n  \
         kubectl --kubeconfig {} -n {} get deployments\n",
        kubeconfig.display(),
        set.namespace(),
    ))
}
