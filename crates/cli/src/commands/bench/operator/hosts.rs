//! Doubles of a GitLab and a Vault that hold thousands of repositories and secrets, and count what they are asked.
//!
//! They know what the operator asks and no more; what GitLab really does is the business of the double that the tests have.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use evenkeel_telemetry::{OnCancel, OnError, Tasks};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// Both, at one address.
pub(super) struct Hosts {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    content: Mutex<Content>,
    /// How many writes there were.
    writes: watch::Sender<u64>,
}

#[derive(Default)]
struct Content {
    groups: HashMap<String, u64>,
    projects: Vec<Project>,
    by_path: HashMap<String, usize>,
    secrets: HashMap<String, (u64, Value)>,
    /// How often each sub-resource was read, since the last reset.
    reads: HashMap<String, u64>,
    last_id: u64,
}

#[derive(Default)]
struct Project {
    path: String,
    description: Value,
    files: BTreeMap<String, u64>,
    keys: Vec<Value>,
    variables: BTreeMap<String, Value>,
    tokens: Vec<Value>,
}

impl Hosts {
    pub(super) async fn start(tasks: &Tasks) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await;
        let listener = listener.context("the doubles of GitLab and Vault cannot listen")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            content: Mutex::default(),
            writes: watch::Sender::new(0),
        });
        let router = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        drop(
            tasks.spawn("bench-hosts", OnError::Log, OnCancel::Abort, |_| async move {
                axum::serve(listener, router).await
            }),
        );
        Ok(Self { address, shared })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Makes a group, as people do.
    pub(super) fn make_group(&self, path: &str) {
        let mut content = self.shared.content();
        let id = content.next_id();
        content.groups.insert(path.to_owned(), id);
    }

    pub(super) fn writes(&self) -> u64 {
        *self.shared.writes.borrow()
    }

    /// The sub-resource that was read most often since the last reset, with how often.
    pub(super) fn most_read(&self) -> (String, u64) {
        let content = self.shared.content();
        let most = content.reads.iter().max_by_key(|(_, count)| **count);
        most.map(|(name, count)| (name.clone(), *count))
            .unwrap_or_default()
    }

    /// All reads since the last reset.
    pub(super) fn reads(&self) -> u64 {
        self.shared.content().reads.values().sum()
    }

    pub(super) fn reset_reads(&self) {
        self.shared.content().reads.clear();
    }

    /// Waits until a repository is described so.
    pub(super) async fn described(
        &self,
        path: &str,
        description: &str,
        within: Duration,
    ) -> anyhow::Result<()> {
        self.until(within, |content| {
            let project = content.by_path.get(path).and_then(|at| content.projects.get(*at));
            project.is_some_and(|project| project.description == description)
        })
        .await
        .with_context(|| format!("{path} is not described as {description:?}"))
    }

    /// Waits until a repository has a file.
    pub(super) async fn has_file(&self, path: &str, file: &str, within: Duration) -> anyhow::Result<()> {
        self.until(within, |content| {
            let project = content.by_path.get(path).and_then(|at| content.projects.get(*at));
            project.is_some_and(|project| project.files.contains_key(file))
        })
        .await
        .with_context(|| format!("{path} has no file {file}"))
    }

    async fn until(&self, within: Duration, is: impl Fn(&Content) -> bool) -> anyhow::Result<()> {
        let mut writes = self.shared.writes.subscribe();
        let waiting = writes.wait_for(|_| is(&self.shared.content()));
        tokio::time::timeout(within, waiting).await??;
        Ok(())
    }
}

