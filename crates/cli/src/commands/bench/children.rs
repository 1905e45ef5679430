//! Whole processes: how long they take, and how much memory at the most.
//!
//! The kernel counts a child's peak of memory from before it becomes another program, when it still shares the memory of
//! its parent: no figure can be smaller than what its parent had. A process that measures has read charts and parsed
//! arguments and is larger than what it looks at. So each program is started by a supervisor: this program again, which
//! comes here before it does anything else ([`SUPERVISE`]).

use std::ffi::OsString;
use std::io::Write as _;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use wait4::Wait4 as _;

/// The argument, before a program and its arguments, that makes this program a supervisor.
pub(crate) const SUPERVISE: &str = "bench-supervise";

/// What one run of a process took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usage {
    /// From before it is started until it has ended.
    pub(super) time: Duration,
    /// The most memory that was resident at one time, in bytes.
    pub(super) peak: u64,
    /// What its parent had, in bytes: a peak that is no higher may be the parent's. None where the kernel does not say.
    pub(super) floor: Option<u64>,
}

impl Usage {
    /// One line: nanoseconds, bytes, bytes or zero.
    fn line(self) -> String {
        let Self { time, peak, floor } = self;
        format!("{} {peak} {}", time.as_nanos(), floor.unwrap_or_default())
    }

    fn parse(line: &str) -> Option<Self> {
        let numbers: Vec<u64> = line
            .split_whitespace()
            .map(|number| number.parse().ok())
            .collect::<Option<_>>()?;
        let [nanoseconds, peak, floor] = numbers.try_into().ok()?;
        Some(Self {
            time: Duration::from_nanos(nanoseconds),
            peak,
            floor: Some(floor).filter(|floor| *floor > 0),
        })
    }
}

/// Runs a program to its end, under a supervisor; its output goes nowhere.
pub(super) fn measure(command: &Command) -> anyhow::Result<Usage> {
    let this = std::env::current_exe().context("the path of this program cannot be found")?;
    let mut supervisor = Command::new(this);
    supervisor
        .arg(SUPERVISE)
        .arg(command.get_program())
        .args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        supervisor.current_dir(folder);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => supervisor.env(name, value),
            None => supervisor.env_remove(name),
        };
    }
    let output = supervisor
        .stdin(Stdio::null())
        .output()
        .context("a supervisor cannot be started")?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let line = String::from_utf8_lossy(&output.stdout);
    Usage::parse(&line).with_context(|| format!("a supervisor said {line:?} instead of three numbers"))
}

/// Is a supervisor: runs the program that is named and prints what it took.
pub(crate) fn supervise(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let program = arguments.next().unwrap_or_default();
    let told = run(Command::new(&program).args(arguments)).and_then(|used| {
        writeln!(std::io::stdout(), "{}", used.line()).context("what it took cannot be told")
    });
    match told {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            crate::output::note(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Runs a program to its end as a child of this process.
fn run(command: &mut Command) -> anyhow::Result<Usage> {
    let program = command.get_program().to_owned();
    let program = program.display();
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let floor = own_peak();
    let started = Instant::now();
    let mut child = command
        .spawn()
        .with_context(|| format!("{program} cannot be started"))?;
    let used = child
        .wait4()
        .with_context(|| format!("{program} cannot be waited for"))?;
    let time = started.elapsed();
    if !used.status.success() {
        bail!("{program} failed with {}", used.status);
    }
    Ok(Usage {
        time,
        peak: used.rusage.maxrss,
        floor,
    })
}

/// The most memory of this process that was resident at one time, in bytes; none where the kernel does not say.
fn own_peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_measured() {
        let used = run(Command::new("sh").args(["-c", "sleep 0.02"])).expect("there is a shell");
        assert!(
            used.time >= Duration::from_millis(20) && used.peak > 100_000,
            "{used:?}"
        );
        assert!(used.floor.is_some_and(|floor| floor > 1_000_000), "{used:?}");
    }

    #[test]
    fn a_failed_run_is_no_sample() {
        let error = run(Command::new("sh").args(["-c", "exit 3"])).expect_err("it failed");
        assert!(error.to_string().contains("exit status: 3"), "{error}");
        assert!(run(&mut Command::new("/nowhere/program")).is_err());
    }

    #[test]
    fn a_supervisor_is_understood() {
        let used = Usage {
            time: Duration::from_nanos(1_234_567),
            peak: 9_000_000,
            floor: None,
        };
        let read = Usage::parse(&used.line()).expect("three numbers");
        assert_eq!(
            (read.time, read.peak, read.floor),
            (used.time, used.peak, used.floor)
        );
        assert!(Usage::parse("1 2").is_none() && Usage::parse("1 2 x").is_none());
    }
}
