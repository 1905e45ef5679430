//! One pooled client per cluster, and the one function through which every request goes.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use evenkeel_core::{Clock, Sensitive};
use futures::future::BoxFuture;
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::Config;
use kube::client::{Body, ConfigExt as _};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};
use tower::{BoxError, Service, ServiceBuilder};

use super::limits::RequestCounter;
use super::status::{self, Subject};
use super::watch::WatchStream;
use super::{KubeconfigPolicy, Limits, RequestCounts, Verb, kubeconfig, tls};
use crate::discovery::DiscoveryCache;
use crate::error::Stop;
use crate::identity::ClusterUid;
use crate::memory::Memory;
use crate::{Error, WriteGuard};

/// How servers see us in their logs.
const AGENT: &str = concat!("evenkeel/", env!("CARGO_PKG_VERSION"));
/// HTTP/2 connections are pinged this often, so that a dead one is noticed.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(30);
/// How long an answer to such a ping may take.
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(10);

/// How a client is made.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// What the kubeconfig may contain.
    pub policy: KubeconfigPolicy,
    /// Bounds on what the client does.
    pub limits: Limits,
    /// Where the time of a change comes from.
    pub clock: Arc<dyn Clock>,
}

/// One target cluster. Cheap to clone; all clones share one connection pool, one discovery cache and one bound on
/// requests in flight. Its `Debug` shows the address only.
#[derive(Clone)]
pub struct Cluster {
    inner: Arc<Inner>,
}

struct Inner {
    client: kube::Client,
    server: String,
    limits: Limits,
    clock: Arc<dyn Clock>,
    permits: Semaphore,
    counter: RequestCounter,
    discovery: DiscoveryCache,
    uid: tokio::sync::OnceCell<ClusterUid>,
    memory: Memory,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster")
            .field("server", &self.inner.server)
            .finish_non_exhaustive()
    }
}

/// The right to write, asked for right before each write. Reads pass without one.
pub(crate) type Guard<'a> = &'a dyn WriteGuard;

/// A request's answer with a body.
pub(crate) struct Sent {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
}

/// The content type of a PATCH.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PatchKind {
    /// Server-side apply. JSON is YAML.
    Apply,
    /// RFC 7386.
    Merge,
    /// RFC 6902.
    Json,
}

impl PatchKind {
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Apply => "application/apply-patch+yaml",
            Self::Merge => "application/merge-patch+json",
            Self::Json => "application/json-patch+json",
        }
    }
}

impl Cluster {
    /// Makes a client from a kubeconfig's content. Nothing is contacted.
    ///
    /// # Errors
    /// [`Error::Kubeconfig`] with the path of the field that is wrong or not allowed; [`Error::Credentials`] when an
    /// allowed exec plugin fails.
    pub async fn connect(kubeconfig: &Sensitive<String>, options: ConnectOptions) -> Result<Self, Error> {
        let config = kubeconfig::read(kubeconfig.expose(), &options.policy).await?;
        let server = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        let client = client(&config, &options.limits)?;
        Ok(Self {
            inner: Arc::new(Inner {
                client,
                server,
                permits: Semaphore::new(options.limits.in_flight.max(1)),
                limits: options.limits,
                clock: options.clock,
                counter: RequestCounter::default(),
                discovery: DiscoveryCache::default(),
                uid: tokio::sync::OnceCell::new(),
                memory: Memory::default(),
            }),
        })
    }

    /// Whether `kubeconfig` is one that [`Cluster::connect`] takes, without keeping a client.
    ///
    /// # Errors
    /// As [`Cluster::connect`].
    pub async fn check_kubeconfig(
        kubeconfig: &Sensitive<String>,
        policy: &KubeconfigPolicy,
    ) -> Result<(), Error> {
        let config = kubeconfig::read(kubeconfig.expose(), policy).await?;
        tls::client_config(&config).map(drop)
    }

    /// The server's address.
    pub fn server(&self) -> &str {
        &self.inner.server
    }

    /// The bounds of this client.
    pub fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    /// The uid of namespace `kube-system`, which no two clusters share; read once per client.
    ///
    /// # Errors
    /// Whatever reading that namespace fails with.
    pub async fn uid(&self) -> Result<&ClusterUid, Error> {
        self.inner.uid.get_or_try_init(|| ClusterUid::read(self)).await
    }

