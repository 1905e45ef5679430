//! What the demo's clusters run: the example charts, carried inside the binary.

use std::path::Path;

use anyhow::Context;
use evenkeel_simulator::Cluster;
use include_dir::{Dir, include_dir};
use serde_json::{Value, json};

static EXAMPLES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../examples");

/// A set of components.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Set {
    /// A database with a random password, and a shop of several services that waits for it.
    Shop,
    /// Two web sites from one chart, the second after the first.
    Website,
}

impl Set {
    /// Whose clusters run it.
    pub(crate) fn tenant(self) -> &'static str {
        match self {
            Self::Shop => "trade",
            Self::Website => "press",
        }
    }

    /// What it is, for people.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::Shop => "database, then shop",
            Self::Website => "web, then docs",
        }
    }

    /// The namespace of [`Set::victim`].
    pub(crate) fn namespace(self) -> &'static str {
        match self {
            Self::Shop => "shop",
            Self::Website => "web",
        }
    }

    /// The Deployment that the demo deletes.
    pub(crate) fn victim(self) -> &'static str {
        match self {
            Self::Shop => "shop-catalog",
            Self::Website => "web",
        }
    }

    /// The components, as a cluster document lists them.
    pub(crate) fn components(self) -> Value {
        let chart = |path: &str| json!({"directory": {"path": path}});
        match self {
            Self::Shop => json!([
                {"name": "database", "source": chart("database"), "namespace": "data"},
                {"name": "shop", "source": chart("shop"), "namespace": "shop", "dependsOn": ["database"]},
            ]),
            Self::Website => json!([
                {"name": "web", "source": chart("web"), "namespace": "web", "values": [{"inline": {"replicaCount": 2}}]},
                {"name": "docs", "source": chart("web"), "namespace": "docs", "dependsOn": ["web"]},
            ]),
        }
    }
}

/// Writes the charts below `directory`.
pub(crate) fn write(directory: &Path) -> anyhow::Result<()> {
    EXAMPLES
        .extract(directory)
        .with_context(|| format!("the example charts cannot be written to {}", directory.display()))
}

/// Deletes a Deployment as somebody would who knows nothing of us.
pub(crate) fn delete_deployment(cluster: &Cluster, namespace: &str, name: &str) -> anyhow::Result<()> {
    cluster
        .delete("apps/v1", "Deployment", namespace, name)
        .with_context(|| format!("Deployment {name} cannot be deleted"))
}

/// Whether a Deployment is there.
pub(crate) fn has_deployment(cluster: &Cluster, namespace: &str, name: &str) -> bool {
    cluster
        .get("apps/v1", "Deployment", namespace, name)
        .is_ok_and(|found| found.is_some())
}
