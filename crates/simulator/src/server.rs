//! The listener: TLS, HTTP/1.1 and HTTP/2, and the way from a connection to a cluster.

use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use evenkeel_telemetry::{CancellationToken, OnCancel, OnError, Tasks};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Either, Full, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::api::{AGGREGATED_MARK, Answer, ApiRequest};
use crate::cluster::ClusterState;
use crate::faults::Fault;
use crate::request::{Query, Target};
use crate::status::ApiError;
use crate::watch::Watch;

/// As large as an API server lets a request be.
const MAX_BODY: usize = 3 * 1024 * 1024;
/// A client has this long to finish its TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// After a failed accept (no file descriptors left) the listener waits this long.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

type Body = Either<Full<Bytes>, StreamBody<BoxStream<'static, Result<Frame<Bytes>, Infallible>>>>;

/// Clusters by name.
#[derive(Debug, Default)]
pub(crate) struct Clusters {
    by_name: RwLock<HashMap<String, Arc<ClusterState>>>,
}

impl Clusters {
    pub(crate) fn get(&self, name: &str) -> Option<Arc<ClusterState>> {
        self.by_name
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(name)
            .cloned()
    }

    /// Adds a cluster; `false` when there is one of that name.
    pub(crate) fn add(&self, cluster: Arc<ClusterState>) -> bool {
        let mut all = self.by_name.write().unwrap_or_else(PoisonError::into_inner);
        if all.contains_key(&cluster.name) {
            return false;
        }
        all.insert(cluster.name.clone(), cluster);
        true
    }

    pub(crate) fn remove(&self, name: &str) -> Option<Arc<ClusterState>> {
        self.by_name
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(name)
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .by_name
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .keys()
            .cloned()
            .collect();
        names.sort();
        names
    }

    pub(crate) fn drain(&self) -> Vec<Arc<ClusterState>> {
        self.by_name
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .drain()
            .map(|(_, cluster)| cluster)
            .collect()
    }
}

/// The connection is closed without an answer.
#[derive(Debug)]
struct Disconnected;

impl fmt::Display for Disconnected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the simulated cluster is unreachable")
    }
}

impl std::error::Error for Disconnected {}

/// Accepts connections until cancelled.
pub(crate) async fn serve(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    address: SocketAddr,
    clusters: Arc<Clusters>,
    tasks: Tasks,
    token: CancellationToken,
) -> Result<(), Infallible> {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = token.cancelled() => return Ok(()),
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "the simulator cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let (acceptor, clusters) = (acceptor.clone(), clusters.clone());
        drop(tasks.spawn(
            "simulator-connection",
            OnError::Log,
            OnCancel::Abort,
            move |_| async move {
                connection(stream, acceptor, address, clusters).await;
                Ok::<_, Infallible>(())
            },
        ));
    }
}

async fn connection(stream: TcpStream, acceptor: TlsAcceptor, address: SocketAddr, clusters: Arc<Clusters>) {
    let _ = stream.set_nodelay(true);
    let stream = match tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "TLS handshake failed"),
        Err(_) => return tracing::debug!("TLS handshake timed out"),
    };
    let service = service_fn(move |request| {
        let clusters = clusters.clone();
        async move { handle(request, address, &clusters).await }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new());
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(1000);
    if let Err(error) = builder.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(%error, "connection ended");
    }
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> String {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
        .to_owned()
}

