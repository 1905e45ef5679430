//! Where files lie and how they are called.

use std::path::Path;

use super::source::{SourceFile, Sources, Strings};
use super::{Finding, Report};

/// Lines after which a file is worth a look: is it still one subject?
const LONG: usize = 600;

/// Lines that no file of ours needs.
const TOO_LONG: usize = 1000;

/// Names that say nothing about what is inside.
const EMPTY_NAMES: [&str; 7] = ["util", "utils", "helper", "helpers", "manager", "common", "misc"];

/// Checks names, places and lengths.
pub(super) fn check(sources: &Sources) -> Report {
    let mut report = Report::default();
    for file in sources.rust() {
        names(file, &mut report);
        lengths(file, &mut report);
        contents(file, &mut report);
    }
    for file in &sources.files {
        if is_member_manifest(&file.path) && !inherits_lints(&file.text) {
            report.findings.push(Finding::new(
                file.path.display().to_string(),
                "the workspace's lints do not hold here",
                "add `[lints]` with `workspace = true`",
            ));
        }
    }
    report
}

fn names(file: &SourceFile, report: &mut Report) {
    let place = file.path.display().to_string();
    let stem = file
        .path
        .file_stem()
        .and_then(|stem| stem.to_str())
        .unwrap_or_default();
    if stem == "mod" {
        report.findings.push(Finding::new(
            &place,
            "is a mod.rs",
            "call it like its folder, beside that folder",
        ));
    }
    if EMPTY_NAMES.contains(&stem) {
        report.findings.push(Finding::new(
            &place,
            "its name says nothing",
            "call it for what is in it",
        ));
    }
    let parts: Vec<&str> = file.path.iter().filter_map(|part| part.to_str()).collect();
    if matches!(parts.as_slice(), ["crates", _, "tests", _]) {
        report.findings.push(Finding::new(
            &place,
            "is an integration test binary of its own",
            "make it a module of tests/it/main.rs: each binary is linked anew",
        ));
    }
}

fn lengths(file: &SourceFile, report: &mut Report) {
    let lines = file.text.lines().count();
    let place = file.path.display().to_string();
    if lines > TOO_LONG {
        report.findings.push(Finding::new(
            place,
            format!("has {lines} lines, more than {TOO_LONG}"),
            "split it by subject",
        ));
    } else if lines > LONG {
        report
            .notes
            .push(format!("{place} has {lines} lines: is it one subject?"));
    }
}

fn contents(file: &SourceFile, report: &mut Report) {
    let place = file.path.display().to_string();
    let is_crate_root = file.path.ends_with("src/lib.rs") || file.path.ends_with("src/main.rs");
    if is_crate_root && !file.text.starts_with("//!") {
        report.findings.push(Finding::new(
            &place,
            "has no crate documentation",
            "start it with `//!` and why it exists",
        ));
    }
    for (index, line) in file.code(Strings::Blank).lines().enumerate() {
        let line = line.trim_start();
        if line.starts_with("#[ignore") {
            report.findings.push(Finding::new(
                format!("{place}:{}", index + 1),
                "an ignored test proves nothing",
                "make it run, or remove it",
            ));
        }
    }
    for (index, line) in file.text.lines().enumerate() {
        let line = line.trim_start();
        if line.starts_with("/// ```ignore") || line.starts_with("//! ```ignore") {
            report.findings.push(Finding::new(
                format!("{place}:{}", index + 1),
                "an example that is not compiled",
                "make it compile (`no_run` if it must not run), or mark it as `text`",
            ));
        }
    }
}

fn is_member_manifest(path: &Path) -> bool {
    let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
    matches!(
        parts.as_slice(),
        ["crates", _, "Cargo.toml"] | ["xtask", "Cargo.toml"]
    )
}

fn inherits_lints(manifest: &str) -> bool {
    let Ok(manifest) = toml::from_str::<toml::Table>(manifest) else {
        return false;
    };
    manifest
        .get("lints")
        .and_then(|lints| lints.get("workspace"))
        .and_then(toml::Value::as_bool)
        == Some(true)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn report(path: &str, text: &str) -> Report {
        check(&Sources {
            files: vec![SourceFile {
                path: PathBuf::from(path),
                text: text.to_owned(),
            }],
        })
    }

    #[test]
    fn good_files_pass() {
        for (path, text) in [
            ("crates/a/src/lib.rs", "//! Why.\n"),
            ("crates/a/src/plan.rs", "/// ```no_run\n/// ```\nfn f() {}\n"),
            ("crates/a/tests/it/main.rs", "//! Tests.\n"),
            ("crates/a/Cargo.toml", "[lints]\nworkspace = true\n"),
        ] {
            let report = report(path, text);
            assert!(
                report.findings.is_empty() && report.notes.is_empty(),
                "{report:?}"
            );
        }
    }

    #[test]
    fn bad_ones_are_told() {
        for (path, text) in [
            ("crates/a/src/plan/mod.rs", ""),
            ("crates/a/src/utils.rs", ""),
            ("crates/a/tests/apply.rs", ""),
            ("crates/a/src/lib.rs", "mod plan;\n"),
            (
                "crates/a/src/plan.rs",
                "#[test]\n#[ignore = \"slow\"]\nfn f() {}\n",
            ),
            ("crates/a/src/plan.rs", "/// ```ignore\n/// ```\nfn f() {}\n"),
            ("crates/a/Cargo.toml", "[package]\nname = \"a\"\n"),
            ("crates/a/src/plan.rs", &"\n".repeat(1001)),
        ] {
            assert_eq!(report(path, text).findings.len(), 1, "{path} {text:.20}");
        }
    }

    #[test]
    fn a_long_file_is_worth_a_note() {
        let report = report("crates/a/src/plan.rs", &"\n".repeat(601));
        assert!(report.findings.is_empty());
        assert_eq!(
            report.notes,
            ["crates/a/src/plan.rs has 601 lines: is it one subject?"]
        );
    }
}
