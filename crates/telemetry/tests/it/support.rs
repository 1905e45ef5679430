//! Logging into memory.

use std::sync::Arc;

use evenkeel_core::ManualClock;
use evenkeel_telemetry::logging::{self, Captured, LogFormat, LogOptions};
use jiff::Timestamp;
use serde_json::{Map, Value};
use tracing::subscriber::DefaultGuard;

/// Each line as JSON.
pub(crate) fn json_lines(captured: &Captured) -> Vec<Map<String, Value>> {
    captured.lines().iter().map(|line| json(line)).collect()
}

/// One line as JSON, with every key once.
pub(crate) fn json(line: &str) -> Map<String, Value> {
    let map: Map<String, Value> =
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    for key in map.keys() {
        assert_eq!(
            line.matches(&format!("\"{key}\":")).count(),
            1,
            "{key} occurs once in {line}"
        );
    }
    map
}

/// Logs of this thread go to memory until the guard is dropped.
pub(crate) fn capture(format: LogFormat, filter: &str) -> (Captured, DefaultGuard) {
    let captured = Captured::new();
    let options = LogOptions {
        format,
        filter: filter.to_owned(),
    };
    let clock = Arc::new(ManualClock::new(Timestamp::constant(1_800_000_000, 0)));
    let subscriber = logging::subscriber(&options, clock, captured.clone()).unwrap();
    (captured, tracing::subscriber::set_default(subscriber))
}
