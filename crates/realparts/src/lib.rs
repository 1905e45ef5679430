//! The real servers and tools that tests and benches run against.
//!
//! A double proves what its author believed; a real kube-apiserver, a real Helm and a real PostgreSQL prove what is
//! so. `cargo xtask setup` puts them into a cache outside the repository; this crate knows the cache's layout, finds
//! what is in it, starts servers on free ports and ends them.
//!
//! ```text
//!   this process ──pipe──▶ supervisor (sh) ──▶ etcd                    one per ControlPlane
//!        │                                      ▲ --etcd-prefix
//!        ├──────pipe──▶ supervisor ──▶ kube-apiserver ◀── kube-controller-manager     one pair per Cluster
//!        └─ thread: stand-ins (kubelet, volume provisioner, load balancer) for what no server here does
//! ```
//!
//! Each server has a supervisor that ends it, and removes its folder, as soon as the pipe closes. The kernel closes
//! the pipe when this process ends, in whatever way it does, so nothing is left behind after a panic or a kill.
//!
//! Everything here blocks the calling thread and needs no async runtime; the stand-ins have a thread of their own,
//! so that a test's runtime may end without taking a shared cluster with it.

mod binaries;
pub mod cache;
mod error;
pub mod go_part;
mod ports;
mod postgres;
mod supervisor;
mod unprivileged;

#[cfg(feature = "control-plane")]
mod audit;
#[cfg(feature = "control-plane")]
mod certificates;
#[cfg(feature = "control-plane")]
mod cluster;
#[cfg(feature = "control-plane")]
mod control_plane;
#[cfg(feature = "gitea")]
mod gitea;
#[cfg(any(feature = "gitea", feature = "vault"))]
mod loopback;
#[cfg(feature = "control-plane")]
mod standin;
#[cfg(feature = "vault")]
mod vault;

pub use binaries::{
    ControlPlaneBinaries, control_plane_binaries, flux_ssa, gitea_binary, helm, kubectl, kustomize,
    postgres_binaries, vault_binary,
};
pub use cache::Cache;
pub use error::Error;
pub use postgres::{Durability, Postgres};
pub use supervisor::{Ending, Server};

#[cfg(feature = "control-plane")]
pub use audit::{AuditLog, AuditMark, AuditedRequest};
#[cfg(feature = "control-plane")]
pub use cluster::Cluster;
#[cfg(feature = "control-plane")]
pub use control_plane::ControlPlane;
#[cfg(feature = "gitea")]
pub use gitea::{Gitea, User, Visibility};
#[cfg(feature = "control-plane")]
pub use standin::{
    DELAY_ANNOTATION, HOLD_TERMINATION_ANNOTATION, LOG_ANNOTATION, POD_SCRIPT_ANNOTATION, PodScript,
};
#[cfg(feature = "vault")]
pub use vault::Vault;