    /// How many requests were sent since the client was made.
    pub fn requests(&self) -> RequestCounts {
        self.inner.counter.counts()
    }

    /// The raw client, for components with logic of their own. Its calls are not bounded, counted or guarded.
    pub fn raw_client(&self) -> kube::Client {
        self.inner.client.clone()
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.inner.clock
    }

    pub(crate) fn discovery_cache(&self) -> &DiscoveryCache {
        &self.inner.discovery
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.inner.memory
    }

    /// Sends one read and gives its body.
    pub(crate) async fn read(
        &self,
        verb: Verb,
        path: &str,
        accept: &str,
        subject: &Subject,
    ) -> Result<Bytes, Error> {
        let request = Request::get(path).header(ACCEPT, accept).body(Body::empty());
        Ok(self.send(verb, request, subject, None).await?.body)
    }

    /// Sends one write, if the guard allows it.
    pub(crate) async fn write(
        &self,
        verb: Verb,
        path: &str,
        content_type: &str,
        body: Vec<u8>,
        subject: &Subject,
        guard: Guard<'_>,
    ) -> Result<Sent, Error> {
        let builder = match verb {
            Verb::Create => Request::post(path),
            Verb::Update => Request::put(path),
            Verb::Delete => Request::delete(path),
            _ => Request::patch(path),
        };
        let request = builder
            .header(ACCEPT, "application/json")
            .header(CONTENT_TYPE, content_type)
            .body(Body::from(body));
        self.send(verb, request, subject, Some(guard)).await
    }

    /// Opens a watch; it holds no permit, because it lasts.
    pub(crate) async fn watch(
        &self,
        path: &str,
        accept: &str,
        subject: Subject,
    ) -> Result<WatchStream, Error> {
        let request = Request::get(path)
            .header(ACCEPT, accept)
            .header(USER_AGENT, AGENT)
            .body(Body::empty());
        let request = request.map_err(|error| Error::Bug(format!("{}: {error}", subject.doing)))?;
        self.inner.counter.count(Verb::Watch);
        let response = self
            .bounded(
                self.inner.limits.read_timeout,
                &subject,
                self.inner.client.send(request),
            )
            .await?;
        if !response.status().is_success() {
            return Err(self.refusal(&subject, response).await);
        }
        Ok(WatchStream::new(
            response.into_body(),
            self.inner.limits.watch_idle_timeout,
            subject,
        ))
    }

    async fn send(
        &self,
        verb: Verb,
        request: Result<Request<Body>, http::Error>,
        subject: &Subject,
        guard: Option<Guard<'_>>,
    ) -> Result<Sent, Error> {
        let mut request = request.map_err(|error| Error::Bug(format!("{}: {error}", subject.doing)))?;
        request
            .headers_mut()
            .insert(USER_AGENT, http::HeaderValue::from_static(AGENT));
        let limits = &self.inner.limits;
        let longest = if verb.is_write() {
            limits.write_timeout
        } else {
            limits.read_timeout
        };
        let waiting = self.bounded(limits.read_timeout, subject, async {
            self.inner
                .permits
                .acquire()
                .await
                .map_err(|closed| kube::Error::Service(Box::new(closed)))
        });
        let _permit = waiting.await?;
        if let Some(guard) = guard {
            // Asked last, so that the answer still holds when the request starts.
            guard.permit(longest).map_err(|why: Stop| Error::Stopped {
                doing: subject.doing.clone(),
                why,
            })?;
        }
        self.inner.counter.count(verb);
        let exchange = async {
            let response = self.inner.client.send(request).await?;
            let (parts, body) = response.into_parts();
            let body = Limited::new(body, limits.answer_max)
                .collect()
                .await
                .map_err(kube::Error::Service)?;
            Ok::<_, kube::Error>((parts, body.to_bytes()))
        };
        let started = Instant::now();
        let (parts, body) = self.bounded(longest, subject, exchange).await?;
        tracing::debug!(
            %verb,
            doing = subject.doing,
            status = parts.status.as_u16(),
            elapsed_ms = started.elapsed().as_millis(),
            "request"
        );
        if parts.status.is_success() {
            return Ok(Sent {
                status: parts.status,
                body,
            });
        }
        Err(status::error(
            subject,
            parts.status,
            retry_after(&parts.headers),
            &body,
        ))
    }

