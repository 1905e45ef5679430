//! A tenant, as callers see it, and the object behind it.

use evenkeel_operator::resources::{ApiSecretRef, RepoType, Tenant};
use serde::{Deserialize, Serialize};

use super::access::name_of;
use super::document::{Annotations, annotations, empty_is_none, text, write_annotations};
use super::failure::Failure;
use super::git::GitRepoDocument;
use super::names::Prefix;

/// A tenant, as callers see it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct TenantDocument {
    /// Name of the object.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "empty_is_none")]
    pub(super) id: Option<String>,
    /// Annotations of the object.
    #[serde(skip_serializing_if = "Annotations::is_empty")]
    pub(super) annotations: Annotations,
    /// Name for people.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "empty_is_none")]
    pub(super) display_name: Option<String>,
    /// Its repository.
    pub(super) git_repo: GitRepoDocument,
    /// Address of the global repository.
    #[serde(
        rename = "globalGitRepoURL",
        skip_serializing_if = "Option::is_none",
        deserialize_with = "empty_is_none"
    )]
    pub(super) global_git_repo_url: Option<String>,
    /// Branch, tag or commit of the global repository.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "empty_is_none")]
    pub(super) global_git_repo_revision: Option<String>,
}

impl TenantDocument {
    /// What callers see of `tenant`.
    pub(super) fn of(tenant: &Tenant) -> Self {
        let spec = &tenant.spec;
        let mut git_repo = GitRepoDocument::of(spec.git_repo_url.as_ref(), spec.git_repo_template.as_ref());
        git_repo.revision = text(&spec.git_repo_revision);
        // A tenant's repository has no agent.
        git_repo.deploy_key = None;
        Self {
            id: Some(name_of(&tenant.metadata).to_owned()),
            annotations: annotations(&tenant.metadata),
            display_name: text(&spec.display_name),
            git_repo,
            global_git_repo_url: text(&spec.global_git_repo_url),
            global_git_repo_revision: text(&spec.global_git_repo_revision),
        }
    }

    /// A new object named `name`.
    pub(super) fn create(&self, name: &str, api_secret: Option<&str>) -> Result<Tenant, Failure> {
        let mut tenant = Tenant::new(name, evenkeel_operator::resources::TenantSpec::default());
        self.check_repository()?;
        self.write(&Self::default(), &mut tenant)?;
        let template = tenant.spec.git_repo_template.as_mut();
        if let Some(template) = template.filter(|template| template.repo_type == Some(RepoType::Auto)) {
            template.api_secret_ref = api_secret.map(|name| ApiSecretRef {
                name: Some(name.to_owned()),
                namespace: None,
            });
        }
        Ok(tenant)
    }

    /// A tenant without a repository is none.
    pub(super) fn check_repository(&self) -> Result<(), Failure> {
        match self.git_repo.url {
            Some(_) => Ok(()),
            None => Err(Failure::Invalid("GitRepo URL is required".to_owned())),
        }
    }

    /// Writes what differs from `old`.
    pub(super) fn write(&self, old: &Self, tenant: &mut Tenant) -> Result<(), Failure> {
        if self.git_repo.deploy_key.is_some() || self.git_repo.host_keys.is_some() {
            return Err(Failure::Invalid(
                "request body has an error: Error at \"/gitRepo\": a tenant's repository takes url, type and revision; \
                 deployKey and hostKeys belong to clusters"
                    .to_owned(),
            ));
        }
        write_annotations(&self.annotations, &old.annotations, &mut tenant.metadata);
        let spec = &mut tenant.spec;
        self.git_repo
            .write(&old.git_repo, &mut spec.git_repo_url, &mut spec.git_repo_template)?;
        let write = |new: &Option<String>, old: &Option<String>, target: &mut Option<String>| {
            if new != old {
                target.clone_from(new);
            }
        };
        write(&self.display_name, &old.display_name, &mut spec.display_name);
        write(
            &self.git_repo.revision,
            &old.git_repo.revision,
            &mut spec.git_repo_revision,
        );
        write(
            &self.global_git_repo_url,
            &old.global_git_repo_url,
            &mut spec.global_git_repo_url,
        );
        write(
            &self.global_git_repo_revision,
            &old.global_git_repo_revision,
            &mut spec.global_git_repo_revision,
        );
        Ok(())
    }
}

/// How ids of tenants begin.
pub(super) const PREFIX: Prefix = Prefix("t-");
