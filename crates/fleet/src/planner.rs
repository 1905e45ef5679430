//! From what differs at one cluster to the operations of one reconciliation. Pure.
//!
//! ```text
//! definitions ─▶ applies of whoever waits for nobody else
//! moved:    delete (old namespace) ─▶ apply        a dependency ─▶ its dependents
//! removed:                            dependents ─▶ delete          dependents ─▶ what they needed
//! ```
//! Edges are drawn among the operations of the run alone: what is as it should be is waited for by nobody. No cycle can
//! come of it: deletions in an old namespace wait for one another along the reversed graph, applications wait for those
//! and for one another along the graph, deletions of what was removed wait for applications and for one another along the
//! reversed graph of the version that listed them last; definitions wait for nobody.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_core::{ComponentGraph, ComponentName, ConfigurationVersion, Strategy};
use evenkeel_inventory::NewOperation;

/// A listed component that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Application {
    pub(crate) component: ComponentName,
    /// `Install`, `Upgrade` or `Repair`.
    pub(crate) kind: Strategy,
    pub(crate) cause: String,
    /// Whether its objects are in another namespace and go first, with the reason.
    pub(crate) moved: Option<String>,
}

/// A component that is no longer wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Removal {
    pub(crate) component: ComponentName,
    /// The version that listed it last; the newest when none is known.
    pub(crate) version: ConfigurationVersion,
    pub(crate) cause: String,
    /// The components that depended on it in that version.
    pub(crate) dependents: BTreeSet<ComponentName>,
}

/// What is to be known beside the components that differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Around {
    /// Whether anything of ours is at the cluster already.
    pub(crate) present: bool,
    /// Why the definitions of all components are to be applied before any of these begins, if they are.
    pub(crate) definitions: Option<String>,
}

/// What one reconciliation is for, and its operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Planned {
    pub(crate) strategy: Strategy,
    pub(crate) operations: Vec<NewOperation>,
}

/// The operations that bring a cluster to configuration `version`, whose graph is `graph`.
///
pub(crate) fn plan(
    version: ConfigurationVersion,
    graph: &ComponentGraph,
    applications: Vec<Application>,
    removals: Vec<Removal>,
    around: Around,
) -> Planned {
    let strategy = strategy(&applications, &removals, around.present);
    let mut applications: BTreeMap<ComponentName, Application> = applications
        .into_iter()
        .map(|application| (application.component.clone(), application))
        .collect();
    let applied: BTreeSet<ComponentName> = applications.keys().cloned().collect();
    let moved: BTreeSet<ComponentName> = applications
        .values()
        .filter(|application| application.moved.is_some())
        .map(|application| application.component.clone())
        .collect();
    let mut run = Run::default();
    let definitions = around.definitions.map(|cause| {
        run.push(NewOperation {
            component: ComponentName::definitions(),
            kind: strategy,
            version,
            cause,
            depends_on: Vec::new(),
            carries: None,
        })
    });
    let dependents = graph.reversed();
    for name in dependents.order().iter().filter(|name| moved.contains(*name)) {
        let cause = applications
            .get(name)
            .and_then(|application| application.moved.clone());
        let waits = nearest(name, &moved, |name| dependents.depends_on(name));
        let waits = waits.iter().filter_map(|name| run.moves.get(name).copied());
        let operation = NewOperation {
            component: name.clone(),
            kind: Strategy::Delete,
            version,
            cause: cause.unwrap_or_default(),
            depends_on: waits.collect(),
            carries: None,
        };
        let position = run.push(operation);
        run.moves.insert(name.clone(), position);
    }
    for name in graph.order() {
        let Some(application) = applications.remove(name) else {
            continue;
        };
        let waits = nearest(name, &applied, |name| graph.depends_on(name));
        let mut waits: Vec<usize> = waits
            .iter()
            .filter_map(|name| run.applications.get(name).copied())
            .collect();
        // Who waits for others waits for what they wait for.
        waits.extend(definitions.filter(|_| waits.is_empty()));
        waits.extend(run.moves.get(name).copied());
        let operation = NewOperation {
            component: application.component,
            kind: application.kind,
            version,
            cause: application.cause,
            depends_on: waits,
            carries: None,
        };
        let position = run.push(operation);
        run.applications.insert(name.clone(), position);
    }
    run.remove(removals);
    Planned {
        strategy,
        operations: run.operations,
    }
}

/// The operations that take everything off a cluster: dependents first, along `graph` through whatever is not there.
pub(crate) fn deletion(graph: &ComponentGraph, removals: Vec<Removal>) -> Planned {
    let names: BTreeSet<ComponentName> = removals.iter().map(|removal| removal.component.clone()).collect();
    let reversed = graph.reversed();
    let removals = removals.into_iter().map(|mut removal| {
        let more = nearest(&removal.component, &names, |name| reversed.depends_on(name));
        removal.dependents.extend(more);
        removal
    });
    let mut run = Run::default();
    run.remove(removals.collect());
    Planned {
        strategy: Strategy::Delete,
        operations: run.operations,
    }
}

/// Operations in the making, and where those of a component stand.
#[derive(Default)]
struct Run {
    operations: Vec<NewOperation>,
    moves: BTreeMap<ComponentName, usize>,
    applications: BTreeMap<ComponentName, usize>,
}

impl Run {
    fn push(&mut self, operation: NewOperation) -> usize {
        self.operations.push(operation);
        self.operations.len() - 1
    }

    fn remove(&mut self, removals: Vec<Removal>) {
        let first = self.operations.len();
        let places: BTreeMap<ComponentName, usize> = removals
            .iter()
            .enumerate()
            .map(|(index, removal)| (removal.component.clone(), first + index))
            .collect();
        for removal in removals {
            let place =
                |name: &ComponentName| places.get(name).or_else(|| self.applications.get(name)).copied();
            let waits: BTreeSet<usize> = removal.dependents.iter().filter_map(place).collect();
            let operation = NewOperation {
                component: removal.component,
                kind: Strategy::Delete,
                version: removal.version,
                cause: removal.cause,
                depends_on: waits.into_iter().collect(),
                carries: None,
            };
            self.push(operation);
        }
    }
}

/// The members of `wanted` that `from` reaches first, through whatever is not wanted.
fn nearest<'a, N>(
    from: &'a ComponentName,
    wanted: &BTreeSet<ComponentName>,
    next: impl Fn(&'a ComponentName) -> N,
) -> BTreeSet<ComponentName>
where
    N: Iterator<Item = &'a ComponentName>,
{
    let mut found = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut ahead: Vec<&ComponentName> = next(from).collect();
    while let Some(name) = ahead.pop() {
        if !seen.insert(name) {
            continue;
        }
        if wanted.contains(name) {
            found.insert(name.clone());
        } else {
            ahead.extend(next(name));
        }
    }
    found
}

/// What a run is for; see [`Strategy::of_run`].
fn strategy(applications: &[Application], removals: &[Removal], present: bool) -> Strategy {
    let moved = applications
        .iter()
        .filter(|application| application.moved.is_some());
    let gone = moved
        .map(|_| Strategy::Delete)
        .chain(removals.iter().map(|_| Strategy::Delete));
    let parts = applications
        .iter()
        .map(|application| application.kind)
        .chain(gone);
    Strategy::of_run(parts, present)
}

#[cfg(test)]
mod tests;
