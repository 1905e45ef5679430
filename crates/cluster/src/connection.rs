//! The way to one target cluster: a kubeconfig's content becomes one pooled client whose every call is bounded.

mod client;
mod kubeconfig;
mod limits;
mod status;
mod tls;
mod watch;

pub use client::{Cluster, ConnectOptions};
pub(crate) use client::{Guard, PatchKind};
pub use kubeconfig::KubeconfigPolicy;
pub use limits::{Limits, RequestCounts, Verb};
pub(crate) use status::Subject;
pub(crate) use watch::{WatchEvent, WatchStream};
