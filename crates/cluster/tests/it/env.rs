//! Where a scenario runs, and what others do there.

use std::process::Command;
use std::time::Duration;

use evenkeel_cluster::{Cluster, ConnectOptions, KubeconfigPolicy, Limits, Owner};
use evenkeel_core::{Clock, ClusterName, Sensitive};
use evenkeel_simulator::Simulator;
use evenkeel_testkit::{FaultProxy, TestCluster};
use http_body_util::BodyExt as _;
use jiff::Timestamp;
use kube::client::Body;
use serde_json::{Value, json};

/// The fleet and cluster in whose name every scenario acts: they share one cluster, as components do.
pub(crate) const FLEET: &str = "test-fleet";
pub(crate) const CLUSTER: &str = "c1";

#[derive(Debug)]
struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        #[allow(clippy::disallowed_methods, reason = "the clock itself")]
        Timestamp::now()
    }
}

/// What a scenario runs on.
pub(crate) enum Ground {
    /// A real control plane, shared with other scenarios.
    Real(&'static TestCluster),
    /// A simulated cluster of the scenario's own, with a folder for its kubeconfig.
    Simulated {
        folder: tempfile::TempDir,
        /// Serves until it is dropped.
        _simulator: Simulator,
    },
    /// A simulated cluster that another environment keeps.
    Borrowed {
        /// How it is reached.
        kubeconfig: String,
    },
}

/// What becomes of a pod, by the name of the script in each kind of cluster.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Script {
    /// It ends with an error.
    Fail,
    /// It never starts.
    Pending,
    /// Its image cannot be had.
    ImageError,
    /// It ends with an error again and again.
    CrashLoop,
}

/// One scenario's cluster.
pub(crate) struct Env {
    /// The cluster as we see it.
    pub(crate) cluster: Cluster,
    /// The scenario's name with dashes: for names that no other scenario uses.
    pub(crate) name: String,
    /// Others at the same cluster.
    pub(crate) others: kube::Client,
    pub(crate) ground: Ground,
}

pub(crate) fn options() -> ConnectOptions {
    ConnectOptions {
        policy: KubeconfigPolicy::Registered,
        limits: Limits::default(),
        clock: std::sync::Arc::new(SystemClock),
    }
}

pub(crate) fn owner() -> Owner {
    Owner::new(FLEET, ClusterName::new(CLUSTER).unwrap()).unwrap()
}

pub(crate) async fn connect(kubeconfig: &str) -> Cluster {
    Cluster::connect(&Sensitive::new(kubeconfig.to_owned()), options())
        .await
        .unwrap()
}

impl Env {
    pub(crate) async fn real(scenario: &str) -> Self {
        Self::on(evenkeel_testkit::cluster("main"), scenario).await
    }

    /// A real cluster that no other test uses.
    pub(crate) async fn real_alone(scenario: &str) -> Self {
        Self::on(evenkeel_testkit::cluster("alone"), scenario).await
    }

    /// A real cluster that others use, too, but not at the same time.
    pub(crate) async fn real_by_turns(scenario: &str) -> (Self, tokio::sync::MutexGuard<'static, ()>) {
        static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
        let turn = TURN.lock().await;
        let env = Self::on(evenkeel_testkit::cluster("watched"), scenario).await;
        // Records that other scenarios have left would be told as strangers.
        let records = "/api/v1/namespaces/evenkeel-system/secrets?labelSelector=evenkeel.dev/fleet";
        let (status, answer) = env.send("DELETE", records, "application/json", None).await;
        assert!(matches!(status, 200 | 404), "{answer}");
        (env, turn)
    }

    async fn on(real: &'static TestCluster, scenario: &str) -> Self {
        Self {
            cluster: connect(real.kubeconfig()).await,
            name: scenario.replace('_', "-"),
            others: real.client_as("somebody").await,
            ground: Ground::Real(real),
        }
    }

