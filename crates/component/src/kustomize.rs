//! Building kustomizations with the `kustomize` program: the one other program that is ever run for a component.
//!
//! It runs on a private copy of the source's files, with an environment of its own, and within bounds; what it prints is
//! kept under the digest of the files and its version, so one build serves the whole fleet.

mod process;

use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use evenkeel_chart::plain_objects;
use evenkeel_core::Digest;
use evenkeel_source::{Cache, Kustomization};
use evenkeel_telemetry::Tasks;
use tokio::process::Command;
use tokio::sync::{Mutex, OnceCell, Semaphore};

use self::process::{Bounds, Ended};
use crate::render::{Document, Documents};

/// How long one build may take unless told otherwise.
pub const KUSTOMIZE_TIMEOUT: Duration = Duration::from_secs(60);
/// The most bytes one build may print.
const OUTPUT_MAX: usize = 32 * 1024 * 1024;
/// How many bytes of its errors are shown.
const ERRORS_SHOWN: usize = 4 * 1024;
/// How many of its warnings are shown, in lines.
const WARNINGS_SHOWN: usize = 10;
/// How many builds run at the same time.
const BUILDS_AT_ONCE: usize = 2;
/// How many builds are kept.
const BUILDS_KEPT: usize = 256;
/// The longest version that is believed, in bytes.
const VERSION_MAX: usize = 100;
/// Where nobody answers: for requests that are not to be made.
const NOWHERE: &str = "http://127.0.0.1:1";

/// How kustomizations are built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KustomizeOptions {
    /// The program.
    pub program: PathBuf,
    /// Whether a build may load what lies elsewhere.
    pub remote: RemoteBases,
    /// How long one build may take.
    pub timeout: Duration,
}

/// What happens to a kustomization that refers to addresses on the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RemoteBases {
    /// It is refused: what it gives would depend on when and where it is built.
    #[default]
    Refused,
    /// They are loaded, with the program's own means (`git`), whenever it is built. A change there is not noticed as long
    /// as the build is kept.
    Allowed,
}

/// Builds kustomizations. Cheap to clone; all clones are the same one.
#[derive(Clone)]
pub struct Kustomize(Arc<Inner>);

struct Inner {
    options: KustomizeOptions,
    version: Mutex<Option<(ProgramStamp, String)>>,
    builds: Cache<Digest, OnceCell<Built>>,
    at_once: Semaphore,
}

/// What tells one program file from another: place, length, time of change, number.
type ProgramStamp = (u64, i64, i64, u64);

/// What one build gave.
#[derive(Clone, Debug)]
pub(crate) struct Built {
    pub(crate) documents: Arc<Documents>,
    /// What the program said beside, in lines.
    pub(crate) warnings: Arc<[String]>,
}

/// Why there is no build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The kustomization is at fault: the same will happen again.
    Refused(String),
    /// The program or this machine is.
    Unavailable(String),
}

impl fmt::Debug for Kustomize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Kustomize").field(&self.0.options).finish()
    }
}

impl Kustomize {
    /// Builds with the given program, which is looked at when it is first needed.
    pub fn new(options: KustomizeOptions) -> Self {
        Self(Arc::new(Inner {
            options,
            version: Mutex::new(None),
            builds: Cache::new(BUILDS_KEPT),
            at_once: Semaphore::new(BUILDS_AT_ONCE),
        }))
    }

    /// The version that the program says it has; it is asked again when its file changes.
    pub(crate) async fn version(&self) -> Result<String, Fault> {
        let program = &self.0.options.program;
        let mut known = self.0.version.lock().await;
        let stamp = stamp(program).map_err(|error| self.unavailable(&error))?;
        if let Some((seen, version)) = &*known
            && *seen == stamp
        {
            return Ok(version.clone());
        }
        let folder = private_folder().map_err(|error| self.unavailable(&error))?;
        let mut command = self.command(folder.path());
        command.arg("version");
        let ended = self.run(command).await?;
        if !ended.status.success() {
            return Err(self.unavailable(&format!("`version` ended with {}", ended.status)));
        }
        let text = String::from_utf8_lossy(&ended.output);
        let version = text.lines().next().unwrap_or_default().trim();
        if version.is_empty() || version.len() > VERSION_MAX {
            return Err(self.unavailable(&"`version` prints no version"));
        }
        *known = Some((stamp, version.to_owned()));
        Ok(version.to_owned())
    }

