//! The user's own kubeconfig: which file or files, read and merged as kubectl does.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use evenkeel_cluster::KubeconfigPolicy;
use evenkeel_core::Sensitive;
use evenkeel_goyaml::{Numbers, from_yaml};
use serde_json::{Map, Value, json};

use super::inputs::expand;

/// The environment variable that lists kubeconfigs, separated like `PATH`.
const VARIABLE: &str = "KUBECONFIG";
/// Where kubectl looks when nothing is said.
const DEFAULT: &str = "~/.kube/config";
/// The lists of a kubeconfig, and what stands below `name` in each of their items.
const LISTS: [(&str, &str); 3] = [
    ("clusters", "cluster"),
    ("users", "user"),
    ("contexts", "context"),
];
/// The fields that name files, which are relative to the file that holds them.
const PATHS: [&str; 4] = [
    "certificate-authority",
    "client-certificate",
    "client-key",
    "tokenFile",
];
/// The largest kubeconfig that is read, in bytes.
const SIZE_MAX: u64 = 16 * 1024 * 1024;

/// A kubeconfig, ready for connecting.
pub(super) struct OwnKubeconfig {
    /// Which files it is made from, for messages.
    pub(super) name: String,
    pub(super) content: Sensitive<String>,
    pub(super) policy: KubeconfigPolicy,
}

/// Reads the given file; else those that `KUBECONFIG` lists, the first to name a thing wins; else `~/.kube/config`.
pub(super) fn read(
    given: Option<&Path>,
    context: Option<&str>,
    allow_exec: bool,
) -> anyhow::Result<OwnKubeconfig> {
    let variable = std::env::var_os(VARIABLE);
    let candidates = candidates(given, variable.as_deref());
    let mut merged = Map::new();
    let mut names = Vec::new();
    for path in &candidates {
        match one(path) {
            Ok(config) => {
                merge(&mut merged, config);
                names.push(path.display().to_string());
            }
            // As kubectl: of several, those that are not there do not count.
            Err(error) if candidates.len() > 1 && is_missing(&error) => {}
            Err(error) => return Err(error),
        }
    }
    if names.is_empty() {
        bail!("none of the kubeconfigs that {VARIABLE} lists exists: name one with --kubeconfig");
    }
    let name = format!("kubeconfig {}", names.join(", "));
    if let Some(context) = context {
        choose(&mut merged, context).with_context(|| format!("{name} cannot be used"))?;
    }
    Ok(OwnKubeconfig {
        name,
        // JSON is YAML.
        content: Sensitive::new(Value::Object(merged).to_string()),
        policy: KubeconfigPolicy::Own {
            allow_exec,
            // Every path is absolute by now.
            base: PathBuf::from("/"),
        },
    })
}

fn candidates(given: Option<&Path>, variable: Option<&OsStr>) -> Vec<PathBuf> {
    if let Some(path) = given {
        return vec![expand(path)];
    }
    let listed: Vec<PathBuf> = variable
        .map(|list| std::env::split_paths(list).collect())
        .unwrap_or_default();
    let listed: Vec<PathBuf> = listed
        .iter()
        .filter(|path| !path.as_os_str().is_empty())
        .map(expand)
        .collect();
    if listed.is_empty() {
        vec![expand(DEFAULT)]
    } else {
        listed
    }
}

