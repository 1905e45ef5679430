//! What came of it: a table for people, fields for programs.

use std::time::Duration;

use evenkeel_core::{
    ComponentName, ComponentRevision, HumanDuration, Namespace, ObjectChange, ObjectDiff, Plan, PlanAction,
};
use serde::Serialize;

use crate::output::{self, OutputFormat};

/// What came of a run.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    /// The cluster's address.
    server: String,
    /// Whether the user broke it off.
    interrupted: bool,
    components: Vec<ComponentReport>,
}

/// What came of one component.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ComponentReport {
    pub(crate) name: ComponentName,
    namespace: Namespace,
    pub(crate) state: State,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) revision: Option<ComponentRevision>,
    pub(crate) objects: Counts,
    /// What was done, in that order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changes: Vec<ObjectChange>,
    /// What would be done; of `--plan` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<Plan>,
    /// How the fields of existing objects would change; of `--plan` only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) diffs: Vec<ObjectDiff>,
    /// How long it took.
    pub(crate) seconds: f64,
}

/// How a component ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum State {
    /// Applied, and everything is ready.
    Ready,
    /// Applied, and not waited for.
    Applied,
    /// Gone.
    Deleted,
    /// Told to go, and not waited for.
    Deleting,
    /// Looked at, nothing done.
    Planned,
    Failed,
    /// Not begun, because one that it waits for failed.
    Skipped,
    /// Interrupted, or not begun because of that.
    Stopped,
}

/// How many objects were, or would be, changed in which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Counts {
    pub(crate) created: usize,
    pub(crate) updated: usize,
    pub(crate) recreated: usize,
    pub(crate) adopted: usize,
    pub(crate) deleted: usize,
    pub(crate) unchanged: usize,
}

impl State {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Applied => "applied",
            Self::Deleted => "deleted",
            Self::Deleting => "deleting",
            Self::Planned => "planned",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Stopped => "stopped",
        }
    }
}

impl Counts {
    fn of(actions: impl IntoIterator<Item = PlanAction>) -> Self {
        let mut counts = Self::default();
        for action in actions {
            let count = match action {
                PlanAction::Create => &mut counts.created,
                PlanAction::Update => &mut counts.updated,
                PlanAction::Recreate => &mut counts.recreated,
                PlanAction::Adopt => &mut counts.adopted,
                PlanAction::Delete => &mut counts.deleted,
                PlanAction::None => &mut counts.unchanged,
            };
            *count += 1;
        }
        counts
    }
}

impl ComponentReport {
    pub(super) fn new(name: &ComponentName, namespace: &Namespace) -> Self {
        Self {
            name: name.clone(),
            namespace: namespace.clone(),
            state: State::Failed,
            reason: None,
            revision: None,
            objects: Counts::default(),
            changes: Vec::new(),
            plan: None,
            diffs: Vec::new(),
            seconds: 0.0,
        }
    }

    pub(super) fn not_started(name: &ComponentName, namespace: &Namespace) -> Self {
        let mut report = Self::new(name, namespace);
        report.stop("it was not begun".to_owned());
        report
    }

    pub(super) fn skipped(name: &ComponentName, namespace: &Namespace, because_of: &Self) -> Self {
        Self {
            state: State::Skipped,
            reason: Some(format!(
                "it waits for {}, which is {}",
                because_of.name,
                because_of.state.as_str()
            )),
            ..Self::new(name, namespace)
        }
    }

    pub(super) fn fail(&mut self, reason: String) {
        self.state = State::Failed;
        self.reason = Some(reason);
    }

    pub(super) fn stop(&mut self, reason: String) {
        self.state = State::Stopped;
        self.reason = Some(reason);
    }

    pub(super) fn took(&mut self, time: Duration) {
        self.seconds = time.as_secs_f64();
    }

    /// Counts what was done, or, for a plan, what would be.
    pub(super) fn count(&mut self, plan: Option<&Plan>, changes: &[ObjectChange], planned: bool) {
        if planned {
            self.plan = plan.cloned();
            self.objects = Counts::of(
                plan.iter()
                    .flat_map(|plan| &plan.changes)
                    .map(|change| change.action),
            );
        } else {
            self.changes = changes.to_vec();
            self.objects = Counts::of(changes.iter().map(|change| change.action));
            self.objects.unchanged = plan.map_or(0, |plan| plan.count(PlanAction::None));
        }
    }

    pub(crate) fn is_success(&self) -> bool {
        match self.state {
            State::Ready | State::Applied | State::Deleted | State::Deleting | State::Planned => true,
            State::Failed | State::Skipped | State::Stopped => false,
        }
    }

