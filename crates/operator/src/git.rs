//! Where repositories live: a Git host with an interface for programs.

pub(crate) mod asked;
mod branch;
mod file;
mod gitea;
mod gitlab;
mod key;
mod path;
mod rest;
mod token;
mod variable;

use std::collections::BTreeMap;

use async_trait::async_trait;
use jiff::civil::Date;

pub use branch::BranchName;
pub use file::{BlobDigest, FileAction};
pub use gitea::{Gitea, GiteaSettings};
pub use gitlab::{GitLab, GitLabSettings};
pub use key::{PresentKey, PublicKey};
pub use path::{FilePath, RepoPath};
pub use token::{NewToken, PresentToken};
pub use variable::{Comparison, Variable, VariableOptions, VariableSetting};

use crate::Error;

/// The number that a host gives to a repository. It stays when the repository is renamed or moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProjectId(pub u64);

/// A repository as its host shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// Its number.
    pub id: ProjectId,
    /// Where it is now.
    pub path: RepoPath,
    /// What it is for, in a line.
    pub description: String,
    /// Whether it takes no changes.
    pub is_archived: bool,
    /// The branch that a clone gets. None as long as nothing was committed.
    pub default_branch: Option<String>,
}

impl Project {
    /// What is said of moving it.
    fn moving_to(&self, to: &RepoPath) -> String {
        format!("move the repository {} to {to}", self.path)
    }
}

/// What a commit says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitNote {
    /// Message.
    pub message: String,
    /// Name of the author.
    pub author: String,
    /// Address of the author.
    pub email: String,
}

/// A Git host, seen with one set of credentials.
///
/// Whatever lists, lists all, page by page. That something cannot be read is an error, never an absence. Deleting what is gone
/// succeeds; creating what is there is [`Error::Conflict`].
#[async_trait]
pub trait GitHost: Send + Sync + std::fmt::Debug {
    /// Its kind, as a status names it: `gitea`, `gitlab`.
    fn kind(&self) -> &'static str;

    /// Makes sure that a group exists, with all groups above it. Those that have to be made are private.
    ///
    /// # Errors
    /// [`Error::Forbidden`] when we may not make it.
    async fn ensure_group(&self, group: &str) -> Result<(), Error>;

    /// The repository at that path. One that was moved away is not there any more.
    ///
    /// # Errors
    /// When the host cannot say whether there is one.
    async fn find(&self, path: &RepoPath) -> Result<Option<Project>, Error>;

    /// The repository of that number, wherever it is now.
    ///
    /// # Errors
    /// As [`Self::find`].
    async fn get(&self, id: ProjectId) -> Result<Option<Project>, Error>;

    /// Creates a private repository without any commit. Its group has to exist.
    ///
    /// # Errors
    /// [`Error::Conflict`] when there is one, [`Error::Refused`] when there is no such group.
    async fn create(&self, path: &RepoPath, description: &str) -> Result<Project, Error>;

    /// Gives a repository another name in its group.
    ///
    /// # Errors
    /// [`Error::Refused`] when another one has it.
    async fn rename(&self, project: &Project, name: &str) -> Result<Project, Error>;

    /// Moves a repository to another group, which has to exist.
    ///
    /// # Errors
    /// [`Error::Refused`] when there is no such group, or another repository of its name in it; [`Error::Forbidden`] when we may
    /// not move it there.
    async fn transfer(&self, project: &Project, group: &str) -> Result<Project, Error>;

