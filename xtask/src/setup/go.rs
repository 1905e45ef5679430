//! Parts built once from Go modules.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use evenkeel_realparts::Cache;
use evenkeel_realparts::go_part::{GoPart, Package};

use super::install;
use crate::process::{output, run_quietly};

/// The Go release that the parts ask for.
const GO_VERSION: (u32, u32) = (1, 26);

/// Builds a part unless it is in the cache.
pub(super) fn prepare(cache: &Cache, part: &GoPart) -> Result<()> {
    let name = part.describe();
    install(cache, &name, &cache.go_part(part), |folder| {
        build(cache, part, folder)
    })
    .with_context(|| format!("{name} could not be built"))
}

fn build(cache: &Cache, part: &GoPart, folder: &Path) -> Result<()> {
    check_go()?;
    println!(
        "  building {} from Go modules;\n  once, {}",
        part.describe(),
        part.cost
    );
    // Built from a copy: `-mod=mod` may write to go.mod.
    let sources = folder.join("sources");
    std::fs::create_dir(&sources)?;
    for (name, text) in part.sources {
        std::fs::write(sources.join(name), text)?;
    }
    // Kept when the build fails, so that the next one goes on where it stopped.
    let build_cache = cache.build().join("gocache");
    let go = || {
        let mut command = Command::new("go");
        command.current_dir(&sources).env("GOCACHE", &build_cache);
        command.envs(part.environment.iter().copied());
        command
    };
    let mut command = go();
    command.arg("build").args(part.build_arguments());
    command.arg("-o").arg(folder.join(part.name));
    command.arg(part.package.as_ref().map_or(".", |package| package.path));
    run_quietly(&format!("building {}", part.title), &mut command)?;
    if let Some(package) = &part.package {
        let module = module_folder(&mut go(), package)?;
        for name in package.folders {
            let (from, to) = (module.join(name), folder.join(name));
            copy(&from, &to)
                .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
        }
    }
    // Gigabytes that nothing needs again.
    std::fs::remove_dir_all(&build_cache)
        .with_context(|| format!("cannot remove {}", build_cache.display()))?;
    std::fs::remove_dir_all(&sources)?;
    Ok(())
}

/// Where the module of a package lies in Go's cache.
fn module_folder(go: &mut Command, package: &Package) -> Result<PathBuf> {
    let folder = output(go.args(["list", "-mod=mod", "-m", "-f", "{{.Dir}}", package.module]))?;
    Ok(PathBuf::from(folder.trim_end()))
}

/// Copies a folder. Go's cache is read-only; the copy is not, so that it can be removed.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
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

    #[test]
    fn a_folder_is_copied_whole() {
        let folder = tempfile::tempdir().unwrap();
        let from = folder.path().join("from");
        std::fs::create_dir_all(from.join("a/b")).unwrap();
        std::fs::write(from.join("a/b/c"), "deep").unwrap();
        std::fs::write(from.join("d"), "flat").unwrap();
        let to = folder.path().join("to");
        copy(&from, &to).unwrap();
        assert_eq!(std::fs::read_to_string(to.join("a/b/c")).unwrap(), "deep");
        assert_eq!(std::fs::read_to_string(to.join("d")).unwrap(), "flat");
    }
}
