//! Uploaded chart archives.

use evenkeel_core::Digest;
use serde::{Deserialize, Serialize};

/// The largest archive that is accepted, in bytes (DESIGN §6).
pub const ARCHIVE_SIZE_MAX: usize = 20 * 1024 * 1024;

/// An archive that is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Archive {
    /// Its content address, for `source: {archive: {digest}}`.
    pub digest: Digest,
    /// Its size in bytes.
    pub size: u64,
}
