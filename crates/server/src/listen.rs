//! Listening and serving.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use evenkeel_fleet::Fleet;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::router;

/// How long requests under way have to end once the process stops. Only a caller that never finishes sending its
/// request needs longer.
const DRAIN: Duration = Duration::from_secs(5);

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
        Self::bind_authenticated(address).await
    }

    /// Binds any `address`, for a router that asks each caller who it is, as that of [`crate::lieutenant`] does.
    ///
    /// # Errors
    /// [`Error::Listen`].
    pub async fn bind_authenticated(address: SocketAddr) -> Result<Self, Error> {
        let refused = |source| Error::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        Ok(Self { listener, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` is cancelled and the requests under way are answered, or have had their time.
    ///
    /// # Errors
    /// [`Error::Serve`].
    pub async fn serve(self, fleet: Fleet, stop: CancellationToken) -> Result<(), Error> {
        self.serve_router(router(fleet, stop.clone()), stop).await
    }

    /// Serves any router, in the same way.
    ///
    /// # Errors
    /// [`Error::Serve`].
    pub async fn serve_router(self, router: Router, stop: CancellationToken) -> Result<(), Error> {
        let late = {
            let stop = stop.clone();
            async move {
                stop.cancelled().await;
                tokio::time::sleep(DRAIN).await;
            }
        };
        let served = axum::serve(self.listener, router)
            .with_graceful_shutdown(async move { stop.cancelled().await })
            .into_future();
        tokio::select! {
            served = served => served.map_err(Error::Serve),
            () = late => {
                tracing::warn!("a caller did not finish its request in time and is left");
                Ok(())
            }
        }
    }
}
