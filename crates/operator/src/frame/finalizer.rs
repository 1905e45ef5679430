//! Making an object ours before anything outside is touched, and letting go of it last (B36, OPR-05).

use evenkeel_steps::{Change, Failure};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt as _;
use serde_json::{Map, Value, json};

use super::access::{Access, Readable};
use super::{Identity, PROTECTION};

/// What an object lacks before its first external effect.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Claim {
    pub(crate) finalizers: Vec<&'static str>,
    pub(crate) protection: bool,
    pub(crate) owner: Option<OwnerReference>,
}

impl Claim {
    /// What is to be added; none when it has everything. An owner is appended to those that are there (B22), as their
    /// controller only if they have none.
    pub(crate) fn of<K: Readable>(
        object: &K,
        finalizers: &[&'static str],
        protect_by_default: bool,
        owner: Option<OwnerReference>,
    ) -> Option<Self> {
        let finalizers: Vec<&'static str> = finalizers
            .iter()
            .filter(|name| !object.finalizers().iter().any(|has| has == *name))
            .copied()
            .collect();
        let owners = object.owner_references();
        let owner = owner
            .filter(|owner| !owners.iter().any(|has| has.uid == owner.uid))
            .map(|mut owner| {
                if owners.iter().any(|has| has.controller == Some(true)) {
                    owner.controller = None;
                }
                owner
            });
        let claim = Self {
            finalizers,
            protection: protect_by_default && !object.annotations().contains_key(PROTECTION),
            owner,
        };
        let is_empty = claim.finalizers.is_empty() && !claim.protection && claim.owner.is_none();
        (!is_empty).then_some(claim)
    }

    /// The changes, as a plan shows them.
    pub(crate) fn changes(&self) -> Vec<Change> {
        let mut changes: Vec<Change> = self
            .finalizers
            .iter()
            .map(|name| Change::new("add", format!("the finalizer {name}")))
            .collect();
        if self.protection {
            changes.push(Change::new("add", format!("the annotation {PROTECTION}")));
        }
        if let Some(owner) = &self.owner {
            changes.push(Change::new(
                "add",
                format!("the owner {} {}", owner.kind, owner.name),
            ));
        }
        changes
    }
}

/// Adds finalizers, protection and owner. Refused as a conflict when somebody else wrote since the object was read: the lists are
/// replaced as a whole.
pub(crate) async fn claim<K: Readable>(access: &Access, object: &K, claim: Claim) -> Result<(), Failure> {
    let mut metadata = precondition(object);
    if !claim.finalizers.is_empty() {
        let present = object.finalizers().iter().map(String::as_str);
        let all: Vec<&str> = present.chain(claim.finalizers).collect();
        metadata.insert("finalizers".to_owned(), json!(all));
    }
    if claim.protection {
        metadata.insert("annotations".to_owned(), json!({ PROTECTION: "true" }));
    }
    if let Some(owner) = claim.owner {
        let mut owners = object.owner_references().to_vec();
        owners.push(owner);
        metadata.insert("ownerReferences".to_owned(), json!(owners));
    }
    write(access, object, metadata).await
}

/// Removes those of our finalizers that the object has. The object may be gone after that.
pub(crate) async fn release<K: Readable>(
    access: &Access,
    object: &K,
    ours: &[&str],
) -> Result<bool, Failure> {
    let kept: Vec<&String> = object
        .finalizers()
        .iter()
        .filter(|name| !ours.contains(&name.as_str()))
        .collect();
    if kept.len() == object.finalizers().len() {
        return Ok(false);
    }
    let mut metadata = precondition(object);
    metadata.insert("finalizers".to_owned(), json!(kept));
    write(access, object, metadata).await?;
    Ok(true)
}

fn precondition<K: Readable>(object: &K) -> Map<String, Value> {
    let mut metadata = Map::new();
    metadata.insert("uid".to_owned(), json!(object.uid()));
    metadata.insert("resourceVersion".to_owned(), json!(object.resource_version()));
    metadata
}

async fn write<K: Readable>(
    access: &Access,
    object: &K,
    metadata: Map<String, Value>,
) -> Result<(), Failure> {
    let identity = Identity::of(object);
    let fields = json!({ "metadata": metadata });
    access
        .merge::<K>(&identity.namespace, &identity.name, &fields)
        .await
        .map(drop)
}
