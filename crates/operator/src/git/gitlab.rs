//! GitLab, by version 4 of its REST interface.

mod files;
mod wire;

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use evenkeel_core::Sensitive;
use jiff::civil::Date;
use reqwest::{Method, StatusCode, Url};
use serde_json::{Value, json};

use super::rest::{Request, Rest};
use super::{
    BlobDigest, BranchName, CommitNote, FileAction, FilePath, GitHost, NewToken, PresentKey, PresentToken,
    Project, ProjectId, PublicKey, RepoPath, Variable, VariableSetting,
};
use crate::Error;
use crate::gate::Gate;
use crate::remote::{Reach, Remote};

/// How long one call may take.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// How many items are asked for at once; GitLab gives no more.
const PAGE_SIZE: usize = 100;

/// How many pages of one list are read.
const PAGES_MAX: usize = 400;

/// Variables of this scope are good for every environment; those of another are none of ours.
const EVERY_ENVIRONMENT: &str = "*";

/// The role that a token of a project gets: maintainer, which may push to protected branches.
const MAINTAINER: u64 = 40;

/// What it says of a place that is not free.
const TAKEN: [&str; 2] = ["has already been taken", "already exists"];

/// Which GitLab, and whose token.
#[derive(Clone, Debug)]
pub struct GitLabSettings {
    /// Its address: `https://git.example.org`. What follows the host is kept, for servers that live below a path.
    pub address: Url,
    /// A token with the scope `api` of somebody who maintains the groups.
    pub token: Sensitive<String>,
    /// A certificate authority to trust beside the machine's, in PEM.
    pub authority: Option<Vec<u8>>,
    /// The branch that the first commit of a repository makes.
    pub first_branch: BranchName,
}

/// A GitLab server.
#[derive(Clone, Debug)]
pub struct GitLab {
    rest: Rest,
    first_branch: BranchName,
}

impl GitLab {
    /// One of these settings. Nothing is asked of it yet.
    ///
    /// # Errors
    /// [`Error::Invalid`] when the settings cannot be used.
    pub fn new(settings: &GitLabSettings) -> Result<Self, Error> {
        let remote = Remote::new(&Reach {
            system: "GitLab",
            base: &settings.address,
            timeout: CALL_TIMEOUT,
            authority: settings.authority.as_deref(),
        })?;
        Ok(Self {
            rest: Rest {
                remote,
                version: "v4",
                credential: ("private-token", settings.token.clone()),
            },
            first_branch: settings.first_branch.clone(),
        })
    }

    /// Makes its calls through this gate.
    pub(crate) fn behind(mut self, gate: Gate) -> Self {
        self.rest.remote.behind(gate);
        self
    }

    /// All pages of a list; none if there is nothing of which to list anything.
    async fn list_if_any(
        &self,
        doing: &str,
        path: &[&str],
        query: &[(&str, &str)],
    ) -> Result<Option<Vec<Value>>, Error> {
        let mut items = Vec::new();
        let mut page = "1".to_owned();
        for _ in 0..PAGES_MAX {
            let mut request = Request::new(doing, Method::GET, path);
            request.query = vec![("page", page.clone()), ("per_page", PAGE_SIZE.to_string())];
            request
                .query
                .extend(query.iter().map(|(name, value)| (*name, (*value).to_owned())));
            let answer = self.rest.call(request).await?;
            if answer.status == StatusCode::NOT_FOUND {
                return Ok(None);
            }
            let next = answer.headers.get("x-next-page").cloned();
            let body = self.rest.successful(doing, answer)?;
            let found = body
                .as_array()
                .ok_or_else(|| self.rest.remote.not_understood(doing, "it holds no list"))?;
            items.extend_from_slice(found);
            // Empty on the last page.
            match next.as_ref().and_then(|next| next.to_str().ok()) {
                Some(next) if !next.is_empty() => next.clone_into(&mut page),
                _ => return Ok(Some(items)),
            }
        }
        Err(self
            .rest
            .remote
            .not_understood(doing, format!("the list has more than {PAGES_MAX} pages")))
    }

