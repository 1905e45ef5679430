//! Names, labels and annotations by which Evenkeel and kubectl know what belongs to what.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use evenkeel_core::{ComponentName, Digest, GroupKind, NAME_MAX};
use sha2::{Digest as _, Sha256};

/// The field manager of everything that Evenkeel applies.
pub const FIELD_MANAGER: &str = "evenkeel";
/// Where parents live at the target.
pub const SYSTEM_NAMESPACE: &str = "evenkeel-system";
/// On every member: the id of its set (KEP-3659).
pub const PART_OF: &str = "applyset.kubernetes.io/part-of";
/// On every parent: the fleet that owns it.
pub const FLEET_LABEL: &str = "evenkeel.dev/fleet";
/// Annotation that takes an object out of readiness: `"true"`.
pub const IGNORE_READINESS: &str = "evenkeel.dev/ignore-readiness";
/// Annotation that says what happens when immutable fields of the object must change: `recreate`, `orphan-recreate` or
/// `error`; the rule of its kind when absent.
pub const ON_IMMUTABLE_CHANGE: &str = "evenkeel.dev/on-immutable-change";

/// Annotation that says what happens to fields that other field managers own with other values: `force` (the default: they
/// become ours), `leave` or `error`.
pub const ON_CONFLICT: &str = "evenkeel.dev/on-conflict";

/// Annotation that keeps an object from being deleted: not pruned, not deleted with its component, not made again. Whatever
/// it says but `"false"` protects.
pub const PROTECT: &str = "evenkeel.dev/protect";

/// Keeps the owner of `spec.replicas` while they pass from us to an autoscaler.
pub(crate) const REPLICAS_MANAGER: &str = "evenkeel-replicas";
/// On every parent: the id of the set (KEP-3659).
pub(crate) const SET_ID: &str = "applyset.kubernetes.io/id";
/// On every parent: who manages it (KEP-3659).
pub(crate) const TOOLING: &str = "applyset.kubernetes.io/tooling";
/// Our value of [`TOOLING`].
pub(crate) const TOOLING_VALUE: &str = "evenkeel/v1";
/// On every parent: the kinds of its members (KEP-3659).
pub(crate) const GROUP_KINDS: &str = "applyset.kubernetes.io/contains-group-kinds";
/// On every parent: the namespaces of its members other than its own (KEP-3659).
pub(crate) const NAMESPACES: &str = "applyset.kubernetes.io/additional-namespaces";
/// On every object that a hook made: the parent of its component. Never beside [`PART_OF`].
pub(crate) const HOOK_OF: &str = "evenkeel.dev/hook-of";
/// Annotation of such an object: the run that made it.
pub(crate) const HOOK_RUN: &str = "evenkeel.dev/hook-run";
/// On every kept render: the parent it belongs to.
pub(crate) const RENDER_OF: &str = "evenkeel.dev/render-of";
/// On every part of a large record: the parent it belongs to.
pub(crate) const RECORD_OF: &str = "evenkeel.dev/record-of";
/// On a part of a large record that was found unused and is used again: the version of the parent at that time.
pub(crate) const CLAIMED_AT: &str = "evenkeel.dev/claimed-at";

const PREFIX: &str = "evenkeel-";
/// Hexadecimal digits that tell names apart after cutting.
const SUFFIX_DIGITS: usize = 8;

/// The name of the parent of the set that components share.
pub(crate) const CLUSTER_PARENT: &str = "evenkeel-cluster";

