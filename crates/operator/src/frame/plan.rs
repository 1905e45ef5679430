//! What a pass would do, for people and for programs (E12).

use std::borrow::Cow;
use std::fmt;

use evenkeel_core::Digest;
use evenkeel_steps::{Change, Ending, Entry, Guard, Report, RestrictionKind};
use kube::{Resource, ResourceExt as _};
use serde::Serialize;

use crate::resources::PlanStatus;

/// How many changes a status shows, and how much of each.
const SHOWN_MAX: usize = 50;
const SHOWN_BYTES: usize = 300;

/// What a pass over one object would do. It holds names of what is changed, and no secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectPlan {
    /// Kind of the object.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The pipeline: `gitrepo`, or `gitrepo.teardown` of an object that is being deleted.
    pub pipeline: String,
    /// The pass in one word: `unchanged`, `planned`, `waiting`, `stopped`, `failed`.
    pub conclusion: String,
    /// Names exactly these changes of exactly this generation of the object; none when there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// What holds the whole pass back: protection, observing alone, what cannot be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub held_back: Vec<String>,
    /// The steps, in the order in which they run.
    pub steps: Vec<StepPlan>,
}

/// What one step would do, or why it would do nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StepPlan {
    /// Its name.
    pub step: String,
    /// How it ended, in one word: `done`, `planned`, `waiting`, `failed`, `skipped`.
    pub ending: String,
    /// Why it would not run, in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip: Option<String>,
    /// The same for people; empty where the word says it all.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// What it would change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ChangePlan>,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangePlan {
    /// What is done: `create`, `update`, `delete`.
    pub verb: String,
    /// To what.
    pub target: String,
    /// More about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl ObjectPlan {
    /// The plan of a pass that was not allowed to act.
    pub(crate) fn of<K: Resource<DynamicType = ()>, S>(object: &K, report: &Report<S>) -> Self {
        let mut held_back = Vec::new();
        match &report.guard {
            Some(Guard::Stop { reason, .. }) => held_back.push(reason.clone()),
            // What else is restricted is told by the steps that it keeps from acting.
            Some(Guard::Restrict(restrictions)) => held_back.extend(
                restrictions
                    .iter()
                    .filter(|restriction| restriction.kind == RestrictionKind::PlanOnly)
                    .map(|restriction| restriction.reason.clone()),
            ),
            Some(Guard::Proceed) | None => {}
        }
        for trouble in [&report.gather.trouble, &report.guard_trouble]
            .into_iter()
            .flatten()
        {
            held_back.push(trouble.failure.to_string());
        }
        Self {
            kind: K::kind(&()).into_owned(),
            namespace: object.namespace().unwrap_or_default(),
            name: object.name_any(),
            pipeline: report.pipeline.to_string(),
            conclusion: report.conclusion().label().to_owned(),
            digest: digest(object, report),
            held_back,
            steps: report.steps.iter().map(StepPlan::of).collect(),
        }
    }

    /// Whether a pass would change anything.
    pub fn has_changes(&self) -> bool {
        self.digest.is_some()
    }
}

impl StepPlan {
    fn of(entry: &Entry) -> Self {
        let (skip, why) = match &entry.ending {
            Ending::Skipped(skip) => (Some(skip.label().to_owned()), skip.to_string()),
            Ending::Done | Ending::Planned => (None, String::new()),
            Ending::Changed { summary } => (None, summary.clone()),
            Ending::Waiting { reason, .. } | Ending::Stopped { reason } => (None, reason.clone()),
            Ending::Failed(failure) => (None, failure.to_string()),
            Ending::Interrupted(interruption) => (None, interruption.to_string()),
        };
        Self {
            step: entry.name.to_string(),
            ending: entry.ending.label().to_owned(),
            skip,
            why,
            changes: entry
                .changes
                .iter()
                .map(|change| ChangePlan {
                    verb: change.verb.to_string(),
                    target: change.target.clone(),
                    detail: change.detail.clone(),
                })
                .collect(),
        }
    }
}

/// What a status shows of a pass that was not allowed to act; none when it would change nothing.
pub(crate) fn summary<K: Resource<DynamicType = ()>, S>(
    object: &K,
    report: &Report<S>,
) -> Option<PlanStatus> {
    let digest = digest(object, report)?;
    let all: Vec<String> = planned(report)
        .flat_map(|entry| {
            entry
                .changes
                .iter()
                .map(|change| format!("{}: {change}", entry.name))
        })
        .collect();
    let count = i64::try_from(all.len()).unwrap_or(i64::MAX);
    let shown = all.into_iter().take(SHOWN_MAX).map(|mut line| {
        line.truncate(line.floor_char_boundary(SHOWN_BYTES));
        line
    });
    Some(PlanStatus {
        digest,
        count,
        changes: shown.collect(),
    })
}

/// What each step would change, if these are the changes of that digest.
pub(crate) fn approved<K: Resource<DynamicType = ()>, S>(
    object: &K,
    report: &Report<S>,
    wanted: &str,
) -> Option<Vec<(String, Vec<Change>)>> {
    let is_it = digest(object, report).is_some_and(|digest| digest == wanted);
    is_it.then(|| {
        let steps = planned(report).map(|entry| (entry.name.to_string(), entry.changes.clone()));
        steps.collect()
    })
}

/// The steps that would act.
fn planned<S>(report: &Report<S>) -> impl Iterator<Item = &Entry> {
    let acts = |entry: &&Entry| matches!(entry.ending, Ending::Planned);
    report.steps.iter().filter(acts)
}

/// A digest of all that would be done, and of what it would be done for: another generation, another object of that name, or one
/// change more give another one.
fn digest<K: Resource<DynamicType = ()>, S>(object: &K, report: &Report<S>) -> Option<String> {
    if planned(report).all(|entry| entry.changes.is_empty()) {
        return None;
    }
    let mut parts: Vec<Cow<'_, str>> = vec![
        object.meta().uid.as_deref().unwrap_or_default().into(),
        object.meta().generation.unwrap_or_default().to_string().into(),
        report.pipeline.as_str().into(),
    ];
    for entry in planned(report) {
        parts.push(entry.name.as_str().into());
        parts.push(entry.changes.len().to_string().into());
        for change in &entry.changes {
            parts.push(change.verb.as_ref().into());
            parts.push(change.target.as_str().into());
            parts.push(change.detail.as_deref().unwrap_or_default().into());
        }
    }
    Some(Digest::of_parts(parts.iter().map(|part| part.as_bytes())).to_string())
}

impl fmt::Display for ObjectPlan {
    /// The object, then a line for each step, with its changes below.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            namespace,
            name,
            pipeline,
            conclusion,
            ..
        } = self;
        writeln!(f, "{kind} {namespace}/{name} ({pipeline}): {conclusion}")?;
        for reason in &self.held_back {
            writeln!(f, "  held back: {reason}")?;
        }
        for step in &self.steps {
            write!(f, "  {}  {}", step.step, step.ending)?;
            if !step.why.is_empty() {
                write!(f, ": {}", step.why)?;
            }
            writeln!(f)?;
            for change in &step.changes {
                writeln!(f, "    {change}")?;
            }
        }
        if let Some(digest) = &self.digest {
            writeln!(f, "  {digest}")?;
        }
        Ok(())
    }
}

impl fmt::Display for ChangePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.target)?;
        match &self.detail {
            Some(detail) => write!(f, ": {detail}"),
            None => Ok(()),
        }
    }
}
