//! What a look finds at a cluster, and what is to be done about it.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_cluster::{Baseline, Difference, ErrorClass, ObjectState, Verdict};
use evenkeel_component::Considered;
use evenkeel_core::{
    ClusterState, ComponentName, ComponentSpec, ConfigurationVersion, OperationState, Strategy,
};
use evenkeel_inventory::{self as inventory, ComponentStatus, Configuration};

use super::{Look, Steady, former};
use crate::planner::{self, Application, Around, Planned, Removal};
use crate::prerequisites;
use crate::requests::warn_of;
use crate::site::Compared;
use crate::targets::Trouble;

/// How many differences a cause lists; the rest are counted.
const DIFFERENCES_TOLD: usize = 5;

/// What was found at a cluster.
pub(super) struct Findings {
    pub(super) applications: Vec<Application>,
    pub(super) removals: Vec<Removal>,
    pub(super) unready: BTreeMap<ComponentName, String>,
    pub(super) known_unready: bool,
    /// What failed at this very version and has not recovered.
    pub(super) failing: BTreeMap<ComponentName, String>,
    /// Whether anything of ours is at the cluster.
    pub(super) present: bool,
    /// Where live watches may begin, when it is as it should be.
    pub(super) watch: Option<(evenkeel_cluster::Cluster, Baseline)>,
}

impl Findings {
    /// The same, and the components that a person asked for though they do not differ.
    pub(super) fn with(mut self, asked: &BTreeSet<ComponentName>, configuration: &Configuration) -> Self {
        for spec in configuration
            .spec
            .components
            .iter()
            .filter(|spec| asked.contains(&spec.name))
        {
            if !self
                .applications
                .iter()
                .any(|application| application.component == spec.name)
            {
                self.unready.remove(&spec.name);
                let cause = "a person asked for it".to_owned();
                self.applications.push(application(spec, Strategy::Repair, cause));
            }
        }
        self
    }

    /// The operations to be done, or how the cluster is when there are none.
    ///
    /// What differs nowhere and is not ready needs no operation. When there is a run anyway, it is waited for there too: who
    /// depends on it must wait, and the cluster is ready only when everything is.
    pub(super) async fn into_plan(
        self,
        look: &Look<'_>,
        configuration: &Configuration,
    ) -> Result<Result<Planned, Steady>, Trouble> {
        let Self {
            mut applications,
            removals,
            unready,
            known_unready,
            failing: _,
            present,
            watch: _,
        } = self;
        if applications.is_empty() && removals.is_empty() {
            return Ok(Err(Steady {
                unready,
                known_unready,
            }));
        }
        applications.extend(unready.into_iter().map(|(component, reason)| Application {
            component,
            kind: Strategy::Repair,
            cause: format!("it is not ready: {reason}"),
            moved: None,
        }));
        let graph = prerequisites::order(look.inner, &look.settings(), &configuration.spec).await;
        let graph = graph.map_err(Trouble::Order)?;
        let around = Around {
            present,
            definitions: look.definitions(configuration, &applications).await,
        };
        Ok(Ok(planner::plan(
            configuration.version,
            &graph,
            applications,
            removals,
            around,
        )))
    }
}

