//! A proxy in front of a real or simulated API server, or any HTTP server, that lets one request go wrong.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, RETRY_AFTER, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, Request, Response, StatusCode, Uri};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use kube::Client;
use kube::client::Body;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// What happens to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallFault {
    /// It is never answered, and never reaches the server.
    Hang,
    /// 409, and it never reaches the server.
    Conflict,
    /// 429 with a time to wait of one second, and it never reaches the server.
    TooManyRequests,
    /// 500, and it never reaches the server.
    InternalError,
    /// The connection is cut before it reaches the server.
    CutBefore,
    /// The server does it, and the connection is cut before the answer arrives.
    CutAfter,
}

impl CallFault {
    /// Every kind.
    pub const ALL: [Self; 6] = [
        Self::Hang,
        Self::Conflict,
        Self::TooManyRequests,
        Self::InternalError,
        Self::CutBefore,
        Self::CutAfter,
    ];
}

/// A proxy on the loopback interface, without TLS, for one client; ends when dropped.
#[derive(Debug)]
pub struct FaultProxy {
    address: SocketAddr,
    state: Arc<State>,
    serving: JoinHandle<()>,
}

struct State {
    upstream: Client,
    requests: AtomicUsize,
    fault: Mutex<Option<(usize, CallFault)>>,
    outage: Mutex<Option<CallFault>>,
    headers: Mutex<Vec<HeaderMap>>,
    stripped: Mutex<Option<HeaderName>>,
    expire_watches: AtomicBool,
    passed: Mutex<Vec<String>>,
    hidden: Mutex<Option<Hidden>>,
    rivalry: Mutex<Option<Rivalry>>,
    below: Mutex<Option<String>>,
}

/// Objects that somebody else writes right before each of our writes.
struct Rivalry {
    writer: String,
    paths: Vec<String>,
    /// How many times each.
    times: usize,
    written: BTreeMap<String, usize>,
}

/// Paths that are answered as if there were nothing.
struct Hidden {
    prefix: String,
    /// How many more requests.
    left: usize,
}

impl State {
    /// Whether somebody else writes the object at `path` now, and for which time.
    fn outruns(&self, path: &str) -> Option<(String, usize)> {
        let mut rivalry = self.rivalry.lock().unwrap_or_else(PoisonError::into_inner);
        let rivalry = rivalry.as_mut()?;
        if !rivalry.paths.iter().any(|known| known == path) {
            return None;
        }
        let written = rivalry.written.entry(path.to_owned()).or_default();
        if *written >= rivalry.times {
            return None;
        }
        *written += 1;
        Some((rivalry.writer.clone(), *written))
    }

    /// An address as the server itself knows it; none for what is beside the path below which it is shown.
    fn inside(&self, uri: &Uri) -> Option<Uri> {
        let below = self.below.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(below) = &*below else {
            return Some(uri.clone());
        };
        let whole = uri.path_and_query()?.as_str();
        let rest = whole.strip_prefix(below.as_str())?;
        rest.starts_with('/').then(|| rest.parse().ok())?
    }

    fn hides(&self, path: &str) -> bool {
        let mut hidden = self.hidden.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *hidden {
            Some(hidden) if hidden.left > 0 && path.starts_with(&hidden.prefix) => {
                hidden.left -= 1;
                true
            }
            _ => false,
        }
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State")
            .field("requests", &self.requests)
            .field("fault", &self.fault)
            .finish_non_exhaustive()
    }
}

/// Closes the connection without an answer.
#[derive(Debug)]
struct Cut;

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the connection is cut")
    }
}

impl std::error::Error for Cut {}

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Answer = Response<UnsyncBoxBody<Bytes, BoxError>>;

