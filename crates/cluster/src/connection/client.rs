//! One pooled client per cluster, and the one function through which every request goes.

mod held;

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use evenkeel_core::{Clock, Sensitive};
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use jiff::Timestamp;
use kube::client::Body;
use tokio::time::{Instant, timeout};

use super::breaker::{Breaker, NotNow, Try};
use super::credentials::{Credentials, KubeconfigSource, Login, Unchanged};
use super::limits::RequestCounter;
use super::pace::{Pace, Seen};
use super::status::{self, Subject};
use super::transport::Transport;
use super::unheard;
use super::warm::{LastUse, WARM_MAX, Warm};
use super::watch::WatchStream;
use super::{KubeconfigPolicy, Limits, RequestCounts, Verb, kubeconfig};
use crate::discovery::DiscoveryCache;
use crate::error::Stop;
use crate::identity::ClusterUid;
use crate::memory::Memory;
use crate::{Error, WriteGuard};

pub(crate) use held::HeldOpen;

/// How servers see us in their logs.
const AGENT: &str = concat!("evenkeel/", env!("CARGO_PKG_VERSION"));

/// The clusters of this process that have connections open.
static WARM: Warm<std::sync::Weak<Inner>> = Warm::new(WARM_MAX);

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
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) link: RwLock<Link>,
    pub(super) credentials: Option<Credentials>,
    pub(super) server: String,
    limits: Limits,
    clock: Arc<dyn Clock>,
    pace: Pace,
    pub(super) breaker: Breaker,
    last_use: LastUse,
    counter: RequestCounter,
    discovery: DiscoveryCache,
    uid: tokio::sync::OnceCell<ClusterUid>,
    memory: Memory,
    /// Whether what was read of it long ago still holds, because live watches vouch for it.
    trusted: AtomicBool,
}

/// The way to the cluster, with the credentials of the day.
pub(super) struct Link {
    pub(super) transport: Transport,
    pub(super) client: kube::Client,
    /// Grows with every change of credentials.
    pub(super) number: u64,
    /// When newer ones are asked for, whether or not the server still takes these; never where nothing tells when they expire.
    pub(super) renewal: Option<Timestamp>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        WARM.gone(&self.last_use);
    }
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

impl Cluster {
    /// Makes a client from a kubeconfig's content. Nothing is contacted.
    ///
    /// # Errors
    /// [`Error::Kubeconfig`] with the path of the field that is wrong or not allowed; [`Error::Credentials`] when an
    /// allowed exec plugin fails.
    pub async fn connect(kubeconfig: &Sensitive<String>, options: ConnectOptions) -> Result<Self, Error> {
        Self::make(kubeconfig, options, None).await
    }

    /// Like [`Cluster::connect`]; when the server does not accept the credentials any more (401), those of `source` are
    /// tried once, and so they are before what a credential plugin gave expires. They must lead to the same address.
    ///
    /// # Errors
    /// As [`Cluster::connect`].
    pub async fn connect_renewable(
        kubeconfig: &Sensitive<String>,
        options: ConnectOptions,
        source: Arc<dyn KubeconfigSource>,
    ) -> Result<Self, Error> {
        Self::make(kubeconfig, options, Some(source)).await
    }

