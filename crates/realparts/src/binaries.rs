//! Finds the binaries: in the cache, in `KUBEBUILDER_ASSETS`, on the machine.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache::{HELM_VERSION, KUBECTL_VERSION};
use crate::go_part::{CONTROL_PLANE, FLUX_SSA, GITEA, GoPart, KUSTOMIZE, VAULT};
use crate::{Cache, Error};

/// The environment variable by which envtest names a folder of control plane binaries.
const ASSETS_VARIABLE: &str = "KUBEBUILDER_ASSETS";

/// The servers of a control plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlPlaneBinaries {
    /// One binary that takes the server's name as its first argument, built by `cargo xtask setup`.
    Combined(PathBuf),
    /// A folder with one binary for each server, named by `KUBEBUILDER_ASSETS`.
    Separate(PathBuf),
}

impl ControlPlaneBinaries {
    /// Names of the servers, which are also the names of the binaries in a folder of assets.
    pub const SERVERS: [&str; 3] = ["etcd", "kube-apiserver", "kube-controller-manager"];

    /// A command that starts one of [`Self::SERVERS`], without flags yet.
    pub fn command(&self, server: &str) -> Command {
        match self {
            Self::Combined(binary) => {
                let mut command = Command::new(binary);
                command.arg(server);
                command
            }
            Self::Separate(folder) => Command::new(folder.join(server)),
        }
    }

    fn in_assets(folder: &Path) -> Result<Self, Error> {
        for program in Self::SERVERS {
            if !folder.join(program).is_file() {
                return Err(Error::Assets {
                    folder: folder.to_owned(),
                    program,
                });
            }
        }
        Ok(Self::Separate(folder.to_owned()))
    }
}

/// The control plane's servers: those of `KUBEBUILDER_ASSETS` where it is set, else the cached binary.
///
/// # Errors
/// What is missing, and where it was looked for.
pub fn control_plane_binaries() -> Result<ControlPlaneBinaries, Error> {
    if let Some(folder) = assets() {
        return ControlPlaneBinaries::in_assets(&folder);
    }
    go_part(&CONTROL_PLANE).map(ControlPlaneBinaries::Combined)
}

/// Path of `helm`, the rendering oracle.
///
/// # Errors
/// When it is not in the cache.
pub fn helm() -> Result<PathBuf, Error> {
    present(format!("helm {HELM_VERSION}"), Cache::open()?.helm())
}

/// Path of `kustomize`.
///
/// # Errors
/// When it is not in the cache.
pub fn kustomize() -> Result<PathBuf, Error> {
    go_part(&KUSTOMIZE)
}

/// Path of `fluxssa`, Flux's apply engine as a program.
///
/// # Errors
/// When it is not in the cache.
pub fn flux_ssa() -> Result<PathBuf, Error> {
    go_part(&FLUX_SSA)
}

/// Path of `gitea`, which has the folders it reads beside it.
///
/// # Errors
/// When it is not in the cache.
pub fn gitea_binary() -> Result<PathBuf, Error> {
    go_part(&GITEA)
}

/// Path of `vault`.
///
/// # Errors
/// When it is not in the cache.
pub fn vault_binary() -> Result<PathBuf, Error> {
    go_part(&VAULT)
}

/// Path of `kubectl`: that of `KUBEBUILDER_ASSETS` where it has one, else the cached one.
///
/// # Errors
/// When it is in neither.
pub fn kubectl() -> Result<PathBuf, Error> {
    if let Some(given) = assets()
        .map(|folder| folder.join("kubectl"))
        .filter(|path| path.is_file())
    {
        return Ok(given);
    }
    present(format!("kubectl {KUBECTL_VERSION}"), Cache::open()?.kubectl())
}

/// The folder with `initdb` and `postgres`: the newest below `/usr/lib/postgresql`, else that of `initdb` in `PATH`.
///
/// # Errors
/// [`Error::NoPostgres`] when the machine has no PostgreSQL server.
pub fn postgres_binaries() -> Result<PathBuf, Error> {
    let is_complete = |folder: &PathBuf| folder.join("initdb").is_file() && folder.join("postgres").is_file();
    let version = |folder: &Path| -> u32 {
        let name = folder
            .parent()
            .and_then(Path::file_name)
            .and_then(|name| name.to_str());
        name.and_then(|name| name.parse().ok()).unwrap_or_default()
    };
    let packaged = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("bin"))
        .filter(is_complete)
        .max_by_key(|folder| version(folder));
    let in_path = || {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).find(is_complete)
    };
    packaged.or_else(in_path).ok_or(Error::NoPostgres)
}

fn assets() -> Option<PathBuf> {
    std::env::var_os(ASSETS_VARIABLE)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}

fn go_part(part: &GoPart) -> Result<PathBuf, Error> {
    present(part.describe(), Cache::open()?.go_part(part))
}

fn present(what: String, path: PathBuf) -> Result<PathBuf, Error> {
    if path.is_file() {
        Ok(path)
    } else {
        Err(Error::Missing { what, path })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_part_names_the_command_that_brings_it() {
        let error = present("helm v4.3.1".to_owned(), PathBuf::from("/nowhere/helm")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "helm v4.3.1 is missing (/nowhere/helm): run `cargo xtask setup`"
        );
    }

    #[test]
    fn assets_must_be_complete() {
        let folder = tempfile::tempdir().unwrap();
        for program in ["etcd", "kube-apiserver"] {
            std::fs::write(folder.path().join(program), "").unwrap();
        }
        let error = ControlPlaneBinaries::in_assets(folder.path()).unwrap_err();
        assert!(
            error.to_string().contains("which has no kube-controller-manager"),
            "{error}"
        );
        std::fs::write(folder.path().join("kube-controller-manager"), "").unwrap();
        let binaries = ControlPlaneBinaries::in_assets(folder.path()).unwrap();
        assert_eq!(binaries.command("etcd").get_program(), folder.path().join("etcd"));
    }

    #[test]
    fn a_combined_binary_takes_the_server_as_its_first_argument() {
        let command = ControlPlaneBinaries::Combined(PathBuf::from("/c/controlplane")).command("etcd");
        assert_eq!(command.get_program(), "/c/controlplane");
        assert_eq!(command.get_args().collect::<Vec<_>>(), ["etcd"]);
    }
}
