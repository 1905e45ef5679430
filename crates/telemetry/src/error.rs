//! What can go wrong here.

/// An error of any kind, as tasks and collectors return it.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why telemetry could not be set up or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The log filter does not parse.
    #[error(
        "{given:?} is not a log filter: {reason}; give a level (error, warn, info, debug, trace) or \
         comma-separated target=level pairs"
    )]
    LogFilter {
        /// The filter as given.
        given: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The log format is none of ours.
    #[error("{given:?} is not a log format: give auto, text or json")]
    LogFormat {
        /// The format as given.
        given: String,
    },
    /// Logging is set up already.
    #[error("logging is set up already in this process")]
    LoggingAlreadySet,
    /// The signal handlers could not be installed.
    #[error("cannot listen for {signal}")]
    Signal {
        /// The signal.
        signal: &'static str,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A metric's name breaks the rules.
    #[error("{given:?} cannot be the name of a metric: {reason}")]
    MetricName {
        /// The name as given.
        given: String,
        /// The rule it breaks.
        reason: &'static str,
    },
    /// The metrics could not be written as text.
    #[error("cannot write the metrics as text")]
    Encode(#[source] std::fmt::Error),
}
