//! The REST API of Project Syn's Lieutenant, over the custom resources of `evenkeel-operator`: tenants, clusters, the
//! manifest that installs a cluster's agent. For programs that speak to Lieutenant's API today (Commodore, Steward,
//! scripts): paths, methods, status codes and shapes are those of lieutenant-api at b6f813a, its faults aside.
//!
//! There is no state of its own and no right of its own: a call goes to the Kubernetes API server with the caller's
//! token, and what that server allows is allowed. The one exception is the manifest, which a one-time token opens:
//! `bootstrap` says how.
//!
//! It knows nothing of the fleet; whoever runs the operator serves it:
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use evenkeel_server::lieutenant::{self, Settings};
//! # async fn run(config: kube::Config, tasks: evenkeel_telemetry::Tasks) -> Result<(), Box<dyn std::error::Error>> {
//! let settings = Settings::from_environment(|name| std::env::var(name).ok())?;
//! let clock = Arc::new(evenkeel_telemetry::SystemClock);
//! let router = lieutenant::router(settings, &config, clock, &tasks)?;
//! let server = evenkeel_server::Server::bind_authenticated("0.0.0.0:8080".parse()?).await?;
//! server.serve_router(router, tasks.token()).await?;
//! # Ok(())
//! # }
//! ```

mod access;
mod attempts;
mod bootstrap;
mod cluster_document;
mod clusters;
mod document;
mod extract;
mod failure;
mod git;
mod manifest;
mod names;
mod pages;
mod patch;
mod routes;
mod settings;
mod tenant_document;
mod tenants;
mod tokens;

pub use routes::router;
pub use settings::{Oidc, Settings, VaultLogin};

/// Why the API cannot be offered.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting that cannot be used.
    #[error("{name} cannot be used: {problem}")]
    Setting {
        /// Name of the environment variable.
        name: &'static str,
        /// What is wrong with it, and what was expected.
        problem: String,
    },
    /// No client can be made of the API server's address and certificates.
    #[error("no client for the Kubernetes API server can be made: {0}")]
    Client(#[source] kube::Error),
}
