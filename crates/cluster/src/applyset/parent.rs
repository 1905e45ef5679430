//! The parent Secret: read, checked against its owner, written by compare-and-swap.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use evenkeel_core::{GroupKind, ObjectRef};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Owner;
use super::labels::{
    CLUSTER_PARENT, FLEET_LABEL, GROUP_KINDS, NAMESPACES, SET_ID, SYSTEM_NAMESPACE, TOOLING, TOOLING_VALUE,
    applyset_id, read_group_kinds, write_group_kinds,
};
use super::record::{Record, SECRET_MAX, SharedRecord, Stored, pack, unpack};
use crate::connection::Guard;
use crate::objects::{DeletePreconditions, Propagation, Selection, namespaces, secrets};
use crate::{Cluster, Error};

/// The key of the parent's data that holds the record.
const KEY: &str = "record";
/// The Secret type of parents.
const SECRET_TYPE: &str = "evenkeel.dev/applyset";

/// A parent as last read or written.
#[derive(Clone, Debug)]
pub(crate) struct Parent<R> {
    /// Its Secret's name.
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) resource_version: String,
    /// The kinds it announces.
    pub(crate) group_kinds: BTreeSet<GroupKind>,
    pub(crate) record: R,
    /// What others have put on it stays.
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
}

/// Every parent of ours in one cluster.
#[derive(Debug)]
pub(crate) struct Parents {
    pub(crate) shared: Option<Parent<SharedRecord>>,
    /// By Secret name. One that cannot be read or is another's is an error of its component alone.
    pub(crate) components: BTreeMap<String, Result<Parent<Record>, Error>>,
}

