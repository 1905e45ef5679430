//! Layout of the cache: which part of which version lies where.
//!
//! ```text
//! $EVENKEEL_CACHE | $XDG_CACHE_HOME/evenkeel | ~/.cache/evenkeel
//! ├── controlplane/v1.37.2-<digest of its sources and flags>/controlplane
//! ├── gitea/v1.26.0-<digest>/gitea           with the folders it reads beside it
//! ├── kustomize/v5.8.2-<digest>/kustomize
//! ├── vault/v1.21.0-<digest>/vault
//! ├── helm/v4.3.1/helm
//! ├── kubectl/v1.37.1/kubectl
//! ├── tools/<name>-<version>/<name>    tools of the lint
//! ├── build/                          used while something is built, removed afterwards
//! └── lock                            held by the one set-up that may write
//! ```
//!
//! Every folder is keyed by version, so two checkouts share it without disturbing each other, and a part that is
//! there is whole: set-up writes it aside and renames it.

use std::path::{Path, PathBuf};

use crate::Error;
use crate::go_part::GoPart;

/// Helm release that rendering is compared with, byte for byte.
pub const HELM_VERSION: &str = "v4.3.1";
/// kubectl release that comes with that Helm.
pub const KUBECTL_VERSION: &str = "v1.37.1";

/// The cache's root folder. It need not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// The cache that the environment names.
    ///
    /// # Errors
    /// [`Error::NoCache`] when none of the three variables is set.
    pub fn open() -> Result<Self, Error> {
        Self::from_variables(|name| {
            std::env::var_os(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        })
    }

    /// The cache in that folder, whatever the environment says.
    pub fn at(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
        }
    }

    fn from_variables(variable: impl Fn(&str) -> Option<PathBuf>) -> Result<Self, Error> {
        let root = variable("EVENKEEL_CACHE")
            .or_else(|| variable("XDG_CACHE_HOME").map(|folder| folder.join("evenkeel")))
            .or_else(|| variable("HOME").map(|home| home.join(".cache/evenkeel")))
            .ok_or(Error::NoCache)?;
        // Servers are started in folders of their own, where a relative path would name something else.
        let root = std::path::absolute(&root).map_err(Error::io(format!("resolve {}", root.display())))?;
        Ok(Self { root })
    }

    /// The root folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The binary of a part built from Go modules.
    pub fn go_part(&self, part: &GoPart) -> PathBuf {
        self.root.join(part.name).join(part.key()).join(part.name)
    }

    /// The `helm` binary.
    pub fn helm(&self) -> PathBuf {
        self.root.join("helm").join(HELM_VERSION).join("helm")
    }

    /// The `kubectl` binary.
    pub fn kubectl(&self) -> PathBuf {
        self.root.join("kubectl").join(KUBECTL_VERSION).join("kubectl")
    }

    /// A tool of that name and version.
    pub fn tool(&self, name: &str, version: &str) -> PathBuf {
        self.root
            .join("tools")
            .join(format!("{name}-{version}"))
            .join(name)
    }

    /// Where parts are made before they are renamed into place.
    pub fn build(&self) -> PathBuf {
        self.root.join("build")
    }

    /// The file whose lock a set-up holds while it writes.
    pub fn lock(&self) -> PathBuf {
        self.root.join("lock")
    }
}

/// Lower-case hexadecimal digits.
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(variables: &[(&str, &str)]) -> Result<Cache, Error> {
        Cache::from_variables(|name| {
            variables
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| PathBuf::from(value))
        })
    }

    #[test]
    fn the_most_specific_variable_decides() {
        let all = [("EVENKEEL_CACHE", "/a"), ("XDG_CACHE_HOME", "/b"), ("HOME", "/c")];
        assert_eq!(cache(&all).unwrap().root(), Path::new("/a"));
        assert_eq!(cache(&all[1..]).unwrap().root(), Path::new("/b/evenkeel"));
        assert_eq!(cache(&all[2..]).unwrap().root(), Path::new("/c/.cache/evenkeel"));
        assert!(matches!(cache(&[]), Err(Error::NoCache)));
    }

    #[test]
    fn a_relative_cache_is_made_absolute() {
        assert!(cache(&[("EVENKEEL_CACHE", "here")]).unwrap().root().is_absolute());
    }
}
