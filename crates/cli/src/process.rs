//! What every command that does more than compute needs: logs, threads, TLS, signals, an exit status.

use std::fmt;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};
use evenkeel_telemetry::{LogFormat, LogOptions, Tasks, logging, signals};

use crate::output;

/// How long tasks may take to end after the command has.
const SHUTDOWN: Duration = Duration::from_secs(10);
/// What is logged by commands that tell people themselves what goes on and what failed.
const QUIET: &str = "warn,evenkeel_steps=error,kube_client=off";
/// The exit status of a command that was used wrongly, as clap has it.
const USAGE: u8 = 2;

/// The exit status of a plan that is not empty.
const DIFFERS: u8 = 2;

/// What is logged, and how. Logs go to standard error.
#[derive(Clone, Debug, Args)]
pub(crate) struct Logs {
    /// Text for people, JSON for programs, or auto: text on a terminal and JSON elsewhere
    #[arg(long, value_enum, global = true, default_value_t = Format::Text, env = "EVENKEEL_LOG_FORMAT")]
    log_format: Format,
    /// Which lines: off, error, warn, info, debug, trace, or filters like `evenkeel_fleet=debug`
    #[arg(long, value_name = "FILTER", global = true, env = "EVENKEEL_LOG")]
    log: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Auto,
    Text,
    Json,
}

/// A command that did what it was to do, and found that something would be changed. It has said so.
#[derive(Debug)]
pub(crate) struct Differs;

impl fmt::Display for Differs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("something would be changed")
    }
}

impl std::error::Error for Differs {}

/// A command that was called with arguments that make no sense together.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) anyhow::Error);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.0)
    }
}

impl std::error::Error for Usage {}

/// Runs a command to its end and turns that into an exit status. The first Ctrl-C cancels the tasks it is given.
pub(crate) fn run<F, Fut>(logs: Logs, command: F) -> ExitCode
where
    F: FnOnce(Tasks) -> Fut,
    Fut: Future<Output = anyhow::Result<()>>,
{
    exit_code(try_run(logs, command))
}

/// Runs an asynchronous part of a command that tells its faults itself; logs stay quiet.
pub(crate) fn run_to_end<F, Fut>(command: F) -> anyhow::Result<()>
where
    F: FnOnce(Tasks) -> Fut,
    Fut: Future<Output = anyhow::Result<()>>,
{
    let logs = Logs {
        log_format: Format::Text,
        log: None,
    };
    try_run(logs.or_quiet(), command)
}

/// Tells people how a command ended, and programs by a status.
pub(crate) fn exit_code(result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<Differs>() => ExitCode::from(DIFFERS),
        Err(error) => {
            output::note(&format!("error: {error}"));
            for cause in error.chain().skip(1) {
                let cause = cause.to_string();
                // Many errors quote their cause already.
                if !error.to_string().contains(&cause) {
                    output::note(&format!("  caused by: {cause}"));
                }
            }
            if error.is::<Usage>() {
                ExitCode::from(USAGE)
            } else {
                ExitCode::FAILURE
            }
        }
    }
}

/// Runs a command that holds nothing worth a clean end: Ctrl-C drops it where it stands.
pub(crate) fn run_until_interrupted<F, Fut>(logs: Logs, command: F) -> ExitCode
where
    F: FnOnce() -> Fut,
    Fut: Future<Output = anyhow::Result<()>>,
{
    run(logs, |tasks| async move {
        tokio::select! {
            result = command() => result,
            () = tasks.cancelled() => Err(anyhow::anyhow!("interrupted")),
        }
    })
}

fn try_run<F, Fut>(logs: Logs, command: F) -> anyhow::Result<()>
where
    F: FnOnce(Tasks) -> Fut,
    Fut: Future<Output = anyhow::Result<()>>,
{
    // The one provider of TLS; a second one must not sneak in. A command that does two things comes here twice.
    static PREPARED: std::sync::Once = std::sync::Once::new();
    let mut prepared = Ok(());
    PREPARED.call_once(|| prepared = prepare(&logs));
    prepared?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("the threads cannot be started")?;
    runtime.block_on(async {
        let tasks = Tasks::new();
        signals::install(&tasks)?;
        let result = command(tasks.clone()).await;
        shut_down(&tasks).await;
        match (result, tasks.fatal()) {
            (Ok(()), Some(fatal)) => Err(anyhow::anyhow!(fatal)),
            (result, _) => result,
        }
    })
}

/// What a process does once.
fn prepare(logs: &Logs) -> anyhow::Result<()> {
    rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .map_err(|_| anyhow::anyhow!("another TLS provider was installed before ours"))?;
    Ok(logging::init(&logs.options())?)
}

/// Cancels all tasks and waits for them to end, for a while.
pub(crate) async fn shut_down(tasks: &Tasks) {
    let unfinished = tasks.shutdown(SHUTDOWN).await;
    if !unfinished.aborted.is_empty() {
        tracing::warn!(tasks = unfinished.aborted.join(", "), "did not end in time");
    }
}

impl Logs {
    /// The same, but of a command that draws on the terminal: only what it does not say itself, unless asked for more.
    pub(crate) fn or_quiet(self) -> Self {
        Self {
            log: self.log.or_else(|| Some(QUIET.to_owned())),
            ..self
        }
    }

    fn options(&self) -> LogOptions {
        let format = match self.log_format {
            Format::Auto => LogFormat::Auto,
            Format::Text => LogFormat::Text,
            Format::Json => LogFormat::Json,
        };
        let mut options = LogOptions {
            format,
            ..LogOptions::default()
        };
        if let Some(filter) = &self.log {
            options.filter.clone_from(filter);
        }
        options
    }
}
