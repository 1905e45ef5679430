//! The flags of `evenkeel template`: the same as those of `helm template`, with the same meaning.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::template::{Oracle, difference, no_differences, tree};

/// Flags that differ from Helm's in name or form, with the reason. Empty: none does.
const OTHER_FORM: [(&str, &str); 0] = [];
/// Flags of ours that Helm does not have.
const OURS: [(&str, &str); 2] = [
    ("log-format", "every command of this program has it"),
    ("log", "every command of this program has it"),
];

/// How a flag is written.
#[derive(Debug, PartialEq, Eq)]
struct Form {
    short: Option<char>,
    value: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    /// Yes or no; the flag alone is yes.
    Switch,
    Required,
    Optional,
}

/// The flags that a help text lists.
fn flags(help: &str) -> BTreeMap<String, Form> {
    let mut flags = BTreeMap::new();
    for line in help.lines() {
        let line = line.trim_start();
        let (short, rest) = match line.strip_prefix('-') {
            Some(rest) if !rest.starts_with('-') => {
                let (short, rest) = rest.split_once(", --").expect("a long name follows");
                (short.chars().next(), rest)
            }
            Some(_) => (None, line.trim_start_matches('-')),
            None => continue,
        };
        let name_end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '-'))
            .unwrap_or(rest.len());
        let (name, form) = rest.split_at(name_end);
        // What the value is called ends where at least two spaces begin the explanation.
        let form = form.split("  ").next().unwrap_or_default();
        let value = if form.contains("BOOL") || form.is_empty() {
            Value::Switch
        } else if form.contains('[') {
            Value::Optional
        } else {
            Value::Required
        };
        flags.insert(name.to_owned(), Form { short, value });
    }
    flags
}

#[test]
fn the_flags_are_those_of_helm() {
    let oracle = Oracle::new();
    let here = Path::new(".");
    let help = |output: std::process::Output| {
        assert!(output.status.success());
        flags(&String::from_utf8(output.stdout).unwrap())
    };
    let theirs = help(oracle.helm(here, &["template", "--help"]));
    let mut ours = help(Oracle::evenkeel(here, &["template", "--help"]));
    assert!(theirs.len() > 60, "{theirs:?}");
    for (name, _) in OURS {
        assert!(ours.remove(name).is_some(), "{name}");
    }
    for (name, form) in &theirs {
        if !OTHER_FORM.iter().any(|(other, _)| other == name) {
            assert_eq!(ours.get(name), Some(form), "--{name}");
        }
    }
    for name in ours.keys() {
        assert!(theirs.contains_key(name), "--{name} is not Helm's");
    }
}

