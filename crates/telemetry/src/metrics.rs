//! Metrics in the Prometheus text format.
//!
//! Two kinds: those that grow in this process (counters and histograms, [`Metrics::register`]), and gauges that are
//! computed when somebody looks ([`Metrics::collect_with`]), because they must say the same on every replica and
//! after a restart: the number of clusters by state comes from the database, not from this process's memory.

mod collector;
mod gates;
mod steps;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures::future::join_all;
use prometheus_client::encoding::prometheus_text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::{Metric, Registry};

pub use collector::{Collector, Gauges};
pub use gates::GateMetrics;
pub use steps::StepMetrics;

use crate::{Error, chain};
use collector::OneScrape;

/// The content type of a scrape.
pub const CONTENT_TYPE: &str = prometheus_text::CONTENT_TYPE;

/// Comes before every name.
pub const PREFIX: &str = "evenkeel";

/// How long one collector may take. A scrape is never held up by a slow database for longer.
pub const COLLECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The most samples of one gauge. More are not shown, and counted as an error of the collector.
pub const MAX_SAMPLES: usize = 2_000;

/// All metrics of a process. Clones are cheap and mean the same metrics.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    registry: RwLock<Registry>,
    names: RwLock<BTreeSet<String>>,
    collectors: RwLock<Vec<Arc<dyn Collector>>>,
    errors: Family<Vec<(&'static str, &'static str)>, Counter>,
}

impl Metrics {
    /// No metrics but the count of failed collectors.
    pub fn new() -> Self {
        let errors = Family::default();
        let mut registry = Registry::with_prefix(PREFIX);
        registry.register(
            "collector_errors",
            "Collectors that failed or took too long",
            errors.clone(),
        );
        Self(Arc::new(Inner {
            registry: RwLock::new(registry),
            names: RwLock::new(BTreeSet::from(["collector_errors".to_owned()])),
            collectors: RwLock::default(),
            errors,
        }))
    }

    /// Registers a metric; keep a clone of it to count with. The name gets [`PREFIX`] in front, and a counter's
    /// `_total` behind.
    ///
    /// # Errors
    /// When the name breaks the rules or is taken.
    pub fn register(&self, name: &str, help: &str, metric: impl Metric) -> Result<(), Error> {
        self.reserve(name)?;
        let mut registry = self.0.registry.write().unwrap_or_else(PoisonError::into_inner);
        registry.register(name, help, metric);
        Ok(())
    }

    /// Computes gauges at each scrape.
    ///
    /// # Errors
    /// When one of the collector's names breaks the rules or is taken.
    pub fn collect_with(&self, collector: impl Collector + 'static) -> Result<(), Error> {
        for name in collector.gauges() {
            self.reserve(name)?;
        }
        let mut collectors = self.0.collectors.write().unwrap_or_else(PoisonError::into_inner);
        collectors.push(Arc::new(collector));
        Ok(())
    }

    /// All metrics as text, [`CONTENT_TYPE`]. A collector that fails leaves out its gauges and is counted; the rest
    /// is shown.
    ///
    /// # Errors
    /// [`Error::Encode`], which no known metric causes.
    pub async fn scrape(&self) -> Result<String, Error> {
        let collectors = self
            .0
            .collectors
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let collected = join_all(collectors.iter().map(|collector| self.ask(&**collector))).await;
        let mut text = String::new();
        // Encoding awaits nothing, so the lock is short. The errors of this scrape are in it.
        {
            let registry = self.0.registry.read().unwrap_or_else(PoisonError::into_inner);
            prometheus_text::encode(&mut text, &registry).map_err(Error::Encode)?;
        }
        let mut computed = Registry::with_prefix(PREFIX);
        computed.register_collector(Box::new(OneScrape(collected.into_iter().flatten().collect())));
        prometheus_text::encode(&mut text, &computed).map_err(Error::Encode)?;
        Ok(text)
    }

    async fn ask(&self, collector: &dyn Collector) -> Vec<Gauges> {
        let name = collector.name();
        let failed = |reason: &dyn fmt::Display| {
            self.0.errors.get_or_create(&vec![("collector", name)]).inc();
            tracing::warn!(collector = name, "cannot compute metrics: {reason}");
        };
        let mut all = match tokio::time::timeout(COLLECT_TIMEOUT, collector.collect()).await {
            Ok(Ok(gauges)) => gauges,
            Ok(Err(error)) => {
                failed(&chain(&*error));
                return Vec::new();
            }
            Err(_) => {
                failed(&format_args!("no answer within {COLLECT_TIMEOUT:?}"));
                return Vec::new();
            }
        };
        all.retain(|gauges| {
            let declared = collector.gauges().contains(&gauges.name);
            if !declared {
                failed(&format_args!(
                    "{} is not among the gauges it declares",
                    gauges.name
                ));
            }
            declared
        });
        for gauges in &mut all {
            if gauges.samples.len() > MAX_SAMPLES {
                failed(&format_args!(
                    "{} has {} samples",
                    gauges.name,
                    gauges.samples.len()
                ));
                gauges.samples.truncate(MAX_SAMPLES);
            }
        }
        all
    }

    fn reserve(&self, name: &str) -> Result<(), Error> {
        let refuse = |reason| {
            Err(Error::MetricName {
                given: name.to_owned(),
                reason,
            })
        };
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(plain) {
            return refuse("it must begin with a-z and hold only a-z, 0-9 and '_'");
        }
        if name.ends_with("_total") {
            return refuse("the suffix _total is added to counters, and other metrics must not have it");
        }
        let mut names = self.0.names.write().unwrap_or_else(PoisonError::into_inner);
        if !names.insert(name.to_owned()) {
            return refuse("it is taken");
        }
        Ok(())
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}
