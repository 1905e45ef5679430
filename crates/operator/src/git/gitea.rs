//! Gitea, and Forgejo, which speaks the same.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
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
use crate::remote::{Answer, Reach, Remote};

/// How long one call may take.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a commit may take: the server writes file by file, some ten milliseconds each, and more when it is busy.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(300);

/// How many items are asked for at once. A server may give fewer; then the next page is asked for all the same.
const PAGE_SIZE: usize = 50;

/// How many pages of one list are read.
const PAGES_MAX: usize = 400;

/// Which Gitea, and whose token.
#[derive(Clone, Debug)]
pub struct GiteaSettings {
    /// Its address: `https://git.example.org`. What follows the host is kept, for servers that live below a path.
    pub address: Url,
    /// A token with the scopes `write:repository`, `read:organization`, `write:organization` and `read:user`.
    pub token: Sensitive<String>,
    /// A certificate authority to trust beside the machine's, in PEM.
    pub authority: Option<Vec<u8>>,
    /// The branch that the first commit of a repository makes.
    pub first_branch: BranchName,
}

/// A Gitea server.
#[derive(Clone, Debug)]
pub struct Gitea {
    rest: Rest,
    first_branch: BranchName,
}

impl Gitea {
    /// One of these settings. Nothing is asked of it yet.
    ///
    /// # Errors
    /// [`Error::Invalid`] when the settings cannot be used.
    pub fn new(settings: &GiteaSettings) -> Result<Self, Error> {
        let remote = Remote::new(&Reach {
            system: "Gitea",
            base: &settings.address,
            timeout: CALL_TIMEOUT,
            authority: settings.authority.as_deref(),
        })?;
        let authorization = Sensitive::new(format!("token {}", settings.token.expose()));
        Ok(Self {
            rest: Rest {
                remote,
                version: "v1",
                credential: ("authorization", authorization),
            },
            first_branch: settings.first_branch.clone(),
        })
    }

    /// Makes its calls through this gate.
    pub(crate) fn behind(mut self, gate: Gate) -> Self {
        self.rest.remote.behind(gate);
        self
    }

    /// All pages of a list, which lies in the answer or in its field `member`.
    async fn list(&self, doing: &str, path: &[&str], member: Option<&str>) -> Result<Vec<Value>, Error> {
        let mut items = Vec::new();
        for page in 1..=PAGES_MAX {
            let request = Request {
                query: vec![("page", page.to_string()), ("limit", PAGE_SIZE.to_string())],
                ..Request::new(doing, Method::GET, path)
            };
            let body = self.rest.succeed(request).await?;
            let list = member.map_or(&body, |member| &body[member]);
            // An empty list may be null.
            let found = match list {
                Value::Null => &Vec::new(),
                list => list
                    .as_array()
                    .ok_or_else(|| self.rest.remote.not_understood(doing, "it holds no list"))?,
            };
            if found.is_empty() {
                return Ok(items);
            }
            items.extend_from_slice(found);
        }
        Err(self
            .rest
            .remote
            .not_understood(doing, format!("the list has more than {PAGES_MAX} pages")))
    }

    async fn look(&self, doing: &str, path: &[&str]) -> Result<Option<Project>, Error> {
        let answer = self.rest.call(Request::new(doing, Method::GET, path)).await?;
        // It leads to where the repository has been moved.
        if answer.status == StatusCode::NOT_FOUND || answer.status.is_redirection() {
            return Ok(None);
        }
        let body = self.rest.successful(doing, answer)?;
        self.project(doing, &body).map(Some)
    }

    fn project(&self, doing: &str, body: &Value) -> Result<Project, Error> {
        let missing = |what: &str| {
            self.rest
                .remote
                .not_understood(doing, format!("it holds no {what}"))
        };
        let id = body["id"].as_u64().ok_or_else(|| missing("id"))?;
        let owner = body["owner"]["login"].as_str().ok_or_else(|| missing("owner"))?;
        let name = body["name"].as_str().ok_or_else(|| missing("name"))?;
        let is_empty = body["empty"].as_bool().unwrap_or_default();
        let branch = body["default_branch"]
            .as_str()
            .filter(|name| !name.is_empty() && !is_empty);
        Ok(Project {
            id: ProjectId(id),
            path: RepoPath::new(owner, name)?,
            description: body["description"].as_str().unwrap_or_default().to_owned(),
            is_archived: body["archived"].as_bool().unwrap_or_default(),
            default_branch: branch.map(str::to_owned),
        })
    }

    async fn edit(&self, doing: &str, project: &Project, body: Value) -> Result<(), Error> {
        let path = repository(project);
        let request = Request::new(doing, Method::PATCH, &path).body(body);
        self.rest.succeed(request).await.map(drop)
    }

