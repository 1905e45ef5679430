//! Where charts come from: directories and uploaded archives, parsed once and shared.
//!
//! ```text
//! SourceRef ──▶ Sources ──▶ directory (below the root, stamp unchanged?) ─┐
//!                      └──▶ archive  (fetched by digest, checked)  ───────┴─▶ Arc<Chart>, by content digest
//! ```
//!
//! A parsed chart is shared by all clusters that use it. A directory is read again only when the stamp of its files
//! (path, length, time of change) differs, so a check of an unchanged fleet reads no chart file.

mod archives;
mod cache;
mod directory;
mod error;
mod sources;

pub use archives::{Archives, NoArchives};
pub use directory::{File, read_directory};
pub use error::Error;
pub use sources::{DirectoryPolicy, Sources};
