//! The client of the REST API: one function per operation.

mod administration;

use std::time::Duration;

use bytes::Bytes;
use evenkeel_core::{ClusterName, DeleteMode, HumanDuration, KubeconfigFrom, ReconciliationId, Sensitive};
use reqwest::{Method, RequestBuilder, Url};
use serde::de::DeserializeOwned;

use crate::{
    Accepted, Archive, Cluster, ClusterDocument, ClusterPage, ClusterPlan, ClusterStatus, Configuration,
    Consent, Deletion, Error, GiveConsent, ListClusters, Problem, Reconcile, Reconciliation,
    ReconciliationSummary, Rollback, Suspend, Suspension,
};

/// How long a connection may take to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an ordinary call may take.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a call may take that looks at every object of a cluster.
const PLAN_TIMEOUT: Duration = Duration::from_secs(60);
/// How long the server is asked to hold a call that waits for a change; must stay below [`CALL_TIMEOUT`].
const STATUS_HOLD: Duration = Duration::from_secs(20);

/// Speaks to one mothership. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    base: Url,
}

/// What [`Client::status_after`] waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusWait {
    /// The [`ClusterStatus::revision`] already known.
    pub revision: String,
    /// How long the server may hold the call when nothing changes.
    pub hold: Duration,
}

impl StatusWait {
    /// Waits for another revision than `revision`, as long as one call should.
    pub fn after(revision: impl Into<String>) -> Self {
        Self {
            revision: revision.into(),
            hold: STATUS_HOLD,
        }
    }
}