    /// An answer that does not say that the place is taken.
    fn free(&self, doing: &str, place: &RepoPath, answer: Answer) -> Result<Answer, Error> {
        let text = answer.body["message"].as_str().unwrap_or_default();
        let is_taken = answer.status == StatusCode::CONFLICT
            || answer.status == StatusCode::UNPROCESSABLE_ENTITY && text.contains("exist");
        if is_taken {
            let problem = format!("another repository is at {place}");
            return Err(self.rest.remote.refused(doing.to_owned(), answer.status, problem));
        }
        Ok(answer)
    }

    /// Whose repositories a group has: an organisation's, or our own.
    async fn owner(&self, group: &str) -> Result<Option<Owner>, Error> {
        let doing = format!("look for the organisation {group}");
        let answer = self
            .rest
            .call(Request::new(&doing, Method::GET, &["orgs", group]))
            .await?;
        if answer.status.is_success() {
            return Ok(Some(Owner::Organisation));
        }
        if answer.status != StatusCode::NOT_FOUND {
            return Err(self.rest.remote.refusal(&doing, &answer));
        }
        let doing = "look who we are";
        let user = self
            .rest
            .succeed(Request::new(doing, Method::GET, &["user"]))
            .await?;
        let is_ours = user["login"]
            .as_str()
            .is_some_and(|login| login.eq_ignore_ascii_case(group));
        Ok(is_ours.then_some(Owner::Ourselves))
    }

    fn without_tokens(&self, doing: String) -> Error {
        Error::Unsupported {
            system: self.rest.remote.system(),
            doing,
            what: "tokens of single repositories: use a deploy key, or leave accessToken out",
        }
    }
}

/// Who has repositories.
enum Owner {
    Organisation,
    Ourselves,
}

