//! Which cluster this is, whatever address it answers at.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::connection::{Subject, Verb};
use crate::live::{ACCEPT_METADATA, LiveObject};
use crate::{Cluster, Error};

/// The uid of a cluster's namespace `kube-system`: made with the cluster, never changed, shared by no two.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClusterUid(String);

impl ClusterUid {
    /// A uid that was recorded earlier.
    pub fn recorded(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The uid as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) async fn read(cluster: &Cluster) -> Result<Self, Error> {
        let subject = Subject::new("read the identity of the cluster (namespace kube-system)");
        let body = cluster
            .read(
                Verb::Get,
                "/api/v1/namespaces/kube-system",
                ACCEPT_METADATA,
                &subject,
            )
            .await?;
        Ok(Self(LiveObject::read(&body, &subject.doing)?.uid))
    }
}

impl fmt::Display for ClusterUid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
