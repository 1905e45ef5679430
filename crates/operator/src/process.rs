//! The operator as a process: one Lease, three controllers, metrics and health.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use evenkeel_core::Clock;
use evenkeel_steps::Permission;
use evenkeel_telemetry::metrics::{GateMetrics, StepMetrics};
use evenkeel_telemetry::{CancellationToken, Metrics, OnCancel, OnError, Tasks};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use tracing::info;

use crate::controllers::Controllers;
use crate::frame::{Access, DEFAULT_CALL_TIMEOUT, permission};
use crate::leader::Candidate;
use crate::probes::{Readiness, health, listen, metrics as show_metrics, serve};
use crate::tenancy::metrics::text as fleet_metrics;
use crate::vault::VaultSettings;
use crate::{Clusters, Error, GitRepoSettings, GitRepos, Scope, TenancySettings, Tenants};

/// Its field manager for the Lease.
const MANAGER: &str = "evenkeel-operator";

/// How the process works.
#[derive(Clone, Debug)]
pub struct OperatorSettings {
    /// Which objects it looks after.
    pub scope: Scope,
    /// What is the same for all tenants and clusters.
    pub tenancy: TenancySettings,
    /// What is the same for all repositories.
    pub repositories: GitRepoSettings,
    /// Whether passes plan and change nothing but what statuses say of it.
    pub observe_only: bool,
    /// Where secrets are kept, if anywhere.
    pub vault: Option<VaultSettings>,
    /// Under which name it competes with other processes, and in which namespace; none works at once.
    pub leader: Option<LeaderSettings>,
    /// Where metrics are shown; none shows none.
    pub metrics: Option<SocketAddr>,
    /// Where it says whether it lives and is ready; none says nothing.
    pub health: Option<SocketAddr>,
}

/// How a process competes with others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderSettings {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Its own name, which no other process has.
    pub identity: String,
}

impl LeaderSettings {
    /// What competing asks of the Kubernetes API.
    pub fn permissions() -> Vec<Permission> {
        let mut permissions = permission::keep::<Lease>().to_vec();
        permissions.push(permission::get::<Lease>());
        permissions
    }
}

/// An operator that is ready to run.
pub struct Operator {
    tenants: Tenants,
    clusters: Clusters,
    repositories: GitRepos,
    scope: Scope,
    candidate: Option<Candidate>,
    readiness: Readiness,
    tasks: Tasks,
    addresses: Addresses,
}

/// Where it listens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    /// For metrics.
    pub metrics: Option<SocketAddr>,
    /// For health.
    pub health: Option<SocketAddr>,
}

impl Operator {
    /// Prepares everything and listens; nothing is looked after yet.
    ///
    /// # Errors
    /// [`Error::Invalid`] for settings that cannot be used, [`Error::Start`] when it cannot listen.
    pub async fn start(
        settings: OperatorSettings,
        client: Client,
        clock: Arc<dyn Clock>,
        tasks: Tasks,
    ) -> Result<Self, Error> {
        let broken = |error: &dyn std::fmt::Display| Error::Start {
            what: "make the pipelines".to_owned(),
            problem: error.to_string(),
        };
        let metrics = Metrics::new();
        let steps = StepMetrics::register(&metrics).map_err(|error| broken(&error))?;
        let gates = GateMetrics::register(&metrics).map_err(|error| broken(&error))?;
        let Controllers {
            tenants,
            clusters,
            repositories,
        } = Controllers::new(
            &settings,
            client.clone(),
            Arc::clone(&clock),
            tasks.clone(),
            Arc::new(OnceLock::from(gates.clone())),
        )?;
        let (tenants, clusters) = (tenants.measured(steps.clone()), clusters.measured(steps.clone()));
        let shown = (tenants.clone(), clusters.clone());
        let fleet = move || {
            let (tenants, clusters) = (shown.0.objects(), shown.1.objects());
            fleet_metrics(tenants.iter().map(Arc::as_ref), clusters.iter().map(Arc::as_ref))
        };
        let readiness = Readiness::default();
        let mut addresses = Addresses::default();
        for (address, router, bound) in [
            (
                settings.metrics,
                show_metrics(metrics, fleet),
                &mut addresses.metrics,
            ),
            (settings.health, health(readiness.clone()), &mut addresses.health),
        ] {
            let Some(address) = address else { continue };
            let listener = listen(address).await?;
            *bound = listener.local_addr().ok();
            drop(tasks.spawn("probes", OnError::Shutdown, OnCancel::Wait, |token| {
                serve(listener, router, token)
            }));
        }
        let candidate = settings.leader.map(|leader| {
            let access = Access::new(client, MANAGER, DEFAULT_CALL_TIMEOUT);
            Candidate::new(access, leader.namespace, leader.identity, clock)
        });
        let fence = candidate.as_ref().map(Candidate::fence).unwrap_or_default();
        Ok(Self {
            tenants: tenants.fenced(fence.clone()),
            clusters: clusters.fenced(fence.clone()),
            repositories: repositories.measured(steps, gates).fenced(fence),
            scope: settings.scope,
            candidate,
            readiness,
            tasks,
            addresses,
        })
    }

