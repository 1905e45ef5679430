//! Parts built from Go modules: what they are built of, and what they are looked for under.
//!
//! Their sources are in `tools/<name>` of the repository, and in this crate as they were when it was compiled: so what
//! set-up builds is what the finders look for, whatever happened to the checkout since.

use sha2::{Digest as _, Sha256};

use crate::cache::hexadecimal;

/// Hexadecimal digits of the digest in a folder's name.
const KEY_DIGITS: usize = 12;

/// Flags of `go build` for every part. `-mod=mod` resolves only what is compiled; `-p 2` bounds the memory; without
/// `-buildvcs=false` the checkout around it would be looked into.
const BUILD_FLAGS: [&str; 5] = ["-mod=mod", "-trimpath", "-buildvcs=false", "-p", "2"];

/// One program.
#[derive(Debug)]
pub struct GoPart {
    /// Name of its folder in the cache, and of the binary.
    pub name: &'static str,
    /// Name for people.
    pub title: &'static str,
    /// Its release, as its authors write it.
    pub version: &'static str,
    /// go.mod, go.sum, and main.go where it has one of its own: name and text.
    pub sources: &'static [(&'static str, &'static str)],
    /// The package to build and the module it lies in. Without, it is main.go of the sources.
    pub package: Option<Package>,
    /// Build tags.
    pub tags: &'static [&'static str],
    /// Environment of the build.
    pub environment: &'static [(&'static str, &'static str)],
    /// Linker flags.
    pub ldflags: &'static str,
    /// What a build costs, for whoever waits for it.
    pub cost: &'static str,
}

/// A package of somebody else's module.
#[derive(Debug)]
pub struct Package {
    /// Import path.
    pub path: &'static str,
    /// Path of its module.
    pub module: &'static str,
    /// Folders of the module that the program reads: they are put beside the binary.
    pub folders: &'static [&'static str],
}

/// etcd, kube-apiserver and kube-controller-manager in one binary that takes the server's name as its first argument.
/// Without cgo it runs on any Linux; a high `GOGC` trades memory for a minute; without the version stamp `/version`
/// says `v0.0.0-master`, which breaks charts with a `kubeVersion`.
pub const CONTROL_PLANE: GoPart = GoPart {
    name: "controlplane",
    title: "control plane",
    version: "v1.37.2",
    sources: &[
        ("go.mod", include_str!("../../../tools/controlplane/go.mod")),
        ("go.sum", include_str!("../../../tools/controlplane/go.sum")),
        ("main.go", include_str!("../../../tools/controlplane/main.go")),
    ],
    package: None,
    tags: &[],
    environment: &[("CGO_ENABLED", "0"), ("GOGC", "400"), ("GOWORK", "off")],
    ldflags: "-s -w \
        -X k8s.io/component-base/version.gitVersion=v1.37.2 \
        -X k8s.io/component-base/version.gitMajor=1 \
        -X k8s.io/component-base/version.gitMinor=37 \
        -X k8s.io/component-base/version.gitTreeState=clean \
        -X k8s.io/component-base/version.gitCommit=0000000 \
        -X k8s.io/component-base/version.buildDate=2026-12-01T00:00:00Z",
    cost: "about 6 minutes on two cores, 3.2 GB of memory and 5 GB of disk meanwhile",
};

/// Gitea: Git hosting, Helm repository, OCI registry. SQLite, and so cgo, because it needs a database; the replaced
/// modules in its go.mod are those of its own.
pub const GITEA: GoPart = GoPart {
    name: "gitea",
    title: "Gitea",
    version: "v1.26.0",
    sources: &[
        ("go.mod", include_str!("../../../tools/gitea/go.mod")),
        ("go.sum", include_str!("../../../tools/gitea/go.sum")),
    ],
    package: Some(Package {
        path: "code.gitea.io/gitea",
        module: "code.gitea.io/gitea",
        folders: &["templates", "options", "public"],
    }),
    tags: &["sqlite", "sqlite_unlock_notify"],
    environment: &[("CGO_ENABLED", "1"), ("GOWORK", "off")],
    ldflags: "-s -w -X main.Version=1.26.0",
    cost: "about 4 minutes on two cores and 2 GB of disk meanwhile; a C compiler is needed",
};

/// kustomize. This release is the newest that Go 1.26 compiles.
pub const KUSTOMIZE: GoPart = GoPart {
    name: "kustomize",
    title: "kustomize",
    version: "v5.8.2",
    sources: &[
        ("go.mod", include_str!("../../../tools/kustomize/go.mod")),
        ("go.sum", include_str!("../../../tools/kustomize/go.sum")),
    ],
    package: Some(Package {
        path: "sigs.k8s.io/kustomize/kustomize/v5",
        module: "sigs.k8s.io/kustomize/kustomize/v5",
        folders: &[],
    }),
    tags: &[],
    environment: &[("CGO_ENABLED", "0"), ("GOWORK", "off")],
    ldflags: "-s -w -X sigs.k8s.io/kustomize/api/provenance.version=v5.8.2",
    cost: "about a minute on two cores",
};

