//! Which `kustomize` builds kustomizations.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Args;
use evenkeel_component::{KUSTOMIZE_TIMEOUT, KustomizeOptions, RemoteBases};

use crate::process::Usage;

/// The program's name, where `PATH` is searched.
const PROGRAM: &str = "kustomize";

/// Arguments of the commands that build kustomizations.
// Without a group: it would have the name of that of the command, whose arguments are called so too.
#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct Arguments {
    /// The kustomize program that builds kustomizations
    #[arg(long, value_name = "FILE", env = "EVENKEEL_KUSTOMIZE")]
    kustomize: Option<PathBuf>,
    /// Let kustomizations load bases and files from the network; what they give then depends on when they are built
    #[arg(long, env = "EVENKEEL_KUSTOMIZE_REMOTE")]
    kustomize_remote: bool,
}

impl Arguments {
    /// The program that was named, if one was.
    pub(crate) fn named(&self) -> anyhow::Result<Option<KustomizeOptions>> {
        let Some(given) = &self.kustomize else {
            return Ok(None);
        };
        let wrong = |problem: &str| Usage(anyhow!("--kustomize {} {problem}", given.display()));
        // Builds run in folders of their own, where a relative path would name something else.
        let program = std::path::absolute(given).map_err(|error| wrong(&error.to_string()))?;
        if !program.is_file() {
            return Err(wrong("is not a file").into());
        }
        if !is_executable(&program) {
            return Err(wrong("is not executable").into());
        }
        Ok(Some(self.with(program)))
    }

    /// The program that was named, else the first one in `PATH`.
    pub(crate) fn named_or_found(&self) -> anyhow::Result<Option<KustomizeOptions>> {
        if let Some(named) = self.named()? {
            return Ok(Some(named));
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let found = std::env::split_paths(&path)
            .map(|folder| folder.join(PROGRAM))
            .filter_map(|program| std::path::absolute(program).ok())
            .find(|program| is_executable(program));
        Ok(found.map(|program| self.with(program)))
    }

    fn with(&self, program: PathBuf) -> KustomizeOptions {
        KustomizeOptions {
            program,
            remote: if self.kustomize_remote {
                RemoteBases::Allowed
            } else {
                RemoteBases::Refused
            },
            timeout: KUSTOMIZE_TIMEOUT,
        }
    }
}

fn is_executable(program: &Path) -> bool {
    program
        .metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(program: &Path) -> Result<Option<KustomizeOptions>, String> {
        let arguments = Arguments {
            kustomize: Some(program.to_owned()),
            kustomize_remote: false,
        };
        arguments.named().map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn a_program_is_looked_at_before_it_is_needed() {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("kustomize");
        let missing = named(&program).expect_err("it is missing");
        assert!(missing.ends_with("is not a file"), "{missing}");
        std::fs::write(&program, "").expect("a file");
        let plain = named(&program).expect_err("it is not executable");
        assert!(plain.ends_with("is not executable"), "{plain}");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("permissions");
        let options = named(&program).expect("it is right").expect("it was named");
        assert_eq!((options.program, options.remote), (program, RemoteBases::Refused));
    }
}
