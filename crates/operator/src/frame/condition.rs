//! The conditions of an object, made of those of a pass.

use evenkeel_steps::{ConditionReason, Report, TOLERATED_ATTEMPTS, Verdict};
use jiff::{Timestamp, Unit};

use crate::resources::{Condition, ConditionStatus};

/// Whether all is as the object asks for.
pub(crate) const READY: &str = "Ready";

/// Whether something keeps a deleted object from going.
pub(crate) const DELETION_BLOCKED: &str = "DeletionBlocked";

/// What is known beside the report.
pub(crate) struct Setting<'a> {
    pub(crate) previous: &'a [Condition],
    /// The conditions of the kind's steps.
    pub(crate) known: &'a [&'static str],
    pub(crate) generation: Option<i64>,
    pub(crate) now: Timestamp,
    pub(crate) attempt: u32,
    pub(crate) is_deleting: bool,
}

/// One condition without its times.
struct Finding {
    status: ConditionStatus,
    reason: String,
    message: String,
}

/// The conditions after a pass, sorted by type.
pub(crate) fn conditions<S>(report: &Report<S>, setting: &Setting<'_>) -> Vec<Condition> {
    let mut found: Vec<(&str, Option<Finding>)> = Vec::new();
    for condition in report.conditions() {
        let finding = match condition.verdict {
            // Nothing asks for it any more: it says nothing.
            Verdict::Met if condition.reason == ConditionReason::NotApplicable => None,
            Verdict::Undecided => setting.stays(condition.name).or_else(|| {
                Some(Finding {
                    status: ConditionStatus::Unknown,
                    reason: condition.reason.to_string(),
                    message: condition.message.clone(),
                })
            }),
            verdict => Some(Finding {
                status: status_of(verdict),
                reason: condition.reason.to_string(),
                message: condition.message,
            }),
        };
        found.push((condition.name, finding));
    }
    // A teardown has fewer steps: what stood before stays.
    for known in setting.known {
        if !found.iter().any(|(name, _)| name == known) {
            found.push((known, setting.stays(known)));
        }
    }
    found.push((READY, Some(ready(report, setting))));
    if setting.is_deleting {
        found.push((DELETION_BLOCKED, Some(deletion_blocked(report, setting))));
    }
    let mut conditions: Vec<Condition> = found
        .into_iter()
        .filter_map(|(kind, finding)| Some(setting.dated(kind, finding?)))
        .collect();
    conditions.sort_by(|a, b| a.kind.cmp(&b.kind));
    conditions
}

impl Setting<'_> {
    fn before(&self, kind: &str) -> Option<&Condition> {
        self.previous.iter().find(|condition| condition.kind == kind)
    }

    /// The condition as it stands.
    fn stays(&self, kind: &str) -> Option<Finding> {
        self.before(kind).map(|condition| Finding {
            status: condition.status,
            reason: condition.reason.clone(),
            message: condition.message.clone(),
        })
    }

    /// With its times: the transition is when the status changed.
    fn dated(&self, kind: &str, finding: Finding) -> Condition {
        let since = self
            .before(kind)
            .filter(|before| before.status == finding.status)
            .map(|before| before.last_transition_time);
        Condition {
            kind: kind.to_owned(),
            status: finding.status,
            observed_generation: self.generation,
            // As Kubernetes' own times, in whole seconds.
            last_transition_time: since.unwrap_or_else(|| self.now.round(Unit::Second).unwrap_or(self.now)),
            reason: finding.reason,
            message: finding.message,
        }
    }
}

fn ready<S>(report: &Report<S>, setting: &Setting<'_>) -> Finding {
    if setting.is_deleting {
        return Finding {
            status: ConditionStatus::False,
            reason: "Deleting".to_owned(),
            message: "the object is being deleted".to_owned(),
        };
    }
    let unsure = |reason: &str, message: String| {
        let tolerated = setting.attempt < TOLERATED_ATTEMPTS;
        match setting.stays(READY).filter(|_| tolerated) {
            Some(finding) => finding,
            None if tolerated => Finding {
                status: ConditionStatus::Unknown,
                reason: reason.to_owned(),
                message,
            },
            None => Finding {
                status: ConditionStatus::False,
                reason: reason.to_owned(),
                message,
            },
        }
    };
    if let Some(trouble) = &report.gather.trouble {
        return unsure(
            "Failing",
            format!("the state cannot be read: {}", trouble.failure),
        );
    }
    let conditions = report.conditions();
    let told = |verdict| {
        let told: Vec<String> = conditions
            .iter()
            .filter(|condition| condition.verdict == verdict)
            .map(|condition| format!("{}: {}", condition.name, condition.message))
            .collect();
        told.join("; ")
    };
    let worst = conditions
        .iter()
        .map(|condition| (condition.verdict, condition.reason))
        .max()
        .unwrap_or((Verdict::Met, ConditionReason::Converged));
    match worst {
        (Verdict::Met, _) => Finding {
            status: ConditionStatus::True,
            reason: ConditionReason::Converged.to_string(),
            message: String::new(),
        },
        (Verdict::Undecided, reason) => unsure(reason.as_str(), told(Verdict::Undecided)),
        (Verdict::NotMet, reason) => Finding {
            status: ConditionStatus::False,
            reason: reason.to_string(),
            message: told(Verdict::NotMet),
        },
    }
}

fn deletion_blocked<S>(report: &Report<S>, setting: &Setting<'_>) -> Finding {
    let blocked = |reason: &str, message: String| Finding {
        status: ConditionStatus::True,
        reason: reason.to_owned(),
        message,
    };
    if let Some(evenkeel_steps::Guard::Stop { reason, .. }) = &report.guard {
        return blocked("Protected", reason.clone());
    }
    let open: Vec<String> = report
        .steps
        .iter()
        .filter(|entry| {
            matches!(
                entry.ending,
                evenkeel_steps::Ending::Failed(_) | evenkeel_steps::Ending::Waiting { .. }
            )
        })
        .map(|entry| format!("{} {}", entry.name, entry.ending))
        .collect();
    if let Some(trouble) = &report.gather.trouble {
        return blocked("Failing", trouble.failure.to_string());
    }
    if open.is_empty() {
        return Finding {
            status: ConditionStatus::False,
            reason: "Deleting".to_owned(),
            message: String::new(),
        };
    }
    let waits = report.failures().next().is_none();
    match setting.stays(DELETION_BLOCKED) {
        // The first hiccup of a network is no news.
        _ if waits || setting.attempt >= TOLERATED_ATTEMPTS => {}
        Some(before) => return before,
        None => {}
    }
    blocked(if waits { "Waiting" } else { "Failing" }, open.join("; "))
}

fn status_of(verdict: Verdict) -> ConditionStatus {
    match verdict {
        Verdict::Met => ConditionStatus::True,
        Verdict::Undecided => ConditionStatus::Unknown,
        Verdict::NotMet => ConditionStatus::False,
    }
}
