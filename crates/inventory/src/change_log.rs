//! What was done to which object, by whom and when (K27): asked for by cluster, component, object and time.

use async_trait::async_trait;
use evenkeel_core::{ClusterId, ComponentName, ObjectRef, OperationId, PlanAction, ReconciliationId};
use jiff::Timestamp;

use crate::{Error, Page, PageRequest};

/// Which changes are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeFilter {
    /// Only by this component.
    pub component: Option<ComponentName>,
    /// Only of objects of this kind, in upper camel case.
    pub kind: Option<String>,
    /// Only of objects in this namespace.
    pub namespace: Option<String>,
    /// Only of objects of this name.
    pub name: Option<String>,
    /// Only from this moment on.
    pub since: Option<Timestamp>,
    /// Only before this moment.
    pub until: Option<Timestamp>,
}

/// One change of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedChange {
    /// When.
    pub at: Timestamp,
    /// The object.
    pub object: ObjectRef,
    /// What was done to it.
    pub action: PlanAction,
    /// The component whose object it is.
    pub component: ComponentName,
    /// The operation that did it.
    pub operation: OperationId,
    /// Which try of it.
    pub attempt: u32,
    /// The run it belongs to.
    pub reconciliation: ReconciliationId,
    /// The API call that set the run off.
    pub request_id: Option<String>,
}

impl ChangeFilter {
    /// Whether a change of this object at this moment is wanted.
    pub(crate) fn wants(&self, object: &ObjectRef, at: Timestamp) -> bool {
        self.kind.as_ref().is_none_or(|kind| *kind == object.kind)
            && self
                .namespace
                .as_ref()
                .is_none_or(|namespace| object.namespace.as_ref() == Some(namespace))
            && self.name.as_ref().is_none_or(|name| *name == object.name)
            && self.since.is_none_or(|since| since <= at)
            && self.until.is_none_or(|until| at < until)
    }
}

/// The log of changes.
#[async_trait]
pub trait ChangeLog: Send + Sync {
    /// A page of changes, newest run first. A page may hold less than was asked for, or nothing, and still have a next
    /// one: one call looks at a bounded number of runs.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the cluster does not exist; [`Error::Database`].
    async fn object_changes(
        &self,
        cluster: &ClusterId,
        filter: &ChangeFilter,
        page: &PageRequest,
    ) -> Result<Page<RecordedChange>, Error>;
}
