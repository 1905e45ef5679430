//! What can go wrong when the API is called.

use crate::Problem;

/// A call that did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server answered with an error.
    #[error("{0}")]
    Problem(Box<Problem>),
    /// The server could not be reached, or the connection broke.
    #[error("cannot reach the mothership at {url}: {source}; is `evenkeel mothership` running there?")]
    Unreachable {
        /// The address that was called.
        url: String,
        /// The cause.
        #[source]
        source: reqwest::Error,
    },
    /// The server answered something that is no answer of this API.
    #[error("the answer of {url} (HTTP {status}) is not understood: {detail}; is it an Evenkeel mothership?")]
    Answer {
        /// The address that was called.
        url: String,
        /// The HTTP status of the answer.
        status: u16,
        /// What was wrong with it.
        detail: String,
    },
    /// The address is no URL.
    #[error("server address {0:?} is not valid: expected something like http://127.0.0.1:8080")]
    Address(String),
    /// The HTTP client could not be built.
    #[error("cannot build the HTTP client")]
    Client(#[source] reqwest::Error),
}
