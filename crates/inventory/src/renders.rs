//! Kept renders: what a chart that uses randomness, time or `lookup` gave, once per component revision (DESIGN §9).

use async_trait::async_trait;
use evenkeel_core::{ClusterId, ComponentName, ComponentRevision, Sensitive};

use crate::Error;

/// The largest render kept, in bytes before compression.
pub const RENDER_BYTES_MAX: usize = 32 * 1024 * 1024;
/// How many revisions of a component keep their render.
pub const RENDERS_KEPT: u64 = 2;

/// Kept renders, encrypted.
#[async_trait]
pub trait Renders: Send + Sync {
    /// Keeps the render of a revision and returns the one that counts: the first kept wins, so that every attempt
    /// applies the same passwords. Renders older than [`RENDERS_KEPT`] revisions go.
    ///
    /// # Errors
    /// [`Error::TooLarge`]; [`Error::NotFound`] when the cluster does not exist; [`Error::Unreadable`] when one is
    /// kept that cannot be read.
    async fn put_render(
        &self,
        cluster: &ClusterId,
        component: &ComponentName,
        revision: ComponentRevision,
        content: Sensitive<Vec<u8>>,
    ) -> Result<Sensitive<Vec<u8>>, Error>;

    /// The kept render of a revision, if any.
    ///
    /// # Errors
    /// [`Error::Unreadable`].
    async fn render(
        &self,
        cluster: &ClusterId,
        component: &ComponentName,
        revision: ComponentRevision,
    ) -> Result<Option<Sensitive<Vec<u8>>>, Error>;
}
