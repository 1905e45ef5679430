//! `evenkeel cluster status`, and waiting for a cluster to become what was asked for.

use std::time::Duration;

use anyhow::bail;
use clap::Args;
use evenkeel_api::{Client, ClusterStatus, Code, Error, StatusWait};
use evenkeel_core::{ClusterName, ClusterState, ConfigurationVersion, HumanDuration, OperationState};

use crate::output::{self, OutputFormat};

/// How long the server may hold a call that waits for a change.
const HOLD: Duration = Duration::from_secs(20);
/// The same, where also a look that changes nothing is waited for: no change ends such a call.
const LOOK_HOLD: Duration = Duration::from_millis(500);

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The cluster's name
    name: ClusterName,
    /// How the result is printed
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
    #[command(flatten)]
    wait: Wait,
}

/// Whether and how long a command waits.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct Wait {
    /// Wait until the cluster is as asked for; exit with 1 when it fails or time runs out
    #[arg(long)]
    wait: bool,
    /// How long to wait
    #[arg(long, value_name = "DURATION", default_value = "10m", requires = "wait")]
    timeout: HumanDuration,
}

pub(super) async fn run(client: &Client, arguments: Arguments) -> anyhow::Result<()> {
    let mut status = client.status(&arguments.name).await?;
    let mut verdict = Ok(());
    if arguments.wait.wait {
        let wanted = status.version;
        let end = arguments
            .wait
            .follow(client, &arguments.name, HOLD, |status| settled(status, wanted))
            .await;
        match end {
            Ok(Some(last)) => status = last,
            Ok(None) => bail!("cluster {} was deleted", arguments.name),
            Err(error) => {
                status = client.status(&arguments.name).await?;
                verdict = Err(error);
            }
        }
    }
    output::print(arguments.output, &status, || table(&status))?;
    verdict
}

impl Wait {
    /// Waits until version `wanted` was brought about, when asked to wait.
    pub(super) async fn until_observed(
        self,
        client: &Client,
        name: &ClusterName,
        wanted: ConfigurationVersion,
    ) -> anyhow::Result<()> {
        if !self.wait {
            return Ok(());
        }
        match self
            .follow(client, name, HOLD, |status| settled(status, wanted))
            .await?
        {
            Some(_) => output::line(&format!("cluster {name} is ready")),
            None => bail!("cluster {name} was deleted"),
        }
    }

    /// Waits until the cluster was looked at once more than `known` tells, and is settled, when asked to wait.
    pub(super) async fn after_look(
        self,
        client: &Client,
        name: &ClusterName,
        known: ClusterStatus,
    ) -> anyhow::Result<()> {
        if !self.wait {
            return Ok(());
        }
        let verdict = |status: &ClusterStatus| {
            // Where nothing had to be done, only the moment of the look tells of it.
            let looked_at = status.revision != known.revision || status.checked != known.checked;
            looked_at.then(|| settled(status, status.version)).flatten()
        };
        match self.follow(client, name, LOOK_HOLD, verdict).await? {
            Some(_) => output::line(&format!("cluster {name} is ready")),
            None => bail!("cluster {name} was deleted"),
        }
    }

    /// Waits until the cluster no longer exists, when asked to wait.
    pub(super) async fn until_deleted(self, client: &Client, name: &ClusterName) -> anyhow::Result<()> {
        if !self.wait {
            return Ok(());
        }
        let failed = |status: &ClusterStatus| match status.state {
            ClusterState::DeleteFailed => Some(Err(failure(status))),
            ClusterState::Deleted => Some(Ok(())),
            _ => None,
        };
        self.follow(client, name, HOLD, failed).await?;
        output::line(&format!("cluster {name} is deleted"))
    }

    /// Follows the status until `verdict` gives one; none when the cluster is gone. The server holds each call until
    /// something changes, for `hold` at most, so nothing is polled.
    async fn follow(
        self,
        client: &Client,
        name: &ClusterName,
        hold: Duration,
        verdict: impl Fn(&ClusterStatus) -> Option<anyhow::Result<()>>,
    ) -> anyhow::Result<Option<ClusterStatus>> {
        let mut said = String::new();
        let mut known: Option<String> = None;
        let follow = async {
            loop {
                let status = match known.clone() {
                    None => client.status(name).await,
                    Some(revision) => client.status_after(name, &StatusWait { revision, hold }).await,
                };
                let status = match status {
                    // Who waits has just seen it.
                    Err(Error::Problem(problem)) if problem.code == Code::NotFound => return Ok(None),
                    status => status?,
                };
                let summary = summary(&status);
                if summary != said {
                    output::note(&summary);
                    said = summary;
                }
                if let Some(end) = verdict(&status) {
                    return end.map(|()| Some(status));
                }
                known = Some(status.revision);
            }
        };
        match tokio::time::timeout(self.timeout.0, follow).await {
            Ok(end) => end,
            Err(_) => bail!(
                "cluster {name} did not get there within {}: see `evenkeel cluster status {name}`",
                self.timeout
            ),
        }
    }
}

/// The verdict on a cluster that should run version `wanted`; none while it is still on its way.
fn settled(status: &ClusterStatus, wanted: ConfigurationVersion) -> Option<anyhow::Result<()>> {
    let observed = status.observed_version.is_some_and(|observed| observed >= wanted);
    match status.state {
        ClusterState::Ready if observed => Some(Ok(())),
        ClusterState::Failed if observed => Some(Err(failure(status))),
        ClusterState::Deleting | ClusterState::DeleteFailed | ClusterState::Deleted => {
            Some(Err(anyhow::anyhow!("cluster {} is being deleted", status.name)))
        }
        _ => None,
    }
}

fn failure(status: &ClusterStatus) -> anyhow::Error {
    let reason = status.reason.as_deref().unwrap_or("no reason was given");
    anyhow::anyhow!("cluster {} is {}: {reason}", status.name, status.state)
}

/// One line that says how the cluster is, for following it.
fn summary(status: &ClusterStatus) -> String {
    let components: Vec<_> = status
        .components
        .iter()
        .map(|component| {
            let state = component
                .state
                .as_ref()
                .map_or("-", |state| state.kind().as_str());
            format!("{} {state}", component.name)
        })
        .collect();
    format!("{} {}: {}", status.name, status.state, components.join(", "))
}

fn table(status: &ClusterStatus) -> String {
    let now = crate::now();
    let head = output::table(
        [
            "NAME", "STATE", "SINCE", "VERSION", "OBSERVED", "CHECKED", "REASON",
        ],
        [[
            status.name.to_string(),
            status.state.to_string(),
            output::age(status.since, now),
            status.version.to_string(),
            output::or_dash(status.observed_version),
            output::or_dash(status.checked.map(|checked| output::age(checked, now))),
            output::or_dash(status.reason.as_ref()),
        ]],
    );
    if status.components.is_empty() {
        return head;
    }
    let rows = status.components.iter().map(|component| {
        [
            component.name.to_string(),
            output::or_dash(component.state.as_ref().map(|state| state.kind())),
            output::or_dash(component.revision),
            output::or_dash(
                component
                    .not_ready
                    .as_deref()
                    .or_else(|| component.state.as_ref().and_then(OperationState::reason)),
            ),
        ]
    });
    format!(
        "{head}\n\n{}",
        output::table(["COMPONENT", "STATE", "REVISION", "REASON"], rows)
    )
}
