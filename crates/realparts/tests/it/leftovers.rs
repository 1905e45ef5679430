//! Nothing is left behind when the process that started servers is killed.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use evenkeel_realparts::{ControlPlane, Gitea, Postgres};

use crate::support::BOUND;

/// Set for the child process, which is this test binary once more, running `started_by_the_other_test` alone.
const CHILD_VARIABLE: &str = "EVENKEEL_TEST_LEFTOVERS_CHILD";
const MARK: &str = "folders of the servers: ";

/// In the child: starts servers, says where, and waits to be killed. Otherwise: checks that a start and a stop leave
/// nothing, as the other test does for a kill.
#[test]
fn started_by_the_other_test() {
    if std::env::var_os(CHILD_VARIABLE).is_none() {
        return;
    }
    let control_plane = ControlPlane::start().unwrap();
    let _cluster = control_plane.start_cluster("doomed").unwrap();
    let postgres = Postgres::start().unwrap();
    let database = postgres.log().parent().unwrap().parent().unwrap();
    let gitea = Gitea::start().unwrap();
    let hosting = gitea.log().parent().unwrap().parent().unwrap();
    println!(
        "\n{MARK}{} {} {}",
        control_plane.folder().display(),
        database.display(),
        hosting.display()
    );
    // The parent kills us; should it be gone, nobody needs us.
    let mut line = String::new();
    let _ = std::io::stdin().read_line(&mut line);
}

#[test]
fn servers_end_with_a_killed_process() {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "leftovers::started_by_the_other_test", "--nocapture"])
        .env(CHILD_VARIABLE, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let line = output
        .lines()
        .map(Result::unwrap)
        .find_map(|line| line.strip_prefix(MARK).map(str::to_owned));
    let line = line.expect("the child tells where its servers are");
    let folders: Vec<PathBuf> = line.split(' ').map(PathBuf::from).collect();
    let servers: Vec<String> = folders.iter().flat_map(|folder| processes_of(folder)).collect();
    for name in [
        "etcd",
        "kube-apiserver",
        "kube-controller-manager",
        "postgres",
        "gitea",
    ] {
        assert!(
            servers.iter().any(|command| command.contains(name)),
            "{name} runs: {servers:#?}"
        );
    }

    child.kill().unwrap();
    child.wait().unwrap();

    let started = Instant::now();
    loop {
        let left: Vec<String> = folders.iter().flat_map(|folder| processes_of(folder)).collect();
        let folders: Vec<&PathBuf> = folders.iter().filter(|folder| folder.exists()).collect();
        if left.is_empty() && folders.is_empty() {
            return;
        }
        assert!(started.elapsed() < BOUND, "left behind: {left:#?} {folders:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Command lines of the processes that have `folder` in their arguments.
fn processes_of(folder: &Path) -> Vec<String> {
    let folder = folder.to_str().unwrap();
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .map(|bytes| String::from_utf8_lossy(&bytes).replace('\0', " "))
        .filter(|command| command.contains(folder))
        .collect()
}
