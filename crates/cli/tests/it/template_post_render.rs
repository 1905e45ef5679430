//! `evenkeel template --post-renderer`: plugins beside the real Helm, which runs the same ones.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use crate::template::{Oracle, difference, no_differences, repository, tree};

/// A plugin of this name whose program is this shell script.
fn plugin(folder: &Path, name: &str, script: &str) {
    plugin_with(
        folder,
        name,
        "runtime: subprocess\nruntimeConfig:\n  platformCommand:\n  - command: ${HELM_PLUGIN_DIR}/run.sh\n",
        script,
    );
}

fn plugin_with(folder: &Path, name: &str, runtime: &str, script: &str) {
    let folder = folder.join("plugins").join(name);
    fs::create_dir_all(&folder).unwrap();
    let head = "apiVersion: v1\nversion: 1.0.0\ntype: postrenderer/v1";
    fs::write(
        folder.join("plugin.yaml"),
        format!("{head}\nname: {name}\n{runtime}"),
    )
    .unwrap();
    let program = folder.join("run.sh");
    fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
}

fn plugins(folder: &Path) {
    plugin(folder, "pass", "cat");
    plugin(
        folder,
        "edit",
        "sed -e 's/value/changed/' -e 's/name: web/name: WEB # by hand/'",
    );
    plugin(
        folder,
        "add",
        "cat; printf -- '---\\nkind: Secret\\nmetadata:\\n  name: more\\n# foot\\n'",
    );
    plugin(
        folder,
        "list",
        "printf 'kind: List\\nitems:\\n- kind: B\\n- kind: A\\n  metadata: {name: a}\\n'",
    );
    plugin(folder, "hook", "sed 's/keep: me/helm.sh\\/hook: pre-install/'");
    plugin(
        folder,
        "partial",
        "sed 's/postrender-filename: .*/postrender-filename: x\\/_p.yaml/'",
    );
    plugin(
        folder,
        "elsewhere",
        "sed 's/templates\\/web.yaml/other\\/place.yaml/'",
    );
    plugin(folder, "fail", "cat >/dev/null; echo said >&2; exit 7");
    plugin(folder, "deaf", "echo 'kind: Deaf'");
    plugin(folder, "empty", "cat >/dev/null; echo; echo '  '");
    plugin(folder, "loud", "echo said >&2; cat");
    plugin(folder, "broken", "echo 'a: ['");
    plugin(folder, "sequence", "echo '- a'");
    plugin(folder, "separator", "printf 'a: 1\\n--- b\\nb: 2\\n'");
    plugin(folder, "text", "echo 'kind: [x]'");
    plugin(
        folder,
        "tell",
        "cat >/dev/null; printf 'kind: Told\\ndata:\\n  args: \"'\"$*\"'\"\\n  count: '$#'\\n  name: '$HELM_PLUGIN_NAME'\\n'",
    );
    plugin_with(
        folder,
        "args",
        "runtime: subprocess\nruntimeConfig:\n  platformCommand:\n  - os: plan9\n    command: no\n  - command: \
         $HELM_PLUGIN_DIR/run.sh a  $HELM_PLUGIN_NAME\n    args: ['${HELM_PLUGIN_NAME}', 'c d', '$']\n",
        "cat >/dev/null; for a in \"$@\"; do printf -- '---\\nkind: \"%s\"\\n' \"$a\"; done",
    );
    plugin_with(folder, "none", "runtime: subprocess\n", "cat");
    plugin_with(
        folder,
        "lost",
        "runtime: subprocess\nruntimeConfig: {platformCommand: [{command: no-such-program}]}\n",
        "cat",
    );
    plugin_with(folder, "strict", "runtime: subprocess\nmore: 1\n", "cat");
    let other = folder.join("plugins/other");
    fs::create_dir_all(&other).unwrap();
    fs::write(
        other.join("plugin.yaml"),
        "name: other\nversion: 1.0.0\ncommand: cat\n",
    )
    .unwrap();
}

/// What a rewrite could lose or change.
const WEB: &str = "# head\n\n# of it\nkind: ConfigMap # what\napiVersion:   v1\nmetadata:\n    name: web\n    labels: {a: 'b',\n      \
    c: \"d\"} # flow\ndata:\n    # above\n    plain: value   # behind\n    long: \"wwwwwwwww wwwwwwwwww wwwwwwwwww \
    wwwwwwwwwww wwwwwwwwwwwww wwwwwwwwwww wwwwwwwwwwww\"\n    literal: |\n        one\n\n          two\n    folded: >-\n        \
    three\n        four\n\n        five\n    empty:\n    base: &base {x: 1}\n    merged:\n        <<: *base\n    list:\n        - \
    1\n        # between\n        - - 2\n          - 3\n\n    # foot\n\nlast: true\n# end\n";