/// The name of a component's parent: `evenkeel-<component>`, at most 63 bytes.
///
/// A name that would be too long is cut, and one that would be taken for the shared parent, a kept render or a part of a
/// large record is set apart; all end in a digest of the whole name.
pub fn parent_name(component: &ComponentName) -> String {
    let plain = format!("{PREFIX}{component}");
    let render = plain
        .rsplit_once("-render-")
        .is_some_and(|(_, number)| number.bytes().all(|b| b.is_ascii_digit()));
    let part = plain
        .rsplit_once("-objects-")
        .is_some_and(|(_, digest)| digest.bytes().all(|b| b.is_ascii_hexdigit()));
    if plain.len() <= NAME_MAX && plain != CLUSTER_PARENT && !render && !part {
        return plain;
    }
    let digest = Digest::of(component.as_str()).hex();
    let suffix = digest.get(..SUFFIX_DIGITS).unwrap_or_default();
    let room = NAME_MAX - SUFFIX_DIGITS - 1;
    let head = plain
        .get(..plain.len().min(room))
        .unwrap_or_default()
        .trim_end_matches('-');
    format!("{head}-{suffix}")
}

/// The id of the set whose parent is the Secret `parent` in our namespace, as KEP-3659 computes it.
pub fn applyset_id(parent: &str) -> String {
    let name = format!("{parent}.{SYSTEM_NAMESPACE}.Secret.");
    format!("applyset-{}-v1", URL_SAFE_NO_PAD.encode(Sha256::digest(name)))
}

/// `Deployment.apps,Secret`, as KEP-3659 writes kinds.
pub(crate) fn write_group_kinds(kinds: &BTreeSet<GroupKind>) -> String {
    let mut texts: Vec<String> = kinds.iter().map(ToString::to_string).collect();
    texts.sort();
    texts.join(",")
}

pub(crate) fn read_group_kinds(text: &str) -> BTreeSet<GroupKind> {
    text.split(',')
        .filter(|part| !part.is_empty())
        .map(|part| {
            part.split_once('.').map_or_else(
                || GroupKind::new("", part),
                |(kind, group)| GroupKind::new(group, kind),
            )
        })
        .collect()
}

pub(crate) fn is_label_value(text: &str) -> bool {
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= NAME_MAX
        && edge(bytes.first())
        && edge(bytes.last())
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> ComponentName {
        ComponentName::new(text).expect("name")
    }

    /// QDB-10: one function makes the name, it is within its limit, and long names that begin alike stay apart.
    #[test]
    fn no_two_components_share_a_parent() {
        let long = "a".repeat(63);
        let longer = format!("{}b", "a".repeat(62));
        let names = [
            "web",
            "cluster",
            "web-render-1",
            "render-1",
            "web-objects-0123456789abcdef",
            &long,
            &longer,
        ]
        .map(|text| parent_name(&name(text)));
        let distinct: BTreeSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), names.len());
        assert!(
            names
                .iter()
                .all(|name| name.len() <= NAME_MAX && name != CLUSTER_PARENT && !name.ends_with(['-', '.']))
        );
        assert_eq!(parent_name(&name(&long)), parent_name(&name(&long)));
        assert_eq!(names.first().map(String::as_str), Some("evenkeel-web"));
        for taken in ["evenkeel-web-render-1", "evenkeel-web-objects-0123456789abcdef"] {
            assert!(!names.contains(&taken.to_owned()), "{taken}");
        }
    }

    /// Computed with kubectl's algorithm: base64url(sha256("<name>.<namespace>.<kind>.<group>")).
    #[test]
    fn ids_are_kubectls() {
        let id = applyset_id("evenkeel-web");
        assert!(
            id.starts_with("applyset-") && id.ends_with("-v1") && id.len() == 55,
            "{id}"
        );
        assert!(is_label_value(&id), "{id}");
    }

    #[test]
    fn group_kinds_read_what_they_write() {
        let kinds: BTreeSet<_> = [
            GroupKind::new("apps", "Deployment"),
            GroupKind::new("", "Secret"),
            GroupKind::new("rbac.authorization.k8s.io", "Role"),
        ]
        .into();
        let text = write_group_kinds(&kinds);
        assert_eq!(text, "Deployment.apps,Role.rbac.authorization.k8s.io,Secret");
        assert_eq!(read_group_kinds(&text), kinds);
        assert!(read_group_kinds("").is_empty());
    }
}
