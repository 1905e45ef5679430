//! The controller of Tenant. It pulls what it needs from its clusters; no cluster writes to it (L25, L26).
//!
//! ```text
//! claim ─┬─ fields ── git-repo ── repository
//!        ├─ service-account ── token-secret
//!        └─ role ── role-binding
//! deleted: clusters ── release
//! ```

mod content;
mod members;
mod steps;

use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::Clock;
use evenkeel_steps::{Failure, Permission, Pipeline, Report};
use evenkeel_telemetry::CancellationToken;
use evenkeel_telemetry::metrics::StepMetrics;
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::Client;
use serde_json::{Value, json};

use self::members::Member;
use super::access_rights::Rights;
use super::cluster::tenant_of;
use super::{RBAC_READY, REPO_READY, TEMPLATE_RENDERED, TenancySettings, repository};
use crate::frame::{
    Access, Claim, Claimable, Identity, Kind, Looker, Named, ObjectPlan, Passed, Scope, Snapshot, owner_of,
    permission,
};
use crate::leader::Fence;
use crate::resources::{Cluster, GitRepo, Tenant, TenantSpec, TenantTemplate};

/// Its field manager, and how it calls itself in events.
const MANAGER: &str = "evenkeel-tenant";

/// The one template that is looked at.
const TEMPLATE: &str = "default";

/// Field of clusters by which those of a tenant are found.
const TENANT_FIELD: &str = "spec.tenantRef.name";

/// What all passes share.
struct Shared {
    access: Access,
    settings: TenancySettings,
    /// While the controller runs.
    members: Named<Member>,
}

/// A tenant as one pass sees it.
pub(crate) struct TenantState {
    object: Tenant,
    identity: Identity,
    template: Option<TenantTemplate>,
    /// All that name it, sorted.
    clusters: Vec<Member>,
    repository: Option<GitRepo>,
    rights: Rights,
    shared: Arc<Shared>,
}

/// The controller of tenants.
#[derive(Clone)]
pub struct Tenants(Looker<OfTenants>, Named<Member>);

/// The kind.
struct OfTenants {
    pipeline: Pipeline<TenantState>,
    teardown: Pipeline<TenantState>,
    shared: Arc<Shared>,
}

impl Tenants {
    /// A controller that has not begun yet.
    ///
    /// # Errors
    /// When the steps make no pipeline, which is a mistake in Evenkeel.
    pub fn new(
        client: Client,
        settings: TenancySettings,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, evenkeel_steps::Error> {
        let access = Access::new(client.clone(), MANAGER, settings.call_timeout);
        let concurrency = settings.concurrency;
        let members = Named::default();
        let [pipeline, teardown] = pipelines()?;
        let kind = OfTenants {
            pipeline,
            teardown,
            shared: Arc::new(Shared {
                access: access.clone(),
                settings,
                members: members.clone(),
            }),
        };
        let looker = Looker::new(kind, access, client, clock, MANAGER, concurrency);
        Ok(Self(looker, members))
    }

    /// Counts steps and passes from now on; to be said before it runs.
    pub(crate) fn measured(self, metrics: StepMetrics) -> Self {
        Self(self.0.measured(metrics), self.1)
    }

    /// All that it asks of what is outside, each with who asks: a step, or a part of the frame.
    pub fn permissions(&self) -> Vec<(String, Permission)> {
        self.0.permissions()
    }

    /// Works only while this says that the Lease is ours; to be said before it runs.
    pub(crate) fn fenced(self, fence: Fence) -> Self {
        Self(self.0.fenced(fence), self.1)
    }

    /// All tenants, as far as metrics show them; none before it runs.
    pub(crate) fn objects(&self) -> Vec<Arc<Tenant>> {
        self.0.objects()
    }

    /// Brings one tenant a pass further.
    ///
    /// # Errors
    /// When the object itself cannot be read; everything else is told in its status.
    pub async fn pass(&self, namespace: &str, name: &str) -> Result<Passed, Failure> {
        self.0.pass(namespace, name).await
    }

    /// What a pass over an object would do, as it would be after a change if it is not the present one. Writes nothing anywhere.
    pub(crate) async fn plan(&self, object: Tenant) -> ObjectPlan {
        self.0.plan(object).await
    }

    /// Lets passes plan and not act, whatever the objects say; to be said before it runs.
    pub(crate) fn observing(self, observes: bool) -> Self {
        Self(self.0.observing(observes), self.1)
    }

    /// Looks after all tenants of `scope` until `token` is cancelled. Changes of what belongs to a tenant, of its clusters and of
    /// the template reach it at once.
    pub async fn run(&self, scope: Scope, token: CancellationToken) {
        let sources = self
            .0
            .sources(scope)
            .owns_and_reads(repository::read)
            .owns::<ServiceAccount>()
            .owns::<Secret>()
            .owns::<Role>()
            .owns::<RoleBinding>()
            .named_by(&self.1, |cluster: &Cluster| Some(tenant_of(cluster)), Member::of)
            .shares::<TenantTemplate>();
        self.0.run(sources, token).await;
    }
}

/// The pipelines: towards what an object asks for, and away from it.
pub(crate) fn pipelines() -> Result<[Pipeline<TenantState>; 2], evenkeel_steps::Error> {
    Ok([steps::pipeline()?, steps::teardown()?])
}

impl TenantState {
    async fn gather(object: Tenant, shared: Arc<Shared>) -> Result<Self, Failure> {
        let identity = Identity::of(&object);
        let access = &shared.access;
        let (namespace, name) = (&identity.namespace, &identity.name);
        let labels = json!({ "app.kubernetes.io/managed-by": "lieutenant" });
        let (clusters, template, repository, rights) = tokio::try_join!(
            Self::clusters(&object, &identity, &shared),
            access.find(namespace, TEMPLATE),
            access.find(namespace, name),
            Rights::gather(access, &identity, owner_of(&object), labels),
        )?;
        Ok(Self {
            template,
            clusters,
            repository,
            rights,
            identity,
            object,
            shared,
        })
    }

