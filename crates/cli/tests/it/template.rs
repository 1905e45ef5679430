//! `evenkeel template` against the real Helm: same bytes on standard output, same exit code.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use evenkeel_realparts as realparts;

/// Charts that need a piece which is not built yet, with that piece. Empty: nothing is left out.
const NOT_YET: [(&str, &str); 0] = [];

pub(crate) struct Oracle {
    helm: PathBuf,
    /// Helm keeps its caches here, and not in the home of whoever runs the tests.
    home: tempfile::TempDir,
}

impl Oracle {
    pub(crate) fn new() -> Self {
        Self {
            helm: realparts::helm().unwrap(),
            home: tempfile::tempdir().unwrap(),
        }
    }

    /// The real Helm, without anything of whoever runs the tests.
    pub(crate) fn helm_command(&self) -> Command {
        let home = self.home.path();
        let mut command = Command::new(&self.helm);
        command
            .env("HELM_CACHE_HOME", home.join("cache"))
            .env("HELM_CONFIG_HOME", home.join("config"))
            .env("HELM_DATA_HOME", home.join("data"));
        command
    }

    pub(crate) fn helm(&self, directory: &Path, args: &[&str]) -> Output {
        let mut command = self.helm_command();
        command.args(args).current_dir(directory).output().unwrap()
    }

    pub(crate) fn evenkeel(directory: &Path, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_evenkeel"))
            .args(args)
            .current_dir(directory)
            .output()
            .unwrap()
    }

    /// Runs both; the difference, if there is one.
    fn compare(&self, directory: &Path, args: &[&str]) -> Result<(), String> {
        let args: Vec<&str> = ["template"].iter().chain(args).copied().collect();
        let (theirs, ours) = (self.helm(directory, &args), Self::evenkeel(directory, &args));
        difference(&theirs, &ours).map_or(Ok(()), |difference| {
            Err(format!(
                "{} {}: {difference}",
                directory.display(),
                args.join(" ")
            ))
        })
    }
}

pub(crate) fn difference(theirs: &Output, ours: &Output) -> Option<String> {
    if theirs.status.code() == ours.status.code() && theirs.stdout == ours.stdout {
        return None;
    }
    let (their_text, our_text) = (
        String::from_utf8_lossy(&theirs.stdout),
        String::from_utf8_lossy(&ours.stdout),
    );
    let line = their_text.lines().zip(our_text.lines()).position(|(a, b)| a != b);
    let at = line.unwrap_or_else(|| their_text.lines().count().min(our_text.lines().count()));
    Some(format!(
        "exit {:?} and {:?}; line {}: Helm {:?}, Evenkeel {:?}\n  Helm says: {}\n  Evenkeel says: {}",
        theirs.status.code(),
        ours.status.code(),
        at + 1,
        their_text.lines().nth(at),
        our_text.lines().nth(at),
        String::from_utf8_lossy(&theirs.stderr).trim(),
        String::from_utf8_lossy(&ours.stderr).trim(),
    ))
}

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

pub(crate) fn no_differences(differences: Vec<String>) {
    assert!(
        differences.is_empty(),
        "{} differences:\n{}",
        differences.len(),
        differences.join("\n")
    );
}

