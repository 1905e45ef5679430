//! Where secrets are kept: HashiCorp Vault, or what speaks like it.

pub(crate) mod asked;
mod client;
mod data;
mod path;
mod session;

use async_trait::async_trait;
use evenkeel_core::Sensitive;

pub use client::{Engine, Vault, VaultSettings};
pub use data::SecretData;
pub use path::SecretPath;
pub use session::Login;

use crate::Error;
use crate::resources::DeletionPolicy;

/// The newest state of a secret, which a write names to be sure that nobody else wrote in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Its number. 0 means that there never was one; a secret that was deleted keeps its number.
    Numbered(u64),
    /// The store does not count: the last writer wins.
    Uncounted,
}

/// What was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// What the secret holds; none if there is none, or if it was deleted.
    pub data: Option<SecretData>,
    /// For the next write.
    pub version: Version,
}

/// What a write came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// It was so already: nothing was written.
    Unchanged,
    /// There is a new version.
    Changed,
}

/// What a removal came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removal {
    /// How many secrets were deleted or archived now.
    pub removed: usize,
    /// How many stay, because they are to stay or because the store cannot archive.
    pub kept: usize,
}

/// Keeps secrets.
///
/// Every method is level-based: called again after a fault it goes on from what it finds, and finds nothing to do once all is
/// done. That something cannot be read is an error, never an absence.
#[async_trait]
pub trait SecretStore: Send + Sync + std::fmt::Debug {
    /// Reads a secret.
    ///
    /// # Errors
    /// When the store cannot say whether there is one.
    async fn read(&self, path: &SecretPath) -> Result<Reading, Error>;

    /// Writes a whole secret over the version that was read.
    ///
    /// # Errors
    /// [`Error::Conflict`] when somebody else wrote since.
    async fn write(&self, path: &SecretPath, data: &SecretData, over: Version) -> Result<(), Error>;

    /// All secrets at that path or below it, sorted.
    ///
    /// # Errors
    /// When a listing fails, or there are too many.
    async fn below(&self, path: &SecretPath) -> Result<Vec<SecretPath>, Error>;

    /// Removes all secrets at that path or below it, as the policy says: [`DeletionPolicy::Delete`] with all their versions,
    /// [`DeletionPolicy::Archive`] so that they can be brought back, [`DeletionPolicy::Retain`] not at all.
    ///
    /// # Errors
    /// When one cannot be removed; those before it are.
    async fn remove(&self, path: &SecretPath, policy: DeletionPolicy) -> Result<Removal, Error>;

    /// Sets one key of a secret and leaves its others as they are. Writes nothing if it has that value.
    ///
    /// # Errors
    /// As [`Self::read`] and [`Self::write`].
    async fn set(&self, path: &SecretPath, key: &str, value: &Sensitive<String>) -> Result<Written, Error> {
        let Reading { data, version } = self.read(path).await?;
        let mut data = data.unwrap_or_default();
        if data.get(key) == Some(value.expose().as_str()) {
            return Ok(Written::Unchanged);
        }
        data.set(key, value);
        self.write(path, &data, version).await?;
        Ok(Written::Changed)
    }
}
