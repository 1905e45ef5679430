//! The user's own kubeconfig: which file or files, read and merged as kubectl does.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use evenkeel_cluster::{Cluster, ConnectOptions, KubeconfigPolicy, KubeconfigSource, Limits};
use evenkeel_core::Sensitive;
use evenkeel_goyaml::{Numbers, from_yaml};
use evenkeel_telemetry::SystemClock;
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

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
pub(crate) struct OwnKubeconfig {
    /// Which files it is made from, for messages.
    pub(crate) name: String,
    pub(crate) content: Sensitive<String>,
    pub(crate) policy: KubeconfigPolicy,
    /// How it was read, to be read again.
    again: Again,
}

/// Reads the kubeconfig again when the server does not accept its credentials any more: a long run outlives tokens and
/// certificates, which other programs put into place meanwhile.
#[derive(Clone, Debug)]
enum Again {
    /// From files.
    Read {
        given: Option<PathBuf>,
        overrides: Overrides,
        allow_exec: bool,
    },
    /// It stays; the files that it names may be others.
    Same(Sensitive<String>),
}

impl KubeconfigSource for Again {
    fn newest(&self) -> BoxFuture<'_, Option<Sensitive<String>>> {
        let read = match self {
            Self::Same(content) => return Box::pin(std::future::ready(Some(content.clone()))),
            Self::Read {
                given,
                overrides,
                allow_exec,
            } => read(given.as_deref(), overrides, *allow_exec),
        };
        let newest = match read {
            Ok(own) => Some(own.content),
            Err(error) => {
                tracing::warn!(error = %format!("{error:#}"), "the kubeconfig cannot be read again");
                None
            }
        };
        Box::pin(std::future::ready(newest))
    }
}

impl OwnKubeconfig {
    /// A client; nobody is asked for anything yet.
    pub(crate) async fn connect(&self) -> anyhow::Result<Cluster> {
        let options = ConnectOptions {
            policy: self.policy.clone(),
            limits: Limits::default(),
            clock: Arc::new(SystemClock),
        };
        Cluster::connect_renewable(&self.content, options, Arc::new(self.again.clone()))
            .await
            .with_context(|| format!("{} cannot be used", self.name))
    }
}

/// What is said beside the kubeconfig, and comes before what it says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overrides {
    /// The context to use instead of the current one.
    pub(crate) context: Option<String>,
    /// Fields of the context's cluster.
    pub(crate) cluster: Map<String, Value>,
    /// Fields of the context's user.
    pub(crate) user: Map<String, Value>,
    /// The user's token.
    pub(crate) token: Option<Sensitive<String>>,
}

/// One that was put together here; its paths are absolute.
pub(crate) fn given(config: Value, name: &str) -> OwnKubeconfig {
    // JSON is YAML.
    let content = Sensitive::new(config.to_string());
    OwnKubeconfig {
        name: format!("kubeconfig {name}"),
        again: Again::Same(content.clone()),
        content,
        policy: KubeconfigPolicy::Own {
            allow_exec: false,
            base: PathBuf::from("/"),
        },
    }
}

/// Reads the given file; else those that `KUBECONFIG` lists, the first to name a thing wins; else `~/.kube/config`.
pub(crate) fn read(
    given: Option<&Path>,
    overrides: &Overrides,
    allow_exec: bool,
) -> anyhow::Result<OwnKubeconfig> {
    let merged = merged(given);
    let (mut config, names) = match merged {
        // An address is enough to connect, as for kubectl.
        Err(error) if is_missing(&error) && given.is_none() && overrides.cluster.contains_key("server") => {
            (Map::new(), vec!["of the command line".to_owned()])
        }
        merged => merged?,
    };
    if names.is_empty() {
        bail!("none of the kubeconfigs that {VARIABLE} lists exists: name one with --kubeconfig");
    }
    let name = format!("kubeconfig {}", names.join(", "));
    if let Some(context) = &overrides.context {
        choose(&mut config, context).with_context(|| format!("{name} cannot be used"))?;
    }
    if !overrides.cluster.is_empty() || !overrides.user.is_empty() || overrides.token.is_some() {
        lay_over(&mut config, overrides);
    }
    Ok(OwnKubeconfig {
        again: Again::Read {
            given: given.map(Path::to_owned),
            overrides: overrides.clone(),
            allow_exec,
        },
        name,
        // JSON is YAML.
        content: Sensitive::new(Value::Object(config).to_string()),
        policy: KubeconfigPolicy::Own {
            allow_exec,
            // Every path is absolute by now.
            base: PathBuf::from("/"),
        },
    })
}

