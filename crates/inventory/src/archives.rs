//! Uploaded chart archives, named by their content.

use async_trait::async_trait;
use evenkeel_core::Digest;
use jiff::Timestamp;

use crate::Error;

/// The largest archive accepted, in bytes (DESIGN §6).
pub const ARCHIVE_BYTES_MAX: usize = 20 * 1024 * 1024;

/// Uploaded archives. One is kept while a retained configuration names it.
#[async_trait]
pub trait Archives: Send + Sync {
    /// Keeps an archive and returns its name. The same content twice is kept once.
    ///
    /// # Errors
    /// [`Error::TooLarge`].
    async fn put_archive(&self, content: Vec<u8>) -> Result<Digest, Error>;

    /// The content of an archive, checked against its name.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Unreadable`] when the content no longer has that digest.
    async fn archive(&self, digest: &Digest) -> Result<Vec<u8>, Error>;

    /// Removes archives uploaded before `before` that no configuration names, at most `limit` of them, and returns
    /// how many went. The grace keeps an upload whose configuration is still on its way.
    ///
    /// # Errors
    /// [`Error::Database`].
    async fn remove_unused_archives(&self, before: Timestamp, limit: u32) -> Result<u64, Error>;
}
