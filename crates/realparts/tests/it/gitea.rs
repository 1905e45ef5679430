//! Gitea, as its clients see it: git, and Helm in both its ways.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use evenkeel_realparts::{Error, Gitea, Visibility};

fn gitea() -> &'static Gitea {
    static SHARED: OnceLock<Gitea> = OnceLock::new();
    SHARED.get_or_init(|| Gitea::start().unwrap())
}

/// Helm with a home of its own, so that credentials and repositories of whoever runs the tests stay out.
fn helm(home: &Path, arguments: &[&str]) -> Output {
    Command::new(evenkeel_realparts::helm().unwrap())
        .args(arguments)
        .env("HOME", home)
        .env("HELM_REGISTRY_CONFIG", home.join("registry.json"))
        .current_dir(home)
        .output()
        .unwrap()
}

fn succeed(output: &Output) -> String {
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success(), "{text}");
    text
}

/// A packaged chart of that name and version.
fn package(home: &Path, name: &str, version: &str) -> PathBuf {
    let chart = home.join(name);
    std::fs::create_dir_all(chart.join("templates")).unwrap();
    std::fs::write(
        chart.join("Chart.yaml"),
        format!("apiVersion: v2\nname: {name}\nversion: {version}\n"),
    )
    .unwrap();
    std::fs::write(
        chart.join("templates/map.yaml"),
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}'}\n",
    )
    .unwrap();
    succeed(&helm(home, &["package", chart.to_str().unwrap()]));
    home.join(format!("{name}-{version}.tgz"))
}

#[test]
fn a_repository_is_created_and_cloned() {
    let gitea = gitea();
    gitea.create_organization("builders", Visibility::Public).unwrap();
    gitea
        .create_repository("builders", "platform", Visibility::Public)
        .unwrap();
    let again = gitea.create_repository("builders", "platform", Visibility::Public);
    assert!(
        matches!(again, Err(Error::Refused { status: 409, .. })),
        "{again:?}"
    );

    let folder = tempfile::tempdir().unwrap();
    let clone = Command::new("git")
        .args(["clone", "--quiet", &gitea.clone_url("builders", "platform")])
        .current_dir(folder.path())
        .env("GIT_TERMINAL_PROMPT", "0")
        .output()
        .unwrap();
    succeed(&clone);
    assert!(folder.path().join("platform/README.md").is_file());
}

#[test]
fn what_is_private_is_for_members() {
    let gitea = gitea();
    let user = gitea.create_user("somebody").unwrap();
    gitea
        .create_repository("somebody", "secret", Visibility::Private)
        .unwrap();
    let url = gitea.clone_url("somebody", "secret");
    let ask = |url: &str| {
        Command::new("git")
            .args(["-c", "credential.helper=", "ls-remote", url])
            .env("GIT_TERMINAL_PROMPT", "0")
            .output()
            .unwrap()
    };
    assert!(!ask(&url).status.success());
    let with = |password: &str| url.replacen("http://", &format!("http://somebody:{password}@"), 1);
    assert!(succeed(&ask(&with(&user.password))).contains("refs/heads/main"));
    let token = gitea.create_token(&user).unwrap();
    assert!(succeed(&ask(&with(&token))).contains("refs/heads/main"));
}

#[test]
fn charts_go_in_and_out_by_oci() {
    let gitea = gitea();
    let home = tempfile::tempdir().unwrap();
    let archive = package(home.path(), "pushed", "1.2.3");
    let admin = gitea.admin();
    succeed(&helm(
        home.path(),
        &[
            "registry",
            "login",
            &gitea.host(),
            "--plain-http",
            "-u",
            &admin.name,
            "-p",
            &admin.password,
        ],
    ));
    let registry = gitea.oci_registry(&admin.name);
    let pushed = succeed(&helm(
        home.path(),
        &["push", archive.to_str().unwrap(), &registry, "--plain-http"],
    ));
    assert!(pushed.contains("Digest: sha256:"), "{pushed}");
    std::fs::create_dir(home.path().join("pulled")).unwrap();
    succeed(&helm(
        home.path(),
        &[
            "pull",
            &format!("{registry}/pushed"),
            "--plain-http",
            "-d",
            "pulled",
        ],
    ));
    let pulled = std::fs::read(home.path().join("pulled/pushed-1.2.3.tgz")).unwrap();
    assert_eq!(pulled, std::fs::read(archive).unwrap());
}

#[test]
fn charts_go_in_and_out_by_the_helm_repository() {
    let gitea = gitea();
    let home = tempfile::tempdir().unwrap();
    let admin = gitea.admin();
    for version in ["0.1.0", "0.2.0"] {
        let archive = std::fs::read(package(home.path(), "uploaded", version)).unwrap();
        gitea.upload_chart(&admin.name, &archive).unwrap();
    }
    let broken = gitea.upload_chart(&admin.name, b"no archive");
    assert!(matches!(broken, Err(Error::Refused { .. })), "{broken:?}");

    let repository = gitea.helm_repository(&admin.name);
    std::fs::create_dir(home.path().join("pulled")).unwrap();
    let arguments = ["pull", "uploaded", "--repo", &repository, "-d", "pulled"];
    succeed(&helm(home.path(), &arguments));
    assert!(home.path().join("pulled/uploaded-0.2.0.tgz").is_file());
}
