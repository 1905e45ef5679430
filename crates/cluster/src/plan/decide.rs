//! The decision that needs nothing but the record and metadata.

use evenkeel_core::ObjectRef;

use crate::applyset::record::RecordedObject;
use crate::fingerprint::Fingerprint;
use crate::live::LiveObject;

/// How an object of ours compares with what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sameness {
    /// Every field that we set is as we set it.
    Same,
    /// It must be applied; why.
    Changed(&'static str),
    /// Somebody has changed fields that we set, or we cannot tell: only the whole object shows.
    Suspect,
}

/// Compares the content that should be, the record of what was applied, and the metadata of what is.
///
/// An equal resource version proves that nothing at all was written since. A different one is judged by the fields that
/// we own: the server takes a field away from its owner when somebody else changes it, so labels and annotations are
/// judged like every other field, and a changed status or a scaled replica count that is not ours does not count.
pub(crate) fn compare(
    content: &Fingerprint,
    recorded: Option<&RecordedObject>,
    live: &LiveObject,
) -> Sameness {
    let Some(recorded) = recorded else {
        return Sameness::Changed("it is not recorded: an earlier attempt was interrupted");
    };
    if recorded.uid != live.uid {
        return Sameness::Changed("it was made anew by somebody else");
    }
    if recorded.content.as_ref() != Some(content) {
        return Sameness::Changed("its content changed");
    }
    if recorded.resource_version == live.resource_version {
        return Sameness::Same;
    }
    match (&recorded.owned, live.owned()) {
        (Some(then), Some(now)) if *then == now => Sameness::Same,
        _ => Sameness::Suspect,
    }
}

/// The record of an object as it now is.
pub(crate) fn recorded(
    object: &ObjectRef,
    live: &LiveObject,
    content: Option<&Fingerprint>,
    kept: bool,
) -> RecordedObject {
    RecordedObject {
        group: object.group.clone(),
        kind: object.kind.clone(),
        namespace: object.namespace.clone(),
        name: object.name.clone(),
        uid: live.uid.clone(),
        content: content.cloned(),
        fixed: None,
        owned: live.owned(),
        resource_version: live.resource_version.clone(),
        kept,
        done: false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn live(resource_version: &str, fields: &Value) -> LiveObject {
        let body = json!({"metadata": {"name": "web", "uid": "u", "resourceVersion": resource_version, "managedFields": [
            {"manager": "evenkeel", "operation": "Apply", "fieldsV1": fields},
        ]}});
        LiveObject::read(body.to_string().as_bytes(), "test").expect("read")
    }

    #[test]
    fn only_what_we_own_counts() {
        let content = Fingerprint::of(&json!("content"));
        let fields = json!({"f:data": {"f:a": {}, "f:b": {}}});
        let object = ObjectRef {
            group: String::new(),
            kind: "ConfigMap".into(),
            namespace: None,
            name: "web".into(),
        };
        let entry = recorded(&object, &live("7", &fields), Some(&content), false);
        assert_eq!(
            compare(&content, Some(&entry), &live("7", &fields)),
            Sameness::Same
        );
        // Somebody added a field of their own.
        assert_eq!(
            compare(&content, Some(&entry), &live("8", &fields)),
            Sameness::Same
        );
        // Somebody changed one of ours.
        let fewer = json!({"f:data": {"f:a": {}}});
        assert_eq!(
            compare(&content, Some(&entry), &live("8", &fewer)),
            Sameness::Suspect
        );
        assert!(matches!(
            compare(&Fingerprint::of(&json!("new")), Some(&entry), &live("7", &fields)),
            Sameness::Changed(_)
        ));
        assert!(matches!(
            compare(&content, None, &live("7", &fields)),
            Sameness::Changed(_)
        ));
        let other = RecordedObject {
            uid: "v".into(),
            ..entry
        };
        assert!(matches!(
            compare(&content, Some(&other), &live("7", &fields)),
            Sameness::Changed(_)
        ));
    }
}
