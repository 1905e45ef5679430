//! Gauges that are computed when somebody looks.

use std::fmt;

use futures::future::BoxFuture;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::BoxError;

/// Computes gauges at each scrape, for example one `SELECT state, count(*)`.
pub trait Collector: Send + Sync {
    /// A name for logs and for the count of errors.
    fn name(&self) -> &'static str;

    /// The names of the gauges it computes, without the prefix.
    fn gauges(&self) -> &'static [&'static str];

    /// Computes them.
    fn collect(&self) -> BoxFuture<'_, Result<Vec<Gauges>, BoxError>>;
}

/// One gauge with all its label sets.
#[derive(Debug, Clone, PartialEq)]
pub struct Gauges {
    /// The name, without the prefix.
    pub name: &'static str,
    /// What it says, without a full stop.
    pub help: &'static str,
    /// Labels and value. Labels are of few values: never names of clusters or objects.
    pub samples: Vec<(Vec<(&'static str, String)>, f64)>,
}

impl Gauges {
    /// A gauge without labels.
    pub fn single(name: &'static str, help: &'static str, value: f64) -> Self {
        Self {
            name,
            help,
            samples: vec![(Vec::new(), value)],
        }
    }

    /// A gauge with one label.
    pub fn by<L: Into<String>>(
        name: &'static str,
        help: &'static str,
        label: &'static str,
        values: impl IntoIterator<Item = (L, f64)>,
    ) -> Self {
        let samples = values
            .into_iter()
            .map(|(name, value)| (vec![(label, name.into())], value))
            .collect();
        Self { name, help, samples }
    }
}

/// What all collectors said in one scrape.
#[derive(Debug)]
pub(super) struct OneScrape(pub(super) Vec<Gauges>);

impl prometheus_client::collector::Collector for OneScrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for gauges in &self.0 {
            // The registry ends the help of its own metrics with a full stop.
            let help = format!("{}.", gauges.help);
            let mut family = encoder.encode_descriptor(gauges.name, &help, None, MetricType::Gauge)?;
            for (labels, value) in &gauges.samples {
                ConstGauge::new(*value).encode(family.encode_family(labels)?)?;
            }
        }
        Ok(())
    }
}