    /// One line for people.
    pub(super) fn summary(&self) -> String {
        let counts = &self.objects;
        let parts: Vec<String> = [
            (counts.created, "created"),
            (counts.updated, "updated"),
            (counts.recreated, "recreated"),
            (counts.adopted, "adopted"),
            (counts.deleted, "deleted"),
            (counts.unchanged, "unchanged"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
        let done = if parts.is_empty() {
            "no objects".to_owned()
        } else {
            parts.join(", ")
        };
        match self.state {
            State::Planned => self
                .plan
                .as_ref()
                .map_or_else(|| "nothing to do".to_owned(), ToString::to_string),
            state => format!("{}: {done} ({})", state.as_str(), self.time()),
        }
    }

    fn time(&self) -> String {
        // To a tenth of a second: a table is read by people.
        let millis = Duration::from_secs_f64(self.seconds).as_millis() as u64;
        if millis < 10_000 {
            format!("{}.{}s", millis / 1_000, millis % 1_000 / 100)
        } else {
            HumanDuration(Duration::from_secs(millis / 1_000)).to_string()
        }
    }

    fn row(&self) -> [String; 8] {
        let counts = &self.objects;
        [
            self.name.to_string(),
            self.state.as_str().to_owned(),
            output::or_dash(self.revision),
            counts.created.to_string(),
            (counts.updated + counts.recreated + counts.adopted).to_string(),
            counts.unchanged.to_string(),
            counts.deleted.to_string(),
            self.time(),
        ]
    }

    fn plan_table(&self) -> String {
        let title = format!("{} in namespace {}", self.name, self.namespace);
        let Some(plan) = self.plan.as_ref().filter(|_| self.is_success()) else {
            return format!("{title}: {}", self.state.as_str());
        };
        let title = format!("{title}: {plan}");
        match crate::diffs::plan(plan, &self.diffs) {
            Some(text) => format!("{title}\n{text}"),
            None => title,
        }
    }
}

impl Report {
    pub(super) fn new(server: &str, components: Vec<ComponentReport>, interrupted: bool) -> Self {
        Self {
            server: server.to_owned(),
            interrupted: interrupted
                && components
                    .iter()
                    .any(|component| component.state == State::Stopped),
            components,
        }
    }

    pub(super) fn print(&self, format: OutputFormat, planned: bool) -> anyhow::Result<()> {
        output::print(format, self, || {
            if planned {
                let tables: Vec<_> = self.components.iter().map(ComponentReport::plan_table).collect();
                return tables.join("\n\n");
            }
            let header = [
                "COMPONENT",
                "STATE",
                "REVISION",
                "CREATED",
                "UPDATED",
                "UNCHANGED",
                "DELETED",
                "TIME",
            ];
            output::table(header, self.components.iter().map(ComponentReport::row))
        })
    }

    /// An error unless every component succeeded. Which failed why was told when it happened.
    pub(super) fn verdict(&self) -> anyhow::Result<()> {
        let of = |state: State| {
            self.components
                .iter()
                .filter(|component| component.state == state)
                .count()
        };
        let (failed, skipped, stopped) = (of(State::Failed), of(State::Skipped), of(State::Stopped));
        let all = self.components.len();
        if self.interrupted {
            let done = all - failed - skipped - stopped;
            anyhow::bail!(
                "interrupted: {done} of {all} components were done, what the others wrote is listed above; \
                 the same command goes on from there"
            );
        }
        if failed + skipped + stopped == 0 {
            return Ok(());
        }
        let skipped = if skipped > 0 {
            format!(", {skipped} skipped")
        } else {
            String::new()
        };
        anyhow::bail!("{failed} of {all} components failed{skipped}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn component(name: &str, state: State) -> ComponentReport {
        let (name, namespace) = (ComponentName::new(name), Namespace::new("apps"));
        let mut report = ComponentReport::new(&name.expect("a name"), &namespace.expect("a namespace"));
        report.state = state;
        report
    }

    #[test]
    fn times_are_short() {
        for (millis, text) in [
            (0, "0.0s"),
            (1_250, "1.2s"),
            (9_999, "9.9s"),
            (12_700, "12s"),
            (185_000, "3m5s"),
        ] {
            let mut report = component("web", State::Ready);
            report.took(Duration::from_millis(millis));
            assert_eq!(report.time(), text);
        }
    }

    #[test]
    fn the_verdict_counts_what_did_not_succeed() {
        let verdict = |states: &[State], interrupted| {
            let components = states.iter().map(|state| component("web", *state)).collect();
            Report::new("https://a", components, interrupted)
                .verdict()
                .map_err(|error| error.to_string())
        };
        assert_eq!(
            verdict(
                &[State::Ready, State::Applied, State::Deleted, State::Planned],
                false
            ),
            Ok(())
        );
        // Everything was done before Ctrl-C arrived.
        assert_eq!(verdict(&[State::Ready], true), Ok(()));
        let failed = verdict(&[State::Ready, State::Failed, State::Skipped], false);
        assert_eq!(failed, Err("1 of 3 components failed, 1 skipped".to_owned()));
        let stopped = verdict(&[State::Ready, State::Stopped], true);
        assert!(stopped.is_err_and(|text| text.starts_with("interrupted: 1 of 2 components were done")));
    }
}
