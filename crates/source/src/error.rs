//! The one error type of this crate.

use std::path::PathBuf;

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
    /// The path is no directory.
    #[error("source {0:?} is not a directory")]
    NotADirectory(PathBuf),
    /// Too many, or too large, files.
    #[error("chart directory {path:?} is refused: {problem}")]
    TooLarge {
        /// The directory.
        path: PathBuf,
        /// Which bound it passes.
        problem: String,
    },
    /// A file name that is not UTF-8.
    #[error("file name {0:?} is not UTF-8")]
    FileName(PathBuf),
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
    /// The work was cut off because the process ends.
    #[error("reading {0} was cut off: the process is ending")]
    Cancelled(String),
}

impl Error {
    /// Whether the same call may succeed later without anyone changing the source.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Archives { .. } | Self::Cancelled(_))
    }
}