    async fn refusal(&self, subject: &Subject, response: Response<Body>) -> Error {
        let (parts, body) = response.into_parts();
        let collected = async {
            let body = Limited::new(body, self.inner.limits.answer_max)
                .collect()
                .await
                .map_err(kube::Error::Service)?;
            Ok::<_, kube::Error>(body.to_bytes())
        };
        match self
            .bounded(self.inner.limits.read_timeout, subject, collected)
            .await
        {
            Ok(body) => status::error(subject, parts.status, retry_after(&parts.headers), &body),
            Err(error) => error,
        }
    }

    async fn bounded<T>(
        &self,
        after: Duration,
        subject: &Subject,
        work: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, Error> {
        match timeout(after, work).await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(error)) => Err(self.broken(subject, &error)),
            Err(_) => Err(Error::Timeout {
                server: self.inner.server.clone(),
                doing: subject.doing.clone(),
                after,
            }),
        }
    }

    fn broken(&self, subject: &Subject, error: &kube::Error) -> Error {
        let mut reasons: Vec<String> = Vec::new();
        let mut source: Option<&dyn std::error::Error> = Some(error);
        while let Some(error) = source {
            if error.is::<kube::client::AuthError>() {
                return credentials_failed();
            }
            let text = error.to_string();
            // Outer errors often repeat the text of inner ones.
            if reasons.last().is_none_or(|last| !last.contains(&text)) {
                reasons.push(text);
            }
            source = error.source();
        }
        let reason = reasons
            .pop()
            .unwrap_or_else(|| "the connection failed".to_owned());
        Error::Unreachable {
            server: self.inner.server.clone(),
            doing: subject.doing.clone(),
            reason,
        }
    }
}

/// Without the plugin's output: it may hold a token.
pub(super) fn credentials_failed() -> Error {
    Error::Credentials {
        reason: "the exec plugin or token file of the kubeconfig failed; run the plugin by hand to see why"
            .to_owned(),
    }
}

fn retry_after(headers: &http::HeaderMap) -> Option<u64> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()
}

/// Bounds TCP and TLS together; the TCP connector's own bound leaves out the handshake.
#[derive(Clone)]
struct ConnectWithin<C> {
    connector: C,
    within: Duration,
}

impl<C> Service<http::Uri> for ConnectWithin<C>
where
    C: Service<http::Uri>,
    C::Error: Into<BoxError>,
    C::Future: Send + 'static,
    C::Response: 'static,
{
    type Response = C::Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<C::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.connector.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, uri: http::Uri) -> Self::Future {
        let (connecting, within) = (self.connector.call(uri), self.within);
        Box::pin(async move {
            match timeout(within, connecting).await {
                Ok(connected) => connected.map_err(Into::into),
                Err(_) => Err(format!("no connection within {within:?}").into()),
            }
        })
    }
}

/// HTTP/1.1 or HTTP/2 as the server prefers, no retries, idle connections reaped.
fn client(config: &Config, limits: &Limits) -> Result<kube::Client, Error> {
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_nodelay(true);
    http.set_connect_timeout(Some(limits.connect_timeout));
    let mut https = HttpsConnectorBuilder::new()
        .with_tls_config(tls::client_config(config)?)
        .https_or_http();
    if let Some(name) = &config.tls_server_name {
        let name = name.clone().try_into().map_err(|_| Error::Kubeconfig {
            field: "tls-server-name".to_owned(),
            reason: "expected a DNS name or IP address".to_owned(),
        })?;
        https = https.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    let connector = https.enable_all_versions().wrap_connector(http);
    let connector = ConnectWithin {
        connector,
        within: limits.connect_timeout,
    };
    let pool: legacy::Client<_, Body> = legacy::Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(limits.idle_timeout)
        .pool_max_idle_per_host(limits.idle_connections)
        .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .http2_keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        .retry_canceled_requests(false)
        .build(connector);
    let unusable = |error: kube::Error| match error {
        kube::Error::Auth(_) => credentials_failed(),
        _ => Error::Kubeconfig {
            field: "(user)".to_owned(),
            reason: "token, password or impersonation holds characters that no header can carry".to_owned(),
        },
    };
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer().map_err(unusable)?)
        .layer(config.extra_headers_layer().map_err(unusable)?)
        .map_err(BoxError::from)
        .service(pool);
    Ok(kube::Client::new(service, config.default_namespace.clone()))
}
