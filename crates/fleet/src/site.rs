//! Where a fleet's clusters are: at their API servers, or, in a simulation, in a model.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use evenkeel_cluster::{ClusterCheck, Expected, ReadinessRules};
use evenkeel_component::{Considered, End};
use evenkeel_core::{ComponentName, ComponentSpec, ObjectChange};
use evenkeel_inventory::{ClaimedOperation, Configuration};
use futures::FutureExt as _;
use futures::stream::{self, StreamExt as _};

use crate::fleet::Inner;
use crate::look::Look;
use crate::look::findings::is_of_the_cluster;
use crate::targets::Trouble;
use crate::workers::{Hold, Timeline, work_at_target};

/// How many components' charts and values are read at the same time.
const CONSIDERED_TOGETHER: usize = 8;

/// What a fleet does at clusters and reads of charts: all that leaves it besides what goes to the inventory.
#[async_trait]
pub(crate) trait Site: Send + Sync {
    /// Compares a cluster with what it should run.
    async fn compare(&self, look: &Look<'_>, configuration: &Configuration) -> Result<Compared, Trouble>;

    /// The components of ours at a cluster, reached with kubeconfig number `kubeconfig`.
    async fn ours(
        &self,
        look: &Look<'_>,
        kubeconfig: Option<u64>,
    ) -> Result<BTreeSet<ComponentName>, Trouble>;

    /// Whether what a component renders may define kinds of its own.
    async fn may_define(&self, inner: &Inner, spec: &ComponentSpec) -> bool;

    /// Does an operation. Answers how it ended and every object it touched.
    async fn work(
        &self,
        inner: &Inner,
        operation: &ClaimedOperation,
        hold: &Arc<Hold>,
        timeline: &Arc<Timeline>,
    ) -> (End, Vec<ObjectChange>);
}

/// A cluster beside its configuration.
pub(crate) struct Compared {
    /// The inputs of each component, in the order of the configuration, or why it has none.
    pub(crate) considered: Vec<Result<Considered, String>>,
    /// What was found there.
    pub(crate) check: ClusterCheck,
    /// The cluster, where more can be asked of it.
    pub(crate) target: Option<evenkeel_cluster::Cluster>,
}

/// The clusters at their API servers.
pub(crate) struct Targeted;

#[async_trait]
impl Site for Targeted {
    async fn compare(&self, look: &Look<'_>, configuration: &Configuration) -> Result<Compared, Trouble> {
        let inner = look.inner;
        let id = &look.cluster.id;
        let target = inner.targets.cluster(id, configuration.kubeconfig).await?;
        let owner = inner.owner(&look.cluster.name)?;
        let components = &configuration.spec.components;
        let may_vouch = look.may_be_vouched_for(&target);
        let mut considering = Vec::with_capacity(components.len());
        for spec in components {
            let component = target.component(&owner, &spec.name);
            let consider = async move { considered(inner.reconciler.consider(&component, spec).await) };
            considering.push(consider.boxed());
        }
        let considered: Vec<_> = stream::iter(considering)
            .buffered(CONSIDERED_TOGETHER)
            .collect()
            .await;
        let considered = considered.into_iter().collect::<Result<Vec<_>, _>>()?;
        let expected: Vec<Expected> = components
            .iter()
            .zip(&considered)
            .map(|(spec, inputs)| Expected {
                component: spec.name.clone(),
                inputs: inputs.as_ref().ok().map(|inputs| inputs.all),
                // Rules that this version cannot read fail the operation that would use them.
                readiness: ReadinessRules::compile(&spec.readiness).unwrap_or_default(),
            })
            .collect();
        let check = if may_vouch && inner.watches.vouches(id, &expected) {
            ClusterCheck::vouched_for(&expected)
        } else if inner.watches.wants(id) {
            target.check_to_watch(&owner, &expected).await?
        } else {
            target.check(&owner, &expected).await?
        };
        Ok(Compared {
            considered,
            check,
            target: Some(target),
        })
    }

    async fn ours(
        &self,
        look: &Look<'_>,
        kubeconfig: Option<u64>,
    ) -> Result<BTreeSet<ComponentName>, Trouble> {
        let target = look.inner.targets.cluster(&look.cluster.id, kubeconfig).await?;
        let owner = look.inner.owner(&look.cluster.name)?;
        Ok(target.check(&owner, &[]).await?.unexpected)
    }

    async fn may_define(&self, inner: &Inner, spec: &ComponentSpec) -> bool {
        inner.reconciler.may_define(spec).await
    }

    async fn work(
        &self,
        inner: &Inner,
        operation: &ClaimedOperation,
        hold: &Arc<Hold>,
        timeline: &Arc<Timeline>,
    ) -> (End, Vec<ObjectChange>) {
        work_at_target(inner, operation, hold, timeline).await
    }
}

/// The inputs of a component, or why it has none; what concerns the whole cluster is trouble.
fn considered(
    considered: Result<Considered, evenkeel_component::Error>,
) -> Result<Result<Considered, String>, Trouble> {
    match considered {
        Ok(inputs) => Ok(Ok(inputs)),
        Err(evenkeel_component::Error::Cluster(error)) if is_of_the_cluster(error.class()) => {
            Err(error.into())
        }
        Err(error) => Ok(Err(error.to_string())),
    }
}
