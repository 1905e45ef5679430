//! Helm's plugins: where they are, what their `plugin.yaml` says, which command of theirs is for this machine.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use evenkeel_goyaml::{Node, NodeContent, NodeDocument};

/// The type of the plugins that are looked for.
pub(super) const POST_RENDERER: &str = "postrenderer/v1";

const FILE: &str = "plugin.yaml";
/// The runtime whose plugins are programs.
const SUBPROCESS: &str = "subprocess";
/// The runtimes that Helm knows.
const RUNTIMES: [&str; 2] = [SUBPROCESS, "extism/v1"];
/// The types that Helm knows.
const TYPES: [&str; 4] = [POST_RENDERER, "cli/v1", "getter/v1", "test/v1"];
/// The fields that a `plugin.yaml` may have.
const FIELDS: [&str; 8] = [
    "apiVersion",
    "name",
    "type",
    "runtime",
    "version",
    "sourceURL",
    "config",
    "runtimeConfig",
];

/// A command for some operating system and architecture; an empty one is for all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PlatformCommand {
    os: String,
    arch: String,
    command: String,
    args: Vec<String>,
}

/// How a plugin is run.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    Subprocess(Vec<PlatformCommand>),
    /// By a runtime of this name, which is not here.
    OtherRuntime(String),
}

/// A plugin that could be loaded; `run` is there if it is a post-renderer.
#[derive(Debug)]
struct Loaded {
    name: String,
    run: Option<Found>,
}

/// The folders with plugins: `HELM_PLUGINS`, else Helm's usual one.
pub(super) fn folders(variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    if let Some(folders) = variable("HELM_PLUGINS") {
        return if folders.is_empty() {
            Vec::new()
        } else {
            std::env::split_paths(&folders).collect()
        };
    }
    let path = |name: &str| variable(name).filter(|text| !text.is_empty()).map(PathBuf::from);
    let data = path("HELM_DATA_HOME").unwrap_or_else(|| {
        let home = || path("HOME").unwrap_or_default().join(".local").join("share");
        path("XDG_DATA_HOME").unwrap_or_else(home).join("helm")
    });
    vec![data.join("plugins")]
}

/// The first post-renderer of this name, with its folder. Plugins that cannot be loaded are told of, and left out.
pub(super) fn find(
    folders: &[PathBuf],
    name: &str,
    warnings: &mut Vec<String>,
) -> Result<Option<(PathBuf, Found)>, String> {
    let mut first = None;
    for folder in folders {
        let mut names: BTreeMap<String, PathBuf> = BTreeMap::new();
        for folder in plugins_below(folder) {
            let loaded = match load(&folder) {
                Ok(loaded) => loaded,
                Err(problem) => {
                    let file = folder.join(FILE);
                    warnings.push(format!(
                        "failed to load plugin (ignoring) {}: {problem}",
                        file.display()
                    ));
                    continue;
                }
            };
            if let Some(other) = names.get(&loaded.name) {
                return Err(format!(
                    "two plugins claim the name {:?} at {:?} and {:?}",
                    loaded.name,
                    other.display().to_string(),
                    folder.display().to_string()
                ));
            }
            names.insert(loaded.name.clone(), folder.clone());
            if let Some(run) = loaded.run.filter(|_| loaded.name == name && first.is_none()) {
                first = Some((folder, run));
            }
        }
    }
    Ok(first)
}

/// The folders with a `plugin.yaml`, by name.
fn plugins_below(folder: &Path) -> Vec<PathBuf> {
    // What cannot be read holds no plugins, as in Helm.
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let mut found: Vec<PathBuf> = entries
        .map(|entry| folder.join(entry.file_name()))
        .filter(|folder| folder.join(FILE).symlink_metadata().is_ok())
        .collect();
    found.sort();
    found
}

fn load(folder: &Path) -> Result<Loaded, String> {
    let file = folder.join(FILE);
    let text = fs::read(&file).map_err(|error| {
        format!(
            "failed to read plugin at {:?}: {error}",
            file.display().to_string()
        )
    })?;
    read(&text).map_err(|problem| {
        format!(
            "failed to load plugin {:?}: {problem}",
            folder.display().to_string()
        )
    })
}

