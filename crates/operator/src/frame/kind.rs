//! What a kind is to the frame.

use std::time::Duration;

use evenkeel_steps::{Failure, Guard, Permission, Pipeline, Report};
use kube::{Resource, ResourceExt as _};
use serde_json::Value;

use super::access::Readable;
use super::ledger::{Key, Mark};
use crate::resources::{Cluster, Condition, GitRepo, Tenant};

/// A custom resource that a controller looks after.
pub(crate) trait Managed: Resource<DynamicType = ()> + Send + Sync + 'static {
    /// The conditions in its status.
    fn conditions(&self) -> &[Condition];

    /// Its status in JSON; an empty object if it has none.
    fn status_value(&self) -> Value;
}

/// Which object: name and uid, so that nobody takes one for another that had its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
}

impl Identity {
    pub(crate) fn of<K: Resource>(object: &K) -> Self {
        Self {
            namespace: object.meta().namespace.clone().unwrap_or_default(),
            name: object.meta().name.clone().unwrap_or_default(),
            uid: object.uid().unwrap_or_default(),
        }
    }
}

/// What a pass works on.
pub(crate) trait Snapshot: Send + Sync + 'static {
    /// The kind of the object.
    type Object: Managed;

    /// The object as it was read at the beginning of the pass.
    fn object(&self) -> &Self::Object;
}

/// A kind of custom resource with its steps.
pub(crate) trait Kind: Send + Sync + 'static {
    /// Its objects.
    type Object: Managed + Readable;
    /// Its snapshot.
    type State: Snapshot<Object = Self::Object>;

    /// The fields of the status that this controller writes; all others are somebody else's.
    const STATUS_FIELDS: &'static [&'static str];

    /// The conditions of its steps.
    const CONDITIONS: &'static [&'static str];

    /// Takes away what nobody looks up in the store of all objects: passes read theirs anew.
    fn trim(object: &mut Self::Object);

    /// A digest of what passes read of an object: when it changes, the object gets a turn. That is all but the status, which we
    /// write; a kind whose passes read what others write there adds that. An object that lost its status gets a turn as well.
    fn mark(object: &Self::Object) -> Mark {
        Mark::of_metadata(object.meta()).with(&object.conditions().is_empty())
    }

    /// Objects of another kind that an object refers to, if there is a watch for them.
    fn mentions(object: &Self::Object) -> Vec<Key> {
        let _ = object;
        Vec::new()
    }

    /// The steps towards what the object asks for.
    fn pipeline(&self) -> &Pipeline<Self::State>;

    /// The steps that take everything away again.
    fn teardown(&self) -> &Pipeline<Self::State>;

    /// What the policies of an object forbid, whatever its steps would do (E8).
    fn guard(&self, state: &Self::State) -> Guard {
        let _ = state;
        Guard::Proceed
    }

    /// What [`gather`](Self::gather) asks for, and nothing else.
    fn reads(&self) -> Vec<Permission>;

    /// What is asked for to hear of changes of what belongs to the objects, beside the objects themselves.
    fn watches(&self) -> Vec<Permission>;

    /// Reads all that the steps decide by.
    fn gather(&self, object: Self::Object) -> impl Future<Output = Result<Self::State, Failure>> + Send;

    /// The fields of the status but `conditions` and `observedGeneration`, which the frame knows. Called only when gathering
    /// succeeded.
    fn status(&self, state: &Self::State, report: &Report<Self::State>) -> Value;

    /// After which time an object is looked at again although nothing happened.
    fn interval(&self) -> Option<Duration>;
}

macro_rules! managed {
    ($($kind:ty),*) => {$(
        impl Managed for $kind {
            fn conditions(&self) -> &[Condition] {
                self.status.as_ref().map_or(&[], |status| &status.conditions)
            }

            fn status_value(&self) -> Value {
                let status = self.status.as_ref().and_then(|status| serde_json::to_value(status).ok());
                status.unwrap_or_else(|| Value::Object(serde_json::Map::new()))
            }
        }
    )*};
}
managed!(Cluster, GitRepo, Tenant);
