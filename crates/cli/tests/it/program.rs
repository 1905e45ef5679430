//! A command of the built binary that goes on running, and what it says meanwhile.

use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Long enough for a busy machine.
pub(crate) const BOUND: Duration = Duration::from_secs(90);

/// `evenkeel` as one who has no settings of their own, in `folder`.
pub(crate) fn evenkeel(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
    command.current_dir(folder).env("HOME", folder);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("EVENKEEL_") && name != "EVENKEEL_CACHE" {
            command.env_remove(name);
        }
    }
    command.env_remove("KUBECONFIG").env_remove("XDG_STATE_HOME");
    command
}

/// A running command. Killed when dropped.
pub(crate) struct Program {
    child: Child,
    stdout: Lines,
    stderr: Lines,
}

/// Lines as they come; some may be read while others are still to be said.
#[derive(Clone, Default)]
struct Lines(Arc<(Mutex<Said>, Condvar)>);

#[derive(Default)]
struct Said {
    lines: Vec<String>,
    ended: bool,
}

impl Program {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = Lines::of(child.stdout.take().unwrap());
        let stderr = Lines::of(child.stderr.take().unwrap());
        Self {
            child,
            stdout,
            stderr,
        }
    }

    pub(crate) fn stdout(&self) -> Vec<String> {
        self.stdout.all()
    }

    pub(crate) fn stderr(&self) -> Vec<String> {
        self.stderr.all()
    }

    /// The first line of standard error that holds `text`, waited for.
    #[track_caller]
    pub(crate) fn says(&self, text: &str) -> String {
        self.stderr.first(text)
    }

    /// The same of standard output.
    #[track_caller]
    pub(crate) fn prints(&self, text: &str) -> String {
        self.stdout.first(text)
    }

    /// Sends a signal: `INT`, `TERM`.
    pub(crate) fn signal(&self, name: &str) {
        let mut kill = Command::new("kill");
        let sent = kill
            .args([&format!("-{name}"), &self.child.id().to_string()])
            .status()
            .unwrap();
        assert!(sent.success());
    }

    /// Ends it as a power cut would.
    pub(crate) fn kill(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.stderr.whole()
    }

    /// Waits until it has ended by itself.
    #[track_caller]
    pub(crate) fn ends(&mut self, within: Duration) -> ExitStatus {
        let deadline = Instant::now() + within;
        // Its output ends with it.
        assert!(
            self.stderr.ended(deadline),
            "{self:?} did not end within {within:?}"
        );
        self.child.wait().unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
        if std::thread::panicking() {
            eprintln!(
                "--- standard error of the program:\n{}",
                self.stderr.all().join("\n")
            );
        }
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (stdout, stderr) = (self.stdout().join("\n"), self.stderr().join("\n"));
        write!(f, "program {}\n{stdout}\n---\n{stderr}", self.child.id())
    }
}

impl Lines {
    fn of(stream: impl Read + Send + 'static) -> Self {
        let lines = Self::default();
        let shared = lines.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(stream).lines() {
                let Ok(line) = line else { break };
                shared.change(|said| said.lines.push(line));
            }
            shared.change(|said| said.ended = true);
        });
        lines
    }

    fn change(&self, change: impl FnOnce(&mut Said)) {
        let (said, told) = &*self.0;
        change(&mut said.lock().unwrap_or_else(PoisonError::into_inner));
        told.notify_all();
    }

    fn all(&self) -> Vec<String> {
        self.0
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .lines
            .clone()
    }

    #[track_caller]
    fn first(&self, text: &str) -> String {
        let find = |said: &Said| said.lines.iter().find(|line| line.contains(text)).cloned();
        let found = self.until(Instant::now() + BOUND, |said| find(said).is_some() || said.ended);
        found
            .as_ref()
            .and_then(find_in(text))
            .unwrap_or_else(|| panic!("{text:?} was not said:\n{}", self.all().join("\n")))
    }

    fn ended(&self, deadline: Instant) -> bool {
        self.until(deadline, |said| said.ended).is_some()
    }

    /// All lines, once there will be no more.
    fn whole(&self) -> Vec<String> {
        assert!(self.ended(Instant::now() + BOUND));
        self.all()
    }

    /// The lines when `done`; none when that is not so before `deadline`.
    fn until(&self, deadline: Instant, done: impl Fn(&Said) -> bool) -> Option<Vec<String>> {
        let (said, told) = &*self.0;
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        while !done(&said) {
            let left = deadline.checked_duration_since(Instant::now())?;
            said = told
                .wait_timeout(said, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        Some(said.lines.clone())
    }
}

fn find_in(text: &str) -> impl Fn(&Vec<String>) -> Option<String> {
    move |lines| lines.iter().find(|line| line.contains(text)).cloned()
}
