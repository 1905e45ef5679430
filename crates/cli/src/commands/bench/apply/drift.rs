//! The healing of drift: a mothership in this process that watches a cluster, and somebody who edits what it looks after.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use evenkeel_api::{Client, ClusterDocument, StatusWait};
use evenkeel_core::{ClusterName, ClusterState, Sensitive};
use evenkeel_fleet::{KubeconfigClusters, Settings};
use evenkeel_inventory::OpenOptions;
use evenkeel_source::DirectoryPolicy;
use evenkeel_telemetry::{OnCancel, OnError, Tasks};
use kube::api::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use super::bystander::{Bystander, Edit};
use crate::commands::bench::pass::chart;
use crate::commands::mothership::{Mothership, Sources};
use crate::process;

/// The names of the cluster, the component and its namespace.
const NAME: &str = "drift";
/// How long the cluster may take to become ready.
const PATIENCE: Duration = Duration::from_secs(300);

/// What is edited, in turn: group, version, kind, name in URLs, field, and what is written into it.
type Target = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    fn() -> Value,
);

const TARGETS: [Target; 4] = [
    ("", "v1", "ConfigMap", "configmaps", "/data/greeting", || {
        json!("hullo")
    }),
    ("", "v1", "Service", "services", "/spec/selector/app", || {
        json!("another")
    }),
    (
        "policy",
        "v1",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        "/spec/maxUnavailable",
        || json!(7),
    ),
    ("batch", "v1", "CronJob", "cronjobs", "/spec/schedule", || {
        json!("1 1 1 1 *")
    }),
];

/// How long each of so many edits of the objects of one component lived, edited one after the other.
pub(super) async fn measure(
    kubeconfig: &str,
    folder: &Path,
    bystander: &Bystander,
    edits: usize,
) -> anyhow::Result<Vec<Duration>> {
    let charts = folder.join(NAME);
    std::fs::create_dir(&charts).context("a folder cannot be made")?;
    chart::write(&charts)?;
    // Its own, so that it ends before the cluster does.
    let tasks = Tasks::new();
    // Looks at an unchanged cluster come minutes apart: what is healed sooner is what a watch has told.
    let settings = Settings {
        fleet_name: "bench".to_owned(),
        ..Settings::default()
    };
    let sources = Sources {
        directories: DirectoryPolicy::Below(folder.to_owned()),
        remote: None,
        kubeconfigs: KubeconfigClusters::default(),
        signatures: None,
    };
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mothership =
        Mothership::start(OpenOptions::temporary(), sources, settings, listen, tasks.clone()).await?;
    let client = Client::new(&format!("http://{}", mothership.address))?;
    let server = tasks.spawn("mothership", OnError::Shutdown, OnCancel::Wait, |_| {
        mothership.serve()
    });
    let healed = Box::pin(heal(&client, kubeconfig, bystander, edits)).await;
    tasks.cancel();
    server.join().await?;
    process::shut_down(&tasks).await;
    healed
}

async fn heal(
    client: &Client,
    kubeconfig: &str,
    bystander: &Bystander,
    edits: usize,
) -> anyhow::Result<Vec<Duration>> {
    let component = json!({"name": NAME, "source": {"directory": {"path": NAME}}, "namespace": NAME});
    let mut document = ClusterDocument::from_value(json!({"name": NAME, "components": [component]}))?;
    document.kubeconfig = Some(Sensitive::new(kubeconfig.to_owned()).into());
    client.put_cluster(&document).await?;
    until_ready(client).await?;
    bystander.settle().await?;
    let mut times = Vec::with_capacity(edits);
    for (number, target) in (0..edits).zip(TARGETS.iter().cycle()) {
        let (group, version, kind, plural, field, value) = target;
        let edit = Edit {
            resource: ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural),
            name: format!("{NAME}-{}", number / TARGETS.len() % chart::OBJECTS_OF_A_KIND),
            field,
            value: value(),
        };
        times.push(bystander.heal_time(NAME, &edit).await?);
        until_ready(client).await?;
    }
    Ok(times)
}

async fn until_ready(client: &Client) -> anyhow::Result<()> {
    let name: ClusterName = NAME.parse()?;
    let ready = async {
        let mut status = client.status(&name).await?;
        while status.state != ClusterState::Ready {
            status = client
                .status_after(&name, &StatusWait::after(status.revision))
                .await?;
        }
        Ok(())
    };
    match tokio::time::timeout(PATIENCE, ready).await {
        Ok(ready) => ready,
        Err(_) => bail!("the cluster was not ready within {PATIENCE:?}"),
    }
}
