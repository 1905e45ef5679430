//! A look at a cluster that is to go.

use std::collections::BTreeSet;

use evenkeel_core::{ClusterState, ComponentGraph, ComponentName, ConfigurationVersion, DueReason, Strategy};
use evenkeel_inventory::{self as inventory, Configuration, Due, FailureCount, StatusChange};

use super::{Look, former};
use crate::planner::{self, Planned, Removal};
use crate::targets::Trouble;
use crate::{bookkeeper, pause, prerequisites};

impl Look<'_> {
    /// Plans the removal of everything of ours; a cluster with nothing of ours is gone from the record at once.
    pub(super) async fn at_deletion(&self) -> Result<(), inventory::Error> {
        let version = self.cluster.version;
        let configuration = match self.inner.store.newest_configuration(&self.cluster.id).await {
            // What is at the cluster tells what to remove; only the order is not known.
            Err(error @ inventory::Error::Unreadable { .. }) => {
                tracing::error!(%error, "the cluster is deleted without its configuration");
                None
            }
            configuration => Some(configuration?),
        };
        // Without a way to reach it nothing was ever applied.
        if !self.cluster.has_kubeconfig {
            return self.is_gone(version).await;
        }
        let planning = tokio::time::timeout(
            self.settings().check_timeout,
            self.plan_deletion(configuration.as_ref()),
        );
        let planned = planning.await;
        match planned.unwrap_or(Err(Trouble::Slow(self.settings().check_timeout))) {
            Err(Trouble::Inventory(error)) => Err(error),
            Err(trouble) => self.cannot_delete(version, &trouble).await,
            Ok(planned) if planned.operations.is_empty() => self.is_gone(version).await,
            Ok(planned) => {
                // Why it could not be deleted so far is told until that is known to be over.
                let known = self.inner.store.components(&self.cluster.id).await?;
                let failing = self.failing(version, &known.items);
                self.begin(version, planned, failing).await
            }
        }
    }

    async fn plan_deletion(&self, configuration: Option<&Configuration>) -> Result<Planned, Trouble> {
        let newest = self.cluster.version;
        let number = configuration.map_or(Some(0), |configuration| configuration.kubeconfig);
        let mut names = self.inner.site.ours(self, number).await?;
        names.extend(self.running.iter().flat_map(|running| running.busy.clone()));
        // An operation outlives its run until it stops, and may write until then: its component goes after that.
        names.extend(self.inner.store.worked_on(&self.cluster.id).await?);
        let specs = configuration.map_or(&[][..], |configuration| &configuration.spec.components);
        let graph = match configuration {
            Some(configuration) => {
                prerequisites::order(self.inner, &self.settings(), &configuration.spec).await
            }
            None => ComponentGraph::new(specs),
        };
        // What cannot be put in order now was put in place all the same, and goes.
        let graph = match graph {
            Ok(graph) => graph,
            Err(error) => {
                tracing::warn!(%error, "the cluster is deleted in the order that its configuration alone gives");
                ComponentGraph::new(specs).map_err(inventory::Error::Invalid)?
            }
        };
        let listed: BTreeSet<ComponentName> = specs.iter().map(|spec| spec.name.clone()).collect();
        let unlisted: BTreeSet<ComponentName> = names.difference(&listed).cloned().collect();
        let former = former::listings(&*self.inner.store, &self.cluster.id, newest, &unlisted).await?;
        let removal = |component: &ComponentName| {
            // What an unlisted component needed goes after it; what once needed it may need it no longer.
            let needed_by = |other: &&ComponentName| {
                let listing = former.get(*other);
                listing.is_some_and(|listing| listing.depends_on(other).contains(component))
            };
            let dependents = match component.is_definitions() {
                // Before all others when they come, after all others when they go.
                true => names.iter().filter(|name| *name != component).cloned().collect(),
                false => unlisted.iter().filter(needed_by).cloned().collect(),
            };
            Removal {
                version: former.get(component).map_or(newest, |listing| listing.version),
                cause: "the cluster is deleted".to_owned(),
                dependents,
                component: component.clone(),
            }
        };
        Ok(planner::deletion(&graph, names.iter().map(removal).collect()))
    }

    /// Nothing of ours is left at the cluster.
    async fn is_gone(&self, version: ConfigurationVersion) -> Result<(), inventory::Error> {
        let change = StatusChange {
            due: Due::Never,
            stamp: Some(self.due.stamp),
            ..StatusChange::new(ClusterState::Deleted, version)
        };
        if self.running.is_some() {
            let planned = Planned {
                strategy: Strategy::Delete,
                operations: Vec::new(),
            };
            self.settle_with(version, planned, change).await?;
        } else {
            self.record(change).await?;
        }
        self.inner.watches.end(&self.cluster.id);
        self.inner.targets.forget(&self.cluster.id);
        Ok(())
    }

    /// The cluster cannot be reached or refuses: it is never taken for a deleted one.
    pub(super) async fn cannot_delete(
        &self,
        version: ConfigurationVersion,
        trouble: &Trouble,
    ) -> Result<(), inventory::Error> {
        let (counted, more) = if trouble.was_tried() {
            (FailureCount::Add, 1)
        } else {
            (FailureCount::Keep, 0)
        };
        let failures = self.cluster.status.failures.saturating_add(more);
        let settings = self.settings();
        // As the predecessor had it; whoever wants that says so.
        if settings.gone_when_host_unknown && trouble.is_host_unknown() {
            tracing::warn!(%trouble, "taken for gone: the name of its API server does not exist");
            return self.is_gone(version).await;
        }
        let change = StatusChange {
            stamp: Some(self.due.stamp),
            failures: counted,
            ..if trouble.was_tried() && failures >= settings.delete_failures_max {
                bookkeeper::deletion_failed(version, failures, &trouble.to_string())
            } else {
                let pause = pause::backoff(&settings, failures, self.inner.jitter());
                let pause = pause.max(trouble.asked_pause().unwrap_or_default());
                StatusChange {
                    reason: Some(format!("{trouble}; {}", bookkeeper::FORGET_HINT)),
                    due: Due::At(pause::after(self.now(), pause), DueReason::Deletion),
                    ..StatusChange::new(ClusterState::Deleting, version)
                }
            }
        };
        self.record(change).await
    }
}