    async fn make(
        kubeconfig: &Sensitive<String>,
        options: ConnectOptions,
        source: Option<Arc<dyn KubeconfigSource>>,
    ) -> Result<Self, Error> {
        let login = Login::new(kubeconfig, &options.policy, options.clock.now()).await?;
        let client = login.transport.client(&options.limits)?;
        let source = source.or_else(|| login.has_plugin.then(|| Unchanged::source(kubeconfig)));
        let credentials = source.map(|source| Credentials::new(source, options.policy, kubeconfig));
        let (transport, renewal) = (login.transport, login.renewal);
        Ok(Self {
            inner: Arc::new(Inner {
                server: transport.server(),
                link: RwLock::new(Link {
                    transport,
                    client,
                    number: 0,
                    renewal,
                }),
                credentials,
                pace: Pace::new(options.limits.in_flight),
                breaker: Breaker::default(),
                last_use: LastUse::default(),
                limits: options.limits,
                clock: options.clock,
                counter: RequestCounter::default(),
                discovery: DiscoveryCache::default(),
                uid: tokio::sync::OnceCell::new(),
                memory: Memory::default(),
                trusted: AtomicBool::new(false),
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
        Transport::new(config).map(drop)
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
        self.client().0
    }

    /// The client, and the number of its credentials.
    pub(super) fn client(&self) -> (kube::Client, u64) {
        let link = self.inner.link.read().unwrap_or_else(PoisonError::into_inner);
        (link.client.clone(), link.number)
    }

    /// Notes that connections are used, and closes those of clusters that are one too many.
    fn keep_warm(&self) {
        held::close(WARM.used(&self.inner.last_use, || Arc::downgrade(&self.inner)));
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
        let request = Request::get(path).header(ACCEPT, accept).body(Bytes::new());
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
            .body(Bytes::from(body));
        self.send(verb, request, subject, Some(guard)).await
    }

    /// Opens a watch; it holds no turn, because it lasts.
    pub(crate) async fn watch(
        &self,
        path: &str,
        accept: &str,
        subject: Subject,
    ) -> Result<WatchStream, Error> {
        self.renew_in_time().await;
        match self.open_watch(path, accept, &subject).await {
            (Err(Error::Unauthorized { .. }), number) if self.renew(number).await => {
                self.open_watch(path, accept, &subject).await.0
            }
            (opened, _) => opened,
        }
    }

    async fn open_watch(
        &self,
        path: &str,
        accept: &str,
        subject: &Subject,
    ) -> (Result<WatchStream, Error>, u64) {
        let (client, number) = self.client();
        let opened = async {
            let request = Request::get(path)
                .header(ACCEPT, accept)
                .header(USER_AGENT, AGENT)
                .body(Body::empty());
            let request = request.map_err(|error| Error::Bug(format!("{}: {error}", subject.doing)))?;
            let attempt = self
                .inner
                .breaker
                .attempt()
                .map_err(|why| self.not_tried(subject, why))?;
            self.inner.counter.count(Verb::Watch);
            self.keep_warm();
            let sent = self
                .bounded(self.inner.limits.read_timeout, subject, client.send(request))
                .await;
            tell(attempt, sent.as_ref().err(), true);
            let response = sent?;
            if !response.status().is_success() {
                return Err(self.refusal(subject, response).await);
            }
            Ok(WatchStream::new(
                response.into_body(),
                self.inner.limits.watch_idle_timeout,
                subject.clone(),
            ))
        };
        (opened.await, number)
    }

    /// Sends one request; once more with newer credentials when the server does not accept these.
    pub(crate) async fn send(
        &self,
        verb: Verb,
        request: Result<Request<Bytes>, http::Error>,
        subject: &Subject,
        guard: Option<Guard<'_>>,
    ) -> Result<Sent, Error> {
        let mut request = request.map_err(|error| Error::Bug(format!("{}: {error}", subject.doing)))?;
        let writer = guard.and_then(|guard| guard.writer());
        request.headers_mut().insert(USER_AGENT, agent(writer));
        let again = self.inner.credentials.is_some().then(|| request.clone());
        self.renew_in_time().await;
        let (client, number) = self.client();
        let sent = self.exchange(client, verb, request, subject, guard).await;
        match (again, &sent) {
            (Some(request), Err(Error::Unauthorized { .. })) if self.renew(number).await => {
                let (client, _) = self.client();
                self.exchange(client, verb, request, subject, guard).await
            }
            _ => sent,
        }
    }

    async fn exchange(
        &self,
        client: kube::Client,
        verb: Verb,
        request: Request<Bytes>,
        subject: &Subject,
        guard: Option<Guard<'_>>,
    ) -> Result<Sent, Error> {
        let limits = &self.inner.limits;
        let longest = if verb.is_write() {
            limits.write_timeout
        } else {
            limits.read_timeout
        };
        self.inner
            .breaker
            .peek()
            .map_err(|why| self.not_tried(subject, why))?;
        let turn = match timeout(limits.read_timeout, self.inner.pace.turn()).await {
            Ok(Ok(turn)) => turn,
            Ok(Err(retry_after)) => {
                return Err(Error::RateLimited {
                    doing: subject.doing.clone(),
                    retry_after,
                });
            }
            Err(_) => return Err(self.timed_out(subject, limits.read_timeout)),
        };
        let attempt = self
            .inner
            .breaker
            .attempt()
            .map_err(|why| self.not_tried(subject, why))?;
        if let Some(guard) = guard {
            // Asked last, so that the answer still holds when the request starts.
            guard.permit(longest).map_err(|why: Stop| Error::Stopped {
                doing: subject.doing.clone(),
                why,
            })?;
        }
        self.inner.counter.count(verb);
        self.keep_warm();
        let exchange = async {
            let response = match client.send(request.clone().map(Body::from)).await {
                // A server, or what stands before it, may say goodbye on a connection just as a request is sent.
                Err(error) if unheard::is_unheard(&error) => {
                    tracing::debug!(doing = subject.doing, %error, "sent once more on a new connection");
                    self.inner.counter.count(verb);
                    client.send(request.map(Body::from)).await?
                }
                sent => sent?,
            };
            let (parts, body) = response.into_parts();
            let body = Limited::new(body, limits.answer_max)
                .collect()
                .await
                .map_err(kube::Error::Service)?;
            Ok::<_, kube::Error>((parts, body.to_bytes()))
        };
        let started = Instant::now();
        let answer = self.bounded(longest, subject, exchange).await;
        // A write may hang in a webhook; that says nothing of the way to the cluster.
        tell(attempt, answer.as_ref().err(), !verb.is_write());
        let (parts, body) = match answer {
            Ok(answer) => answer,
            Err(error) => {
                turn.settle(Seen::Lost);
                return Err(error);
            }
        };
        tracing::debug!(
            %verb,
            doing = subject.doing,
            status = parts.status.as_u16(),
            elapsed_ms = started.elapsed().as_millis(),
            "request"
        );
        if parts.status.is_success() {
            turn.settle(Seen::Answered);
            return Ok(Sent {
                status: parts.status,
                body,
            });
        }
        let error = status::error(subject, parts.status, retry_after(&parts.headers), &body);
        turn.settle(match &error {
            Error::RateLimited { retry_after, .. } => Seen::Busy(*retry_after),
            _ => Seen::Answered,
        });
        Err(error)
    }

    fn not_tried(&self, subject: &Subject, why: NotNow) -> Error {
        Error::NotTried {
            server: self.inner.server.clone(),
            doing: subject.doing.clone(),
            reason: why.reason,
            retry_in: why.retry_in,
        }
    }

    fn timed_out(&self, subject: &Subject, after: Duration) -> Error {
        Error::Timeout {
            server: self.inner.server.clone(),
            doing: subject.doing.clone(),
            after,
        }
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
            Err(_) => Err(self.timed_out(subject, after)),
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

impl Inner {
    /// Closes connections that nothing is under way on. What is under way ends as usual.
    fn close_idle(&self) {
        let mut link = self.link.write().unwrap_or_else(PoisonError::into_inner);
        if let Ok(client) = link.transport.client(&self.pool_limits()) {
            link.client = client;
        }
    }
}

/// Tells the breaker what became of a request. Time that ran out counts when `timeouts` says so.
fn tell(attempt: Try<'_>, error: Option<&Error>, timeouts: bool) {
    match error {
        None => attempt.answered(),
        Some(Error::Unreachable { reason, .. }) => attempt.failed(reason),
        Some(Error::Timeout { after, .. }) if timeouts => {
            attempt.failed(&format!("no answer within {after:?}"))
        }
        Some(_) => {}
    }
}

/// Without the plugin's output: it may hold a token.
pub(super) fn credentials_failed() -> Error {
    Error::Credentials {
        reason: "the exec plugin or token file of the kubeconfig failed; run the plugin by hand to see why"
            .to_owned(),
    }
}

/// Our name, and for whom a write is: with it an API server's own log tells which attempt wrote what.
fn agent(writer: Option<&str>) -> http::HeaderValue {
    let named = writer.and_then(|writer| http::HeaderValue::try_from(format!("{AGENT} ({writer})")).ok());
    named.unwrap_or(http::HeaderValue::from_static(AGENT))
}

fn retry_after(headers: &http::HeaderMap) -> Option<u64> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()
}
