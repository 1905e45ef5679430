//! `cargo xtask fuzz`: runs the fuzz targets of `fuzz/`, one after the other.
//!
//! What libFuzzer finds out stays in `fuzz/corpus`, which is not committed: the next run goes on from there. What
//! comes with the repository are `fuzz/seeds` and `fuzz/dictionaries`.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};

use crate::process::{describe, run as run_visibly};
use crate::repository::Repository;

/// Seconds for one input, beyond which it is a finding.
const TIMEOUT: u32 = 10;

/// Megabytes of memory, beyond which an input is a finding.
const MEMORY: u32 = 2048;

/// Bytes of the largest input.
const LARGEST: u32 = 16_384;

/// The folder of the targets.
const TARGETS: &str = "targets";

/// Arguments of the command.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The target, by the name of its file in fuzz/targets; all of them where none is named.
    target: Option<String>,

    /// Seconds for each target.
    #[arg(long, default_value_t = 600)]
    seconds: u64,
}

/// Runs the command.
pub(crate) fn run(repository: &Repository, arguments: &Arguments) -> Result<()> {
    let root = repository.root().join("fuzz");
    let all = targets(&root)?;
    let chosen: Vec<&String> = match &arguments.target {
        None => all.iter().collect(),
        Some(name) => {
            let found = all.iter().find(|target| *target == name);
            vec![found.with_context(|| format!("there is no target {name}; there are: {}", all.join(", ")))?]
        }
    };
    need_tools()?;
    let mut failed = Vec::new();
    for target in chosen {
        let started = Instant::now();
        println!("{target}, for {} s", arguments.seconds);
        if let Err(error) = run_target(&root, target, arguments.seconds) {
            println!("{error:#}");
            failed.push(target.as_str());
        }
        println!("{target}: {} s\n", started.elapsed().as_secs());
    }
    if !failed.is_empty() {
        bail!(
            "a fault was found by: {}; the input lies in fuzz/artifacts",
            failed.join(", ")
        );
    }
    Ok(())
}

/// The names of all targets, sorted.
fn targets(root: &Path) -> Result<Vec<String>> {
    let folder = root.join(TARGETS);
    let mut names = Vec::new();
    let entries = std::fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "rs")
            && let Some(name) = path.file_stem().and_then(|name| name.to_str())
        {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// A command of the nightly toolchain. The toolchain that runs this program must not be handed down.
fn nightly(root: &Path) -> Command {
    let mut command = Command::new("rustup");
    command
        .current_dir(root)
        .args(["run", "nightly", "cargo", "fuzz"]);
    for name in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"] {
        command.env_remove(name);
    }
    command
}

fn need_tools() -> Result<()> {
    for (what, arguments, remedy) in [
        (
            "rustup",
            ["--version"].as_slice(),
            "install it from https://rustup.rs",
        ),
        (
            "a nightly compiler",
            &["run", "nightly", "rustc", "--version"],
            "install it with `rustup toolchain install nightly --profile minimal`",
        ),
        (
            "cargo-fuzz",
            &["run", "nightly", "cargo", "fuzz", "--version"],
            "install it with `cargo install cargo-fuzz --locked`; it also needs a C++ compiler",
        ),
    ] {
        let mut command = Command::new("rustup");
        command
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if !command.status().is_ok_and(|status| status.success()) {
            bail!("{what} is missing (`{}` failed): {remedy}", describe(&command));
        }
    }
    Ok(())
}

fn run_target(root: &Path, target: &str, seconds: u64) -> Result<()> {
    let corpus = root.join("corpus").join(target);
    std::fs::create_dir_all(&corpus).with_context(|| format!("cannot create {}", corpus.display()))?;
    run_visibly(nightly(root).args(arguments_of(root, target, seconds)))
}

/// Arguments for `cargo fuzz`. The address sanitizer has nothing to find in code without `unsafe`, and halves the
/// speed.
fn arguments_of(root: &Path, target: &str, seconds: u64) -> Vec<String> {
    let mut arguments: Vec<String> = ["run", "--sanitizer", "none", target].map(str::to_owned).into();
    arguments.push(format!("corpus/{target}"));
    arguments.push(format!("seeds/{target}"));
    arguments.push("--".to_owned());
    arguments.push(format!("-max_total_time={seconds}"));
    arguments.push(format!("-timeout={TIMEOUT}"));
    arguments.push(format!("-rss_limit_mb={MEMORY}"));
    arguments.push(format!("-max_len={LARGEST}"));
    arguments.push("-print_final_stats=1".to_owned());
    let dictionary = format!("dictionaries/{target}.dict");
    if root.join(&dictionary).is_file() {
        arguments.push(format!("-dict={dictionary}"));
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_has_its_seeds_and_its_place_in_the_manifest() {
        let repository = Repository::find().unwrap();
        let root = repository.root().join("fuzz");
        let all = targets(&root).unwrap();
        assert!(all.len() >= 5, "{all:?}");
        let manifest: toml::Table =
            toml::from_str(&std::fs::read_to_string(root.join("Cargo.toml")).unwrap()).unwrap();
        let named: Vec<&str> = manifest["bin"]
            .as_array()
            .unwrap()
            .iter()
            .map(|bin| bin["name"].as_str().unwrap())
            .collect();
        for target in &all {
            assert!(
                named.contains(&target.as_str()),
                "{target} is not in the manifest"
            );
            let seeds = std::fs::read_dir(root.join("seeds").join(target))
                .unwrap()
                .count();
            assert!((20..100).contains(&seeds), "{target} has {seeds} seeds");
        }
        assert_eq!(named.len(), all.len());
    }

    #[test]
    fn bounds_and_dictionaries_are_handed_on() {
        let repository = Repository::find().unwrap();
        let arguments = arguments_of(&repository.root().join("fuzz"), "yaml_reader", 5);
        for wanted in [
            "-max_total_time=5",
            "-timeout=10",
            "-rss_limit_mb=2048",
            "-dict=dictionaries/yaml_reader.dict",
        ] {
            assert!(
                arguments.iter().any(|argument| argument == wanted),
                "{arguments:?}"
            );
        }
    }
}