    /// The objects of a kustomization; built once for all who ask for the same.
    pub(crate) async fn build(
        &self,
        kustomization: &Arc<Kustomization>,
        tasks: &Tasks,
    ) -> Result<Built, Fault> {
        if self.0.options.remote == RemoteBases::Refused && !kustomization.remote().is_empty() {
            return Err(Fault::Refused(refusal(kustomization)));
        }
        let version = self.version().await?;
        let digest = kustomization.digest();
        let key = Digest::of_parts([digest.as_bytes().as_slice(), version.as_bytes()]);
        let build = match self.0.builds.get(&key) {
            Some(build) => build,
            None => self.0.builds.insert(key, Arc::default()),
        };
        let built = build.get_or_try_init(|| self.build_now(kustomization, tasks));
        built.await.cloned()
    }

    async fn build_now(&self, kustomization: &Arc<Kustomization>, tasks: &Tasks) -> Result<Built, Fault> {
        let ending = || Fault::Unavailable("the process is ending".to_owned());
        let _permit = self.0.at_once.acquire().await.map_err(|_| ending())?;
        let source = Arc::clone(kustomization);
        let copy = tasks
            .blocking("copy a kustomization", move || copy(&source))
            .await;
        let copy = copy.map_err(|_| ending())?;
        let folder = copy.map_err(|error| {
            Fault::Unavailable(format!("a kustomization cannot be copied aside: {error}"))
        })?;
        let root = folder.path().join(FILES);
        let mut command = self.command(folder.path());
        command.args(["build", "--load-restrictor", "LoadRestrictionsRootOnly"]);
        command.arg(root.join(kustomization.folder()));
        let ended = self.run(command).await?;
        let words = words(&ended.errors, &root);
        if !ended.status.success() {
            return Err(Fault::Refused(format!(
                "kustomize build failed ({}):\n{words}",
                ended.status
            )));
        }
        let warnings = words
            .lines()
            .take(WARNINGS_SHOWN)
            .map(|line| format!("kustomize: {line}"))
            .collect();
        let read = tasks
            .blocking("read a build", move || documents(&ended.output))
            .await;
        let documents = read.map_err(|_| ending())?;
        Ok(Built {
            documents: Arc::new(documents.map_err(|error| {
                Fault::Refused(format!("what kustomize printed cannot be used: {error}"))
            })?),
            warnings,
        })
    }

    /// The program with an environment that leads nowhere but into `folder`.
    fn command(&self, folder: &Path) -> Command {
        let mut command = Command::new(&self.0.options.program);
        command.env_clear().current_dir(folder);
        for name in ["HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"] {
            command.env(name, folder.join(HOME));
        }
        match self.0.options.remote {
            RemoteBases::Refused => {
                // No git, and no way for what the program fetches itself.
                command.env("PATH", folder.join(NO_PROGRAMS));
                for name in ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"] {
                    command.env(name, NOWHERE);
                }
            }
            RemoteBases::Allowed => {
                const NAMES: [&str; 7] = [
                    "PATH",
                    "HTTP_PROXY",
                    "HTTPS_PROXY",
                    "NO_PROXY",
                    "http_proxy",
                    "https_proxy",
                    "no_proxy",
                ];
                let given = NAMES
                    .iter()
                    .filter_map(|name| Some((name, std::env::var_os(name)?)));
                command.envs(given);
                // Git would ask somebody who is not there.
                command.env("GIT_TERMINAL_PROMPT", "0");
            }
        }
        command
    }

    async fn run(&self, command: Command) -> Result<Ended, Fault> {
        let bounds = Bounds {
            time: self.0.options.timeout,
            output: OUTPUT_MAX,
            errors: ERRORS_SHOWN,
        };
        process::run(command, bounds).await.map_err(|cut| match cut {
            process::Cut::TooMuch(_) => Fault::Refused(format!("kustomize build: {cut}")),
            cut => self.unavailable(&cut),
        })
    }

    fn unavailable(&self, problem: &dyn fmt::Display) -> Fault {
        let program = self.0.options.program.display();
        Fault::Unavailable(format!("kustomize ({program}) cannot be used: {problem}"))
    }
}

