//! The controller of Cluster.
//!
//! ```text
//! claim ─┬─ tenant ── fields ── git-repo ── repository
//!        ├─ service-account ── token-secret ── vault (its token, or one that is asked for)
//!        ├─ role ── role-binding
//!        └─ bootstrap-token
//! deleted: vault-removal ── release
//! ```

mod bootstrap;
mod steps;
mod vault;

use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::Clock;
use evenkeel_steps::{Failure, Guard, Permission, Pipeline, Report};
use evenkeel_telemetry::CancellationToken;
use evenkeel_telemetry::metrics::StepMetrics;
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::Client;
use serde_json::{Value, json};

use super::access_rights::Rights;
use super::steps::Member;
use super::{RBAC_READY, REPO_READY, TEMPLATE_RENDERED, TenancySettings, VALIDATED, VAULT_READY, repository};
use crate::frame::{
    Access, Claim, Claimable, Identity, Key, Kind, Looker, Looks, Mark, ObjectPlan, Passed, Scope, Snapshot,
    owner_of, permission, policy,
};
use crate::leader::Fence;
use crate::resources::{Cluster, ClusterSpec, ClusterStatus, DeletionPolicy, GitRepo, Tenant};
use crate::vault::SecretStore;
use crate::vault::asked::Asked;

/// Its field manager, and how it calls itself in events.
const MANAGER: &str = "evenkeel-cluster";

/// The condition of the bootstrap token.
const TOKEN_READY: &str = "BootstrapTokenReady";

/// What all passes share.
struct Shared {
    access: Access,
    settings: TenancySettings,
    vault: Option<Arc<dyn SecretStore>>,
}

/// A cluster as one pass sees it.
pub(crate) struct ClusterState {
    object: Cluster,
    identity: Identity,
    tenant: Option<Tenant>,
    repository: Option<GitRepo>,
    rights: Rights,
    looks: Looks,
    shared: Arc<Shared>,
}

/// The controller of clusters.
#[derive(Clone)]
pub struct Clusters(Looker<OfClusters>);

/// The kind.
struct OfClusters {
    pipeline: Pipeline<ClusterState>,
    teardown: Pipeline<ClusterState>,
    shared: Arc<Shared>,
}

impl Clusters {
    /// A controller that has not begun yet. Without a store nothing is kept in Vault.
    ///
    /// # Errors
    /// When the steps make no pipeline, which is a mistake in Evenkeel.
    pub fn new(
        client: Client,
        settings: TenancySettings,
        vault: Option<Arc<dyn SecretStore>>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, evenkeel_steps::Error> {
        let access = Access::new(client.clone(), MANAGER, settings.call_timeout);
        let concurrency = settings.concurrency;
        let [pipeline, teardown] = pipelines()?;
        let kind = OfClusters {
            pipeline,
            teardown,
            shared: Arc::new(Shared {
                access: access.clone(),
                settings,
                // Steps say what they are about to ask of it.
                vault: vault.map(|store| Arc::new(Asked(store)) as _),
            }),
        };
        Ok(Self(Looker::new(
            kind,
            access,
            client,
            clock,
            MANAGER,
            concurrency,
        )))
    }

    /// Counts steps and passes from now on; to be said before it runs.
    pub(crate) fn measured(self, metrics: StepMetrics) -> Self {
        Self(self.0.measured(metrics))
    }

    /// All that it asks of what is outside, each with who asks: a step, or a part of the frame.
    pub fn permissions(&self) -> Vec<(String, Permission)> {
        self.0.permissions()
    }

    /// Works only while this says that the Lease is ours; to be said before it runs.
    pub(crate) fn fenced(self, fence: Fence) -> Self {
        Self(self.0.fenced(fence))
    }

    /// All clusters, as far as metrics show them; none before it runs.
    pub(crate) fn objects(&self) -> Vec<Arc<Cluster>> {
        self.0.objects()
    }

    /// Brings one cluster a pass further.
    ///
    /// # Errors
    /// When the object itself cannot be read; everything else is told in its status.
    pub async fn pass(&self, namespace: &str, name: &str) -> Result<Passed, Failure> {
        self.0.pass(namespace, name).await
    }

    /// What a pass over an object would do, as it would be after a change if it is not the present one. Writes nothing anywhere.
    pub(crate) async fn plan(&self, object: Cluster) -> ObjectPlan {
        self.0.plan(object).await
    }

    /// Lets passes plan and not act, whatever the objects say; to be said before it runs.
    pub(crate) fn observing(self, observes: bool) -> Self {
        Self(self.0.observing(observes))
    }

    /// Looks after all clusters of `scope` until `token` is cancelled. Changes of what belongs to a cluster, and of its tenant,
    /// reach it at once.
    pub async fn run(&self, scope: Scope, token: CancellationToken) {
        let sources = self
            .0
            .sources(scope)
            .owns_and_reads(repository::read)
            .owns::<ServiceAccount>()
            .owns::<Secret>()
            .owns::<Role>()
            .owns::<RoleBinding>()
            .mentions::<Tenant>();
        self.0.run(sources, token).await;
    }
}

/// Name of a cluster's tenant; empty if it names none.
pub(super) fn tenant_of(cluster: &Cluster) -> &str {
    let reference = cluster.spec.tenant_ref.as_ref();
    reference
        .map(|reference| reference.name.as_str())
        .unwrap_or_default()
}

/// The pipelines: towards what an object asks for, and away from it.
pub(crate) fn pipelines() -> Result<[Pipeline<ClusterState>; 2], evenkeel_steps::Error> {
    Ok([steps::pipeline()?, steps::teardown()?])
}

impl ClusterState {
    async fn gather(object: Cluster, shared: Arc<Shared>) -> Result<Self, Failure> {
        let identity = Identity::of(&object);
        let access = &shared.access;
        let (namespace, name) = (&identity.namespace, &identity.name);
        let tenant = async {
            match tenant_of(&object) {
                "" => Ok(None),
                tenant => access.find::<Tenant>(namespace, tenant).await,
            }
        };
        let (tenant, repository, rights) = tokio::try_join!(
            tenant,
            access.find(namespace, name),
            Rights::gather(access, &identity, owner_of(&object), Value::Null),
        )?;
        let looks = object.status.as_ref().map(|status| &status.looks);
        let settings = &shared.settings;
        Ok(Self {
            looks: Looks::new(looks, settings.interval, settings.remember),
            tenant,
            repository,
            rights,
            identity,
            object,
            shared,
        })
    }

