//! Charts as Helm's users name them, against Helm itself.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use evenkeel_core::ManualClock;
use evenkeel_realparts as realparts;
use evenkeel_source::{ChartOptions, Error, Helm, HelmSettings, Located, Tls};
use evenkeel_telemetry::Tasks;

use crate::host::{Answer, Host, nobody};
use crate::world::{chart, index};

/// A user of Helm with a home of its own.
pub(crate) struct User {
    home: tempfile::TempDir,
}

impl User {
    pub(crate) fn new() -> Self {
        Self {
            home: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.home.path().join(name)
    }

    /// Runs the real Helm.
    pub(crate) fn helm(&self, arguments: &[&str]) -> Output {
        Command::new(realparts::helm().unwrap())
            .args(arguments)
            .env_clear()
            .env("HOME", self.home.path())
            .current_dir(self.home.path())
            .output()
            .unwrap()
    }

    /// Runs the real Helm, which must succeed.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        let output = self.helm(arguments);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {text}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn settings(&self) -> HelmSettings {
        let home = self.home.path().to_str().unwrap().to_owned();
        HelmSettings::of_environment(move |name| (name == "HOME").then(|| home.clone()))
    }

    pub(crate) async fn fetch(&self, chart: &str, options: ChartOptions) -> Result<Located, Error> {
        let helm = Helm::new(self.settings(), options, None);
        assert_eq!(helm.path(chart)?, None);
        let clock = Arc::new(ManualClock::new(jiff::Timestamp::UNIX_EPOCH));
        helm.fetch(chart, clock, Tasks::new()).await
    }

    /// Pulls with the real Helm.
    pub(crate) fn pull(&self, arguments: &[&str]) -> Vec<u8> {
        let folder = self.path("pulled");
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        let destination = ["pull", "--destination", folder.to_str().unwrap()];
        self.run(&[&destination, arguments].concat());
        let archive = std::fs::read_dir(&folder)
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path();
        std::fs::read(archive).unwrap()
    }
}

fn charts(asked: &crate::host::Asked) -> Answer {
    const VERSIONS: [&str; 4] = ["1.0.0", "1.1.0", "2.0.0-rc.1", "1.0.1+up2"];
    if asked.path.ends_with("index.yaml") {
        return Answer::ok(index(&VERSIONS));
    }
    match VERSIONS
        .iter()
        .find(|version| asked.path.ends_with(&format!("/web-{version}.tgz")))
    {
        Some(version) => Answer::ok(chart("web", version)),
        None => Answer::status(404),
    }
}

fn options() -> ChartOptions {
    ChartOptions::default()
}

#[tokio::test]
async fn repositories_give_what_helm_gets() {
    let host = Host::start(charts);
    let url = host.url("/charts");
    let user = User::new();
    user.run(&["repo", "add", "stable", &url]);
    for (version, devel) in [
        (None, false),
        (None, true),
        (Some("1.0.0"), false),
        (Some("~1.0"), false),
        (Some("1.0.1+up2"), false),
        (Some(">=2-0"), false),
    ] {
        let mut flags = Vec::new();
        flags.extend(
            version
                .map(|version| ["--version", version])
                .into_iter()
                .flatten(),
        );
        flags.extend(devel.then_some("--devel"));
        let wanted = ChartOptions {
            version: version.map(str::to_owned),
            devel,
            ..options()
        };
        let theirs = user.pull(&[&["stable/web"], flags.as_slice()].concat());
        let ours = user.fetch("stable/web", wanted.clone()).await.unwrap();
        assert_eq!(ours.archive, theirs, "{flags:?}");
        let theirs = user.pull(&[&["web", "--repo", &url], flags.as_slice()].concat());
        let repo = Some(url.clone());
        let ours = user.fetch("web", ChartOptions { repo, ..wanted }).await.unwrap();
        assert_eq!(ours.archive, theirs, "{flags:?}");
    }
    let address = format!("{url}/web-1.1.0.tgz");
    let theirs = user.pull(&[&address]);
    assert_eq!(user.fetch(&address, options()).await.unwrap().archive, theirs);
    // The index of a named repository is the one that Helm fetched.
    host.forget();
    user.fetch("stable/web", options()).await.unwrap();
    assert_eq!((host.asked().len(), host.count("index.yaml")), (1, 0));
}

