//! One server process that cannot outlive us.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::Error;

/// The supervisor's program. A shell is on every machine that can build the rest; `read` being a builtin of it,
/// each server costs one small process more and no binary of ours.
const SUPERVISOR: &str = include_str!("supervisor.sh");

/// How long ending a server and removing its folder may take beyond the server's own grace.
const STOP_BOUND: Duration = Duration::from_secs(10);

/// Pause between two looks at a process that we wait for.
const POLL: Duration = Duration::from_millis(10);

/// Bytes of a log that an error quotes at most, and lines.
const QUOTED_BYTES: u64 = 16 * 1024;
const QUOTED_LINES: usize = 15;

/// How a server is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// At once. Right for servers whose data goes with them.
    Kill,
    /// Asked by `SIGINT`, killed after the grace. PostgreSQL frees its shared memory only when it may end itself.
    Interrupt {
        /// Time between the two signals.
        grace: Duration,
    },
}

impl Ending {
    fn signal(self) -> &'static str {
        match self {
            Self::Kill => "KILL",
            Self::Interrupt { .. } => "INT",
        }
    }

    fn grace(self) -> Duration {
        match self {
            Self::Kill => Duration::ZERO,
            Self::Interrupt { grace } => grace,
        }
    }
}

/// A running server with its supervisor, folder and log. Dropping it ends the server and removes the folder.
#[derive(Debug)]
pub struct Server {
    name: String,
    /// The server itself: the shell that started as its supervisor has become it. Its standard input is the pipe
    /// whose other end the watcher reads.
    process: Child,
    ending: Ending,
    folder: PathBuf,
    log: PathBuf,
}

impl Server {
    /// Starts `command` under a supervisor. `folder` must exist, belongs to this server alone, holds its log
    /// (`<name>.log`) and is removed with it; so is the folder around it once that is empty.
    ///
    /// Arguments, environment, working directory and `user` (numeric user and group id) of the server are those
    /// given; its standard input is empty, its output goes to the log.
    ///
    /// # Errors
    /// When the log cannot be created or no shell can be started.
    pub fn start(
        name: &str,
        command: &Command,
        folder: &Path,
        ending: Ending,
        user: Option<(u32, u32)>,
    ) -> Result<Self, Error> {
        let log = folder.join(format!("{name}.log"));
        let create = || -> std::io::Result<(File, File)> {
            let file = File::options().create(true).append(true).open(&log)?;
            Ok((file.try_clone()?, file))
        };
        let (output, errors) = create().map_err(Error::io(format!("create {}", log.display())))?;

        let mut supervisor = Command::new("/bin/sh");
        let tenths = ending.grace().as_millis() / 100;
        supervisor
            .args([
                "-c",
                SUPERVISOR,
                "supervisor",
                ending.signal(),
                &tenths.to_string(),
            ])
            .arg(folder);
        supervisor.arg(command.get_program()).args(command.get_args());
        for (key, value) in command.get_envs() {
            match value {
                Some(value) => supervisor.env(key, value),
                None => supervisor.env_remove(key),
            };
        }
        supervisor.current_dir(command.get_current_dir().unwrap_or(folder));
        supervisor.stdin(Stdio::piped()).stdout(output).stderr(errors);
        // A group of its own: what a terminal or a runner sends to our group must not end servers out of order.
        supervisor.process_group(0);
        if let Some((user, group)) = user {
            supervisor.uid(user).gid(group);
        }
        let process = supervisor
            .spawn()
            .map_err(Error::io(format!("start {name} by /bin/sh")))?;
        Ok(Self {
            name: name.to_owned(),
            process,
            ending,
            folder: folder.to_owned(),
            log,
        })
    }

    /// Name for people: "etcd".
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The log file.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// The server's exit status, once it has ended.
    ///
    /// # Errors
    /// When the system cannot say.
    pub fn exited(&mut self) -> Result<Option<ExitStatus>, Error> {
        self.process
            .try_wait()
            .map_err(Error::io(format!("look after {}", self.name)))
    }

    /// Waits until `ready` says so.
    ///
    /// # Errors
    /// [`Error::Start`] with the last lines of the log when the server ends before, or `bound` passes.
    pub fn wait_until(
        &mut self,
        what: &str,
        bound: Duration,
        mut ready: impl FnMut() -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let started = Instant::now();
        let reason = loop {
            if ready()? {
                return Ok(());
            }
            if let Some(status) = self.exited()? {
                break describe(status);
            }
            if started.elapsed() > bound {
                break format!("not {what} after {} s", bound.as_secs());
            }
            std::thread::sleep(POLL);
        };
        Err(Error::Start {
            server: self.name.clone(),
            reason,
            log: self.log.clone(),
            last_lines: File::open(&self.log)
                .map(|mut log| last_lines(&mut log))
                .unwrap_or_default(),
        })
    }

    /// Ends the server by a signal and keeps its folder.
    ///
    /// # Errors
    /// When it cannot be signalled, or has not ended after `grace`.
    pub fn end(&mut self, signal: &str, grace: Duration) -> Result<(), Error> {
        let doing = format!("end {}", self.name);
        Command::new("kill")
            .args(["-s", signal, &self.process.id().to_string()])
            .status()
            .map_err(Error::io(doing.as_str()))?;
        let started = Instant::now();
        while self.exited()?.is_none() {
            if started.elapsed() > grace {
                return Err(Error::io(doing)(std::io::ErrorKind::TimedOut.into()));
            }
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    /// Ends the server and waits until it is gone and its folder removed.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let bound = self.ending.grace() + STOP_BOUND;
        let started = Instant::now();
        // The watcher may be slow to remove files; after the bound it is left to finish alone.
        while (matches!(self.process.try_wait(), Ok(None)) || self.folder.exists())
            && started.elapsed() < bound
        {
            std::thread::sleep(POLL);
        }
    }
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("it ended with status {code}"),
        (None, Some(signal)) => format!("it was ended by signal {signal}"),
        (None, None) => "it ended".to_owned(),
    }
}

/// The end of a log, for an error message.
fn last_lines(log: &mut File) -> String {
    let mut read = || -> std::io::Result<Vec<u8>> {
        let length = log.metadata()?.len();
        log.seek(SeekFrom::Start(length.saturating_sub(QUOTED_BYTES)))?;
        let mut bytes = Vec::new();
        log.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let text = read()
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let first = lines.len().saturating_sub(QUOTED_LINES);
    lines.get(first..).unwrap_or_default().join("\n")
}

#[cfg(test)]
mod tests;
