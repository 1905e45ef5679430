//! What would be done, and how the fields of objects would change, for people.

use std::fmt::Write as _;

use evenkeel_core::{FieldDiff, ObjectDiff, Plan, PlanAction};
use serde_json::Value;

use crate::output;

/// The longest value on one line, in characters; JSON and YAML output have all that is kept.
const VALUE_SHOWN: usize = 100;

/// Every object and hook that something would happen to, or that is left alone, and the fields that change; none when
/// nothing would be done.
pub(crate) fn plan(plan: &Plan, diffs: &[ObjectDiff]) -> Option<String> {
    let changes = plan
        .changes
        .iter()
        .filter(|change| change.action != PlanAction::None);
    let changes = changes.map(|change| {
        [
            change.action.to_string(),
            change.object.to_string(),
            change.reason.clone(),
        ]
    });
    let hooks = plan.hooks.iter().map(|hook| {
        [
            "hook".to_owned(),
            hook.object.to_string(),
            format!("{}, weight {}", hook.event, hook.weight),
        ]
    });
    let left_alone = plan.skipped.iter().map(|skipped| {
        [
            "skip".to_owned(),
            skipped.object.to_string(),
            skipped.reason.clone(),
        ]
    });
    let rows: Vec<_> = changes.chain(hooks).chain(left_alone).collect();
    if rows.is_empty() {
        return None;
    }
    let mut text = output::table(["ACTION", "OBJECT", "REASON"], rows);
    if !diffs.is_empty() {
        text.push_str("\n\n");
        text.push_str(&self::text(diffs));
    }
    Some(text)
}

/// Each object with its fields, one a line; texts of several lines with what they lose and gain.
fn text(diffs: &[ObjectDiff]) -> String {
    let mut text = String::new();
    for diff in diffs {
        let _ = write!(
            text,
            "{}{} {}",
            if text.is_empty() { "" } else { "\n" },
            diff.action,
            diff.object
        );
        if let Some(note) = &diff.note {
            let _ = write!(text, "\n    the API server could not be asked: {note}");
        }
        for field in &diff.fields {
            text.push_str(&line(field));
        }
        if diff.more > 0 {
            let _ = write!(text, "\n    and {} more fields", diff.more);
        }
        if diff.fields.is_empty() && diff.note.is_none() {
            text.push_str("\n    no field changes: it becomes ours as it is");
        }
    }
    text
}

fn line(field: &FieldDiff) -> String {
    let path = &field.path;
    match (&field.before, &field.after) {
        (Some(Value::String(before)), Some(Value::String(after)))
            if before.contains('\n') || after.contains('\n') =>
        {
            format!("\n  ~ {path}:{}", lines(before, after))
        }
        (Some(before), Some(after)) => format!("\n  ~ {path}: {} -> {}", shown(before), shown(after)),
        (None, Some(after)) => format!("\n  + {path}: {}", shown(after)),
        (Some(before), None) => format!("\n  - {path}: {}", shown(before)),
        (None, None) => String::new(),
    }
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= VALUE_SHOWN {
        return text;
    }
    let cut: String = text.chars().take(VALUE_SHOWN).collect();
    format!("{cut}…")
}

/// The lines that go and come between what two texts begin and end with alike.
fn lines(before: &str, after: &str) -> String {
    let (before, after): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = |pairs: &mut dyn Iterator<Item = (&&str, &&str)>| pairs.take_while(|(a, b)| a == b).count();
    let head = same(&mut before.iter().zip(&after));
    let shorter = before.len().min(after.len()) - head;
    let tail = same(&mut before.iter().rev().zip(after.iter().rev())).min(shorter);
    let part = |all: &[&str], sign: char| {
        let changed = all.get(head..all.len() - tail).unwrap_or_default();
        changed.iter().fold(String::new(), |mut text, line| {
            let _ = write!(text, "\n      {sign} {line}");
            text
        })
    };
    part(&before, '-') + &part(&after, '+')
}

#[cfg(test)]
mod tests {
    use evenkeel_core::{ObjectRef, PlanAction};
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_shown_line_by_line() {
        let field = |path: &str, before: Value, after: Value| {
            let some = |value: Value| (!value.is_null()).then_some(value);
            FieldDiff {
                path: path.to_owned(),
                before: some(before),
                after: some(after),
            }
        };
        let diff = ObjectDiff {
            object: ObjectRef {
                group: "apps".to_owned(),
                kind: "Deployment".to_owned(),
                namespace: Some("shop".to_owned()),
                name: "web".to_owned(),
            },
            action: PlanAction::Update,
            fields: vec![
                field("spec.replicas", json!(1), json!(2)),
                field("spec.paused", Value::Null, json!(true)),
                field("spec.gone", json!("x"), Value::Null),
                field("data.file", json!("a\nb\nc\n"), json!("a\nB\nc\n")),
            ],
            more: 3,
            note: None,
        };
        let told = text(&[diff]);
        assert_eq!(
            told.lines().skip(1).collect::<Vec<_>>(),
            [
                "  ~ spec.replicas: 1 -> 2",
                "  + spec.paused: true",
                "  - spec.gone: \"x\"",
                "  ~ data.file:",
                "      - b",
                "      + B",
                "    and 3 more fields",
            ]
        );
        assert!(told.starts_with("update Deployment.apps/web"), "{told}");
    }

    #[test]
    fn texts_of_which_one_is_the_beginning_of_the_other() {
        assert_eq!(lines("a\n", "a\na\n"), "\n      + a");
        assert_eq!(lines("a\nb\n", ""), "\n      - a\n      - b");
    }
}