async fn handle(
    request: Request<Incoming>,
    address: SocketAddr,
    clusters: &Clusters,
) -> Result<Response<Body>, Disconnected> {
    let (parts, body) = request.into_parts();
    let Some((name, path)) = split_cluster(parts.uri.path()) else {
        return Ok(respond(Answer::Text {
            code: 404,
            body: "404 page not found\n",
        }));
    };
    let Some(cluster) = clusters.get(name) else {
        return Ok(respond(Answer::Text {
            code: 404,
            body: "404 page not found\n",
        }));
    };
    let mut request = ApiRequest {
        method: parts.method,
        target: Target::parse(path),
        query: Query::parse(parts.uri.query().unwrap_or_default()),
        accept: text(&parts.headers, header::ACCEPT),
        content_type: text(&parts.headers, header::CONTENT_TYPE),
        user_agent: text(&parts.headers, header::USER_AGENT),
        body: Bytes::new(),
        address: address.to_string(),
    };
    let (verb, resource) = request.attributes();
    cluster.counters.count(verb, &resource, request.is_dry_run());
    match cluster.faults.next(verb, &resource) {
        Some(Fault::Disconnect) => return Err(Disconnected),
        Some(Fault::Hang) => std::future::pending::<()>().await,
        Some(Fault::Latency(delay)) => tokio::time::sleep(delay).await,
        Some(Fault::TooManyRequests { retry_after }) => {
            return Ok(respond_error(&ApiError::too_many_requests(retry_after)));
        }
        Some(Fault::Unavailable { retry_after }) => {
            return Ok(respond_error(&ApiError::unavailable(retry_after)));
        }
        Some(Fault::InternalError) => {
            return Ok(respond_error(&ApiError::internal("simulated internal error")));
        }
        Some(Fault::Forbidden) => return Ok(respond_error(&request.forbidden(verb))),
        None => {}
    }
    let token = text(&parts.headers, header::AUTHORIZATION);
    let token = token.strip_prefix("Bearer ").map(str::trim);
    if !token.is_some_and(|token| cluster.accepts(token)) {
        return Ok(respond_error(&ApiError::unauthorized()));
    }
    match Limited::new(body, MAX_BODY).collect().await {
        Ok(body) => request.body = body.to_bytes(),
        Err(_) => return Ok(respond_error(&ApiError::too_large(MAX_BODY))),
    }
    Ok(respond(request.answer(&cluster)))
}

/// Takes `/clusters/NAME/REST` apart.
fn split_cluster(path: &str) -> Option<(&str, &str)> {
    let rest = path.strip_prefix("/clusters/")?;
    Some(rest.split_once('/').unwrap_or((rest, "")))
}

fn respond_error(error: &ApiError) -> Response<Body> {
    let mut response = respond(Answer::error(error));
    if let Some(value) = error
        .retry_after()
        .and_then(|seconds| HeaderValue::from_str(&seconds.to_string()).ok())
    {
        response.headers_mut().insert(header::RETRY_AFTER, value);
    }
    response
}

fn respond(answer: Answer) -> Response<Body> {
    let (code, content_type, body, warnings) = match answer {
        Answer::Json { code, body, warnings } => (
            code,
            "application/json",
            Either::Left(Full::new(Bytes::from(body))),
            warnings,
        ),
        Answer::Text { code, body } => (
            code,
            "text/plain; charset=utf-8",
            Either::Left(Full::new(Bytes::from_static(body.as_bytes()))),
            vec![],
        ),
        Answer::Log(log) => (
            200,
            "text/plain",
            Either::Left(Full::new(Bytes::from(log))),
            vec![],
        ),
        Answer::Watch(watch) => (
            200,
            "application/json",
            Either::Right(StreamBody::new(events(*watch))),
            vec![],
        ),
    };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("no-cache, private"),
    );
    for warning in warnings {
        if warning == AGGREGATED_MARK {
            const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(AGGREGATED));
            continue;
        }
        let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            headers.append(header::WARNING, value);
        }
    }
    response
}

fn events(watch: Watch) -> BoxStream<'static, Result<Frame<Bytes>, Infallible>> {
    futures::stream::unfold(watch, |mut watch| async move {
        let bytes = watch.next().await?;
        Some((Ok(Frame::data(bytes)), watch))
    })
    .boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_are_told_apart_by_their_path() {
        assert_eq!(
            split_cluster("/clusters/a/api/v1/pods"),
            Some(("a", "api/v1/pods"))
        );
        assert_eq!(split_cluster("/clusters/a"), Some(("a", "")));
        assert_eq!(split_cluster("/api/v1"), None);
    }
}
