//! A mothership of a test's own, real clusters that one test at a time may have, and charts.

use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use evenkeel_testkit::TestCluster;
use serde_json::{Value, json};

use crate::program::{BOUND, Program, evenkeel};

use crate::ran::Ran;

/// Between two looks at something that nobody tells of.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// One mothership on a database of its own, and its user's files.
pub(crate) struct World {
    pub(crate) folder: tempfile::TempDir,
    arguments: Vec<String>,
    program: Option<Program>,
}

/// A real cluster, as long as it is held; nothing of a mothership is in it at first.
pub(crate) struct Real {
    pub(crate) cluster: &'static TestCluster,
    _alone: MutexGuard<'static, ()>,
}

/// Looks until `look` gives something.
#[track_caller]
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let end = Instant::now() + BOUND;
    loop {
        match look() {
            Ok(found) => return found,
            Err(seen) if Instant::now() > end => panic!("{what}: not within {BOUND:?}; seen last: {seen}"),
            Err(_) => std::thread::sleep(LOOK_AGAIN),
        }
    }
}

impl World {
    /// A mothership that looks often, tries again soon, and logs as programs read it.
    pub(crate) fn new(more: &[&str]) -> Self {
        let folder = evenkeel_testkit::temp_dir();
        fs::create_dir(folder.path().join("charts")).unwrap();
        let usual = [
            "--check-interval",
            "2s",
            "--retry-first",
            "500ms",
            "--ready-timeout",
            "60s",
            "--log-format",
            "json",
        ];
        let arguments = usual
            .iter()
            .chain(more)
            .map(|argument| (*argument).to_owned())
            .collect();
        let mut world = Self {
            folder,
            arguments,
            program: None,
        };
        world.start();
        world
    }

    /// Starts the mothership on its database.
    pub(crate) fn start(&mut self) {
        let database = self.path("state/fleet.db");
        let mut command = evenkeel(self.folder.path());
        command
            .args([
                "mothership",
                "--listen",
                "127.0.0.1:0",
                "--source-root",
                "charts",
                "--database",
            ])
            .arg(database);
        let program = Program::start(command.args(&self.arguments));
        program.says("serving on http://");
        self.program = Some(program);
    }

    pub(crate) fn program(&mut self) -> &mut Program {
        self.program.as_mut().unwrap()
    }

    /// Ends the mothership as a power cut would; gives what it had logged.
    pub(crate) fn kill(&mut self) -> Vec<String> {
        self.program.take().unwrap().kill()
    }

    /// Where the API is.
    pub(crate) fn server(&self) -> String {
        let line = self.program.as_ref().unwrap().says("serving on http://");
        line.trim_start_matches("serving on ").to_owned()
    }

    /// All that the mothership has said.
    pub(crate) fn said(&self) -> Vec<String> {
        self.program.as_ref().unwrap().stderr()
    }

    /// The mothership's log so far; lines that are no JSON are none of it.
    pub(crate) fn logs(&self) -> Vec<Value> {
        self.said()
            .iter()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// Writes a chart below the source root.
    pub(crate) fn chart(&self, name: &str, files: &[(&str, &str)]) {
        self.write(
            &format!("charts/{name}/Chart.yaml"),
            &format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n"),
        );
        for (file, text) in files {
            self.write(&format!("charts/{name}/{file}"), text);
        }
    }

    /// Copies an example chart below the source root.
    pub(crate) fn example(&self, name: &str) {
        let from = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
        let mut copy = std::process::Command::new("cp");
        let copied = copy
            .arg("-r")
            .arg(format!("{from}/{name}"))
            .arg(self.path("charts"))
            .status()
            .unwrap();
        assert!(copied.success());
    }

    /// `evenkeel …` against this mothership.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        let mut command = evenkeel(self.folder.path());
        command.args(arguments).env("EVENKEEL_SERVER", self.server());
        Ran::of(command.stdin(std::process::Stdio::null()).output().unwrap())
    }

    /// `evenkeel …` beside no mothership.
    pub(crate) fn run_alone(&self, arguments: &[&str]) -> Ran {
        let mut command = evenkeel(self.folder.path());
        Ran::of(
            command
                .args(arguments)
                .stdin(std::process::Stdio::null())
                .output()
                .unwrap(),
        )
    }

    /// `evenkeel cluster …`, whose output is JSON.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let ran = self.run(&[arguments, &["-o", "json"]].concat()).exits(0);
        serde_json::from_str(&ran.stdout).unwrap()
    }

    /// `evenkeel cluster apply -f` of a document; `more` arguments.
    pub(crate) fn apply(&self, document: &Value, more: &[&str]) -> Ran {
        let name = document["name"].as_str().unwrap();
        let file = self.write(&format!("{name}.json"), &document.to_string());
        self.run(&[&["cluster", "apply", "-f", file.to_str().unwrap()], more].concat())
    }

    /// The same with the kubeconfig of `real`, waited for until it is ready.
    pub(crate) fn install(&self, document: &Value, real: &Real) -> Ran {
        let kubeconfig = real.cluster.kubeconfig_file().to_str().unwrap();
        self.apply(
            document,
            &["--kubeconfig", kubeconfig, "--wait", "--timeout", "90s"],
        )
        .exits(0)
    }

    pub(crate) fn status(&self, name: &str) -> Value {
        self.json(&["cluster", "status", name])
    }

    /// Waits until the status of cluster `name` is as `wanted` says.
    #[track_caller]
    pub(crate) fn until(&self, name: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        eventually(what, || {
            let status = self.status(name);
            if wanted(&status) {
                Ok(status)
            } else {
                Err(status.to_string())
            }
        })
    }

    #[track_caller]
    pub(crate) fn until_ready(&self, name: &str) -> Value {
        self.until(name, "a ready cluster", |status| status["state"] == "ready")
    }

    /// The runs of a cluster, newest first.
    pub(crate) fn runs(&self, name: &str) -> Vec<Value> {
        self.json(&["reconciliation", "list", name])
            .as_array()
            .unwrap()
            .clone()
    }

    /// The operations of a run.
    pub(crate) fn operations(&self, run: &Value) -> Vec<Value> {
        let run = self.json(&["reconciliation", "get", run["id"].as_str().unwrap()]);
        run["operations"].as_array().unwrap().clone()
    }

    /// `evenkeel cluster delete`, waited for; leaves the real cluster as it was.
    #[track_caller]
    pub(crate) fn delete(&self, name: &str) {
        self.run(&["cluster", "delete", name, "--yes", "--wait", "--timeout", "90s"])
            .exits(0);
    }
}

