//! K29: several motherships, real processes on one real PostgreSQL database.
//!
//! Whoever is killed is replaced: its operations are taken over when their leases end, its clusters are looked at by the
//! others. Nothing is lost and nothing is done twice, which the targets' own logs tell: each write names its operation
//! and fence.

mod kills;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;
use std::time::Duration;

use evenkeel_realparts::Postgres;
use evenkeel_simulator::{Cluster, Options, Simulator, Timing};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::world::{document, eventually, wanted};
use crate::program::{BOUND, Program, evenkeel};
use crate::ran::Ran;

/// The shortest lease that outlives the stalls of a busy machine.
const LEASE: SignedDuration = SignedDuration::from_secs(4);
/// How much later than at the end of a lease somebody else works on the operation.
const TAKEN_OVER_AFTER: SignedDuration = SignedDuration::from_secs(1);
/// How much later on a machine that is busy with other things just then.
const TAKEN_OVER_LATE: SignedDuration = SignedDuration::from_secs(10);
/// How often a process is killed. The machine may be busy after one of them.
const KILLS: u32 = 3;
/// Long enough that a process can be killed while it waits for a pod.
const POD_START: Duration = Duration::from_millis(2_500);
const CLUSTERS: [&str; 4] = ["amber", "birch", "coral", "dune"];
const COMPONENTS: [&str; 2] = ["back", "front"];
/// More writes than any cluster sees.
const LOGGED: usize = 1_000_000;

const CHART: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}}
spec:
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata:
      labels: {app: {{ .Release.Name }}}
      annotations: {round: "{{ .Values.round }}"}
    spec:
      containers: [{name: web, image: registry.k8s.io/pause:3.10}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}}
data: {round: "{{ .Values.round }}"}
"#;

/// Motherships on one database, and simulated clusters.
struct Several {
    lease: SignedDuration,
    folder: tempfile::TempDir,
    processes: Vec<Program>,
    /// What those had logged that are no more.
    former: Vec<Value>,
    clusters: Vec<Cluster>,
    runtime: tokio::runtime::Runtime,
    simulator: Option<Simulator>,
    database: Postgres,
}

/// One line of a log in which an attempt begins.
#[derive(Clone, Debug)]
struct Begun {
    at: Timestamp,
    operation: String,
    attempt: u64,
    fence: u64,
    /// Cluster, component and version.
    what: (String, String, u64),
    /// Whether it brings back what somebody took away.
    repairs: bool,
}

fn text(line: &Value, field: &str) -> String {
    line[field]
        .as_str()
        .unwrap_or_else(|| panic!("{field}: {line}"))
        .to_owned()
}

impl Begun {
    fn of(line: &Value) -> Option<Self> {
        if line["message"] != "operation begins" {
            return None;
        }
        let number = |field: &str| line[field].as_u64().unwrap_or_else(|| panic!("{field}: {line}"));
        Some(Self {
            at: text(line, "timestamp").parse().unwrap(),
            operation: text(line, "operation_id"),
            attempt: number("attempt"),
            fence: number("fence"),
            what: (text(line, "cluster"), text(line, "component"), number("version")),
            repairs: line["kind"] == "repair",
        })
    }
}