impl Look<'_> {
    /// Why the definitions of all components go before any of `applications`, if they do: where several begin and one of
    /// those that are new to the cluster may define kinds. A component alone applies its definitions first by itself.
    async fn definitions(
        &self,
        configuration: &Configuration,
        applications: &[Application],
    ) -> Option<String> {
        if applications.len() < 2 {
            return None;
        }
        for application in applications {
            let spec = configuration
                .spec
                .components
                .iter()
                .find(|spec| spec.name == application.component)
                .filter(|_| application.kind.steps().brings_version);
            if let Some(spec) = spec
                && self.inner.site.may_define(self.inner, spec).await
            {
                return Some(format!(
                    "component {} may define kinds that others use",
                    spec.name
                ));
            }
        }
        None
    }

    /// Compares the cluster with `configuration`.
    pub(super) async fn findings(&self, configuration: &Configuration) -> Result<Findings, Trouble> {
        let inner = self.inner;
        let id = &self.cluster.id;
        let known = inner.store.components(id).await?;
        warn_of(&known.failed);
        let Compared {
            considered,
            mut check,
            target,
        } = inner.site.compare(self, configuration).await?;
        let owner = inner.owner(&self.cluster.name)?;
        let components = &configuration.spec.components;
        let mut findings = Findings {
            applications: Vec::new(),
            removals: Vec::new(),
            unready: BTreeMap::new(),
            known_unready: known.items.iter().any(|component| component.not_ready.is_some()),
            failing: self.failing(configuration.version, &known.items),
            present: check.unexpected.iter().any(|name| !name.is_definitions()),
            watch: target.clone().zip(check.baseline.take()),
        };
        for (spec, inputs) in components.iter().zip(&considered) {
            let Some(verdict) = check.components.remove(&spec.name) else {
                continue;
            };
            findings.present |= !is_absent(&verdict);
            let mut application = match verdict {
                Verdict::Unchanged => None,
                Verdict::NotReady(objects) => {
                    findings.unready.insert(spec.name.clone(), not_ready(&objects));
                    None
                }
                Verdict::Failed(error) if is_of_the_cluster(error.class()) => return Err(error.into()),
                Verdict::Failed(error) => Some(application(spec, Strategy::Repair, error.to_string())),
                Verdict::Differs(differences) => {
                    let found = Found {
                        spec,
                        differences: &differences,
                        inputs: inputs.as_ref().ok(),
                    };
                    let record = match &target {
                        Some(target) if found.may_have_moved() => {
                            target.component(&owner, &spec.name).record().await?
                        }
                        _ => None,
                    };
                    Some(found.application(record.as_ref()))
                }
            };
            if let Err(problem) = inputs {
                let cause = problem.clone();
                application = Some(match application {
                    Some(application) => Application { cause, ..application },
                    None => self::application(spec, Strategy::Repair, cause),
                });
            }
            if application.is_none() && self.is_busy(&spec.name) {
                application = Some(self::application(spec, Strategy::Repair, self.unfinished()));
            }
            if let Some(application) = application {
                findings.unready.remove(&spec.name);
                findings.applications.push(application);
            }
        }
        let listed: BTreeSet<&ComponentName> = components.iter().map(|spec| &spec.name).collect();
        let busy = self.running.iter().flat_map(|running| &running.busy);
        let unlisted: BTreeSet<ComponentName> = known
            .items
            .iter()
            .filter(|component| !component.listed)
            .map(|component| &component.component)
            .chain(&check.unexpected)
            .chain(busy)
            .filter(|name| !listed.contains(name) && !name.is_definitions())
            .cloned()
            .collect();
        findings.removals = self.removals(configuration.version, unlisted).await?;
        Ok(findings)
    }

    /// The components of a degraded cluster that failed at `version`, or were found not ready, and have not recovered; of one
    /// that is deleted, those that could not be deleted yet.
    pub(super) fn failing(
        &self,
        version: ConfigurationVersion,
        components: &[ComponentStatus],
    ) -> BTreeMap<ComponentName, String> {
        let status = &self.cluster.status;
        let deleting = status.state == ClusterState::Deleting;
        if !(deleting || status.state == ClusterState::Degraded) || status.observed_version != version {
            return BTreeMap::new();
        }
        let failing = components.iter().filter_map(|component| {
            let newest = component.operation.as_ref();
            // A removal is about the last version that lists the component.
            let newest = newest.filter(|operation| {
                operation.kind == Strategy::Delete || !deleting && operation.version == version
            });
            let failed = newest.and_then(|operation| match &operation.state {
                OperationState::Failed { reason } | OperationState::Retrying { reason, .. } => Some(reason),
                _ => None,
            });
            let unready = component.not_ready.as_ref().filter(|_| !deleting);
            let reason = failed.or(unready)?;
            Some((component.component.clone(), reason.clone()))
        });
        failing.collect()
    }

    /// Whether the reconciliation that runs has not finished with a component.
    fn is_busy(&self, component: &ComponentName) -> bool {
        self.running
            .as_ref()
            .is_some_and(|running| running.busy.contains(component))
    }

    fn unfinished(&self) -> String {
        let version = self.running.as_ref().map(|running| running.run.version);
        let version = version.unwrap_or_default();
        format!("its operation for version {version} had not ended")
    }

    /// The components `unlisted` as what has to go.
    pub(super) async fn removals(
        &self,
        newest: ConfigurationVersion,
        unlisted: BTreeSet<ComponentName>,
    ) -> Result<Vec<Removal>, inventory::Error> {
        if unlisted.is_empty() {
            return Ok(Vec::new());
        }
        let former = former::listings(&*self.inner.store, &self.cluster.id, newest, &unlisted).await?;
        let removal = |component: ComponentName| match former.get(&component) {
            Some(listing) => Removal {
                version: listing.version,
                cause: format!("no longer listed since version {}", listing.version.next()),
                dependents: listing.dependents(&component),
                component,
            },
            None => Removal {
                version: newest,
                cause: "it is at the cluster and no known version lists it".to_owned(),
                dependents: BTreeSet::new(),
                component,
            },
        };
        Ok(unlisted.into_iter().map(removal).collect())
    }
}

