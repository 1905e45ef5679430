//! Listening and serving.

use std::net::SocketAddr;

use evenkeel_fleet::Fleet;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::router;

/// Why the API cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Anyone who reaches the address could do anything.
    #[error("{0} is refused: without authentication the API listens on loopback only, like 127.0.0.1:{port}", port = .0.port())]
    NotLoopback(SocketAddr),
    /// The address is taken or not ours.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The listener broke.
    #[error("serving failed: {0}")]
    Serve(#[source] std::io::Error),
}

/// A bound listener.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
}

impl Server {
    /// Binds `address`; port 0 takes a free one.
    ///
    /// # Errors
    /// [`Error::NotLoopback`], [`Error::Listen`].
    pub async fn bind(address: SocketAddr) -> Result<Self, Error> {
        if !address.ip().is_loopback() {
            return Err(Error::NotLoopback(address));
        }
        let refused = |source| Error::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        Ok(Self { listener, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` is cancelled and the requests under way are answered.
    ///
    /// # Errors
    /// [`Error::Serve`].
    pub async fn serve(self, fleet: Fleet, stop: CancellationToken) -> Result<(), Error> {
        let router = router(fleet, stop.clone());
        axum::serve(self.listener, router)
            .with_graceful_shutdown(async move { stop.cancelled().await })
            .await
            .map_err(Error::Serve)
    }
}