fn read(text: &[u8]) -> Result<Loaded, String> {
    let document = NodeDocument::read(text)
        .map_err(|error| format!("failed to peek {FILE} API version: {error}"))?
        .ok_or_else(|| format!("failed to peek {FILE} API version: EOF"))?;
    let root = document.root;
    match field(&root, "apiVersion").as_str() {
        // What Helm 3 had; none of them is a post-renderer.
        "" => {
            let name = field(&root, "name");
            check_name(&name)?;
            Ok(Loaded { name, run: None })
        }
        "v1" => read_v1(&root),
        other => Err(format!("invalid plugin apiVersion: {other:?}")),
    }
}

fn read_v1(root: &Node) -> Result<Loaded, String> {
    let unknown = root.entries().unwrap_or_default().iter();
    let mut unknown = unknown
        .map(|(key, _)| key.text())
        .filter(|key| !FIELDS.contains(key));
    if let Some(key) = unknown.next() {
        return Err(format!("field {key} not found; known are {}", FIELDS.join(", ")));
    }
    let name = field(root, "name");
    check_name(&name)?;
    let version = field(root, "version");
    if version.is_empty() {
        return Err("plugin `version` is required".to_owned());
    }
    if !is_version(&version) {
        return Err(format!(
            "invalid plugin `version` {version:?}: must be valid semver"
        ));
    }
    let (kind, runtime) = (field(root, "type"), field(root, "runtime"));
    if kind.is_empty() {
        return Err("`type` missing".to_owned());
    }
    if runtime.is_empty() {
        return Err("`runtime` missing".to_owned());
    }
    if !TYPES.contains(&kind.as_str()) {
        return Err(format!("unknown plugin type {kind:?}"));
    }
    if !RUNTIMES.contains(&runtime.as_str()) {
        return Err(format!("unsupported plugin runtime type: {runtime:?}"));
    }
    mapping(root, "config")?;
    let config = mapping(root, "runtimeConfig")?;
    if kind != POST_RENDERER {
        return Ok(Loaded { name, run: None });
    }
    if let Some((key, _)) = mapping(root, "config")?.and_then(|config| config.entries()?.first()) {
        return Err(format!(
            "field {} not found in config: it has no fields",
            key.text()
        ));
    }
    let run = if runtime == SUBPROCESS {
        Found::Subprocess(config.map_or(Ok(Vec::new()), commands)?)
    } else {
        Found::OtherRuntime(runtime)
    };
    Ok(Loaded { name, run: Some(run) })
}

/// A field that holds a mapping, if it is there.
fn mapping<'n>(root: &'n Node, name: &str) -> Result<Option<&'n Node>, String> {
    match root.get(name) {
        Some(node) if node.is_null() => Ok(None),
        Some(node) if node.entries().is_none() => Err(format!("{name}: expected a mapping")),
        node => Ok(node),
    }
}

fn commands(config: &Node) -> Result<Vec<PlatformCommand>, String> {
    list(config, "platformCommand")?
        .iter()
        .map(|node| {
            if node.entries().is_none() && !node.is_null() {
                return Err("platformCommand: expected mappings with os, arch, command and args".to_owned());
            }
            let args = list(node, "args")?.iter();
            Ok(PlatformCommand {
                os: field(node, "os"),
                arch: field(node, "arch"),
                command: field(node, "command"),
                args: args.map(|node| node.text().to_owned()).collect(),
            })
        })
        .collect()
}

fn list<'n>(node: &'n Node, name: &str) -> Result<&'n [Node], String> {
    match node.get(name) {
        None => Ok(&[]),
        Some(list) if list.is_null() => Ok(&[]),
        Some(list) => match &list.content {
            NodeContent::Sequence { items, .. } => Ok(items),
            _ => Err(format!("{name}: expected a list")),
        },
    }
}

/// The text of a field; empty without one.
fn field(node: &Node, name: &str) -> String {
    let value = node.get(name).filter(|value| !value.is_null());
    value.map_or(String::new(), |value| value.text().to_owned())
}

fn check_name(name: &str) -> Result<(), String> {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || !name.chars().all(good) {
        return Err("invalid plugin `name`".to_owned());
    }
    Ok(())
}

