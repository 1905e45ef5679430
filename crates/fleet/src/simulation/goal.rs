//! What has to be so in the end, when nothing fails by chance any more.

use std::collections::BTreeSet;

use evenkeel_core::{ClusterId, ClusterSpec, ClusterState, ComponentName};
use evenkeel_inventory::{Cluster, Clusters as _, Error, Reconciliations as _};

use super::process::inputs;
use super::world::World;

/// What an owner asked for last.
pub(super) struct Wanted {
    pub(super) id: ClusterId,
    pub(super) spec: ClusterSpec,
    pub(super) deleted: bool,
}

impl Wanted {
    /// Components that can never be done: bad ones, and what depends on them.
    pub(super) fn hopeless(&self) -> BTreeSet<ComponentName> {
        let mut hopeless = BTreeSet::new();
        // Dependencies come before their dependents in every list of this simulation.
        for spec in &self.spec.components {
            if inputs(spec).ends_with("bad") || spec.depends_on.iter().any(|name| hopeless.contains(name)) {
                hopeless.insert(spec.name.clone());
            }
        }
        hopeless
    }

    /// What is not so yet, if anything.
    pub(super) async fn missing(&self, world: &World) -> Result<Option<String>, Error> {
        let cluster = world.people.cluster(&self.id).await?;
        if self.deleted {
            return Ok(self.missing_of_deletion(world, &cluster));
        }
        let hopeless = self.hopeless();
        if let Some(missing) = self.missing_at_target(world, &hopeless) {
            return Ok(Some(missing));
        }
        let status = &cluster.status;
        if !hopeless.is_empty() {
            if status.state == ClusterState::Ready {
                let told = format!("cluster {} is ready though a component cannot be done", self.id);
                return Ok(Some(told));
            }
            // It may be tried again for ever; each run ends at its deadline.
            let running = world.people.running_reconciliation(&self.id).await?;
            let old = running.filter(|run| world.is_from_before_the_calm(run.created_at));
            return Ok(old.map(|run| format!("{} has not ended by its deadline, {}", run.id, run.deadline)));
        }
        let is_ready = status.state == ClusterState::Ready && status.observed_version == cluster.version;
        if !is_ready {
            let reason = status.reason.as_deref().unwrap_or("no reason");
            let told = format!(
                "cluster {} is {} at version {} of {}: {reason}",
                self.id, status.state, status.observed_version, cluster.version
            );
            return Ok(Some(told));
        }
        let running = world.people.running_reconciliation(&self.id).await?;
        Ok(running.map(|run| format!("{} still runs", run.id)))
    }

    fn missing_of_deletion(&self, world: &World, cluster: &Cluster) -> Option<String> {
        let clusters = world.clusters();
        let there = clusters.get(&self.id).map(|target| target.components.values());
        let left = there
            .into_iter()
            .flatten()
            .filter(|applied| !applied.stray)
            .count();
        let is_gone = cluster.deleted_at.is_some() && left == 0;
        let reason = cluster.status.reason.as_deref().unwrap_or("no reason");
        (!is_gone).then(|| {
            format!(
                "cluster {} is to go, is {}, and {left} components are there: {reason}",
                self.id, cluster.status.state
            )
        })
    }

    fn missing_at_target(&self, world: &World, hopeless: &BTreeSet<ComponentName>) -> Option<String> {
        let clusters = world.clusters();
        let Some(target) = clusters.get(&self.id) else {
            return Some(format!("nobody has been at cluster {}", self.id));
        };
        for spec in self
            .spec
            .components
            .iter()
            .filter(|spec| !hopeless.contains(&spec.name))
        {
            let there = target.components.get(&spec.name);
            if !there.is_some_and(|applied| applied.is(inputs(spec))) {
                return Some(format!(
                    "cluster {}: component {} should be {}, is {there:?}",
                    self.id,
                    spec.name,
                    inputs(spec)
                ));
            }
        }
        // What a bad component once needed may have to stay until that one goes.
        let listed = |name: &ComponentName| self.spec.components.iter().any(|spec| spec.name == *name);
        let left = target.components.keys().find(|name| !listed(name));
        left.filter(|_| hopeless.is_empty())
            .map(|name| format!("cluster {}: component {name} is still there", self.id))
    }
}
