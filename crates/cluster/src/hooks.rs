//! Helm hooks as ordered steps: objects that run at a moment of a component's life (K34).
//!
//! ```text
//! for each hook of the moment, by weight, then by name:
//!   what is there ──▶ nothing ───────────────▶ intent in the record ─▶ made ─▶ uid in the record ─▶ awaited ─▶ done
//!                 ├─▶ this very run ─────────▶ gone on with: awaited, or done already
//!                 ├─▶ an earlier run of ours ▶ deleted first (before-hook-creation), or applied over
//!                 └─▶ somebody else's ───────▶ error, unless adopting
//! ```
//!
//! A run is known by a digest of the hook and of what it runs for: the component's life for an install, the revision for an
//! upgrade. The record in the ApplySet parent remembers it, and the object carries it, so that a crash at any point neither
//! runs a Job twice nor leaves it out: a run that succeeded never happens again, one that failed happens again with the next
//! attempt. Objects of hooks carry `evenkeel.dev/hook-of`, never the label of the set: they are no members, no drift, and
//! nothing prunes them.

mod deletion;
mod kept;
mod leftovers;
mod run;

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use evenkeel_core::{
    ComponentRevision, GroupKind, GroupVersionKind, HookDeletePolicy, HookEvent, ObjectRef, PlannedHook,
};
use serde_json::{Map, Value};

use crate::error::ManifestProblem;
use crate::manifest::{self, ManifestObject, Parsed, Placement};
use crate::readiness::ObjectState;
use crate::{Discovery, Error, order};

pub(crate) use leftovers::Leftovers;
pub(crate) use run::Runner;

/// One rendered hook. `Debug` shows no content.
#[derive(Clone)]
pub struct HookDocument {
    /// The object.
    pub object: Value,
    /// The file it was rendered from, for messages.
    pub source: String,
    /// When it runs.
    pub events: BTreeSet<HookEvent>,
    /// Its place among the hooks of one moment: lower ones first.
    pub weight: i64,
    /// When its object is deleted; `before-hook-creation` when it names none.
    pub delete_policies: BTreeSet<HookDeletePolicy>,
}

impl fmt::Debug for HookDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HookDocument")
            .field("source", &self.source)
            .field("events", &self.events)
            .finish_non_exhaustive()
    }
}

/// The checked hooks of a component.
#[derive(Clone, Debug, Default)]
pub struct Hooks(
    /// In the order in which they run.
    Vec<Hook>,
);

#[derive(Clone)]
struct Hook {
    kind: GroupVersionKind,
    name: String,
    source: String,
    /// Where it goes, if its kind has namespaces.
    namespace: String,
    body: Map<String, Value>,
    events: BTreeSet<HookEvent>,
    weight: i64,
    delete_policies: BTreeSet<HookDeletePolicy>,
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind.kind, self.name)
    }
}

/// What hooks run for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// The component begins its life at the cluster.
    Install,
    /// This revision takes the place of another one.
    Upgrade(ComponentRevision),
    /// The component's life ends.
    Delete,
}

impl Occasion {
    /// The moment before the change.
    pub fn before(self) -> HookEvent {
        match self {
            Self::Install => HookEvent::PreInstall,
            Self::Upgrade(_) => HookEvent::PreUpgrade,
            Self::Delete => HookEvent::PreDelete,
        }
    }

    /// The moment after it.
    pub fn after(self) -> HookEvent {
        match self {
            Self::Install => HookEvent::PostInstall,
            Self::Upgrade(_) => HookEvent::PostUpgrade,
            Self::Delete => HookEvent::PostDelete,
        }
    }
}

/// The hooks of one occasion, and how they run.
#[derive(Clone, Copy, Debug)]
pub struct HookRun<'a> {
    /// All hooks of the component.
    pub hooks: &'a Hooks,
    /// What they run for.
    pub occasion: Occasion,
    /// How long each may take to be done, or to make room for the next.
    pub within: Duration,
    /// Whether objects of their names that are not ours may be replaced.
    pub adopt: bool,
}

