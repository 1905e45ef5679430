//! What the next reconciliation of a cluster would do, with nothing done: neither at the cluster nor in the inventory.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_api as api;
use evenkeel_cluster::{Attempt, Cluster, Owner, ReadinessRules, Stop};
use evenkeel_component::{End, Outcome, RunOptions, TargetLedger, Task, Values, Work};
use evenkeel_core::{
    ClusterName, ComponentName, ComponentSpec, DeleteKind, DeleteMode, Fence, HookPolicy, OnRemove,
};
use evenkeel_steps::Mode;
use futures::FutureExt as _;
use futures::stream::{self, StreamExt as _};

use crate::fleet::Inner;
use crate::look::former;
use crate::{Error, Fleet, Settings};

/// How many components are planned at the same time. Their requests share the client's own bound.
const PLANNED_TOGETHER: usize = 4;
/// How long all of it may take; whoever asks waits for it.
const WITHIN: Duration = Duration::from_secs(50);

impl Fleet {
    /// What a reconciliation of this cluster would do now: every component of its newest version, and those at the cluster
    /// that it no longer lists, object by object and field by field. Nothing is written anywhere.
    ///
    /// A component that cannot be planned says why; the others are planned all the same.
    ///
    /// # Errors
    /// [`Error::Target`] when the cluster cannot be asked, and what the inventory answers.
    pub async fn plan(&self, name: &ClusterName) -> Result<api::ClusterPlan, Error> {
        let asked = Box::pin(plan(self.inner(), name));
        match tokio::time::timeout(WITHIN, asked).await {
            Ok(planned) => planned,
            Err(_) => Err(Error::Target {
                cluster: name.clone(),
                problem: format!("planning was not done within {WITHIN:?}"),
            }),
        }
    }
}

async fn plan(inner: &Inner, name: &ClusterName) -> Result<api::ClusterPlan, Error> {
    let cannot = |problem: String| Error::Target {
        cluster: name.clone(),
        problem,
    };
    let cluster = inner.store.cluster_by_name(name).await?;
    let configuration = inner.store.newest_configuration(&cluster.id).await?;
    let client = inner
        .targets
        .cluster(&cluster.id, configuration.kubeconfig)
        .await
        .map_err(|trouble| cannot(trouble.to_string()))?;
    let owner = inner.owner(name).map_err(|error| cannot(error.to_string()))?;
    let at_cluster = client
        .check(&owner, &[])
        .await
        .map_err(|error| cannot(error.to_string()))?;
    let spec = &configuration.spec;
    let graph = spec.validate()?;
    let settings = inner.settings_of(&cluster);
    let deletion = cluster.deletion.as_ref().map(|deletion| deletion.mode);
    let mut tasks = Vec::new();
    for component in graph.order() {
        if let Some(spec) = spec.components.iter().find(|spec| spec.name == *component) {
            tasks.push(match deletion {
                None => Planned::listed(&settings, spec),
                Some(mode) => Planned::removed(&settings, spec.name.clone(), Some(spec), going(mode)),
            });
        }
    }
    let listed: BTreeSet<&ComponentName> = spec.components.iter().map(|spec| &spec.name).collect();
    let unlisted: BTreeSet<ComponentName> = at_cluster
        .unexpected
        .into_iter()
        .filter(|name| !listed.contains(name) && !name.is_definitions())
        .collect();
    if !unlisted.is_empty() {
        let former = former::listings(&*inner.store, &cluster.id, configuration.version, &unlisted).await?;
        for name in unlisted {
            let spec = former.get(&name).and_then(|listing| listing.component(&name));
            let goes = match (deletion, spec.map(|spec| spec.on_remove)) {
                (Some(mode), _) => going(mode),
                (None, Some(OnRemove::Orphan)) => None,
                (None, _) => Some(DeleteKind::System),
            };
            tasks.push(Planned::removed(&settings, name.clone(), spec, goes));
        }
    }
    let mut planned = Vec::with_capacity(tasks.len());
    for task in tasks {
        planned.push(one(inner, &client, &owner, task).boxed());
    }
    let components = stream::iter(planned).buffered(PLANNED_TOGETHER).collect().await;
    Ok(api::ClusterPlan {
        name: name.clone(),
        version: configuration.version,
        components,
    })
}