    /// Where it listens.
    pub fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// Looks after all objects, as soon as the Lease is its own, until `token` is cancelled: passes under way then end at their next
    /// safe point, and the Lease is given back.
    ///
    /// # Errors
    /// [`Error::LeaseLost`] when another process may have begun to work.
    pub async fn run(mut self, token: CancellationToken) -> Result<(), Error> {
        self.readiness.begin();
        let Some(mut candidate) = self.candidate.take() else {
            self.work(token).await;
            return Ok(());
        };
        if !candidate.win(&token).await {
            return Ok(());
        }
        let work = token.child_token();
        let (kept, ()) = tokio::join!(
            async {
                // Held until the last pass has ended.
                let ended = work.clone();
                let kept = candidate.hold(&ended).await;
                work.cancel();
                kept
            },
            async {
                self.work(work.clone()).await;
                work.cancel();
            },
        );
        if kept.is_ok() {
            candidate.release().await;
        }
        kept
    }

    /// Runs the three controllers, each a supervised task.
    async fn work(&self, token: CancellationToken) {
        info!(scope = ?self.scope, "looking after tenants, clusters and repositories");
        let tasks = [
            self.controller("tenants", token.clone(), {
                let (controller, scope) = (self.tenants.clone(), self.scope.clone());
                |token| async move { controller.run(scope, token).await }
            }),
            self.controller("clusters", token.clone(), {
                let (controller, scope) = (self.clusters.clone(), self.scope.clone());
                |token| async move { controller.run(scope, token).await }
            }),
            self.controller("gitrepos", token, {
                let (controller, scope) = (self.repositories.clone(), self.scope.clone());
                |token| async move { controller.run(scope, token).await }
            }),
        ];
        for task in tasks {
            // How it ended was told by its supervisor.
            let _ = task.join().await;
        }
    }

    fn controller<F, Fut>(
        &self,
        name: &'static str,
        work: CancellationToken,
        run: F,
    ) -> evenkeel_telemetry::Task<()>
    where
        F: FnOnce(CancellationToken) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.tasks.spawn(name, OnError::Shutdown, OnCancel::Wait, |token| async move {
            // Ended with the process, and with the Lease.
            let stop = work.child_token();
            tokio::select! {
                () = run(stop.clone()) => {}
                () = async { token.cancelled().await; stop.cancel(); std::future::pending::<()>().await } => {}
            }
            Ok::<(), std::convert::Infallible>(())
        })
    }
}

impl std::fmt::Debug for Operator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Operator")
            .field("scope", &self.scope)
            .field("addresses", &self.addresses)
            .finish_non_exhaustive()
    }
}
