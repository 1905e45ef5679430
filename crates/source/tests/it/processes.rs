//! Several processes with one cache, and one that is killed.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use evenkeel_source::HostPolicy;

use crate::host::{Answer, Host};
use crate::world::{World, chart, index, repository};

/// The variable that makes this program another process of a test: the cache's folder and the repository.
const CHILD: &str = "EVENKEEL_TEST_SOURCE_CHILD";

/// Not a test of its own: what the other process does.
#[tokio::test]
async fn child() {
    let Ok(told) = std::env::var(CHILD) else { return };
    let (folder, url) = told.split_once(' ').unwrap();
    // The folder belongs to the parent.
    let mut folder = tempfile::Builder::new().tempdir_in(folder).unwrap();
    folder.disable_cleanup(true);
    let cache = folder.path().join("cache");
    std::os::unix::fs::symlink(folder.path().parent().unwrap().join("cache"), &cache).unwrap();
    let world = World::at(Arc::new(folder), Vec::new(), HostPolicy::Anywhere);
    assert_eq!(world.version(&repository(url, None)).await.unwrap(), "1.0.0");
}

fn start(world: &World, url: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "processes::child", "--nocapture"])
        .env(CHILD, format!("{} {url}", world.folder.path().display()))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn charts(asked: &crate::host::Asked) -> Answer {
    if asked.path.ends_with("index.yaml") {
        Answer::ok(index(&["1.0.0"]))
    } else {
        Answer::ok(chart("web", "1.0.0"))
    }
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{what} within a minute"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn processes_that_share_a_cache_make_one_download() {
    let host = Host::start(charts);
    let world = World::new();
    let mut children: Vec<_> = (0..3).map(|_| start(&world, &host.url("/"))).collect();
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(
        world.version(&repository(&host.url("/"), None)).await.unwrap(),
        "1.0.0"
    );
    assert_eq!(host.count("web-1.0.0.tgz"), 1);
}

#[tokio::test]
async fn a_process_that_is_killed_while_it_downloads_leaves_nothing_and_blocks_nobody() {
    let host = Host::start(|asked| {
        let answer = charts(asked);
        Answer {
            hangs: asked.path.ends_with(".tgz"),
            cut: asked.path.ends_with(".tgz").then_some(50),
            ..answer
        }
    });
    let world = World::new();
    let mut child = start(&world, &host.url("/"));
    until("the download begins", || host.count("web-1.0.0.tgz") == 1).await;
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!world.blob(&chart("web", "1.0.0")).exists());
    host.now(charts);
    let begun = Instant::now();
    assert_eq!(
        world.version(&repository(&host.url("/"), None)).await.unwrap(),
        "1.0.0"
    );
    assert!(
        begun.elapsed() < Duration::from_secs(30),
        "the lock of the dead is free"
    );
}
