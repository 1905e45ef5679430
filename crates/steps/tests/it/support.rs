//! A frame, a runtime on tokio's paused clock, and an observer that writes down what it hears.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use evenkeel_steps::{
    Conclusion, Ending, Failure, Guard, Mode, Name, Observer, Pass, PassOptions, Pipeline, Report,
    RuntimeFns, Skip,
};
use jiff::Timestamp;
use tokio::time::Instant;

/// The moment at which every test begins.
pub(crate) const BEGIN: Timestamp = Timestamp::constant(1_800_000_000, 0);

pub(crate) fn after(delay: Duration) -> Timestamp {
    BEGIN + delay
}

pub(crate) const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// Options on tokio's clock; use in tests with `start_paused`.
pub(crate) fn options() -> PassOptions {
    let begin = Instant::now();
    PassOptions::new(Arc::new(RuntimeFns::new(
        move || after(begin.elapsed()),
        move || begin.elapsed(),
        |delay| Box::pin(tokio::time::sleep(delay)),
    )))
}

type GuardFn<S> = dyn Fn(&S) -> Guard + Send + Sync;

/// A frame whose parts can be replaced, and which keeps what was published.
pub(crate) struct Frame<S> {
    pub(crate) state: Result<Arc<S>, Failure>,
    pub(crate) guard: Box<GuardFn<S>>,
    pub(crate) publish: Result<(), Failure>,
    pub(crate) published: Mutex<Vec<String>>,
}

impl<S> Frame<S> {
    pub(crate) fn of(state: S) -> Self {
        Self {
            state: Ok(Arc::new(state)),
            guard: Box::new(|_| Guard::Proceed),
            publish: Ok(()),
            published: Mutex::default(),
        }
    }

    pub(crate) fn guarded(state: S, guard: impl Fn(&S) -> Guard + Send + Sync + 'static) -> Self {
        Self {
            guard: Box::new(guard),
            ..Self::of(state)
        }
    }

    pub(crate) fn published(&self) -> Vec<String> {
        self.published.lock().unwrap().clone()
    }
}

impl<S: Send + Sync + 'static> Pass for Frame<S> {
    type State = S;

    async fn gather(&self) -> Result<Arc<S>, Failure> {
        self.state.clone()
    }

    fn guard(&self, state: &S) -> Guard {
        (self.guard)(state)
    }

    async fn publish(&self, report: &Report<S>) -> Result<(), Failure> {
        self.published.lock().unwrap().push(report.to_string());
        self.publish.clone()
    }
}

/// Runs one pass over `state` and checks that it was published exactly once, with what is returned.
pub(crate) async fn run<S: Send + Sync + 'static>(
    pipeline: &Pipeline<S>,
    state: S,
    options: PassOptions,
) -> Report<S> {
    run_frame(pipeline, &Frame::of(state), options).await
}

pub(crate) async fn run_frame<S: Send + Sync + 'static>(
    pipeline: &Pipeline<S>,
    frame: &Frame<S>,
    options: PassOptions,
) -> Report<S> {
    let report = pipeline.run(frame, options).await;
    let published = frame.published();
    assert_eq!(published.len(), 1, "publish runs exactly once");
    if frame.publish.is_ok() {
        assert_eq!(
            published[0],
            report.to_string(),
            "what is published is what is returned"
        );
    }
    report
}

/// `name ending` of each step.
pub(crate) fn endings<S>(report: &Report<S>) -> Vec<String> {
    report
        .steps
        .iter()
        .map(|entry| format!("{} {}", entry.name, entry.ending))
        .collect()
}

/// Writes down what it hears.
#[derive(Default)]
pub(crate) struct Diary(pub(crate) Mutex<Vec<String>>);

impl Diary {
    fn note(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    /// The steps that started, in order.
    pub(crate) fn started(&self) -> Vec<String> {
        self.lines()
            .iter()
            .filter_map(|line| line.strip_prefix("start ").map(str::to_owned))
            .collect()
    }
}

impl Observer for Diary {
    fn pass_started(&self, pipeline: &Name, mode: Mode) {
        self.note(format!("pass {pipeline} {mode:?}"));
    }
    fn step_started(&self, _: &Name, step: &Name) {
        self.note(format!("start {step}"));
    }
    fn step_progress(&self, _: &Name, step: &Name, line: &str) {
        self.note(format!("progress {step}: {line}"));
    }
    fn step_finished(&self, _: &Name, step: &Name, ending: &Ending, duration: Duration) {
        self.note(format!("end {step} {} {duration:?}", ending.label()));
    }
    fn step_skipped(&self, _: &Name, step: &Name, skip: &Skip) {
        self.note(format!("skip {step} {}", skip.label()));
    }
    fn pass_finished(&self, _: &Name, conclusion: Conclusion, duration: Duration) {
        self.note(format!("over {} {duration:?}", conclusion.label()));
    }
}
