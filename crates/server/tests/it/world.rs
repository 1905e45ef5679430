//! A served mothership of a test's own, and what others say to it.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_api::{Client, ClusterStatus, Code, PROBLEM_CONTENT_TYPE, Problem, StatusWait};
use evenkeel_core::{ClusterName, ClusterState};
use evenkeel_fleet::{Fleet, Parts, Settings};
use evenkeel_inventory::{OpenOptions, SqlStore};
use evenkeel_server::Server;
use evenkeel_simulator::{Cluster, Options, Simulator};
use evenkeel_source::DirectoryPolicy;
use evenkeel_telemetry::logging::{self, Captured};
use evenkeel_telemetry::{LogFormat, LogOptions, Metrics, OnCancel, OnError, SystemClock, Tasks};
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tracing::subscriber::DefaultGuard;

/// Long enough for a busy machine.
const BOUND: Duration = Duration::from_secs(60);
/// The chart that documents of tests use.
pub(crate) const CHART: &str = "plain";

/// One served mothership. All its lines are captured: tests run on one thread.
pub(crate) struct World {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) base: String,
    pub(crate) api: Client,
    pub(crate) http: reqwest::Client,
    pub(crate) fleet: Fleet,
    pub(crate) logs: Captured,
    pub(crate) stop: CancellationToken,
    pub(crate) server: Option<evenkeel_telemetry::Task<()>>,
    tasks: Tasks,
    _logging: DefaultGuard,
}

impl Drop for World {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

/// An answer, read whole.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl World {
    /// A mothership with a source root that holds [`CHART`]; nothing works on clusters.
    pub(crate) async fn idle() -> Self {
        Self::new(true).await
    }

    /// The same, and clusters are worked on.
    pub(crate) async fn working() -> Self {
        let world = Self::new(true).await;
        world.fleet.start();
        world
    }

    /// A mothership without a source root.
    pub(crate) async fn without_root() -> Self {
        Self::new(false).await
    }

    async fn new(root: bool) -> Self {
        evenkeel_testkit::install_crypto_provider();
        let logs = Captured::new();
        let options = LogOptions {
            format: LogFormat::Json,
            filter: "trace".to_owned(),
        };
        let subscriber = logging::subscriber(&options, Arc::new(SystemClock), logs.clone()).unwrap();
        let logging = tracing::subscriber::set_default(subscriber);
        let folder = evenkeel_testkit::temp_dir();
        let sources = folder.path().join("root");
        write_chart(&sources.join(CHART));
        let store = SqlStore::open(OpenOptions::temporary(), Arc::new(SystemClock))
            .await
            .unwrap();
        let tasks = Tasks::new();
        let fleet = Fleet::new(Parts {
            store: Arc::new(store),
            directories: if root {
                DirectoryPolicy::Below(sources)
            } else {
                DirectoryPolicy::Refused
            },
            remote: None,
            kubeconfigs: evenkeel_fleet::KubeconfigClusters::default(),
            signatures: None,
            settings: Settings {
                retry_first: Duration::from_millis(200),
                ..Settings::default()
            },
            tasks: tasks.clone(),
            metrics: Metrics::new(),
        })
        .unwrap();
        let server = Server::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
        let base = format!("http://{}", server.address());
        // A token of its own, so that a test can end the serving alone.
        let stop = tasks.token().child_token();
        let serving = server.serve(fleet.clone(), stop.clone());
        let server = tasks.spawn("server", OnError::Log, OnCancel::Wait, |_| serving);
        Self {
            folder,
            api: Client::new(&base).unwrap(),
            http: reqwest::Client::builder().timeout(BOUND).build().unwrap(),
            base,
            fleet,
            logs,
            stop,
            server: Some(server),
            tasks,
            _logging: logging,
        }
    }

