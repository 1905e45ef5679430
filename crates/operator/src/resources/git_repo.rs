//! GitRepo, and the template of one that tenants and clusters carry.

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};

use super::condition::{Condition, by_type};
use super::look::Look;
use super::plan::PlanStatus;

/// Content of a template file that says: this file is to be removed.
pub const TOMBSTONE: &str = "{delete}";

/// What becomes of things outside the cluster when the object is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DeletionPolicy {
    /// They are deleted.
    Delete,
    /// They stay as they are.
    Retain,
    /// They are archived, where that is possible.
    Archive,
}

/// What becomes of things outside the cluster that exist when the object is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CreationPolicy {
    /// They are left alone, and the object says so.
    Create,
    /// They are taken over.
    Adopt,
}

/// Who looks after a repository.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RepoType {
    /// The operator.
    #[default]
    Auto,
    /// Somebody else: the operator does nothing outside the cluster.
    Unmanaged,
}

/// The name of another object in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = atomic_map)]
pub struct ObjectName {
    /// Name of the object. Empty is as good as no reference.
    #[serde(default)]
    pub name: String,
}

/// The Secret with what is needed to speak to a Git host: `endpoint`, `token`, and where wanted `hostKeys` and
/// `sshEndpoint`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = atomic_map)]
pub struct ApiSecretRef {
    /// Name of the Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its namespace, if not that of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// An SSH key that may read or write a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeployKey {
    /// Its algorithm, as in an `authorized_keys` file: `ssh-ed25519`.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The public key in base 64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Whether it may write. It may not where this is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_access: Option<bool>,
}

/// An SSH key that the operator makes and keeps in a Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeployKeyTemplate {
    /// Its algorithm: `ssh-ed25519`, also where this is absent, or `ssh-rsa`.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Whether it may write. It may not where this is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_access: Option<bool>,
}

/// A key that the operator made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeployKeyStatus {
    /// Its algorithm.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The public key in base 64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Whether it may write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_access: Option<bool>,
    /// The Secret that holds the pair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<ObjectName>,
}

/// Where an access token for the repository is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccessToken {
    /// Name of the Secret, which has the token under the key `token`. Without, there is no token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<String>,
}

/// A variable of the repository's pipelines. It is taken as it is: nothing in it is expanded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.valueFrom) || !has(self.value) || self.value == ''")
    .message("a variable has a value or says where its value comes from, not both"))]
pub struct EnvVar {
    /// Its name.
    pub name: String,
    /// Its value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Where its value comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_from: Option<EnvVarSource>,
    /// How GitLab treats it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gitlab_options: Option<GitLabOptions>,
}

/// Where the value of a variable comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvVarSource {
    /// A key of a Secret in the namespace of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_key_ref: Option<SecretKeyRef>,
}

/// A key of a Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = atomic_map)]
pub struct SecretKeyRef {
    /// Name of the Secret.
    #[serde(default)]
    pub name: String,
    /// Key in it.
    pub key: String,
    /// Whether Secret or key may be missing: the value is then empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optional: Option<bool>,
}

/// How GitLab treats a variable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitLabOptions {
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Only protected branches and tags see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protected: Option<bool>,
    /// It is hidden in the logs of jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub masked: Option<bool>,
    /// Nothing in it is expanded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<bool>,
}

/// What a Git repository is to be like.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitRepoTemplate {
    /// The Secret with what is needed to speak to the Git host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_secret_ref: Option<ApiSecretRef>,
    /// SSH keys that may read or write it, by title.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub deploy_keys: BTreeMap<String, DeployKey>,
    /// SSH keys that the operator makes, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub generated_deploy_keys: BTreeMap<String, DeployKeyTemplate>,
    /// Its group or organisation; parts of the path are separated by `/`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo_name: Option<String>,
    /// Who looks after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo_type: Option<RepoType>,
    /// Its description at the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// Files by path with their content. The content `{delete}` says that the file is to be removed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub template_files: BTreeMap<String, String>,
    /// What becomes of the repository when the object is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_policy: Option<DeletionPolicy>,
    /// What becomes of a repository that exists already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub creation_policy: Option<CreationPolicy>,
    /// Where an access token for it is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_token: Option<AccessToken>,
    /// Variables of its pipelines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ci_variables: Vec<EnvVar>,
}

/// What a Git repository is to be like, and whose it is.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "syn.tools",
    version = "v1alpha1",
    kind = "GitRepo",
    plural = "gitrepos",
    namespaced,
    status = "GitRepoStatus",
    derive = "PartialEq",
    doc = "A Git repository at a Git host.",
    printcolumn(name = "Display Name", type_ = "string", json_path = ".spec.displayName"),
    printcolumn(name = "Repo Name", type_ = "string", json_path = ".spec.repoName"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new(
        "(has(self.spec.repoType) && self.spec.repoType == 'unmanaged') \
         || (has(self.spec.repoName) && self.spec.repoName != '')"
    )
    .message("a repository that is not unmanaged needs a name")
    .field_path(".spec.repoName")
    .reason(Reason::FieldValueRequired)
)]
pub struct GitRepoSpec {
    /// The repository.
    #[serde(flatten)]
    pub template: GitRepoTemplate,
    /// The tenant it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_ref: Option<ObjectName>,
}

/// How a Git repository is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitRepoStatus {
    /// The generation of the object that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `creating`, `created` or `failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Kind of the Git host: `gitlab`, `gitea`, `github`.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Address to clone from, over SSH.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Keys of the Git host, as a `known_hosts` file has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_keys: Option<String>,
    /// The variables as they were last set, in JSON.
    #[serde(
        rename = "lastAppliedCIVariables",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub last_applied_ci_variables: Option<String>,
    /// The keys that the operator made, by title.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub generated_deploy_keys: BTreeMap<String, DeployKeyStatus>,
    /// What looks at other systems found, by their names: while nothing changes that they depend on, nobody looks again.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub looks: BTreeMap<String, Look>,
    /// What would be changed, while the object is only observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanStatus>,
    /// How it stands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = by_type)]
    pub conditions: Vec<Condition>,
}

/// Makes a reference one value for server-side apply: it is taken over as a whole, as that of Kubernetes' own kinds.
fn atomic_map(schema: &mut Schema) {
    schema.insert("x-kubernetes-map-type".to_owned(), "atomic".into());
}
