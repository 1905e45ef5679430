//! Whole processes: how long they take, and how much memory at the most.
//!
//! The kernel counts a child's peak of memory from before it becomes another program, when it still shares the memory of
//! its parent. So no figure can be smaller than the peak of this process at that moment: it must stay small, and
//! [`own_peak`] tells whether it did.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use wait4::Wait4 as _;

/// What one run of a process took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usage {
    /// From before it is started until it has ended.
    pub(super) time: Duration,
    /// The most memory that was resident at one time, in bytes.
    pub(super) peak: u64,
}

/// Runs a program to its end; its output goes nowhere.
pub(super) fn measure(command: &mut Command) -> anyhow::Result<Usage> {
    let program = command.get_program().to_owned();
    let program = program.display();
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
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
    })
}

/// The most memory of this process that was resident at one time, in bytes; none where the kernel does not say.
pub(super) fn own_peak() -> Option<u64> {
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
        let used = measure(Command::new("sh").args(["-c", "sleep 0.02"])).expect("there is a shell");
        assert!(
            used.time >= Duration::from_millis(20) && used.peak > 100_000,
            "{used:?}"
        );
        assert!(own_peak().is_some_and(|peak| peak > 1_000_000));
    }

    #[test]
    fn a_failed_run_is_no_sample() {
        let error = measure(Command::new("sh").args(["-c", "exit 3"])).expect_err("it failed");
        assert!(error.to_string().contains("exit status: 3"), "{error}");
        assert!(measure(&mut Command::new("/nowhere/program")).is_err());
    }
}