#[tokio::test]
async fn errors_begin_as_helms_do() {
    let host = Host::start(charts);
    let user = User::new();
    user.run(&["repo", "add", "stable", &host.url("/charts")]);
    let away = format!("http://{}/x", nobody());
    let good = host.url("/charts");
    for (chart, repo, version) in [
        ("nope/web", None, None),
        ("nope", None, None),
        ("stable/nope", None, None),
        ("stable/web", None, Some("9.9.9")),
        ("web", Some(good.as_str()), Some("9.9.9")),
        ("nope", Some(good.as_str()), None),
        ("web", Some(away.as_str()), None),
        ("web", Some("ftp://x/y"), None),
        ("ftp://x/y", None, None),
    ] {
        let wanted = ChartOptions {
            repo: repo.map(str::to_owned),
            version: version.map(str::to_owned),
            ..options()
        };
        let ours = user.fetch(chart, wanted).await.unwrap_err().to_string();
        let mut arguments = vec!["template", "x", chart];
        arguments.extend(repo.map(|repo| ["--repo", repo]).into_iter().flatten());
        arguments.extend(
            version
                .map(|version| ["--version", version])
                .into_iter()
                .flatten(),
        );
        let output = user.helm(&arguments);
        assert!(!output.status.success());
        let theirs = String::from_utf8(output.stderr).unwrap();
        let theirs = theirs
            .lines()
            .find_map(|line| line.strip_prefix("Error: "))
            .unwrap()
            .to_owned();
        // The causes of network errors and the hints behind a colon are our own.
        let end = ["cannot be reached", "update')", "repository"]
            .iter()
            .filter_map(|mark| theirs.find(mark).map(|at| at + mark.len()))
            .next()
            .unwrap_or(theirs.len());
        assert!(
            ours.starts_with(&theirs[..end]),
            "{chart} {repo:?}\nours:   {ours}\ntheirs: {theirs}"
        );
    }
}

#[tokio::test]
async fn credentials_of_a_named_repository_are_used() {
    let host = Host::start(|asked| match asked.header("authorization") {
        Some("Basic bWU6aHVudGVyMg==") => charts(asked),
        _ => Answer::status(401),
    });
    let url = host.url("/charts");
    let user = User::new();
    user.run(&[
        "repo",
        "add",
        "private",
        &url,
        "--username",
        "me",
        "--password",
        "hunter2",
    ]);
    assert!(user.fetch("private/web", options()).await.is_ok());
    let address = format!("{url}/web-1.0.0.tgz");
    assert!(
        user.fetch(&address, options()).await.is_ok(),
        "the repository's host is known"
    );
    let repo = Some(url);
    let nobody = ChartOptions {
        repo: repo.clone(),
        ..options()
    };
    assert!(user.fetch("web", nobody).await.unwrap_err().is_forbidden());
    let me = ChartOptions {
        repo,
        username: Some("me".to_owned()),
        password: Some("hunter2".to_owned().into()),
        ..options()
    };
    assert!(user.fetch("web", me.clone()).await.is_ok());
    assert!(!format!("{me:?}").contains("hunter2"));
}

/// The signature lies where the chart does, and whoever may have the one may have the other.
#[tokio::test]
async fn signatures_are_fetched_by_the_credentials_of_the_repository() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/provenance");
    let read = move |path: &str| std::fs::read(data.join(path)).unwrap();
    let (archive, signature) = (read("signed-1.0.0.tgz"), read("signatures/rsa.prov"));
    let host = Host::start(move |asked| {
        // Base64 of `me:hunter2`.
        if asked.header("authorization") != Some("Basic bWU6aHVudGVyMg==") {
            return Answer::status(401);
        }
        match asked.path.as_str() {
            "/index.yaml" => Answer::ok(
                "apiVersion: v1\nentries:\n  signed:\n  - {name: signed, version: 1.0.0, urls: [signed-1.0.0.tgz]}\n",
            ),
            "/signed-1.0.0.tgz" => Answer::ok(archive.clone()),
            "/signed-1.0.0.tgz.prov" => Answer::ok(signature.clone()),
            _ => Answer::status(404),
        }
    });
    let user = User::new();
    let by = |keyring: &str| ChartOptions {
        repo: Some(host.url("/")),
        username: Some("me".to_owned()),
        password: Some("hunter2".to_owned().into()),
        verify: true,
        keyring: Some(
            Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("tests/data/provenance/keys")
                .join(keyring),
        ),
        ..options()
    };
    // In 2027, when the key lives.
    let clock = || Arc::new(ManualClock::new(jiff::Timestamp::constant(1_800_000_000, 0)));
    let fetch = async |keyring: &str| {
        let helm = Helm::new(user.settings(), by(keyring), None);
        helm.fetch("signed", clock(), Tasks::new()).await
    };
    assert!(fetch("rsa.asc").await.is_ok());
    assert_eq!(
        fetch("ed25519.asc").await.unwrap_err().to_string(),
        "openpgp: signature made by unknown entity"
    );
    let asked = host.asked();
    assert_eq!(
        asked.iter().filter(|asked| asked.path.ends_with(".prov")).count(),
        2
    );
}

#[tokio::test]
async fn flags_that_cannot_be_honoured_are_refused() {
    let user = User::new();
    let host = Host::start(charts);
    let missing = ChartOptions {
        tls: Tls {
            ca_file: Some(Path::new("/does/not/exist").to_owned()),
            ..Tls::default()
        },
        repo: Some(format!("https://{}", host.address)),
        ..options()
    };
    assert!(
        user.fetch("web", missing)
            .await
            .unwrap_err()
            .to_string()
            .contains("/does/not/exist")
    );
}
