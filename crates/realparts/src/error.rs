//! The one error type of this crate.

use std::path::PathBuf;

/// Why a real part could not be found, started or used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No variable says where the cache is.
    #[error("no place for the cache: set EVENKEEL_CACHE, XDG_CACHE_HOME or HOME")]
    NoCache,

    /// A part is not in the cache.
    #[error("{what} is missing ({}): run `cargo xtask setup`", path.display())]
    Missing {
        /// Name and version of the part.
        what: String,
        /// Where it should be.
        path: PathBuf,
    },

    /// `KUBEBUILDER_ASSETS` is set, but a server is not in that folder.
    #[error(
        "KUBEBUILDER_ASSETS names {}, which has no {program}: put etcd, kube-apiserver and kube-controller-manager \
         there, or unset it to use the cache",
        folder.display()
    )]
    Assets {
        /// The folder that the variable names.
        folder: PathBuf,
        /// The binary looked for.
        program: &'static str,
    },

    /// The machine has no PostgreSQL server.
    #[error(
        "no PostgreSQL server found (looked for initdb below /usr/lib/postgresql/*/bin and in PATH): \
         install the Debian package `postgresql` or its like"
    )]
    NoPostgres,

    /// We are root, the server refuses to run as root, and no other user was found.
    #[error(
        "{server} does not run as root, and /etc/passwd has neither `postgres` nor `nobody` to run it as"
    )]
    NoUnprivilegedUser {
        /// Which server.
        server: &'static str,
    },

    /// A server ended or did not become ready in time.
    #[error("{server} did not start: {reason}\nlast lines of {}:\n{last_lines}", log.display())]
    Start {
        /// Which server.
        server: String,
        /// What was seen.
        reason: String,
        /// Its log file; gone once the server's folder is removed, hence `last_lines`.
        log: PathBuf,
        /// The end of that file.
        last_lines: String,
    },

    /// Files, processes.
    #[error("cannot {doing}: {source}")]
    Io {
        /// What was tried, on what.
        doing: String,
        /// The system's answer.
        source: std::io::Error,
    },

    /// A name that cannot be a cluster's.
    #[error("cluster name {name:?} is not valid: 1 to 30 of a-z, 0-9 and -")]
    ClusterName {
        /// The name given.
        name: String,
    },

    /// A certificate could not be made.
    #[cfg(feature = "control-plane")]
    #[error("cannot make a certificate: {0}")]
    Certificate(#[from] rcgen::Error),

    /// The stand-ins could not talk to their API server.
    #[cfg(feature = "control-plane")]
    #[error("cannot {doing}: {source}")]
    Api {
        /// What was tried, on what.
        doing: String,
        /// The client's or the server's answer.
        source: Box<kube::Error>,
    },

    /// No answer from a server.
    #[cfg(any(feature = "gitea", feature = "vault"))]
    #[error("cannot {doing}: {source}")]
    Http {
        /// What was asked for.
        doing: String,
        /// What the client says.
        source: reqwest::Error,
    },

    /// A server refused.
    #[cfg(any(feature = "gitea", feature = "vault"))]
    #[error("cannot {doing}: {server} answered {status}: {answer}")]
    Refused {
        /// Which server.
        server: &'static str,
        /// What was asked for.
        doing: String,
        /// Status of the answer.
        status: u16,
        /// Its body.
        answer: String,
    },

    /// An audit line that is not what the API server is known to write.
    #[cfg(feature = "control-plane")]
    #[error("audit log {}, byte {offset}: {source}", path.display())]
    Audit {
        /// The audit log.
        path: PathBuf,
        /// Where the line starts.
        offset: u64,
        /// What the parser said.
        source: serde_json::Error,
    },
}

impl Error {
    /// For `map_err`: an input or output error with what was being done.
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::Io { doing, source }
    }

    /// For `map_err`: a client's error with what was being done.
    #[cfg(feature = "control-plane")]
    pub(crate) fn api(doing: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let doing = doing.into();
        move |source| Self::Api {
            doing,
            source: Box::new(source),
        }
    }
}
