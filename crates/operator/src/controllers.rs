//! The three controllers of one operator, made from its settings.

use std::sync::{Arc, OnceLock};

use evenkeel_core::Clock;
use evenkeel_steps::Pipeline;
use evenkeel_telemetry::Tasks;
use evenkeel_telemetry::metrics::GateMetrics;
use kube::Client;

use crate::gate::GateTerms;
use crate::gitrepo::pipelines as repository_pipelines;
use crate::tenancy::{cluster_pipelines, tenant_pipelines};
use crate::vault::{SecretStore, Vault};
use crate::{Clusters, Error, GitRepos, OperatorSettings, Tenants};

/// All of them.
#[derive(Debug)]
pub(crate) struct Controllers {
    pub(crate) tenants: Tenants,
    pub(crate) clusters: Clusters,
    pub(crate) repositories: GitRepos,
}

impl Controllers {
    /// Controllers that have not begun yet. `gates` is set once, if anybody counts what is left alone.
    pub(crate) fn new(
        settings: &OperatorSettings,
        client: Client,
        clock: Arc<dyn Clock>,
        tasks: Tasks,
        gates: Arc<OnceLock<GateMetrics>>,
    ) -> Result<Self, Error> {
        let terms = GateTerms {
            clock: Arc::clone(&clock),
            calls_per_second: None,
            metrics: gates,
        };
        let vault: Option<Arc<dyn SecretStore>> = match &settings.vault {
            Some(vault) => Some(Arc::new(Vault::gated(vault, &terms)?)),
            None => None,
        };
        let tenancy = settings.tenancy.clone();
        let observes = settings.observe_only;
        let tenants = Tenants::new(client.clone(), tenancy.clone(), Arc::clone(&clock)).map_err(broken)?;
        let clusters = Clusters::new(client.clone(), tenancy, vault, Arc::clone(&clock)).map_err(broken)?;
        let repositories =
            GitRepos::new(client, settings.repositories.clone(), clock, tasks).map_err(broken)?;
        Ok(Self {
            tenants: tenants.observing(observes),
            clusters: clusters.observing(observes),
            repositories: repositories.observing(observes),
        })
    }
}

/// A pipeline for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipelineText {
    /// Its name.
    pub name: String,
    /// Its steps in order, with predicates, edges and permissions.
    pub text: String,
    /// Its graph, in the DOT language of Graphviz.
    pub dot: String,
}

impl PipelineText {
    fn of<S: Send + Sync + 'static>(pipeline: &Pipeline<S>) -> Self {
        let description = pipeline.describe();
        Self {
            name: pipeline.name().to_string(),
            text: description.to_string(),
            dot: description.dot(),
        }
    }
}

/// All pipelines: of tenants, clusters and repositories, each towards what an object asks for and away from it.
///
/// # Errors
/// [`Error::Start`] when the steps make no pipeline, which is a mistake in Evenkeel.
pub fn pipelines() -> Result<Vec<PipelineText>, Error> {
    let mut texts = Vec::new();
    texts.extend(tenant_pipelines().map_err(broken)?.iter().map(PipelineText::of));
    texts.extend(cluster_pipelines().map_err(broken)?.iter().map(PipelineText::of));
    texts.extend(
        repository_pipelines()
            .map_err(broken)?
            .iter()
            .map(PipelineText::of),
    );
    Ok(texts)
}

fn broken(error: evenkeel_steps::Error) -> Error {
    Error::Start {
        what: "make the pipelines".to_owned(),
        problem: error.to_string(),
    }
}
