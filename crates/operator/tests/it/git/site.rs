//! The Git hosts at which the suite runs.

use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once};

use evenkeel_core::Sensitive;
use evenkeel_operator::git::{
    BranchName, GitHost, GitLab, GitLabSettings, Gitea, GiteaSettings, Project, RepoPath,
};
use evenkeel_testkit::{GitLab as GitLabDouble, gitea};
use reqwest::Method;
use serde_json::{Value, json};

/// A Git host, seen as its administrator sees it.
pub(crate) enum Site {
    /// A real one, which all tests share.
    Gitea,
    /// A double, of this test alone, or a real one, which all tests share.
    GitLab(GitLabSite),
}

/// Which GitLab.
pub(crate) enum GitLabSite {
    Double(GitLabDouble),
    Real(RealGitLab),
}

/// A GitLab that somebody runs, as the environment names it.
#[derive(Clone)]
pub(crate) struct RealGitLab {
    url: String,
    token: String,
    /// The group in which groups are made, if not at the top.
    group: Option<String>,
}

impl RealGitLab {
    fn from_environment() -> Option<Self> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        static TOLD: Once = Once::new();
        let Some(url) = variable("EVENKEEL_GITLAB_URL") else {
            // Past the capture of the test harness: nobody is to believe that a real one was asked.
            TOLD.call_once(|| {
                let text =
                    "skipped: a real GitLab (EVENKEEL_GITLAB_URL is not set): the suite runs at the double\n";
                let _ = std::io::stderr().write_all(text.as_bytes());
            });
            return None;
        };
        let token =
            variable("EVENKEEL_GITLAB_TOKEN").expect("EVENKEEL_GITLAB_TOKEN, beside EVENKEEL_GITLAB_URL");
        Some(Self {
            url: url.trim_end_matches('/').to_owned(),
            token,
            group: variable("EVENKEEL_GITLAB_GROUP"),
        })
    }
}

/// Runs each of these tests at every host.
macro_rules! at_every_host {
    ($($name:ident),* $(,)?) => {
        mod at_gitea {
            $(#[tokio::test]
            async fn $name() {
                super::$name(&crate::git::Site::Gitea).await;
            })*
        }
        mod at_gitlab {
            $(#[tokio::test]
            async fn $name() {
                super::$name(&crate::git::Site::gitlab().await).await;
            })*
        }
    };
}
pub(crate) use at_every_host;

impl Site {
    /// A real GitLab if the environment names one, or else the double.
    pub(crate) async fn gitlab() -> Self {
        Self::GitLab(match RealGitLab::from_environment() {
            Some(real) => GitLabSite::Real(real),
            None => GitLabSite::Double(GitLabDouble::start().await),
        })
    }

    /// The double; at a real server, which cannot be asked for this, it is said that it was left out.
    pub(crate) fn double_or(&self, without: &str) -> Option<&GitLabDouble> {
        if let Self::GitLab(GitLabSite::Double(double)) = self {
            return Some(double);
        }
        let _ = std::io::stderr().write_all(format!("skipped at this server: {without}\n").as_bytes());
        None
    }

    /// More entries than the host lists on one page: Gitea lists 50, GitLab 100.
    pub(crate) fn more_than_a_page(&self) -> usize {
        match self {
            Self::Gitea => 60,
            Self::GitLab(_) => 120,
        }
    }

    pub(crate) fn url(&self) -> String {
        match self {
            Self::Gitea => gitea().url(),
            Self::GitLab(GitLabSite::Double(double)) => double.url(),
            Self::GitLab(GitLabSite::Real(real)) => real.url.clone(),
        }
    }

    pub(crate) fn token(&self) -> &str {
        match self {
            Self::Gitea => gitea().token(),
            Self::GitLab(GitLabSite::Double(double)) => double.token(),
            Self::GitLab(GitLabSite::Real(real)) => &real.token,
        }
    }

    pub(crate) fn host(&self) -> Arc<dyn GitHost> {
        self.host_at(&self.url(), self.token())
    }

    pub(crate) fn host_at(&self, address: &str, token: &str) -> Arc<dyn GitHost> {
        evenkeel_testkit::install_crypto_provider();
        self.host_with(address, token, &BranchName::default())
    }

    /// The host, when first commits are to make that branch.
    pub(crate) fn host_with(&self, address: &str, token: &str, branch: &BranchName) -> Arc<dyn GitHost> {
        let address = address.parse().unwrap();
        let token = Sensitive::new(token.to_owned());
        match self {
            Self::Gitea => Arc::new(
                Gitea::new(&GiteaSettings {
                    address,
                    token,
                    authority: None,
                    first_branch: branch.clone(),
                })
                .unwrap(),
            ),
            Self::GitLab(_) => Arc::new(
                GitLab::new(&GitLabSettings {
                    address,
                    token,
                    authority: None,
                    first_branch: branch.clone(),
                })
                .unwrap(),
            ),
        }
    }

