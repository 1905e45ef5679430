//! What a change of an object comes to, field by field, for people.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{ObjectRef, PlanAction};

/// One object that exists and how its fields change. Secret values are masked on both sides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectDiff {
    /// The object.
    pub object: ObjectRef,
    /// What will happen to it.
    pub action: PlanAction,
    /// The fields that change, in the order of the object.
    pub fields: Vec<FieldDiff>,
    /// How many more fields change than are listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: usize,
    /// What kept the API server from being asked; then defaults and the changes of webhooks are not shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// One field and its values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FieldDiff {
    /// Where it is, like `spec.template.spec.containers[main].image`.
    pub path: String,
    /// Its value now; none when it is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// Its value afterwards; none when it goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}
