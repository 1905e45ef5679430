//! One line per event, with the ids it belongs to.
//!
//! A span that carries one of the [`ID_FIELDS`] gives it to every line logged inside it, at any depth, whatever
//! the filter says about the span's own level:
//!
//! ```
//! let span = tracing::info_span!("operation", cluster = "prod-1", operation_id = "prod-1--0193");
//! let _entered = span.enter();
//! tracing::warn!(attempt = 2, "apply failed");
//! // … WARN app: apply failed cluster=prod-1 operation_id=prod-1--0193 attempt=2
//! // {"timestamp":"…","level":"WARN","target":"app","message":"apply failed","cluster":"prod-1",…}
//! ```

mod captured;
mod fields;
mod filter;
mod layer;
mod line;

use std::fmt;
use std::io::IsTerminal;
use std::panic::PanicHookInfo;
use std::str::FromStr;
use std::sync::Arc;

use evenkeel_core::Clock;
use tracing::Subscriber;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Layer as _, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

pub use captured::Captured;

use crate::{Error, SystemClock};

/// The ids that find everything. They come first in each line, in this order.
pub const ID_FIELDS: [&str; 5] = [
    "cluster",
    "reconciliation_id",
    "operation_id",
    "component",
    "request_id",
];

/// The filter when none is given.
pub const DEFAULT_FILTER: &str = "info";

/// The longest value or message in a line, in bytes; the rest is cut off and counted.
pub const MAX_VALUE_BYTES: usize = 16 * 1024;

/// How lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// Text on a terminal, JSON elsewhere.
    #[default]
    Auto,
    /// For people: `time LEVEL target: message key=value`.
    Text,
    /// For programs: one object per line, every field at the top level exactly once.
    Json,
}

/// How to log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogOptions {
    /// The format.
    pub format: LogFormat,
    /// What to log: a level, or `target=level` pairs, as in `info,evenkeel_fleet=debug`.
    pub filter: String,
}

/// The format after looking at the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Text { colour: bool },
    Json,
}

// === impl LogOptions ===

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            format: LogFormat::default(),
            filter: DEFAULT_FILTER.to_owned(),
        }
    }
}

/// Sets up logging to standard error for the whole process, once, and sends panics there too, so that nothing but
/// lines of one format appears.
///
/// # Errors
/// When the filter does not parse, or logging was set up before.
pub fn init(options: &LogOptions) -> Result<(), Error> {
    let terminal = std::io::stderr().is_terminal();
    let style = match options.format {
        LogFormat::Json => Style::Json,
        LogFormat::Auto if !terminal => Style::Json,
        LogFormat::Auto | LogFormat::Text => Style::Text {
            colour: terminal && wants_colour(),
        },
    };
    build(style, &options.filter, Arc::new(SystemClock), std::io::stderr)?
        .try_init()
        .map_err(|_| Error::LoggingAlreadySet)?;
    std::panic::set_hook(Box::new(log_panic));
    Ok(())
}

/// The same subscriber with a writer and clock of the caller's choice and without colours, for tests of what is
/// logged (see [`Captured`]). [`LogFormat::Auto`] means JSON here.
///
/// # Errors
/// When the filter does not parse.
pub fn subscriber<W>(
    options: &LogOptions,
    clock: Arc<dyn Clock>,
    writer: W,
) -> Result<impl Subscriber + Send + Sync + 'static, Error>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let style = match options.format {
        LogFormat::Text => Style::Text { colour: false },
        LogFormat::Auto | LogFormat::Json => Style::Json,
    };
    build(style, &options.filter, clock, writer)
}

fn build<W>(
    style: Style,
    filter: &str,
    clock: Arc<dyn Clock>,
    writer: W,
) -> Result<impl Subscriber + Send + Sync + 'static, Error>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let parsed = EnvFilter::builder()
        .parse(filter)
        .map_err(|error| Error::LogFilter {
            given: filter.to_owned(),
            reason: error.to_string(),
        })?;
    let layer = layer::Lines::new(style, clock, writer).with_filter(filter::KeepIds(parsed));
    Ok(tracing_subscriber::registry().with(layer))
}

/// <https://no-color.org>, and terminals that know no colours.
fn wants_colour() -> bool {
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    !no_color && !dumb
}

fn log_panic(info: &PanicHookInfo<'_>) {
    let message = info.payload_as_str().unwrap_or("a panic without text");
    let location = info.location().map(ToString::to_string).unwrap_or_default();
    let thread = std::thread::current().name().unwrap_or("unnamed").to_owned();
    let backtrace = std::backtrace::Backtrace::capture();
    if backtrace.status() == std::backtrace::BacktraceStatus::Captured {
        tracing::error!(target: "panic", location, thread, %backtrace, "panicked: {message}");
    } else {
        tracing::error!(target: "panic", location, thread, "panicked: {message}");
    }
}

// === impl LogFormat ===

impl FromStr for LogFormat {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "auto" => Ok(Self::Auto),
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            other => Err(Error::LogFormat {
                given: other.to_owned(),
            }),
        }
    }
}

impl fmt::Display for LogFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Text => "text",
            Self::Json => "json",
        })
    }
}
