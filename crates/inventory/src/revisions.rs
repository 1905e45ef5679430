//! Component revisions: Helm's `.Release.Revision`.

use async_trait::async_trait;
use evenkeel_core::{ClusterId, ComponentName, ComponentRevision, Digest};

use crate::Error;

/// The revision number of each component of each cluster.
#[async_trait]
pub trait Revisions: Send + Sync {
    /// The revision for these inputs (source digest, values, name, namespace): the present number when they are the
    /// present inputs, else the next one. It begins at 1 again after the component was deleted.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the cluster does not exist or is deleted.
    async fn resolve_revision(
        &self,
        cluster: &ClusterId,
        component: &ComponentName,
        inputs: &Digest,
    ) -> Result<ComponentRevision, Error>;
}
