//! Which hosts a mothership may be sent to.

use std::sync::Arc;

use evenkeel_source::{Entry, Error, HostPolicy, Scope};

use crate::host::{Answer, Host};
use crate::world::{World, chart, entry, index, oci, repository};

fn world(hosts: HostPolicy, entries: Vec<Entry>) -> World {
    World::at(Arc::new(tempfile::tempdir().unwrap()), entries, hosts)
}

fn is_refused(error: &Error) -> bool {
    error.to_string().contains("is refused") && error.to_string().contains("--source-hosts")
}

fn charts(asked: &crate::host::Asked) -> Answer {
    if asked.path.ends_with("index.yaml") {
        Answer::ok(index(&["1.0.0"]))
    } else {
        Answer::ok(chart("web", "1.0.0"))
    }
}

#[tokio::test]
async fn loopback_is_refused_by_default_and_never_asked() {
    let host = Host::start(charts);
    let world = world(HostPolicy::Public, Vec::new());
    let port = host.address.port();
    for url in [
        host.url("/"),
        format!("https://127.0.0.1:{port}/"),
        format!("https://localhost:{port}/"),
        format!("https://[::ffff:127.0.0.1]:{port}/"),
        "https://169.254.169.254/latest/meta-data".to_owned(),
    ] {
        let source = repository(&url, None);
        let error = world.version(&source).await.unwrap_err();
        assert!(is_refused(&error) && !error.is_transient(), "{url}: {error}");
    }
    let error = world
        .version(&oci(&format!("oci://127.0.0.1:{port}/x"), None))
        .await
        .unwrap_err();
    assert!(is_refused(&error), "{error}");
    // What needs no look at names is refused when a configuration is accepted.
    assert!(
        world
            .sources
            .check(&repository("https://10.0.0.1/", None))
            .is_err()
    );
    assert!(
        world
            .sources
            .check(&repository("http://charts.example.com/", None))
            .is_err()
    );
    assert!(world.sources.check(&oci("oci://10.0.0.1/x", None)).is_err());
    assert!(
        world
            .sources
            .check(&repository("https://charts.example.com/", Some("x y")))
            .is_err()
    );
    assert!(
        world
            .sources
            .check(&repository("https://charts.example.com/", Some("^1")))
            .is_ok()
    );
    assert!(host.asked().is_empty());
}

#[tokio::test]
async fn listed_hosts_and_those_with_credentials_may_be_anywhere() {
    let host = Host::start(charts);
    let source = repository(&host.url(""), None);
    let listed = HostPolicy::PublicAnd(vec![host.address.to_string().parse().unwrap()]);
    assert_eq!(world(listed, Vec::new()).version(&source).await.unwrap(), "1.0.0");
    let known = Entry::new(Scope::Below(host.url("/").parse().unwrap()));
    assert_eq!(
        world(HostPolicy::Public, vec![known])
            .version(&source)
            .await
            .unwrap(),
        "1.0.0"
    );
}

#[tokio::test]
async fn a_listed_host_cannot_lead_elsewhere() {
    let secret = Host::start(charts);
    let by_address = secret.url("/index.yaml");
    let by_name = format!("https://localhost:{}/index.yaml", secret.address.port());
    for target in [by_address, by_name] {
        let host = Host::start(move |_| Answer::redirect(&target));
        let known = entry(&host.url("/"), "me", "hunter2");
        let world = world(HostPolicy::Public, vec![known]);
        let error = world.version(&repository(&host.url(""), None)).await.unwrap_err();
        assert!(is_refused(&error), "{error}");
    }
    // Nor can its index, even one whose credentials are passed on.
    let target = secret.url("/web.tgz");
    let host = Host::start(move |_| {
        Answer::ok(format!(
            "apiVersion: v1\nentries:\n  web:\n  - {{name: web, version: 1.0.0, urls: [\"{target}\"]}}\n"
        ))
    });
    let known = Entry {
        pass_on: true,
        ..entry(&host.url("/"), "me", "hunter2")
    };
    let error = world(HostPolicy::Public, vec![known])
        .version(&repository(&host.url(""), None))
        .await
        .unwrap_err();
    assert!(is_refused(&error), "{error}");
    assert!(secret.asked().is_empty());
}

#[tokio::test]
async fn without_remote_sources_they_are_refused() {
    let sources = Arc::new(evenkeel_source::Sources::new(
        evenkeel_source::DirectoryPolicy::Refused,
        Arc::new(evenkeel_source::NoArchives),
        Arc::new(evenkeel_core::ManualClock::new(jiff::Timestamp::UNIX_EPOCH)),
        evenkeel_telemetry::Tasks::new(),
    ));
    assert!(
        sources
            .chart(&repository("https://charts.example.com", None))
            .await
            .is_err()
    );
}
