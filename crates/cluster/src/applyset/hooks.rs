//! What a record remembers of hooks: which have run, and which objects they left.

use evenkeel_core::{Digest, GroupKind, ObjectRef};
use serde::{Deserialize, Serialize};

use super::record::Record;

/// The most runs of hooks that a record remembers; the oldest make room.
const REMEMBERED_MAX: usize = 500;

/// One run of one hook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedHook {
    /// API group; empty for the core group.
    #[serde(rename = "g", default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Kind.
    #[serde(rename = "k")]
    pub kind: String,
    /// Namespace; none for cluster-scoped kinds.
    #[serde(rename = "ns", default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name.
    #[serde(rename = "n")]
    pub name: String,
    /// Which run of which hook: of all that decides it, and of the component's life or revision. One that succeeded never
    /// happens again.
    #[serde(rename = "d")]
    pub run: Digest,
    /// The object's uid; empty from the intent to make it until it was made.
    #[serde(rename = "u", default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// How far it came.
    #[serde(rename = "s", default, skip_serializing_if = "HookState::is_begun")]
    pub state: HookState,
    /// Whether the object is gone.
    #[serde(rename = "x", default, skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
}

/// How far the run of a hook came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HookState {
    /// It is to be made, or runs.
    #[default]
    Begun,
    /// It is done.
    Succeeded,
    /// It ended badly, or not in time; another attempt runs it once more.
    Failed,
}

impl HookState {
    fn is_begun(&self) -> bool {
        *self == Self::Begun
    }
}

impl RecordedHook {
    /// A run that is about to begin.
    pub(crate) fn intended(object: &ObjectRef, run: Digest) -> Self {
        Self {
            group: object.group.clone(),
            kind: object.kind.clone(),
            namespace: object.namespace.clone(),
            name: object.name.clone(),
            run,
            uid: String::new(),
            state: HookState::Begun,
            gone: false,
        }
    }

    /// The object that it is about.
    pub fn object(&self) -> ObjectRef {
        ObjectRef {
            group: self.group.clone(),
            kind: self.kind.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }

    /// Its kind.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind::new(self.group.clone(), self.kind.clone())
    }
}

impl Record {
    /// What is known of a run.
    pub(crate) fn hook(&self, run: &Digest) -> Option<&RecordedHook> {
        self.hooks.iter().find(|hook| hook.run == *run)
    }

    /// Notes a run in the place of what was known of it.
    pub(crate) fn note_hook(&mut self, noted: RecordedHook) {
        self.hooks.retain(|hook| hook.run != noted.run);
        self.hooks.push(noted);
        let surplus = self.hooks.len().saturating_sub(REMEMBERED_MAX);
        self.hooks.drain(..surplus);
    }

    /// Notes that an object is gone, whichever run it was of, but for the run `but`.
    pub(crate) fn hook_is_gone(&mut self, object: &ObjectRef, but: Option<&Digest>) {
        for hook in &mut self.hooks {
            if hook.object() == *object && but != Some(&hook.run) {
                hook.gone = true;
            }
        }
    }

    /// Forgets runs that left nothing, once the revision that they belong to is reached.
    pub(crate) fn forget_gone_hooks(&mut self) {
        self.hooks.retain(|hook| !hook.gone);
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_core::{ComponentName, Fence};

    use super::*;

    fn hook(name: &str, run: &str) -> RecordedHook {
        let object = ObjectRef {
            group: "batch".into(),
            kind: "Job".into(),
            namespace: Some("shop".into()),
            name: name.into(),
        };
        RecordedHook::intended(&object, Digest::of(run))
    }

    #[test]
    fn runs_are_known_apart_and_bounded() {
        let mut record = Record::new("f", "c", ComponentName::new("web").expect("a name"), Fence(1));
        for number in 0..=REMEMBERED_MAX {
            record.note_hook(hook(&format!("h{number}"), &number.to_string()));
        }
        assert_eq!(record.hooks.len(), REMEMBERED_MAX);
        assert_eq!(record.hook(&Digest::of("0")), None, "the oldest made room");
        let again = RecordedHook {
            state: HookState::Succeeded,
            ..hook("h7", "7")
        };
        record.note_hook(again.clone());
        assert_eq!(record.hooks.len(), REMEMBERED_MAX);
        assert_eq!(record.hook(&Digest::of("7")), Some(&again));
        record.note_hook(hook("h7", "7, once more"));
        record.hook_is_gone(&again.object(), Some(&Digest::of("7, once more")));
        record.forget_gone_hooks();
        assert_eq!(record.hook(&Digest::of("7")), None);
        assert!(record.hook(&Digest::of("7, once more")).is_some());
    }
}
