//! What a process watches, for its operators: whether its places suffice, and what they cost.

use std::sync::{Arc, Mutex};

use evenkeel_telemetry::BoxError;
use evenkeel_telemetry::metrics::{Collector, Gauges};
use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::{Places, lock};

const CLUSTERS: &str = "watched_clusters";
const CLUSTERS_MAX: &str = "watched_clusters_max";
const LOST: &str = "watch_lost_clusters";
const WATCHES: &str = "watches";
const WATCHES_MAX: &str = "watches_max";
const OBJECTS: &str = "watched_objects";
const BYTES: &str = "watched_objects_bytes";

/// The gauges of one process; those of several add up.
pub(super) struct WatchGauges {
    pub(super) places: Arc<Mutex<Places>>,
    pub(super) clusters_max: usize,
    pub(super) watches_max: usize,
}

impl Collector for WatchGauges {
    fn name(&self) -> &'static str {
        "watches"
    }

    fn gauges(&self) -> &'static [&'static str] {
        &[CLUSTERS, CLUSTERS_MAX, LOST, WATCHES, WATCHES_MAX, OBJECTS, BYTES]
    }

    fn collect(&self) -> BoxFuture<'_, Result<Vec<Gauges>, BoxError>> {
        let (watched, lost) = {
            let places = lock(&self.places);
            (places.watched(), places.lost_now())
        };
        // Exact up to 2^53.
        let single = |name, help, value: usize| Gauges::single(name, help, value as f64);
        let states = [
            ("calm", watched.calm as f64),
            ("unsettled", (watched.clusters - watched.calm) as f64),
        ];
        let gauges = vec![
            Gauges::by(
                CLUSTERS,
                "Clusters with live watches: calm when all are open and nothing departs from what was found",
                "state",
                states,
            ),
            single(
                CLUSTERS_MAX,
                "How many clusters may have live watches here",
                self.clusters_max,
            ),
            single(
                LOST,
                "Clusters whose watches ended and are not tried again yet",
                lost,
            ),
            single(
                WATCHES,
                "Live watches, one for each kind of a cluster",
                watched.watches,
            ),
            single(
                WATCHES_MAX,
                "How many live watches there may be here",
                self.watches_max,
            ),
            single(OBJECTS, "Objects that live watches cover", watched.size.objects),
            single(
                BYTES,
                "What is remembered of these objects, in bytes",
                watched.size.bytes,
            ),
        ];
        std::future::ready(Ok(gauges)).boxed()
    }
}
