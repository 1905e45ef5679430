//! Branches, files and commits.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use serde_json::{Map, Value, json};
use sha1::{Digest as _, Sha1};

use super::projects::Project;
use super::wire::{Asked, Reply};

/// A branch.
#[derive(Clone, Default)]
pub(super) struct Branch {
    files: BTreeMap<String, File>,
    commits: Vec<Value>,
}

#[derive(Clone)]
struct File {
    content: Vec<u8>,
    /// The last commit that touched it.
    commit: String,
}

impl File {
    fn digest(&self) -> String {
        hash(&[format!("blob {}\0", self.content.len()).as_bytes(), &self.content].concat())
    }
}

fn hash(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in Sha1::digest(bytes) {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

impl Project {
    pub(super) fn route_repository(&mut self, asked: &Asked, rest: &[&str]) -> Reply {
        match (&asked.method, rest) {
            (&Method::GET, ["tree"]) => self.tree(asked),
            (&Method::GET, ["files", path]) => self.file(asked, path),
            (&Method::GET, ["commits"]) => {
                let branch = self.branches.get(&self.default_branch);
                let mut commits = branch.map(|branch| branch.commits.clone()).unwrap_or_default();
                commits.reverse();
                Reply::page(asked, commits)
            }
            (&Method::POST, ["commits"]) => self.commit(asked),
            (&Method::POST, ["branches"]) => self.create_branch(asked),
            _ => Reply::not_found(""),
        }
    }

    fn referred(&self, asked: &Asked) -> Option<&Branch> {
        self.branches
            .get(asked.query.get("ref").unwrap_or(&self.default_branch))
    }

    fn tree(&self, asked: &Asked) -> Reply {
        let Some(branch) = self.referred(asked) else {
            return Reply::not_found("Tree");
        };
        let is_recursive = asked.query.get("recursive").is_some_and(|text| text == "true");
        let mut entries: BTreeMap<String, Value> = BTreeMap::new();
        for (path, file) in &branch.files {
            for (at, _) in path.match_indices('/') {
                let folder = &path[..at];
                let entry = json!({ "type": "tree", "path": folder, "id": hash(folder.as_bytes()) });
                entries.insert(folder.to_owned(), entry);
            }
            let entry = json!({ "type": "blob", "path": path, "id": file.digest(), "mode": "100644" });
            entries.insert(path.clone(), entry);
        }
        entries.retain(|path, _| is_recursive || !path.contains('/'));
        Reply::page(asked, entries.into_values().collect())
    }

    fn file(&self, asked: &Asked, path: &str) -> Reply {
        if !asked.query.contains_key("ref") {
            return Reply::new(
                http::StatusCode::BAD_REQUEST,
                json!({ "error": "ref is missing, ref is empty" }),
            );
        }
        let Some(branch) = self.referred(asked) else {
            return Reply::not_found("Commit");
        };
        match branch.files.get(path) {
            Some(file) => Reply::ok(json!({
                "file_path": path, "blob_id": file.digest(), "last_commit_id": file.commit,
                "encoding": "base64", "content": STANDARD.encode(&file.content),
            })),
            None => Reply::not_found("File"),
        }
    }

    fn create_branch(&mut self, asked: &Asked) -> Reply {
        let (Some(name), Some(from)) = (asked.text("branch"), asked.text("ref")) else {
            return Reply::refused("branch, ref is missing");
        };
        if self.branches.contains_key(name) {
            return Reply::refused("Branch already exists");
        }
        let Some(branch) = self.branches.get(from).cloned() else {
            return Reply::refused("Invalid reference name");
        };
        self.branches.insert(name.to_owned(), branch);
        Reply::created(json!({ "name": name }))
    }

    fn commit(&mut self, asked: &Asked) -> Reply {
        let (Some(name), Some(message)) = (asked.text("branch"), asked.text("commit_message")) else {
            return Reply::refused("branch, commit_message is missing");
        };
        let mut branch = match self.branches.get(name) {
            Some(branch) => branch.clone(),
            None if self.branches.is_empty() => Branch::default(),
            None => {
                return Reply::refused("You can only create or edit files when you are on a branch");
            }
        };
        self.commits += 1;
        let id = hash(self.commits.to_string().as_bytes());
        let actions = asked.body["actions"].as_array().cloned().unwrap_or_default();
        for action in &actions {
            if let Err(problem) = branch.apply(action, &id) {
                return Reply::refused(problem);
            }
        }
        let commit = json!({
            "id": id, "message": message, "author_name": asked.body["author_name"],
            "author_email": asked.body["author_email"],
        });
        branch.commits.push(commit.clone());
        if self.branches.is_empty() {
            name.clone_into(&mut self.default_branch);
        }
        self.branches.insert(name.to_owned(), branch);
        Reply::created(commit)
    }
}

impl Branch {
    /// Its files with their contents.
    pub(super) fn texts(&self) -> Map<String, Value> {
        let texts = self.files.iter();
        texts
            .map(|(path, file)| (path.clone(), String::from_utf8_lossy(&file.content).into()))
            .collect()
    }

    fn apply(&mut self, action: &Value, commit: &str) -> Result<(), String> {
        let path = action["file_path"].as_str().ok_or("file_path is missing")?;
        if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err("Path cannot include directory traversal".to_owned());
        }
        let present = self.files.get(path);
        if let (Some(present), Some(known)) = (present, action["last_commit_id"].as_str())
            && present.commit != known
        {
            return Err(format!(
                "The file has changed since you started editing it: {path}"
            ));
        }
        match (action["action"].as_str(), present) {
            (Some("create"), Some(_)) => return Err("A file with this name already exists".to_owned()),
            (Some("update" | "delete"), None) => {
                return Err("A file with this name doesn't exist".to_owned());
            }
            (Some("delete"), Some(_)) => {
                self.files.remove(path);
                return Ok(());
            }
            (Some("create" | "update"), _) => {}
            _ => return Err("actions[action] does not have a valid value".to_owned()),
        }
        let text = action["content"].as_str().unwrap_or_default();
        let content = match action["encoding"].as_str() {
            Some("base64") => STANDARD.decode(text).map_err(|error| error.to_string())?,
            _ => text.as_bytes().to_vec(),
        };
        let file = File {
            content,
            commit: commit.to_owned(),
        };
        self.files.insert(path.to_owned(), file);
        Ok(())
    }
}
