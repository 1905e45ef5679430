//! Helm hooks: objects that run at a moment of a component's life instead of belonging to it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ObjectRef;

/// A moment of a component's life at which hooks run. Helm's rollback does not exist here: an older configuration that is
/// applied again is an upgrade; and tests are run by a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HookEvent {
    /// Before the first objects of a component are applied, after its definitions.
    PreInstall,
    /// After all objects of a new component are ready.
    PostInstall,
    /// Before a new revision is applied, after its definitions.
    PreUpgrade,
    /// After all objects of a new revision are ready.
    PostUpgrade,
    /// Before a component is deleted.
    PreDelete,
    /// After all objects of a deleted component are gone.
    PostDelete,
}

impl HookEvent {
    /// Helm's name of it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PreInstall => "pre-install",
            Self::PostInstall => "post-install",
            Self::PreUpgrade => "pre-upgrade",
            Self::PostUpgrade => "post-upgrade",
            Self::PreDelete => "pre-delete",
            Self::PostDelete => "post-delete",
        }
    }

    /// Whether it is of a deletion.
    pub fn is_of_deletion(self) -> bool {
        matches!(self, Self::PreDelete | Self::PostDelete)
    }
}

impl fmt::Display for HookEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// When a hook's object is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HookDeletePolicy {
    /// Before the next one of its name is made; the rule of hooks that name none.
    BeforeHookCreation,
    /// Once all hooks of its moment succeeded, or after a later one of them failed.
    HookSucceeded,
    /// After it failed.
    HookFailed,
}

/// What becomes of a component's hooks (K34).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HookPolicy {
    /// They run, each at its moment.
    #[default]
    Run,
    /// They never run; a plan lists them as left alone.
    Ignore,
}

impl HookPolicy {
    /// Whether nothing else was asked for.
    pub fn is_default(&self) -> bool {
        *self == Self::Run
    }
}

/// One hook that an operation will run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedHook {
    /// When.
    pub event: HookEvent,
    /// The object that is made.
    pub object: ObjectRef,
    /// Its place among the hooks of its moment: lower ones first, then by name.
    pub weight: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_helms() {
        use HookEvent::{PostDelete, PostInstall, PostUpgrade, PreDelete, PreInstall, PreUpgrade};
        for event in [
            PreInstall,
            PostInstall,
            PreUpgrade,
            PostUpgrade,
            PreDelete,
            PostDelete,
        ] {
            assert_eq!(serde_json::json!(event), event.as_str());
        }
        assert_eq!(
            serde_json::json!(HookDeletePolicy::BeforeHookCreation),
            "before-hook-creation"
        );
        assert_eq!(
            serde_json::from_value::<HookPolicy>(serde_json::json!("ignore")).ok(),
            Some(HookPolicy::Ignore)
        );
    }
}
