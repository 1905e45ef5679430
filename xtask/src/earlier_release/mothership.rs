//! A mothership of some release, and that release's own commands to speak to it.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::process::{bounded, describe, run_quietly};

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

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .args(["--server", &self.server])
            .current_dir(&self.place);
        command
    }

    /// Registers a cluster, or registers it anew.
    pub(super) fn register(&self, name: &str) -> Result<()> {
        let path = self.place.join("cluster.yaml");
        let document = format!("name: {name}\ncomponents: []\n");
        std::fs::write(&path, document).with_context(|| format!("cannot write {}", path.display()))?;
        run_quietly(
            "registering",
            &mut self.command(&["cluster", "apply", "--file", "cluster.yaml"]),
        )
    }

    /// Deletes a cluster and waits until it is gone.
    pub(super) fn delete(&self, name: &str) -> Result<()> {
        run_quietly(
            "deleting",
            &mut self.command(&["cluster", "delete", name, "--yes", "--wait"]),
        )
    }

    /// The names of all clusters, in order.
    pub(super) fn clusters(&self) -> Result<Vec<String>> {
        let mut command = self.command(&["cluster", "list", "--output", "json"]);
        let ended = bounded(&mut command, COMMAND)?;
        if !ended.status.is_some_and(|status| status.success()) {
            bail!(
                "`{}`: {}",
                describe(&command),
                String::from_utf8_lossy(&ended.errors)
            );
        }
        let listed: serde_json::Value = serde_json::from_slice(&ended.output)?;
        let items = listed
            .get("items")
            .unwrap_or(&listed)
            .as_array()
            .cloned()
            .unwrap_or_default();
        let names = items
            .iter()
            .filter_map(|item| item.get("name")?.as_str().map(str::to_owned));
        Ok(names.collect())
    }

    /// Asks it to end, and waits until it has.
    pub(super) fn stop(mut self) -> Result<()> {
        run_quietly(
            "stopping",
            Command::new("kill").args(["-TERM", &self.child.id().to_string()]),
        )?;
        let status = self.child.wait().context("cannot wait for the mothership")?;
        if !status.success() {
            bail!("{} ended with {status}", self.program.display());
        }
        Ok(())
    }
}