    /// All pages of a list.
    async fn list(&self, doing: &str, path: &[&str]) -> Result<Vec<Value>, Error> {
        let list = self.list_if_any(doing, path, &[]).await?;
        list.ok_or_else(|| Error::Refused {
            system: self.rest.remote.system(),
            doing: doing.to_owned(),
            status: StatusCode::NOT_FOUND.as_u16(),
            problem: "it is not there".to_owned(),
        })
    }

    async fn look(&self, doing: &str, id: &str) -> Result<Option<Project>, Error> {
        let answer = self
            .rest
            .call(Request::new(doing, Method::GET, &["projects", id]))
            .await?;
        // It leads to where the repository has been moved.
        if answer.status == StatusCode::NOT_FOUND || answer.status.is_redirection() {
            return Ok(None);
        }
        let body = self.rest.successful(doing, answer)?;
        if wire::is_going(&body) {
            return Ok(None);
        }
        self.understand(doing, wire::project(&body)).map(Some)
    }

    fn understand<T>(&self, doing: &str, read: Result<T, String>) -> Result<T, Error> {
        read.map_err(|problem| self.rest.remote.not_understood(doing, problem))
    }

    fn understand_all<T>(
        &self,
        doing: &str,
        items: &[Value],
        read: fn(&Value) -> Result<T, String>,
    ) -> Result<Vec<T>, Error> {
        items
            .iter()
            .map(|item| self.understand(doing, read(item)))
            .collect()
    }

    /// The number of a group or of somebody's own namespace.
    async fn namespace(&self, group: &str) -> Result<Option<u64>, Error> {
        let doing = format!("look for the group {group}");
        let answer = self
            .rest
            .call(Request::new(&doing, Method::GET, &["namespaces", group]))
            .await?;
        if answer.status == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        let body = self.rest.successful(&doing, answer)?;
        self.understand(&doing, wire::id(&body)).map(Some)
    }

    /// Changes where a project is, by one call. It tells the place that it is not free.
    async fn shift(
        &self,
        project: &Project,
        to: &RepoPath,
        below: &[&str],
        body: Value,
    ) -> Result<Project, Error> {
        let doing = project.moving_to(to);
        let id = project.id.0.to_string();
        let path = [&["projects", id.as_str()], below].concat();
        let answer = self
            .rest
            .call(Request::new(&doing, Method::PUT, &path).body(body))
            .await?;
        if answer.status == StatusCode::BAD_REQUEST && wire::says(&answer.body, &TAKEN) {
            return Err(self.rest.remote.refused(
                doing,
                answer.status,
                format!("another repository is at {to}"),
            ));
        }
        let body = self.rest.successful(&doing, answer)?;
        self.understand(&doing, wire::project(&body))
    }

    async fn edit(&self, doing: &str, project: &Project, body: Value) -> Result<(), Error> {
        let id = project.id.0.to_string();
        let request = Request::new(doing, Method::PUT, &["projects", &id]).body(body);
        self.rest.succeed(request).await.map(drop)
    }
}