fn charts(folder: &Path) {
    let write = |path: &str, text: &str| {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let chart = |name: &str| format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n");
    write("good/Chart.yaml", &chart("good"));
    write("good/templates/web.yaml", WEB);
    write("good/templates/_part.yaml", "{{/* no */}}a: [");
    write("good/templates/NOTES.txt", "a: [");
    write("good/templates/nothing.yaml", "\n---\n# only this\n---\n");
    write(
        "good/templates/two.yaml",
        "---\nkind: Service\nmetadata:\n  name: a\n  annotations:\n    keep: me\n---\nkind: List\nitems:\n- kind: Pod\n  \
         metadata:\n    annotations: {}\n- kind: Job\n  metadata: {name: j}\n",
    );
    let hook = |event: &str| {
        format!("kind: Pod\nmetadata:\n  name: h\n  annotations:\n    \"helm.sh/hook\": {event} # when\n")
    };
    write(
        "good/templates/hook.yaml",
        &format!("{}---\n{}", hook("pre-install"), hook("post-delete")),
    );
    write("good/templates/tests/t.yaml", &hook("test"));
    write(
        "good/templates/named.yaml",
        "kind: Pod\nmetadata:\n  annotations:\n    config.kubernetes.io/index: 7\n    \
         postrenderer.helm.sh/postrender-filename: \"mine\"\n    config.kubernetes.io/path: p\n",
    );
    write(
        "good/crds/x.yaml",
        "kind: CustomResourceDefinition   # as it is\n",
    );
    for (name, text) in [
        ("unclosed", "kind: Pod\nx: [1\n"),
        ("list", "- a\n- b\n"),
        ("scalar", "just text\n"),
        ("metadata", "kind: Pod\nmetadata: [a]\n"),
        ("word", "kind: Pod\nmetadata:\n  annotations: none\n"),
    ] {
        write(&format!("{name}/Chart.yaml"), &chart(name));
        write(&format!("{name}/templates/a.yaml"), text);
    }
}

struct Bench {
    oracle: Oracle,
    theirs: tempfile::TempDir,
    ours: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let (theirs, ours) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for folder in [theirs.path(), ours.path()] {
            plugins(folder);
            charts(folder);
        }
        Self {
            oracle: Oracle::new(),
            theirs,
            ours,
        }
    }

    fn run(&self, args: &[&str]) -> (Output, Output) {
        let run = |mut command: Command, folder: &Path| {
            command
                .arg("template")
                .args(args)
                .current_dir(folder)
                .env("HELM_PLUGINS", folder.join("plugins"));
            command.output().unwrap()
        };
        (
            run(self.oracle.helm_command(), self.theirs.path()),
            run(Command::new(env!("CARGO_BIN_EXE_evenkeel")), self.ours.path()),
        )
    }

    /// Both print and leave the same, and say the same of what is wrong.
    fn compare(&self, lines: &[&[&str]]) {
        let mut differences = Vec::new();
        for args in lines {
            let (theirs, ours) = self.run(args);
            let line = args.join(" ");
            if let Some(difference) = difference(&theirs, &ours) {
                differences.push(format!("{line}: {difference}"));
            }
            if fault(&theirs) != fault(&ours) {
                differences.push(format!(
                    "{line}: Helm says {:?}, Evenkeel {:?}",
                    fault(&theirs),
                    fault(&ours)
                ));
            }
            if tree(self.theirs.path()) != tree(self.ours.path()) {
                differences.push(format!("{line}: other files"));
            }
        }
        no_differences(differences);
    }
}

/// What a program says of its failure, without warnings before it.
fn fault(output: &Output) -> Option<String> {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let at = text.find("Error: ")?;
    text.get(at..).map(|text| text.trim_end().to_owned())
}

#[test]
fn documents_go_through_a_plugin() {
    let bench = Bench::new();
    let lines = [
        "pass",
        "edit",
        "add",
        "list",
        "hook",
        "partial",
        "elsewhere",
        "deaf",
        "loud",
        "args",
    ]
    .map(|name| ["r", "good", "--post-renderer", name]);
    bench.compare(&lines.iter().map(<[_; 4]>::as_slice).collect::<Vec<_>>());
    let (theirs, _) = bench.run(&["r", "good", "--post-renderer", "edit"]);
    let printed = String::from_utf8(theirs.stdout).unwrap();
    assert!(printed.contains("plain: changed # behind"), "{printed}");
}

#[test]
fn other_flags_still_count() {
    let bench = Bench::new();
    bench.compare(&[
        &["r", "good", "--post-renderer", "pass", "--no-hooks"],
        &[
            "r",
            "good",
            "--post-renderer",
            "pass",
            "--skip-tests",
            "--include-crds",
        ],
        &["r", "good", "--post-renderer", "pass", "-s", "templates/web.yaml"],
        &[
            "r",
            "good",
            "--post-renderer",
            "elsewhere",
            "-s",
            "templates/web.yaml",
        ],
        &[
            "r",
            "good",
            "--post-renderer",
            "pass",
            "-s",
            "templates/hook.yaml",
        ],
        &["r", "good", "--post-renderer", "pass", "--output-dir", "out"],
        &["r", "good", "--post-renderer", "elsewhere", "--output-dir", "out"],
        &[
            "r",
            "good",
            "--post-renderer",
            "add",
            "--output-dir",
            "more",
            "--release-name",
        ],
    ]);
}

