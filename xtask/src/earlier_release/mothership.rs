//! A mothership of some release, and that release's own commands to speak to it.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::process::{bounded, describe};

/// How long it may take to be there.
const START: Duration = Duration::from_secs(60);
/// How long a command, and the deletion of a cluster that was never reached, may take.
const COMMAND: Duration = Duration::from_secs(60);
/// What it says once it is there, before its address.
const SERVING: &str = "serving on ";

/// It ends when dropped.
pub(super) struct Mothership {
    program: PathBuf,
    place: PathBuf,
    child: Child,
    server: String,
}

impl Drop for Mothership {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Mothership {
    /// Starts it and waits until it serves.
    pub(super) fn start(program: &Path, place: &Path, database: &str) -> Result<Self> {
        let mut command = Command::new(program);
        command.args([
            "mothership",
            "--listen",
            "127.0.0.1:0",
            "--database",
            database,
            "--key-file",
        ]);
        command
            .arg(place.join("keys"))
            .current_dir(place)
            .stderr(Stdio::piped());
        let line = describe(&command);
        let mut child = command.spawn().with_context(|| format!("cannot run `{line}`"))?;
        let errors = child.stderr.take().context("its words go to a pipe")?;
        let (tell, told) = mpsc::channel();
        // It goes on for as long as the mothership speaks, so that no full pipe stops it.
        std::thread::spawn(move || {
            for line in BufReader::new(errors).lines().map_while(Result::ok) {
                let _ = tell.send(line);
            }
        });
        let mut mothership = Self {
            program: program.to_owned(),
            place: place.to_owned(),
            child,
            server: String::new(),
        };
        let mut said = Vec::new();
        while let Ok(line) = told.recv_timeout(START) {
            if let Some(server) = line.strip_prefix(SERVING) {
                server.clone_into(&mut mothership.server);
                return Ok(mothership);
            }
            said.push(line);
        }
        bail!("`{line}` does not serve; it said:\n{}", said.join("\n"));
    }

    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    /// Runs one of its commands and answers what that printed.
    fn run(&self, arguments: &[&str]) -> Result<Vec<u8>> {
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .args(["--server", &self.server])
            .current_dir(&self.place);
        let ended = bounded(&mut command, COMMAND)?;
        let line = describe(&command);
        match ended.status {
            Some(status) if status.success() => Ok(ended.output),
            Some(status) => bail!(
                "`{line}` failed ({status}):\n{}",
                String::from_utf8_lossy(&ended.errors)
            ),
            None => bail!("`{line}` took longer than {COMMAND:?}"),
        }
    }

    /// Registers a cluster, or registers it anew.
    pub(super) fn register(&self, name: &str) -> Result<()> {
        let path = self.place.join("cluster.yaml");
        let document = format!("name: {name}\ncomponents: []\n");
        std::fs::write(&path, document).with_context(|| format!("cannot write {}", path.display()))?;
        self.run(&["cluster", "apply", "--file", "cluster.yaml"])
            .map(drop)
    }

    /// Deletes a cluster and waits until it is gone.
    pub(super) fn delete(&self, name: &str) -> Result<()> {
        self.run(&["cluster", "delete", name, "--yes", "--wait"])
            .map(drop)
    }

    /// The names of all clusters, in order.
    pub(super) fn clusters(&self) -> Result<Vec<String>> {
        let listed = self.run(&["cluster", "list", "--output", "json"])?;
        let listed: Value = serde_json::from_slice(&listed)?;
        let items = listed.get("items").and_then(Value::as_array);
        let items = items.with_context(|| format!("no clusters are listed in {listed}"))?;
        let names = items
            .iter()
            .filter_map(|item| item.get("name")?.as_str().map(str::to_owned));
        Ok(names.collect())
    }

    /// Asks it to end, and waits until it has.
    pub(super) fn stop(mut self) -> Result<()> {
        let mut stop = Command::new("kill");
        stop.args(["-TERM", &self.child.id().to_string()]);
        bounded(&mut stop, COMMAND)?;
        let status = self.child.wait().context("cannot wait for the mothership")?;
        if !status.success() {
            bail!("{} ended with {status}", self.program.display());
        }
        Ok(())
    }
}