    pub(crate) async fn simulated(scenario: &str) -> Self {
        let simulator = Simulator::start(evenkeel_simulator::Options::default())
            .await
            .unwrap();
        let simulated = simulator.add_cluster("c1").unwrap();
        let folder = evenkeel_testkit::temp_dir();
        std::fs::write(folder.path().join("kubeconfig"), simulated.kubeconfig()).unwrap();
        Self {
            cluster: connect(simulated.kubeconfig()).await,
            name: scenario.replace('_', "-"),
            // The raw client of a cluster of its own: its requests are counted apart.
            others: connect(simulated.kubeconfig()).await.raw_client(),
            ground: Ground::Simulated {
                folder,
                _simulator: simulator,
            },
        }
    }

    /// The kubeconfig of this cluster.
    pub(crate) fn kubeconfig(&self) -> String {
        match &self.ground {
            Ground::Real(real) => real.kubeconfig().to_owned(),
            Ground::Simulated { folder, .. } => {
                std::fs::read_to_string(folder.path().join("kubeconfig")).unwrap()
            }
            Ground::Borrowed { kubeconfig } => kubeconfig.clone(),
        }
    }

    /// The same cluster with a new client, which remembers nothing and has other bounds.
    pub(crate) async fn again(&self, limits: Limits) -> Self {
        let options = ConnectOptions { limits, ..options() };
        let cluster = Cluster::connect(&Sensitive::new(self.kubeconfig()), options).await;
        self.with(cluster.unwrap(), self.name.clone())
    }

    /// The same cluster behind a proxy that can make requests go wrong.
    pub(crate) async fn behind(&self, limits: Limits) -> (Self, FaultProxy) {
        let proxy = FaultProxy::start(self.others.clone()).await;
        let options = ConnectOptions {
            limits,
            policy: KubeconfigPolicy::Own {
                allow_exec: false,
                base: std::env::temp_dir(),
            },
            ..options()
        };
        let cluster = Cluster::connect(&Sensitive::new(proxy.kubeconfig()), options).await;
        (self.with(cluster.unwrap(), self.name.clone()), proxy)
    }

    /// The same cluster as another client sees it.
    pub(crate) fn with(&self, cluster: Cluster, name: String) -> Self {
        let ground = match &self.ground {
            Ground::Real(real) => Ground::Real(real),
            Ground::Simulated { .. } | Ground::Borrowed { .. } => Ground::Borrowed {
                kubeconfig: self.kubeconfig(),
            },
        };
        Self {
            cluster,
            name,
            others: self.others.clone(),
            ground,
        }
    }

    pub(crate) fn is_real(&self) -> bool {
        matches!(self.ground, Ground::Real(_))
    }

    /// The real kubectl, speaking to this cluster.
    pub(crate) fn kubectl(&self) -> Command {
        match &self.ground {
            Ground::Real(real) => real.kubectl(),
            Ground::Simulated { folder, .. } => {
                let mut command = Command::new(evenkeel_testkit::realparts::kubectl().unwrap());
                command.env("KUBECONFIG", folder.path().join("kubeconfig"));
                command
            }
            Ground::Borrowed { .. } => panic!("kubectl is for whoever keeps the cluster"),
        }
    }

    /// The real Helm, speaking to this cluster.
    pub(crate) fn helm(&self) -> Command {
        match &self.ground {
            Ground::Real(real) => real.helm(),
            Ground::Simulated { folder, .. } => {
                let mut command = Command::new(evenkeel_testkit::realparts::helm().unwrap());
                command.env("KUBECONFIG", folder.path().join("kubeconfig"));
                command
            }
            Ground::Borrowed { .. } => panic!("helm is for whoever keeps the cluster"),
        }
    }

    /// The annotation of a pod template that makes its pods follow `script`.
    pub(crate) fn script(&self, script: Script) -> Value {
        let (real, simulated) = match script {
            Script::Fail => ("fail", "fail"),
            Script::Pending => ("pending", "stuck"),
            Script::ImageError => ("image-error", "pull"),
            Script::CrashLoop => ("crash-loop", "fail"),
        };
        match self.ground {
            Ground::Real(_) => json!({evenkeel_testkit::POD_SCRIPT_ANNOTATION: real}),
            _ => json!({evenkeel_simulator::BEHAVIOUR_ANNOTATION: simulated}),
        }
    }