#[test]
fn plugins_get_arguments() {
    let bench = Bench::new();
    bench.compare(&[
        &["r", "good", "--post-renderer", "tell"],
        &[
            "r",
            "good",
            "--post-renderer",
            "tell",
            "--post-renderer-args",
            "a",
        ],
        &[
            "r",
            "good",
            "--post-renderer-args",
            "--x",
            "--post-renderer",
            "tell",
            "--post-renderer-args=b c",
            "--post-renderer-args",
            "",
        ],
        &["r", "good", "--post-renderer-args", "alone"],
        &["r", "good", "--post-renderer", "", "--post-renderer", "tell"],
    ]);
}

#[test]
fn faults_are_told_as_helm_tells_them() {
    let bench = Bench::new();
    let named = |chart: &'static str, plugin: &'static str| ["r", chart, "--post-renderer", plugin];
    let mut lines = Vec::new();
    for plugin in ["fail", "empty", "broken", "sequence", "separator", "none", "lost"] {
        lines.push(named("good", plugin));
    }
    for plugin in ["missing", "other", "strict"] {
        lines.push(named("good", plugin));
    }
    for chart in ["unclosed", "list", "scalar", "metadata", "word"] {
        lines.push(named(chart, "pass"));
    }
    let mut lines: Vec<&[&str]> = lines.iter().map(<[_; 4]>::as_slice).collect();
    lines.push(&["r", "good", "--post-renderer", "pass", "--post-renderer", "pass"]);
    lines.push(&["r", "good", "--post-renderer", "fail", "--debug"]);
    bench.compare(&lines);
    // Here only the code is the same: of documents that are no objects each has its own words.
    let (theirs, ours) = bench.run(&["r", "good", "--post-renderer", "text"]);
    assert_eq!(difference(&theirs, &ours), None);
}

#[test]
fn two_plugins_of_one_name_are_refused() {
    let bench = Bench::new();
    for folder in [bench.theirs.path(), bench.ours.path()] {
        plugin(folder, "zz", "cat");
        let file = folder.join("plugins/zz/plugin.yaml");
        let text = fs::read_to_string(&file)
            .unwrap()
            .replace("name: zz", "name: pass");
        fs::write(file, text).unwrap();
    }
    let (theirs, ours) = bench.run(&["r", "good", "--post-renderer", "edit"]);
    assert_eq!(difference(&theirs, &ours), None);
    assert!(
        fault(&ours)
            .unwrap()
            .contains("two plugins claim the name \"pass\" at")
    );
    assert!(
        fault(&theirs)
            .unwrap()
            .contains("two plugins claim the name \"pass\" at")
    );
}

#[test]
fn a_runtime_that_is_not_here_is_named() {
    let bench = Bench::new();
    plugin_with(bench.ours.path(), "wasm", "runtime: extism/v1\n", "cat");
    let (_, ours) = bench.run(&["r", "good", "--post-renderer", "wasm"]);
    assert_eq!(ours.status.code(), Some(1));
    let fault = fault(&ours).unwrap();
    assert!(
        fault.contains("\"extism/v1\", which cannot be run here"),
        "{fault}"
    );
}

/// Without `HELM_PLUGINS` plugins are looked for where Helm puts them.
#[test]
fn plugins_are_found_in_the_usual_folder() {
    let bench = Bench::new();
    let home = bench.ours.path();
    for (variable, folder) in [
        ("HELM_DATA_HOME", ""),
        ("XDG_DATA_HOME", "helm"),
        ("HOME", ".local/share/helm"),
    ] {
        let data = home.join(variable);
        let to = data.join(folder);
        fs::create_dir_all(&to).unwrap();
        plugin(&to, "deaf", "echo 'kind: Deaf'");
        let output = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
            .args(["template", "r", "good", "--post-renderer", "deaf"])
            .current_dir(home)
            .env_remove("HELM_PLUGINS")
            .env_remove("HELM_DATA_HOME")
            .env_remove("XDG_DATA_HOME")
            .env(variable, &data)
            .output()
            .unwrap();
        assert!(
            String::from_utf8_lossy(&output.stdout).contains("kind: Deaf"),
            "{variable}: {output:?}"
        );
    }
}

/// Every chart of the repository, passed through unchanged: what is left of each document is what Helm leaves.
#[test]
fn charts_of_the_repository_pass_through() {
    let bench = Bench::new();
    let mut charts = Vec::new();
    let mut folders = vec![
        repository().join("crates/chart/tests"),
        repository().join("deploy"),
    ];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.join("Chart.yaml").is_file() {
                charts.push(path);
            } else if path.is_dir() {
                folders.push(path);
            }
        }
    }
    assert!(!charts.is_empty());
    let lines: Vec<[&str; 4]> = charts
        .iter()
        .map(|chart| ["r", chart.to_str().unwrap(), "--post-renderer", "pass"])
        .collect();
    let mut differences = Vec::new();
    let mut equal = 0;
    for args in &lines {
        let (theirs, ours) = bench.run(args);
        match difference(&theirs, &ours) {
            Some(difference) => differences.push(format!("{}: {difference}", args[1])),
            None => equal += usize::from(theirs.status.success()),
        }
    }
    no_differences(differences);
    assert!(equal > 0);
}
