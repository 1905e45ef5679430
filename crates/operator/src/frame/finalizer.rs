//! Making an object ours before anything outside is touched, and letting go of it last (B36, OPR-05).

use evenkeel_steps::Failure;
use kube::ResourceExt as _;
use serde_json::{Map, Value, json};

use super::access::{Access, Readable};
use super::{FINALIZER, Identity, PROTECTION};

/// What an object lacks before its first external effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) finalizer: bool,
    pub(crate) protection: bool,
}

impl Claim {
    /// What is to be added; none when it has everything.
    pub(crate) fn of<K: Readable>(object: &K, protect_by_default: bool) -> Option<Self> {
        let claim = Self {
            finalizer: !has_finalizer(object),
            protection: protect_by_default && !object.annotations().contains_key(PROTECTION),
        };
        (claim.finalizer || claim.protection).then_some(claim)
    }
}

fn has_finalizer<K: Readable>(object: &K) -> bool {
    object.finalizers().iter().any(|name| name == FINALIZER)
}

/// Adds finalizer and protection. Refused as a conflict when somebody else wrote since the object was read: the list of
/// finalizers is replaced as a whole.
pub(crate) async fn claim<K: Readable>(access: &Access, object: &K, claim: Claim) -> Result<(), Failure> {
    let mut metadata = precondition(object);
    if claim.finalizer {
        let mut finalizers = object.finalizers().to_vec();
        finalizers.push(FINALIZER.to_owned());
        metadata.insert("finalizers".to_owned(), json!(finalizers));
    }
    if claim.protection {
        metadata.insert("annotations".to_owned(), json!({ PROTECTION: "true" }));
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
