//! What the next reconciliation of a cluster would do, with nothing done.

use evenkeel_core::{
    ClusterName, ComponentName, ComponentRevision, ConfigurationVersion, Namespace, ObjectDiff, Plan,
};
use serde::{Deserialize, Serialize};

/// What a reconciliation of a cluster would do now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterPlan {
    /// The cluster.
    pub name: ClusterName,
    /// The configuration that would be brought about.
    pub version: ConfigurationVersion,
    /// Its components, in the order of their dependencies; then those that it no longer lists.
    pub components: Vec<ComponentPlan>,
}

/// What would be done with one component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ComponentPlan {
    /// The component.
    pub name: ComponentName,
    /// What it is about.
    pub work: PlannedWork,
    /// Its release namespace; none for one that is no longer listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Namespace>,
    /// The revision that it would have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<ComponentRevision>,
    /// The objects and what would happen to each; none when that could not be found out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    /// How the fields of existing objects would change; secret values are masked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diffs: Vec<ObjectDiff>,
    /// Why there is no plan, or what stands against it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What would be done with a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PlannedWork {
    /// The cluster gets what its source gives.
    Apply,
    /// Its objects are deleted.
    Delete,
    /// Its objects stay and are nobody's any more.
    Orphan,
}

impl PlannedWork {
    /// The name on the wire and for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "apply",
            Self::Delete => "delete",
            Self::Orphan => "orphan",
        }
    }
}
