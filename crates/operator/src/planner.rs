//! What the operator would do, without doing it (E12).

use std::sync::{Arc, OnceLock};

use evenkeel_core::Clock;
use evenkeel_steps::Failure;
use evenkeel_telemetry::Tasks;
use futures::{StreamExt as _, stream};
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::core::NamespaceResourceScope;
use kube::{Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::controllers::Controllers;
use crate::frame::ObjectPlan;
use crate::resources::{Cluster, GROUP, GitRepo, Tenant};
use crate::{Error, OperatorSettings, Scope};

/// How many objects are looked at at once.
const AT_ONCE: usize = 10;

/// The field manager for which a change is tried.
const MANAGER: &str = "evenkeel-plan";

/// Plans passes, and lets none act. It reads what an operator with the same settings reads that remembers nothing, and writes nothing: not at the API
/// server, at no Git host and not in Vault. It needs no Lease.
pub struct Planner {
    controllers: Controllers,
    client: Client,
    scope: Scope,
}

/// Which objects are planned for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Selection {
    /// All of the operator's scope.
    #[default]
    All,
    /// This one.
    One {
        /// Its kind.
        kind: PlannedKind,
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
}

/// A kind that is looked after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlannedKind {
    /// Tenants.
    Tenant,
    /// Clusters.
    Cluster,
    /// Git repositories.
    GitRepo,
}

impl PlannedKind {
    /// The kind of that name, as `kubectl` takes it: `cluster`, `clusters`, `Cluster`, `clusters.syn.tools`.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.to_ascii_lowercase();
        let bare = text.strip_suffix(&format!(".{GROUP}")).unwrap_or(&text);
        match bare.strip_suffix('s').unwrap_or(bare) {
            "tenant" => Some(Self::Tenant),
            "cluster" => Some(Self::Cluster),
            "gitrepo" => Some(Self::GitRepo),
            _ => None,
        }
    }
}

impl Planner {
    /// A planner for an operator with these settings.
    ///
    /// # Errors
    /// [`Error::Invalid`] for settings that cannot be used.
    pub fn new(
        settings: &OperatorSettings,
        client: Client,
        clock: Arc<dyn Clock>,
        tasks: Tasks,
    ) -> Result<Self, Error> {
        let metrics = Arc::new(OnceLock::new());
        let mut fresh = settings.clone();
        fresh.tenancy.remember = false;
        fresh.repositories.remember = false;
        Ok(Self {
            controllers: Controllers::new(&fresh, client.clone(), clock, tasks, metrics)?,
            client,
            scope: settings.scope.clone(),
        })
    }

    /// What would be done for these objects as they are now: tenants, then clusters, then repositories, by name.
    ///
    /// # Errors
    /// [`Error::Unread`] when the objects cannot be read, or when the one is not there. What goes wrong with a step is in the plan.
    pub async fn plan(&self, selection: &Selection) -> Result<Vec<ObjectPlan>, Error> {
        match selection {
            Selection::All => {
                let mut plans = self.all::<Tenant>().await?;
                plans.extend(self.all::<Cluster>().await?);
                plans.extend(self.all::<GitRepo>().await?);
                Ok(plans)
            }
            Selection::One {
                kind,
                namespace,
                name,
            } => {
                let plan = match kind {
                    PlannedKind::Tenant => self.one::<Tenant>(namespace, name).await?,
                    PlannedKind::Cluster => self.one::<Cluster>(namespace, name).await?,
                    PlannedKind::GitRepo => self.one::<GitRepo>(namespace, name).await?,
                };
                Ok(vec![plan])
            }
        }
    }

    /// What would be done for an object once somebody had applied it: `object` is what they would apply. The API server is asked what
    /// it would make of it, defaults and admission included, and stores nothing. None if it is of no kind that is looked after.
    ///
    /// # Errors
    /// [`Error::Unread`] when the API server would refuse it.
    pub async fn plan_applied(&self, object: &Value) -> Result<Option<ObjectPlan>, Error> {
        let is_ours = object["apiVersion"]
            .as_str()
            .is_some_and(|version| version.starts_with(&format!("{GROUP}/")));
        let kind = object["kind"].as_str().and_then(PlannedKind::parse);
        Ok(match kind.filter(|_| is_ours) {
            Some(PlannedKind::Tenant) => Some(self.applied::<Tenant>(object).await?),
            Some(PlannedKind::Cluster) => Some(self.applied::<Cluster>(object).await?),
            Some(PlannedKind::GitRepo) => Some(self.applied::<GitRepo>(object).await?),
            None => None,
        })
    }

    async fn all<K: Kind>(&self) -> Result<Vec<ObjectPlan>, Error> {
        let api: Api<K> = match &self.scope {
            Scope::All => Api::all(self.client.clone()),
            Scope::Namespace(namespace) => Api::namespaced(self.client.clone(), namespace),
        };
        let list = api.list(&ListParams::default()).await;
        let list = list.map_err(|error| unread(&format!("list the {}", K::plural(&())), &error))?;
        let mut objects = list.items;
        objects.sort_by_cached_key(|object| (object.namespace(), object.name_any()));
        let plans = stream::iter(objects).map(|object| object.plan(&self.controllers));
        Ok(plans.buffered(AT_ONCE).collect().await)
    }

    async fn one<K: Kind>(&self, namespace: &str, name: &str) -> Result<ObjectPlan, Error> {
        let api: Api<K> = Api::namespaced(self.client.clone(), namespace);
        let doing = || format!("read {} {namespace}/{name}", K::kind(&()));
        let object = api.get(name).await.map_err(|error| unread(&doing(), &error))?;
        Ok(object.plan(&self.controllers).await)
    }

    /// For an object as it would be after it was applied.
    async fn applied<K: Kind>(&self, object: &Value) -> Result<ObjectPlan, Error> {
        let metadata = &object["metadata"];
        let name = metadata["name"].as_str().unwrap_or_default();
        let namespace = match (metadata["namespace"].as_str(), &self.scope) {
            (Some(namespace), _) => namespace,
            (None, Scope::Namespace(namespace)) => namespace,
            (None, Scope::All) => "default",
        };
        let api: Api<K> = Api::namespaced(self.client.clone(), namespace);
        let params = PatchParams {
            dry_run: true,
            ..PatchParams::apply(MANAGER).force()
        };
        let doing = || format!("try {} {namespace}/{name}", K::kind(&()));
        let tried = api.patch(name, &params, &Patch::Apply(object)).await;
        let object = tried.map_err(|error| unread(&doing(), &error))?;
        Ok(object.plan(&self.controllers).await)
    }
}

impl std::fmt::Debug for Planner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Planner")
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}

/// What is planned for.
trait Kind:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + std::fmt::Debug
{
    /// What its controller would do for it.
    async fn plan(self, controllers: &Controllers) -> ObjectPlan;
}

impl Kind for Tenant {
    async fn plan(self, controllers: &Controllers) -> ObjectPlan {
        controllers.tenants.plan(self).await
    }
}

impl Kind for Cluster {
    async fn plan(self, controllers: &Controllers) -> ObjectPlan {
        controllers.clusters.plan(self).await
    }
}

impl Kind for GitRepo {
    async fn plan(self, controllers: &Controllers) -> ObjectPlan {
        controllers.repositories.plan(self).await
    }
}

fn unread(doing: &str, error: &kube::Error) -> Error {
    let failure: Failure = crate::frame::failure(error, doing);
    Error::Unread {
        problem: failure.to_string(),
    }
}
