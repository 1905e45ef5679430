//! Where repositories live: a Git host with an interface for programs.

mod file;
mod gitea;
mod key;
mod path;

use std::collections::BTreeMap;

use async_trait::async_trait;
use evenkeel_core::Sensitive;

pub use file::{BlobDigest, FileAction};
pub use gitea::{Gitea, GiteaSettings};
pub use key::{PresentKey, PublicKey};
pub use path::{FilePath, RepoPath};

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

/// A variable of a repository's pipelines.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    /// Its value; none where the host does not show what it keeps secret.
    pub value: Option<Sensitive<String>>,
    /// Whether the host hides it in logs.
    pub is_masked: bool,
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

    /// Makes one commit of all these changes on the default branch. The first commit makes that branch, called `main`.
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
        value: &Sensitive<String>,
        masked: bool,
    ) -> Result<(), Error>;

    /// Takes a variable away.
    ///
    /// # Errors
    /// When the host refuses.
    async fn delete_variable(&self, project: &Project, name: &str, masked: bool) -> Result<(), Error>;
}