const CONFIG_MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\ndata:\n  \
    kube: {{ .Capabilities.KubeVersion }}\n  more: {{ .Capabilities.APIVersions.Has \"x/v1\" | quote }}\n  \
    found: {{ lookup \"v1\" \"Namespace\" \"\" \"default\" | toJson }}\n  \
    namespace: {{ .Release.Namespace }}\n  upgrade: {{ .Release.IsUpgrade | quote }}\n  \
    host: {{ getHostByName \"nowhere\" | quote }}\n  values: {{ .Values | toJson }}\n";

/// A folder with charts that are right (`good`), print what is not YAML (`bad`), or fail (`failing`).
fn charts() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    for chart in ["good", "bad", "failing"] {
        write(
            &format!("{chart}/Chart.yaml"),
            &format!("apiVersion: v2\nname: {chart}\nversion: 1.0.0\n"),
        );
    }
    write("good/templates/a.yaml", CONFIG_MAP);
    let two = format!("{CONFIG_MAP}---\n{}", CONFIG_MAP.replace("ConfigMap", "Secret"));
    write("good/templates/two.yaml", &two);
    write("good/crds/x.yaml", "kind: CustomResourceDefinition\n\n\n");
    let sub = "good/charts/sub";
    write(
        &format!("{sub}/Chart.yaml"),
        "apiVersion: v2\nname: sub\nversion: 1.0.0\n",
    );
    write(&format!("{sub}/templates/a.yaml"), CONFIG_MAP);
    let hook =
        |event: &str| format!("kind: Pod\nmetadata:\n  name: h\n  annotations:\n    helm.sh/hook: {event}\n");
    write(
        "good/templates/hook.yaml",
        &format!("{}---\n{}", hook("pre-install"), hook("post-delete")),
    );
    write("good/templates/tests/t.yaml", &hook("test"));
    write("good/templates/NOTES.txt", "{{ .Release.Name }}\n");
    write("bad/templates/a.yaml", "a: 1\n b: [\n");
    write("failing/templates/a.yaml", "a: {{ .Values.x.y }}\n");
    write("v.yaml", "a: 1\n");
    write("a,b.yaml", "b: 2\n");
    folder
}

/// Runs each line of arguments with both programs, each in a folder of its own; what they leave there counts as well.
fn compare(lines: &[&[&str]]) {
    let oracle = Oracle::new();
    let (theirs, ours) = (charts(), charts());
    let mut differences = Vec::new();
    for line in lines {
        let args: Vec<&str> = ["template"].iter().chain(*line).copied().collect();
        let (their_output, our_output) = (
            oracle.helm(theirs.path(), &args),
            Oracle::evenkeel(ours.path(), &args),
        );
        let told = |output: &std::process::Output| !output.stderr.is_empty();
        if let Some(difference) = difference(&their_output, &our_output) {
            differences.push(format!("{}: {difference}", line.join(" ")));
        } else if their_output.status.code() != Some(0) && told(&their_output) != told(&our_output) {
            differences.push(format!("{}: only one of them says why", line.join(" ")));
        }
        if tree(theirs.path()) != tree(ours.path()) {
            let names = |root| tree(root).into_iter().map(|(name, text)| (name, text.len()));
            differences.push(format!(
                "{}: other files: {:?} and {:?}",
                line.join(" "),
                names(theirs.path()).collect::<Vec<_>>(),
                names(ours.path()).collect::<Vec<_>>()
            ));
        }
    }
    no_differences(differences);
}

#[test]
fn names_and_switches() {
    compare(&[
        &["r", "good"],
        &[],
        &["a", "b", "c", "d"],
        &["good", "-g"],
        &["r", "good", "-g"],
        &["r", "good", "--generate-name=false"],
        &["good", "-gn", "x"],
        &["good", "-g=false", "-n", "x"],
        &["r", "good", "--name-template", "x"],
        &[
            "good",
            "--name-template",
            "{{ \"A\" | lower }}-{{ add 1 2 }}",
            "-g",
        ],
        &["good", "--name-template", "{{"],
        &["good", "--name-template", "A"],
        &["good", "--name-template", ""],
        &["r", "good", "-n", ""],
        &["r", "good", "-n", "a", "--namespace", "b"],
        &["r", "good", "-n=zz"],
        &["r", "good", "-nzz"],
        &["r", "good", "-n"],
        &["r", "good", "--bogus"],
        &["r", "good", "-z"],
        &["--", "r", "good"],
        &["r", "--", "good"],
        &["r", "good", "--include-crds"],
        &["r", "good", "--include-crds=T", "--skip-tests"],
        &["r", "good", "--include-crds=yes"],
        &["r", "good", "--include-crds="],
        &["r", "good", "--no-hooks", "--no-hooks=false"],
        &["r", "good", "--no-hooks"],
        &["r", "good", "--is-upgrade", "--skip-crds"],
        &[
            "r",
            "good",
            "--kube-version",
            "1.20",
            "-a",
            "x/v1,y",
            "-a",
            "\"z,q\"",
        ],
        &["r", "good", "--kube-version", "x"],
        &["r", "good", "--kube-version", ""],
        &["r", "good", "--api-versions", "a,\"b,c"],
        &["Not_A_Name", "good"],
        &["r", "nowhere"],
    ]);
}

#[test]
fn values_and_flags_without_effect() {
    compare(&[
        &["r", "good", "-f", "v.yaml", "--set", "b=2", "--set-string", "c=3"],
        &["r", "good", "-f=v.yaml", "--values", "\"a,b.yaml\",v.yaml"],
        &["r", "good", "-f", "a,b.yaml"],
        &[
            "r",
            "good",
            "--set-literal",
            "a=b,c",
            "--set-json",
            "d=[1]",
            "--set-file",
            "e=v.yaml",
        ],
        &["r", "good", "--set", "--x=1"],
        &["r", "good", "--set"],
        &["r", "good", "--set", ""],
        &["r", "good", "--set-file", "a=nothing"],
        &["r", "good", "--timeout", "5m0s"],
        &["r", "good", "--timeout", "5"],
        &["r", "good", "--timeout", "-1h1.5m"],
        &["r", "good", "--labels", "a=b,c=d", "-l", "e=f"],
        &["r", "good", "--labels", "a"],
        &["r", "good", "--labels", "name=x"],
        &["r", "good", "--wait", "--wait-for-jobs"],
        &["r", "good", "--wait=legacy"],
        &["r", "good", "--wait=true"],
        &["r", "good", "--wait=x"],
        &["r", "good", "--wait", "x"],
        &[
            "r",
            "good",
            "--atomic",
            "--hide-notes",
            "--render-subchart-notes",
            "--force",
        ],
        &["r", "good", "--force", "--force-conflicts"],
        &["r", "good", "--force-replace", "--force-conflicts"],
        &["r", "good", "--server-side=false"],
        &["r", "good", "--server-side=auto"],
        &[
            "r",
            "good",
            "--description",
            "x",
            "--create-namespace",
            "--replace",
            "--rollback-on-failure",
        ],
        &[
            "r",
            "good",
            "--take-ownership",
            "--disable-openapi-validation",
            "--skip-schema-validation",
        ],
        &["r", "good", "--qps", "1.5", "--burst-limit", "-3"],
        &["r", "good", "--qps", "x"],
        &["r", "good", "--burst-limit", "1.5"],
        &["r", "good", "--color", "always", "--colour", "never"],
        &["r", "good", "--color", "x"],
        &["r", "good", "--post-renderer", "cat"],
        &["r", "good", "--post-renderer", "", "--post-renderer-args", "--x"],
        &[
            "r",
            "good",
            "--devel",
            "--version",
            ">=2",
            "--username",
            "u",
            "--password",
            "p",
        ],
        &[
            "r",
            "good",
            "--kubeconfig",
            "/nowhere/config",
            "--kube-context",
            "x",
            "--kube-token",
            "t",
        ],
        &["r", "good", "--history-max", "1"],
    ]);
}

#[test]
fn dry_runs_faults_and_what_is_shown() {
    compare(&[
        &["r", "good", "--dry-run"],
        &["r", "good", "--dry-run=client"],
        &["r", "good", "--dry-run=true"],
        &["r", "good", "--dry-run=false"],
        &["r", "good", "--dry-run=none"],
        &["r", "good", "--dry-run=x"],
        &["r", "good", "--dry-run", "client"],
        &["r", "good", "--validate=false"],
        &["r", "good", "--validate", "--dry-run=client"],
        // Nobody answers there.
        &[
            "r",
            "good",
            "--dry-run=server",
            "--kube-apiserver",
            "http://127.0.0.1:1",
        ],
        &["r", "good", "--validate", "--kubeconfig", "/nowhere/config"],
        &["r", "good", "--debug"],
        &["r", "bad"],
        &["r", "bad", "--debug"],
        &["r", "bad", "--debug", "-s", "templates/a.yaml"],
        &["r", "bad", "--debug", "-s", "templates/b.yaml"],
        &["r", "failing"],
        &["r", "failing", "--debug"],
        &["r", "good", "-s", "templates/zz"],
        &["r", "good", "-s", "templates/a.yaml", "-s", "templates/a.yaml"],
        &["r", "good", "-s", "templates/*", "-s", "templates/zz*"],
        &[
            "r",
            "good",
            "-s",
            "templates/*.yaml",
            "--show-only",
            "charts/sub/templates/a.yaml",
        ],
        &["r", "good", "-s", "charts/*/*/*.yaml"],
        &["r", "good", "-s", "templates/tests/*", "--skip-tests"],
        &["r", "good", "-s", "crds/x.yaml"],
        &["r", "good", "-s", "crds/x.yaml", "--include-crds"],
        &["r", "good", "-s", "x/../templates/a.yaml"],
        &["r", "good", "-s", "templates\\a.yaml"],
        &["r", "good", "-s", ""],
        &["r", "good", "-s", "["],
        &["r", "good", "-s", "**"],
        &["r", "good", "-s", "templates/NOTES.txt"],
    ]);
}

#[test]
fn output_directories() {
    compare(&[
        &["r", "good", "--output-dir", "out"],
        // Once more: hooks are added to what is there, the rest begins anew.
        &["r", "good", "--output-dir", "out"],
        &[
            "r",
            "good",
            "--output-dir",
            "./out",
            "--release-name",
            "--include-crds",
        ],
        &["r", "good", "--output-dir", "other//x/", "--skip-tests"],
        &[
            "r",
            "good",
            "--output-dir",
            "other/x/../y",
            "--release-name",
            "--no-hooks",
        ],
        &["r", "good", "--output-dir", ""],
        &["r", "good", "--output-dir", "good/Chart.yaml"],
        &["r", "bad", "--output-dir", "none"],
        &["r", "good", "--output-dir", "out", "-s", "templates/a.yaml"],
    ]);
}

/// Helm renders for the namespace of the kubeconfig's context, even when it asks no cluster.
#[test]
fn the_namespace_comes_from_the_kubeconfig() {
    let oracle = Oracle::new();
    let folder = charts();
    let config = folder.path().join("config");
    let text = "apiVersion: v1\nkind: Config\ncurrent-context: a\n\
                clusters: [{name: k, cluster: {server: \"https://127.0.0.1:1\"}}]\nusers: [{name: u, user: {}}]\n\
                contexts:\n- {name: a, context: {cluster: k, user: u, namespace: of-a}}\n\
                - {name: b, context: {cluster: k, user: u}}\n";
    fs::write(&config, text).unwrap();
    let config = config.to_str().unwrap();
    let mut differences = Vec::new();
    for (env, args) in [
        (config, &["template", "r", "good"][..]),
        (config, &["template", "r", "good", "--kube-context", "b"]),
        (config, &["template", "r", "good", "-n", "mine"]),
        ("", &["template", "r", "good", "--kubeconfig", config]),
        ("/nowhere/config", &["template", "r", "good"]),
    ] {
        let run = |mut command: Command| {
            command
                .args(args)
                .current_dir(folder.path())
                .env("KUBECONFIG", env);
            command.output().unwrap()
        };
        let theirs = run(oracle.helm_command());
        let ours = run(Command::new(env!("CARGO_BIN_EXE_evenkeel")));
        assert!(theirs.status.success());
        differences.extend(difference(&theirs, &ours).map(|text| format!("{args:?}: {text}")));
    }
    no_differences(differences);
}
