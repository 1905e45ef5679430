//! Two sights of the world, and where they differ.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Everything that is to be equal, by what it is: `Tenant t-one`, `vault t-one/c-one/steward`, `project tenants/t-one`.
pub(super) type Sight = BTreeMap<String, Value>;

/// A place at which the two differ; what is not there is null.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Found {
    pub(super) subject: String,
    /// Names of the fields, each after a slash; empty for the subject as a whole.
    pub(super) at: String,
    pub(super) recorded: Value,
    pub(super) ours: Value,
}

/// All places, by subject.
pub(super) fn compare(recorded: &Sight, ours: &Sight) -> Vec<Found> {
    let mut found = Vec::new();
    let subjects: BTreeSet<&String> = recorded.keys().chain(ours.keys()).collect();
    for subject in subjects {
        let side = |sight: &Sight| sight.get(subject).cloned().unwrap_or_default();
        descend(subject, String::new(), &side(recorded), &side(ours), &mut found);
    }
    found
}

fn descend(subject: &str, at: String, recorded: &Value, ours: &Value, found: &mut Vec<Found>) {
    match (recorded, ours) {
        (Value::Object(left), Value::Object(right)) => {
            let names: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
            for name in names {
                let side =
                    |fields: &serde_json::Map<String, Value>| fields.get(name).cloned().unwrap_or_default();
                descend(subject, format!("{at}/{name}"), &side(left), &side(right), found);
            }
        }
        _ if recorded == ours => {}
        _ => found.push(Found {
            subject: subject.to_owned(),
            at,
            recorded: recorded.clone(),
            ours: ours.clone(),
        }),
    }
}
