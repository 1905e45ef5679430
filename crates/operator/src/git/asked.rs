//! A Git host whose callers say what they are about to ask of it (E2, E14).

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use evenkeel_steps::Permission;
use jiff::civil::Date;

use super::{
    BlobDigest, CommitNote, FileAction, FilePath, GitHost, NewToken, PresentKey, PresentToken, Project,
    ProjectId, PublicKey, RepoPath, Variable, VariableSetting,
};
use crate::Error;

/// How permissions call a Git host.
const GIT: &str = "git";

/// A host behind the question whether the step that calls it declared that.
#[derive(Debug)]
pub(crate) struct Asked(pub(crate) Arc<dyn GitHost>);

/// A permission to read at a Git host.
pub(crate) fn may_read(verb: &'static str, target: &'static str) -> Permission {
    Permission::read(GIT, verb, target)
}

/// A permission to change something at a Git host.
pub(crate) fn may_write(verb: &'static str, target: &'static str) -> Permission {
    Permission::write(GIT, verb, target)
}

/// Finding the repository, wherever it is.
pub(crate) fn may_find() -> Permission {
    may_read("find", REPOSITORIES)
}

/// What there is at a Git host.
pub(crate) const REPOSITORIES: &str = "repositories";
pub(crate) const DEPLOY_KEYS: &str = "deploy-keys";
pub(crate) const FILES: &str = "files";
pub(crate) const VARIABLES: &str = "variables";
pub(crate) const ACCESS_TOKENS: &str = "access-tokens";
const GROUPS: &str = "groups";

fn ask(verb: &str, target: &str) -> Result<(), Error> {
    evenkeel_steps::ask(GIT, verb, target).map_err(|failure| Error::Undeclared {
        problem: failure.message().to_owned(),
    })
}

#[async_trait]
impl GitHost for Asked {
    fn kind(&self) -> &'static str {
        self.0.kind()
    }

    async fn ensure_group(&self, group: &str) -> Result<(), Error> {
        ask("create", GROUPS)?;
        self.0.ensure_group(group).await
    }

    async fn find(&self, path: &RepoPath) -> Result<Option<Project>, Error> {
        ask("find", REPOSITORIES)?;
        self.0.find(path).await
    }

    async fn get(&self, id: ProjectId) -> Result<Option<Project>, Error> {
        ask("find", REPOSITORIES)?;
        self.0.get(id).await
    }

    async fn create(&self, path: &RepoPath, description: &str) -> Result<Project, Error> {
        ask("create", REPOSITORIES)?;
        self.0.create(path, description).await
    }

    async fn rename(&self, project: &Project, name: &str) -> Result<Project, Error> {
        ask("move", REPOSITORIES)?;
        self.0.rename(project, name).await
    }

    async fn transfer(&self, project: &Project, group: &str) -> Result<Project, Error> {
        ask("move", REPOSITORIES)?;
        self.0.transfer(project, group).await
    }

    async fn describe(&self, project: &Project, description: &str) -> Result<(), Error> {
        ask("describe", REPOSITORIES)?;
        self.0.describe(project, description).await
    }

    async fn set_archived(&self, project: &Project, archived: bool) -> Result<(), Error> {
        ask(if archived { "archive" } else { "unarchive" }, REPOSITORIES)?;
        self.0.set_archived(project, archived).await
    }

    async fn delete(&self, project: &Project) -> Result<(), Error> {
        ask("delete", REPOSITORIES)?;
        self.0.delete(project).await
    }

    async fn deploy_keys(&self, project: &Project) -> Result<Vec<PresentKey>, Error> {
        ask("list", DEPLOY_KEYS)?;
        self.0.deploy_keys(project).await
    }

    async fn add_deploy_key(
        &self,
        project: &Project,
        title: &str,
        key: &PublicKey,
        may_write: bool,
    ) -> Result<(), Error> {
        ask("add", DEPLOY_KEYS)?;
        self.0.add_deploy_key(project, title, key, may_write).await
    }

    async fn delete_deploy_key(&self, project: &Project, id: u64) -> Result<(), Error> {
        ask("delete", DEPLOY_KEYS)?;
        self.0.delete_deploy_key(project, id).await
    }

    async fn files(&self, project: &Project) -> Result<BTreeMap<FilePath, BlobDigest>, Error> {
        ask("list", FILES)?;
        self.0.files(project).await
    }

    async fn commit(
        &self,
        project: &Project,
        changes: &BTreeMap<FilePath, FileAction>,
        note: &CommitNote,
    ) -> Result<(), Error> {
        ask("commit", FILES)?;
        self.0.commit(project, changes, note).await
    }

    async fn variables(&self, project: &Project) -> Result<BTreeMap<String, Variable>, Error> {
        ask("list", VARIABLES)?;
        self.0.variables(project).await
    }

    async fn set_variable(
        &self,
        project: &Project,
        name: &str,
        setting: &VariableSetting,
    ) -> Result<(), Error> {
        ask("set", VARIABLES)?;
        self.0.set_variable(project, name, setting).await
    }

    async fn delete_variable(&self, project: &Project, name: &str, masked: bool) -> Result<(), Error> {
        ask("delete", VARIABLES)?;
        self.0.delete_variable(project, name, masked).await
    }

    async fn access_tokens(&self, project: &Project) -> Result<Vec<PresentToken>, Error> {
        ask("list", ACCESS_TOKENS)?;
        self.0.access_tokens(project).await
    }

    async fn create_access_token(
        &self,
        project: &Project,
        name: &str,
        expires_on: Date,
    ) -> Result<NewToken, Error> {
        ask("create", ACCESS_TOKENS)?;
        self.0.create_access_token(project, name, expires_on).await
    }

    async fn revoke_access_token(&self, project: &Project, id: u64) -> Result<(), Error> {
        ask("revoke", ACCESS_TOKENS)?;
        self.0.revoke_access_token(project, id).await
    }
}