/// A component of a status.
pub(crate) fn component<'a>(status: &'a Value, name: &str) -> &'a Value {
    let components = status["components"].as_array().unwrap();
    let found = components.iter().find(|component| component["name"] == name);
    found.unwrap_or_else(|| panic!("no component {name}: {status}"))
}

/// The component of a configuration that `chart` makes in `namespace`.
pub(crate) fn wanted(name: &str, chart: &str, namespace: &str, more: Value) -> Value {
    let mut component =
        json!({"name": name, "source": {"directory": {"path": chart}}, "namespace": namespace});
    for (field, value) in more.as_object().unwrap() {
        component[field] = value.clone();
    }
    component
}

/// A cluster document.
pub(crate) fn document(name: &str, components: &[Value]) -> Value {
    json!({"name": name, "components": components})
}

impl Real {
    /// The first of two.
    pub(crate) fn east() -> Self {
        static ALONE: Mutex<()> = Mutex::new(());
        Self::take("east", &ALONE)
    }

    /// The second.
    pub(crate) fn west() -> Self {
        static ALONE: Mutex<()> = Mutex::new(());
        Self::take("west", &ALONE)
    }

    fn take(name: &str, alone: &'static Mutex<()>) -> Self {
        let alone = alone.lock().unwrap_or_else(PoisonError::into_inner);
        let real = Self {
            cluster: evenkeel_testkit::cluster(name),
            _alone: alone,
        };
        real.cluster.start_api_server().unwrap();
        // A test that failed left its things behind.
        real.kubectl(&[
            "delete",
            "namespace",
            "evenkeel-system",
            "--ignore-not-found",
            "--timeout=60s",
        ]);
        real
    }

    /// The real kubectl; it must succeed.
    #[track_caller]
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> String {
        let ran = Ran::of(self.cluster.kubectl().args(arguments).output().unwrap());
        assert_eq!(ran.code, Some(0), "kubectl {arguments:?}: {ran:?}");
        ran.stdout
    }

    /// An object; null when it does not exist. `path` is `namespace/kind/name`, or `kind/name`.
    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Value {
        let parts: Vec<_> = path.split('/').collect();
        let (namespace, kind, name) = match parts[..] {
            [namespace, kind, name] => (namespace, kind, name),
            [kind, name] => ("default", kind, name),
            _ => panic!("{path}"),
        };
        let text = self.kubectl(&[
            "-n",
            namespace,
            "get",
            kind,
            name,
            "-o",
            "json",
            "--ignore-not-found",
        ]);
        if text.is_empty() {
            Value::Null
        } else {
            serde_json::from_str(&text).unwrap()
        }
    }

    /// Waits until an object is as `wanted` says.
    #[track_caller]
    pub(crate) fn until(&self, path: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        eventually(path, || {
            let found = self.get(path);
            if wanted(&found) {
                Ok(found)
            } else {
                Err(found.to_string())
            }
        })
    }

    /// The API server's requests by us, and those of them that write.
    pub(crate) fn requests(&self, since: evenkeel_testkit::AuditMark) -> (usize, Vec<String>) {
        let requests = self.cluster.requests_of("evenkeel/", since);
        let writes = requests.iter().filter(|request| request.is_write());
        (
            requests.len(),
            writes
                .map(|request| format!("{} {}", request.verb, request.uri))
                .collect(),
        )
    }
}

/// A Deployment, a Service, a ConfigMap and, unless told otherwise, another ConfigMap.
pub(crate) const WEB: &[(&str, &str)] = &[
    (
        "values.yaml",
        "replicas: 1\ngreeting: hello\nscript: ready\nextra: true\n",
    ),
    (
        "templates/objects.yaml",
        r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata:
      labels: {app: {{ .Release.Name }}}
      annotations: {stand-in.evenkeel.dev/pod: {{ .Values.script }}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: web, image: registry.k8s.io/pause:3.10}]
---
apiVersion: v1
kind: Service
metadata: {name: {{ .Release.Name }}}
spec: {selector: {app: {{ .Release.Name }}}, ports: [{port: 80}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}}
data: {greeting: {{ .Values.greeting | quote }}}
{{- if .Values.extra }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-extra}
{{- end }}
"#,
    ),
];

/// One ConfigMap, for components that only have to be there.
pub(crate) const PLAIN: &[(&str, &str)] = &[(
    "templates/configmap.yaml",
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {a: {{ .Values.a | default \"1\" | quote }}}\n",
)];