impl FaultProxy {
    /// Starts one in front of another HTTP server, as [`Self::start`]. What it answers in its place is worded as an API
    /// server's; the status is what counts.
    ///
    /// # Panics
    /// When the address is none, or no port can be had.
    pub async fn before(url: &str) -> Self {
        crate::install_crypto_provider();
        let uri = match url.parse() {
            Ok(uri) => uri,
            Err(error) => panic!("{url} is no address: {error}"),
        };
        match Client::try_from(kube::Config::new(uri)) {
            Ok(upstream) => Self::start(upstream).await,
            Err(error) => panic!("no proxy before {url}: {error}"),
        }
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Starts one in front of what `upstream` speaks to, on the calling runtime.
    ///
    /// # Panics
    /// When no port can be had.
    #[allow(clippy::disallowed_methods, reason = "ended by whoever drops the proxy")]
    pub async fn start(upstream: Client) -> Self {
        let listening = async {
            let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
            let address = listener.local_addr()?;
            Ok::<_, std::io::Error>((listener, address))
        };
        let (listener, address) = match listening.await {
            Ok(listening) => listening,
            Err(error) => panic!("the proxy cannot listen: {error}"),
        };
        let state = Arc::new(State {
            upstream,
            requests: AtomicUsize::new(0),
            fault: Mutex::new(None),
            outage: Mutex::new(None),
            headers: Mutex::default(),
            stripped: Mutex::default(),
            expire_watches: AtomicBool::new(false),
            passed: Mutex::default(),
            hidden: Mutex::new(None),
            rivalry: Mutex::new(None),
            below: Mutex::default(),
        });
        let serving = tokio::spawn(serve(listener, Arc::clone(&state)));
        Self {
            address,
            state,
            serving,
        }
    }

    /// A kubeconfig that leads to it.
    pub fn kubeconfig(&self) -> String {
        format!(
            "apiVersion: v1\nkind: Config\nclusters: [{{name: c, cluster: {{server: 'http://{}'}}}}]\nusers: [{{name: u, user: {{}}}}]\n\
             contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\ncurrent-context: c\n",
            self.address
        )
    }

    /// Lets the request number `at`, counted from 0 and from now, go wrong.
    pub fn fail(&self, at: usize, fault: CallFault) {
        let number = self.requests() + at;
        *self.state.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some((number, fault));
    }

    /// Lets every request go wrong from now on, or none.
    pub fn fail_all(&self, fault: Option<CallFault>) {
        *self.state.outage.lock().unwrap_or_else(PoisonError::into_inner) = fault;
    }

    /// Answers every watch with 410 from now on, as a server does that has forgotten what happened since, or as usual again.
    pub fn expire_watches(&self, expire: bool) {
        self.state.expire_watches.store(expire, Ordering::SeqCst);
    }

    /// Lets nothing go wrong any more; whether the request that was to go wrong came.
    pub fn heal(&self) -> bool {
        let met = self.has_failed();
        *self.state.fault.lock().unwrap_or_else(PoisonError::into_inner) = None;
        met
    }

    /// Answers the next `times` requests for paths that begin with `prefix` with 404, as an API server does that has not
    /// learnt of a kind yet.
    pub fn hide(&self, prefix: &str, times: usize) {
        let hidden = Hidden {
            prefix: prefix.to_owned(),
            left: times,
        };
        *self.state.hidden.lock().unwrap_or_else(PoisonError::into_inner) = Some(hidden);
    }

    /// Shows the server below a path from now on, such as `/forge`, and nothing beside it: as one that shares its name with others.
    pub fn below(&self, path: &str) {
        *self.state.below.lock().unwrap_or_else(PoisonError::into_inner) = Some(path.to_owned());
    }

    /// Lets `writer` annotate each of the objects at `paths` right before each of the next `times` writes of it, as a controller
    /// does that writes it all the time.
    pub fn outrun(&self, writer: &str, paths: &[String], times: usize) {
        let rivalry = Rivalry {
            writer: writer.to_owned(),
            paths: paths.to_vec(),
            times,
            written: BTreeMap::new(),
        };
        *self.state.rivalry.lock().unwrap_or_else(PoisonError::into_inner) = Some(rivalry);
    }

    /// How often somebody else wrote each object right before us.
    pub fn outran(&self) -> BTreeMap<String, usize> {
        let rivalry = self.state.rivalry.lock().unwrap_or_else(PoisonError::into_inner);
        rivalry
            .as_ref()
            .map(|rivalry| rivalry.written.clone())
            .unwrap_or_default()
    }

    /// Whether the request that was to go wrong came.
    fn has_failed(&self) -> bool {
        self.state
            .fault
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_some_and(|(number, _)| number < self.requests())
    }

    /// How many requests came so far.
    pub fn requests(&self) -> usize {
        self.state.requests.load(Ordering::SeqCst)
    }

    /// The requests that reached the server so far, like `PATCH /api/v1/namespaces/shop/configmaps/a`: without queries, in
    /// the order in which they came.
    pub fn passed(&self) -> Vec<String> {
        self.state
            .passed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl FaultProxy {
    /// Keeps a header, in lower case, from the server from now on: one that does not know it.
    pub fn strip(&self, name: &'static str) {
        *self.state.stripped.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(HeaderName::from_static(name));
    }

    /// What each request that reached the server so far said in that header: in the order of [`Self::passed`].
    pub fn headers(&self, name: &str) -> Vec<Option<String>> {
        let all = self.state.headers.lock().unwrap_or_else(PoisonError::into_inner);
        let text = |headers: &HeaderMap| Some(headers.get(name)?.to_str().ok()?.to_owned());
        all.iter().map(text).collect()
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

#[allow(clippy::disallowed_methods, reason = "a connection ends with its client")]
async fn serve(listener: TcpListener, state: Arc<State>) {
    while let Ok((stream, _)) = listener.accept().await {
        let _ = stream.set_nodelay(true);
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            let service = service_fn(move |request| handle(Arc::clone(&state), request));
            let connection = Builder::new(TokioExecutor::new());
            // It ends with an error when it is cut, which is what it is for.
            let _ = connection.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn handle(state: Arc<State>, request: Request<Incoming>) -> Result<Answer, Cut> {
    let number = state.requests.fetch_add(1, Ordering::SeqCst);
    let is_watch = request
        .uri()
        .query()
        .is_some_and(|query| query.contains("watch=true"));
    if is_watch && state.expire_watches.load(Ordering::SeqCst) {
        return Ok(refusal(StatusCode::GONE, "Expired"));
    }
    let fault = state
        .fault
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .filter(|(at, _)| *at == number)
        .map(|(_, fault)| fault)
        .or_else(|| *state.outage.lock().unwrap_or_else(PoisonError::into_inner));
    match fault {
        Some(CallFault::Hang) => return std::future::pending().await,
        Some(CallFault::CutBefore) => return Err(Cut),
        Some(CallFault::Conflict) => return Ok(refusal(StatusCode::CONFLICT, "Conflict")),
        Some(CallFault::TooManyRequests) => {
            return Ok(refusal(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests"));
        }
        Some(CallFault::InternalError) => {
            return Ok(refusal(StatusCode::INTERNAL_SERVER_ERROR, "InternalError"));
        }
        Some(CallFault::CutAfter) | None => {}
    }
    if state.hides(request.uri().path()) {
        return Ok(refusal(StatusCode::NOT_FOUND, "NotFound"));
    }
    let (mut parts, body) = request.into_parts();
    let Some(uri) = state.inside(&parts.uri) else {
        return Ok(refusal(StatusCode::NOT_FOUND, "NotFound"));
    };
    parts.uri = uri;
    let body = body.collect().await.map_err(|_| Cut)?.to_bytes();
    if parts.method != http::Method::GET
        && let Some((writer, time)) = state.outruns(parts.uri.path())
    {
        let patch = format!(r#"{{"metadata":{{"annotations":{{"{writer}.example.com/time":"{time}"}}}}}}"#);
        let rival = Request::patch(format!("{}?fieldManager={writer}", parts.uri.path()))
            .header(CONTENT_TYPE, "application/merge-patch+json")
            .body(Body::from(patch.into_bytes()))
            .map_err(|_| Cut)?;
        state.upstream.send(rival).await.map_err(|_| Cut)?;
    }
    for header in [HOST, CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING] {
        parts.headers.remove(header);
    }
    parts.version = http::Version::default();
    state
        .headers
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(parts.headers.clone());
    if let Some(name) = &*state.stripped.lock().unwrap_or_else(PoisonError::into_inner) {
        parts.headers.remove(name);
    }
    state
        .passed
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(format!("{} {}", parts.method, parts.uri.path()));
    let forwarded = Request::from_parts(parts, Body::from(body.to_vec()));
    let answer = state.upstream.send(forwarded).await.map_err(|_| Cut)?;
    if fault == Some(CallFault::CutAfter) {
        return Err(Cut);
    }
    let (mut parts, body) = answer.into_parts();
    for header in [CONNECTION, TRANSFER_ENCODING] {
        parts.headers.remove(header);
    }
    parts.version = http::Version::default();
    Ok(Response::from_parts(
        parts,
        UnsyncBoxBody::new(body.map_err(Into::into)),
    ))
}

/// A refusal as the API server words it.
fn refusal(code: StatusCode, reason: &str) -> Answer {
    let text = format!(
        r#"{{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"{reason}","message":"injected","code":{}}}"#,
        code.as_u16()
    );
    let body = Full::new(Bytes::from(text)).map_err(|never: Infallible| match never {});
    let mut answer = Response::new(UnsyncBoxBody::new(body));
    *answer.status_mut() = code;
    answer
        .headers_mut()
        .insert(CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    if code == StatusCode::TOO_MANY_REQUESTS {
        answer
            .headers_mut()
            .insert(RETRY_AFTER, http::HeaderValue::from_static("1"));
    }
    answer
}
