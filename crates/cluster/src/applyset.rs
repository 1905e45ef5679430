//! Who owns what: one Kubernetes ApplySet (KEP-3659) per component and one per cluster for what components share.
//!
//! ```text
//! Secret evenkeel-system/evenkeel-web          parent: fence, record, group-kinds (a large record in parts: shards)
//!   ▲ applyset.kubernetes.io/part-of=<id>
//! Deployment, Service, ConfigMap, …            members of component "web"
//!
//! Secret evenkeel-system/evenkeel-cluster      parent: which components want which
//!   ▲ applyset.kubernetes.io/part-of=<id>
//! Namespace, CustomResourceDefinition          shared by components, never pruned
//! ```

pub(crate) mod contest;
mod fenced;
pub(crate) mod hooks;
pub(crate) mod labels;
pub(crate) mod parent;
pub(crate) mod record;
pub(crate) mod shards;
pub(crate) mod shared;

pub use contest::Contest;
pub use hooks::{HookState, RecordedHook};
pub use labels::{
    FIELD_MANAGER, FLEET_LABEL, IGNORE_READINESS, ON_CONFLICT, ON_IMMUTABLE_CHANGE, PART_OF, PROTECT,
    SYSTEM_NAMESPACE, applyset_id, parent_name,
};
pub use record::{Record, RecordedObject};

use evenkeel_core::ClusterName;

use crate::Error;

/// In whose name a cluster's objects are kept: the fleet (a setting of the mothership) and the cluster's name in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Owner {
    fleet: String,
    cluster: ClusterName,
}

impl Owner {
    /// The owner `cluster` of `fleet`.
    ///
    /// # Errors
    /// [`Error::Bug`] when `fleet` cannot be the value of a label: 1 to 63 letters, digits, `-`, `_` or `.`, beginning
    /// and ending with a letter or digit.
    pub fn new(fleet: impl Into<String>, cluster: ClusterName) -> Result<Self, Error> {
        let fleet = fleet.into();
        if labels::is_label_value(&fleet) {
            Ok(Self { fleet, cluster })
        } else {
            Err(Error::Bug(format!(
                "fleet name {fleet:?}: expected 1 to 63 letters, digits, '-', '_' or '.', beginning and ending with a \
                 letter or digit"
            )))
        }
    }

    /// The fleet's name.
    pub fn fleet(&self) -> &str {
        &self.fleet
    }

    /// The cluster's name in the fleet.
    pub fn cluster(&self) -> &ClusterName {
        &self.cluster
    }
}