/// How it begins to quote settings; a backtick ends them.
const SETTINGS: &str = "with config: `";

/// Below a private folder: the kustomization's files, a home, and a place without programs.
const FILES: &str = "files";
const HOME: &str = "home";
const NO_PROGRAMS: &str = "no-programs";

fn stamp(program: &Path) -> std::io::Result<ProgramStamp> {
    let metadata = std::fs::metadata(program)?;
    Ok((
        metadata.len(),
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.ino(),
    ))
}

/// A new folder that nobody else can look into, removed when dropped.
fn private_folder() -> std::io::Result<tempfile::TempDir> {
    let folder = tempfile::Builder::new().prefix("evenkeel-kustomize-").tempdir()?;
    for name in [FILES, HOME, NO_PROGRAMS] {
        std::fs::create_dir(folder.path().join(name))?;
    }
    Ok(folder)
}

fn copy(kustomization: &Kustomization) -> std::io::Result<tempfile::TempDir> {
    let folder = private_folder()?;
    let root = folder.path().join(FILES);
    for file in kustomization.files() {
        let path = root.join(&file.path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(path, &file.content)?;
    }
    Ok(folder)
}

/// What the program said, in the paths that its user knows.
fn words(errors: &str, root: &Path) -> String {
    // It may have looked up links on the way to its folder.
    let real = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let mut words = errors.trim().to_owned();
    for root in [root, real.as_path()] {
        let root = root.display().to_string();
        words = words.replace(&format!("{root}/"), "").replace(&root, ".");
    }
    without_settings(&words)
}

/// What the program quotes of a generator's settings is left out: literals of Secrets are among them.
fn without_settings(words: &str) -> String {
    let mut parts = words.split(SETTINGS);
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        kept.push_str("with config […]");
        kept.push_str(part.split_once('`').map_or("", |(_, rest)| rest));
    }
    kept
}

fn refusal(kustomization: &Kustomization) -> String {
    let named: Vec<String> = kustomization.remote().iter().map(ToString::to_string).collect();
    format!(
        "it refers to the network: {}; put it into the source, or let builds load it with --kustomize-remote",
        named.join(", ")
    )
}

fn documents(output: &[u8]) -> Result<Documents, evenkeel_chart::Error> {
    let objects = plain_objects([("kustomization", output)])?;
    Ok(Documents {
        objects: objects.into_iter().map(Document::from).collect(),
        hooks: Vec::new(),
        is_marked: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_in_the_users_paths_and_without_settings() {
        let root = Path::new("/tmp/evenkeel-kustomize-x/files");
        let said = "Error: trouble configuring builtin SecretGenerator with config: `\nliterals:\n- password=hunter2\n`: \
                    open /tmp/evenkeel-kustomize-x/files/over/a.env: no such file in /tmp/evenkeel-kustomize-x/files\n";
        assert_eq!(
            words(said, root),
            "Error: trouble configuring builtin SecretGenerator with config […]: open over/a.env: no such file in ."
        );
        // Cut off in the middle.
        assert_eq!(words("x with config: `password=hun", root), "x with config […]");
    }
}