    /// Moves a repository to another place: name, group or both. After a fault it is called again with the repository as it is
    /// then, and goes on from there.
    ///
    /// # Errors
    /// As [`Self::rename`] and [`Self::transfer`].
    async fn relocate(&self, project: &Project, to: &RepoPath) -> Result<Project, Error> {
        let mut project = project.clone();
        let changes_both = project.path.name() != to.name() && project.path.group() != to.group();
        // On its way it is at a third place, which has to be free: there are two to choose from.
        let between = RepoPath::new(to.group(), project.path.name())?;
        if changes_both && self.find(&between).await?.is_some() {
            project = self.rename(&project, to.name()).await?;
        }
        if project.path.group() != to.group() {
            project = self.transfer(&project, to.group()).await?;
        }
        if project.path.name() != to.name() {
            project = self.rename(&project, to.name()).await?;
        }
        Ok(project)
    }

    /// Says what a repository is for.
    ///
    /// # Errors
    /// When it is gone or archived.
    async fn describe(&self, project: &Project, description: &str) -> Result<(), Error>;

    /// Makes a repository take no changes, or take them again.
    ///
    /// # Errors
    /// When it is gone.
    async fn set_archived(&self, project: &Project, archived: bool) -> Result<(), Error>;

    /// Deletes a repository with all that is in it.
    ///
    /// # Errors
    /// When the host refuses.
    async fn delete(&self, project: &Project) -> Result<(), Error>;

    /// The keys that may read or write a repository.
    ///
    /// # Errors
    /// When they cannot be listed.
    async fn deploy_keys(&self, project: &Project) -> Result<Vec<PresentKey>, Error>;

    /// Adds a key. One that is there cannot be changed: it is deleted and added.
    ///
    /// # Errors
    /// [`Error::Refused`] when it is no key, or the repository has it already.
    async fn add_deploy_key(
        &self,
        project: &Project,
        title: &str,
        key: &PublicKey,
        may_write: bool,
    ) -> Result<(), Error>;

    /// Takes a key away.
    ///
    /// # Errors
    /// When the host refuses.
    async fn delete_deploy_key(&self, project: &Project, id: u64) -> Result<(), Error>;

    /// All files on the default branch with the digest of their content, whatever folder they lie in.
    ///
    /// # Errors
    /// When they cannot be listed.
    async fn files(&self, project: &Project) -> Result<BTreeMap<FilePath, BlobDigest>, Error>;

    /// Makes one commit of all these changes on the default branch. The first commit makes that branch, called as the
    /// settings of the host say.
    ///
    /// # Errors
    /// When one of them cannot be made: then none is.
    async fn commit(
        &self,
        project: &Project,
        changes: &BTreeMap<FilePath, FileAction>,
        note: &CommitNote,
    ) -> Result<(), Error>;

    /// The variables of a repository's pipelines by name.
    ///
    /// # Errors
    /// When they cannot be listed.
    async fn variables(&self, project: &Project) -> Result<BTreeMap<String, Variable>, Error>;

    /// Creates a variable or changes it.
    ///
    /// # Errors
    /// When the host does not take name or value.
    async fn set_variable(
        &self,
        project: &Project,
        name: &str,
        setting: &VariableSetting,
    ) -> Result<(), Error>;

    /// Takes a variable away.
    ///
    /// # Errors
    /// When the host refuses.
    async fn delete_variable(&self, project: &Project, name: &str, masked: bool) -> Result<(), Error>;

    /// The tokens that are good for this repository alone, also those that are good no more.
    ///
    /// # Errors
    /// [`Error::Unsupported`] at a host that has no such tokens.
    async fn access_tokens(&self, project: &Project) -> Result<Vec<PresentToken>, Error>;

    /// Makes a token that may read and write this repository until that day. Tokens that it has already stay as they are, so
    /// that who still uses one is not cut off.
    ///
    /// # Errors
    /// As [`Self::access_tokens`], and when the host does not take name or day.
    async fn create_access_token(
        &self,
        project: &Project,
        name: &str,
        expires_on: Date,
    ) -> Result<NewToken, Error>;

    /// Takes a token away, for good.
    ///
    /// # Errors
    /// As [`Self::access_tokens`].
    async fn revoke_access_token(&self, project: &Project, id: u64) -> Result<(), Error>;
}