/// Whether a text is a version by the letter of Semantic Versioning 2.
fn is_version(text: &str) -> bool {
    let (text, build) = text
        .split_once('+')
        .map_or((text, None), |(text, build)| (text, Some(build)));
    let (core, pre) = text
        .split_once('-')
        .map_or((text, None), |(core, pre)| (core, Some(pre)));
    let is_word =
        |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let is_number = |word: &str| {
        !word.is_empty()
            && word.chars().all(|c| c.is_ascii_digit())
            && (word == "0" || !word.starts_with('0'))
    };
    let is_pre = |word: &str| is_word(word) && (!word.chars().all(|c| c.is_ascii_digit()) || is_number(word));
    core.split('.').count() == 3
        && core.split('.').all(is_number)
        && pre.is_none_or(|pre| pre.split('.').all(is_pre))
        && build.is_none_or(|build| build.split('.').all(is_word))
}

/// The command for this machine, with its arguments: the one that names operating system and architecture, else the first
/// that names the system alone, else the first that names neither. An empty one is none.
pub(super) fn applicable(commands: &[PlatformCommand]) -> Option<(&str, &[String])> {
    // Go's names.
    let arch = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        other => other,
    };
    let os = match std::env::consts::OS {
        "macos" => "darwin",
        other => other,
    };
    let here = |command: &&PlatformCommand| command.os.eq_ignore_ascii_case(os);
    let any_arch = |command: &&PlatformCommand| command.arch.is_empty();
    let exact = commands
        .iter()
        .find(|command| here(command) && command.arch.eq_ignore_ascii_case(arch));
    let of_system = || commands.iter().filter(any_arch).find(here);
    let of_none = || {
        commands
            .iter()
            .filter(any_arch)
            .find(|command| command.os.is_empty())
    };
    let command = exact.or_else(of_system).or_else(of_none)?;
    let begins = !command.command.is_empty() && !command.command.starts_with(' ');
    begins.then_some((command.command.as_str(), command.args.as_slice()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_strict() {
        for good in ["1.2.3", "0.0.0", "1.2.3-a.0-b", "1.2.3+007", "1.2.3-1+x"] {
            assert!(is_version(good), "{good}");
        }
        for wrong in [
            "", "1", "1.2", "v1.2.3", "01.2.3", "1.2.3-", "1.2.3-01", "1.2.3+", "1.2.3.4",
        ] {
            assert!(!is_version(wrong), "{wrong}");
        }
    }

    #[test]
    fn the_nearest_command_is_taken() {
        let command = |os: &str, arch: &str, command: &str| PlatformCommand {
            os: os.to_owned(),
            arch: arch.to_owned(),
            command: command.to_owned(),
            args: Vec::new(),
        };
        let os = std::env::consts::OS;
        let all = [
            command("", "", "any"),
            command("plan9", "", "other"),
            command(os, "", "system"),
            command(os, "s390", "wrong"),
        ];
        let taken = |commands: &[PlatformCommand]| applicable(commands).map(|(line, _)| line.to_owned());
        assert_eq!(taken(&all), Some("system".to_owned()));
        assert_eq!(taken(&all[..2]), Some("any".to_owned()));
        assert_eq!(taken(&all[1..2]), None);
        assert_eq!(taken(&[command("", "", "")]), None);
    }

    #[test]
    fn a_plugin_says_what_it_is() {
        let text = |more: &str| {
            format!("apiVersion: v1\nname: x\nversion: 1.0.0\ntype: postrenderer/v1\nruntime: {more}\n")
        };
        let run = |text: &str| read(text.as_bytes()).map(|loaded| loaded.run);
        let found = run(&text(
            "subprocess\nruntimeConfig:\n  platformCommand: [{command: a b, args: [1]}]",
        ));
        let command = PlatformCommand {
            command: "a b".to_owned(),
            args: vec!["1".to_owned()],
            ..PlatformCommand::default()
        };
        assert_eq!(found, Ok(Some(Found::Subprocess(vec![command]))));
        assert_eq!(
            run(&text("extism/v1")),
            Ok(Some(Found::OtherRuntime("extism/v1".to_owned())))
        );
        assert_eq!(run("name: old\ncommand: x\n"), Ok(None));
        for wrong in [
            text("other"),
            text("subprocess\nmore: 1"),
            text("subprocess\nconfig: {a: 1}"),
            "apiVersion: v2\nname: x\n".to_owned(),
            text("subprocess").replace("name: x", "name: x y"),
            "[".to_owned(),
        ] {
            assert!(run(&wrong).is_err(), "{wrong}");
        }
    }
}
