//! Runs other programs.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use wait4::Wait4 as _;

use crate::repository::Repository;

/// How often a long, silent program is reported to be still running.
const HEARTBEAT: Duration = Duration::from_secs(60);

/// How often it is looked after.
const POLL: Duration = Duration::from_millis(100);

/// Lines of a failed program's output that are shown.
const SHOWN_LINES: usize = 30;

/// Variables that `cargo run` sets for this program, by their start. Handed down they would make build scripts
/// believe that their surroundings changed, and run anew.
const INHERITED: [&str; 5] = [
    "CARGO_PKG_",
    "CARGO_MANIFEST_",
    "CARGO_CRATE_",
    "CARGO_BIN_",
    "CARGO_PRIMARY_",
];

/// A cargo command in the root of the repository.
pub(crate) fn cargo(repository: &Repository) -> Command {
    // Set by cargo itself to the one in use, which may not be the first in PATH.
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(repository.root());
    for (name, _) in std::env::vars_os() {
        if name
            .to_str()
            .is_some_and(|name| INHERITED.iter().any(|start| name.starts_with(start)))
        {
            command.env_remove(name);
        }
    }
    command
}

/// The folder that this program was built in: it lies at `<target>/<profile>/xtask`, its tests one folder deeper.
pub(crate) fn target_directory() -> Result<PathBuf> {
    let program = std::env::current_exe().context("cannot tell where this program lies")?;
    program
        .ancestors()
        .find(|folder| folder.join("CACHEDIR.TAG").is_file())
        .map(Path::to_owned)
        .with_context(|| format!("{} does not lie in a target folder", program.display()))
}

/// Runs a program whose output the user shall see.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let line = describe(command);
    let status = command.status().with_context(|| format!("cannot run `{line}`"))?;
    if !status.success() {
        bail!("`{line}` failed ({status})");
    }
    Ok(())
}

/// Runs a program whose output matters only if it fails. Says now and then that it is still running.
pub(crate) fn run_quietly(what: &str, command: &mut Command) -> Result<()> {
    let line = describe(command);
    let mut output = tempfile::tempfile().context("cannot create a temporary file")?;
    command
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output.try_clone()?);
    let mut child = command.spawn().with_context(|| format!("cannot run `{line}`"))?;
    let started = Instant::now();
    let mut next_beat = HEARTBEAT;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if started.elapsed() >= next_beat {
            println!("  {what}: {} min so far", next_beat.as_secs() / 60);
            next_beat += HEARTBEAT;
        }
        std::thread::sleep(POLL);
    };
    if !status.success() {
        bail!("`{line}` failed ({status}):\n{}", last_lines(&mut output)?);
    }
    Ok(())
}

/// What a program gave that was run within a bound of time.
pub(crate) struct Ended {
    /// None when it was stopped, for it took too long.
    pub(crate) status: Option<ExitStatus>,
    /// Standard output.
    pub(crate) output: Vec<u8>,
    /// Standard error.
    pub(crate) errors: Vec<u8>,
    /// Processor time, which other work on the machine does not lengthen as it does wall time.
    pub(crate) cpu: Duration,
}

/// Runs a program for so long at most. What it says goes through files, since a full pipe would stop it.
pub(crate) fn bounded(command: &mut Command, limit: Duration) -> Result<Ended> {
    let line = describe(command);
    let mut output = tempfile::tempfile().context("cannot create a temporary file")?;
    let mut errors = tempfile::tempfile().context("cannot create a temporary file")?;
    command
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(errors.try_clone()?);
    let mut child = command.spawn().with_context(|| format!("cannot run `{line}`"))?;

    // Only the one who waits learns of the processor time, and cannot look at the clock meanwhile.
    let (done, ended) = mpsc::channel::<()>();
    let id = child.id();
    let watcher = std::thread::spawn(move || {
        let late = matches!(ended.recv_timeout(limit), Err(RecvTimeoutError::Timeout));
        if late {
            // A child that is waited for keeps its id until then.
            let _ = Command::new("kill").arg("-9").arg(id.to_string()).status();
        }
        late
    });
    let waited = child.wait4();
    drop(done);
    let late = watcher.join().unwrap_or(false);
    let used = waited.with_context(|| format!("cannot wait for `{line}`"))?;
    Ok(Ended {
        status: (!late).then_some(used.status),
        output: read_all(&mut output)?,
        errors: read_all(&mut errors)?,
        cpu: used.rusage.utime + used.rusage.stime,
    })
}

fn read_all(file: &mut File) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What a program prints.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let line = describe(command);
    let output = command.output().with_context(|| format!("cannot run `{line}`"))?;
    if !output.status.success() {
        bail!(
            "`{line}` failed ({}):\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim_end()
        );
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{line}` printed what is not text"))
}

/// The command as one would type it.
pub(crate) fn describe(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program
        .file_name()
        .unwrap_or(program.as_os_str())
        .to_string_lossy()
        .into_owned();
    let arguments = command
        .get_args()
        .map(|argument| argument.to_string_lossy().into_owned());
    std::iter::once(name)
        .chain(arguments)
        .collect::<Vec<_>>()
        .join(" ")
}

fn last_lines(file: &mut File) -> Result<String> {
    let bytes = read_all(file)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.trim_end().lines().collect();
    Ok(lines
        .get(lines.len().saturating_sub(SHOWN_LINES)..)
        .unwrap_or_default()
        .join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quiet_program_is_heard_when_it_fails() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "echo out; echo err >&2; exit 3"]);
        let error = run_quietly("a test", &mut command).unwrap_err().to_string();
        assert!(error.starts_with("`sh -c "), "{error}");
        assert!(error.ends_with("out\nerr"), "{error}");
        run_quietly("a test", Command::new("/bin/sh").args(["-c", "echo all is well"])).unwrap();
    }

    #[test]
    fn an_absent_program_is_named() {
        let error = format!("{:#}", run(&mut Command::new("/nowhere/program")).unwrap_err());
        assert!(error.starts_with("cannot run `program`: "), "{error}");
    }
}
