//! The controller of GitRepo: one repository at a Git host.
//!
//! ```text
//! claim ─┬─ label
//!        ├─ connect ── observe ── project ─┬─ description
//!        │                                 ├─ deploy-keys
//!        └─ key-pairs ─────────────────────┘  (needs both)
//!                                          ├─ access-token
//!                                          ├─ ci-variables
//!                                          └─ files
//! deleted: revoke-token ── remove ── release
//! ```

mod connection;
mod controller;
mod key_pair;
mod record;
mod state;
mod steps;
mod token_secret;

pub(crate) use controller::pipelines;
pub use controller::{GitRepoSettings, GitRepos};
pub(crate) use record::ANNOTATION as RECORD;
pub(crate) use steps::FILES_SYNCED;
