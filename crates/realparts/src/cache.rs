//! Layout of the cache: which part of which version lies where.
//!
//! ```text
//! $EVENKEEL_CACHE | $XDG_CACHE_HOME/evenkeel | ~/.cache/evenkeel
//! ├── controlplane/v1.37.2-<digest of its sources and flags>/controlplane
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

use sha2::{Digest as _, Sha256};

use crate::Error;

/// Kubernetes release of the control plane.
pub const KUBERNETES_VERSION: &str = "v1.37.2";
/// Helm release that rendering is compared with, byte for byte.
pub const HELM_VERSION: &str = "v4.3.1";
/// kubectl release that comes with that Helm.
pub const KUBECTL_VERSION: &str = "v1.37.1";

/// Flags of `go build` for the control plane. `-mod=mod` resolves only what is compiled; `-p 2` keeps the peak at
/// 3.2 GB of memory; without `-buildvcs=false` the checkout around it would be looked into.
pub const CONTROL_PLANE_BUILD_FLAGS: [&str; 5] = ["-mod=mod", "-trimpath", "-buildvcs=false", "-p", "2"];

/// Environment of that build. Without cgo the binary runs on any Linux; a high `GOGC` trades memory for a minute.
pub const CONTROL_PLANE_BUILD_ENV: [(&str, &str); 3] =
    [("CGO_ENABLED", "0"), ("GOGC", "400"), ("GOWORK", "off")];

/// Linker flags: without the version stamp `/version` says `v0.0.0-master`, which breaks charts with a
/// `kubeVersion`.
pub const CONTROL_PLANE_LDFLAGS: &str = "-s -w \
    -X k8s.io/component-base/version.gitVersion=v1.37.2 \
    -X k8s.io/component-base/version.gitMajor=1 \
    -X k8s.io/component-base/version.gitMinor=37 \
    -X k8s.io/component-base/version.gitTreeState=clean \
    -X k8s.io/component-base/version.gitCommit=0000000 \
    -X k8s.io/component-base/version.buildDate=2026-12-01T00:00:00Z";

/// Sources of the control plane with their file names, as they were when this crate was compiled. Set-up builds
/// these, so that what it builds is what it is looked for under.
pub const CONTROL_PLANE_SOURCES: [(&str, &str); 3] = [
    ("go.mod", include_str!("../../../tools/controlplane/go.mod")),
    ("go.sum", include_str!("../../../tools/controlplane/go.sum")),
    ("main.go", include_str!("../../../tools/controlplane/main.go")),
];

/// Hexadecimal digits of the source digest in a folder's name.
const KEY_DIGITS: usize = 12;

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

    /// The binary that holds etcd, kube-apiserver and kube-controller-manager.
    pub fn control_plane(&self) -> PathBuf {
        self.root
            .join("controlplane")
            .join(control_plane_key())
            .join("controlplane")
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

/// Version and digest of everything that decides what the control plane binary is.
pub fn control_plane_key() -> String {
    let sources = CONTROL_PLANE_SOURCES.iter().map(|(_, text)| *text);
    let environment = CONTROL_PLANE_BUILD_ENV
        .iter()
        .flat_map(|(name, value)| [*name, *value]);
    let mut digest = Sha256::new();
    for part in sources
        .chain(CONTROL_PLANE_BUILD_FLAGS)
        .chain(environment)
        .chain([CONTROL_PLANE_LDFLAGS])
    {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    let mut key = hexadecimal(&digest.finalize());
    key.truncate(KEY_DIGITS);
    format!("{KUBERNETES_VERSION}-{key}")
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

    #[test]
    fn the_control_plane_key_starts_with_the_version_and_is_stable() {
        let key = control_plane_key();
        assert_eq!(key, control_plane_key());
        let digest = key.strip_prefix("v1.37.2-").unwrap();
        assert_eq!(digest.len(), KEY_DIGITS);
        assert!(digest.bytes().all(|byte| byte.is_ascii_hexdigit()));
    }

    #[test]
    fn the_version_stamp_is_the_version() {
        assert!(CONTROL_PLANE_LDFLAGS.contains(&format!("gitVersion={KUBERNETES_VERSION} ")));
    }
}
