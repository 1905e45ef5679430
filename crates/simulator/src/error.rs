//! What can go wrong with a simulator.

use std::net::SocketAddr;

use crate::status::ApiError;

/// An error of the simulator, or what a simulated API server would have answered.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The listener could not be opened.
    #[error("the simulator cannot listen on {address}: choose another address or port")]
    Bind {
        /// The address that was asked for.
        address: SocketAddr,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// The certificates could not be made.
    #[error("the simulator cannot make its certificates: {0}")]
    Certificate(String),
    /// A cluster's name cannot be part of a URL.
    #[error("cluster name {0:?} is not a DNS label: use lower-case letters, digits and '-'")]
    Name(String),
    /// There is a cluster of that name already.
    #[error("the simulator has a cluster {0:?} already")]
    Exists(String),
    /// There is no cluster of that name.
    #[error("the simulator has no cluster {0:?}")]
    NoCluster(String),
    /// The API server's answer to a direct call.
    #[error("{reason} ({code}): {message}")]
    Api {
        /// The HTTP status code.
        code: u16,
        /// The reason, as in a `Status` object.
        reason: &'static str,
        /// The message.
        message: String,
    },
}

impl From<ApiError> for Error {
    fn from(error: ApiError) -> Self {
        Self::Api {
            code: error.code,
            reason: error.reason,
            message: error.message,
        }
    }
}
