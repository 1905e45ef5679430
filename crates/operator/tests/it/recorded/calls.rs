//! The recorded calls at GitLab, carried out on a model: what they end in is what is compared.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// The number before the first that the recorded double gave.
const BEFORE_FIRST: u64 = 10;

/// The model. It numbers namespaces, projects, keys and tokens in one row, as the recorded double did: by these numbers later
/// calls name what earlier ones made.
pub(super) struct Calls {
    last: u64,
    groups: BTreeMap<String, u64>,
    projects: BTreeMap<u64, Project>,
}

#[derive(Default)]
struct Project {
    path: String,
    description: String,
    archived: bool,
    keys: BTreeMap<u64, Value>,
    files: Map<String, Value>,
    variables: Map<String, Value>,
    tokens: Vec<Value>,
}

impl Default for Calls {
    fn default() -> Self {
        Self {
            last: BEFORE_FIRST,
            groups: BTreeMap::new(),
            projects: BTreeMap::new(),
        }
    }
}

impl Calls {
    /// Carries out the calls of one step that succeeded.
    pub(super) fn replay(&mut self, text: &str) {
        for line in text.lines() {
            let mut parts = line.splitn(5, ' ');
            let mut part = || parts.next().unwrap();
            let (method, path, _, status, body) = (part(), part(), part(), part(), part());
            if status.starts_with('2') {
                let path = path.strip_prefix("/api/v4/").unwrap();
                let segments: Vec<&str> = path.split('/').collect();
                self.call(method, &segments, &serde_json::from_str(body).unwrap_or_default());
            }
        }
    }

    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn call(&mut self, method: &str, segments: &[&str], body: &Value) {
        match (method, segments) {
            ("GET", ["namespaces", path]) => {
                let path = path.replace("%2F", "/");
                if !self.groups.contains_key(&path) {
                    let id = self.next();
                    self.groups.insert(path, id);
                }
            }
            ("GET", _) => {}
            ("POST", ["projects"]) => {
                let group = self
                    .groups
                    .iter()
                    .find(|(_, id)| Some(**id) == body["namespace_id"].as_u64());
                let project = Project {
                    path: format!("{}/{}", group.unwrap().0, text(body, "path")),
                    description: text(body, "description"),
                    ..Project::default()
                };
                let id = self.next();
                self.projects.insert(id, project);
            }
            (_, ["projects", id, rest @ ..]) => {
                let number = if method == "POST" && matches!(rest, ["deploy_keys"] | ["access_tokens"]) {
                    self.next()
                } else {
                    0
                };
                let project = self.projects.get_mut(&id.parse().unwrap());
                project.unwrap().call(method, rest, body, number);
            }
            _ => panic!("{method} {segments:?} is not in the model"),
        }
    }

    /// All projects, as the double of the tests shows its own.
    pub(super) fn projects(&self) -> Value {
        let shown = self.projects.values();
        shown
            .map(|project| (project.path.clone(), project.show()))
            .collect()
    }
}

fn text(body: &Value, name: &str) -> String {
    body[name].as_str().unwrap().to_owned()
}

impl Project {
    fn call(&mut self, method: &str, rest: &[&str], body: &Value, number: u64) {
        match (method, rest) {
            ("PUT", []) => self.description = text(body, "description"),
            ("POST", ["archive"]) => self.archived = true,
            ("POST", ["deploy_keys"]) => {
                self.keys.insert(number, body.clone());
            }
            ("DELETE", ["deploy_keys", id]) => {
                self.keys.remove(&id.parse().unwrap()).unwrap();
            }
            ("POST", ["access_tokens"]) => self.tokens.push(body["name"].clone()),
            ("POST", ["variables"]) => self.set(&text(body, "key"), body),
            ("PUT", ["variables", name]) => self.set(name, body),
            ("POST", ["repository", "commits"]) => {
                for action in body["actions"].as_array().unwrap() {
                    let path = text(action, "file_path");
                    match action["action"].as_str().unwrap() {
                        "create" => self.files.insert(path, action["content"].clone()),
                        "delete" => self.files.remove(&path),
                        other => panic!("{other} is not in the model"),
                    };
                }
            }
            _ => panic!("{method} {rest:?} is not in the model"),
        }
    }

    fn set(&mut self, name: &str, body: &Value) {
        let mut options = body.clone();
        options.as_object_mut().unwrap().remove("key");
        self.variables.insert(name.to_owned(), options);
    }

    fn show(&self) -> Value {
        let keys = self.keys.values().map(|key| {
            let shown = json!({ "key": key["key"], "can_push": key["can_push"] });
            (text(key, "title"), shown)
        });
        json!({
            "description": self.description, "archived": self.archived, "keys": keys.collect::<Map<_, _>>(),
            "files": self.files, "variables": self.variables, "tokens": self.tokens,
        })
    }
}