#[async_trait]
impl GitHost for GitLab {
    fn kind(&self) -> &'static str {
        "gitlab"
    }

    async fn ensure_group(&self, group: &str) -> Result<(), Error> {
        let mut parent = None;
        let mut above = String::new();
        for name in group.split('/') {
            let path = if above.is_empty() {
                name.to_owned()
            } else {
                format!("{above}/{name}")
            };
            let id = match self.namespace(&path).await? {
                Some(id) => id,
                None => {
                    let doing = format!("create the group {path}");
                    let body =
                        json!({ "name": name, "path": name, "parent_id": parent, "visibility": "private" });
                    let request = Request::new(&doing, Method::POST, &["groups"]).body(body);
                    let made = self.rest.succeed(request).await?;
                    self.understand(&doing, wire::id(&made))?
                }
            };
            parent = Some(id);
            above = path;
        }
        Ok(())
    }

    async fn find(&self, path: &RepoPath) -> Result<Option<Project>, Error> {
        let doing = format!("look for the repository {path}");
        // Its path is one segment of ours, with the slashes escaped once.
        let found = self.look(&doing, &path.to_string()).await?;
        // An old path still finds a repository that has been moved.
        Ok(found.filter(|project| project.path.is_same_place(path)))
    }

    async fn get(&self, id: ProjectId) -> Result<Option<Project>, Error> {
        let doing = format!("look for the repository number {}", id.0);
        self.look(&doing, &id.0.to_string()).await
    }

    async fn create(&self, path: &RepoPath, description: &str) -> Result<Project, Error> {
        let doing = format!("create the repository {path}");
        let Some(namespace) = self.namespace(path.group()).await? else {
            let problem = format!("there is no such group: create {}", path.group());
            return Err(self.rest.remote.refused(doing, StatusCode::NOT_FOUND, problem));
        };
        let body = json!({
            "name": path.name(), "path": path.name(), "namespace_id": namespace, "description": description,
            "visibility": "private", "initialize_with_readme": false,
        });
        let answer = self
            .rest
            .call(Request::new(&doing, Method::POST, &["projects"]).body(body))
            .await?;
        if answer.status == StatusCode::BAD_REQUEST && wire::says(&answer.body, &TAKEN) {
            return Err(Error::Conflict { doing });
        }
        let body = self.rest.successful(&doing, answer)?;
        self.understand(&doing, wire::project(&body))
    }

    async fn rename(&self, project: &Project, name: &str) -> Result<Project, Error> {
        let to = RepoPath::new(project.path.group(), name)?;
        self.shift(project, &to, &[], json!({ "name": name, "path": name }))
            .await
    }

    async fn transfer(&self, project: &Project, group: &str) -> Result<Project, Error> {
        let to = RepoPath::new(group, project.path.name())?;
        let Some(namespace) = self.namespace(group).await? else {
            let problem = format!("there is no such group: create {group}");
            return Err(self
                .rest
                .remote
                .refused(project.moving_to(&to), StatusCode::NOT_FOUND, problem));
        };
        self.shift(project, &to, &["transfer"], json!({ "namespace": namespace }))
            .await
    }

    async fn describe(&self, project: &Project, description: &str) -> Result<(), Error> {
        let doing = format!("describe the repository {}", project.path);
        self.edit(&doing, project, json!({ "description": description }))
            .await
    }

    async fn set_archived(&self, project: &Project, archived: bool) -> Result<(), Error> {
        let (verb, path) = if archived {
            ("archive", "archive")
        } else {
            ("bring back", "unarchive")
        };
        let doing = format!("{verb} the repository {}", project.path);
        let id = project.id.0.to_string();
        let request = Request::new(&doing, Method::POST, &["projects", &id, path]);
        self.rest.succeed(request).await.map(drop)
    }

    async fn delete(&self, project: &Project) -> Result<(), Error> {
        let doing = format!("delete the repository {}", project.path);
        let id = project.id.0.to_string();
        let present = self
            .rest
            .call(Request::new(&doing, Method::GET, &["projects", &id]))
            .await?;
        if present.status == StatusCode::NOT_FOUND || wire::is_going(&present.body) {
            return Ok(());
        }
        self.rest.successful(&doing, present)?;
        self.rest
            .remove(Request::new(&doing, Method::DELETE, &["projects", &id]))
            .await
    }

    async fn deploy_keys(&self, project: &Project) -> Result<Vec<PresentKey>, Error> {
        let doing = format!("list the deploy keys of {}", project.path);
        let id = project.id.0.to_string();
        let keys = self.list(&doing, &["projects", &id, "deploy_keys"]).await?;
        self.understand_all(&doing, &keys, wire::key)
    }

    async fn add_deploy_key(
        &self,
        project: &Project,
        title: &str,
        key: &PublicKey,
        may_write: bool,
    ) -> Result<(), Error> {
        let doing = format!("add the deploy key {title} to {}", project.path);
        let id = project.id.0.to_string();
        let body = json!({ "title": title, "key": key.to_string(), "can_push": may_write });
        let request = Request::new(&doing, Method::POST, &["projects", &id, "deploy_keys"]).body(body);
        self.rest.succeed(request).await.map(drop)
    }

    async fn delete_deploy_key(&self, project: &Project, key: u64) -> Result<(), Error> {
        let doing = format!("delete the deploy key {key} of {}", project.path);
        let (id, key) = (project.id.0.to_string(), key.to_string());
        let path = ["projects", &id, "deploy_keys", &key];
        self.rest
            .remove(Request::new(&doing, Method::DELETE, &path))
            .await
    }

    async fn files(&self, project: &Project) -> Result<BTreeMap<FilePath, BlobDigest>, Error> {
        self.tree(project).await
    }

    async fn commit(
        &self,
        project: &Project,
        changes: &BTreeMap<FilePath, FileAction>,
        note: &CommitNote,
    ) -> Result<(), Error> {
        self.commit_all(project, changes, note).await
    }

    async fn variables(&self, project: &Project) -> Result<BTreeMap<String, Variable>, Error> {
        let doing = format!("list the variables of {}", project.path);
        let id = project.id.0.to_string();
        let variables = self.list(&doing, &["projects", &id, "variables"]).await?;
        let ours: Vec<Value> = variables
            .into_iter()
            .filter(|variable| {
                variable["environment_scope"]
                    .as_str()
                    .is_none_or(|scope| scope == EVERY_ENVIRONMENT)
            })
            .collect();
        let variables = self.understand_all(&doing, &ours, wire::variable)?;
        Ok(variables.into_iter().collect())
    }

    async fn set_variable(
        &self,
        project: &Project,
        name: &str,
        setting: &VariableSetting,
    ) -> Result<(), Error> {
        let doing = format!("set the variable {name} of {}", project.path);
        let id = project.id.0.to_string();
        let body = json!({
            "key": name, "value": setting.value.expose(), "masked": setting.is_masked,
            "protected": setting.options.is_protected, "raw": setting.options.is_raw,
            "description": setting.options.description, "environment_scope": EVERY_ENVIRONMENT,
        });
        let path = ["projects", &id, "variables", name];
        let mut change = Request::new(&doing, Method::PUT, &path).body(body.clone());
        change.query = scope();
        let answer = self.rest.call(change).await?;
        if answer.status == StatusCode::NOT_FOUND {
            let request = Request::new(&doing, Method::POST, &path[..3]).body(body);
            return self.rest.succeed(request).await.map(drop);
        }
        self.rest.successful(&doing, answer).map(drop)
    }

    async fn delete_variable(&self, project: &Project, name: &str, _: bool) -> Result<(), Error> {
        let doing = format!("delete the variable {name} of {}", project.path);
        let id = project.id.0.to_string();
        let path = ["projects", &id, "variables", name];
        let mut request = Request::new(&doing, Method::DELETE, &path);
        request.query = scope();
        self.rest.remove(request).await
    }

    async fn access_tokens(&self, project: &Project) -> Result<Vec<PresentToken>, Error> {
        let doing = format!("list the access tokens of {}", project.path);
        let id = project.id.0.to_string();
        let tokens = self.list(&doing, &["projects", &id, "access_tokens"]).await?;
        self.understand_all(&doing, &tokens, wire::token)
    }

    async fn create_access_token(
        &self,
        project: &Project,
        name: &str,
        expires_on: Date,
    ) -> Result<NewToken, Error> {
        let doing = format!("create the access token {name} of {}", project.path);
        let id = project.id.0.to_string();
        let body = json!({
            "name": name, "scopes": ["write_repository"], "access_level": MAINTAINER,
            "expires_at": expires_on.to_string(),
        });
        let request = Request::new(&doing, Method::POST, &["projects", &id, "access_tokens"]).body(body);
        let made = self.rest.succeed(request).await?;
        let made = wire::new_token(&made, expires_on);
        self.understand(&doing, made)
    }

    async fn revoke_access_token(&self, project: &Project, token: u64) -> Result<(), Error> {
        let doing = format!("revoke the access token {token} of {}", project.path);
        let (id, token) = (project.id.0.to_string(), token.to_string());
        let path = ["projects", &id, "access_tokens", &token];
        self.rest
            .remove(Request::new(&doing, Method::DELETE, &path))
            .await
    }
}

/// Which of several variables of one name is meant.
fn scope() -> Vec<(&'static str, String)> {
    vec![("filter[environment_scope]", EVERY_ENVIRONMENT.to_owned())]
}
