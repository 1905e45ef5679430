//! One component of one target cluster: where all its operations begin.

use std::sync::Arc;

use evenkeel_core::{ComponentName, ComponentRevision, Digest};

use crate::applyset::labels::{applyset_id, parent_name};
use crate::applyset::parent::Parents;
use crate::applyset::{Owner, Record};
use crate::siblings::{Known, Siblings};
use crate::{Cluster, Error, Overview, overview};

/// A handle on one component of one cluster. Cheap to clone; holds no state of the target.
#[derive(Clone, Debug)]
pub struct ComponentTarget {
    cluster: Cluster,
    owner: Owner,
    name: ComponentName,
    parent: String,
    set: String,
    siblings: Known,
    overview: overview::Known,
}

/// What decided the objects of a component, so that a check can tell whether they were applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inputs {
    /// The component revision.
    pub revision: ComponentRevision,
    /// A digest of all that the render could see: chart, values, name, namespace, capabilities, engine version.
    pub digest: Digest,
}

impl Cluster {
    /// The component `name`, kept in the name of `owner`.
    pub fn component(&self, owner: &Owner, name: &ComponentName) -> ComponentTarget {
        let parent = parent_name(name);
        let set = applyset_id(&parent);
        ComponentTarget {
            cluster: self.clone(),
            owner: owner.clone(),
            name: name.clone(),
            parent,
            set,
            siblings: None,
            overview: None,
        }
    }
}

impl ComponentTarget {
    /// The same component, which knows what the others of its configuration render.
    #[must_use]
    pub fn with_siblings(mut self, siblings: Arc<dyn Siblings>) -> Self {
        self.siblings = Some(siblings);
        self
    }

    /// The same component, which need not read for itself what an overview of this cluster has read.
    #[must_use]
    pub fn within(mut self, overview: &Overview) -> Self {
        self.overview = Some(overview.clone());
        self
    }

    pub(crate) fn siblings(&self) -> Option<&dyn Siblings> {
        self.siblings.as_deref()
    }

    /// The cluster.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// In whose name the objects are kept.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// The component.
    pub fn name(&self) -> &ComponentName {
        &self.name
    }

    /// The name of its parent Secret.
    pub fn parent_name(&self) -> &str {
        &self.parent
    }

    /// The id of its ApplySet, which its objects carry in the label `applyset.kubernetes.io/part-of`.
    pub fn applyset_id(&self) -> &str {
        &self.set
    }

    /// What the target remembers of it; none when it was never applied there.
    ///
    /// # Errors
    /// [`Error::OtherOwner`] when the parent is another fleet's or cluster's; whatever the request fails with.
    pub async fn record(&self) -> Result<Option<Record>, Error> {
        self.record_of(false).await
    }

    /// What the target remembers of it, also when it is another fleet's or cluster's and `take_over` is set.
    ///
    /// # Errors
    /// As [`ComponentTarget::record`].
    pub async fn record_of(&self, take_over: bool) -> Result<Option<Record>, Error> {
        if let Some(overview) = self.overview(take_over) {
            return overview.record(&self.parent).await;
        }
        let parent = self
            .cluster
            .parent::<Record>(&self.parent, &self.owner, take_over);
        Ok(parent.await?.map(|parent| parent.record))
    }

    /// Every parent in the cluster.
    pub(crate) async fn parents(&self, take_over: bool) -> Result<Arc<Parents>, Error> {
        match self.overview(take_over) {
            Some(overview) => overview.parents().await,
            None => Ok(Arc::new(self.cluster.parents(&self.owner, take_over).await?)),
        }
    }

    fn overview(&self, take_over: bool) -> Option<&Overview> {
        let overview = self.overview.as_ref();
        overview.filter(|overview| overview.is_of(&self.cluster, &self.owner, take_over))
    }
}
