//! The way to one target cluster: a kubeconfig's content becomes one pooled client whose every call is bounded.

mod breaker;
mod client;
mod credentials;
mod kubeconfig;
mod limits;
mod pace;
mod patch;
mod plugin;
mod status;
mod tls;
mod transport;
mod unheard;
mod warm;
mod watch;

pub use client::{Cluster, ConnectOptions};
pub(crate) use client::{Guard, HeldOpen};
pub use credentials::{KubeconfigSource, Refreshed};
pub use kubeconfig::KubeconfigPolicy;
pub use limits::{Limits, RequestCounts, Verb};
pub(crate) use patch::PatchKind;
pub(crate) use status::Subject;
pub(crate) use watch::{WatchEvent, WatchStream};
