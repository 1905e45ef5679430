//! The controller: what it gathers, publishes and watches.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::Clock;
use evenkeel_steps::{Failure, Guard, Permission, Pipeline, Report};
use evenkeel_telemetry::metrics::{GateMetrics, StepMetrics};
use evenkeel_telemetry::{CancellationToken, Tasks};
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use serde_json::{Value, json};

use super::connection::{Connections, wanted_path};
use super::state::{RepoState, Shared};
use super::steps::{self, APPLIED, CONDITIONS, PAIRS, PROJECT, applied_text};
use crate::frame::{
    Access, DEFAULT_CALL_TIMEOUT, Key, Kind, Looker, ObjectPlan, Passed, Scope, permission, policy,
};
use crate::gate::GateTerms;
use crate::git::BranchName;
use crate::leader::Fence;
use crate::resources::{CreationPolicy, DeletionPolicy, GitRepo, GitRepoSpec, RepoType};

/// Its field manager, and how it calls itself in events.
const MANAGER: &str = "evenkeel-gitrepo";

/// How often a repository is looked at although nothing happened, unless it is said otherwise.
const DEFAULT_INTERVAL: Duration = Duration::from_secs(3 * 3600);

/// How many repositories are worked on at once, unless it is said otherwise.
const DEFAULT_CONCURRENCY: u16 = 10;

/// What is the same for all repositories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitRepoSettings {
    /// What becomes of the repository of an object that does not say it.
    pub deletion_policy: DeletionPolicy,
    /// What becomes of a repository that is there already, if the object does not say it.
    pub creation_policy: CreationPolicy,
    /// Whether objects are protected from deletion unless they say otherwise.
    pub protect: bool,
    /// The branch that the first commit of a repository makes.
    pub first_branch: BranchName,
    /// How often a repository is looked at although nothing happened.
    pub interval: Duration,
    /// Whether what was seen at a host counts for that long, unless something changes that it depends on.
    pub remember: bool,
    /// How many are worked on at once.
    pub concurrency: u16,
    /// How many calls a Git host gets in a second at most, by one Secret; none for as many as it takes.
    pub calls_per_second: Option<NonZeroU32>,
    /// How long one call of the Kubernetes API may take.
    pub call_timeout: Duration,
}

impl Default for GitRepoSettings {
    fn default() -> Self {
        Self {
            deletion_policy: DeletionPolicy::Archive,
            creation_policy: CreationPolicy::Create,
            protect: false,
            first_branch: BranchName::default(),
            interval: DEFAULT_INTERVAL,
            remember: true,
            concurrency: DEFAULT_CONCURRENCY,
            calls_per_second: None,
            call_timeout: DEFAULT_CALL_TIMEOUT,
        }
    }
}

/// The controller of repositories.
#[derive(Clone, Debug)]
pub struct GitRepos(Looker<Repository>, GateTerms);

/// The kind.
#[derive(Debug)]
struct Repository {
    pipeline: Pipeline<RepoState>,
    teardown: Pipeline<RepoState>,
    shared: Arc<Shared>,
}

impl GitRepos {
    /// A controller that has not begun yet.
    ///
    /// # Errors
    /// When the steps make no pipeline, which is a mistake in Evenkeel.
    pub fn new(
        client: Client,
        settings: GitRepoSettings,
        clock: Arc<dyn Clock>,
        tasks: Tasks,
    ) -> Result<Self, evenkeel_steps::Error> {
        let access = Access::new(client.clone(), MANAGER, settings.call_timeout);
        let concurrency = settings.concurrency;
        let terms = GateTerms {
            clock: Arc::clone(&clock),
            calls_per_second: settings.calls_per_second,
            metrics: Arc::default(),
        };
        let [pipeline, teardown] = pipelines()?;
        let kind = Repository {
            pipeline,
            teardown,
            shared: Arc::new(Shared {
                access: access.clone(),
                connections: Connections::new(settings.first_branch.clone(), terms.clone()),
                settings,
                tasks,
                values: Default::default(),
            }),
        };
        let looker = Looker::new(kind, access, client, clock, MANAGER, concurrency);
        Ok(Self(looker, terms))
    }

    /// Counts steps, passes and hosts that are left alone from now on; to be said before it runs.
    pub(crate) fn measured(self, steps: StepMetrics, gates: GateMetrics) -> Self {
        // Nobody has set it before.
        let _ = self.1.metrics.set(gates);
        Self(self.0.measured(steps), self.1)
    }

    /// All that it asks of what is outside, each with who asks: a step, or a part of the frame.
    pub fn permissions(&self) -> Vec<(String, Permission)> {
        self.0.permissions()
    }

    /// Works only while this says that the Lease is ours; to be said before it runs.
    pub(crate) fn fenced(self, fence: Fence) -> Self {
        Self(self.0.fenced(fence), self.1)
    }

    /// Brings one repository a pass further.
    ///
    /// # Errors
    /// When the object itself cannot be read; everything else is told in its status.
    pub async fn pass(&self, namespace: &str, name: &str) -> Result<Passed, Failure> {
        self.0.pass(namespace, name).await
    }

