//! Secrets stay with the host they are for.

use evenkeel_core::Digest;
use evenkeel_source::Entry;

use crate::host::{Answer, Host};
use crate::world::{World, chart, entry, index, repository};

/// `me:hunter2`.
const BASIC: &str = "Basic bWU6aHVudGVyMg==";

fn archive(_: &crate::host::Asked) -> Answer {
    Answer::ok(chart("web", "1.0.0"))
}

#[tokio::test]
async fn a_redirect_to_another_host_carries_no_credentials() {
    let elsewhere = Host::start(archive);
    let target = elsewhere.url("/files/web.tgz?signature=hunter2");
    let host = Host::start(move |asked| {
        if asked.header("authorization") != Some(BASIC) {
            return Answer::status(401);
        }
        if asked.path.ends_with("index.yaml") {
            Answer::ok(index(&["1.0.0"]))
        } else {
            Answer::redirect(&target)
        }
    });
    let world = World::with(vec![entry(&host.url("/"), "me", "hunter2")]);
    assert_eq!(
        world.version(&repository(&host.url(""), None)).await.unwrap(),
        "1.0.0"
    );
    let asked = elsewhere.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].header("authorization"), None);

    elsewhere.now(|_| Answer::status(500));
    let source = repository(&host.url(""), None);
    let error = World::with(vec![entry(&host.url("/"), "me", "hunter2")])
        .version(&source)
        .await
        .unwrap_err();
    assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
}

#[tokio::test]
async fn an_archive_on_another_host_gets_credentials_only_when_told_so() {
    let elsewhere = Host::start(archive);
    let target = elsewhere.url("/web.tgz");
    let host = Host::start(move |_| {
        let digest = Digest::of(chart("web", "1.0.0")).hex();
        Answer::ok(format!(
            "apiVersion: v1\nentries:\n  web:\n  - {{name: web, version: 1.0.0, digest: {digest}, urls: [\"{target}\"]}}\n"
        ))
    });
    let plain = entry(&host.url("/"), "me", "hunter2");
    for (pass_on, expected) in [(false, None), (true, Some(BASIC))] {
        elsewhere.forget();
        let world = World::with(vec![Entry {
            pass_on,
            ..plain.clone()
        }]);
        world.version(&repository(&host.url(""), None)).await.unwrap();
        assert_eq!(elsewhere.asked()[0].header("authorization"), expected);
    }
    // Even then not to where the other host redirects.
    let third = Host::start(archive);
    let target = third.url("/x");
    elsewhere.now(move |_| Answer::redirect(&target));
    let world = World::with(vec![Entry {
        pass_on: true,
        ..plain
    }]);
    world.version(&repository(&host.url(""), None)).await.unwrap();
    assert_eq!(third.asked()[0].header("authorization"), None);
}

#[tokio::test]
async fn a_host_that_refuses_is_named_and_the_password_is_not() {
    let host = Host::start(|_| Answer::status(401));
    let world = World::with(vec![entry(&host.url("/"), "me", "hunter2")]);
    let error = world
        .version(&repository(&host.url("/x"), None))
        .await
        .unwrap_err();
    let text = format!("{error} {error:?}");
    assert!(
        text.contains(&host.address.to_string()) && error.is_forbidden(),
        "{text}"
    );
    assert!(!text.contains("hunter2") && !text.contains("bWU6"));
}

#[tokio::test]
async fn redirects_in_circles_end() {
    let host = Host::start(|_| Answer::redirect("/again"));
    let error = World::new()
        .version(&repository(&host.url(""), None))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("redirects more than"), "{error}");
    assert_eq!(host.asked().len(), 11);
}