    /// Those that name it. What the watch has told is enough, because whatever it tells later is a reason to look again; but a
    /// tenant that goes does not come back, so then the API server is asked.
    async fn clusters(object: &Tenant, identity: &Identity, shared: &Shared) -> Result<Vec<Member>, Failure> {
        let (namespace, name) = (&identity.namespace, &identity.name);
        let is_going = object.metadata.deletion_timestamp.is_some();
        if let Some(members) = shared.members.of(namespace, name).filter(|_| !is_going) {
            return Ok(members);
        }
        let clusters: Vec<Cluster> = shared.access.list_by(namespace, TENANT_FIELD, name).await?;
        let mut members: Vec<Member> = clusters.iter().map(Member::of).collect();
        members.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(members)
    }

    /// Names of the clusters that the pipelines compile, sorted.
    fn compiled(&self) -> Vec<String> {
        let pipelines = self.object.spec.compile_pipeline.as_ref();
        if pipelines.and_then(|pipelines| pipelines.enabled) != Some(true) {
            return Vec::new();
        }
        let compiled = self.clusters.iter().filter(|cluster| cluster.is_compiled);
        compiled.map(|cluster| cluster.name.clone()).collect()
    }
}

impl Snapshot for TenantState {
    type Object = Tenant;

    fn object(&self) -> &Tenant {
        &self.object
    }
}

impl Claimable for TenantState {
    fn access(&self) -> &Access {
        &self.shared.access
    }

    fn claim(&self) -> Option<Claim> {
        let protect = self.shared.settings.protect;
        Claim::of(&self.object, steps::FINALIZERS, protect, None)
    }
}

impl super::steps::Member for TenantState {
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

impl Kind for OfTenants {
    type Object = Tenant;
    type State = TenantState;

    const STATUS_FIELDS: &'static [&'static str] =
        &["observedGeneration", "compilePipeline", "plan", "conditions"];

    const CONDITIONS: &'static [&'static str] = &[RBAC_READY, REPO_READY, TEMPLATE_RENDERED];

    /// What metrics show.
    fn trim(object: &mut Tenant) {
        object.metadata.annotations = None;
        object.spec = TenantSpec {
            display_name: object.spec.display_name.take(),
            ..TenantSpec::default()
        };
        object.status = None;
    }

    fn pipeline(&self) -> &Pipeline<TenantState> {
        &self.pipeline
    }

    fn teardown(&self) -> &Pipeline<TenantState> {
        &self.teardown
    }

    fn reads(&self) -> Vec<Permission> {
        let mut reads = Rights::reads();
        reads.extend([
            permission::get::<TenantTemplate>(),
            permission::get::<GitRepo>(),
            permission::list::<Cluster>(),
        ]);
        reads
    }

    fn watches(&self) -> Vec<Permission> {
        let mut watches = Rights::watches();
        watches.extend(permission::watch::<TenantTemplate>());
        watches.extend(permission::watch::<GitRepo>());
        watches.extend(permission::watch::<Cluster>());
        watches
    }

    async fn gather(&self, object: Tenant) -> Result<TenantState, Failure> {
        // Many reads side by side.
        Box::pin(TenantState::gather(object, Arc::clone(&self.shared))).await
    }

    fn status(&self, state: &TenantState, _: &Report<TenantState>) -> Value {
        let clusters = state.compiled();
        if clusters.is_empty() {
            return json!({});
        }
        json!({ "compilePipeline": { "clusters": clusters } })
    }

    fn interval(&self) -> Option<Duration> {
        Some(self.shared.settings.interval)
    }
}

impl std::fmt::Debug for Tenants {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tenants").finish_non_exhaustive()
    }
}
