//! Who may run other programs. Clusters are spoken to by a client of ours, charts are rendered by an engine of ours: no
//! kubectl and no helm is ever run on a user's machine.

use super::Finding;
use super::source::{SourceFile, Sources, Strings, has_word};

/// Crates and commands that exist to run other programs, and are never shipped.
const WORKSHOPS: [&str; 3] = ["crates/realparts/", "crates/testkit/", "xtask/"];

/// Files of the product that run another program, and why.
const ALLOWED: [(&str, &str); 5] = [
    (
        "crates/component/src/kustomize.rs",
        "names the kustomize program of the settings, and its environment",
    ),
    (
        "crates/component/src/kustomize/process.rs",
        "runs it, within bounds",
    ),
    (
        "crates/cluster/src/connection/plugin.rs",
        "runs the credential plugin of a kubeconfig, when its user allows that",
    ),
    (
        "crates/cli/src/template/post_renderer.rs",
        "runs the plugin of Helm that the user of \"evenkeel template\" names",
    ),
    (
        PEERS,
        "measures whole processes, ours and those we are compared with",
    ),
];

/// Here Helm is measured, as a file that was named: its name may be said, and still not be run.
const PEERS: &str = "crates/cli/src/commands/bench/";

/// Programs that the product does the work of.
const REPLACED: [&str; 2] = ["\"kubectl\"", "\"helm\""];

/// What names a program to run.
const SPAWNS: [&str; 3] = ["Command::new", "posix_spawn", "exec_replace"];

/// Checks all that is shipped.
pub(super) fn check(sources: &Sources) -> Vec<Finding> {
    sources
        .rust()
        .filter(|file| !WORKSHOPS.iter().any(|folder| file.path.starts_with(folder)))
        // What runs while the product is compiled is no part of it.
        .filter(|file| !file.path.ends_with("build.rs"))
        .flat_map(check_file)
        .collect()
}

fn check_file(file: &SourceFile) -> Vec<Finding> {
    let path = file.path.to_string_lossy();
    let is_allowed = ALLOWED.iter().any(|(allowed, _)| path.starts_with(allowed));
    let mut findings = Vec::new();
    for (number, line) in file.shipped_lines(Strings::Keep) {
        let place = format!("{path}:{number}");
        let spawns = SPAWNS.iter().any(|name| has_word(&line, name)) && !line.contains("clap::Command");
        let replaced = REPLACED.iter().find(|name| line.contains(**name));
        if spawns && !is_allowed {
            let files: Vec<&str> = ALLOWED.iter().map(|(file, _)| *file).collect();
            findings.push(Finding::new(
                place,
                "runs another program",
                format!("do it in process; only these may: {}", files.join(", ")),
            ));
        } else if let (true, Some(name)) = (spawns || (is_allowed && !path.starts_with(PEERS)), replaced) {
            findings.push(Finding::new(
                place,
                format!("names the program {name}"),
                "its work is ours: use the cluster client or the chart engine",
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        let file = SourceFile {
            path: PathBuf::from(path),
            text: text.to_owned(),
        };
        let sources = Sources { files: vec![file] };
        check(&sources)
            .into_iter()
            .map(|finding| format!("{}: {}", finding.place, finding.what))
            .collect()
    }

    #[test]
    fn only_named_files_run_programs() {
        let text = "fn f() {\n    std::process::Command::new(program);\n}\n";
        assert_eq!(
            found("crates/cluster/src/a.rs", text),
            ["crates/cluster/src/a.rs:2: runs another program"]
        );
        assert_eq!(found("crates/component/src/kustomize/process.rs", text), [""; 0]);
        assert_eq!(found("crates/realparts/src/a.rs", text), [""; 0]);
        assert_eq!(found("crates/cli/build.rs", text), [""; 0]);
        assert_eq!(found("crates/cluster/tests/it/a.rs", text), [""; 0]);
        let test = format!("#[cfg(test)]\nmod tests {{\n{text}}}\n");
        assert_eq!(found("crates/cluster/src/a.rs", &test), [""; 0]);
    }

    #[test]
    fn what_we_do_the_work_of_is_run_nowhere() {
        for program in ["kubectl", "helm"] {
            let text = format!("fn f() {{ Command::new(\"{program}\"); }}\n");
            assert_eq!(
                found("crates/component/src/kustomize.rs", &text),
                [format!(
                    "crates/component/src/kustomize.rs:1: names the program \"{program}\""
                )]
            );
            let later =
                format!("const PROGRAM: &str = \"{program}\";\nfn f() {{ Command::new(PROGRAM); }}\n");
            assert_eq!(found("crates/component/src/kustomize.rs", &later).len(), 1);
            assert_eq!(found("crates/cluster/src/a.rs", &text).len(), 1);
        }
        // Helm is measured by its path, not by its name.
        let text = "const LABEL: &str = \"helm\";\nfn f() { Command::new(path); }\n";
        assert_eq!(found("crates/cli/src/commands/bench/render.rs", text), [""; 0]);
        let text = "fn f() { Command::new(\"helm\"); }\n";
        assert_eq!(found("crates/cli/src/commands/bench/render.rs", text).len(), 1);
        // As a word of a message it is harmless.
        let text = "// Command::new(\"helm\")\nconst TOOL: &str = \"helm\";\n";
        assert_eq!(found("crates/cli/src/a.rs", text), [""; 0]);
    }
}
