//! The control plane, built once from Go modules.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use evenkeel_realparts::cache::{
    CONTROL_PLANE_BUILD_ENV, CONTROL_PLANE_BUILD_FLAGS, CONTROL_PLANE_LDFLAGS, CONTROL_PLANE_SOURCES,
    KUBERNETES_VERSION,
};
use evenkeel_realparts::{Cache, ControlPlaneBinaries, control_plane_binaries};

use super::{install, report};
use crate::process::{output, run_quietly};

/// The Go release that this Kubernetes asks for.
const GO_VERSION: (u32, u32) = (1, 26);

/// Builds the control plane unless it is in the cache, or `KUBEBUILDER_ASSETS` names one.
pub(super) fn prepare(cache: &Cache) -> Result<()> {
    let part = format!("control plane {KUBERNETES_VERSION}");
    match control_plane_binaries() {
        Ok(ControlPlaneBinaries::Separate(folder)) => {
            report(
                "control plane",
                &format!("that of KUBEBUILDER_ASSETS, {}", folder.display()),
            );
            return Ok(());
        }
        Err(error @ evenkeel_realparts::Error::Assets { .. }) => return Err(error.into()),
        Ok(ControlPlaneBinaries::Combined(_)) | Err(_) => {}
    }
    install(cache, &part, &cache.control_plane(), |folder| {
        build(cache, folder)
    })
    .with_context(|| {
        format!("{part} could not be built (or set KUBEBUILDER_ASSETS to a folder with its binaries)")
    })
}

fn build(cache: &Cache, folder: &Path) -> Result<()> {
    check_go()?;
    println!(
        "  building etcd, kube-apiserver and kube-controller-manager {KUBERNETES_VERSION} from Go modules;"
    );
    println!("  once, about 6 minutes on two cores, 3.2 GB of memory and 5 GB of disk meanwhile");
    // Built from a copy: `-mod=mod` may write to go.mod.
    let sources = folder.join("sources");
    std::fs::create_dir(&sources)?;
    for (name, text) in CONTROL_PLANE_SOURCES {
        std::fs::write(sources.join(name), text)?;
    }
    // Kept when the build fails, so that the next one goes on where it stopped.
    let build_cache = cache.build().join("gocache");
    let mut command = Command::new("go");
    command
        .current_dir(&sources)
        .arg("build")
        .args(CONTROL_PLANE_BUILD_FLAGS);
    command
        .args(["-ldflags", CONTROL_PLANE_LDFLAGS, "-o"])
        .arg(folder.join("controlplane"))
        .arg(".");
    command.env("GOCACHE", &build_cache).envs(CONTROL_PLANE_BUILD_ENV);
    run_quietly("building the control plane", &mut command)?;
    // 3.6 GB that nothing needs again.
    std::fs::remove_dir_all(&build_cache)
        .with_context(|| format!("cannot remove {}", build_cache.display()))?;
    std::fs::remove_dir_all(&sources)?;
    Ok(())
}

fn check_go() -> Result<()> {
    let (major, minor) = GO_VERSION;
    let wanted =
        format!("Go {major}.{minor} or newer is needed: install it (https://go.dev/dl) and put it in PATH");
    let version = output(Command::new("go").arg("version")).with_context(|| wanted.clone())?;
    match parse_go_version(&version) {
        Some(found) if found >= GO_VERSION => Ok(()),
        _ => bail!("{wanted}; found: {}", version.trim()),
    }
}

/// Major and minor number of `go version go1.26.8 linux/amd64`.
fn parse_go_version(text: &str) -> Option<(u32, u32)> {
    let version = text.split_whitespace().nth(2)?.strip_prefix("go")?;
    let mut numbers = version.split('.');
    let major = numbers.next()?.parse().ok()?;
    // A release candidate has its number right after: 1.27rc1.
    let minor: String = numbers.next()?.chars().take_while(char::is_ascii_digit).collect();
    Some((major, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_versions_are_compared_as_numbers() {
        assert_eq!(
            parse_go_version("go version go1.26.8 linux/amd64\n"),
            Some((1, 26))
        );
        assert_eq!(
            parse_go_version("go version go1.27rc1 linux/arm64"),
            Some((1, 27))
        );
        assert!(parse_go_version("go version go1.9 linux/amd64").unwrap() < GO_VERSION);
        assert_eq!(parse_go_version("gccgo"), None);
    }
}
