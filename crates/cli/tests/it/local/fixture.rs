//! Charts and clusters to run `evenkeel local` on, and the built binary run as a user runs it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use evenkeel_simulator::{Cluster, Options, Simulator};
use evenkeel_testkit::{AuditMark, TestCluster};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::ran::Ran;

/// A Deployment, a Service and a ConfigMap.
pub(crate) const WEB: &[(&str, &str)] = &[
    ("values.yaml", "replicas: 1\ngreeting: hello\nbehaviour: ''\n"),
    (
        "templates/deployment.yaml",
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
      {{- with .Values.behaviour }}
      annotations: {simulator.evenkeel.dev/behaviour: {{ . }}}
      {{- end }}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: web, image: registry.k8s.io/pause:3.10}]
"#,
    ),
    (
        "templates/service.yaml",
        r#"
apiVersion: v1
kind: Service
metadata: {name: {{ .Release.Name }}}
spec: {selector: {app: {{ .Release.Name }}}, ports: [{port: 80}]}
"#,
    ),
    (
        "templates/configmap.yaml",
        r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}}
data: {greeting: {{ .Values.greeting | quote }}}
"#,
    ),
];

/// One ConfigMap, for components that only have to be there.
pub(crate) const PLAIN: &[(&str, &str)] = &[(
    "templates/configmap.yaml",
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {a: {{ .Values.a | default \"1\" | quote }}}\n",
)];

/// A folder with charts and a kubeconfig, and the cluster behind that.
pub(crate) struct Env {
    folder: tempfile::TempDir,
    pub(crate) target: Target,
}

/// A cluster, and what its server was asked.
pub(crate) enum Target {
    Simulated(Cluster),
    Real(&'static TestCluster),
}

/// From where writes are counted.
pub(crate) struct Mark(Option<AuditMark>);

/// A simulated cluster of its own.
pub(crate) fn simulated() -> Env {
    static SIMULATOR: OnceLock<(Runtime, Simulator)> = OnceLock::new();
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let (_, simulator) = SIMULATOR.get_or_init(|| {
        evenkeel_testkit::install_crypto_provider();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let simulator = runtime.block_on(Simulator::start(Options::default())).unwrap();
        (runtime, simulator)
    });
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    Env::new(Target::Simulated(
        simulator.add_cluster(&format!("local-{number}")).unwrap(),
    ))
}

/// The real cluster that tests of this command share.
pub(crate) fn real() -> Env {
    Env::new(Target::Real(evenkeel_testkit::cluster("local")))
}

impl Target {
    fn kubeconfig(&self) -> &str {
        match self {
            Self::Simulated(cluster) => cluster.kubeconfig(),
            Self::Real(cluster) => cluster.kubeconfig(),
        }
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark(match self {
            Self::Simulated(cluster) => {
                cluster.reset_counters();
                None
            }
            Self::Real(cluster) => Some(cluster.mark()),
        })
    }

    /// Requests of the command since `mark` that may have changed something, one line each.
    pub(crate) fn writes(&self, mark: &Mark) -> Vec<String> {
        match self {
            Self::Simulated(cluster) => {
                let counts = cluster.counters();
                let reads = ["get", "list", "watch"];
                counts
                    .iter()
                    .filter(|(verb, ..)| !reads.contains(verb))
                    .map(|(verb, resource, count)| format!("{count} {verb} {resource}"))
                    .collect()
            }
            Self::Real(cluster) => cluster
                .requests_of("evenkeel/", mark.0.unwrap())
                .iter()
                .filter(|request| request.is_write())
                .map(|request| format!("{} {}", request.verb, request.uri))
                .collect(),
        }
    }

    /// An object; none when it does not exist.
    pub(crate) fn get(&self, api_version: &str, kind: &str, namespace: &str, name: &str) -> Option<Value> {
        match self {
            Self::Simulated(cluster) => cluster.get(api_version, kind, namespace, name).unwrap(),
            Self::Real(cluster) => {
                let group = api_version.split_once('/').map(|(group, _)| format!(".{group}"));
                let kind = format!("{kind}{}", group.unwrap_or_default());
                let namespace = if namespace.is_empty() {
                    "default"
                } else {
                    namespace
                };
                let arguments = [
                    "-n",
                    namespace,
                    "get",
                    &kind,
                    name,
                    "-o",
                    "json",
                    "--ignore-not-found",
                ];
                let output = cluster.kubectl().args(arguments).output().unwrap();
                assert!(
                    output.status.success(),
                    "{}",
                    String::from_utf8_lossy(&output.stderr)
                );
                if output.stdout.is_empty() {
                    None
                } else {
                    Some(serde_json::from_slice(&output.stdout).unwrap())
                }
            }
        }
    }

    /// Somebody changes an object of the core group, as the field manager `manager`, by a merge patch.
    pub(crate) fn edit(&self, kind: &str, namespace: &str, name: &str, manager: &str, patch: &Value) {
        match self {
            Self::Simulated(cluster) => {
                let edited = cluster.patch(manager, "v1", kind, namespace, name, patch.clone());
                edited.unwrap();
            }
            Self::Real(cluster) => {
                let (patch, manager) = (patch.to_string(), format!("--field-manager={manager}"));
                let arguments = [
                    "-n",
                    namespace,
                    "patch",
                    kind,
                    name,
                    "--type=merge",
                    &manager,
                    "-p",
                    &patch,
                ];
                let output = cluster.kubectl().args(arguments).output().unwrap();
                let said = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{said}");
            }
        }
    }

    pub(crate) fn simulated(&self) -> &Cluster {
        match self {
            Self::Simulated(cluster) => cluster,
            Self::Real(_) => panic!("this cluster is real"),
        }
    }
}

impl Env {
    fn new(target: Target) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("kubeconfig"), target.kubeconfig()).unwrap();
        Self { folder, target }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Writes a chart directory.
    pub(crate) fn chart(&self, name: &str, files: &[(&str, &str)]) {
        self.write(
            &format!("{name}/Chart.yaml"),
            &format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n"),
        );
        for (file, text) in files {
            self.write(&format!("{name}/{file}"), text);
        }
    }

    /// Copies an example.
    pub(crate) fn example(&self, name: &str) {
        let from = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
        let mut copy = Command::new("cp");
        let copied = copy
            .arg("-r")
            .arg(format!("{from}/{name}"))
            .arg(self.folder.path())
            .status()
            .unwrap();
        assert!(copied.success());
    }

    /// Writes a program of a few lines.
    pub(crate) fn script(&self, name: &str, text: &str) {
        use std::os::unix::fs::PermissionsExt as _;

        self.write(name, &format!("#!/bin/sh\n{text}\n"));
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// `evenkeel local --kubeconfig kubeconfig …`, in the folder of the charts.
    pub(crate) fn local(&self, arguments: &[&str]) -> Ran {
        let mut command = self.command();
        command
            .args(["local", "--kubeconfig", "kubeconfig"])
            .args(arguments);
        Ran::of(command.output().unwrap())
    }

    /// The same, left running.
    pub(crate) fn start(&self, arguments: &[&str]) -> Child {
        let mut command = self.command();
        command
            .args(["local", "--kubeconfig", "kubeconfig"])
            .args(arguments);
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// `evenkeel`, as one who has no settings of their own.
    pub(crate) fn command(&self) -> Command {
        command(self.folder.path())
    }
}

fn command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
    command.current_dir(folder).env("HOME", folder);
    for variable in [
        "KUBECONFIG",
        "EVENKEEL_LOG",
        "EVENKEEL_LOG_FORMAT",
        "EVENKEEL_KUSTOMIZE",
    ] {
        command.env_remove(variable);
    }
    command
}