    /// What a pass over an object would do, as it would be after a change if it is not the present one. Writes nothing anywhere.
    pub(crate) async fn plan(&self, object: GitRepo) -> ObjectPlan {
        self.0.plan(object).await
    }

    /// Lets passes plan and not act, whatever the objects say; to be said before it runs.
    pub(crate) fn observing(self, observes: bool) -> Self {
        Self(self.0.observing(observes), self.1)
    }

    /// Looks after all repositories of `scope` until `token` is cancelled. A change of a Secret reaches the repositories that
    /// have it or name it at once.
    pub async fn run(&self, scope: Scope, token: CancellationToken) {
        let sources = self.0.sources(scope).mentions::<Secret>();
        self.0.run(sources, token).await;
    }
}

/// The pipelines: towards what an object asks for, and away from it.
pub(crate) fn pipelines() -> Result<[Pipeline<RepoState>; 2], evenkeel_steps::Error> {
    Ok([steps::pipeline()?, steps::teardown()?])
}

impl Kind for Repository {
    type Object = GitRepo;
    type State = RepoState;

    const STATUS_FIELDS: &'static [&'static str] = &[
        "observedGeneration",
        "phase",
        "type",
        "url",
        "hostKeys",
        "lastAppliedCIVariables",
        "generatedDeployKeys",
        "looks",
        "plan",
        "conditions",
    ];

    const CONDITIONS: &'static [&'static str] = CONDITIONS;

    /// Nobody looks it up in the store.
    fn trim(object: &mut GitRepo) {
        object.metadata.annotations = None;
        object.spec = GitRepoSpec::default();
        object.status = None;
    }

    /// The Secret of its host, and those of its variables.
    fn mentions(object: &GitRepo) -> Vec<Key> {
        let own_namespace = object.metadata.namespace.as_deref().unwrap_or_default();
        let template = &object.spec.template;
        let host = template.api_secret_ref.as_ref().map(|reference| {
            let home = reference.namespace.as_deref().filter(|home| !home.is_empty());
            let name = reference.name.as_deref().unwrap_or_default();
            (home.unwrap_or(own_namespace).into(), name.into())
        });
        let variables = template.ci_variables.iter().filter_map(|variable| {
            let key = variable.value_from.as_ref()?.secret_key_ref.as_ref()?;
            Some((own_namespace.into(), key.name.as_str().into()))
        });
        host.into_iter().chain(variables).collect()
    }

    fn pipeline(&self) -> &Pipeline<RepoState> {
        &self.pipeline
    }

    fn teardown(&self) -> &Pipeline<RepoState> {
        &self.teardown
    }

    fn reads(&self) -> Vec<Permission> {
        vec![permission::get::<Secret>()]
    }

    fn watches(&self) -> Vec<Permission> {
        permission::watch::<Secret>().to_vec()
    }

    async fn gather(&self, object: GitRepo) -> Result<RepoState, Failure> {
        RepoState::gather(object, Arc::clone(&self.shared)).await
    }

    fn guard(&self, state: &RepoState) -> Guard {
        policy::deletion(state.deletion_policy()).and(policy::creation(state.creation_policy()))
    }

    fn status(&self, state: &RepoState, report: &Report<RepoState>) -> Value {
        let before = state.object.status.clone().unwrap_or_default();
        if state.object.metadata.deletion_timestamp.is_some() {
            return json!(before);
        }
        if state.template().repo_type == Some(RepoType::Unmanaged) {
            // The operator knows nothing of it: what a user wrote there stays.
            return json!({ "url": before.url, "hostKeys": before.host_keys });
        }
        let project = report.value(PROJECT);
        let failed = report.failures().next().is_some();
        let url = match (&project, report.step("project")) {
            (Some(project), _) => state.connection.as_ref().ok().map(|to| to.url(&project.path)),
            // It could not be created: there is none.
            (None, Some(entry)) if entry.started.is_some() && state.notes.record().project.is_none() => None,
            // Nobody could look: the last one that was right stays (A32).
            _ => before.url.clone(),
        };
        let phase = match (&project, failed) {
            (_, true) => Some("failed"),
            (Some(_), false) => Some("created"),
            (None, false) => Some("creating"),
        };
        let template = state.template();
        let is_named = wanted_path(template.path.as_deref(), template.repo_name.as_deref()).is_ok();
        let connection = state.connection.as_ref().ok().filter(|_| is_named);
        let pairs = report.value(PAIRS).map(|pairs| (*pairs).clone());
        json!({
            "phase": phase,
            "type": connection.map(|to| to.host.kind()).or(before.kind.as_deref()),
            "url": url,
            "hostKeys": connection.map_or(before.host_keys, |to| to.host_keys.clone()),
            "lastAppliedCIVariables": applied_text(state, report.value(APPLIED).is_some()),
            "generatedDeployKeys": pairs.unwrap_or(before.generated_deploy_keys),
            "looks": state.looks.after(report),
        })
    }

    fn interval(&self) -> Option<Duration> {
        Some(self.shared.settings.interval)
    }
}
