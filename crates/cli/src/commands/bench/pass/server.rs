//! The server that is asked, and that counts.

use anyhow::Context;
use evenkeel_realparts::{AuditMark, ControlPlane};
use evenkeel_simulator::{Options, Simulator};
use evenkeel_telemetry::Tasks;

/// The cluster's name.
const NAME: &str = "bench";
/// How our requests begin their `User-Agent`.
const AGENT: &str = "evenkeel/";

/// A cluster of our own, real or simulated.
pub(super) enum Server {
    Real {
        cluster: Box<evenkeel_realparts::Cluster>,
        /// Its database, which ends after it.
        _control_plane: ControlPlane,
    },
    Simulated {
        cluster: evenkeel_simulator::Cluster,
        simulator: Simulator,
    },
}

/// From where requests are counted.
pub(super) enum Mark {
    Audit(AuditMark),
    Counters(Counted),
}

/// Requests, as the server counted them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) requests: u64,
    pub(super) writes: u64,
}

impl Counted {
    pub(super) fn is_read_only(&self) -> bool {
        self.writes == 0
    }
}

impl Server {
    pub(super) async fn start(simulated: bool, tasks: &Tasks) -> anyhow::Result<Self> {
        if simulated {
            let simulator = Simulator::start(Options::default()).await?;
            return Ok(Self::Simulated {
                cluster: simulator.add_cluster(NAME)?,
                simulator,
            });
        }
        let start = || {
            let control_plane = ControlPlane::start()?;
            let cluster = control_plane.start_cluster(NAME)?;
            Ok::<_, evenkeel_realparts::Error>(Self::Real {
                cluster: Box::new(cluster),
                _control_plane: control_plane,
            })
        };
        let server = tasks.blocking("start a control plane", start).await?;
        server.context("no real API server can be had; --simulated measures on a simulated one")
    }

    pub(super) fn kubeconfig(&self) -> &str {
        match self {
            Self::Real { cluster, .. } => cluster.kubeconfig(),
            Self::Simulated { cluster, .. } => cluster.kubeconfig(),
        }
    }

    pub(super) fn mark(&self) -> anyhow::Result<Mark> {
        Ok(match self {
            Self::Real { cluster, .. } => Mark::Audit(cluster.audit().mark()?),
            Self::Simulated { cluster, .. } => Mark::Counters(simulated(cluster)),
        })
    }

    /// What our client asked since `mark`.
    pub(super) fn since(&self, mark: &Mark) -> anyhow::Result<Counted> {
        Ok(match (self, mark) {
            (Self::Real { cluster, .. }, Mark::Audit(mark)) => {
                let mut counted = Counted::default();
                for request in cluster.audit().since(*mark)? {
                    if request.user_agent.starts_with(AGENT) {
                        counted.requests += 1;
                        counted.writes += u64::from(request.is_write());
                    }
                }
                counted
            }
            (Self::Simulated { cluster, .. }, Mark::Counters(before)) => {
                let now = simulated(cluster);
                Counted {
                    requests: now.requests - before.requests,
                    writes: now.writes - before.writes,
                }
            }
            _ => anyhow::bail!("the mark is of another server"),
        })
    }

    pub(super) async fn stop(self) {
        if let Self::Simulated { simulator, .. } = self {
            simulator.stop().await;
        }
    }
}

fn simulated(cluster: &evenkeel_simulator::Cluster) -> Counted {
    let counts = cluster.counters();
    Counted {
        requests: counts.requests(),
        writes: counts.writes(),
    }
}
