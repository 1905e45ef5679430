//! Files of a project.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{GitLab, wire};
use crate::Error;
use crate::git::rest::Request;
use crate::git::{BlobDigest, CommitNote, FileAction, FilePath, Project};

/// How long a commit may take.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(300);

/// What GitLab answers where a file is not as the commit expects it.
const OUTDATED: [&str; 3] = [
    "has changed since you started editing it",
    "with this name already exists",
    "with this name doesn't exist",
];

impl GitLab {
    pub(super) async fn tree(&self, project: &Project) -> Result<BTreeMap<FilePath, BlobDigest>, Error> {
        let mut files = BTreeMap::new();
        let Some(branch) = &project.default_branch else {
            return Ok(files);
        };
        let doing = format!("list the files of {}", project.path);
        let id = project.id.0.to_string();
        let path = ["projects", &id, "repository", "tree"];
        let query = [("recursive", "true"), ("ref", branch.as_str())];
        let entries = self.list_if_any(&doing, &path, &query).await?;
        let entries = entries.ok_or_else(|| Error::Refused {
            system: self.rest.remote.system(),
            doing: doing.clone(),
            status: StatusCode::NOT_FOUND.as_u16(),
            problem: format!("there is no repository with a branch {branch}"),
        })?;
        for entry in entries {
            if entry["type"] == "blob"
                && let (Some(path), Some(digest)) = (entry["path"].as_str(), entry["id"].as_str())
                // A name that we would not give is none of ours.
                && let Ok(path) = FilePath::new(path)
            {
                files.insert(path, BlobDigest::from_hexadecimal(digest));
            }
        }
        Ok(files)
    }

    pub(super) async fn commit_all(
        &self,
        project: &Project,
        changes: &BTreeMap<FilePath, FileAction>,
        note: &CommitNote,
    ) -> Result<(), Error> {
        let doing = format!("commit {} files to {}", changes.len(), project.path);
        let mut actions = Vec::with_capacity(changes.len());
        for (path, action) in changes {
            actions.push(self.action(project, &doing, path, action).await?);
        }
        let id = project.id.0.to_string();
        let mut request = Request::new(&doing, Method::POST, &["projects", &id, "repository", "commits"])
            .body(json!({
                "branch": project.default_branch.as_deref().unwrap_or(self.first_branch.as_str()),
                "commit_message": note.message, "author_name": note.author, "author_email": note.email,
                "actions": actions,
            }));
        request.timeout = Some(COMMIT_TIMEOUT);
        let answer = self.rest.call(request).await?;
        if answer.status == StatusCode::BAD_REQUEST && wire::says(&answer.body, &OUTDATED) {
            return Err(Error::Conflict { doing });
        }
        self.rest.successful(&doing, answer).map(drop)
    }

    async fn action(
        &self,
        project: &Project,
        doing: &str,
        path: &FilePath,
        action: &FileAction,
    ) -> Result<Value, Error> {
        let write = |verb: &str, content: &[u8]| {
            json!({
                "action": verb, "file_path": path.as_str(), "encoding": "base64",
                "content": STANDARD.encode(content),
            })
        };
        let (mut change, over) = match action {
            FileAction::Create { content } => return Ok(write("create", content)),
            FileAction::Update { content, over } => (write("update", content), over),
            FileAction::Delete { over } => (json!({ "action": "delete", "file_path": path.as_str() }), over),
        };
        // GitLab is sure of a file by the last commit that touched it, not by its content.
        change["last_commit_id"] = self.last_commit(project, doing, path, over).await?;
        Ok(change)
    }

    /// The commit that gave a file its present content, if that is still the one we know.
    async fn last_commit(
        &self,
        project: &Project,
        doing: &str,
        path: &FilePath,
        over: &BlobDigest,
    ) -> Result<Value, Error> {
        let conflict = || Error::Conflict {
            doing: doing.to_owned(),
        };
        let branch = project.default_branch.as_deref().ok_or_else(conflict)?;
        let look = format!("look at the file {path} of {}", project.path);
        let id = project.id.0.to_string();
        let mut request = Request::new(
            &look,
            Method::GET,
            &["projects", &id, "repository", "files", path.as_str()],
        );
        request.query = vec![("ref", branch.to_owned())];
        let answer = self.rest.call(request).await?;
        if answer.status == StatusCode::NOT_FOUND {
            return Err(conflict());
        }
        let file = self.rest.successful(&look, answer)?;
        if file["blob_id"].as_str() != Some(over.as_str()) {
            return Err(conflict());
        }
        Ok(file["last_commit_id"].clone())
    }
}