    /// Sends a request and reads its answer.
    pub(crate) async fn send(&self, request: reqwest::RequestBuilder) -> Answer {
        let response = request.send().await.unwrap();
        Answer {
            status: response.status(),
            headers: response.headers().clone(),
            text: response.text().await.unwrap(),
        }
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method, format!("{}{path}", self.base))
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(self.request(Method::GET, path)).await
    }

    pub(crate) async fn put(&self, path: &str, media_type: &str, body: impl Into<String>) -> Answer {
        let request = self.request(Method::PUT, path).header(CONTENT_TYPE, media_type);
        self.send(request.body(body.into())).await
    }

    /// `PUT /v2/clusters/c1` with a JSON document.
    pub(crate) async fn put_c1(&self, document: &Value) -> Answer {
        self.put("/v2/clusters/c1", "application/json", document.to_string())
            .await
    }

    /// Waits until cluster `name` is as `wanted` says; the server tells each change.
    pub(crate) async fn until(&self, name: &str, wanted: impl Fn(&ClusterStatus) -> bool) -> ClusterStatus {
        let name: ClusterName = name.parse().unwrap();
        let mut status = self.api.status(&name).await.unwrap();
        let followed = async {
            while !wanted(&status) {
                let known = StatusWait::after(&status.revision);
                status = self.api.status_after(&name, &known).await.unwrap();
            }
        };
        let followed = tokio::time::timeout(BOUND, followed).await;
        assert!(
            followed.is_ok(),
            "seen last: {status:#?}\n{}",
            self.logs.lines().join("\n")
        );
        status
    }

    pub(crate) async fn until_ready(&self, name: &str) -> ClusterStatus {
        self.until(name, |status| status.state == ClusterState::Ready)
            .await
    }

    /// All captured lines of one request, as JSON.
    pub(crate) fn lines_of(&self, request_id: &str) -> Vec<Value> {
        let lines = self.logs.lines();
        let lines = lines
            .iter()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter(|line| line["request_id"] == request_id).collect()
    }

    /// Fails when a captured line holds one of `secrets`.
    pub(crate) fn assert_unlogged(&self, secrets: &[&str]) {
        let lines = self.logs.lines();
        assert!(lines.len() > 20, "too little was captured to prove anything");
        for secret in secrets {
            let told = lines.iter().find(|line| line.contains(secret));
            assert_eq!(told, None, "a secret was logged");
        }
    }
}

impl Answer {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        assert!(self.status.is_success(), "{} {}", self.status, self.text);
        serde_json::from_str(&self.text).unwrap()
    }

    /// The answer as the problem that every refusal must be.
    #[track_caller]
    pub(crate) fn problem(&self, code: Code) -> Problem {
        let problem: Problem = serde_json::from_str(&self.text)
            .unwrap_or_else(|error| panic!("{error}: {} {:?}", self.status, self.text));
        assert_eq!(problem.code, code, "{problem:?}");
        assert_eq!(problem.status, code.status());
        assert_eq!(self.status.as_u16(), code.status());
        assert_eq!(self.headers[CONTENT_TYPE], PROBLEM_CONTENT_TYPE);
        assert_eq!(problem.title, code.title());
        assert!(!problem.detail.is_empty());
        let id = problem.request_id.as_deref();
        assert_eq!(id, Some(self.headers["x-request-id"].to_str().unwrap()));
        problem
    }

    /// The same, whose detail says all of `parts`.
    #[track_caller]
    pub(crate) fn refuses(&self, code: Code, parts: &[&str]) -> Problem {
        let problem = self.problem(code);
        for part in parts {
            assert!(
                problem.detail.contains(part),
                "{part:?} is not said: {:?}",
                problem.detail
            );
        }
        problem
    }

    /// The same, which names the wrong field as `path` and says `part` of it.
    #[track_caller]
    pub(crate) fn names(&self, code: Code, path: &str, part: &str) {
        let problem = self.problem(code);
        let field = problem.errors.iter().find(|field| field.path == path);
        assert!(
            field.is_some_and(|field| field.message.contains(part)),
            "{path} with {part:?} is not named: {problem:#?}"
        );
    }
}

/// A simulated cluster called `name`.
pub(crate) async fn simulated(name: &str) -> (Simulator, Cluster) {
    let simulator = Simulator::start(Options::default()).await.unwrap();
    let cluster = simulator.add_cluster(name).unwrap();
    (simulator, cluster)
}

/// One component from [`CHART`].
pub(crate) fn component(name: &str) -> Value {
    json!({"name": name, "source": {"directory": {"path": CHART}}, "namespace": "apps"})
}

/// A document of cluster `name` with `components`.
pub(crate) fn document(name: &str, components: &[Value]) -> Value {
    json!({"name": name, "components": components})
}

/// A chart of one ConfigMap and one Secret that hold what their values say.
pub(crate) fn write_chart(chart: &Path) {
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\n\
        data: {greeting: {{ .Values.greeting | default \"hello\" | quote }}}\n---\n\
        apiVersion: v1\nkind: Secret\nmetadata: {name: {{ .Release.Name }}}\n\
        stringData: {password: {{ .Values.password | default \"none\" | quote }}}\n";
    fs::create_dir_all(chart.join("templates")).unwrap();
    fs::write(
        chart.join("Chart.yaml"),
        "apiVersion: v2\nname: plain\nversion: 1.0.0\n",
    )
    .unwrap();
    fs::write(chart.join("templates/objects.yaml"), template).unwrap();
}