impl Shared {
    fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn answer(State(shared): State<Arc<Shared>>, method: Method, uri: Uri, body: Bytes) -> Response {
    let path = uri.path().replace("%2F", "/");
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let is_write = method != Method::GET;
    let answered = {
        let mut content = shared.content();
        let answered = match (path.strip_prefix("/api/v4/"), path.strip_prefix("/v1/")) {
            (Some(path), _) => content.gitlab(&method, path, &uri, &body),
            (_, Some(path)) => content.vault(&method, path, &body),
            _ => None,
        };
        if let (Some((_, Some(read))), false) = (&answered, is_write) {
            *content.reads.entry(read.clone()).or_default() += 1;
        }
        answered
    };
    if is_write && answered.is_some() {
        shared.writes.send_modify(|writes| *writes += 1);
    }
    let Some((body, _)) = answered else {
        let body = json!({ "message": "404 Not Found", "errors": [] });
        return (
            StatusCode::NOT_FOUND,
            [(header::CONTENT_TYPE, "application/json")],
            body.to_string(),
        )
            .into_response();
    };
    let status = match method {
        Method::DELETE => StatusCode::NO_CONTENT,
        Method::POST => StatusCode::CREATED,
        _ => StatusCode::OK,
    };
    let headers = [(header::CONTENT_TYPE, "application/json")];
    (status, headers, body.to_string()).into_response()
}

/// A body, and which sub-resource was read.
type Answered = Option<(Value, Option<String>)>;

impl Content {
    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    fn gitlab(&mut self, method: &Method, path: &str, uri: &Uri, body: &Value) -> Answered {
        let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
        if let Some(group) = path.strip_prefix("namespaces/") {
            return Some((json!({ "id": self.groups.get(group)?, "full_path": group }), None));
        }
        if path == "projects" {
            let group = body["namespace_id"].as_u64();
            let (group, _) = self.groups.iter().find(|(_, id)| Some(**id) == group)?;
            let path = format!("{group}/{}", text("path"));
            let at = self.projects.len();
            self.by_path.insert(path.clone(), at);
            self.projects.push(Project {
                path,
                description: body["description"].clone(),
                ..Project::default()
            });
            return Some((self.projects.get(at)?.show(at), None));
        }
        let rest = path.strip_prefix("projects/")?;
        let (at, rest) = match rest.split_once('/') {
            Some((id, rest)) if id.bytes().all(|byte| byte.is_ascii_digit()) => (id.parse().ok()?, rest),
            _ if rest.bytes().all(|byte| byte.is_ascii_digit()) => (rest.parse().ok()?, ""),
            _ => (*self.by_path.get(rest)?, ""),
        };
        let id = self.next_id();
        let project = self.projects.get_mut(at)?;
        let read = |what: &str| Some(format!("{what} of {}", project.path));
        let (kind, name) = rest.split_once('/').unwrap_or((rest, ""));
        Some(match (method, kind, name) {
            (&Method::GET, "", _) => (project.show(at), read("project")),
            (&Method::PUT, "", _) => {
                project.description = body["description"].clone();
                (project.show(at), None)
            }
            (&Method::GET, "deploy_keys", _) => (json!(project.keys), read("keys")),
            (&Method::POST, "deploy_keys", _) => {
                project.keys.push(with_id(body, id));
                (with_id(body, id), None)
            }
            (&Method::GET, "access_tokens", _) => (json!(project.tokens), read("tokens")),
            (&Method::POST, "access_tokens", _) => {
                let mut token = with_id(body, id);
                token["active"] = json!(true);
                project.tokens.push(token.clone());
                token["token"] = json!(format!("glpat-{id}"));
                (token, None)
            }
            (&Method::GET, "variables", _) => (
                json!(project.variables.values().collect::<Vec<_>>()),
                read("variables"),
            ),
            (&Method::POST, "variables", _) => {
                project
                    .variables
                    .insert(text("key"), variable(body, &text("key")));
                (json!({}), None)
            }
            (&Method::PUT, "variables", name) => {
                let present = project.variables.get_mut(name)?;
                *present = variable(body, name);
                (json!({}), None)
            }
            (&Method::DELETE, "variables", name) => {
                project.variables.remove(name)?;
                (json!({}), None)
            }
            (&Method::GET, "repository", "tree") => {
                let size = number(uri, "per_page").unwrap_or(20);
                let skip = number(uri, "page").unwrap_or(1).saturating_sub(1) * size;
                let files = project.files.iter().skip(skip).take(size);
                let entries = files
                    .map(|(path, id)| json!({ "type": "blob", "path": path, "id": format!("{id:040x}") }));
                (entries.collect(), read("tree"))
            }
            (&Method::GET, "repository", file) => {
                let id = project.files.get(file.strip_prefix("files/")?)?;
                let shown = json!({ "blob_id": format!("{id:040x}"), "last_commit_id": id.to_string() });
                (shown, read(file))
            }
            (&Method::POST, "repository", "commits") => {
                for action in body["actions"].as_array().into_iter().flatten() {
                    let path = action["file_path"].as_str().unwrap_or_default();
                    match action["action"].as_str() {
                        Some("delete") => project.files.remove(path),
                        _ => project.files.insert(path.to_owned(), id),
                    };
                }
                (json!({ "id": id.to_string() }), None)
            }
            _ => return None,
        })
    }

    fn vault(&mut self, method: &Method, path: &str, body: &Value) -> Answered {
        if path.starts_with("auth/") {
            return Some((json!({ "data": { "ttl": 0, "renewable": false } }), None));
        }
        let path = path.strip_prefix("kv/data/")?;
        if method == Method::GET {
            let (version, data) = self.secrets.get(path)?;
            let shown = json!({ "data": { "data": data, "metadata": { "version": version } } });
            return Some((shown, Some(format!("secret {path}"))));
        }
        let secret = self.secrets.entry(path.to_owned()).or_default();
        *secret = (secret.0 + 1, body["data"].clone());
        Some((json!({ "data": { "version": secret.0 } }), None))
    }
}

impl Project {
    fn show(&self, at: usize) -> Value {
        json!({
            "id": at, "path_with_namespace": self.path, "description": self.description, "archived": false,
            "default_branch": "main", "empty_repo": self.files.is_empty(),
        })
    }
}

fn with_id(body: &Value, id: u64) -> Value {
    let mut shown = body.clone();
    shown["id"] = json!(id);
    shown
}

fn variable(body: &Value, key: &str) -> Value {
    let mut shown = json!({
        "environment_scope": "*", "masked": false, "protected": false, "raw": false, "description": null,
    });
    for (name, value) in body.as_object().into_iter().flatten() {
        shown[name] = value.clone();
    }
    shown["key"] = json!(key);
    shown
}

fn number(uri: &Uri, name: &str) -> Option<usize> {
    let pairs = uri.query()?.split('&');
    let found = pairs
        .filter_map(|pair| pair.split_once('='))
        .find(|(key, _)| *key == name);
    found?.1.parse().ok()
}
