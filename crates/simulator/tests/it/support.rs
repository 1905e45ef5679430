//! A simulator with one cluster, and a bare HTTP client for it.

use std::future::Future;
use std::time::{Duration, Instant};

use evenkeel_simulator::{Cluster, Options, Simulator};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;

/// Nothing here takes longer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) async fn start() -> (Simulator, Cluster) {
    start_with(Options::default()).await
}

pub(crate) async fn start_with(options: Options) -> (Simulator, Cluster) {
    // The clients of these tests take the process's provider; a second installation is refused, which is fine.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let simulator = Simulator::start(options).await.unwrap();
    let cluster = simulator.add_cluster("blue").unwrap();
    (simulator, cluster)
}

pub(crate) async fn client(cluster: &Cluster) -> Client {
    let kubeconfig = Kubeconfig::from_yaml(cluster.kubeconfig()).unwrap();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .unwrap();
    config.default_retry = false;
    Client::try_from(config).unwrap()
}

/// Waits until `probe` gives something.
pub(crate) async fn eventually<T, F: Future<Output = Option<T>>>(
    what: &str,
    mut probe: impl FnMut() -> F,
) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = probe().await {
            return found;
        }
        assert!(Instant::now() < deadline, "still waiting for {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until an object meets a condition; gives it.
pub(crate) async fn object_where(
    cluster: &Cluster,
    api_version: &str,
    kind: &str,
    namespace: &str,
    name: &str,
    condition: impl Fn(&Value) -> bool,
) -> Value {
    eventually(&format!("{kind} {name}"), || async {
        cluster
            .get(api_version, kind, namespace, name)
            .unwrap()
            .filter(|object| condition(object))
    })
    .await
}

/// A client without any knowledge of Kubernetes.
pub(crate) struct Http {
    client: reqwest::Client,
    base: String,
    token: String,
}

pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }
}

impl Http {
    pub(crate) fn new(simulator: &Simulator, cluster: &Cluster) -> Self {
        let authority = reqwest::Certificate::from_pem(simulator.ca_certificate().as_bytes()).unwrap();
        let client = reqwest::Client::builder()
            .tls_certs_only([authority])
            .timeout(PATIENCE)
            .build()
            .unwrap();
        Self {
            client,
            base: simulator.url(cluster.name()),
            token: cluster.token().to_owned(),
        }
    }

    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<String>,
    ) -> Result<Answer, reqwest::Error> {
        let method = method.parse::<reqwest::Method>().unwrap();
        let mut request = self
            .client
            .request(method, format!("{}{path}", self.base))
            .bearer_auth(&self.token);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(body) = body {
            request = request.body(body);
        }
        let response = request.send().await?;
        let (code, headers) = (response.status().as_u16(), response.headers().clone());
        Ok(Answer {
            code,
            headers,
            text: response.text().await?,
        })
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], None).await.unwrap()
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        let headers = [("content-type", "application/json")];
        self.send("POST", path, &headers, Some(body.to_string()))
            .await
            .unwrap()
    }
}