#[test]
fn the_chart_that_helm_create_writes() {
    let oracle = Oracle::new();
    let directory = tempfile::tempdir().unwrap();
    assert!(
        oracle
            .helm(directory.path(), &["create", "demo"])
            .status
            .success()
    );
    let values = [
        (
            "on.yaml",
            "replicaCount: 3\nautoscaling: {enabled: true}\ningress: {enabled: true}\n",
        ),
        (
            "odd.yaml",
            "nameOverride: x\nserviceAccount: {create: false, name: other}\npodAnnotations: {a: \"1e3\"}\n\
             resources: {limits: {cpu: 1000000, memory: 64Mi}}\nlivenessProbe: null\n\
             tolerations: [{key: k, operator: Exists}]\nvolumes: [{name: v, emptyDir: {}}]\n",
        ),
    ];
    for (name, text) in values {
        fs::write(directory.path().join(name), text).unwrap();
    }
    let mut differences = Vec::new();
    for args in [
        &["r", "demo"][..],
        &["demo-1", "demo", "-f", "on.yaml", "-n", "apps"],
        &[
            "r",
            "demo",
            "-f",
            "odd.yaml",
            "--set",
            "image.tag=1.10,httpRoute.enabled=true",
        ],
        &[
            "r",
            "demo",
            "--kube-version",
            "1.21",
            "--no-hooks",
            "--set-string",
            "service.port=81",
        ],
        &["demo", "--skip-tests", "--is-upgrade"],
        &[
            "r",
            "demo",
            "-s",
            "templates/service.yaml",
            "-s",
            "templates/dep*.yaml",
        ],
        &["r", "demo", "--show-only", "templates/nothing.yaml"],
        &["Not_A_Name", "demo"],
        &["r", "demo", "--set", "service.port=x,ingress"],
    ] {
        differences.extend(oracle.compare(directory.path(), args).err());
    }
    no_differences(differences);
}

#[test]
fn the_example_charts() {
    let oracle = Oracle::new();
    let mut differences = Vec::new();
    let mut charts = 0;
    for entry in fs::read_dir(repository().join("examples")).unwrap() {
        let chart = entry.unwrap().path();
        if !chart.join("Chart.yaml").exists() {
            continue;
        }
        charts += 1;
        let mut sets = 0;
        for values in fs::read_dir(chart.join("ci")).unwrap() {
            let values = values.unwrap().path();
            sets += 1;
            let values = values.to_str().unwrap();
            differences.extend(
                oracle
                    .compare(&chart, &["demo", ".", "--include-crds", "-f", values])
                    .err(),
            );
            differences.extend(
                oracle
                    .compare(&chart, &["x", ".", "-n", "apps", "-f", values])
                    .err(),
            );
        }
        assert!(sets >= 3, "{} has {sets} sets of values", chart.display());
        // The defaults of one chart make up a password; set, the rest must be equal.
        let args = [
            "demo",
            ".",
            "--set",
            "auth.password=x",
            "--set-json",
            r#"extra={"a":[1,2.5,null]}"#,
        ];
        differences.extend(oracle.compare(&chart, &args).err());
    }
    assert!(charts >= 4, "{charts} charts");
    no_differences(differences);
}

/// The values of `database` leave the password to chance: everything but that one value is equal.
#[test]
fn a_random_password_is_the_only_difference() {
    let oracle = Oracle::new();
    let chart = repository().join("examples/database");
    let mask = |output: Output| {
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let text = String::from_utf8(output.stdout).unwrap();
        let mut passwords = Vec::new();
        let masked: Vec<_> = text
            .lines()
            .map(|line| match line.trim().strip_prefix("password: ") {
                Some(password) => {
                    passwords.push(password.to_owned());
                    "  password: masked"
                }
                None => line,
            })
            .collect();
        (masked.join("\n"), passwords)
    };
    let args = ["template", "demo", "."];
    let (theirs, _) = mask(oracle.helm(&chart, &args));
    let (ours, first) = mask(Oracle::evenkeel(&chart, &args));
    let (again, second) = mask(Oracle::evenkeel(&chart, &args));
    assert_eq!(theirs, ours);
    assert_eq!(ours, again);
    assert_ne!(first, second);
    // 24 letters and digits, in base 64 and quotes.
    assert!(first.iter().all(|password| password.len() == 34), "{first:?}");
}

