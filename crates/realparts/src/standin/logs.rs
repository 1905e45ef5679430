//! Stands in for the part of a kubelet that the API server asks for the logs of containers.
//!
//! `GET /containerLogs/{namespace}/{pod}/{container}` is all that is served, one answer per connection.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use k8s_openapi::api::core::v1::Pod;
use kube::api::Api;
use kube::{Client, ResourceExt as _};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::pods::POD_SCRIPT_ANNOTATION;
use crate::Error;
use crate::certificates::Identity;

/// Annotation with the text that a Pod's containers have logged.
pub const LOG_ANNOTATION: &str = "stand-in.evenkeel.dev/log";

/// How long one request may take.
const REQUEST_BOUND: Duration = Duration::from_secs(10);

/// Length of a request's head at most.
const HEAD_LIMIT: usize = 16 * 1024;

/// A listening server that does not answer yet.
pub(super) struct LogServer {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl LogServer {
    /// Listens on a free port of the loopback interface.
    pub(super) async fn bind(identity: &Identity) -> Result<Self, Error> {
        let doing = "start the server of container logs";
        let config = tls(identity)
            .map_err(std::io::Error::other)
            .map_err(Error::io(doing))?;
        let listener = TcpListener::bind(("127.0.0.1", 0))
            .await
            .map_err(Error::io(doing))?;
        Ok(Self {
            listener,
            acceptor: TlsAcceptor::from(Arc::new(config)),
        })
    }

    /// The port that the node is to name.
    pub(super) fn port(&self) -> Result<u16, Error> {
        Ok(self
            .listener
            .local_addr()
            .map_err(Error::io("ask for a port"))?
            .port())
    }

    /// Answers, for ever.
    pub(super) async fn run(self, client: &Client) {
        let mut running = FuturesUnordered::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept() => {
                    if let Ok((connection, _)) = accepted {
                        running.push(tokio::time::timeout(REQUEST_BOUND, self.answer(connection, client)));
                    }
                }
                // How a connection ended is the API server's concern: it tells its client.
                Some(_) = running.next(), if !running.is_empty() => {}
            }
        }
    }

    async fn answer(&self, connection: TcpStream, client: &Client) -> std::io::Result<()> {
        let stream = self.acceptor.accept(connection).await?;
        respond(stream, client).await
    }
}

fn tls(identity: &Identity) -> Result<ServerConfig, Box<dyn std::error::Error + Send + Sync>> {
    let certificate = CertificateDer::from_pem_slice(identity.certificate.as_bytes())?;
    let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes())?;
    Ok(ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)?)
}

async fn respond(stream: impl AsyncRead + AsyncWrite + Unpin, client: &Client) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut request = String::new();
    stream.read_line(&mut request).await?;
    let mut read = request.len();
    loop {
        let mut line = String::new();
        read += stream.read_line(&mut line).await?;
        if line.trim().is_empty() {
            break;
        }
        if read > HEAD_LIMIT {
            return Err(std::io::ErrorKind::InvalidData.into());
        }
    }
    let (status, body) = match LogRequest::parse(&request) {
        Some(request) => match request.text(client).await {
            Ok(text) => ("200 OK", text),
            Err(error) => ("404 Not Found", error.to_string()),
        },
        None => ("404 Not Found", "a stand-in serves logs alone".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}

/// What the API server asks for.
#[derive(Debug, PartialEq, Eq)]
struct LogRequest {
    namespace: String,
    pod: String,
    container: String,
    /// Only that many lines of the end.
    tail: Option<usize>,
}

impl LogRequest {
    /// Reads a request line. None: not a request for logs.
    fn parse(line: &str) -> Option<Self> {
        let target = line.strip_prefix("GET ")?.split(' ').next()?;
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut parts = path
            .strip_prefix("/containerLogs/")?
            .split('/')
            .map(str::to_owned);
        let tail = query.split('&').find_map(|pair| pair.strip_prefix("tailLines="));
        Some(Self {
            namespace: parts.next()?,
            pod: parts.next()?,
            container: parts.next()?,
            tail: tail.and_then(|number| number.parse().ok()),
        })
    }

    async fn text(&self, client: &Client) -> Result<String, kube::Error> {
        let pods: Api<Pod> = Api::namespaced(client.clone(), &self.namespace);
        let pod = pods.get(&self.pod).await?;
        Ok(tail(&logged(&pod, &self.container), self.tail))
    }
}

/// What a container has logged: what the annotation says, else a line that tells which it is.
fn logged(pod: &Pod, container: &str) -> String {
    if let Some(text) = pod.annotations().get(LOG_ANNOTATION) {
        return if text.ends_with('\n') {
            text.clone()
        } else {
            format!("{text}\n")
        };
    }
    let script = pod
        .annotations()
        .get(POD_SCRIPT_ANNOTATION)
        .map_or("", String::as_str);
    let last = match script {
        "fail" | "crash-loop" => "fatal: the stand-in was told to fail\n",
        _ => "",
    };
    format!("{container} of {} started\n{last}", pod.name_any())
}

fn tail(text: &str, lines: Option<usize>) -> String {
    let all: Vec<&str> = text.split_inclusive('\n').collect();
    let first = all.len().saturating_sub(lines.unwrap_or(usize::MAX));
    all.get(first..).unwrap_or_default().concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_for_logs_are_understood_and_others_refused() {
        let line = "GET /containerLogs/n/web-0/main?follow=false&tailLines=20 HTTP/1.1\r\n";
        let expected = LogRequest {
            namespace: "n".to_owned(),
            pod: "web-0".to_owned(),
            container: "main".to_owned(),
            tail: Some(20),
        };
        assert_eq!(LogRequest::parse(line), Some(expected));
        assert_eq!(LogRequest::parse("GET /containerLogs/n/web-0 HTTP/1.1"), None);
        assert_eq!(LogRequest::parse("POST /exec/n/web-0/main HTTP/1.1"), None);
    }

    #[test]
    fn only_the_end_is_given_if_so_asked() {
        assert_eq!(tail("a\nb\nc\n", Some(2)), "b\nc\n");
        assert_eq!(tail("a\nb\nc\n", None), "a\nb\nc\n");
        assert_eq!(tail("a\n", Some(5)), "a\n");
    }
}
