//! A process of its own, made by running this test binary again. Signals, exit codes and the process-wide log can
//! be tested in no other way.

use std::convert::Infallible;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use evenkeel_telemetry::{LogFormat, LogOptions, OnCancel, OnError, Tasks, logging, signals};

const ROLE: &str = "EVENKEEL_TELEMETRY_TEST_ROLE";
const BOUND: Duration = Duration::from_secs(30);

/// A child and what it writes to standard error.
pub(crate) struct Process {
    child: Child,
    lines: Receiver<String>,
    pub(crate) seen: Vec<String>,
}

impl Process {
    pub(crate) fn start(role: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "child::plays_its_role",
                "--exact",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(ROLE, role)
            .env_remove("RUST_BACKTRACE")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (send, lines) = mpsc::channel();
        std::thread::spawn(move || {
            stderr
                .lines()
                .map_while(Result::ok)
                .try_for_each(|line| send.send(line))
        });
        Self {
            child,
            lines,
            seen: Vec::new(),
        }
    }

    /// Waits for a line that contains `text`.
    pub(crate) fn wait_for(&mut self, text: &str) {
        loop {
            match self.lines.recv_timeout(BOUND) {
                Ok(line) => {
                    let found = line.contains(text);
                    self.seen.push(line);
                    if found {
                        return;
                    }
                }
                Err(error) => panic!("no line with {text:?} ({error}) in {:#?}", self.seen),
            }
        }
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-s", name, &pid])
                .status()
                .unwrap()
                .success()
        );
    }

    /// Waits for the end and returns the exit code.
    pub(crate) fn exit_code(&mut self) -> Option<i32> {
        loop {
            match self.lines.recv_timeout(BOUND) {
                Ok(line) => self.seen.push(line),
                // Standard error is closed: the process is gone.
                Err(RecvTimeoutError::Disconnected) => return self.child.wait().unwrap().code(),
                Err(RecvTimeoutError::Timeout) => panic!("still running after {:#?}", self.seen),
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Only does something in the child.
#[test]
fn plays_its_role() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let options = LogOptions {
        format: LogFormat::Json,
        filter: "info".to_owned(),
    };
    logging::init(&options).unwrap();
    assert!(logging::init(&options).is_err(), "only once");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let tasks = Tasks::new();
        signals::install(&tasks).unwrap();
        drop(
            tasks.spawn("worker", OnError::Log, OnCancel::Wait, move |token| async move {
                if role == "panics" {
                    panic!("worker broke");
                }
                token.cancelled().await;
                tracing::info!("cancelled");
                if role == "stuck" {
                    std::future::pending::<()>().await;
                }
                Ok::<_, Infallible>(())
            }),
        );
        // Dependencies such as rustls log through the `log` crate.
        log::warn!(target: "rustls::client", "bridged");
        tracing::info!("ready");
        tasks.cancelled().await;
        let shutdown = tasks.shutdown(Duration::from_secs(600)).await;
        tracing::info!(aborted = shutdown.aborted.len(), "ended cleanly");
    });
}
