//! Who keeps uploaded archives.

use async_trait::async_trait;
use bytes::Bytes;
use evenkeel_core::Digest;

use crate::Error;

/// A store of archives by content address.
#[async_trait]
pub trait Archives: Send + Sync {
    /// The archive with this digest.
    ///
    /// # Errors
    /// [`Error::NoSuchArchive`] when there is none, [`Error::Archives`] when the store fails.
    async fn archive(&self, digest: &Digest) -> Result<Bytes, Error>;
}

/// A store without archives, for `evenkeel local`.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoArchives;

#[async_trait]
impl Archives for NoArchives {
    async fn archive(&self, digest: &Digest) -> Result<Bytes, Error> {
        Err(Error::NoSuchArchive(*digest))
    }
}
