//! A real Gitea as Helm repository and as OCI registry, with the real Helm as the other client.

use std::sync::Arc;

use evenkeel_realparts::{Gitea, User as Account, Visibility};
use evenkeel_source::{ChartOptions, Entry, Scope, Secret};

use crate::helm::User;
use crate::world::{World, chart, entry, oci, repository};

struct Charts {
    gitea: Gitea,
    account: Account,
    user: User,
}

impl Charts {
    /// A private organisation with some versions of `web`, pushed by Helm and uploaded.
    fn start() -> Self {
        let gitea = Gitea::start().unwrap();
        gitea.create_organization("closed", Visibility::Private).unwrap();
        let account = gitea.admin();
        let user = User::new();
        let (name, password) = (account.name.as_str(), account.password.as_str());
        user.run(&[
            "registry",
            "login",
            &gitea.host(),
            "--username",
            name,
            "--password",
            password,
            "--plain-http",
        ]);
        for version in ["1.0.0", "1.1.0", "1.1.1+up2", "2.0.0-rc.1"] {
            let archive = chart("web", version);
            let file = user.path(&format!("web-{version}.tgz"));
            std::fs::write(&file, &archive).unwrap();
            let to = gitea.oci_registry("closed");
            user.run(&["push", file.to_str().unwrap(), &to, "--plain-http"]);
            gitea.upload_chart("closed", &archive).unwrap();
        }
        Self { gitea, account, user }
    }

    fn registry(&self) -> String {
        format!("{}/web", self.gitea.oci_registry("closed"))
    }

    fn me(&self) -> Entry {
        Entry {
            plain_http: true,
            scope: Scope::Host {
                host: "127.0.0.1".to_owned(),
                port: Some(self.gitea.port()),
            },
            ..entry(&self.gitea.url(), &self.account.name, &self.account.password)
        }
    }
}

#[test]
fn gitea_gives_us_what_it_gives_helm() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let charts = Charts::start();
    let user = &charts.user;
    let repository_url = charts.gitea.helm_repository("closed");
    let (name, password) = (&charts.account.name, &charts.account.password);

    // As a registry, by the file that `helm registry login` wrote.
    for (version, expected) in [
        (None, "1.1.1+up2"),
        (Some("1.0.x"), "1.0.0"),
        (Some("1.1.1+up2"), "1.1.1+up2"),
        (Some(">=2-0"), "2.0.0-rc.1"),
    ] {
        let flags: Vec<_> = version
            .map(|version| ["--version", version])
            .into_iter()
            .flatten()
            .collect();
        let theirs = user.pull(&[&[charts.registry().as_str(), "--plain-http"], flags.as_slice()].concat());
        let wanted = ChartOptions {
            version: version.map(str::to_owned),
            plain_http: true,
            ..ChartOptions::default()
        };
        let ours = runtime.block_on(user.fetch(&charts.registry(), wanted)).unwrap();
        assert_eq!(ours.archive, theirs, "{version:?}");
        assert_eq!(theirs, chart("web", expected), "{version:?}");
    }
    let tagged = format!("{}:1.0.0", charts.registry());
    let plain = ChartOptions {
        plain_http: true,
        ..ChartOptions::default()
    };
    assert_eq!(
        runtime
            .block_on(user.fetch(&tagged, plain.clone()))
            .unwrap()
            .archive,
        chart("web", "1.0.0")
    );
    let error = runtime.block_on(User::new().fetch(&tagged, plain)).unwrap_err();
    assert!(
        error.is_forbidden() || error.is_not_found(),
        "nobody is let in: {error}"
    );

    // As a Helm repository, by flags and by `helm repo add`.
    user.run(&[
        "repo",
        "add",
        "closed",
        &repository_url,
        "--username",
        name,
        "--password",
        password,
    ]);
    for version in [None, Some("1.0.x")] {
        let flags: Vec<_> = version
            .map(|version| ["--version", version])
            .into_iter()
            .flatten()
            .collect();
        let theirs = user.pull(&[&["closed/web"], flags.as_slice()].concat());
        let wanted = ChartOptions {
            version: version.map(str::to_owned),
            ..ChartOptions::default()
        };
        assert_eq!(
            runtime
                .block_on(user.fetch("closed/web", wanted.clone()))
                .unwrap()
                .archive,
            theirs
        );
        let by_flags = ChartOptions {
            repo: Some(repository_url.clone()),
            username: Some(name.clone()),
            password: Some(password.clone().into()),
            ..wanted
        };
        assert_eq!(
            runtime.block_on(user.fetch("web", by_flags)).unwrap().archive,
            theirs
        );
    }

    // As components name them, with a password and with a token.
    let token = Secret::Basic {
        username: name.clone(),
        password: charts.gitea.token().to_owned().into(),
    };
    let by_token = Entry {
        secret: Some(token),
        ..charts.me()
    };
    for entry in [charts.me(), by_token] {
        let world = World::with(vec![entry]);
        let from_registry = runtime
            .block_on(world.chart(&oci(&charts.registry(), Some("^1"))))
            .unwrap();
        let from_repository = runtime
            .block_on(world.chart(&repository(&repository_url, Some("^1"))))
            .unwrap();
        assert_eq!(from_registry.metadata().version, "1.1.1+up2");
        assert!(
            Arc::ptr_eq(&from_registry, &from_repository),
            "one archive is one chart, wherever it came from"
        );
    }
    let nobody = World::with(vec![Entry {
        secret: None,
        ..charts.me()
    }]);
    let error = runtime
        .block_on(nobody.version(&repository(&repository_url, None)))
        .unwrap_err();
    assert!(error.is_forbidden() || error.is_not_found(), "{error}");

    // A push is seen when due.
    let world = World::with(vec![charts.me()]);
    let range = oci(&charts.registry(), Some("1.x"));
    assert_eq!(runtime.block_on(world.version(&range)).unwrap(), "1.1.1+up2");
    let file = user.path("web-1.2.0.tgz");
    std::fs::write(&file, chart("web", "1.2.0")).unwrap();
    user.run(&[
        "push",
        file.to_str().unwrap(),
        &charts.gitea.oci_registry("closed"),
        "--plain-http",
    ]);
    assert_eq!(runtime.block_on(world.version(&range)).unwrap(), "1.1.1+up2");
    world.later();
    assert_eq!(runtime.block_on(world.version(&range)).unwrap(), "1.2.0");
}
