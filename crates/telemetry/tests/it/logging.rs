//! One id finds everything, in one format.

use evenkeel_telemetry::{LogFormat, LogOptions, logging};
use serde_json::json;
use tracing::{Instrument, debug, info, info_span, trace_span, warn};

use crate::support::{capture, json_lines};

#[test]
fn every_line_carries_the_ids_of_all_spans_around_it_exactly_once() {
    let (captured, _guard) = capture(LogFormat::Json, "info");
    let request = info_span!("request", request_id = "r-1", method = "PUT");
    request.in_scope(|| {
        info!("accepted");
        let reconciliation = info_span!(
            "reconciliation",
            cluster = "prod-1",
            reconciliation_id = "prod-1--a"
        );
        reconciliation.in_scope(|| {
            let operation = info_span!(
                "operation",
                cluster = "prod-1",
                operation_id = "prod-1--b",
                component = "web"
            );
            operation.in_scope(|| warn!(attempt = 2, component = "web", "apply failed"));
        });
    });
    info!("outside");

    let lines = json_lines(&captured);
    assert_eq!(lines.len(), 3);
    assert_eq!(
        serde_json::Value::Object(lines[1].clone()),
        json!({
            "timestamp": "2027-01-15T08:00:00.000000Z",
            "level": "WARN",
            "target": "it::logging",
            "message": "apply failed",
            "cluster": "prod-1",
            "reconciliation_id": "prod-1--a",
            "operation_id": "prod-1--b",
            "component": "web",
            "request_id": "r-1",
            "method": "PUT",
            "attempt": 2,
        })
    );
    assert_eq!(lines[0]["request_id"], "r-1");
    assert!(!lines[2].contains_key("request_id"), "left spans leave nothing");
}

#[test]
fn text_has_the_ids_first_and_in_order() {
    let (captured, _guard) = capture(LogFormat::Text, "info");
    info_span!("request", request_id = "r-1").in_scope(|| {
        info_span!(
            "operation",
            attempt = 1,
            operation_id = "o",
            component = "web",
            cluster = "c"
        )
        .in_scope(|| info!(objects = 3, note = "two words", "applied"));
    });
    assert_eq!(
        captured.lines(),
        [
            "2027-01-15T08:00:00.000000Z  INFO it::logging: applied cluster=c operation_id=o component=web \
          request_id=r-1 attempt=1 objects=3 note=\"two words\""
        ]
    );
}

#[test]
fn ids_survive_a_filter_that_wants_only_warnings() {
    let (captured, _guard) = capture(LogFormat::Json, "warn");
    info_span!("operation", operation_id = "o").in_scope(|| {
        info_span!("plain", shard = 3).in_scope(|| {
            trace_span!("deep", cluster = "c").in_scope(|| {
                info!("not wanted");
                warn!("wanted");
            });
        });
    });
    let lines = json_lines(&captured);
    assert_eq!(lines.len(), 1);
    assert_eq!(
        (&lines[0]["operation_id"], &lines[0]["cluster"]),
        (&json!("o"), &json!("c"))
    );
    assert!(
        !lines[0].contains_key("shard"),
        "a span without ids follows the filter"
    );
}

#[test]
fn ids_recorded_later_and_inner_ids_win() {
    let (captured, _guard) = capture(LogFormat::Json, "info,it::logging=debug");
    let span = info_span!(
        "operation",
        operation_id = tracing::field::Empty,
        cluster = "outer"
    );
    span.in_scope(|| {
        info!("before");
        span.record("operation_id", "late");
        info_span!("inner", cluster = "inner").in_scope(|| debug!("after"));
    });
    let lines = json_lines(&captured);
    assert!(!lines[0].contains_key("operation_id"));
    assert_eq!(
        (&lines[1]["operation_id"], &lines[1]["cluster"]),
        (&json!("late"), &json!("inner"))
    );
}

#[test]
fn ids_follow_futures_across_awaits() {
    let (captured, _guard) = capture(LogFormat::Json, "info");
    let work = |name: &'static str| {
        async move {
            for _ in 0..3 {
                info!(name, "step");
                tokio::task::yield_now().await;
            }
        }
        .instrument(info_span!("operation", operation_id = name))
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async { tokio::join!(work("a"), work("b")) });
    let lines = json_lines(&captured);
    assert_eq!(lines.len(), 6);
    assert!(lines.iter().all(|line| line["name"] == line["operation_id"]));
}

#[test]
fn errors_show_their_causes_and_huge_values_are_cut() {
    #[derive(Debug)]
    struct Outer(std::io::Error);
    impl std::fmt::Display for Outer {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("cannot connect")
        }
    }
    impl std::error::Error for Outer {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.0)
        }
    }
    let (captured, _guard) = capture(LogFormat::Json, "info");
    let error = Outer(std::io::Error::other("no route to host"));
    let huge = "ä".repeat(logging::MAX_VALUE_BYTES);
    warn!(error = &error as &dyn std::error::Error, huge, "failed");
    let lines = json_lines(&captured);
    assert_eq!(lines[0]["error"], "cannot connect: no route to host");
    let huge = lines[0]["huge"].as_str().unwrap();
    assert!(
        huge.ends_with("ä… (16384 bytes more)"),
        "{}",
        &huge[huge.len() - 40..]
    );
}

#[test]
fn a_bad_filter_or_format_says_what_is_wrong_and_what_is_expected() {
    let options = LogOptions {
        filter: "evenkeel=loud".to_owned(),
        ..LogOptions::default()
    };
    let clock = std::sync::Arc::new(evenkeel_telemetry::SystemClock);
    let error = logging::subscriber(&options, clock, std::io::sink)
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.starts_with("\"evenkeel=loud\" is not a log filter: "),
        "{error}"
    );
    assert!(
        error.contains("give a level (error, warn, info, debug, trace)"),
        "{error}"
    );

    let error = "yaml".parse::<LogFormat>().unwrap_err().to_string();
    assert_eq!(error, "\"yaml\" is not a log format: give auto, text or json");
    for format in [LogFormat::Auto, LogFormat::Text, LogFormat::Json] {
        assert_eq!(format.to_string().parse::<LogFormat>().unwrap(), format);
    }
}
