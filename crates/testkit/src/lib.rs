//! Shared support for tests that need real parts.
//!
//! - [`cluster`]: a real Kubernetes API server with controllers, started once per test process and name. Take the
//!   same name unless the test changes things that others would see; a process may have [`MAX_CLUSTERS`].
//! - [`TestCluster::namespace`]: a fresh namespace, so that tests on one cluster do not meet.
//! - [`TestCluster::client`]: a client for the runtime of the calling test.
//! - [`TestCluster::requests_of`]: what the API server was asked by one client.
//! - [`eventually`]: waits for a condition, with a bound, and says what was seen last. Tests never sleep.
//! - [`FaultProxy`]: stands in front of an API server and lets one request go wrong.
//! - [`Broker`]: a double of the list of runtimes of Kyma's environment broker.
//! - [`Garden`]: a double of the part of Gardener that issues credentials of shoots.
//! - [`GitLab`]: a double of the part of GitLab that the operator speaks to.
//! - [`kubectl`](TestCluster::kubectl), [`helm`](TestCluster::helm): the real clients.
//! - [`postgres`]: a real PostgreSQL, one per process.
//! - [`gitea`]: a real Gitea, one per process: Git hosting, Helm repository, OCI registry.
//! - [`vault`]: a real Vault, one per process.
//!
//! Everything ends with the test process, also when that is killed.
//!
//! ```no_run
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let cluster = evenkeel_testkit::cluster("main");
//! let namespace = cluster.namespace("readiness").await;
//! let output = cluster.kubectl().args(["-n", &namespace, "get", "pods"]).output();
//! # drop(output);
//! # }
//! ```
#![allow(
    clippy::panic,
    reason = "support for tests: a part that cannot be had fails the test, with what to do about it"
)]

mod broker;
mod cluster;
mod double;
mod eventually;
mod fault_proxy;
mod garden;
mod gitlab;

use std::sync::{Mutex, OnceLock, PoisonError};

pub use broker::Broker;
pub use cluster::{MAX_CLUSTERS, TestCluster, cluster};
pub use evenkeel_realparts as realparts;
pub use evenkeel_realparts::{
    AuditMark, AuditedRequest, DELAY_ANNOTATION, HOLD_TERMINATION_ANNOTATION, LOG_ANNOTATION,
    POD_SCRIPT_ANNOTATION, PodScript,
};
use evenkeel_realparts::{ControlPlane, Gitea, Postgres, Vault};
pub use eventually::{BOUND, eventually, eventually_within};
pub use fault_proxy::{CallFault, FaultProxy};
pub use garden::Garden;
pub use gitlab::GitLab;

/// The control plane of this test process: etcd, on which [`cluster`] starts its clusters.
///
/// # Panics
/// When it cannot be started; the message says what to do.
pub fn control_plane() -> &'static ControlPlane {
    static SHARED: Once<ControlPlane> = Once::new();
    SHARED.get_or_start("the control plane", ControlPlane::start)
}

/// The PostgreSQL server of this test process. Make a database of your own on it.
///
/// # Panics
/// When it cannot be started; the message says what to do.
pub fn postgres() -> &'static Postgres {
    static SHARED: Once<Postgres> = Once::new();
    SHARED.get_or_start("PostgreSQL", Postgres::start)
}

/// The Gitea server of this test process. Make an organisation or a user of your own on it.
///
/// # Panics
/// When it cannot be started; the message says what to do.
pub fn gitea() -> &'static Gitea {
    static SHARED: Once<Gitea> = Once::new();
    SHARED.get_or_start("Gitea", Gitea::start)
}

/// The Vault server of this test process. Make an engine of your own on it.
///
/// # Panics
/// When it cannot be started; the message says what to do.
pub fn vault() -> &'static Vault {
    static SHARED: Once<Vault> = Once::new();
    SHARED.get_or_start("Vault", Vault::start)
}

/// A temporary folder, removed when dropped.
///
/// # Panics
/// When it cannot be created.
pub fn temp_dir() -> tempfile::TempDir {
    match tempfile::Builder::new().prefix("ek-test-").tempdir() {
        Ok(folder) => folder,
        Err(error) => panic!("cannot create a temporary folder: {error}"),
    }
}

/// Installs the process's TLS provider, if it has none yet. Clients of this crate do it themselves.
pub fn install_crypto_provider() {
    // An error says that there is one already, which is as good.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
}

/// Something started once. A failed start is not tried again by each test that wants it: they all fail, at once.
struct Once<T: 'static> {
    part: OnceLock<Result<T, String>>,
    starting: Mutex<()>,
}

impl<T> Once<T> {
    const fn new() -> Self {
        Self {
            part: OnceLock::new(),
            starting: Mutex::new(()),
        }
    }

    fn get_or_start<E: std::fmt::Display>(&self, what: &str, start: impl FnOnce() -> Result<T, E>) -> &T {
        let _one_at_a_time = self.starting.lock().unwrap_or_else(PoisonError::into_inner);
        match self
            .part
            .get_or_init(|| start().map_err(|error| error.to_string()))
        {
            Ok(part) => part,
            Err(message) => panic!("{what} cannot be used: {message}"),
        }
    }
}