/// What goes of each component of a cluster that is deleted so. Its objects stay where its record alone goes.
fn going(mode: DeleteMode) -> Option<DeleteKind> {
    match mode {
        DeleteMode::Orphan => None,
        mode => Some(mode.kind().unwrap_or_default()),
    }
}

/// One component and what is to be found out about it.
struct Planned {
    plan: api::ComponentPlan,
    work: Option<Work>,
}

impl Planned {
    fn of(name: ComponentName, work: api::PlannedWork) -> api::ComponentPlan {
        api::ComponentPlan {
            name,
            work,
            namespace: None,
            revision: None,
            plan: None,
            diffs: Vec::new(),
            reason: None,
        }
    }

    fn listed(settings: &Settings, spec: &ComponentSpec) -> Self {
        let timeout = spec.timeout.map_or(settings.ready_timeout, |timeout| timeout.0);
        let mut plan = Self::of(spec.name.clone(), api::PlannedWork::Apply);
        plan.namespace = Some(spec.namespace.clone());
        let readiness = ReadinessRules::compile(&spec.readiness).map_err(|problems| {
            let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
            problems.join("; ")
        });
        let values = Values::of(spec).map_err(|error| error.to_string());
        let work = values.and_then(|values| {
            Ok(Work::Apply {
                source: spec.source.clone(),
                format: spec.format,
                values,
                namespace: spec.namespace.clone(),
                force_namespace: spec.force_namespace,
                adopt: spec.adopt,
                on_conflict: spec.on_conflict,
                readiness: readiness?,
                ready_within: Some(timeout),
                hooks: spec.hooks,
                hooks_within: timeout,
                proxies: spec.proxies.clone(),
            })
        });
        let work = work.map_err(|problem| plan.reason = Some(problem)).ok();
        Self { plan, work }
    }

    /// A component that goes as `kind` says, or is let go where there is none.
    fn removed(
        settings: &Settings,
        name: ComponentName,
        spec: Option<&ComponentSpec>,
        kind: Option<DeleteKind>,
    ) -> Self {
        let timeout = spec.and_then(|spec| spec.timeout).map(|timeout| timeout.0);
        let (planned, work) = if let Some(kind) = kind {
            let work = Work::Uninstall {
                gone_within: timeout.unwrap_or(settings.ready_timeout),
                hooks: spec.map_or_else(HookPolicy::default, |spec| spec.hooks),
                kind,
                blocking: true,
                strip_finalizers: false,
            };
            (api::PlannedWork::Delete, work)
        } else {
            (api::PlannedWork::Orphan, Work::Orphan)
        };
        Self {
            plan: Self::of(name, planned),
            work: Some(work),
        }
    }
}

async fn one(inner: &Inner, client: &Cluster, owner: &Owner, planned: Planned) -> api::ComponentPlan {
    let Planned { mut plan, work } = planned;
    let Some(work) = work else {
        return plan;
    };
    let target = client.component(owner, &plan.name);
    let task = Task {
        work,
        attempt: Attempt {
            fence: Fence(0),
            // Whatever the steps do, nothing is written.
            guard: Arc::new(|_longest: Duration| Err(Stop::Cancelled)),
        },
        // What the inventory knows of revisions is changed by asking it.
        ledger: Arc::new(TargetLedger::new(target.clone())),
        target,
    };
    let options = RunOptions {
        mode: Mode::DryRun,
        ..RunOptions::default()
    };
    let Outcome {
        end,
        plan: found,
        diffs,
        revision,
        ..
    } = Box::pin(inner.reconciler.run(task, options)).await;
    plan.plan = found;
    plan.diffs = diffs;
    plan.revision = revision;
    plan.reason = match end {
        End::Succeeded | End::Planned => None,
        End::Failed { reason }
        | End::Missing { reason }
        | End::Retry { reason, .. }
        | End::Waiting { reason, .. } => Some(reason),
        End::NeedsConsent(needed) => Some(format!("{needed}; it waits for consent")),
        End::Stopped(_) => Some("it was interrupted".to_owned()),
        End::Fenced { .. } => Some("somebody else works on it at this moment".to_owned()),
    };
    if plan.plan.is_none() && plan.reason.is_none() {
        // Nothing is planned for objects that are only let go.
        plan.plan = Some(evenkeel_core::Plan::default());
    }
    plan
}