/// Charts that show faults which people reported; `runs.json` beside them says how each is run.
#[test]
fn the_charts_of_reported_faults() {
    let oracle = Oracle::new();
    let cases = repository().join("crates/chart/tests/data/cases");
    let runs = fs::read_to_string(cases.join("runs.json")).unwrap();
    let runs: serde_json::Value = serde_json::from_str(&runs).unwrap();
    let mut differences = Vec::new();
    let mut seen = 0;
    for run in runs.as_array().unwrap() {
        let chart = run["chart"].as_str().unwrap();
        if NOT_YET.iter().any(|(name, _)| *name == chart) {
            continue;
        }
        seen += 1;
        let args: Vec<&str> = run["args"]
            .as_array()
            .unwrap()
            .iter()
            .map(|arg| arg.as_str().unwrap())
            .collect();
        differences.extend(oracle.compare(&cases.join(chart), &args).err());
    }
    assert!(seen >= 39, "{seen} runs");
    no_differences(differences);
}

/// The set-ups of values that the chart crate tests against stored output, against the real Helm.
#[test]
fn values_come_together_as_in_helm() {
    let oracle = Oracle::new();
    let text = fs::read_to_string(repository().join("crates/chart/tests/data/values.json")).unwrap();
    let cases: serde_json::Value = serde_json::from_str(&text).unwrap();
    let mut differences = Vec::new();
    for case in cases.as_array().unwrap() {
        let directory = tempfile::tempdir().unwrap();
        for (path, text) in case["files"].as_object().unwrap() {
            let path = directory.path().join("c").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text.as_str().unwrap()).unwrap();
        }
        let mut args = vec!["r", "c"];
        if let Some(text) = case["values"].as_str() {
            fs::write(directory.path().join("u.yaml"), text).unwrap();
            args.extend(["-f", "u.yaml"]);
        }
        args.extend(
            case["set"]
                .as_array()
                .unwrap()
                .iter()
                .map(|arg| arg.as_str().unwrap()),
        );
        differences.extend(
            oracle
                .compare(directory.path(), &args)
                .err()
                .map(|text| format!("{}: {text}", case["name"])),
        );
    }
    no_differences(differences);
}

#[test]
fn output_directory() {
    let oracle = Oracle::new();
    let chart = repository().join("examples/operator");
    let chart = chart.to_str().unwrap();
    let (theirs, ours) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let args = [
        "template",
        "demo",
        chart,
        "--output-dir",
        "out",
        "--include-crds",
        "--release-name",
    ];
    let (their_output, our_output) = (
        oracle.helm(theirs.path(), &args),
        Oracle::evenkeel(ours.path(), &args),
    );
    assert_eq!(difference(&their_output, &our_output), None);
    assert_eq!(tree(theirs.path()), tree(ours.path()));
}

pub(crate) fn tree(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut pending = vec![directory.to_owned()];
    while let Some(next) = pending.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                pending.push(path);
            } else {
                let name = path.strip_prefix(directory).unwrap().display().to_string();
                found.push((name, fs::read(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn faults_go_to_standard_error_with_their_place() {
    let directory = tempfile::tempdir().unwrap();
    let chart = directory.path().join("c");
    fs::create_dir_all(chart.join("templates")).unwrap();
    fs::write(
        chart.join("Chart.yaml"),
        "apiVersion: v2\nname: c\nversion: 1.0.0\n",
    )
    .unwrap();
    for (template, told) in [
        ("a: 1\nb: {{ .Values.x.y }}\n", "c/templates/a.yaml:2:13"),
        ("a: 1\nb: {{ if }}\n", "c/templates/a.yaml:2"),
        (
            "{{ fail \"no way\" }}\n",
            "execution error at (c/templates/a.yaml:1:3): no way",
        ),
        ("a: 1\n b: [\n", "YAML parse error on c/templates/a.yaml"),
    ] {
        fs::write(chart.join("templates/a.yaml"), template).unwrap();
        let output = Oracle::evenkeel(directory.path(), &["template", "r", "c"]);
        let told_text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1));
        assert!(output.stdout.is_empty());
        assert!(
            told_text.starts_with("Error: ") && told_text.contains(told),
            "{template:?}: {told_text}"
        );
    }
    let output = Oracle::evenkeel(directory.path(), &["template", "r", "nowhere"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("repo_name/path_to_chart, got: nowhere"));
}
