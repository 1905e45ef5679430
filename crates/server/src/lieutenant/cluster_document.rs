//! A cluster, as callers see it, and the object behind it.

use std::collections::BTreeMap;

use evenkeel_operator::resources::{
    BootstrapToken, Cluster, ClusterSpec, CompileMeta, ObjectName, PackageVersion,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::access::name_of;
use super::document::{Annotations, annotations, empty_is_none, text, write_annotations};
use super::failure::Failure;
use super::git::GitRepoDocument;
use super::names::Prefix;

/// How ids of clusters begin.
pub(super) const PREFIX: Prefix = Prefix("c-");

/// A cluster, as callers see it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct ClusterDocument {
    /// Name of the object.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "empty_is_none")]
    pub(super) id: Option<String>,
    /// The tenant it belongs to.
    #[serde(deserialize_with = "some_text")]
    pub(super) tenant: String,
    /// Annotations of the object.
    #[serde(skip_serializing_if = "Annotations::is_empty")]
    pub(super) annotations: Annotations,
    /// The last compilation of its catalog.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) compile_meta: Option<CompileMeta>,
    /// Name for people.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "empty_is_none")]
    pub(super) display_name: Option<String>,
    /// What its agent found out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) dynamic_facts: Option<BTreeMap<String, Value>>,
    /// What is known of it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) facts: BTreeMap<String, String>,
    /// Its catalog's repository.
    pub(super) git_repo: GitRepoDocument,
    /// Branch, tag or commit of the tenant's repository.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "empty_is_none")]
    pub(super) tenant_git_repo_revision: Option<String>,
    /// Branch, tag or commit of the global repository.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "empty_is_none")]
    pub(super) global_git_repo_revision: Option<String>,
    /// Where the manifest of its agent is had, while that can be had. Never written.
    #[serde(rename = "installURL", skip_serializing_if = "Option::is_none")]
    pub(super) install_url: Option<String>,
}

/// Absent, null and empty are all no tenant.
fn some_text<'de, D: serde::Deserializer<'de>>(input: D) -> Result<String, D::Error> {
    Ok(Option::deserialize(input)?.unwrap_or_default())
}

impl ClusterDocument {
    /// What callers see of `cluster`, but for the address of its manifest.
    pub(super) fn of(cluster: &Cluster) -> Self {
        let spec = &cluster.spec;
        let mut git_repo = GitRepoDocument::of(spec.git_repo_url.as_ref(), spec.git_repo_template.as_ref());
        git_repo.host_keys = text(&spec.git_host_keys);
        let status = cluster.status.as_ref();
        let facts = status
            .map(|status| &status.facts)
            .filter(|facts| !facts.is_empty());
        let tenant = spec.tenant_ref.as_ref();
        Self {
            id: Some(name_of(&cluster.metadata).to_owned()),
            tenant: tenant.map(|tenant| tenant.name.clone()).unwrap_or_default(),
            annotations: annotations(&cluster.metadata),
            compile_meta: Some(complete(
                status
                    .and_then(|status| status.compile_meta.clone())
                    .unwrap_or_default(),
            )),
            display_name: text(&spec.display_name),
            dynamic_facts: facts.map(|facts| {
                facts
                    .iter()
                    .map(|(name, fact)| (name.clone(), decoded(fact)))
                    .collect()
            }),
            facts: spec.facts.clone(),
            git_repo,
            tenant_git_repo_revision: text(&spec.tenant_git_repo_revision),
            global_git_repo_revision: text(&spec.global_git_repo_revision),
            install_url: None,
        }
    }

    /// A new object named `name`. What belongs to its status is in it too, and has to be written on its own.
    pub(super) fn create(&self, name: &str) -> Result<Cluster, Failure> {
        let mut cluster = Cluster::new(name, ClusterSpec::default());
        self.write(&Self::default(), &mut cluster)?;
        Ok(cluster)
    }

    /// Writes what differs from `old`. Absent dynamic facts and compile metadata stay as they are.
    pub(super) fn write(&self, old: &Self, cluster: &mut Cluster) -> Result<(), Failure> {
        if self.git_repo.revision.is_some() {
            return Err(Failure::Invalid(
                "request body has an error: Error at \"/gitRepo/revision\": a cluster's repository has none"
                    .to_owned(),
            ));
        }
        write_annotations(&self.annotations, &old.annotations, &mut cluster.metadata);
        let spec = &mut cluster.spec;
        if self.tenant != old.tenant {
            spec.tenant_ref = Some(ObjectName {
                name: self.tenant.clone(),
            });
        }
        self.git_repo
            .write(&old.git_repo, &mut spec.git_repo_url, &mut spec.git_repo_template)?;
        let write = |new: &Option<String>, old: &Option<String>, target: &mut Option<String>| {
            if new != old {
                target.clone_from(new);
            }
        };
        write(&self.display_name, &old.display_name, &mut spec.display_name);
        write(
            &self.git_repo.host_keys,
            &old.git_repo.host_keys,
            &mut spec.git_host_keys,
        );
        write(
            &self.tenant_git_repo_revision,
            &old.tenant_git_repo_revision,
            &mut spec.tenant_git_repo_revision,
        );
        write(
            &self.global_git_repo_revision,
            &old.global_git_repo_revision,
            &mut spec.global_git_repo_revision,
        );
        if self.facts != old.facts {
            spec.facts.clone_from(&self.facts);
        }
        self.write_status(old, cluster);
        Ok(())
    }

    fn write_status(&self, old: &Self, cluster: &mut Cluster) {
        let none = BTreeMap::new();
        let old_facts = old.dynamic_facts.as_ref().unwrap_or(&none);
        if let Some(wanted) = self.dynamic_facts.as_ref().filter(|wanted| *wanted != old_facts) {
            let facts = &mut cluster.status.get_or_insert_default().facts;
            facts.retain(|name, _| wanted.contains_key(name));
            for (name, fact) in wanted {
                // What stays keeps its spelling.
                if old_facts.get(name) != Some(fact) {
                    facts.insert(name.clone(), fact.to_string());
                }
            }
        }
        let old_meta = complete(old.compile_meta.clone().unwrap_or_default());
        let wanted = self.compile_meta.clone().map(complete);
        if let Some(wanted) = wanted.filter(|wanted| *wanted != old_meta) {
            cluster.status.get_or_insert_default().compile_meta = Some(wanted);
        }
    }
}

/// The value of a fact: JSON, or else the text itself.
fn decoded(fact: &str) -> Value {
    serde_json::from_str(fact).unwrap_or_else(|_| Value::String(fact.to_owned()))
}

/// Compile metadata as Lieutenant writes it: where the two repositories are not known, they are there and empty.
pub(super) fn complete(mut meta: CompileMeta) -> CompileMeta {
    let _: &mut PackageVersion = meta.global.get_or_insert_default();
    let _: &mut PackageVersion = meta.tenant.get_or_insert_default();
    meta
}

/// The token that installs the agent of `cluster`, if it can still be used at `now`. Its text may be in a Secret.
pub(super) fn usable_token(cluster: &Cluster, now: Timestamp) -> Option<&BootstrapToken> {
    let token = cluster.status.as_ref()?.bootstrap_token.as_ref()?;
    let is_usable = token.token_valid == Some(true) && token.valid_until.is_some_and(|until| now < until);
    is_usable.then_some(token)
}

/// The text of a token, if the status has it.
pub(super) fn text_of(token: &BootstrapToken) -> Option<&str> {
    let text = token.token.as_ref()?.expose();
    (!text.is_empty()).then_some(text)
}
