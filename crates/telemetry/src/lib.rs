//! What a process needs to be watched and stopped: logs, metrics, signals, supervised tasks, and the real clock.
//!
//! * [`logging`]: one line per event, text or JSON, never mixed; each line carries the ids it belongs to, so that
//!   one id finds everything. Only the binary calls [`logging::init`]; libraries just use `tracing`.
//! * [`Tasks`]: the only place that starts tasks. Each has a name, a rule for its failure and one for shutdown.
//! * [`signals`]: the first Ctrl-C or SIGTERM stops cleanly, the second at once.
//! * [`metrics`]: a registry, and gauges that are computed when somebody looks.
//! * [`request`]: the id of the API call that a task answers.
//! * [`time`]: the wall clock, a monotonic one and timers, shaped so that the step engine can take them as they are:
//!   `RuntimeFns::new(time::now, time::elapsed, time::sleep)`. This crate lies below the step engine and does not
//!   know it; the step engine does no I/O and does not know this crate; whoever runs passes connects the two.

mod chain;
mod error;
pub mod logging;
pub mod metrics;
pub mod request;
pub mod signals;
mod tasks;
pub mod time;

pub use chain::{Chain, chain};
pub use error::{BoxError, Error};
pub use logging::{LogFormat, LogOptions};
pub use metrics::Metrics;
pub use tasks::{
    DEFAULT_BLOCKING_PERMITS, OnCancel, OnError, Restart, RunningTask, Shutdown, Task, TaskError, Tasks,
};
pub use time::SystemClock;
pub use tokio_util::sync::CancellationToken;
