//! The steps in the log: which lines, at which level, with which ids.

use std::sync::Arc;

use evenkeel_core::ManualClock;
use evenkeel_steps::{Failure, Outcome, PassOptions, Pipeline, RuntimeFns, Spans, step};
use evenkeel_telemetry::{LogFormat, LogOptions, logging, logging::Captured, time};
use tracing::{Instrument, info, info_span};

use crate::support::{BEGIN, Frame, secs};

#[tokio::test(start_paused = true)]
async fn lines_inside_and_about_steps_carry_the_ids_of_the_pass() {
    let captured = Captured::new();
    let options = LogOptions {
        format: LogFormat::Text,
        filter: "info".to_owned(),
    };
    let clock = Arc::new(ManualClock::new(BEGIN));
    let subscriber = logging::subscriber(&options, clock, captured.clone()).unwrap();
    let _guard = tracing::subscriber::set_default(subscriber);

    let pipeline = Pipeline::builder("op")
        .step(step("apply").act(|cx, ()| async move {
            cx.sleep(secs(1)).await;
            info!(kind = "Deployment", "object written");
            Ok(Outcome::changed("1 object updated"))
        }))
        .step(step("check").run(|_, ()| async { Ok(Outcome::done()) }))
        .step(step("conflicts").run(|_, ()| async { Err(Failure::conflict("409")) }))
        .step(step("ready").run(|_, ()| async {
            let cause = std::io::Error::other("connection reset");
            Err(Failure::transient("cannot list pods").with_source(cause))
        }))
        .build()
        .unwrap();
    // The real runtime, as a caller wires it.
    let runtime = RuntimeFns::new(time::now, time::elapsed, time::sleep);
    let options = PassOptions::new(Arc::new(runtime))
        .observer(Arc::new(Spans))
        .parallelism(2);
    let span = info_span!("operation", cluster = "prod-1", operation_id = "prod-1--b");
    let report = pipeline.run(&Frame::of(()), options).instrument(span).await;
    assert_eq!(report.duration.as_secs(), 1);

    let ids = "cluster=prod-1 operation_id=prod-1--b";
    let lines = captured.lines();
    let lines: Vec<&str> = lines
        .iter()
        .map(|line| line.split_once('Z').unwrap().1.trim_start())
        .collect();
    assert_eq!(
        lines,
        [
            format!(
                "WARN evenkeel_steps::trace: step failed: cannot list pods: connection reset {ids} pipeline=op \
                 step=ready outcome=failed class=transient seconds=0"
            ),
            format!("INFO it::spans: object written {ids} pipeline=op step=apply kind=Deployment"),
            format!(
                "INFO evenkeel_steps::trace: step changed: 1 object updated {ids} pipeline=op step=apply \
                 outcome=changed seconds=1"
            ),
        ]
    );
}
