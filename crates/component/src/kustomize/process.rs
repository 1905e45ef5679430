//! One run of another program, within bounds.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;

/// How much is read at one time, in bytes.
const CHUNK: usize = 64 * 1024;

/// What a program may use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// How long it may run, with its children.
    pub(super) time: Duration,
    /// The most bytes it may print; one more ends it.
    pub(super) output: usize,
    /// How many bytes of its errors are kept; the rest is read and forgotten.
    pub(super) errors: usize,
}

/// What it printed, and how it ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    pub(super) output: Vec<u8>,
    pub(super) errors: String,
}

/// Why there is no end to tell of.
#[derive(Debug, thiserror::Error)]
pub(super) enum Cut {
    #[error("it cannot be started: {0}")]
    NotStarted(#[source] io::Error),
    #[error("it was ended after {} s", .0.as_secs_f64())]
    OutOfTime(Duration),
    #[error("it was ended because it printed more than {0} bytes")]
    TooMuch(usize),
    #[error("its output cannot be read: {0}")]
    Read(#[source] io::Error),
}

/// Runs `command` to its end. Dropped before, or past a bound, the program is killed with all its children.
pub(super) async fn run(mut command: Command, bounds: Bounds) -> Result<Ended, Cut> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // Its children are in its group, unless they take pains not to be.
    command.process_group(0).kill_on_drop(true);
    let mut child = command.spawn().map_err(Cut::NotStarted)?;
    let group = Group::led_by(child.id());
    let (output, errors) = (child.stdout.take(), child.stderr.take());
    let talk = async {
        let (output, errors) =
            tokio::try_join!(all_of(output, bounds.output), start_of(errors, bounds.errors))?;
        // Only now: as long as it is not waited for, the number of the group is nobody else's.
        let status = child.wait().await.map_err(Cut::Read)?;
        Ok(Ended {
            status,
            output,
            errors,
        })
    };
    let ended = match tokio::time::timeout(bounds.time, talk).await {
        Ok(ended) => ended?,
        Err(_) => return Err(Cut::OutOfTime(bounds.time)),
    };
    group.has_ended();
    Ok(ended)
}

/// A process group that is killed when this is dropped.
struct Group(Option<Pid>);

impl Group {
    fn led_by(leader: Option<u32>) -> Self {
        let number = leader.and_then(|leader| i32::try_from(leader).ok());
        Self(number.and_then(Pid::from_raw))
    }

    fn has_ended(mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // An error says that nobody of it is left.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

async fn all_of(pipe: Option<impl AsyncRead + Unpin>, most: usize) -> Result<Vec<u8>, Cut> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
        pipe.take(limit)
            .read_to_end(&mut bytes)
            .await
            .map_err(Cut::Read)?;
    }
    if bytes.len() > most {
        return Err(Cut::TooMuch(most));
    }
    Ok(bytes)
}

async fn start_of(pipe: Option<impl AsyncRead + Unpin>, kept: usize) -> Result<String, Cut> {
    let mut start = Vec::new();
    if let Some(mut pipe) = pipe {
        let mut chunk = vec![0; CHUNK];
        loop {
            let length = pipe.read(&mut chunk).await.map_err(Cut::Read)?;
            if length == 0 {
                break;
            }
            let room = kept.saturating_sub(start.len()).min(length);
            start.extend_from_slice(chunk.get(..room).unwrap_or_default());
        }
    }
    Ok(String::from_utf8_lossy(&start).into_owned())
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    const BOUNDS: Bounds = Bounds {
        time: Duration::from_secs(20),
        output: 1000,
        errors: 10,
    };

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    fn is_alive(process: &str) -> bool {
        // A killed child that nobody waited for yet is no longer at work.
        std::fs::read_to_string(format!("/proc/{}/stat", process.trim()))
            .is_ok_and(|stat| !stat.contains(") Z "))
    }

    async fn gone(process: &str) {
        let started = Instant::now();
        while is_alive(process) {
            assert!(started.elapsed() < Duration::from_secs(10), "{process} lives on");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    #[tokio::test]
    async fn output_is_whole_and_errors_are_cut() {
        let ended = run(
            shell("echo out; echo 0123456789abc >&2; head -c 1000000 /dev/zero >&2; exit 3"),
            BOUNDS,
        )
        .await
        .unwrap();
        assert_eq!(ended.status.code(), Some(3));
        assert_eq!(ended.output, b"out\n");
        assert_eq!(ended.errors, "0123456789");
    }

    #[tokio::test]
    async fn one_that_prints_without_end_is_ended() {
        let error = run(shell("yes"), BOUNDS).await.unwrap_err();
        assert!(matches!(error, Cut::TooMuch(1000)), "{error}");
    }

    #[tokio::test]
    async fn one_that_hangs_is_ended_with_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("child");
        let bounds = Bounds {
            time: Duration::from_millis(300),
            ..BOUNDS
        };
        let script = format!("sleep 1000 & echo $! > {}; wait", file.display());
        let error = run(shell(&script), bounds).await.unwrap_err();
        assert!(matches!(error, Cut::OutOfTime(_)), "{error}");
        gone(&std::fs::read_to_string(&file).unwrap()).await;
    }

    #[tokio::test]
    async fn one_that_is_no_longer_wanted_is_ended_with_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("child");
        let script = format!("sleep 1000 & echo $! > {}; wait", file.display());
        let wanted = async {
            while std::fs::read_to_string(&file).map_or(true, |text| text.is_empty()) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            ended = run(shell(&script), BOUNDS) => panic!("{ended:?}"),
            () = wanted => {}
        }
        gone(&std::fs::read_to_string(&file).unwrap()).await;
    }

    #[tokio::test]
    async fn an_absent_program_is_told() {
        let error = run(Command::new("/nowhere/program"), BOUNDS).await.unwrap_err();
        assert!(matches!(error, Cut::NotStarted(_)), "{error}");
    }
}
