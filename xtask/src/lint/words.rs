//! What must not stand in a file: paths of one machine, hosts of package indexes, tools by their bare name.

use super::Finding;
use super::source::{SourceFile, Sources, Strings};

/// Texts that belong to one machine, or bind the project to one mirror.
const MACHINE_WORDS: [&str; 7] = [
    "/work/",
    "/root/",
    "/var/tmp/",
    "pypi.org",
    "index.crates.io",
    "proxy.golang.org",
    "registry.npmjs.org",
];

/// Files that tools write: they name where each package came from.
const WRITTEN_BY_TOOLS: [&str; 3] = ["Cargo.lock", "package-lock.json", "go.sum"];

/// This file names what it looks for.
const ITSELF: &str = "xtask/src/lint/words.rs";

/// Tools that must come from the cache, in the version that is pinned: what is in PATH is another on each machine.
const PINNED_TOOLS: [&str; 5] = ["kubectl", "helm", "etcd", "kube-apiserver", "istioctl"];

/// Checks all text files.
pub(super) fn check(sources: &Sources) -> Vec<Finding> {
    sources.files.iter().flat_map(check_file).collect()
}

fn check_file(file: &SourceFile) -> Vec<Finding> {
    let name = file
        .path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    if WRITTEN_BY_TOOLS.contains(&name) || file.path.ends_with(ITSELF) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let place = |index: usize| format!("{}:{}", file.path.display(), index + 1);
    for (index, line) in file.text.lines().enumerate() {
        for word in MACHINE_WORDS.iter().filter(|word| line.contains(**word)) {
            findings.push(Finding::new(
                place(index),
                format!("{word} belongs to one machine or mirror"),
                "say it without, or make it a setting",
            ));
        }
        if line.starts_with("<<<<<<< ") || line.starts_with(">>>>>>> ") {
            findings.push(Finding::new(
                place(index),
                "is left of a merge",
                "finish the merge",
            ));
        }
    }
    let is_rust = file.path.extension().is_some_and(|extension| extension == "rs");
    if is_rust && !file.path.starts_with("crates/realparts") {
        for (index, line) in file.code(Strings::Keep).lines().enumerate() {
            for tool in PINNED_TOOLS
                .iter()
                .filter(|tool| line.contains(&format!("Command::new(\"{tool}\")")))
            {
                findings.push(Finding::new(
                    place(index),
                    format!("runs whatever {tool} is in PATH"),
                    format!(
                        "ask evenkeel_realparts::{} for the pinned one",
                        tool.replace('-', "_")
                    ),
                ));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn places(path: &str, text: &str) -> Vec<String> {
        let file = SourceFile {
            path: PathBuf::from(path),
            text: text.to_owned(),
        };
        check_file(&file)
            .into_iter()
            .map(|finding| finding.place)
            .collect()
    }

    #[test]
    fn machine_paths_are_found_in_any_file() {
        assert_eq!(places("docs/a.md", "one\nsee /work/notes\n"), ["docs/a.md:2"]);
        assert_eq!(places("Cargo.lock", "https://index.crates.io/\n"), [""; 0]);
        assert_eq!(places("docs/a.md", "a network/root/leaf\n"), ["docs/a.md:1"]);
        assert_eq!(places("docs/a.md", "framework\n"), [""; 0]);
    }

    #[test]
    fn tools_by_their_bare_name_are_found_in_code_alone() {
        let text = "// Command::new(\"kubectl\")\nfn f() { Command::new(\"kubectl\"); }\n";
        assert_eq!(
            places("crates/cluster/src/a.rs", text),
            ["crates/cluster/src/a.rs:2"]
        );
        assert_eq!(places("crates/realparts/src/a.rs", text), [""; 0]);
    }
}
