//! The operator as a process of its own, so that its memory is its own.

use std::collections::HashMap;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};

use super::land::NAMESPACE;

/// How long a look at the metrics may take.
const LOOK: Duration = Duration::from_secs(10);
/// The count of the histogram of passes.
const PASSES: &str = "evenkeel_pass_duration_seconds_count{";

/// A running operator. Killed when dropped.
pub(super) struct Operator {
    child: Child,
    metrics: u16,
}

impl Operator {
    pub(super) async fn start(kubeconfig: &Path, hosts: &str) -> anyhow::Result<Self> {
        let this = std::env::current_exe().context("the path of this program cannot be found")?;
        // Free a moment ago.
        let metrics = TcpListener::bind(("127.0.0.1", 0)).await?.local_addr()?.port();
        let child = Command::new(this)
            .args(["operator", "--kubeconfig"])
            .arg(kubeconfig)
            .args(["--watch-namespace", NAMESPACE, "--health-probe-bind-address", "0"])
            .args(["--metrics-bind-address", &format!("127.0.0.1:{metrics}")])
            .args([
                "--lieutenant-create-serviceaccount-token-secret=true",
                "--skip-vault-setup=false",
            ])
            .args(["--vault-addr", hosts])
            .env("VAULT_TOKEN", "bench")
            .env(
                "EVENKEEL_LOG",
                std::env::var("EVENKEEL_LOG").unwrap_or_else(|_| "error".to_owned()),
            )
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .context("the operator cannot be started")?;
        Ok(Self { child, metrics })
    }

    /// How many passes there were, by pipeline, and how many of all changed something or failed.
    pub(super) async fn passes(&mut self) -> anyhow::Result<(HashMap<String, u64>, u64)> {
        if let Some(status) = self.child.try_wait()? {
            bail!("the operator has ended with {status}");
        }
        let mut passes: HashMap<String, u64> = HashMap::new();
        let mut other = 0;
        // It listens before it does anything else, but not at once.
        let Ok(text) = tokio::time::timeout(LOOK, self.scrape()).await? else {
            return Ok((passes, 0));
        };
        for line in text.lines().filter_map(|line| line.strip_prefix(PASSES)) {
            let Some((labels, count)) = line.rsplit_once(' ') else {
                continue;
            };
            let count: u64 = count.parse().unwrap_or_default();
            let label = |name: &str| labels.split(&format!("{name}=\"")).nth(1)?.split('"').next();
            *passes
                .entry(label("pipeline").unwrap_or_default().to_owned())
                .or_default() += count;
            if label("conclusion") != Some("unchanged") {
                other += count;
            }
        }
        Ok((passes, other))
    }

    async fn scrape(&self) -> anyhow::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.metrics)).await?;
        stream
            .write_all(b"GET /metrics HTTP/1.0\r\nhost: bench\r\n\r\n")
            .await?;
        let mut text = String::new();
        stream.read_to_string(&mut text).await?;
        Ok(text)
    }

    /// The most memory that was resident at one time, in bytes.
    pub(super) fn peak(&self) -> anyhow::Result<u64> {
        let id = self.child.id().context("the operator has ended")?;
        let status = std::fs::read_to_string(format!("/proc/{id}/status"))
            .context("the memory of the operator cannot be read")?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
        Ok(kilobytes.context("the kernel does not tell the peak of memory")? * 1_024)
    }

    pub(super) async fn kill(mut self) -> anyhow::Result<()> {
        self.child.kill().await.context("the operator cannot be ended")
    }
}