/// Whether a failure says something of the whole cluster, and not of one component.
pub(crate) fn is_of_the_cluster(class: ErrorClass) -> bool {
    matches!(
        class,
        ErrorClass::Unreachable
            | ErrorClass::Unauthorized
            | ErrorClass::RateLimited(_)
            | ErrorClass::Transient
    )
}

fn is_absent(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Differs(differences) if differences.contains(&Difference::NotInstalled))
}

fn application(spec: &ComponentSpec, kind: Strategy, cause: String) -> Application {
    Application {
        component: spec.name.clone(),
        kind,
        cause,
        moved: None,
    }
}

/// A component that differs.
struct Found<'a> {
    spec: &'a ComponentSpec,
    differences: &'a [Difference],
    inputs: Option<&'a Considered>,
}

impl Found<'_> {
    fn has(&self, difference: &Difference) -> bool {
        self.differences.contains(difference)
    }

    /// Whether what the target remembers has to be read to know what is to be done.
    fn may_have_moved(&self) -> bool {
        self.has(&Difference::Inputs) || self.has(&Difference::Unfinished)
    }

    fn application(&self, record: Option<&evenkeel_cluster::Record>) -> Application {
        let wanted = &self.spec.namespace;
        let moved = record
            .and_then(|record| record.namespace.as_ref())
            .filter(|namespace| *namespace != wanted)
            .map(|namespace| format!("its namespace changed from {namespace} to {wanted}"));
        let was_applied = record.is_some_and(|record| record.revision.is_some());
        let same_inputs = record.is_some_and(|record| record.inputs == self.inputs.map(|inputs| inputs.all));
        let found = if moved.is_some() || self.has(&Difference::NotInstalled) {
            evenkeel_core::Found::Absent
        } else if !self.may_have_moved() || (was_applied && same_inputs) {
            evenkeel_core::Found::Differs
        } else if was_applied {
            evenkeel_core::Found::Changed
        } else {
            evenkeel_core::Found::Absent
        };
        Application {
            moved,
            ..application(self.spec, Strategy::of(found), told(self.differences))
        }
    }
}

/// The differences as one line.
fn told(differences: &[Difference]) -> String {
    let mut told: Vec<String> = differences
        .iter()
        .take(DIFFERENCES_TOLD)
        .map(ToString::to_string)
        .collect();
    if differences.len() > DIFFERENCES_TOLD {
        told.push(format!("and {} more", differences.len() - DIFFERENCES_TOLD));
    }
    told.join("; ")
}

/// The first object that is not ready, and how many more.
fn not_ready(objects: &[ObjectState]) -> String {
    let Some(first) = objects.first() else {
        return "an object is not ready".to_owned();
    };
    let more = objects.len() - 1;
    let text = format!("{}: {}", first.object, first.readiness);
    if more > 0 {
        format!("{text}; and {more} more")
    } else {
        text
    }
}