/// The namespace of the current or the given context, and whether there is any kubeconfig; whatever is wrong with one
/// counts as none, as for kubectl.
pub(crate) fn namespace(given: Option<&Path>, context: Option<&str>) -> Option<String> {
    let (config, _) = merged(given).ok()?;
    let context = context.or_else(|| config.get("current-context")?.as_str())?;
    let context = named(&config, "contexts", context)?;
    let namespace = context.pointer("/context/namespace")?.as_str()?;
    Some(namespace.to_owned()).filter(|namespace| !namespace.is_empty())
}

/// All kubeconfigs as one, and their paths.
fn merged(given: Option<&Path>) -> anyhow::Result<(Map<String, Value>, Vec<String>)> {
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
    Ok((merged, names))
}

/// Puts the home directory in place of a leading `~`, which shells leave alone behind a `=`.
pub(crate) fn expand(path: impl AsRef<Path>) -> PathBuf {
    let path = path.as_ref();
    match (path.strip_prefix("~"), std::env::home_dir()) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_owned(),
    }
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

/// The item of a list that has this name.
fn named<'c>(config: &'c Map<String, Value>, list: &str, name: &str) -> Option<&'c Value> {
    let items = config.get(list)?.as_array()?;
    items
        .iter()
        .find(|item| item.get("name").and_then(Value::as_str) == Some(name))
}

/// Makes one context of the one in use and of what is said beside it.
fn lay_over(config: &mut Map<String, Value>, overrides: &Overrides) {
    const NAME: &str = "of the command line";
    let current = config.get("current-context").and_then(Value::as_str);
    let context = current.and_then(|name| named(config, "contexts", name));
    let context = context.and_then(|item| item.get("context"));
    let part = |key: &str, list: &str, field: &str, over: &Map<String, Value>| {
        let name = context.and_then(|context| context.get(key)?.as_str());
        let known = name.and_then(|name| named(config, list, name)?.get(field)?.as_object().cloned());
        let mut fields = known.unwrap_or_default();
        fields.extend(over.clone());
        json!([{"name": NAME, field: fields}])
    };
    let clusters = part("cluster", "clusters", "cluster", &overrides.cluster);
    let mut user = overrides.user.clone();
    if let Some(token) = &overrides.token {
        user.insert("token".to_owned(), token.expose().as_str().into());
    }
    let users = part("user", "users", "user", &user);
    config.insert("clusters".to_owned(), clusters);
    config.insert("users".to_owned(), users);
    let context = json!([{"name": NAME, "context": {"cluster": NAME, "user": NAME}}]);
    config.insert("contexts".to_owned(), context);
    config.insert("current-context".to_owned(), NAME.into());
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
    fn what_is_said_beside_it_comes_first() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = write(folder.path(), "config", &config("https://a"));
        let mut overrides = Overrides::default();
        overrides.cluster.insert("server".to_owned(), "https://b".into());
        overrides.token = Some(Sensitive::new("t".to_owned()));
        let own = read(Some(&path), &overrides, true).expect("it is valid");
        let own: Value = serde_json::from_str(own.content.expose()).expect("it is JSON");
        let at = |pointer: &str| own.pointer(pointer).cloned();
        assert_eq!(at("/clusters/0/cluster/server"), Some("https://b".into()));
        assert!(at("/clusters/0/cluster/certificate-authority").is_some());
        assert_eq!(at("/users/0/user/token"), Some("t".into()));
        assert_eq!(at("/contexts/0/name"), at("/current-context"));
    }

    #[test]
    fn the_namespace_is_the_contexts() {
        let folder = tempfile::tempdir().expect("a folder");
        let text =
            "current-context: a\ncontexts: [{name: a, context: {namespace: x}}, {name: b, context: {}}]\n";
        let path = write(folder.path(), "config", text);
        let of = |context| namespace(Some(&path), context);
        assert_eq!(of(None).as_deref(), Some("x"));
        assert_eq!((of(Some("b")), of(Some("c"))), (None, None));
        assert_eq!(namespace(Some(&folder.path().join("nothing")), None), None);
    }

    #[test]
    fn a_tilde_is_the_home_directory() {
        let home = std::env::home_dir().expect("tests have a home");
        assert_eq!(expand("~/charts/web"), home.join("charts/web"));
        assert_eq!(expand("~"), home);
        assert_eq!(expand("./~/web"), PathBuf::from("./~/web"));
        assert_eq!(expand("~other/web"), PathBuf::from("~other/web"));
    }

    #[test]
    fn an_unknown_context_is_told_with_the_known_ones() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = write(folder.path(), "config", &config("https://a"));
        let overrides = Overrides {
            context: Some("x".to_owned()),
            ..Overrides::default()
        };
        let error = read(Some(&path), &overrides, false)
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