impl Client {
    /// A client of the mothership at `server`, like `http://127.0.0.1:8080`.
    ///
    /// # Errors
    /// [`Error::Address`] when `server` is no HTTP URL.
    pub fn new(server: &str) -> Result<Self, Error> {
        let base = Url::parse(server)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && !url.cannot_be_a_base())
            .ok_or_else(|| Error::Address(server.to_owned()))?;
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(CALL_TIMEOUT)
            .user_agent(concat!("evenkeel/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(Error::Client)?;
        Ok(Self { http, base })
    }

    /// Creates or changes a cluster.
    ///
    /// # Errors
    /// As every call: [`Error::Problem`] when the server refuses, [`Error::Unreachable`] when it cannot be reached.
    pub async fn put_cluster(&self, document: &ClusterDocument) -> Result<Accepted, Error> {
        let path = ["v2", "clusters", document.spec.name.as_str()];
        let body = document
            .to_value()
            .map_err(|error| self.not_understood(&path, &error))?;
        self.call(self.request(Method::PUT, &path)?.json(&body)).await
    }

    /// Replaces a cluster's kubeconfig.
    ///
    /// # Errors
    /// See [`Client::put_cluster`].
    pub async fn put_kubeconfig(
        &self,
        name: &ClusterName,
        kubeconfig: &Sensitive<String>,
    ) -> Result<Accepted, Error> {
        let request = self.request(Method::PUT, &["v2", "clusters", name.as_str(), "kubeconfig"])?;
        self.call(
            request
                .header("content-type", "application/yaml")
                .body(kubeconfig.expose().clone()),
        )
        .await
    }

    /// Says where a cluster's kubeconfig is read.
    ///
    /// # Errors
    /// See [`Client::put_cluster`].
    pub async fn put_kubeconfig_from(
        &self,
        name: &ClusterName,
        from: &KubeconfigFrom,
    ) -> Result<Accepted, Error> {
        let request = self.request(Method::PUT, &["v2", "clusters", name.as_str(), "kubeconfig-from"])?;
        self.call(request.json(from)).await
    }

    /// One cluster.
    ///
    /// # Errors
    /// See [`Client::put_cluster`].
    pub async fn cluster(&self, name: &ClusterName) -> Result<Cluster, Error> {
        self.call(self.request(Method::GET, &["v2", "clusters", name.as_str()])?)
            .await
    }

    /// One page of clusters.
    ///
    /// # Errors
    /// See [`Client::put_cluster`].
    pub async fn clusters(&self, list: &ListClusters) -> Result<ClusterPage, Error> {
        self.call(self.request(Method::GET, &["v2", "clusters"])?.query(list))
            .await
    }

    /// How a cluster is.
    ///
    /// # Errors
    /// See [`Client::put_cluster`].
    pub async fn status(&self, name: &ClusterName) -> Result<ClusterStatus, Error> {
        self.call(self.request(Method::GET, &["v2", "clusters", name.as_str(), "status"])?)
            .await
    }

    /// How a cluster is, once that differs from what is known, or after a while as it is.
    ///
    /// # Errors
    /// See [`Client::put_cluster`].
    pub async fn status_after(&self, name: &ClusterName, known: &StatusWait) -> Result<ClusterStatus, Error> {
        let request = self.request(Method::GET, &["v2", "clusters", name.as_str(), "status"])?;
        let wait = HumanDuration(known.hold).to_string();
        self.call(request.query(&[("after", known.revision.to_string()), ("wait", wait)]))
            .await
    }

    /// Asks for a reconciliation now.
    ///
    /// # Errors
    /// See [`Client::put_cluster`].
    pub async fn reconcile(&self, name: &ClusterName) -> Result<Accepted, Error> {
        self.call(self.request(Method::POST, &["v2", "clusters", name.as_str(), "reconcile"])?)
            .await
    }

    /// What a reconciliation would do now; nothing is done. May take a minute.
    ///
    /// # Errors
    /// See [`Client::put_cluster`].
    pub async fn plan(&self, name: &ClusterName) -> Result<ClusterPlan, Error> {
        let request = self.request(Method::POST, &["v2", "clusters", name.as_str(), "plan"])?;
        self.call(request.timeout(PLAN_TIMEOUT)).await
    }

    /// Asks for a reconciliation now, and says how.
    ///
    /// # Errors
    /// See [`Client::put_cluster`].
    pub async fn reconcile_for(&self, name: &ClusterName, asked: &Reconcile) -> Result<Accepted, Error> {
        let request = self.request(Method::POST, &["v2", "clusters", name.as_str(), "reconcile"])?;
        self.call(request.query(asked)).await
    }

    /// Leaves a cluster alone for a while, or until it is resumed.
    ///
    /// # Errors
    /// See [`Client::put_cluster`].
    pub async fn suspend(&self, name: &ClusterName, suspend: &Suspend) -> Result<Suspension, Error> {
        let request = self.request(Method::POST, &["v2", "clusters", name.as_str(), "suspend"])?;
        self.call(request.json(suspend)).await
    }

    /// Goes on with a suspended cluster.
    ///
    /// # Errors
    /// See [`Client::put_cluster`].
    pub async fn resume(&self, name: &ClusterName) -> Result<Accepted, Error> {
        self.call(self.request(Method::POST, &["v2", "clusters", name.as_str(), "resume"])?)
            .await
    }

    /// Takes the cluster that answers now for the one that is meant: after its control plane was made anew.
    ///
    /// # Errors
    /// See [`Client::put_cluster`].
    pub async fn confirm_identity(&self, name: &ClusterName) -> Result<Accepted, Error> {
        let path = ["v2", "clusters", name.as_str(), "confirm-identity"];
        self.call(self.request(Method::POST, &path)?).await
    }

    /// The configuration versions of a cluster, newest first.
    ///
    /// # Errors
    /// See [`Client::put_cluster`].
    pub async fn configurations(&self, name: &ClusterName) -> Result<Vec<Configuration>, Error> {
        self.call(self.request(Method::GET, &["v2", "clusters", name.as_str(), "configurations"])?)
            .await
    }

    /// Makes the components and labels of an older version the newest version.
    ///
    /// # Errors
    /// See [`Client::put_cluster`].
    pub async fn rollback(&self, name: &ClusterName, rollback: &Rollback) -> Result<Accepted, Error> {
        let request = self.request(Method::POST, &["v2", "clusters", name.as_str(), "rollback"])?;
        self.call(request.json(rollback)).await
    }

    /// What of a cluster waits for consent, and what was consented to and is not done yet.
    ///
    /// # Errors
    /// See [`Client::put_cluster`].
    pub async fn consents(&self, name: &ClusterName) -> Result<Vec<Consent>, Error> {
        self.call(self.request(Method::GET, &["v2", "clusters", name.as_str(), "consent"])?)
            .await
    }

    /// Gives consent to one plan.
    ///
    /// # Errors
    /// See [`Client::put_cluster`].
    pub async fn give_consent(&self, name: &ClusterName, consent: &GiveConsent) -> Result<Consent, Error> {
        let request = self.request(Method::POST, &["v2", "clusters", name.as_str(), "consent"])?;
        self.call(request.json(consent)).await
    }

    /// Deletes a cluster.
    ///
    /// # Errors
    /// See [`Client::put_cluster`].
    pub async fn delete_cluster(&self, name: &ClusterName, mode: DeleteMode) -> Result<Accepted, Error> {
        let request = self.request(Method::DELETE, &["v2", "clusters", name.as_str()])?;
        self.call(request.query(&Deletion { mode })).await
    }

    /// The reconciliations of a cluster, newest first.
    ///
    /// # Errors
    /// See [`Client::put_cluster`].
    pub async fn reconciliations(&self, name: &ClusterName) -> Result<Vec<ReconciliationSummary>, Error> {
        self.call(self.request(Method::GET, &["v2", "clusters", name.as_str(), "reconciliations"])?)
            .await
    }

    /// One reconciliation with its operations.
    ///
    /// # Errors
    /// See [`Client::put_cluster`].
    pub async fn reconciliation(&self, id: &ReconciliationId) -> Result<Reconciliation, Error> {
        self.call(self.request(Method::GET, &["v2", "reconciliations", &id.to_string()])?)
            .await
    }

    /// Uploads a chart archive.
    ///
    /// # Errors
    /// See [`Client::put_cluster`].
    pub async fn put_archive(&self, archive: Bytes) -> Result<Archive, Error> {
        let request = self.request(Method::POST, &["v2", "archives"])?;
        self.call(request.header("content-type", "application/gzip").body(archive))
            .await
    }

    fn request(&self, method: Method, path: &[&str]) -> Result<RequestBuilder, Error> {
        Ok(self.http.request(method, self.url(path)?))
    }

    fn url(&self, path: &[&str]) -> Result<Url, Error> {
        let mut url = self.base.clone();
        url.path_segments_mut()
            .map_err(|()| Error::Address(self.base.to_string()))?
            .pop_if_empty()
            .extend(path);
        Ok(url)
    }

    fn not_understood(&self, path: &[&str], error: &serde_json::Error) -> Error {
        Error::Answer {
            url: format!("{}{}", self.base, path.join("/")),
            status: 0,
            detail: error.to_string(),
        }
    }

    async fn call<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, Error> {
        let unreachable = |source: reqwest::Error| Error::Unreachable {
            url: self.base.to_string(),
            source,
        };
        let response = request.send().await.map_err(unreachable)?;
        let status = response.status();
        let url = response.url().to_string();
        let body = response.bytes().await.map_err(unreachable)?;
        let answer = |error: serde_json::Error| Error::Answer {
            url: url.clone(),
            status: status.as_u16(),
            detail: error.to_string(),
        };
        if status.is_success() {
            return serde_json::from_slice(&body).map_err(answer);
        }
        Err(Error::Problem(Box::new(
            serde_json::from_slice::<Problem>(&body).map_err(answer)?,
        )))
    }
}
