//! The inventory's archives, as sources see them.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use evenkeel_core::Digest;
use evenkeel_inventory::Store;
use evenkeel_source as source;

/// Uploaded archives, kept in the inventory.
pub(crate) struct StoredArchives(pub(crate) Arc<dyn Store>);

#[async_trait]
impl source::Archives for StoredArchives {
    async fn archive(&self, digest: &Digest) -> Result<Bytes, source::Error> {
        match self.0.archive(digest).await {
            Ok(content) => Ok(Bytes::from(content)),
            Err(evenkeel_inventory::Error::NotFound { .. }) => Err(source::Error::NoSuchArchive(*digest)),
            Err(error) => Err(source::Error::Archives {
                digest: *digest,
                problem: error.to_string(),
            }),
        }
    }
}
