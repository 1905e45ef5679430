//! `evenkeel demo`, the newcomer's first command.

use std::process::Stdio;
use std::time::Duration;

use crate::program::{BOUND, Program, evenkeel};

/// A clean end takes less than this, with much to spare.
const PROMPTLY: Duration = Duration::from_secs(20);

#[test]
fn once_shows_a_fleet_ready_and_healed_and_ends() {
    let folder = evenkeel_testkit::temp_dir();
    let output = evenkeel(folder.path())
        .args(["demo", "--once"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (stdout, stderr) = (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    );
    assert_eq!(output.status.code(), Some(0), "{stdout}\n{stderr}");
    for part in [
        "registered amber",
        "registered birch",
        "registered coral",
        "all clusters are ready after",
        "healed: Deployment shop-catalog is back",
    ] {
        assert!(stdout.contains(part), "{part:?} is not said:\n{stdout}");
    }
    for cluster in ["amber", "birch", "coral"] {
        let ready = stdout
            .lines()
            .any(|line| line.starts_with(cluster) && line.contains("ready"));
        assert!(ready, "{cluster} did not become ready:\n{stdout}");
    }
    assert_eq!(stderr, "", "a demo that goes well has nothing to warn of");
    // Nothing is left behind where it was run.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn it_serves_until_interrupted() {
    let folder = evenkeel_testkit::temp_dir();
    let mut demo = Program::start(evenkeel(folder.path()).arg("demo"));
    let hint = demo.prints("export EVENKEEL_SERVER=");
    let server = hint
        .trim()
        .trim_start_matches("export EVENKEEL_SERVER=")
        .to_owned();
    let kubectl = demo.prints("get deployments");
    let list = evenkeel(folder.path())
        .args(["cluster", "list"])
        .env("EVENKEEL_SERVER", server)
        .output()
        .unwrap();
    let list = String::from_utf8(list.stdout).unwrap();
    assert_eq!(
        list.lines().filter(|line| line.contains(" ready ")).count(),
        3,
        "{list}"
    );
    // The line to try with kubectl is one that works.
    let mut words = kubectl.split_whitespace().skip(1);
    let mut real = std::process::Command::new(evenkeel_testkit::realparts::kubectl().unwrap());
    let shown = real.args(words.by_ref()).output().unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("shop-catalog"), "{shown}");

    demo.signal("INT");
    let status = demo.ends(PROMPTLY);
    assert_eq!(status.code(), Some(0), "{demo:?}");
    assert!(PROMPTLY < BOUND);
}
