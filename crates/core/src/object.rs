//! References to Kubernetes objects.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A kind without its version, as ApplySets list them: `Deployment.apps`, `ConfigMap`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GroupKind {
    /// API group; empty for the core group.
    pub group: String,
    /// Kind, in upper camel case.
    pub kind: String,
}

impl GroupKind {
    /// The kind `kind` of `group` (empty for the core group).
    pub fn new(group: impl Into<String>, kind: impl Into<String>) -> Self {
        Self {
            group: group.into(),
            kind: kind.into(),
        }
    }
}

impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            f.write_str(&self.kind)
        } else {
            write!(f, "{}.{}", self.kind, self.group)
        }
    }
}

/// A kind with the version it is written in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GroupVersionKind {
    /// API group; empty for the core group.
    pub group: String,
    /// API version, like `v1`.
    pub version: String,
    /// Kind, in upper camel case.
    pub kind: String,
}

impl GroupVersionKind {
    /// From an object's `apiVersion` (`v1`, `apps/v1`) and `kind`.
    pub fn from_api_version(api_version: &str, kind: impl Into<String>) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.into(),
        }
    }

    /// The `apiVersion` field of an object of this kind.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// The kind without its version.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind::new(self.group.clone(), self.kind.clone())
    }
}

impl fmt::Display for GroupVersionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.api_version(), self.kind)
    }
}

/// One object of a target cluster. The version is left out: the same object answers under several.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectRef {
    /// API group; empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Kind, in upper camel case.
    pub kind: String,
    /// Namespace; none for cluster-scoped kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
}

impl ObjectRef {
    /// The kind without its version.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind::new(self.group.clone(), self.kind.clone())
    }
}

impl fmt::Display for ObjectRef {
    /// As kubectl writes it: `Deployment.apps/web in namespace shop`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        write!(f, "/{}", self.name)?;
        match &self.namespace {
            Some(namespace) => write!(f, " in namespace {namespace}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_versions_go_both_ways() {
        for api_version in ["v1", "apps/v1", "syn.tools/v1alpha1"] {
            assert_eq!(
                GroupVersionKind::from_api_version(api_version, "X").api_version(),
                api_version
            );
        }
    }

    #[test]
    fn prints_as_kubectl_does() {
        let object = ObjectRef {
            group: "apps".to_owned(),
            kind: "Deployment".to_owned(),
            namespace: Some("shop".to_owned()),
            name: "web".to_owned(),
        };
        assert_eq!(object.to_string(), "Deployment.apps/web in namespace shop");
    }
}
