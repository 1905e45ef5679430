//! Helm repositories. K39: many who want one chart make one download, and what is half there is never used.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::Digest;
use evenkeel_source::Error;

use crate::host::{Answer, Host};
use crate::world::{World, chart, index, repository};

/// A repository of some versions of `web` that knows its validators.
fn answers(
    versions: &'static [&'static str],
) -> impl Fn(&crate::host::Asked) -> Answer + Send + Sync + 'static {
    move |asked| {
        if asked.path.ends_with("/index.yaml") {
            let body = index(versions);
            let etag = format!("\"{}\"", Digest::of(&body).short());
            if asked.header("if-none-match") == Some(&etag) {
                return Answer::status(304);
            }
            return Answer::ok(body).header("etag", etag);
        }
        match versions
            .iter()
            .find(|version| asked.path.ends_with(&format!("/web-{version}.tgz")))
        {
            Some(version) => Answer::ok(chart("web", version)),
            None => Answer::status(404),
        }
    }
}

#[tokio::test]
async fn a_range_takes_the_newest_release_that_fits() {
    let host = Host::start(answers(&[
        "1.2.3+build.1",
        "2.0.0",
        "1.10.0",
        "3.0.0-rc.1",
        "1.9.9",
    ]));
    let world = World::new();
    for (wanted, version) in [
        (None, "2.0.0"),
        (Some("^1"), "1.10.0"),
        (Some("1.2.3+build.1"), "1.2.3+build.1"),
        (Some(">=3-0"), "3.0.0-rc.1"),
    ] {
        let source = repository(&host.url("/charts"), wanted);
        assert_eq!(world.version(&source).await.unwrap(), version, "{wanted:?}");
    }
    assert_eq!(host.count("index.yaml"), 1, "one index serves all");
    assert!(
        host.asked()
            .iter()
            .all(|asked| asked.path.starts_with("/charts/"))
    );
    let error = world
        .version(&repository(&host.url("/charts"), Some("9")))
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("3.0.0-rc.1, 2.0.0") && !error.is_transient(),
        "{error}"
    );
}

#[tokio::test]
async fn what_is_fresh_costs_no_request_and_what_is_not_one_conditional_one() {
    let host = Host::start(answers(&["1.0.0"]));
    let world = World::new();
    let source = repository(&host.url(""), Some("1.x"));
    let first = world.chart(&source).await.unwrap();
    host.forget();
    let second = world.chart(&source).await.unwrap();
    assert!(Arc::ptr_eq(&first, &second) && host.asked().is_empty());
    world.later();
    world.chart(&source).await.unwrap();
    let asked = host.asked();
    assert_eq!(asked.len(), 1);
    assert!(asked[0].header("if-none-match").is_some());
    // Another process asks in the same way, and takes the archive from the disk.
    host.forget();
    assert_eq!(world.again().version(&source).await.unwrap(), "1.0.0");
    let asked = host.asked();
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert!(asked[0].header("if-none-match").is_some());
}

#[tokio::test]
async fn a_new_version_is_found_when_due_and_at_once_when_it_is_named() {
    let host = Host::start(answers(&["1.0.0"]));
    let world = World::new();
    let range = repository(&host.url(""), Some("1.x"));
    assert_eq!(world.version(&range).await.unwrap(), "1.0.0");
    host.now(answers(&["1.0.0", "1.1.0"]));
    assert_eq!(world.version(&range).await.unwrap(), "1.0.0");
    let named = repository(&host.url(""), Some("1.1.0"));
    assert_eq!(world.version(&named).await.unwrap(), "1.1.0");
    world.later();
    assert_eq!(world.version(&range).await.unwrap(), "1.1.0");
}

#[tokio::test]
async fn many_who_want_one_chart_make_one_download() {
    let host = Host::start(answers(&["1.0.0"]));
    let world = World::new();
    let others: Vec<_> = (0..4).map(|_| world.again()).collect();
    let source = repository(&host.url(""), None);
    let asking = (0..32).map(|n| others[n % others.len()].version(&source));
    for version in futures::future::join_all(asking).await {
        assert_eq!(version.unwrap(), "1.0.0");
    }
    assert_eq!(host.count("web-1.0.0.tgz"), 1);
}

#[tokio::test]
async fn a_damaged_or_truncated_file_of_the_cache_is_downloaded_again() {
    let host = Host::start(answers(&["1.0.0"]));
    let world = World::new();
    let source = repository(&host.url(""), None);
    world.version(&source).await.unwrap();
    let archive = chart("web", "1.0.0");
    for damage in [&archive[..archive.len() / 2], b"", b"nonsense"] {
        std::fs::write(world.blob(&archive), damage).unwrap();
        host.forget();
        assert_eq!(world.again().version(&source).await.unwrap(), "1.0.0");
        assert_eq!(host.count("web-1.0.0.tgz"), 1);
        assert_eq!(std::fs::read(world.blob(&archive)).unwrap(), archive);
    }
}

#[tokio::test]
async fn a_download_that_breaks_off_leaves_nothing() {
    let host = Host::start(answers(&["1.0.0"]));
    let good = answers(&["1.0.0"]);
    host.now(move |asked| match good(asked) {
        answer if asked.path.ends_with(".tgz") => answer.cut(100),
        answer => answer,
    });
    let world = World::new();
    let source = repository(&host.url(""), None);
    let error = world.version(&source).await.unwrap_err();
    assert!(error.is_transient(), "{error}");
    assert!(!world.blob(&chart("web", "1.0.0")).exists());
    host.now(answers(&["1.0.0"]));
    assert_eq!(world.version(&source).await.unwrap(), "1.0.0");
}