    /// What becomes of what is outside when the object goes.
    fn deletion_policy(&self) -> DeletionPolicy {
        let own = self.object.spec.deletion_policy;
        own.unwrap_or(self.shared.settings.deletion_policy)
    }
}

impl Snapshot for ClusterState {
    type Object = Cluster;

    fn object(&self) -> &Cluster {
        &self.object
    }
}

impl Claimable for ClusterState {
    fn access(&self) -> &Access {
        &self.shared.access
    }

    fn owners() -> Vec<Permission> {
        vec![permission::own::<Tenant>()]
    }

    fn claim(&self) -> Option<Claim> {
        let protect = self.shared.settings.protect;
        Claim::of(
            &self.object,
            steps::FINALIZERS,
            protect,
            self.tenant.as_ref().and_then(owner_of),
        )
    }
}

impl Member for ClusterState {
    fn settings(&self) -> &TenancySettings {
        &self.shared.settings
    }

    fn rights(&self) -> &Rights {
        &self.rights
    }

    fn repository(&self) -> Option<&GitRepo> {
        self.repository.as_ref()
    }
}

impl Kind for OfClusters {
    type Object = Cluster;
    type State = ClusterState;

    /// The bootstrap token is written by its step alone: whoever uses it says so in the same field.
    const STATUS_FIELDS: &'static [&'static str] = &["observedGeneration", "looks", "plan", "conditions"];

    const CONDITIONS: &'static [&'static str] = &[
        TOKEN_READY,
        RBAC_READY,
        REPO_READY,
        TEMPLATE_RENDERED,
        VALIDATED,
        VAULT_READY,
    ];

    /// What metrics show, and whose it is.
    fn trim(object: &mut Cluster) {
        object.metadata.annotations = None;
        let spec = std::mem::take(&mut object.spec);
        object.spec = ClusterSpec {
            display_name: spec.display_name,
            tenant_ref: spec.tenant_ref,
            facts: spec.facts,
            ..ClusterSpec::default()
        };
        object.status = object.status.take().map(|status| ClusterStatus {
            facts: status.facts,
            compile_meta: status.compile_meta,
            ..ClusterStatus::default()
        });
    }

    /// Who uses the bootstrap token says so in the status, who wants a new one removes it there, and facts are in templates.
    fn mark(object: &Cluster) -> Mark {
        let status = object.status.as_ref();
        let read = status.map(|status| {
            let is_blank = (status.conditions.is_empty(), status.compile_meta.is_none());
            (&status.bootstrap_token, &status.facts, is_blank)
        });
        Mark::of_metadata(&object.metadata).with(&read)
    }

    fn mentions(object: &Cluster) -> Vec<Key> {
        let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
        vec![(namespace.into(), tenant_of(object).into())]
    }

    fn pipeline(&self) -> &Pipeline<ClusterState> {
        &self.pipeline
    }

    fn teardown(&self) -> &Pipeline<ClusterState> {
        &self.teardown
    }

    fn reads(&self) -> Vec<Permission> {
        let mut reads = Rights::reads();
        reads.extend([permission::get::<Tenant>(), permission::get::<GitRepo>()]);
        reads
    }

    fn watches(&self) -> Vec<Permission> {
        let mut watches = Rights::watches();
        watches.extend(permission::watch::<Tenant>());
        watches.extend(permission::watch::<GitRepo>());
        watches
    }

    async fn gather(&self, object: Cluster) -> Result<ClusterState, Failure> {
        // Many reads side by side.
        Box::pin(ClusterState::gather(object, Arc::clone(&self.shared))).await
    }

    fn guard(&self, state: &ClusterState) -> Guard {
        policy::deletion(state.deletion_policy())
    }

    fn status(&self, state: &ClusterState, report: &Report<ClusterState>) -> Value {
        json!({ "looks": state.looks.after(report) })
    }

    fn interval(&self) -> Option<Duration> {
        Some(self.shared.settings.interval)
    }
}

impl std::fmt::Debug for Clusters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Clusters").finish_non_exhaustive()
    }
}
