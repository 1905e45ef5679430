//! What all doubles of HTTP servers have in common: a port on loopback, without TLS, served until it is dropped.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A server that answers. Ends when dropped.
#[derive(Debug)]
pub(crate) struct Double {
    address: SocketAddr,
    serving: JoinHandle<()>,
}

impl Drop for Double {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Double {
    /// Starts one on the calling runtime; `what` is for errors.
    ///
    /// # Panics
    /// When no port can be had.
    #[allow(clippy::disallowed_methods, reason = "ended by whoever drops the double")]
    pub(crate) async fn start<F, Fut>(what: &str, answer: F) -> Self
    where
        F: Fn(Request<Incoming>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Response<Full<Bytes>>> + Send + 'static,
    {
        let listening = async {
            let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
            let address = listener.local_addr()?;
            Ok::<_, std::io::Error>((listener, address))
        };
        let (listener, address) = match listening.await {
            Ok(listening) => listening,
            Err(error) => panic!("{what} cannot listen: {error}"),
        };
        let serving = tokio::spawn(serve(listener, Arc::new(answer)));
        Self { address, serving }
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

async fn serve<F, Fut>(listener: TcpListener, answer: Arc<F>)
where
    F: Fn(Request<Incoming>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Response<Full<Bytes>>> + Send + 'static,
{
    while let Ok((stream, _)) = listener.accept().await {
        let answer = Arc::clone(&answer);
        let connection = async move {
            let service = service_fn(|request| {
                let answered = answer(request);
                async move { Ok::<_, Infallible>(answered.await) }
            });
            let _ = Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), service)
                .await;
        };
        #[allow(clippy::disallowed_methods, reason = "ends with its client")]
        drop(tokio::spawn(connection));
    }
}