/// A hook that did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookFailure {
    /// When it ran.
    pub event: HookEvent,
    /// Its object, how that ended, and what helps to find the cause.
    pub state: ObjectState,
    /// The time it was given, when it had not ended by then.
    pub late: Option<Duration>,
}

impl fmt::Display for HookFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { event, state, late } = self;
        match late {
            Some(within) => write!(f, "the {event} hook was not done within {within:?}: {state}"),
            None => write!(f, "the {event} hook did not succeed: {state}"),
        }
    }
}

impl Hooks {
    /// Checks rendered hooks and puts them into the order in which they run: by weight, then by name, as Helm runs them.
    /// Costs no request: their kinds are looked for when they run, because an earlier one may define them.
    ///
    /// # Errors
    /// [`Error::Manifest`] with every wrong one.
    pub fn new(documents: Vec<HookDocument>, placement: &Placement) -> Result<Self, Error> {
        let mut problems: Vec<ManifestProblem> = Vec::new();
        let mut all = Vec::with_capacity(documents.len());
        for document in documents {
            let HookDocument {
                object,
                source,
                events,
                weight,
                delete_policies,
            } = document;
            match manifest::checked(ManifestObject { object, source }) {
                Ok(Parsed {
                    kind,
                    name,
                    namespace,
                    body,
                    source,
                }) => all.push(Hook {
                    kind,
                    name,
                    source,
                    namespace: namespace
                        .filter(|_| !placement.force_namespace)
                        .unwrap_or_else(|| placement.namespace.to_string()),
                    body,
                    events,
                    weight,
                    delete_policies,
                }),
                Err(found) => problems.extend(found),
            }
        }
        if !problems.is_empty() {
            return Err(Error::Manifest(problems));
        }
        all.sort_by(|a, b| (a.weight, &a.name).cmp(&(b.weight, &b.name)));
        Ok(Self(all))
    }

    /// Whether there is none at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What would run on `occasion`, in that order. Kinds that `served` does not know are taken for namespaced ones.
    pub fn planned(&self, occasion: Occasion, served: Option<&Discovery>) -> Vec<PlannedHook> {
        let is_namespaced = |hook: &Hook| {
            let resource = served.and_then(|served| served.exact(&hook.kind));
            resource.is_none_or(|resource| resource.namespaced)
        };
        let of = |event: HookEvent| {
            self.of(event).map(move |hook| PlannedHook {
                event,
                object: hook.object(is_namespaced(hook)),
                weight: hook.weight,
            })
        };
        [occasion.before(), occasion.after()]
            .into_iter()
            .flat_map(of)
            .collect()
    }

    /// Whether some run at `event`.
    pub fn any(&self, event: HookEvent) -> bool {
        self.of(event).next().is_some()
    }

    fn of(&self, event: HookEvent) -> impl Iterator<Item = &Hook> {
        self.0.iter().filter(move |hook| hook.events.contains(&event))
    }
}

impl Hook {
    fn group_kind(&self) -> GroupKind {
        self.kind.group_kind()
    }

    fn object(&self, namespaced: bool) -> ObjectRef {
        let GroupKind { group, kind } = self.group_kind();
        ObjectRef {
            group,
            kind,
            namespace: namespaced.then(|| self.namespace.clone()),
            name: self.name.clone(),
        }
    }

    /// Whether its end is waited for. Other kinds are done once they are applied, as for Helm.
    fn is_awaited(&self) -> bool {
        matches!(
            (self.kind.group.as_str(), self.kind.kind.as_str()),
            ("batch", "Job") | ("", "Pod")
        )
    }

    /// Whether its object is deleted by `policy`. Definitions never are, as for Helm: that would delete every resource of
    /// their kinds. What holds data is deleted only when the chart says so, not by the policy of those that name none.
    fn is_deleted_by(&self, policy: HookDeletePolicy) -> bool {
        let kind = self.group_kind();
        if order::is_definition(&kind) {
            return false;
        }
        if self.delete_policies.is_empty() {
            return policy == HookDeletePolicy::BeforeHookCreation && !order::never_pruned(&kind);
        }
        self.delete_policies.contains(&policy)
    }
}

#[cfg(test)]
mod tests;
