//! The whole harness over the charts of the repository, with the real Helm.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clap::Parser as _;

use super::*;

#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    arguments: Arguments,
}

/// The engine as the other tests have it. `cargo test --workspace` builds it; a run of this package's tests alone may
/// not, or may leave an older one.
fn engine() -> PathBuf {
    let repository = Repository::find().unwrap();
    let program = target_directory().unwrap().join("debug/evenkeel");
    let written = |file: &Path| {
        file.metadata()
            .and_then(|data| data.modified())
            .unwrap_or(SystemTime::UNIX_EPOCH)
    };
    let newest = repository
        .files()
        .unwrap()
        .iter()
        .filter(|file| {
            file.starts_with("crates") && file.extension().is_some_and(|extension| extension == "rs")
        })
        .filter(|file| !file.components().any(|part| part.as_os_str() == "tests"))
        .map(|file| written(&repository.root().join(file)))
        .max()
        .unwrap();
    if written(&program) < newest {
        let mut command = cargo(&repository);
        command.args(["build", "--package", "evenkeel-cli"]);
        run_quietly("building evenkeel", &mut command).unwrap();
    }
    program
}

fn compared(directory: &str, more: &[&str]) -> Report {
    let work = tempfile::tempdir().unwrap();
    let directory = Repository::find().unwrap().root().join(directory);
    let line = [
        "charts",
        directory.to_str().unwrap(),
        "--work",
        work.path().to_str().unwrap(),
    ];
    let line = Line::try_parse_from(line.iter().chain(more)).unwrap();
    compare(&line.arguments, &engine()).unwrap()
}

#[test]
fn the_charts_of_the_repository_render_as_with_helm() {
    for directory in ["crates/chart/tests/data/cases", "examples"] {
        let report = compared(directory, &["--values-sets", "1"]);
        report.print(40, 0.0);
        assert_eq!(report.count(Class::Different), 0, "{directory}");
        assert!(report.count(Class::Equal) > 0, "{directory}");
    }
}

#[test]
fn a_filter_that_matches_nothing_is_a_fault() {
    let directory = Repository::find().unwrap().root().join("crates/chart/tests/data");
    let line = ["charts", directory.to_str().unwrap(), "--chart", "no such chart"];
    let arguments = Line::try_parse_from(line).unwrap().arguments;
    let error = compare(&arguments, Path::new("/nowhere"))
        .err()
        .unwrap()
        .to_string();
    assert!(error.starts_with("no chart below "), "{error}");
}