fn is_missing(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// One file, with every path in it absolute.
fn one(path: &Path) -> anyhow::Result<Map<String, Value>> {
    let name = path.display();
    let length = std::fs::metadata(path)
        .with_context(|| {
            format!("kubeconfig {name} cannot be read: name one with --kubeconfig or {VARIABLE}")
        })?
        .len();
    if length > SIZE_MAX {
        bail!("kubeconfig {name} is larger than {SIZE_MAX} bytes");
    }
    let text = std::fs::read(path).with_context(|| format!("kubeconfig {name} cannot be read"))?;
    let text = Sensitive::new(text);
    // The parser's own words may quote the file, which holds credentials.
    let wrong = |line: Option<usize>| {
        let place = line.map(|line| format!(" at line {line}")).unwrap_or_default();
        anyhow::anyhow!(
            "kubeconfig {name} is not valid{place}: expected YAML with clusters, users and contexts"
        )
    };
    let value = from_yaml(text.expose(), Numbers::Exact).map_err(|error| wrong(error.line()))?;
    let Ok(Value::Object(mut config)) = Value::try_from(value) else {
        return Err(wrong(None));
    };
    let folder = std::path::absolute(path)
        .ok()
        .and_then(|path| path.parent().map(Path::to_owned))
        .with_context(|| format!("the folder of kubeconfig {name} cannot be found"))?;
    for (list, inner) in LISTS {
        let items = config.get_mut(list).and_then(Value::as_array_mut);
        for item in items.into_iter().flatten() {
            if let Some(fields) = item.get_mut(inner) {
                make_absolute(fields, &folder);
            }
        }
    }
    Ok(config)
}

fn make_absolute(fields: &mut Value, folder: &Path) {
    let absolute = |text: &str| Value::from(folder.join(expand(text)).to_string_lossy());
    for field in PATHS {
        if let Some(value) = fields.get_mut(field)
            && let Some(text) = value.as_str().filter(|text| !text.is_empty())
        {
            *value = absolute(text);
        }
    }
    // A program without a slash is looked for in PATH.
    if let Some(value) = fields.pointer_mut("/exec/command")
        && let Some(text) = value.as_str().filter(|text| text.contains('/'))
    {
        *value = absolute(text);
    }
}

/// Adds what is not there yet: of two things of one name, the first counts.
fn merge(into: &mut Map<String, Value>, from: Map<String, Value>) {
    for (key, value) in from {
        let is_list = LISTS.iter().any(|(list, _)| *list == key);
        let Value::Array(items) = value else {
            let is_set = |value: &Value| !(value.is_null() || value.as_str() == Some(""));
            if is_set(&value) && !into.get(&key).is_some_and(is_set) {
                into.insert(key, value);
            }
            continue;
        };
        let known = into.entry(key).or_insert_with(|| json!([]));
        if let Some(known) = known.as_array_mut().filter(|_| is_list) {
            for item in items {
                let name = item.get("name");
                if !known.iter().any(|other| other.get("name") == name) {
                    known.push(item);
                }
            }
        }
    }
}

fn choose(config: &mut Map<String, Value>, context: &str) -> anyhow::Result<()> {
    let items = config.get("contexts").and_then(Value::as_array);
    let known: Vec<&str> = items
        .into_iter()
        .flatten()
        .filter_map(|item| item.get("name")?.as_str())
        .collect();
    if !known.contains(&context) {
        bail!("it has no context {context:?}: there are {}", known.join(", "));
    }
    config.insert("current-context".to_owned(), context.into());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
        let path = folder.join(name);
        std::fs::write(&path, text).expect("the folder can be written");
        path
    }

    fn config(server: &str) -> String {
        format!(
            "current-context: c\nclusters: [{{name: k, cluster: {{server: \"{server}\", certificate-authority: ca.crt}}}}]\n\
             users: [{{name: u, user: {{exec: {{command: ./login}}, tokenFile: /t}}}}]\n\
             contexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n"
        )
    }

    #[test]
    fn a_given_file_comes_before_the_variable_and_that_before_the_default() {
        let list = |given, variable: Option<&str>| candidates(given, variable.map(OsStr::new));
        assert_eq!(list(Some(Path::new("/k")), Some("/a:/b")), [PathBuf::from("/k")]);
        assert_eq!(
            list(None, Some("/a:/b:")),
            [PathBuf::from("/a"), PathBuf::from("/b")]
        );
        for nothing in [None, Some("")] {
            assert_eq!(list(None, nothing), [expand(DEFAULT)]);
        }
    }

    #[test]
    fn paths_start_at_the_file_that_holds_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = write(folder.path(), "config", &config("https://a"));
        let config = Value::Object(one(&path).expect("it is valid"));
        let text = |pointer: &str| config.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let inside = |name: &str| Some(folder.path().join(name).to_string_lossy().into_owned());
        assert_eq!(
            text("/clusters/0/cluster/certificate-authority"),
            inside("ca.crt")
        );
        assert_eq!(text("/users/0/user/exec/command"), inside("./login"));
        assert_eq!(text("/users/0/user/tokenFile").as_deref(), Some("/t"));
    }

    #[test]
    fn of_two_things_of_one_name_the_first_counts() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut merged = Map::new();
        for (name, server) in [("one", "https://a"), ("two", "https://b")] {
            merge(
                &mut merged,
                one(&write(folder.path(), name, &config(server))).expect("it is valid"),
            );
        }
        merge(
            &mut merged,
            one(&write(
                folder.path(),
                "three",
                "contexts: [{name: d}]\ncurrent-context: d",
            ))
            .expect("it is valid"),
        );
        let merged = Value::Object(merged);
        assert_eq!(
            merged.pointer("/clusters/0/cluster/server"),
            Some(&json!("https://a"))
        );
        assert_eq!(
            merged
                .pointer("/contexts")
                .and_then(Value::as_array)
                .map(Vec::len),
            Some(2)
        );
        assert_eq!(merged.get("current-context"), Some(&json!("c")));
    }

    #[test]
    fn an_unknown_context_is_told_with_the_known_ones() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = write(folder.path(), "config", &config("https://a"));
        let error = read(Some(&path), Some("x"), false)
            .map(|_| ())
            .expect_err("there is no x");
        assert!(
            format!("{error:#}").contains("no context \"x\": there are c"),
            "{error:#}"
        );
    }

    #[test]
    fn broken_yaml_is_told_without_its_content() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = write(
            folder.path(),
            "config",
            "users:\n- token: hunter2\n bad: *hunter2\n",
        );
        let error = format!("{:#}", one(&path).expect_err("it is broken"));
        assert!(
            error.contains("not valid") && !error.contains("hunter2"),
            "{error}"
        );
    }
}
