//! `--post-renderer`: a plugin of Helm changes all documents before they are sorted.
//!
//! Plugins are found and run as Helm 4.3.1 does (`internal/plugin`), those of the runtime `subprocess`; those made of
//! WebAssembly are refused. A plugin runs as whoever calls the command, so only this command has them: a component of
//! the fleet gets none.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{ErrorKind, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{anyhow, bail};
use evenkeel_chart::PostRenderer;

use plugin::{Found, PlatformCommand};

mod expand;
mod plugin;

/// A plugin that is to be run, with the arguments of the command line.
#[derive(Debug)]
pub(super) struct Plugin {
    name: String,
    folder: PathBuf,
    commands: Vec<PlatformCommand>,
    arguments: Vec<String>,
}

impl Plugin {
    /// The plugin that the flags name, if they name one. What is wrong with other plugins goes to `warnings`.
    ///
    /// # Errors
    /// With Helm's text: a second name, a name that no plugin has, two plugins of one name, a plugin of a runtime that is
    /// not here.
    pub(super) fn named(
        names: &[String],
        arguments: &[String],
        warnings: &mut Vec<String>,
    ) -> anyhow::Result<Option<Self>> {
        let mut names = names.iter().filter(|name| !name.is_empty());
        let Some(name) = names.next() else {
            return Ok(None);
        };
        let refused = |name: &str, problem: &str| {
            anyhow!("invalid argument {name:?} for \"--post-renderer\" flag: {problem}")
        };
        let found = plugin::find(&plugin::folders(|name| std::env::var_os(name)), name, warnings)
            .map_err(|problem| refused(name, &problem))?;
        if let Some(second) = names.next() {
            return Err(refused(
                second,
                "cannot specify --post-renderer flag more than once",
            ));
        }
        match found {
            None => Err(refused(
                name,
                &format!("plugin: {{Name:{name} Type:{}}} not found", plugin::POST_RENDERER),
            )),
            Some((folder, Found::Subprocess(commands))) => Ok(Some(Self {
                name: name.clone(),
                folder,
                commands,
                arguments: arguments.to_vec(),
            })),
            Some((folder, Found::OtherRuntime(runtime))) => bail!(refused(
                name,
                &format!(
                    "the plugin in {} is of the runtime {runtime:?}, which cannot be run here; one of the runtime \
                     \"subprocess\" can",
                    folder.display()
                ),
            )),
        }
    }

    /// What a render calls with its documents.
    pub(super) fn into_renderer(self) -> PostRenderer {
        Box::new(move |documents| self.run(documents))
    }

    fn run(self, documents: &[u8]) -> Result<Vec<u8>, String> {
        let changed = self
            .invoke(documents)
            .map_err(|problem| format!("failed to invoke post-renderer plugin {:?}: {problem}", self.name))?;
        if String::from_utf8_lossy(&changed).trim().is_empty() {
            return Err(format!("post-renderer {:?} produced empty output", self.name));
        }
        Ok(changed)
    }

    /// Runs the program with the documents as its input. As in Helm, what it says on standard error is not shown, and
    /// it may take as long as it likes: whoever waits at the terminal stops it.
    fn invoke(&self, documents: &[u8]) -> Result<Vec<u8>, String> {
        let mut environment: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        environment.insert("HELM_PLUGIN_NAME".into(), self.name.clone().into());
        environment.insert("HELM_PLUGIN_DIR".into(), self.folder.clone().into_os_string());
        let expand = |text: &str| {
            expand::expand(text, |name| {
                let value = environment.get(std::ffi::OsStr::new(name));
                value.map(|value| value.to_string_lossy().into_owned())
            })
        };
        let (line, fixed) = plugin::applicable(&self.commands)
            .ok_or("failed to prepare plugin command: no plugin command is applicable")?;
        let mut words = line.split(' ').map(&expand);
        let program = words.next().unwrap_or_default();
        let mut command = Command::new(&program);
        command
            .args(words)
            .args(fixed.iter().map(|text| expand(text)))
            .args(&self.arguments)
            .env_clear()
            .envs(&environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| start_problem(&program, &error))?;
        let input = child.stdin.take();
        let output = std::thread::scope(|scope| {
            scope.spawn(move || {
                // A program need not read all of its input.
                let _ = input.map(|mut input| input.write_all(documents));
            });
            child.wait_with_output()
        });
        let output = output.map_err(|error| error.to_string())?;
        if output.status.success() {
            Ok(output.stdout)
        } else {
            Err(format!("plugin {:?} exited with error", self.name))
        }
    }
}

/// Go's words for a program that cannot be started.
fn start_problem(program: &str, error: &std::io::Error) -> String {
    match (error.kind(), program.contains('/')) {
        (ErrorKind::NotFound, false) => format!("exec: {program:?}: executable file not found in $PATH"),
        (ErrorKind::NotFound, true) => format!("fork/exec {program}: no such file or directory"),
        (ErrorKind::PermissionDenied, true) => format!("fork/exec {program}: permission denied"),
        _ => format!("fork/exec {program}: {error}"),
    }
}
