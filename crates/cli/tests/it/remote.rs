//! Charts from a real Gitea, as Helm repository and as OCI registry: `template` beside the real Helm, `local`, and
//! components of a mothership.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::OnceLock;

use evenkeel_realparts::{self as realparts, Gitea, User, Visibility};
use serde_json::{Value, json};

use crate::local::fixture::simulated;
use crate::mothership::world::{PLAIN, Real, World, component, document};
use crate::program::evenkeel;
use crate::ran::Ran;
use crate::template::{difference, repository};

/// An owner with charts that nobody sees without signing in.
const OWNER: &str = "charts";

/// A Gitea with two versions of `plain` and one of `umbrella`, which depends on it.
struct Charts {
    gitea: Gitea,
    account: User,
    /// The home of somebody who uses Helm.
    home: tempfile::TempDir,
}

fn charts() -> &'static Charts {
    static CHARTS: OnceLock<Charts> = OnceLock::new();
    CHARTS.get_or_init(|| {
        let gitea = Gitea::start().unwrap();
        gitea.create_organization(OWNER, Visibility::Private).unwrap();
        let charts = Charts {
            account: gitea.admin(),
            gitea,
            home: tempfile::tempdir().unwrap(),
        };
        charts.log_in(charts.home.path());
        for version in ["1.0.0", "1.1.0"] {
            charts.publish(version);
        }
        charts
    })
}

impl Charts {
    fn host(&self) -> String {
        self.gitea.host()
    }

    fn repository(&self) -> String {
        self.gitea.helm_repository(OWNER)
    }

    fn registry(&self) -> String {
        self.gitea.oci_registry(OWNER)
    }

    /// What Helm's user does once: both files of Helm then know this Gitea.
    fn log_in(&self, home: &Path) {
        let (name, password) = (self.account.name.as_str(), self.account.password.as_str());
        let by = ["--username", name, "--password", password];
        ran(self.helm(
            home,
            &[&["registry", "login", &self.host(), "--plain-http"], &by[..]].concat(),
        ));
        ran(self.helm(
            home,
            &[&["repo", "add", "own", &self.repository()], &by[..]].concat(),
        ));
    }