fn logged(lines: &[String]) -> Vec<Value> {
    lines
        .iter()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

/// The attempts that have begun, by these lines, and have not ended.
fn under_way(log: &[Value]) -> Vec<Begun> {
    let mut begun = BTreeMap::new();
    for line in log {
        if let Some(one) = Begun::of(line) {
            begun.insert(one.operation.clone(), one);
        } else if line["message"] == "operation ended" {
            begun.remove(&text(line, "operation_id"));
        }
    }
    begun.into_values().collect()
}

impl Several {
    fn new() -> Self {
        Self::with(LEASE, POD_START)
    }

    fn with(lease: SignedDuration, pod_start: Duration) -> Self {
        let folder = evenkeel_testkit::temp_dir();
        let chart = folder.path().join("charts/web");
        std::fs::create_dir_all(chart.join("templates")).unwrap();
        std::fs::write(
            chart.join("Chart.yaml"),
            "apiVersion: v2\nname: web\nversion: 1.0.0\n",
        )
        .unwrap();
        std::fs::write(chart.join("templates/objects.yaml"), CHART).unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let options = Options {
            timing: Timing {
                pod_start,
                ..Timing::default()
            },
            ..Options::default()
        };
        let simulator = runtime.block_on(Simulator::start(options)).unwrap();
        let clusters: Vec<_> = CLUSTERS
            .iter()
            .map(|name| simulator.add_cluster(name).unwrap())
            .collect();
        for cluster in &clusters {
            cluster.log_writes(LOGGED);
        }
        Self {
            lease,
            folder,
            processes: Vec::new(),
            former: Vec::new(),
            clusters,
            runtime,
            simulator: Some(simulator),
            database: Postgres::start().unwrap(),
        }
    }

    /// A process that has begun to start.
    fn program(&self, more: &[&str]) -> Program {
        let [lease, write_timeout, heartbeat] =
            [1, 2, 4].map(|part| format!("{}ms", self.lease.as_millis() / part));
        Program::start(
            evenkeel(self.folder.path())
                .args(["mothership", "--listen", "127.0.0.1:0", "--log-format", "json"])
                .args(["--source-root", "charts", "--check-interval", "2s"])
                .args(["--lease", &lease, "--heartbeat", &heartbeat])
                .args(["--write-timeout", &write_timeout])
                .args(["--key-file", "keys", "--database", &self.database.url()])
                .args(more),
        )
    }

    fn start(&mut self, more: &[&str]) {
        let program = self.program(more);
        program.says("serving on http://");
        self.processes.push(program);
    }

    /// Kills a process, whatever it does, and begins to start another one in its place.
    fn replace(&mut self, place: usize, more: &[&str]) {
        let next = self.program(more);
        let last = std::mem::replace(&mut self.processes[place], next);
        self.former.extend(logged(&last.kill()));
    }

    /// `evenkeel …` against the process that was started last: each knows everything.
    fn run(&self, arguments: &[&str]) -> Ran {
        let said = self.processes.last().unwrap().says("serving on http://");
        let server = said.trim_start_matches("serving on ");
        let mut command = evenkeel(self.folder.path());
        command
            .args(arguments)
            .env("EVENKEEL_SERVER", server)
            .stdin(Stdio::null());
        Ran::of(command.output().unwrap())
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let ran = self.run(&[arguments, &["-o", "json"]].concat()).exits(0);
        serde_json::from_str(&ran.stdout).unwrap()
    }

    /// Wants a new version of everything, or, when there is nothing new about it, waits for it.
    fn apply(&self, round: u32, more: &[&str]) {
        for cluster in &self.clusters {
            let (name, values) = (cluster.name(), json!([{"inline": {"round": round}}]));
            let components = [
                wanted("back", "web", "apps", json!({"values": values})),
                wanted(
                    "front",
                    "web",
                    "apps",
                    json!({"values": values, "dependsOn": ["back"]}),
                ),
            ];
            let write = |file: String, text: String| {
                let path = self.folder.path().join(file);
                std::fs::write(&path, text).unwrap();
                path.to_str().unwrap().to_owned()
            };
            let file = write(format!("{name}.json"), document(name, &components).to_string());
            let kubeconfig = write(format!("{name}.kubeconfig"), cluster.kubeconfig().to_owned());
            let apply = ["cluster", "apply", "-f", &file, "--kubeconfig", &kubeconfig];
            self.run(&[&apply, more].concat()).exits(0);
        }
    }

    fn until_ready(&self, round: u32) {
        self.apply(round, &["--wait", "--timeout", &format!("{}s", BOUND.as_secs())]);
    }

    /// All that was ever logged.
    fn log(&self) -> Vec<Value> {
        let mut log = self.former.clone();
        for process in &self.processes {
            log.extend(logged(&process.stderr()));
        }
        log
    }

    /// Kills the process with the most work under way. Answers when, and what it worked on.
    fn kill_a_busy_one(&mut self) -> (Timestamp, Vec<Begun>) {
        let busy = eventually("an operation under way", || {
            let of = |process: &Program| under_way(&logged(&process.stderr())).len();
            let busiest = (0..self.processes.len()).max_by_key(|place| of(&self.processes[*place]));
            busiest
                .filter(|place| of(&self.processes[*place]) > 0)
                .ok_or_else(|| "nobody works".to_owned())
        });
        let log = logged(&self.processes.remove(busy).kill());
        let killed = evenkeel_telemetry::time::now();
        let unfinished = under_way(&log);
        self.former.extend(log);
        (killed, unfinished)
    }

    fn instances(&self) -> Vec<(String, String)> {
        let listed = self.json(&["instances"]);
        let listed = listed.as_array().unwrap().iter();
        listed
            .map(|one| (text(one, "role"), text(one, "state")))
            .collect()
    }

    fn until_instances(&self, what: &str, wanted: impl Fn(&[(String, String)]) -> bool) {
        eventually(what, || {
            let seen = self.instances();
            if wanted(&seen) {
                Ok(())
            } else {
                Err(format!("{seen:?}"))
            }
        });
    }

    /// Ends all processes as an operator does.
    fn end(mut self) {
        for process in &self.processes {
            process.signal("TERM");
        }
        for process in &mut self.processes {
            assert_eq!(process.ends(BOUND).code(), Some(0), "{process:?}");
        }
        if let Some(simulator) = self.simulator.take() {
            self.runtime.block_on(simulator.stop());
        }
    }
}

fn count(seen: &[(String, String)], state: &str) -> usize {
    seen.iter().filter(|(_, is)| is == state).count()
}

/// Nothing was lost: every component of every version has one operation, beside repairs. Nothing was done twice: no attempt wrote after a
/// newer one had, and the targets saw one operation of each component and version.
fn nothing_is_lost_or_doubled(several: &Several, rounds: u32) {
    let begun: Vec<Begun> = several.log().iter().filter_map(Begun::of).collect();
    let mut operations: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for one in begun.iter().filter(|one| !one.repairs) {
        operations
            .entry(one.what.clone())
            .or_default()
            .insert(&one.operation);
    }
    let wanted = CLUSTERS.len() * COMPONENTS.len() * usize::try_from(rounds).unwrap();
    assert_eq!(operations.len(), wanted, "{operations:#?}");
    assert!(operations.values().all(|ids| ids.len() == 1), "{operations:#?}");
    let fences: BTreeSet<_> = begun
        .iter()
        .map(|one| (&one.what.0, &one.what.1, one.fence))
        .collect();
    assert_eq!(
        fences.len(),
        begun.len(),
        "each attempt has a fence of its own: {begun:#?}"
    );

    let began: BTreeMap<_, _> = begun.iter().map(|one| (one.operation.as_str(), one)).collect();
    let wanted = usize::try_from(rounds).unwrap();
    for cluster in &several.clusters {
        let mut newest: BTreeMap<&str, u64> = BTreeMap::new();
        // The operations that wrote a component's object or the parent that holds its fence; both are called after it.
        let mut wrote: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let writes = cluster.logged_writes();
        assert!(!writes.is_empty() && writes.len() < LOGGED);
        for write in &writes {
            let (_, said) = write
                .user_agent
                .split_once("(operation ")
                .unwrap_or_else(|| panic!("{write:?}"));
            let (operation, fence) = said.trim_end_matches(')').split_once("; fence ").unwrap();
            let fence: u64 = fence.parse().unwrap();
            let began = began
                .get(operation)
                .unwrap_or_else(|| panic!("nobody began {write:?}"));
            let newest = newest.entry(&began.what.1).or_default();
            assert!(fence >= *newest, "{write:?} after fence {newest}");
            *newest = fence;
            if !began.repairs {
                let component = write.name.strip_prefix("evenkeel-").unwrap_or(&write.name);
                wrote.entry(component).or_default().insert(operation);
            }
        }
        for component in COMPONENTS {
            let operations = &wrote[component];
            assert_eq!(operations.len(), wanted, "{component}: {operations:#?}");
        }
    }
}

#[test]
fn whoever_is_killed_is_replaced() {
    let mut several = Several::new();
    for _ in 0..3 {
        several.start(&[]);
    }
    several.until_instances("three processes", |seen| count(seen, "running") == 3);
    let mut taken_over = Vec::new();
    for round in 0..KILLS {
        several.apply(round, &[]);
        let (killed, unfinished) = several.kill_a_busy_one();
        several.until_ready(round);
        let log = several.log();
        let mut last = SignedDuration::ZERO;
        for lost in &unfinished {
            let takers = log.iter().filter_map(Begun::of);
            let next = takers
                .filter(|one| one.operation == lost.operation && one.fence > lost.fence)
                .min_by_key(|one| one.fence);
            let next = next.unwrap_or_else(|| panic!("nobody took over {lost:?}"));
            assert!(next.attempt > lost.attempt, "{next:?} after {lost:?}");
            last = last.max(next.at.duration_since(killed));
        }
        taken_over.push(last);
        // Each cluster is somebody's, whoever looked at it before.
        for cluster in &several.clusters {
            cluster.delete("v1", "ConfigMap", "apps", "front").unwrap();
        }
        for cluster in &several.clusters {
            let is_back = || match cluster.get("v1", "ConfigMap", "apps", "front") {
                Ok(Some(_)) => Ok(()),
                other => Err(format!("{other:?}")),
            };
            eventually("a ConfigMap that is back", is_back);
        }
        several.until_instances("the dead one", |seen| count(seen, "running") == 2);
        several.start(&[]);
        several.until_ready(round);
    }
    println!("from each kill to the last take-over: {taken_over:?}");
    let later_than = |bound| taken_over.iter().filter(|after| **after > LEASE + bound).count();
    assert!(later_than(TAKEN_OVER_AFTER) <= 1, "{taken_over:#?}");
    assert_eq!(later_than(TAKEN_OVER_LATE), 0, "{taken_over:#?}");
    let dead = usize::try_from(KILLS).unwrap();
    several.until_instances("three processes and those that were killed", |seen| {
        count(seen, "running") == 3 && count(seen, "silent") == dead
    });
    let listed = several.run(&["instances"]).exits(0);
    listed.prints(&["LAST SEEN", "running", "silent"]);
    nothing_is_lost_or_doubled(&several, KILLS);
    several.end();
}

#[test]
fn roles_share_the_work() {
    let mut several = Several::new();
    several.start(&["--role", "control"]);
    several.apply(0, &[]);
    // It begins runs, and leaves their operations to others.
    eventually("a run", || {
        let runs = several.json(&["reconciliation", "list", CLUSTERS[0]]);
        match runs.as_array().unwrap().len() {
            1 => Ok(()),
            _ => Err(runs.to_string()),
        }
    });
    several.start(&["--role", "worker"]);
    several.until_ready(0);
    several.until_instances("both", |seen| {
        let roles: BTreeSet<_> = seen.iter().map(|(role, _)| role.as_str()).collect();
        roles == BTreeSet::from(["control", "worker"]) && count(seen, "running") == 2
    });
    let by_process: Vec<usize> = several
        .processes
        .iter()
        .map(|process| logged(&process.stderr()).iter().filter_map(Begun::of).count())
        .collect();
    assert_eq!(by_process[0], 0);
    assert!(
        by_process[1] >= CLUSTERS.len() * COMPONENTS.len(),
        "{by_process:?}"
    );
    nothing_is_lost_or_doubled(&several, 1);
    several.end();
}

/// K45: whoever works on operations is away for longer than a lease. That is nobody's failure: the clusters go on being
/// reconciled, the dead one is told as silent, and whoever comes goes on with what it left.
#[test]
fn a_worker_that_is_away_fails_nothing() {
    let mut several = Several::new();
    several.start(&["--role", "worker"]);
    several.start(&["--role", "control"]);
    several.apply(0, &[]);
    let (killed, unfinished) = several.kill_a_busy_one();
    several.until_instances("the worker is missed", |seen| count(seen, "silent") == 1);
    eventually("two leases without a worker", || {
        for cluster in CLUSTERS {
            let status = several.json(&["cluster", "status", cluster]);
            let seen = (&status["state"], &status["brokerStatus"], &status["reason"]);
            assert_eq!(seen, (&json!("reconciling"), &json!("reconciling"), &Value::Null));
        }
        let away = evenkeel_telemetry::time::now().duration_since(killed);
        match away > LEASE * 2 {
            true => Ok(()),
            false => Err(format!("{away:?}")),
        }
    });
    several.start(&["--role", "worker"]);
    several.until_ready(0);
    let begun: Vec<_> = several.log().iter().filter_map(Begun::of).collect();
    for lost in &unfinished {
        let goes_on = |one: &Begun| one.operation == lost.operation && one.fence > lost.fence;
        assert!(begun.iter().any(goes_on), "{lost:?}: {begun:#?}");
    }
    for cluster in CLUSTERS {
        let runs = several.json(&["reconciliation", "list", cluster]);
        let states: Vec<_> = runs
            .as_array()
            .unwrap()
            .iter()
            .map(|run| text(run, "state"))
            .collect();
        assert_eq!(states, ["succeeded"], "{cluster}");
    }
    nothing_is_lost_or_doubled(&several, 1);
    several.end();
}
