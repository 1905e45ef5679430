//! The one error type of this crate.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::Digest;

/// Why a source cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Directories are not allowed here at all.
    #[error(
        "source directory {0:?} is refused: this mothership was started without --source-root; upload an archive instead"
    )]
    DirectoriesRefused(String),
    /// A directory that lies outside the source root, by its text or through a symbolic link.
    #[error(
        "source directory {path:?} is refused: it must be a relative path that stays below the source root"
    )]
    OutsideRoot {
        /// The path given.
        path: String,
    },
    /// Something cannot be read.
    #[error("cannot read {path:?}: {source}")]
    Read {
        /// What was to be read.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// Something cannot be written.
    #[error("cannot write {path:?}: {source}")]
    Write {
        /// What was to be written.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The path is no directory.
    #[error("source {0:?} is not a directory")]
    NotADirectory(PathBuf),
    /// Too many, or too large, files.
    #[error("source directory {path:?} is refused: {problem}")]
    TooLarge {
        /// The directory.
        path: PathBuf,
        /// Which bound it passes.
        problem: String,
    },
    /// A file name that is not UTF-8.
    #[error("file name {0:?} is not UTF-8")]
    FileName(PathBuf),
    /// Neither a file nor a directory: a socket, a pipe or a device.
    #[error("cannot load irregular file {0:?} as it has file mode type bits set")]
    Irregular(PathBuf),
    /// No archive has this digest.
    #[error("no archive with digest {0} is stored: upload it first")]
    NoSuchArchive(Digest),
    /// The bytes that were stored under a digest do not have it.
    #[error("archive {wanted} is damaged: its content has digest {found}")]
    Damaged {
        /// The digest asked for.
        wanted: Digest,
        /// The digest of what came.
        found: Digest,
    },
    /// The store of archives failed.
    #[error("cannot fetch archive {digest}: {problem}")]
    Archives {
        /// The digest asked for.
        digest: Digest,
        /// The cause.
        problem: String,
    },
    /// The chart itself is at fault.
    #[error("{name}: {source}")]
    Chart {
        /// The directory or archive, as the user named it.
        name: String,
        /// The cause.
        #[source]
        source: Box<evenkeel_chart::Error>,
    },
    /// Charts of repositories and registries where none are read.
    #[error("charts from repositories and registries are not read here")]
    NoRemote,
    /// The file of credentials or of signatures, or one that it names.
    #[error("{file:?} cannot be used: {problem}")]
    Credentials {
        /// The file.
        file: PathBuf,
        /// What is wrong, with the line; never a value.
        problem: String,
    },
    /// A source that needs a signature and cannot have one, or that no entry of the signatures covers.
    #[error(
        "{name} is refused: {problem}, and whoever runs this mothership allows only what is signed (--source-signatures)"
    )]
    Unsigned {
        /// The source, as the user named it.
        name: String,
        /// Why there is no signature.
        problem: String,
    },
    /// A chart whose signature is missing or not accepted.
    #[error("{chart} is refused: {problem}; signature {file}, keys of {keyring:?}")]
    Signature {
        /// The chart and its version.
        chart: String,
        /// Where the signature lies.
        file: String,
        /// The keys that it may be signed with.
        keyring: PathBuf,
        /// The cause, with the key that signed.
        problem: String,
    },
    /// TLS cannot be spoken at all.
    #[error("TLS cannot be set up: {problem}")]
    Tls {
        /// The cause.
        problem: String,
    },
    /// A host that may not be spoken to.
    #[error(
        "{url} is refused: {reason}; whoever runs this mothership can allow its host with --source-hosts or --source-credentials"
    )]
    HostRefused {
        /// The address.
        url: String,
        /// Which rule it breaks.
        reason: String,
    },
    /// A host that does not answer, or not to the end.
    #[error("{url} cannot be reached: {problem}")]
    Unreachable {
        /// The address.
        url: String,
        /// The cause.
        problem: String,
    },
    /// A host that cannot answer now.
    #[error("{url} answers {status}: it is tried again later")]
    Busy {
        /// The address.
        url: String,
        /// Its status.
        status: String,
        /// How long it asks to be left alone.
        retry_after: Option<Duration>,
    },
    /// A host that does not let us in.
    #[error(
        "{host} refuses access to {url}: {problem}; credentials for {host} are missing, wrong, or may not read this"
    )]
    Unauthorized {
        /// The address.
        url: String,
        /// The host whose credentials are needed.
        host: String,
        /// What it says.
        problem: String,
    },
    /// Nothing is at an address.
    #[error("{url} does not exist there (404 Not Found)")]
    NotFound {
        /// The address.
        url: String,
    },
    /// Any other refusal.
    #[error("{url} answers {status}")]
    Status {
        /// The address.
        url: String,
        /// The status.
        status: String,
    },
    /// An answer larger than it may be.
    #[error("{url} is refused: it is larger than {limit} bytes")]
    Oversized {
        /// The address.
        url: String,
        /// The bound.
        limit: u64,
    },
    /// A download that is not what was promised.
    #[error("{url} is refused: its content has digest {found}, and {wanted} was promised")]
    Mismatch {
        /// The address.
        url: String,
        /// The digest promised.
        wanted: Digest,
        /// The digest of what came.
        found: Digest,
    },
    /// An index that cannot be read.
    #[error("the index of repository {repository} cannot be used: {problem}")]
    Index {
        /// The repository.
        repository: String,
        /// What is wrong.
        problem: String,
    },
    /// A repository without that chart, or without a version that fits.
    #[error("{wanted} is not in {place}{hint}")]
    NoVersion {
        /// The chart, and the version or range asked for.
        wanted: String,
        /// The repository.
        place: String,
        /// What there is instead, as the end of the sentence.
        hint: String,
    },
    /// A version that is neither a version nor a range.
    #[error("version {text:?} is not valid: {problem}; expected one like 1.2.3, ^1.2 or >=1.2 <2")]
    Range {
        /// The text.
        text: String,
        /// What is wrong.
        problem: String,
    },
    /// A registry whose answer is no chart, or makes no sense.
    #[error("{reference} cannot be used: {problem}")]
    Registry {
        /// The reference.
        reference: String,
        /// What is wrong.
        problem: String,
    },
    /// The cache on disk cannot be set up.
    #[error("the cache of sources at {path:?} cannot be used: {source}")]
    Cache {
        /// The directory.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// What Helm's own settings do not allow, in Helm's words where it has any.
    #[error("{0}")]
    Helm(String),
    /// A failure that several callers share.
    #[error(transparent)]
    Shared(Arc<Error>),
    /// Files that are neither chart, kustomization nor manifests.
    #[error("{name} cannot be used: {problem}")]
    Format {
        /// The directory or archive, as the user named it.
        name: String,
        /// What was looked for.
        problem: String,
    },
    /// A kustomization that cannot be read.
    #[error("kustomization {name} cannot be used: {problem}")]
    Kustomization {
        /// The directory or archive, as the user named it.
        name: String,
        /// What is wrong, with file and line.
        problem: String,
    },
    /// The work was cut off because the process ends.
    #[error("reading {0} was cut off: the process is ending")]
    Cancelled(String),
}

impl Error {
    /// A failure to write at `path`.
    pub(crate) fn write(path: &std::path::Path, source: std::io::Error) -> Self {
        Self::Write {
            path: path.to_owned(),
            source,
        }
    }

    /// Whether the same call may succeed later without anyone changing the source.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Archives { .. } | Self::Cancelled(_) | Self::Unreachable { .. } | Self::Busy { .. } => true,
            Self::Shared(error) => error.is_transient(),
            _ => false,
        }
    }

    /// How long the host asked to be left alone, if it did.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Busy { retry_after, .. } => *retry_after,
            Self::Shared(error) => error.retry_after(),
            _ => None,
        }
    }

    /// Whether a host did not let us in.
    pub fn is_forbidden(&self) -> bool {
        match self {
            Self::Unauthorized { .. } => true,
            Self::Shared(error) => error.is_forbidden(),
            _ => false,
        }
    }

    /// Whether there is nothing at the address.
    pub fn is_not_found(&self) -> bool {
        match self {
            Self::NotFound { .. } => true,
            Self::Shared(error) => error.is_not_found(),
            _ => false,
        }
    }
}
