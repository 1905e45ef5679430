//! Simulated Kubernetes clusters: many in one process, each speaking the Kubernetes API over HTTPS.
//!
//! A fleet of thousands of clusters cannot be had on a laptop; what can be had is something that clients cannot tell
//! from it. This crate serves discovery, CRUD, watches, server-side apply with field ownership, custom resources,
//! namespaces, garbage collection, and workloads that become ready by themselves. The tests of the apply engine run on
//! it and on a real kube-apiserver alike; that is what makes it trustworthy.
//!
//! ```text
//!            https://127.0.0.1:PORT/clusters/NAME/…
//!                         │
//!   server ─ faults ─ counters ─ token ─► api ─► state ──► store ──► watch
//!                                          │       │  ▲
//!                        discovery, table ─┘       │  └─ behaviours (deployments, jobs, namespaces, garbage…)
//!                                                  └─ apply, schema, defaults, validation
//! ```
//!
//! Where it differs from a real server: there is one user with all rights, no admission webhooks, no CEL rules, no
//! protobuf, no exec or port-forward, and only the validation rules that an engine meets.
//!
//! ```no_run
//! # async fn run() -> Result<(), evenkeel_simulator::Error> {
//! use evenkeel_simulator::{Options, Simulator};
//!
//! let simulator = Simulator::start(Options::default()).await?;
//! let cluster = simulator.add_cluster("blue")?;
//! println!("{}", cluster.kubeconfig());
//! # Ok(())
//! # }
//! ```

mod api;
mod apply;
mod behaviours;
mod body;
mod clock;
mod cluster;
mod conversion;
mod counters;
mod crd;
mod defaults;
mod discovery;
mod environment;
mod error;
mod faults;
mod interner;
mod json;
mod list;
mod log;
mod negotiate;
mod object;
mod openapi;
mod patch;
mod quantity;
mod registry;
mod request;
mod schema;
mod selectors;
mod server;
mod simulator;
mod state;
mod status;
mod store;
mod table;
mod tls;
mod validation;
mod watch;
mod work;

pub use cluster::Cluster;
pub use counters::Counts;
pub use environment::Timing;
pub use error::Error;
pub use faults::{Fault, FaultRule, Faults};
pub use log::LoggedWrite;
pub use simulator::{Options, Simulator};

/// Annotation on a workload, or on its pod template, that scripts what becomes of it: `stuck` pods never become ready,
/// `fail` ones crash (jobs fail), `pull` ones never get their image, `slow` ones take ten times as long.
pub const BEHAVIOUR_ANNOTATION: &str = "simulator.evenkeel.dev/behaviour";
/// Annotation on a pod, or on a pod template, with the text that its containers have logged.
pub const LOG_ANNOTATION: &str = "simulator.evenkeel.dev/log";
