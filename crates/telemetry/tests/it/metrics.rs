//! The text that Prometheus reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use evenkeel_telemetry::BoxError;
use evenkeel_telemetry::metrics::{COLLECT_TIMEOUT, Collector, Gauges, MAX_SAMPLES, Metrics, StepMetrics};
use futures::future::BoxFuture;
use prometheus_client::metrics::counter::Counter;

/// Says what a test wants.
struct Scripted(
    &'static str,
    Box<dyn Fn() -> BoxFuture<'static, Result<Vec<Gauges>, BoxError>> + Send + Sync>,
);

impl Collector for Scripted {
    fn name(&self) -> &'static str {
        self.0
    }
    fn gauges(&self) -> &'static [&'static str] {
        match self.0 {
            "clusters" => &["clusters", "clusters_due"],
            "slow" => &["slow"],
            _ => &["broken"],
        }
    }
    fn collect(&self) -> BoxFuture<'_, Result<Vec<Gauges>, BoxError>> {
        (self.1)()
    }
}

#[tokio::test(start_paused = true)]
async fn gauges_are_computed_at_each_scrape_and_counters_keep_counting() {
    let metrics = Metrics::new();
    let requests: Counter = Counter::default();
    metrics
        .register("requests", "Requests", requests.clone())
        .unwrap();
    let ready = Arc::new(AtomicU64::new(3));
    let now = ready.clone();
    metrics
        .collect_with(Scripted(
            "clusters",
            Box::new(move || {
                let ready = now.load(Ordering::SeqCst) as f64;
                Box::pin(async move {
                    Ok(vec![
                        Gauges::by(
                            "clusters",
                            "Clusters by state",
                            "state",
                            [("ready", ready), ("failed \"x\"", 0.0)],
                        ),
                        Gauges::single("clusters_due", "Clusters that are due", 1.5),
                    ])
                })
            }),
        ))
        .unwrap();
    requests.inc();
    let text = metrics.scrape().await.unwrap();
    assert_eq!(
        text,
        "# HELP evenkeel_requests_total Requests.\n\
         # TYPE evenkeel_requests_total counter\n\
         evenkeel_requests_total 1\n\
         # HELP evenkeel_clusters Clusters by state.\n\
         # TYPE evenkeel_clusters gauge\n\
         evenkeel_clusters{state=\"ready\"} 3.0\n\
         evenkeel_clusters{state=\"failed \\\"x\\\"\"} 0.0\n\
         # HELP evenkeel_clusters_due Clusters that are due.\n\
         # TYPE evenkeel_clusters_due gauge\n\
         evenkeel_clusters_due 1.5\n"
    );
    ready.store(8, Ordering::SeqCst);
    assert!(
        metrics
            .clone()
            .scrape()
            .await
            .unwrap()
            .contains("evenkeel_clusters{state=\"ready\"} 8.0\n")
    );
}

#[tokio::test(start_paused = true)]
async fn a_collector_that_fails_hangs_or_overflows_is_counted_and_spoils_nothing() {
    let metrics = Metrics::new();
    let script =
        |name, f: fn() -> BoxFuture<'static, Result<Vec<Gauges>, BoxError>>| Scripted(name, Box::new(f));
    metrics
        .collect_with(script("broken", || {
            Box::pin(async { Err("database is locked".into()) })
        }))
        .unwrap();
    metrics
        .collect_with(script("slow", || Box::pin(std::future::pending())))
        .unwrap();
    metrics
        .collect_with(script("clusters", || {
            Box::pin(async {
                let many = (0..MAX_SAMPLES + 1).map(|n| (n.to_string(), 1.0));
                Ok(vec![
                    Gauges::by("clusters", "Clusters", "n", many),
                    Gauges::single("undeclared", "Nobody said so", 1.0),
                ])
            })
        }))
        .unwrap();
    let begin = tokio::time::Instant::now();
    let text = metrics.scrape().await.unwrap();
    assert_eq!(begin.elapsed(), COLLECT_TIMEOUT);
    assert!(
        text.contains("evenkeel_collector_errors_total{collector=\"broken\"} 1\n"),
        "{text}"
    );
    assert!(text.contains("evenkeel_collector_errors_total{collector=\"slow\"} 1\n"));
    assert!(text.contains("evenkeel_collector_errors_total{collector=\"clusters\"} 2\n"));
    assert_eq!(text.matches("evenkeel_clusters{").count(), MAX_SAMPLES);
    assert!(!text.contains("undeclared"));
}

#[test]
fn bad_and_double_names_are_refused_in_words() {
    let metrics = Metrics::new();
    let register = |name: &str| {
        metrics
            .register(name, "help", Counter::<u64>::default())
            .map_err(|e| e.to_string())
    };
    register("fine_1").unwrap();
    assert_eq!(
        register("fine_1").unwrap_err(),
        "\"fine_1\" cannot be the name of a metric: it is taken"
    );
    for bad in ["", "Upper", "1st", "with-dash", "_x"] {
        assert!(
            register(bad).unwrap_err().contains("it must begin with a-z"),
            "{bad}"
        );
    }
    assert!(
        register("requests_total")
            .unwrap_err()
            .contains("_total is added")
    );
    let taken = Scripted("clusters", Box::new(|| Box::pin(async { Ok(Vec::new()) })));
    register("clusters_due").unwrap();
    assert!(metrics.collect_with(taken).is_err());
}

#[tokio::test]
async fn steps_are_measured() {
    let metrics = Metrics::new();
    let steps = StepMetrics::register(&metrics).unwrap();
    assert!(StepMetrics::register(&metrics).is_err());
    steps.step_finished("operation", "render", "done", Duration::from_millis(3));
    steps.step_finished("operation", "render", "failed", Duration::from_secs(2));
    steps.step_skipped("operation", "prune", "blocked");
    steps.pass_finished("operation", "failed", Duration::from_secs(2));
    let text = metrics.scrape().await.unwrap();
    for line in [
        "evenkeel_steps_total{pipeline=\"operation\",step=\"render\",outcome=\"failed\"} 1",
        "evenkeel_steps_skipped_total{pipeline=\"operation\",step=\"prune\",reason=\"blocked\"} 1",
        "evenkeel_step_duration_seconds_count{pipeline=\"operation\",step=\"render\"} 2",
        "evenkeel_step_duration_seconds_bucket{pipeline=\"operation\",step=\"render\",le=\"0.005\"} 1",
        "evenkeel_pass_duration_seconds_count{pipeline=\"operation\",conclusion=\"failed\"} 1",
    ] {
        assert!(text.lines().any(|have| have == line), "{line}\nin\n{text}");
    }
}