    /// Lets the readiness probe of a running pod fail, or succeed again.
    pub(crate) async fn set_ready(&self, pod: &str, ready: bool) {
        match self.ground {
            Ground::Real(_) => {
                let script = if ready { "ready" } else { "unready" };
                let patch =
                    json!({"metadata": {"annotations": {evenkeel_testkit::POD_SCRIPT_ANNOTATION: script}}});
                self.change(pod, &patch).await;
            }
            _ => {
                let mut live = self.must(pod).await;
                for condition in live["status"]["conditions"].as_array_mut().unwrap() {
                    if condition["type"] == "Ready" || condition["type"] == "ContainersReady" {
                        condition["status"] = json!(if ready { "True" } else { "False" });
                    }
                }
                let status = json!({"status": {"conditions": live["status"]["conditions"]}});
                self.change(&format!("{pod}/status"), &status).await;
            }
        }
    }

    /// A request by somebody else; its answer and status.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        kind: &str,
        body: Option<&Value>,
    ) -> (u16, Value) {
        let body = body
            .map(|body| Body::from(body.to_string().into_bytes()))
            .unwrap_or_else(Body::empty);
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", kind)
            .body(body)
            .unwrap();
        let response = self.others.send(request).await.unwrap();
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
    }

    pub(crate) async fn get(&self, path: &str) -> Option<Value> {
        match self.send("GET", path, "application/json", None).await {
            (200, object) => Some(object),
            (404, _) => None,
            (status, answer) => panic!("GET {path}: {status} {answer}"),
        }
    }

    pub(crate) async fn must(&self, path: &str) -> Value {
        self.get(path)
            .await
            .unwrap_or_else(|| panic!("{path} does not exist"))
    }

    /// Somebody changes an object by a merge patch.
    pub(crate) async fn change(&self, path: &str, patch: &Value) -> Value {
        let (status, answer) = self
            .send(
                "PATCH",
                &format!("{path}?fieldManager=somebody"),
                "application/merge-patch+json",
                Some(patch),
            )
            .await;
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    /// Somebody makes an object.
    pub(crate) async fn make(&self, collection: &str, object: &Value) -> Value {
        let (status, answer) = self
            .send("POST", collection, "application/json", Some(object))
            .await;
        assert_eq!(status, 201, "{collection}: {answer}");
        answer
    }

    /// Somebody deletes an object.
    pub(crate) async fn remove(&self, path: &str) {
        let (status, answer) = self.send("DELETE", path, "application/json", None).await;
        assert!(matches!(status, 200 | 202), "{path}: {status} {answer}");
    }

    /// Waits until `path` holds an object that `wanted` accepts.
    pub(crate) async fn until(&self, what: &str, path: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        evenkeel_testkit::eventually(what, async || {
            let found = self.get(path).await.unwrap_or(Value::Null);
            if wanted(&found) { Ok(found) } else { Err(found) }
        })
        .await
    }

    pub(crate) async fn until_gone(&self, path: &str) {
        self.until(&format!("{path} to be gone"), path, Value::is_null)
            .await;
    }

    /// Somebody makes a namespace of a name of the scenario's own.
    pub(crate) async fn namespace(&self, suffix: &str) -> String {
        let name = format!("{}-{suffix}", short(&self.name));
        self.make("/api/v1/namespaces", &json!({"metadata": {"name": name}}))
            .await;
        name
    }
}

/// Names may have 63 characters; scenarios have long ones.
pub(crate) fn short(name: &str) -> String {
    name.chars()
        .take(48)
        .collect::<String>()
        .trim_end_matches('-')
        .to_owned()
}

/// Long enough for a busy machine, short enough for a test that fails.
pub(crate) const WAIT: Duration = Duration::from_secs(60);
