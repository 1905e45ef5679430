//! Metrics of systems that are left alone while they are down or have had enough.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use crate::{Error, Metrics};

type Labels = Vec<(&'static str, String)>;

/// Whether each host takes calls, and how many were held back. Labels are
/// names of hosts, and of the Secrets by which they are called; both are few.
#[derive(Debug, Clone)]
pub struct GateMetrics {
    open: Family<Labels, Gauge>,
    held_back: Family<Labels, Counter>,
}

impl GateMetrics {
    /// Makes and registers them.
    ///
    /// # Errors
    /// When they are registered already.
    pub fn register(metrics: &Metrics) -> Result<Self, Error> {
        let made = Self {
            open: Family::default(),
            held_back: Family::default(),
        };
        metrics.register(
            "host_open",
            "Whether a host is called: 1, or 0 while it is left alone",
            made.open.clone(),
        )?;
        metrics.register(
            "host_calls_held_back",
            "Calls that were not made because their host is left alone",
            made.held_back.clone(),
        )?;
        Ok(made)
    }

    /// Whether a host takes calls now.
    pub fn shown(&self, host: &str, secret: &str, is_open: bool) {
        self.open
            .get_or_create(&labels(host, secret))
            .set(i64::from(is_open));
    }

    /// A call was not made.
    pub fn held_back(&self, host: &str, secret: &str) {
        self.held_back.get_or_create(&labels(host, secret)).inc();
    }
}

fn labels(host: &str, secret: &str) -> Labels {
    vec![("host", host.to_owned()), ("secret", secret.to_owned())]
}