/// Flux's apply engine, as a program of ours around it: what `evenkeel bench apply` measures Flux by. This release is the
/// newest that Go 1.26 compiles.
pub const FLUX_SSA: GoPart = GoPart {
    name: "fluxssa",
    title: "Flux's apply engine",
    version: "v0.78.0",
    sources: &[
        ("go.mod", include_str!("../../../tools/fluxssa/go.mod")),
        ("go.sum", include_str!("../../../tools/fluxssa/go.sum")),
        ("main.go", include_str!("../../../tools/fluxssa/main.go")),
    ],
    package: None,
    tags: &[],
    environment: &[("CGO_ENABLED", "0"), ("GOWORK", "off")],
    ldflags: "-s -w",
    cost: "about a minute and a half on two cores",
};

/// Vault's server, as a program of ours around it: what is called minimal there, and the Kubernetes login. This release is the newest
/// that compiles against a published release of its own SDK.
pub const VAULT: GoPart = GoPart {
    name: "vault",
    title: "Vault",
    version: "v1.21.0",
    sources: &[
        ("go.mod", include_str!("../../../tools/vault/go.mod")),
        ("go.sum", include_str!("../../../tools/vault/go.sum")),
        ("main.go", include_str!("../../../tools/vault/main.go")),
    ],
    package: None,
    tags: &["minimal"],
    environment: &[("CGO_ENABLED", "0"), ("GOWORK", "off")],
    ldflags: "-s -w",
    cost: "about 3 minutes on two cores and 2 GB of disk meanwhile",
};

impl GoPart {
    /// All flags of `go build` but `-o`.
    pub fn build_arguments(&self) -> Vec<String> {
        let mut arguments: Vec<String> = BUILD_FLAGS.map(str::to_owned).to_vec();
        if !self.tags.is_empty() {
            arguments.extend(["-tags".to_owned(), self.tags.join(",")]);
        }
        arguments.extend(["-ldflags".to_owned(), self.ldflags.to_owned()]);
        arguments
    }

    /// Version and digest of everything that decides what is built: the name of its folder in the cache.
    pub fn key(&self) -> String {
        let sources = self.sources.iter().map(|(_, text)| *text);
        let environment = self.environment.iter().flat_map(|(name, value)| [*name, *value]);
        let package = self
            .package
            .iter()
            .flat_map(|package| [package.path].into_iter().chain(package.folders.iter().copied()));
        let mut digest = Sha256::new();
        for part in sources
            .chain(BUILD_FLAGS)
            .chain(environment)
            .chain([self.ldflags])
            .chain(self.tags.iter().copied())
            .chain(package)
        {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        }
        let mut key = hexadecimal(&digest.finalize());
        key.truncate(KEY_DIGITS);
        format!("{}-{key}", self.version)
    }

    /// Title and version.
    pub fn describe(&self) -> String {
        format!("{} {}", self.title, self.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_starts_with_the_version_and_is_stable() {
        for part in [CONTROL_PLANE, GITEA, KUSTOMIZE, FLUX_SSA] {
            let key = part.key();
            assert_eq!(key, part.key());
            let digest = key.strip_prefix(part.version).unwrap().strip_prefix('-').unwrap();
            assert_eq!(digest.len(), KEY_DIGITS);
            assert!(digest.bytes().all(|byte| byte.is_ascii_hexdigit()));
        }
    }

    #[test]
    fn a_key_changes_with_the_sources_and_with_the_flags() {
        let changed = [
            GoPart {
                sources: &[("go.mod", "module another")],
                ..KUSTOMIZE
            },
            GoPart {
                tags: &["netgo"],
                ..KUSTOMIZE
            },
            GoPart {
                ldflags: "-s",
                ..KUSTOMIZE
            },
        ];
        for part in changed {
            assert_ne!(part.key(), KUSTOMIZE.key());
        }
    }

    #[test]
    fn the_version_stamp_and_the_module_are_of_the_version() {
        assert!(
            CONTROL_PLANE
                .ldflags
                .contains(&format!("gitVersion={} ", CONTROL_PLANE.version))
        );
        let engine = format!("github.com/fluxcd/pkg/ssa {}", FLUX_SSA.version);
        assert!(FLUX_SSA.sources[0].1.contains(&engine), "{engine}");
        for part in [GITEA, KUSTOMIZE] {
            let module = part.package.unwrap().module;
            let required = format!("{module} {}", part.version);
            assert!(part.sources[0].1.contains(&required), "{required}");
            assert!(
                part.ldflags.contains(part.version.trim_start_matches('v')),
                "{}",
                part.ldflags
            );
        }
    }
}
