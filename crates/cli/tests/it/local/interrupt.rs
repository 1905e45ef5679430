//! Ctrl-C: the first stops cleanly, the second at once.

use std::io::{BufReader, Read as _};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use evenkeel_simulator::{Fault, FaultRule};

use super::fixture::{PLAIN, WEB, simulated};

/// Much longer than a clean stop takes, much shorter than the timeout that is waited for.
const PROMPTLY: Duration = Duration::from_secs(30);

fn interrupt(child: &Child) {
    let status = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(status.unwrap().success());
}

/// Reads standard error until a line holds `text`; gives all that was read.
fn read_until(reader: &mut impl std::io::BufRead, text: &str) -> String {
    let mut read = String::new();
    while !read.contains(text) {
        let before = read.len();
        reader.read_line(&mut read).unwrap();
        assert!(read.len() > before, "it ended without {text:?}:\n{read}");
    }
    read
}

#[test]
fn the_first_stops_waiting_and_says_what_was_done() {
    let env = simulated();
    env.chart("web", WEB);
    env.chart("plain", PLAIN);
    let mut child = env.start(&[
        "-n",
        "apps",
        "--component",
        "web=web",
        "--set",
        "web.behaviour=stuck",
        "--component",
        "after=plain",
        "--depends-on",
        "after=web",
        "--timeout",
        "1h",
    ]);
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut said = read_until(&mut stderr, "web: Deployment.apps/web in namespace apps: ");
    let asked = Instant::now();
    interrupt(&child);
    stderr.read_to_string(&mut said).unwrap();
    let status = child.wait().unwrap();
    let mut stdout = String::new();
    child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    assert!(asked.elapsed() < PROMPTLY, "it took {:?}", asked.elapsed());
    assert_eq!(status.code(), Some(1), "{said}");
    for part in [
        "stopping before the next object",
        "component web is stopped: it was interrupted",
        "component after is stopped: it was not begun",
        "interrupted: 0 of 2 components were done",
    ] {
        assert!(said.contains(part), "{part:?} is not said:\n{said}");
    }
    // What was written is told, and there.
    let row: Vec<_> = stdout
        .lines()
        .find(|line| line.starts_with("web"))
        .unwrap()
        .split_whitespace()
        .collect();
    assert_eq!(row[..4], ["web", "stopped", "1", "4"]);
    assert!(env.target.get("apps/v1", "Deployment", "apps", "web").is_some());
    assert!(env.target.get("v1", "ConfigMap", "apps", "after").is_none());

    // The same command goes on from there.
    let run = [
        "-n",
        "apps",
        "--component",
        "web=web",
        "--component",
        "after=plain",
    ];
    let ran = env.local(&run).exits(0);
    assert_eq!(ran.row("after")[1], "ready");
}

#[test]
fn the_first_stops_writing_at_the_next_object() {
    let env = simulated();
    let objects: Vec<(String, String)> = (0..60)
        .map(|number| {
            let text = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c{number:02}}}\n");
            (format!("templates/c{number:02}.yaml"), text)
        })
        .collect();
    let files: Vec<(&str, &str)> = objects
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    env.chart("many", &files);
    let slow = FaultRule::always(Fault::Latency(Duration::from_millis(200))).verbs(&["patch"]);
    env.target.simulated().faults().add(slow);
    let mut child = env.start(&["-n", "apps", "--component", "many=many"]);
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut said = read_until(&mut stderr, "create ConfigMap/c");
    interrupt(&child);
    stderr.read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{said}");
    let there = env.target.simulated().list("v1", "ConfigMap", "apps").unwrap();
    let made = there
        .iter()
        .filter(|object| object.pointer("/metadata/labels").is_some())
        .count();
    assert!((1..60).contains(&made), "{made} of 60 were made");
    // Each that was made was told, whichever it was.
    assert_eq!(said.matches("create ConfigMap/c").count(), made, "{said}");
}

#[test]
fn a_deletion_that_cannot_end_is_told_and_can_be_broken_off() {
    let env = simulated();
    env.chart(
        "held",
        &[(
            "templates/c.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: held, finalizers: [example.com/hold]}\n",
        )],
    );
    env.local(&["-n", "apps", "--component", "held=held"]).exits(0);
    let mut child = env.start(&["--component", "held", "--delete", "--timeout", "1h"]);
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut said = read_until(&mut stderr, "held: delete ConfigMap/held");
    let asked = Instant::now();
    interrupt(&child);
    stderr.read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{said}");
    assert!(asked.elapsed() < PROMPTLY, "it took {:?}", asked.elapsed());
    let mut stdout = String::new();
    child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    let row: Vec<_> = stdout
        .lines()
        .find(|line| line.starts_with("held"))
        .unwrap()
        .split_whitespace()
        .collect();
    assert_eq!((row[1], row[6]), ("stopped", "1"), "{stdout}");

    let late = env
        .local(&["--component", "held", "--delete", "--timeout", "1s"])
        .exits(1);
    late.says(&[
        "error: component held: ",
        "ConfigMap/held",
        "held by finalizer example.com/hold",
    ]);
    let nothing = serde_json::json!({"metadata": {"finalizers": null}});
    let cluster = env.target.simulated();
    cluster
        .patch("somebody", "v1", "ConfigMap", "apps", "held", nothing)
        .unwrap();
    env.local(&["--component", "held", "--delete"]).exits(0);
    assert!(env.target.get("v1", "Namespace", "", "apps").is_none());
}

#[test]
fn the_second_ends_at_once() {
    let env = simulated();
    env.chart("plain", PLAIN);
    env.target
        .simulated()
        .faults()
        .add(FaultRule::always(Fault::Hang).verbs(&["patch", "create"]));
    let mut child = env.start(&["-n", "apps", "--component", "plain=plain"]);
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    let writes = || env.target.simulated().counters();
    let begun = Instant::now();
    while writes().verb("create") + writes().verb("patch") == 0 {
        assert!(begun.elapsed() < PROMPTLY, "nothing was written");
        std::thread::sleep(Duration::from_millis(5));
    }
    interrupt(&child);
    said.push_str(&read_until(&mut stderr, "Ctrl-C again"));
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130), "{said}");
}
