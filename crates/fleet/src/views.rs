//! From what the inventory knows to what the API shows. Secret values are masked here, once.

use evenkeel_api as api;
use evenkeel_core::{
    ClusterSpec, ComponentGraph, ComponentName, Digest, KubeconfigFrom, OperationStateKind, ReconciliationId,
};
use evenkeel_inventory as inventory;
use jiff::Timestamp;

use crate::{contract, control};

/// One cluster.
pub(crate) fn cluster(
    cluster: &inventory::Cluster,
    spec: &ClusterSpec,
    kubeconfig_from: Option<KubeconfigFrom>,
) -> api::Cluster {
    api::Cluster {
        id: cluster.id.clone(),
        version: cluster.version,
        created: cluster.created_at,
        has_kubeconfig: cluster.has_kubeconfig,
        kubeconfig_from,
        spec: spec.masked(),
        state: cluster.status.state,
    }
}

/// One cluster in a list.
pub(crate) fn summary(cluster: inventory::Cluster) -> api::ClusterSummary {
    api::ClusterSummary {
        name: cluster.name,
        id: cluster.id,
        tenant: cluster.tenant,
        group: cluster.group,
        labels: cluster.labels,
        state: cluster.status.state,
        reason: cluster.status.reason,
        since: cluster.status.since,
        version: cluster.version,
        observed_version: Some(cluster.status.observed_version),
    }
}

/// How a cluster is.
pub(crate) fn status(
    cluster: inventory::Cluster,
    graph: &ComponentGraph,
    components: Vec<inventory::ComponentStatus>,
    newest: Option<&inventory::Reconciliation>,
    live: Option<&[inventory::Operation]>,
    now: Timestamp,
) -> api::ClusterStatus {
    let suspension = control::suspension(&cluster, now);
    let broker_status = contract::status(&cluster, suspension.is_some(), live);
    // Definitions are nobody's component; they are shown while something is the matter with them.
    let is_done = |component: &inventory::ComponentStatus| {
        let state = component
            .operation
            .as_ref()
            .map(|operation| operation.state.kind());
        let done = matches!(
            state,
            None | Some(OperationStateKind::Succeeded | OperationStateKind::Superseded)
        );
        component.component.is_definitions() && done
    };
    let mut components: Vec<_> = components
        .into_iter()
        .filter(|component| !is_done(component))
        .map(self::component)
        .collect();
    // Those on their way out are in no graph and come last.
    let place = |name: &ComponentName| {
        graph
            .order()
            .iter()
            .position(|other| other == name)
            .unwrap_or(usize::MAX)
    };
    components.sort_by(|a, b| (place(&a.name), &a.name).cmp(&(place(&b.name), &b.name)));
    let mut status = api::ClusterStatus {
        name: cluster.name,
        id: cluster.id,
        revision: String::new(),
        state: cluster.status.state,
        broker_status,
        suspension,
        reason: cluster.status.reason,
        since: cluster.status.since,
        version: cluster.version,
        observed_version: Some(cluster.status.observed_version),
        checked: cluster.status.last_check_at,
        next_due: cluster.status.due.map(|(at, _)| at),
        reconciliation: newest.map(|run| run.id.clone()),
        components,
    };
    status.revision = revision(&status);
    status
}

/// A short text that differs whenever the status does. That it was looked at again is no change.
fn revision(status: &api::ClusterStatus) -> String {
    let still = api::ClusterStatus {
        checked: None,
        next_due: None,
        ..status.clone()
    };
    Digest::of(format!("{still:?}")).short()
}

fn component(component: inventory::ComponentStatus) -> api::ComponentStatus {
    let (operation, state) = component
        .operation
        .map(|operation| (operation.id, operation.state))
        .unzip();
    api::ComponentStatus {
        name: component.component,
        state,
        operation,
        not_ready: component.not_ready,
        revision: (component.revision.0 > 0).then_some(component.revision),
    }
}

/// One configuration version.
pub(crate) fn configuration(configuration: &inventory::Configuration) -> api::Configuration {
    api::Configuration {
        version: configuration.version,
        created: configuration.created_at,
        spec: configuration.spec.masked(),
    }
}

/// One run in a list.
pub(crate) fn reconciliation_summary(run: inventory::Reconciliation) -> api::ReconciliationSummary {
    api::ReconciliationSummary {
        id: run.id,
        version: run.version,
        strategy: run.strategy,
        cause: run.due_reason,
        state: run.state,
        reason: run.reason,
        started: run.created_at,
        finished: run.finished_at,
    }
}

/// One operation of a run.
pub(crate) fn operation(
    run: &ReconciliationId,
    operation: inventory::Operation,
    timeline: Vec<inventory::TimelineEntry>,
    changes: Vec<evenkeel_core::ObjectChange>,
) -> api::Operation {
    api::Operation {
        id: operation.id,
        carried_to: (operation.reconciliation != *run).then_some(operation.reconciliation),
        component: operation.component,
        strategy: operation.kind,
        cause: operation.cause,
        state: operation.state,
        attempts: operation.attempt,
        started: operation.started_at,
        finished: operation.finished_at,
        timeline: timeline.into_iter().map(timeline_entry).collect(),
        changes,
    }
}

fn timeline_entry(entry: inventory::TimelineEntry) -> api::TimelineEntry {
    api::TimelineEntry {
        at: entry.at,
        level: match entry.level {
            inventory::Level::Info => api::Level::Info,
            inventory::Level::Warning => api::Level::Warning,
            inventory::Level::Error => api::Level::Error,
        },
        step: entry.step,
        message: entry.message,
    }
}
