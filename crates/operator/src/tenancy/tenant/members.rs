//! The clusters of a tenant, as far as the tenant reads them.

use kube::ResourceExt as _;

use crate::resources::{Cluster, RepoType};

/// All that a tenant reads of a cluster that names it. Nothing else of a cluster is a reason to look at its tenant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Member {
    pub(super) name: String,
    /// Whether the tenant's pipelines compile it: not when it is being deleted.
    pub(super) is_compiled: bool,
    /// The Secret with the access token of its repository, if we look after that one (A5).
    pub(super) token_secret: Option<String>,
}

impl Member {
    pub(super) fn of(cluster: &Cluster) -> Self {
        let is_going = cluster.metadata.deletion_timestamp.is_some();
        Self {
            name: cluster.name_any(),
            is_compiled: !is_going && cluster.spec.enable_compile_pipeline == Some(true),
            token_secret: token_secret(cluster).map(str::to_owned),
        }
    }
}

fn token_secret(cluster: &Cluster) -> Option<&str> {
    let template = cluster.spec.git_repo_template.as_ref()?;
    if template.repo_type == Some(RepoType::Unmanaged) {
        return None;
    }
    let name = template.access_token.as_ref()?.secret_ref.as_deref()?;
    (!name.is_empty()).then_some(name)
}
