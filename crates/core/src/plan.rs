//! What is to be done to a target cluster, before any of it is done.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{ObjectRef, PlannedHook};

/// What happens to one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanAction {
    /// It does not exist and will be made.
    Create,
    /// It is ours and differs.
    Update,
    /// It is ours and an immutable field differs: delete and create.
    Recreate,
    /// It exists, is not ours, and we were told to take it over.
    Adopt,
    /// It is ours and no longer rendered.
    Delete,
    /// It is ours and as it should be.
    None,
}

impl PlanAction {
    /// The name on the wire and for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Recreate => "recreate",
            Self::Adopt => "adopt",
            Self::Delete => "delete",
            Self::None => "none",
        }
    }
}

impl fmt::Display for PlanAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One object and what will happen to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedChange {
    /// The object.
    pub object: ObjectRef,
    /// What will happen to it.
    pub action: PlanAction,
    /// Why, for people; never a value of a secret.
    pub reason: String,
}

/// One object that was rendered and is left alone, like a Helm hook where hooks are ignored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedObject {
    /// The object.
    pub object: ObjectRef,
    /// Why it is left alone.
    pub reason: String,
}

/// All that one operation will do to its target, in the order it will do it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The objects and what will happen to each, in order of application; deletions last.
    pub changes: Vec<PlannedChange>,
    /// The hooks that run before and after that, in the order they run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<PlannedHook>,
    /// Rendered objects that are left alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<SkippedObject>,
}

impl Plan {
    /// Whether nothing will be written.
    pub fn is_noop(&self) -> bool {
        self.hooks.is_empty()
            && self
                .changes
                .iter()
                .all(|change| change.action == PlanAction::None)
    }

    /// How many objects get `action`.
    pub fn count(&self, action: PlanAction) -> usize {
        self.changes
            .iter()
            .filter(|change| change.action == action)
            .count()
    }
}

impl fmt::Display for Plan {
    /// One line for people: `2 create, 1 update, 97 none, 1 hook`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use PlanAction::{Adopt, Create, Delete, None, Recreate, Update};
        let mut first = true;
        for action in [Create, Update, Recreate, Adopt, Delete, None] {
            let count = self.count(action);
            if count > 0 {
                write!(f, "{}{count} {action}", if first { "" } else { ", " })?;
                first = false;
            }
        }
        match self.hooks.len() {
            0 if first => f.write_str("nothing to do"),
            0 => Ok(()),
            1 => write!(f, "{}1 hook", if first { "" } else { ", " }),
            many => write!(f, "{}{many} hooks", if first { "" } else { ", " }),
        }
    }
}

/// One object that an operation touched, and how (K27); kept in the inventory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectChange {
    /// The object.
    pub object: ObjectRef,
    /// What was done to it.
    pub action: PlanAction,
    /// When.
    pub at: jiff::Timestamp,
}