#[derive(Deserialize)]
struct SecretBody {
    metadata: SecretMetadata,
    #[serde(default)]
    data: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SecretMetadata {
    name: String,
    #[serde(default)]
    uid: String,
    #[serde(default)]
    resource_version: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

/// How a parent's Secret is named in messages.
pub(crate) fn secret_ref(name: &str) -> ObjectRef {
    ObjectRef {
        group: String::new(),
        kind: "Secret".to_owned(),
        namespace: Some(SYSTEM_NAMESPACE.to_owned()),
        name: name.to_owned(),
    }
}

impl<R: Stored> Parent<R> {
    fn from_secret(secret: SecretBody, owner: &Owner, adopt: bool) -> Result<Self, Error> {
        let SecretBody { metadata, data } = secret;
        let parent = secret_ref(&metadata.name).to_string();
        let bad = |reason: String| Error::BadParent {
            parent: parent.clone(),
            reason,
        };
        if let Some(tooling) = metadata
            .annotations
            .get(TOOLING)
            .filter(|tooling| !tooling.starts_with("evenkeel/"))
        {
            return Err(bad(format!("it is managed by {tooling}")));
        }
        let packed = data
            .get(KEY)
            .ok_or_else(|| bad("it holds no record".to_owned()))?;
        let packed = STANDARD
            .decode(packed)
            .map_err(|_| bad("its record is no base64".to_owned()))?;
        let record: R = unpack(&packed).map_err(bad)?;
        if !adopt && !record.is_of(owner) {
            let (fleet, cluster) = record.owner();
            return Err(Error::OtherOwner {
                parent,
                fleet: fleet.to_owned(),
                cluster: cluster.to_owned(),
                expected: format!(
                    "fleet {:?}, cluster {:?}",
                    owner.fleet(),
                    owner.cluster().as_str()
                ),
            });
        }
        let group_kinds = metadata
            .annotations
            .get(GROUP_KINDS)
            .map(|text| read_group_kinds(text))
            .unwrap_or_default();
        Ok(Self {
            name: metadata.name,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            group_kinds,
            record,
            labels: metadata.labels,
            annotations: metadata.annotations,
        })
    }

    fn from_body(body: &[u8], owner: &Owner, adopt: bool) -> Result<Self, Error> {
        let secret =
            serde_json::from_slice(body).map_err(|error| Error::decode("read an ApplySet parent", &error))?;
        Self::from_secret(secret, owner, adopt)
    }

    fn secret(&self, owner: &Owner, record: &R, group_kinds: &BTreeSet<GroupKind>) -> Result<Value, Error> {
        let mut labels = self.labels.clone();
        labels.insert(SET_ID.to_owned(), applyset_id(&self.name));
        labels.insert(FLEET_LABEL.to_owned(), owner.fleet().to_owned());
        let mut annotations = self.annotations.clone();
        annotations.insert(TOOLING.to_owned(), TOOLING_VALUE.to_owned());
        annotations.insert(GROUP_KINDS.to_owned(), write_group_kinds(group_kinds));
        let others: BTreeSet<String> = record
            .namespaces()
            .into_iter()
            .filter(|namespace| namespace != SYSTEM_NAMESPACE)
            .collect();
        annotations.insert(
            NAMESPACES.to_owned(),
            others.into_iter().collect::<Vec<_>>().join(","),
        );
        let data = STANDARD.encode(pack(record)?);
        if data.len() > SECRET_MAX {
            let what = format!("the record of {}", self.name);
            return Err(Error::TooLarge {
                what,
                bytes: data.len(),
                limit: SECRET_MAX,
            });
        }
        let mut metadata = json!({
            "name": self.name, "namespace": SYSTEM_NAMESPACE, "labels": labels, "annotations": annotations,
        });
        if !self.resource_version.is_empty()
            && let Some(metadata) = metadata.as_object_mut()
        {
            metadata.insert("uid".to_owned(), json!(self.uid));
            metadata.insert("resourceVersion".to_owned(), json!(self.resource_version));
        }
        Ok(
            json!({"apiVersion": "v1", "kind": "Secret", "type": SECRET_TYPE, "metadata": metadata, "data": {KEY: data}}),
        )
    }
}

impl Cluster {
    /// Every parent in the cluster, in one LIST: another fleet's too, because they may stand where ours would.
    pub(crate) async fn parents(&self, owner: &Owner, adopt: bool) -> Result<Parents, Error> {
        let selection = Selection {
            namespace: Some(SYSTEM_NAMESPACE),
            labels: FLEET_LABEL,
            ..Selection::default()
        };
        let listed = self.list_full(&secrets(), selection).await?;
        let mut parents = Parents {
            shared: None,
            components: BTreeMap::new(),
        };
        for item in listed.items {
            let secret: SecretBody = serde_json::from_value(item)
                .map_err(|error| Error::decode("list ApplySet parents", &error))?;
            if secret.metadata.name == CLUSTER_PARENT {
                parents.shared = Some(Parent::from_secret(secret, owner, adopt)?);
            } else {
                let name = secret.metadata.name.clone();
                parents
                    .components
                    .insert(name, Parent::from_secret(secret, owner, adopt));
            }
        }
        Ok(parents)
    }

    /// One parent; none when it does not exist.
    pub(crate) async fn parent<R: Stored>(
        &self,
        name: &str,
        owner: &Owner,
        adopt: bool,
    ) -> Result<Option<Parent<R>>, Error> {
        match self.get_full(&secrets(), &secret_ref(name)).await? {
            Some(secret) => {
                let secret = serde_json::from_value(secret)
                    .map_err(|error| Error::decode("read an ApplySet parent", &error))?;
                Parent::from_secret(secret, owner, adopt).map(Some)
            }
            None => Ok(None),
        }
    }

    /// Makes a parent that must not exist; with it the namespace of the parents, when that is missing.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`] when somebody was faster.
    pub(crate) async fn create_parent<R: Stored>(
        &self,
        name: &str,
        owner: &Owner,
        record: R,
        group_kinds: &BTreeSet<GroupKind>,
        guard: Guard<'_>,
    ) -> Result<Parent<R>, Error> {
        let draft = Parent {
            name: name.to_owned(),
            uid: String::new(),
            resource_version: String::new(),
            group_kinds: group_kinds.clone(),
            record,
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
        };
        let secret = draft.secret(owner, &draft.record, group_kinds)?;
        let body = match self.create(&secrets(), &secret_ref(name), &secret, guard).await {
            Err(error) if error.is_not_found() => {
                self.create_system_namespace(guard).await?;
                self.create(&secrets(), &secret_ref(name), &secret, guard).await?
            }
            answer => answer?,
        };
        Parent::from_body(&body, owner, false)
    }

    pub(crate) async fn create_system_namespace(&self, guard: Guard<'_>) -> Result<(), Error> {
        let object = ObjectRef {
            group: String::new(),
            kind: "Namespace".to_owned(),
            namespace: None,
            name: SYSTEM_NAMESPACE.to_owned(),
        };
        let body = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": SYSTEM_NAMESPACE, "labels": {"app.kubernetes.io/managed-by": "evenkeel"}},
        });
        match self.create(&namespaces(), &object, &body, guard).await {
            Ok(_) | Err(Error::AlreadyExists { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Replaces a parent if nobody has since it was read.
    ///
    /// # Errors
    /// [`Error::Conflict`] when somebody has.
    pub(crate) async fn update_parent<R: Stored>(
        &self,
        parent: &Parent<R>,
        owner: &Owner,
        record: &R,
        group_kinds: &BTreeSet<GroupKind>,
        guard: Guard<'_>,
    ) -> Result<Parent<R>, Error> {
        let secret = parent.secret(owner, record, group_kinds)?;
        let body = self
            .replace(&secrets(), &secret_ref(&parent.name), &secret, guard)
            .await?;
        Parent::from_body(&body, owner, false)
    }

    /// Deletes a parent if nobody has written it since it was read.
    pub(crate) async fn delete_parent<R: Stored>(
        &self,
        parent: &Parent<R>,
        guard: Guard<'_>,
    ) -> Result<(), Error> {
        let preconditions = DeletePreconditions {
            uid: &parent.uid,
            resource_version: &parent.resource_version,
        };
        self.delete(
            &secrets(),
            &secret_ref(&parent.name),
            preconditions,
            Propagation::Background,
            guard,
        )
        .await
        .map(drop)
    }
}