#[tokio::test]
async fn an_archive_with_another_digest_is_refused() {
    let host = Host::start(|asked| {
        if asked.path.ends_with("index.yaml") {
            Answer::ok(index(&["1.0.0"]))
        } else {
            Answer::ok(chart("web", "6.6.6"))
        }
    });
    let world = World::new();
    let error = world.version(&repository(&host.url(""), None)).await.unwrap_err();
    let (wanted, found) = (
        Digest::of(chart("web", "1.0.0")),
        Digest::of(chart("web", "6.6.6")),
    );
    let text = error.to_string();
    assert!(
        text.contains(&wanted.to_string()) && text.contains(&found.to_string()),
        "{text}"
    );
    assert!(!error.is_transient());
    assert!(!world.blob(&chart("web", "6.6.6")).exists());
}

#[tokio::test]
async fn a_host_that_is_down_leaves_the_version_known_last() {
    let host = Host::start(answers(&["1.0.0"]));
    let world = World::new();
    let source = repository(&host.url(""), Some("1.x"));
    world.version(&source).await.unwrap();
    for status in [500, 503, 429] {
        host.now(move |_| Answer::status(status));
        world.later();
        assert_eq!(world.version(&source).await.unwrap(), "1.0.0");
        host.forget();
        // For a while nobody asks again.
        assert_eq!(world.version(&source).await.unwrap(), "1.0.0");
        assert!(host.asked().is_empty());
        // Also after a restart.
        assert_eq!(world.again().version(&source).await.unwrap(), "1.0.0");
    }
    // Without anything known it is an error worth another try.
    let unknown = World::new().version(&source).await.unwrap_err();
    assert!(unknown.is_transient(), "{unknown}");
    // What is gone, or closed to us, is not bridged.
    for status in [404, 403] {
        host.now(move |_| Answer::status(status));
        world.later();
        let error = world.version(&source).await.unwrap_err();
        assert!(
            !error.is_transient() && error.is_forbidden() == (status == 403),
            "{error}"
        );
    }
}

#[tokio::test]
async fn too_many_requests_say_how_long_to_wait() {
    let host = Host::start(|_| Answer::status(429).header("retry-after", "17"));
    let world = World::new();
    let source = repository(&host.url(""), None);
    let error = world.version(&source).await.unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_secs(17)));
    host.forget();
    assert!(world.version(&source).await.is_err());
    assert!(host.asked().is_empty(), "it is left alone for that long");
}

#[tokio::test]
async fn what_is_too_large_is_refused() {
    let host = Host::start(|asked| {
        let mut answer = Answer::ok(index(&["1.0.0"]));
        if asked.path.ends_with("index.yaml") {
            // 70 MB of nothing.
            answer.body = vec![b' '; 70_000_000];
        }
        answer
    });
    let world = World::new();
    let error = world.version(&repository(&host.url(""), None)).await.unwrap_err();
    let is_oversized = |error: &Error| error.to_string().contains("larger than 67108864 bytes");
    assert!(is_oversized(&error) && !error.is_transient(), "{error}");
}

#[tokio::test]
async fn an_index_that_makes_no_sense_is_an_error_of_the_repository() {
    for body in [
        "",
        "<html></html>",
        "entries: {}",
        "apiVersion: v1\nentries: {web: []}",
    ] {
        let host = Host::start(move |_| Answer::ok(body));
        let error = World::new()
            .version(&repository(&host.url("/x"), None))
            .await
            .unwrap_err();
        assert!(
            error.to_string().contains("/x") && !error.is_transient(),
            "{body}: {error}"
        );
    }
}

#[tokio::test]
async fn an_index_without_digests_and_with_several_addresses_works() {
    let host = Host::start(|asked| match asked.path.as_str() {
        "/index.yaml" => Answer::ok(
            "apiVersion: v1\nentries:\n  web:\n  - {name: web, version: 1.0.0, urls: [gone.tgz, files/web.tgz]}\n",
        ),
        "/files/web.tgz" => Answer::ok(chart("web", "1.0.0")),
        _ => Answer::status(404),
    });
    let world = World::new();
    let source = repository(&host.url(""), None);
    assert_eq!(world.version(&source).await.unwrap(), "1.0.0");
    world.later();
    host.forget();
    assert_eq!(world.version(&source).await.unwrap(), "1.0.0");
    assert_eq!(host.count(".tgz"), 0);
}

#[tokio::test]
async fn what_was_evicted_is_downloaded_again() {
    let host = Host::start(answers(&["1.0.0"]));
    let world = World::new();
    let source = repository(&host.url(""), None);
    world.version(&source).await.unwrap();
    let other = world.again();
    std::fs::remove_file(world.blob(&chart("web", "1.0.0"))).unwrap();
    assert_eq!(other.version(&source).await.unwrap(), "1.0.0");
    assert_eq!(host.count("web-1.0.0.tgz"), 2);
}

#[tokio::test]
async fn a_host_that_does_not_answer_keeps_nobody_else_waiting() {
    let silent = Host::start(|_| Answer {
        hangs: true,
        ..Answer::ok("half").cut(2)
    });
    let host = Host::start(answers(&["1.0.0"]));
    let world = World::new();
    let waiting: Vec<_> = (0..7)
        .map(|n| repository(&silent.url(&format!("/{n}")), None))
        .collect();
    let waiting = waiting.iter().map(|source| world.version(source));
    let source = repository(&host.url(""), None);
    tokio::select! {
        biased;
        ended = futures::future::join_all(waiting) => panic!("{ended:?}"),
        version = world.version(&source) => assert_eq!(version.unwrap(), "1.0.0"),
    }
    assert!(
        silent.asked().len() <= 4,
        "one host is asked a few things at a time"
    );
}
