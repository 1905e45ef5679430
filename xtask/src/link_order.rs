//! `cargo xtask link-order`: has the functions that a render runs lie side by side in the binary.
//!
//! ```text
//! release build with symbols, and the linker's map ─▶ sections (map)
//! renders under valgrind                           ─▶ functions that ran (trace)
//!                                                      both ─▶ crates/cli/link-order.ld (script)
//! ```
//!
//! `evenkeel template` runs a thousandth of a second or two, and runs about one in fifty of the functions of a program of
//! many megabytes. Where those lie spread over all of it, nearly each costs a page fault, and the kernel maps 64 KB
//! around each. The script that this command writes is handed to the linker by the build script of `crates/cli`. It names
//! functions without what a compiler or a version adds to their names, so it stays good for long; what it does not name
//! any more is only slower. `--check` tells how much of it still holds.

mod map;
pub(crate) mod name;
mod script;
mod trace;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::link_order::map::Map;
use crate::link_order::script::Script;
pub(crate) use crate::link_order::script::patterns;
use crate::process::{cargo, run_quietly};
use crate::repository::Repository;

/// The script, from the root of the repository.
pub(crate) const SCRIPT: &str = "crates/cli/link-order.ld";

/// The share of the script's patterns, in percent, that a release build must have a function for.
const FRESH: usize = 80;

/// Charts of the repository, and arguments behind them: what is common to the renders of most charts.
const RENDERS: [(&str, &[&str]); 6] = [
    ("examples/web", &[]),
    (
        "examples/web",
        &["--set", "replicaCount=2", "--namespace", "shop"],
    ),
    ("examples/shop", &[]),
    ("examples/operator", &["--include-crds"]),
    ("examples/database", &["--set", "auth.password=given"]),
    ("crates/cli/src/commands/bench/render/platform", &[]),
];

/// Arguments of the command.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Change nothing; fail when the script fits the release build no more
    #[arg(long)]
    check: bool,
}

/// Runs the command.
pub(crate) fn run(repository: &Repository, arguments: &Arguments) -> Result<()> {
    let file = repository.root().join(SCRIPT);
    let folder = tempfile::tempdir().context("cannot create a folder")?;
    let map_file = folder.path().join("map");
    let binary = build(repository, &map_file)?;
    let text =
        std::fs::read_to_string(&map_file).with_context(|| format!("cannot read {}", map_file.display()))?;
    let map = Map::parse(&text)?;
    if arguments.check {
        return check(&file, &map);
    }
    let traces = traces(repository, &binary, folder.path())?;
    let script = Script::choose(&map, &traces);
    println!("{}", script.summary(&map));
    std::fs::write(&file, script.to_string()).with_context(|| format!("cannot write {}", file.display()))?;
    println!("wrote {SCRIPT}; `cargo build --release` links by it");
    Ok(())
}

/// Builds the binary with its symbols, and has the linker tell where it put what.
fn build(repository: &Repository, map: &Path) -> Result<PathBuf> {
    let mut command = cargo(repository);
    command.args([
        "rustc",
        "--release",
        "--package",
        "evenkeel-cli",
        "--bin",
        "evenkeel",
        "--",
    ]);
    command.args(["-C", "strip=none", "-C", "link-arg=-Wl,--no-demangle", "-C"]);
    command.arg(format!("link-arg=-Wl,-Map={}", map.display()));
    run_quietly("building evenkeel", &mut command)?;
    let binary = crate::process::target_directory()?.join("release/evenkeel");
    // As valgrind calls it.
    std::fs::canonicalize(&binary).with_context(|| format!("cannot find {}", binary.display()))
}

/// In how many of the renders each function ran.
fn traces(repository: &Repository, binary: &Path, folder: &Path) -> Result<BTreeMap<String, usize>> {
    let mut runs: BTreeMap<String, usize> = BTreeMap::new();
    for (number, (chart, arguments)) in RENDERS.into_iter().enumerate() {
        let file = folder.join(format!("trace-{number}"));
        let mut command = Command::new("valgrind");
        command
            .args(["--tool=callgrind", "--demangle=no"])
            .arg(format!("--callgrind-out-file={}", file.display()))
            .arg(binary)
            .args(["template", "demo"])
            .arg(repository.root().join(chart))
            .args(arguments)
            .stdin(Stdio::null());
        run_quietly("tracing a render", &mut command)
            .context("valgrind is needed (Debian: valgrind), and the charts of the repository must render")?;
        let text = std::fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        for function in trace::functions(&String::from_utf8_lossy(&text), binary) {
            *runs.entry(function).or_default() += 1;
        }
    }
    if runs.is_empty() {
        bail!("valgrind saw no function of {}", binary.display());
    }
    Ok(runs)
}

/// Fails when too few patterns of the script name a function.
fn check(file: &Path, map: &Map) -> Result<()> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let patterns = script::patterns(&text);
    let found = patterns
        .iter()
        .filter(|pattern| {
            map.sections()
                .iter()
                .any(|section| script::matches(pattern, &section.name))
        })
        .count();
    println!(
        "{found} of {} patterns of {SCRIPT} name a function",
        patterns.len()
    );
    if found * 100 < patterns.len() * FRESH {
        bail!("{SCRIPT} is stale: make it anew with `cargo xtask link-order`");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_rendered_and_the_script_are_there() {
        let repository = Repository::find().unwrap();
        for (chart, _) in RENDERS {
            assert!(
                repository.root().join(chart).join("Chart.yaml").is_file(),
                "{chart}"
            );
        }
        let text = std::fs::read_to_string(repository.root().join(SCRIPT)).unwrap();
        let patterns = script::patterns(&text);
        assert!(patterns.len() > 500, "{}", patterns.len());
        for part in ["evenkeel_gotemplate", "evenkeel_goyaml", "evenkeel_chart"] {
            assert!(patterns.iter().any(|pattern| pattern.contains(part)), "{part}");
        }
    }
}