    /// Puts a version of `plain` into both.
    fn publish(&self, version: &str) {
        let folder = self.home.path().join("plain");
        for (path, text) in PLAIN {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::write(
            folder.join("Chart.yaml"),
            format!("apiVersion: v2\nname: plain\nversion: {version}\n"),
        )
        .unwrap();
        ran(self.helm(self.home.path(), &["package", "plain"]));
        let archive = format!("plain-{version}.tgz");
        ran(self.helm(
            self.home.path(),
            &["push", &archive, &self.registry(), "--plain-http"],
        ));
        let archive = fs::read(self.home.path().join(archive)).unwrap();
        self.gitea.upload_chart(OWNER, &archive).unwrap();
        let names = fs::read_to_string(self.home.path().join(".config/helm/repositories.yaml"));
        if names.is_ok() {
            ran(self.helm(self.home.path(), &["repo", "update"]));
        }
    }

    fn helm(&self, home: &Path, arguments: &[&str]) -> Output {
        let mut command = Command::new(realparts::helm().unwrap());
        command.env_clear().env("HOME", home).current_dir(home);
        command.args(arguments).output().unwrap()
    }

    fn evenkeel(&self, arguments: &[&str]) -> Output {
        let mut command = evenkeel(self.home.path());
        for variable in ["XDG_CACHE_HOME", "XDG_CONFIG_HOME"] {
            command.env_remove(variable);
        }
        command.args(arguments).output().unwrap()
    }

    /// A file of credentials for a mothership.
    fn credentials(&self) -> String {
        let User { name, password } = &self.account;
        format!(
            "- host: {}\n  username: {name}\n  password: {password}\n  plainHttp: true\n",
            self.host()
        )
    }
}

/// The output of a command that must succeed.
#[track_caller]
fn ran(output: Output) -> String {
    Ran::of(output).exits(0).stdout
}

#[test]
fn template_prints_what_helm_prints() {
    let charts = charts();
    let (registry, repository) = (format!("{}/plain", charts.registry()), charts.repository());
    let tagged = format!("{registry}:1.0.0");
    let by = [
        "--username",
        &charts.account.name,
        "--password",
        &charts.account.password,
    ];
    let commands: Vec<Vec<&str>> = vec![
        vec![&registry, "--plain-http"],
        vec![&registry, "--plain-http", "--version", "1.0.x"],
        vec![&tagged, "--plain-http"],
        vec![&registry, "--plain-http", "--version", "9.9.9"],
        vec![&tagged, "--plain-http", "--version", "1.1.0"],
        [&["plain", "--repo", &repository][..], &by[..]].concat(),
        [
            &["plain", "--repo", &repository, "--version", "~1.0"][..],
            &by[..],
        ]
        .concat(),
        [&["plain", "--repo", &repository, "--version", "7"][..], &by[..]].concat(),
        vec!["plain", "--repo", &repository],
        vec!["own/plain"],
        vec!["own/plain", "--version", "1.0.0"],
        vec!["own/nope"],
        vec!["nobody/plain"],
    ];
    for command in commands {
        let arguments = [&["template", "release"], command.as_slice()].concat();
        let (theirs, ours) = (
            charts.helm(charts.home.path(), &arguments),
            charts.evenkeel(&arguments),
        );
        assert_eq!(difference(&theirs, &ours), None, "{arguments:?}");
        if !theirs.status.success() {
            let said = String::from_utf8(ours.stderr).unwrap();
            assert!(said.starts_with("Error: "), "{arguments:?}: {said}");
            assert!(!said.contains(&charts.account.password), "{said}");
        }
    }
}

#[test]
fn missing_dependencies_are_fetched_as_helm_does() {
    let charts = charts();
    let folder = tempfile::tempdir().unwrap();
    charts.log_in(folder.path());
    let (repository, registry) = (charts.repository(), charts.registry());
    let local = folder.path().join("near");
    fs::create_dir_all(local.join("templates")).unwrap();
    fs::write(
        local.join("Chart.yaml"),
        "apiVersion: v2\nname: near\nversion: 0.3.0\n",
    )
    .unwrap();
    fs::write(local.join("templates/n.yaml"), "a: near\n").unwrap();
    for (case, dependencies) in [
        (
            "by address",
            format!("- {{name: plain, version: ^1, repository: {repository:?}}}"),
        ),
        (
            "by alias",
            "- {name: plain, version: 1.0.x, repository: \"@own\"}".to_owned(),
        ),
        (
            "by name",
            "- {name: plain, version: 1.0.0, repository: \"alias:own\", alias: other}".to_owned(),
        ),
        (
            "near by",
            "- {name: near, version: \">=0.2\", repository: \"file://../near\", condition: near.enabled}"
                .to_owned(),
        ),
        (
            "none fits",
            format!("- {{name: plain, version: ^7, repository: {repository:?}}}"),
        ),
        (
            "unknown",
            format!("- {{name: nope, version: ^7, repository: {repository:?}}}"),
        ),
        (
            "unknown name",
            "- {name: plain, version: ^1, repository: \"@nobody\"}".to_owned(),
        ),
        (
            "no range",
            format!("- {{name: plain, version: \"x y\", repository: {repository:?}}}"),
        ),
        (
            "of a registry",
            format!("- {{name: plain, version: 1.0.0, repository: {registry:?}}}"),
        ),
        (
            "of a registry, by range",
            format!("- {{name: plain, version: \">=1.0 <2\", repository: {registry:?}}}"),
        ),
        (
            "of a registry, as another",
            format!("- {{name: plain, version: ~1.0, repository: {registry:?}, alias: other}}"),
        ),
        (
            "of a registry and none fits",
            format!("- {{name: plain, version: ^7, repository: {registry:?}}}"),
        ),
        (
            "of a registry and no such version",
            format!("- {{name: plain, version: 7.0.0, repository: {registry:?}}}"),
        ),
        (
            "of a registry and unknown",
            format!("- {{name: nope, version: ^1, repository: {registry:?}}}"),
        ),
        (
            "of a registry and no range",
            format!("- {{name: plain, version: \"x y\", repository: {registry:?}}}"),
        ),
        (
            "of a registry and of a repository",
            format!(
                "- {{name: plain, version: 1.0.0, repository: {registry:?}}}\n\
                 - {{name: plain, version: 1.1.0, repository: {repository:?}, alias: other}}"
            ),
        ),
    ] {
        let make = |name: &str| {
            let chart = folder.path().join(name);
            let _ = fs::remove_dir_all(&chart);
            fs::create_dir_all(chart.join("charts")).unwrap();
            // Of another time; nothing needs it any more.
            fs::copy(
                charts.home.path().join("plain-1.1.0.tgz"),
                chart.join("charts/plain-0.9.tgz"),
            )
            .unwrap();
            fs::write(
                chart.join("Chart.yaml"),
                format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\ndependencies:\n{dependencies}\n- {{name: absent, version: 1, repository: \"file://../near\"}}\n")
                    .replace("absent, version: 1", "near, alias: second, version: 0.3.0"),
            )
            .unwrap();
            chart
        };
        let arguments = ["template", "x", "umbrella", "--dependency-update", "--plain-http"];
        let chart = make("umbrella");
        let theirs = charts.helm(folder.path(), &arguments);
        let their_lock = fs::read_to_string(chart.join("Chart.lock"));
        let their_charts = names(&chart.join("charts"));
        let chart = make("umbrella");
        let ours = evenkeel(folder.path()).args(arguments).output().unwrap();
        let but_the_cause = |mut output: Output| {
            let text = String::from_utf8(output.stdout).unwrap();
            let lines = text
                .lines()
                .map(|line| match line.strip_prefix("Save error occurred:") {
                    Some(_) => "Save error occurred",
                    None => line,
                });
            output.stdout = lines.collect::<Vec<_>>().join("\n").into_bytes();
            output
        };
        let succeeds = theirs.status.success();
        let (theirs, ours) = (but_the_cause(theirs), but_the_cause(ours));
        assert_eq!(difference(&theirs, &ours), None, "{case}");
        let lock = fs::read_to_string(chart.join("Chart.lock"));
        let but_the_time = |text: String| {
            let lines = text.lines().filter(|line| !line.starts_with("generated:"));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(
            lock.ok().map(but_the_time),
            their_lock.ok().map(but_the_time),
            "{case}"
        );
        assert_eq!(names(&chart.join("charts")), their_charts, "{case}");
        if succeeds {
            // Helm takes what we left for its own.
            ran(charts.helm(folder.path(), &["template", "x", "umbrella"]));
            let _ = fs::remove_dir_all(chart.join("charts"));
            ran(charts.helm(
                folder.path(),
                &["dependency", "build", "umbrella", "--plain-http"],
            ));
        }
    }
}

/// Helm puts the signature that lies beside an archive into the registry, and we find it there.
#[test]
fn signatures_of_a_registry_are_judged_as_helm_judges_them() {
    let charts = charts();
    let home = charts.home.path();
    let data = repository().join("crates/source/tests/data/provenance");
    let archive = "signed-1.0.0.tgz";
    fs::copy(data.join(archive), home.join(archive)).unwrap();
    let signature = home.join(format!("{archive}.prov"));
    fs::copy(data.join("signatures/helm-ed25519.prov"), signature).unwrap();
    let pushed = Ran::of(charts.helm(home, &["push", archive, &charts.registry(), "--plain-http"])).exits(0);
    let pushed = format!("{}{}", pushed.stdout, pushed.stderr);
    let keyring = |name: &str| data.join("keys").join(name).to_str().unwrap().to_owned();
    let (right, wrong) = (keyring("ed25519.asc"), keyring("rsa.asc"));
    let signed = format!("{}/signed", charts.registry());
    let (tagged, plain) = (format!("{signed}:1.0.0"), format!("{}/plain", charts.registry()));
    for (chart, keyring, accepted) in [
        (&tagged, &right, true),
        (&signed, &right, true),
        (&tagged, &wrong, false),
        (&plain, &right, false),
    ] {
        let arguments = [
            "template",
            "x",
            chart,
            "--verify",
            "--keyring",
            keyring,
            "--plain-http",
        ];
        let (theirs, ours) = (charts.helm(home, &arguments), charts.evenkeel(&arguments));
        assert_eq!(difference(&theirs, &ours), None, "{arguments:?}");
        assert_eq!(ours.status.success(), accepted);
        let last = |output: &Output| {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            let told = text.lines().find(|line| line.starts_with("Error: "));
            told.unwrap_or_default().to_owned()
        };
        // Where a signature is missing, Helm does not tell why.
        assert!(
            last(&ours).starts_with(&last(&theirs)),
            "{} {}",
            last(&theirs),
            last(&ours)
        );
    }
    // By its digest, which Helm cannot verify: the file's name is in the chart.
    let digest = pushed.lines().find_map(|line| line.strip_prefix("Digest: "));
    let exact = format!("{signed}@{}", digest.unwrap().trim());
    let arguments = [
        "template",
        "x",
        &exact,
        "--verify",
        "--keyring",
        &right,
        "--plain-http",
    ];
    ran(charts.evenkeel(&arguments));
}

fn names(folder: &Path) -> Vec<String> {
    let items = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = items
        .map(|item| item.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn local_takes_charts_as_helms_users_name_them() {
    let charts = charts();
    let env = simulated();
    charts.log_in(&env.path("."));
    env.write("credentials.yaml", &charts.credentials());
    let registry = format!("web={}/plain", charts.registry());
    env.local(&[
        "--component",
        &registry,
        "--version",
        "web=1.0.x",
        "--component",
        "named=own/plain",
        "--component",
        "found=plain",
        "--repo",
        &format!("found={}", charts.repository()),
        "--source-credentials",
        "credentials.yaml",
    ])
    .exits(0);
    for name in ["web", "named", "found"] {
        assert!(
            env.target.get("v1", "ConfigMap", "default", name).is_some(),
            "{name}"
        );
    }
    env.local(&[
        "--component",
        &registry,
        "--version",
        "web=9",
        "--source-credentials",
        "credentials.yaml",
    ])
    .exits(1)
    .says(&["component web", "1.1.0"]);
    env.local(&["--component", "web=./nope", "--version", "web=1"])
        .exits(2);
}

fn from(name: &str, source: Value, namespace: &str) -> Value {
    json!({"name": name, "namespace": namespace, "source": source})
}

#[test]
fn components_of_a_mothership_come_from_repositories_and_registries() {
    let charts = charts();
    let west = Real::west();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("credentials.yaml");
    fs::write(&file, charts.credentials()).unwrap();
    let world = World::new(&[
        "--source-credentials",
        file.to_str().unwrap(),
        "--source-refresh",
        "2s",
        "--source-cache",
        folder.path().join("cache").to_str().unwrap(),
    ]);
    let apps = west.cluster.unused_namespace("remote");
    let (repository, registry) = (charts.repository(), format!("{}/plain", charts.registry()));
    let whole = document(
        "west",
        &[
            from(
                "pinned",
                json!({"repository": {"repository": repository, "chart": "plain", "version": "1.0.0"}}),
                &apps,
            ),
            from(
                "ranged",
                json!({"oci": {"reference": registry, "version": "^1"}}),
                &apps,
            ),
        ],
    );
    world.install(&whole, &west);
    for name in ["pinned", "ranged"] {
        assert!(
            !west.get(&format!("{apps}/configmaps/{name}")).is_null(),
            "{name}"
        );
    }

    // A version that is published is found by itself.
    charts.publish("1.2.0");
    let updated = |status: &Value| component(status, "ranged")["revision"] == 2;
    world.until("west", "the new version", |status| {
        updated(status) && status["state"] == "ready"
    });

    // What cannot be obtained is told, and with which host.
    let ranged = json!({"oci": {"reference": registry, "version": "^1"}});
    let wrong = |source: Value| {
        document(
            "west",
            &[
                from("pinned", source, &apps),
                from("ranged", ranged.clone(), &apps),
            ],
        )
    };
    let missing = json!({"repository": {"repository": repository, "chart": "plain", "version": "9.9.9"}});
    world.apply(&wrong(missing), &[]);
    world.until("west", "a component that fails", |status| {
        let text = component(status, "pinned").to_string();
        text.contains("9.9.9") && text.contains("1.2.0")
    });
    // What may not be obtained is refused at once, and what holds a password as well.
    for (address, said) in [
        ("https://127.0.0.1:1/", "--source-hosts"),
        ("http://charts.example.com/", "--source-hosts"),
        ("https://me:hunter2@charts.example.com/", "source credentials"),
    ] {
        let source = json!({"repository": {"repository": address, "chart": "plain"}});
        let refused = world.apply(&wrong(source), &[]);
        assert_ne!(refused.code, Some(0), "{address}");
        assert!(refused.stderr.contains(said), "{address}: {}", refused.stderr);
        assert!(!refused.stderr.contains("hunter2"), "{}", refused.stderr);
    }
    for line in world.said() {
        assert!(!line.contains(&charts.account.password), "{line}");
    }
    world.delete("west");
}
