//! `cargo xtask setup`: brings every real part that tests need into the cache.
//!
//! What is there already costs nothing but a look. What is not is made aside and renamed into place, under a lock, so
//! that runs side by side neither disturb each other nor see half a part.

pub(crate) mod cargo_deny;
mod control_plane;
mod go;
mod helm;
mod postgres;

use std::fs::File;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use evenkeel_realparts::Cache;
use evenkeel_realparts::go_part::{FLUX_SSA, GITEA, KUSTOMIZE, VAULT};

/// Start of the names of folders in which parts are made.
const ASIDE: &str = "part-";

/// Runs the command: all parts are tried, and what could not be prepared is told at the end. Gives back where they
/// are.
pub(crate) fn run() -> Result<Cache> {
    let cache = Cache::open()?;
    println!("real parts, in {}:", cache.root().display());
    let results = [
        control_plane::prepare(&cache),
        go::prepare(&cache, &GITEA),
        go::prepare(&cache, &KUSTOMIZE),
        go::prepare(&cache, &FLUX_SSA),
        go::prepare(&cache, &VAULT),
        helm::prepare(&cache),
        postgres::prepare(),
    ];
    let failures: Vec<String> = results
        .into_iter()
        .filter_map(Result::err)
        .map(|error| format!("{error:#}"))
        .collect();
    if !failures.is_empty() {
        bail!(
            "not everything that tests need could be prepared:\n\n{}",
            failures.join("\n\n")
        );
    }
    Ok(cache)
}

/// Says how a part is. The name is padded so that the rest lines up.
fn report(part: &str, state: &str) {
    println!("  {part:<24} {state}");
}

/// Holds the cache's lock, and waits for it if another run has it.
fn lock(cache: &Cache) -> Result<File> {
    let path = cache.lock();
    std::fs::create_dir_all(cache.root())
        .with_context(|| format!("cannot create {}", cache.root().display()))?;
    let file = File::options().create(true).append(true).open(&path);
    let file = file.with_context(|| format!("cannot open {}", path.display()))?;
    if file.try_lock().is_err() {
        println!("  another run prepares something: waiting for it");
        file.lock()
            .with_context(|| format!("cannot lock {}", path.display()))?;
    }
    Ok(file)
}

/// Makes the folder around `file`, unless `file` is there: `make` fills a new folder, which is then renamed. Says how
/// long it took.
fn install(cache: &Cache, part: &str, file: &Path, make: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    if file.is_file() {
        report(part, "present");
        return Ok(());
    }
    let _lock = lock(cache)?;
    if file.is_file() {
        report(part, "present: another run has just made it");
        return Ok(());
    }
    let started = Instant::now();
    let build = cache.build();
    std::fs::create_dir_all(&build).with_context(|| format!("cannot create {}", build.display()))?;
    remove_leftovers(&build).with_context(|| format!("cannot clean {}", build.display()))?;
    let aside = tempfile::Builder::new()
        .prefix("part-")
        .tempdir_in(&build)
        .context("cannot create a folder")?;
    make(aside.path())?;
    let folder = file.parent().context("a part lies in a folder of its own")?;
    place(aside.path(), folder).with_context(|| format!("cannot put {part} into {}", folder.display()))?;
    if !file.is_file() {
        bail!("{part} was prepared, but there is no {}", file.display());
    }
    report(part, &format!("prepared in {} s", started.elapsed().as_secs()));
    Ok(())
}

/// What an interrupted run left. The lock is held, so no other run is at work.
fn remove_leftovers(build: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(build)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(ASIDE) {
            std::fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

/// Renames `aside` to `folder`. Whatever lies there is incomplete, or `install` had not been called.
fn place(aside: &Path, folder: &Path) -> std::io::Result<()> {
    if let Some(parent) = folder.parent() {
        std::fs::create_dir_all(parent)?;
    }
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    std::fs::rename(aside, folder)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// Installs a part called `sample` below a temporary folder.
    fn install_sample(root: &Path, make: impl FnOnce(&Path) -> Result<()>) -> (Result<()>, PathBuf) {
        let file = root.join("sample/v1/sample");
        let cache = Cache::at(root);
        (install(&cache, "sample", &file, make), file)
    }

    #[test]
    fn a_part_is_made_once() {
        let root = tempfile::tempdir().unwrap();
        let make = |folder: &Path| Ok(std::fs::write(folder.join("sample"), "one")?);
        let (result, file) = install_sample(root.path(), make);
        result.unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "one");
        install_sample(root.path(), |_| panic!("it is there")).0.unwrap();
    }

    #[test]
    fn a_failure_leaves_nothing_and_half_a_part_is_replaced() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("build/part-interrupted")).unwrap();
        let (result, file) = install_sample(root.path(), |folder| {
            std::fs::write(folder.join("sample"), "half")?;
            bail!("no network")
        });
        assert_eq!(result.unwrap_err().to_string(), "no network");
        assert!(!file.exists());
        assert_eq!(std::fs::read_dir(root.path().join("build")).unwrap().count(), 0);

        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file.with_file_name("rest"), "of an older layout").unwrap();
        let make = |folder: &Path| Ok(std::fs::write(folder.join("sample"), "whole")?);
        install_sample(root.path(), make).0.unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "whole");
        assert!(!file.with_file_name("rest").exists());
    }

    #[test]
    fn runs_side_by_side_make_a_part_once() {
        let root = tempfile::tempdir().unwrap();
        let made = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let make = |folder: &Path| {
                        made.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        Ok(std::fs::write(folder.join("sample"), "one")?)
                    };
                    install_sample(root.path(), make).0.unwrap();
                });
            }
        });
        assert_eq!(made.into_inner(), 1);
    }
}