#[async_trait]
impl GitHost for Gitea {
    fn kind(&self) -> &'static str {
        "gitea"
    }

    async fn ensure_group(&self, group: &str) -> Result<(), Error> {
        if self.owner(group).await?.is_some() {
            return Ok(());
        }
        let doing = format!("create the organisation {group}");
        let request = Request {
            body: Some(json!({ "username": group, "visibility": "private" })),
            ..Request::new(&doing, Method::POST, &["orgs"])
        };
        self.rest.succeed(request).await.map(drop)
    }

    async fn find(&self, path: &RepoPath) -> Result<Option<Project>, Error> {
        let doing = format!("look for the repository {path}");
        self.look(&doing, &["repos", path.group(), path.name()]).await
    }

    async fn get(&self, id: ProjectId) -> Result<Option<Project>, Error> {
        let doing = format!("look for the repository number {}", id.0);
        self.look(&doing, &["repositories", &id.0.to_string()]).await
    }

    async fn create(&self, path: &RepoPath, description: &str) -> Result<Project, Error> {
        let doing = format!("create the repository {path}");
        let collection = match self.owner(path.group()).await? {
            Some(Owner::Organisation) => vec!["orgs", path.group(), "repos"],
            Some(Owner::Ourselves) => vec!["user", "repos"],
            None => {
                let problem = format!("there is no such organisation: create {}", path.group());
                return Err(self.rest.remote.refused(doing, StatusCode::NOT_FOUND, problem));
            }
        };
        let request = Request {
            body: Some(json!({
                "name": path.name(), "description": description, "private": true, "auto_init": false,
                "default_branch": self.first_branch.as_str(),
            })),
            ..Request::new(&doing, Method::POST, &collection)
        };
        let answer = self.rest.call(request).await?;
        if answer.status == StatusCode::CONFLICT {
            return Err(Error::Conflict { doing });
        }
        let body = self.rest.successful(&doing, answer)?;
        self.project(&doing, &body)
    }

    async fn rename(&self, project: &Project, name: &str) -> Result<Project, Error> {
        let to = RepoPath::new(project.path.group(), name)?;
        let doing = project.moving_to(&to);
        let path = repository(project);
        let request = Request::new(&doing, Method::PATCH, &path).body(json!({ "name": name }));
        let answer = self.rest.call(request).await?;
        let body = self.rest.successful(&doing, self.free(&doing, &to, answer)?)?;
        self.project(&doing, &body)
    }

    async fn transfer(&self, project: &Project, group: &str) -> Result<Project, Error> {
        let to = RepoPath::new(group, project.path.name())?;
        let doing = project.moving_to(&to);
        if self.owner(group).await?.is_none() {
            let problem = format!("there is no such organisation: create {group}");
            return Err(self.rest.remote.refused(doing, StatusCode::NOT_FOUND, problem));
        }
        let path = [&repository(project)[..], &["transfer"]].concat();
        let request = Request::new(&doing, Method::POST, &path).body(json!({ "new_owner": group }));
        let answer = self.rest.call(request).await?;
        self.rest.successful(&doing, self.free(&doing, &to, answer)?)?;
        // Who may not write there has only asked for it: then it is where it was.
        match self.get(project.id).await? {
            Some(moved) if moved.path.group().eq_ignore_ascii_case(group) => Ok(moved),
            _ => Err(Error::Forbidden {
                system: self.rest.remote.system(),
                doing,
                problem: format!("somebody who may write to {group} has to accept it there"),
            }),
        }
    }

    async fn describe(&self, project: &Project, description: &str) -> Result<(), Error> {
        let doing = format!("describe the repository {}", project.path);
        self.edit(&doing, project, json!({ "description": description }))
            .await
    }

    async fn set_archived(&self, project: &Project, archived: bool) -> Result<(), Error> {
        let verb = if archived { "archive" } else { "bring back" };
        let doing = format!("{verb} the repository {}", project.path);
        self.edit(&doing, project, json!({ "archived": archived })).await
    }

    async fn delete(&self, project: &Project) -> Result<(), Error> {
        let doing = format!("delete the repository {}", project.path);
        self.rest
            .remove(Request::new(&doing, Method::DELETE, &repository(project)))
            .await
    }

    async fn deploy_keys(&self, project: &Project) -> Result<Vec<PresentKey>, Error> {
        let doing = format!("list the deploy keys of {}", project.path);
        let path = [&repository(project)[..], &["keys"]].concat();
        let keys = self.list(&doing, &path, None).await?;
        keys.iter()
            .map(|key| {
                let text = key["key"].as_str().unwrap_or_default();
                Ok(PresentKey {
                    id: key["id"]
                        .as_u64()
                        .ok_or_else(|| self.rest.remote.not_understood(&doing, "a key has no id"))?,
                    title: key["title"].as_str().unwrap_or_default().to_owned(),
                    key: PublicKey::parse(text)
                        .map_err(|error| self.rest.remote.not_understood(&doing, error.to_string()))?,
                    may_write: !key["read_only"].as_bool().unwrap_or(true),
                })
            })
            .collect()
    }

    async fn add_deploy_key(
        &self,
        project: &Project,
        title: &str,
        key: &PublicKey,
        may_write: bool,
    ) -> Result<(), Error> {
        let doing = format!("add the deploy key {title} to {}", project.path);
        let path = [&repository(project)[..], &["keys"]].concat();
        let request = Request {
            body: Some(json!({ "title": title, "key": key.to_string(), "read_only": !may_write })),
            ..Request::new(&doing, Method::POST, &path)
        };
        self.rest.succeed(request).await.map(drop)
    }

    async fn delete_deploy_key(&self, project: &Project, id: u64) -> Result<(), Error> {
        let doing = format!("delete the deploy key {id} of {}", project.path);
        let id = id.to_string();
        let path = [&repository(project)[..], &["keys", &id]].concat();
        self.rest
            .remove(Request::new(&doing, Method::DELETE, &path))
            .await
    }

    async fn files(&self, project: &Project) -> Result<BTreeMap<FilePath, BlobDigest>, Error> {
        let Some(branch) = &project.default_branch else {
            return Ok(BTreeMap::new());
        };
        let doing = format!("list the files of {}", project.path);
        let path = [&repository(project)[..], &["git", "trees", branch]].concat();
        let mut files = BTreeMap::new();
        for page in 1..=PAGES_MAX {
            let request = Request {
                query: vec![("recursive", "true".to_owned()), ("page", page.to_string())],
                ..Request::new(&doing, Method::GET, &path)
            };
            let body = self.rest.succeed(request).await?;
            for entry in body["tree"].as_array().into_iter().flatten() {
                if entry["type"] == "blob"
                    && let (Some(path), Some(digest)) = (entry["path"].as_str(), entry["sha"].as_str())
                {
                    // A name that we would not give is none of ours.
                    if let Ok(path) = FilePath::new(path) {
                        files.insert(path, BlobDigest::from_hexadecimal(digest));
                    }
                }
            }
            if !body["truncated"].as_bool().unwrap_or_default() {
                return Ok(files);
            }
        }
        Err(self
            .rest
            .remote
            .not_understood(&doing, format!("the list has more than {PAGES_MAX} pages")))
    }

    async fn commit(
        &self,
        project: &Project,
        changes: &BTreeMap<FilePath, FileAction>,
        note: &CommitNote,
    ) -> Result<(), Error> {
        let doing = format!("commit {} files to {}", changes.len(), project.path);
        let files: Vec<Value> = changes
            .iter()
            .map(|(path, action)| match action {
                FileAction::Create { content } => {
                    json!({ "operation": "create", "path": path.as_str(), "content": STANDARD.encode(content) })
                }
                FileAction::Update { content, over } => json!({
                    "operation": "update", "path": path.as_str(), "content": STANDARD.encode(content),
                    "sha": over.as_str(),
                }),
                FileAction::Delete { over } => {
                    json!({ "operation": "delete", "path": path.as_str(), "sha": over.as_str() })
                }
            })
            .collect();
        let identity = json!({ "name": note.author, "email": note.email });
        let path = [&repository(project)[..], &["contents"]].concat();
        let request = Request {
            body: Some(json!({
                "branch": project.default_branch.as_deref().unwrap_or(self.first_branch.as_str()),
                "message": note.message, "author": identity, "committer": identity, "files": files,
            })),
            timeout: Some(COMMIT_TIMEOUT),
            ..Request::new(&doing, Method::POST, &path)
        };
        let answer = self.rest.call(request).await?;
        // Somebody changed, created or deleted one of them since we looked.
        let text = answer.body["message"].as_str().unwrap_or_default();
        let is_outdated = [
            "sha does not match",
            "already exists",
            "does not exist",
            "does not match",
        ]
        .iter()
        .any(|known| text.contains(known));
        if answer.status == StatusCode::CONFLICT
            || answer.status == StatusCode::UNPROCESSABLE_ENTITY && is_outdated
        {
            return Err(Error::Conflict { doing });
        }
        self.rest.successful(&doing, answer).map(drop)
    }

    async fn variables(&self, project: &Project) -> Result<BTreeMap<String, Variable>, Error> {
        let doing = format!("list the variables of {}", project.path);
        let mut variables = BTreeMap::new();
        let path = [&repository(project)[..], &["actions", "variables"]].concat();
        for variable in self.list(&doing, &path, None).await? {
            let value = variable["data"].as_str().unwrap_or_default().to_owned();
            if let Some(name) = variable["name"].as_str() {
                let value = Variable {
                    value: Some(Sensitive::new(value)),
                    is_masked: false,
                    options: None,
                };
                variables.insert(name.to_owned(), value);
            }
        }
        // What is masked is a secret here, and is never shown again.
        let path = [&repository(project)[..], &["actions", "secrets"]].concat();
        for secret in self.list(&doing, &path, None).await? {
            if let Some(name) = secret["name"].as_str() {
                let value = Variable {
                    value: None,
                    is_masked: true,
                    options: None,
                };
                variables.insert(name.to_owned(), value);
            }
        }
        Ok(variables)
    }

    async fn set_variable(
        &self,
        project: &Project,
        name: &str,
        setting: &VariableSetting,
    ) -> Result<(), Error> {
        let doing = format!("set the variable {name} of {}", project.path);
        let value = &setting.value;
        if setting.is_masked {
            let path = [&repository(project)[..], &["actions", "secrets", name]].concat();
            let request = Request {
                body: Some(json!({ "data": value.expose() })),
                ..Request::new(&doing, Method::PUT, &path)
            };
            return self.rest.succeed(request).await.map(drop);
        }
        let path = [&repository(project)[..], &["actions", "variables", name]].concat();
        let body = json!({ "value": value.expose() });
        let change = |method| Request {
            body: Some(body.clone()),
            ..Request::new(&doing, method, &path)
        };
        let answer = self.rest.call(change(Method::PUT)).await?;
        if answer.status == StatusCode::NOT_FOUND {
            return self.rest.succeed(change(Method::POST)).await.map(drop);
        }
        self.rest.successful(&doing, answer).map(drop)
    }

    async fn delete_variable(&self, project: &Project, name: &str, masked: bool) -> Result<(), Error> {
        let doing = format!("delete the variable {name} of {}", project.path);
        let collection = if masked { "secrets" } else { "variables" };
        let path = [&repository(project)[..], &["actions", collection, name]].concat();
        self.rest
            .remove(Request::new(&doing, Method::DELETE, &path))
            .await
    }

    async fn access_tokens(&self, project: &Project) -> Result<Vec<PresentToken>, Error> {
        Err(self.without_tokens(format!("list the access tokens of {}", project.path)))
    }

    async fn create_access_token(&self, project: &Project, name: &str, _: Date) -> Result<NewToken, Error> {
        Err(self.without_tokens(format!("create the access token {name} of {}", project.path)))
    }

    async fn revoke_access_token(&self, project: &Project, id: u64) -> Result<(), Error> {
        Err(self.without_tokens(format!("revoke the access token {id} of {}", project.path)))
    }
}

fn repository(project: &Project) -> [&str; 3] {
    ["repos", project.path.group(), project.path.name()]
}