    /// A group of its own, so that tests do not meet.
    pub(crate) async fn new_group(&self) -> String {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = match self {
            // It remembers the runs before.
            Self::GitLab(GitLabSite::Real(real)) => {
                let name = format!("evenkeel-{}-{number}", uuid::Uuid::new_v4().simple());
                real.group
                    .as_ref()
                    .map_or_else(|| name.clone(), |group| format!("{group}/{name}"))
            }
            Self::Gitea | Self::GitLab(GitLabSite::Double(_)) => format!("group-{number}"),
        };
        self.host().ensure_group(&name).await.unwrap();
        name
    }

    /// A new repository, as the host shows it.
    pub(crate) async fn new_project(&self) -> Project {
        let path = RepoPath::new(&self.new_group().await, "t-one").unwrap();
        self.host().create(&path, "One Corp.").await.unwrap()
    }

    /// Asks the host by its own interface, below the address of a repository.
    #[expect(
        clippy::disallowed_methods,
        reason = "calls of a test, to a server on loopback"
    )]
    pub(crate) async fn call(&self, method: Method, project: &Project, below: &str, body: Value) -> Value {
        evenkeel_testkit::install_crypto_provider();
        let (address, header, token) = match self {
            Self::Gitea => (
                format!("{}/api/v1/repos/{}{below}", self.url(), project.path),
                "authorization",
                format!("token {}", self.token()),
            ),
            Self::GitLab(_) => (
                format!("{}/api/v4/projects/{}{below}", self.url(), project.id.0),
                "private-token",
                self.token().to_owned(),
            ),
        };
        let mut request = reqwest::Client::new()
            .request(method, address)
            .header(header, token);
        if !body.is_null() {
            request = request.json(&body);
        }
        let answer = request.send().await.unwrap();
        let status = answer.status();
        let text = answer.text().await.unwrap();
        assert!(status.is_success(), "{status}: {text}");
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Gives a repository another name.
    pub(crate) async fn rename(&self, project: &Project, name: &str) {
        let (method, body) = match self {
            Self::Gitea => (Method::PATCH, json!({ "name": name })),
            Self::GitLab(_) => (Method::PUT, json!({ "name": name, "path": name })),
        };
        self.call(method, project, "", body).await;
    }

    /// Makes a branch of that name, and the default one of it.
    pub(crate) async fn use_branch(&self, project: &Project, name: &str) {
        let (below, branch, method) = match self {
            Self::Gitea => ("/branches", json!({ "new_branch_name": name }), Method::PATCH),
            Self::GitLab(_) => (
                "/repository/branches",
                json!({ "branch": name, "ref": project.default_branch.as_deref().unwrap_or("main") }),
                Method::PUT,
            ),
        };
        self.call(Method::POST, project, below, branch).await;
        self.call(method, project, "", json!({ "default_branch": name }))
            .await;
    }

    /// How many files lie at the root of a branch.
    pub(crate) async fn files_on(&self, project: &Project, branch: &str) -> usize {
        let below = match self {
            Self::Gitea => format!("/git/trees/{branch}"),
            Self::GitLab(_) => format!("/repository/tree?ref={branch}"),
        };
        let found = self.call(Method::GET, project, &below, Value::Null).await;
        let list = match self {
            Self::Gitea => &found["tree"],
            Self::GitLab(_) => &found,
        };
        list.as_array().unwrap().len()
    }

    /// Message, author's name and address of each commit on the default branch.
    pub(crate) async fn commits(&self, project: &Project) -> Vec<[String; 3]> {
        let below = match self {
            Self::Gitea => "/commits?limit=50",
            Self::GitLab(_) => "/repository/commits?per_page=50",
        };
        let found = self.call(Method::GET, project, below, Value::Null).await;
        let text = |value: &Value| value.as_str().unwrap().trim().to_owned();
        let read = |commit: &Value| match self {
            Self::Gitea => {
                let commit = &commit["commit"];
                let author = &commit["author"];
                [
                    text(&commit["message"]),
                    text(&author["name"]),
                    text(&author["email"]),
                ]
            }
            Self::GitLab(_) => [
                text(&commit["message"]),
                text(&commit["author_name"]),
                text(&commit["author_email"]),
            ],
        };
        found.as_array().unwrap().iter().map(read).collect()
    }
}
