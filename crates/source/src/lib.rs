//! Where charts come from: directories, uploaded archives, Helm repositories and OCI registries; parsed once and shared.
//!
//! ```text
//! SourceRef ──▶ Sources ──▶ directory (below the root, stamp unchanged?) ─┐
//!                      ├──▶ archive  (fetched by digest, checked)  ───────┼─▶ Arc<Chart>, by content digest
//!                      └──▶ Remote   (resolution ─▶ archive by digest) ───┘
//! ```
//!
//! A parsed chart is shared by all clusters that use it. A directory is read again only when the stamp of its files
//! (path, length, time of change) differs, and what a version range stands for is asked for only when it is due, so a
//! check of an unchanged fleet reads no chart file and sends no request.
//!
//! A directory or archive may hold a kustomization or plain manifests instead; [`Content`] says which. Plain manifests are
//! parsed here; of a kustomization the files are gathered, with the folders beside it that it refers to, and every address
//! that a build would load from is noted.
//!
//! [`Helm`] finds charts by the settings and words of Helm, and checks who signed them: OpenPGP is read here, and keys and
//! signatures are given to aws-lc-rs.
//!
//! [`Signatures`] says which sources of a fleet must be signed, and by whom; what fails is refused before it is parsed.
//!
//! [`Remote`] speaks to hosts that others name: [`HostPolicy`] says which, [`Credentials`] stay with the host they are
//! for, and everything that comes back is bounded and checked against its digest before it is used.

mod address;
mod archives;
mod cache;
mod credentials;
mod directory;
mod error;
mod flight;
mod format;
mod helm;
mod hosts;
mod http;
mod index;
mod io_cause;
mod kustomization;
mod manifests;
mod openpgp;
mod registry;
mod remote;
mod repository;
mod reread;
mod signatures;
mod sources;
mod store;
mod version;

pub use archives::{Archives, NoArchives};
pub use cache::Cache;
pub use credentials::{Credentials, CredentialsFile, Entry, Scope, Secret, Tls};
pub use directory::{File, read_directory};
pub use error::Error;
pub use helm::{ChartOptions, Helm, HelmSettings, Located, Told};
pub use hosts::{HostPattern, HostPolicy};
pub use io_cause::io_cause;
pub use kustomization::{Kustomization, RemoteReference};
pub use manifests::Manifests;
pub use remote::{ARCHIVE_SIZE_MAX, CacheOptions, CredentialsSource, FRESH_FOR, Remote, RemoteOptions};
pub use signatures::Signatures;
pub use sources::{Content, DirectoryPolicy, Sources};
pub use store::CACHE_SIZE_MAX;
