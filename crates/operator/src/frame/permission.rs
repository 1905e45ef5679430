//! What steps ask of the Kubernetes API, in the words of its roles (E2, A10).

use evenkeel_steps::{Failure, Permission};

use super::Readable;

/// How permissions call the Kubernetes API.
pub(crate) const KUBERNETES: &str = "kubernetes";

/// Name of a kind in a role, with its group: `secrets`, `clusters.syn.tools`, `clusters.syn.tools/status`.
fn target<K: Readable>(subresource: &str) -> String {
    let (plural, group) = (K::plural(&()), K::group(&()));
    let mut name = plural.into_owned();
    if !group.is_empty() {
        name.push('.');
        name.push_str(&group);
    }
    if !subresource.is_empty() {
        name.push('/');
        name.push_str(subresource);
    }
    name
}

/// Says that a call is about to be made; refused if the step that makes it did not declare it.
pub(super) fn ask<K: Readable>(verb: &str, subresource: &str) -> Result<(), Failure> {
    evenkeel_steps::ask(KUBERNETES, verb, &target::<K>(subresource))
}

/// Reading one object.
pub(crate) fn get<K: Readable>() -> Permission {
    Permission::read(KUBERNETES, "get", target::<K>(""))
}

/// Reading all objects.
pub(crate) fn list<K: Readable>() -> Permission {
    Permission::read(KUBERNETES, "list", target::<K>(""))
}

/// Hearing of changes.
pub(crate) fn watch<K: Readable>() -> [Permission; 2] {
    [
        list::<K>(),
        Permission::read(KUBERNETES, "watch", target::<K>("")),
    ]
}

/// Making an object.
pub(crate) fn create<K: Readable>() -> Permission {
    Permission::write(KUBERNETES, "create", target::<K>(""))
}

/// Changing an object that is there.
pub(crate) fn patch<K: Readable>() -> Permission {
    Permission::write(KUBERNETES, "patch", target::<K>(""))
}

/// Changing the status of an object.
pub(crate) fn patch_status<K: Readable>() -> Permission {
    Permission::write(KUBERNETES, "patch", target::<K>("status"))
}

/// Making an object be there, whether it was before or not.
pub(crate) fn keep<K: Readable>() -> [Permission; 2] {
    [create::<K>(), patch::<K>()]
}

/// Deleting an object.
pub(crate) fn delete<K: Readable>() -> Permission {
    Permission::write(KUBERNETES, "delete", target::<K>(""))
}

/// Making objects whose owner is of kind `K` and waits for them when it is deleted: the API server asks whether one may keep `K` from
/// going.
pub(crate) fn own<K: Readable>() -> Permission {
    Permission::write(KUBERNETES, "update", target::<K>("finalizers"))
}

/// Issuing tokens of service accounts.
pub(crate) fn issue_tokens() -> Permission {
    Permission::write(KUBERNETES, "create", "serviceaccounts/token")
}

/// Handing out a right: the API server lets nobody hand out what they do not hold.
pub(crate) fn hand_out(verb: &'static str, target: &'static str) -> Permission {
    Permission::write(KUBERNETES, verb, target)
}
