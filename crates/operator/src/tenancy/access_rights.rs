//! Service account, Role and RoleBinding of a tenant or a cluster: all of its own name (§3.2, §3.3).

use evenkeel_steps::{Decision, Failure, Permission};
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use crate::frame::{Access, Identity, Upkeep, child, permission};
use crate::resources::GROUP;

/// Kind of the Secrets in which Kubernetes puts tokens of service accounts.
const TOKEN_TYPE: &str = "kubernetes.io/service-account-token";

/// Annotation that says whose token such a Secret is for.
const ACCOUNT: &str = "kubernetes.io/service-account.name";

/// The objects as they are.
#[derive(Debug)]
pub(super) struct Rights {
    pub(super) account: Option<ServiceAccount>,
    pub(super) secret: Option<Secret>,
    pub(super) role: Option<Role>,
    pub(super) binding: Option<RoleBinding>,
    owner: OwnerReference,
    identity: Identity,
    /// Labels of what is made.
    labels: Value,
}

impl Rights {
    /// What gathering them asks for.
    pub(super) fn reads() -> Vec<Permission> {
        vec![
            permission::get::<ServiceAccount>(),
            permission::get::<Secret>(),
            permission::get::<Role>(),
            permission::get::<RoleBinding>(),
        ]
    }

    /// What is asked for to hear of their changes.
    pub(super) fn watches() -> Vec<Permission> {
        let watches = [
            permission::watch::<ServiceAccount>(),
            permission::watch::<Secret>(),
            permission::watch::<Role>(),
            permission::watch::<RoleBinding>(),
        ];
        watches.concat()
    }

    pub(super) async fn gather(
        access: &Access,
        identity: &Identity,
        owner: Option<OwnerReference>,
        labels: Value,
    ) -> Result<Self, Failure> {
        let (namespace, name) = (&identity.namespace, &identity.name);
        let (account, secret, role, binding) = tokio::try_join!(
            access.find(namespace, name),
            access.find(namespace, name),
            access.find(namespace, name),
            access.find(namespace, name),
        )?;
        Ok(Self {
            account,
            secret,
            role,
            binding,
            owner: owner.ok_or_else(|| Failure::bug("an object without a uid"))?,
            identity: identity.clone(),
            labels,
        })
    }

    fn metadata(&self, labelled: bool) -> Value {
        let mut metadata = json!({
            "name": self.identity.name, "namespace": self.identity.namespace, "ownerReferences": [self.owner],
        });
        if labelled && self.labels.is_object() {
            metadata["labels"] = self.labels.clone();
        }
        metadata
    }

    pub(super) fn keep_account(&self, access: &Access) -> Result<Decision<'static, ()>, Failure> {
        let wanted = json!({ "metadata": self.metadata(true) });
        child(
            access,
            self.account.as_ref(),
            &self.identity.uid,
            wanted,
            Upkeep::Kept,
        )
    }

    pub(super) fn keep_secret(&self, access: &Access) -> Result<Decision<'static, ()>, Failure> {
        let mut metadata = self.metadata(true);
        metadata["annotations"] = json!({ ACCOUNT: self.identity.name });
        let wanted = json!({ "metadata": metadata, "type": TOKEN_TYPE });
        child(
            access,
            self.secret.as_ref(),
            &self.identity.uid,
            wanted,
            Upkeep::Kept,
        )
    }

    pub(super) fn keep_role(
        &self,
        access: &Access,
        rules: &[Value],
    ) -> Result<Decision<'static, ()>, Failure> {
        let wanted = json!({ "metadata": self.metadata(false), "rules": rules });
        child(
            access,
            self.role.as_ref(),
            &self.identity.uid,
            wanted,
            Upkeep::Kept,
        )
    }

    pub(super) fn keep_binding(
        &self,
        access: &Access,
        upkeep: Upkeep,
    ) -> Result<Decision<'static, ()>, Failure> {
        let name = &self.identity.name;
        let wanted = json!({
            "metadata": self.metadata(true),
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name },
            "subjects": [{ "kind": "ServiceAccount", "name": name, "namespace": self.identity.namespace }],
        });
        child(access, self.binding.as_ref(), &self.identity.uid, wanted, upkeep)
    }

    /// The token of the service account, once Kubernetes has put one into its Secret.
    pub(super) fn token(&self) -> Option<String> {
        let secret = self.secret.as_ref()?;
        if secret.annotations().get(ACCOUNT) != Some(&self.identity.name) {
            return None;
        }
        let bytes = secret.data.as_ref()?.get("token")?;
        String::from_utf8(bytes.0.clone())
            .ok()
            .filter(|token| !token.is_empty())
    }
}

/// One rule about objects of ours by name. An empty list of names would mean all of them, so there is no rule then (A25).
pub(super) fn rule(resources: &[&str], names: &[String], verbs: &[&str]) -> Option<Value> {
    (!names.is_empty()).then(
        || json!({ "apiGroups": [GROUP], "resources": resources, "resourceNames": names, "verbs": verbs }),
    )
}
