//! The parent Secret: read, checked against its owner, written by compare-and-swap.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use evenkeel_core::{GroupKind, ObjectRef};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Owner;
use super::labels::{
    CLUSTER_PARENT, FLEET_LABEL, GROUP_KINDS, NAMESPACES, RECORD_OF, SET_ID, SYSTEM_NAMESPACE, TOOLING,
    TOOLING_VALUE, applyset_id, read_group_kinds, write_group_kinds,
};
use super::record::{Record, SECRET_MAX, SharedRecord, Stored, unpack};
use super::shards::{self, Index, Packed, Shards};
use crate::connection::Guard;
use crate::objects::{DeletePreconditions, Propagation, Selection, namespaces, secrets};
use crate::{Cluster, Error};

/// The key of the parent's data that holds the record.
const KEY: &str = "record";
/// The key of the parent's data that names the Secrets which hold the objects of a large record.
const SHARDS_KEY: &str = "shards";
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
    /// The Secrets beside it that hold, or once held, parts of its record.
    pub(super) shards: Shards,
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
    /// Parts of records whose parent is gone.
    pub(crate) stray: Shards,
}

#[derive(Deserialize)]
pub(super) struct SecretBody {
    pub(super) metadata: SecretMetadata,
    #[serde(default)]
    pub(super) data: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SecretMetadata {
    pub(super) name: String,
    #[serde(default)]
    pub(super) uid: String,
    #[serde(default)]
    pub(super) resource_version: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

impl SecretBody {
    fn read(item: Value, doing: &str) -> Result<Self, Error> {
        serde_json::from_value(item).map_err(|error| Error::decode(doing, &error))
    }

    /// What the record's shards are, if it has some.
    fn index(&self) -> Result<Option<Index>, String> {
        let Some(text) = self.data.get(SHARDS_KEY) else {
            return Ok(None);
        };
        let json = STANDARD.decode(text).ok();
        let index = json.and_then(|json| serde_json::from_slice(&json).ok());
        index
            .map(Some)
            .ok_or_else(|| "it does not say where the parts of its record are".to_owned())
    }
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
    /// Reads a parent. `parts` are the shards that belong to it.
    fn from_secret(
        secret: SecretBody,
        parts: &[SecretBody],
        owner: &Owner,
        adopt: bool,
    ) -> Result<Self, Error> {
        let parent = secret_ref(&secret.metadata.name).to_string();
        let bad = |reason: String| Error::BadParent {
            parent: parent.clone(),
            reason,
        };
        let index = secret.index().map_err(bad)?;
        let SecretBody { metadata, data } = secret;
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
        let mut record: R = unpack(&packed).map_err(bad)?;
        if let Some(index) = &index
            && !shards::join(&mut record, &metadata.name, index, parts)
        {
            record.set_unfinished();
        }
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
        let shards = shards::known(index.as_ref(), parts);
        Ok(Self::of(metadata, record, shards))
    }

    /// A parent as the server answered to its being written with `record`.
    fn written(body: &[u8], record: R, shards: Shards) -> Result<Self, Error> {
        let secret: SecretBody =
            serde_json::from_slice(body).map_err(|error| Error::decode("read an ApplySet parent", &error))?;
        Ok(Self::of(secret.metadata, record, shards))
    }

    fn of(metadata: SecretMetadata, record: R, shards: Shards) -> Self {
        let group_kinds = metadata
            .annotations
            .get(GROUP_KINDS)
            .map(|text| read_group_kinds(text))
            .unwrap_or_default();
        Self {
            name: metadata.name,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            group_kinds,
            record,
            shards,
            labels: metadata.labels,
            annotations: metadata.annotations,
        }
    }

    fn secret(
        &self,
        owner: &Owner,
        record: &R,
        packed: &Packed,
        group_kinds: &BTreeSet<GroupKind>,
    ) -> Result<Value, Error> {
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
        if packed.head.len() > SECRET_MAX {
            let what = format!("the record of {}", self.name);
            return Err(Error::TooLarge {
                what,
                bytes: packed.head.len(),
                limit: SECRET_MAX,
            });
        }
        let mut data = json!({KEY: packed.head});
        if let Some(index) = packed.index() {
            let index = serde_json::to_vec(&index)
                .map_err(|error| Error::Bug(format!("an index of shards cannot be written: {error}")))?;
            if let Some(data) = data.as_object_mut() {
                data.insert(SHARDS_KEY.to_owned(), Value::from(STANDARD.encode(index)));
            }
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
            json!({"apiVersion": "v1", "kind": "Secret", "type": SECRET_TYPE, "metadata": metadata, "data": data}),
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
            stray: Shards::new(),
        };
        let mut heads = Vec::new();
        let mut parts: BTreeMap<String, Vec<SecretBody>> = BTreeMap::new();
        for item in listed.items {
            let secret = SecretBody::read(item, "list ApplySet parents")?;
            match secret.metadata.labels.get(RECORD_OF).cloned() {
                Some(parent) => parts.entry(parent).or_default().push(secret),
                None => heads.push(secret),
            }
        }
        for secret in heads {
            let name = secret.metadata.name.clone();
            let parts = parts.remove(&name).unwrap_or_default();
            if name == CLUSTER_PARENT {
                parents.shared = Some(Parent::from_secret(secret, &parts, owner, adopt)?);
            } else {
                let parent = Parent::from_secret(secret, &parts, owner, adopt);
                parents.components.insert(name, parent);
            }
        }
        for parts in parts.into_values() {
            parents.stray.extend(shards::known(None, &parts));
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
                let secret = SecretBody::read(secret, "read an ApplySet parent")?;
                let parts = if secret.data.contains_key(SHARDS_KEY) {
                    self.shards_of(name).await?
                } else {
                    Vec::new()
                };
                Parent::from_secret(secret, &parts, owner, adopt).map(Some)
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
        let _writing = self.parent_writes().begin();
        let draft = Parent {
            name: name.to_owned(),
            uid: String::new(),
            resource_version: String::new(),
            group_kinds: group_kinds.clone(),
            record,
            shards: Shards::new(),
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
        };
        let packed = shards::split(&draft.record, name, self.limits().record_max)?;
        let (shards, _) = self.write_shards(&draft, owner, &packed, guard).await?;
        let secret = draft.secret(owner, &draft.record, &packed, group_kinds)?;
        let body = match self.create(&secrets(), &secret_ref(name), &secret, guard).await {
            Err(error) if error.is_not_found() => {
                self.create_system_namespace(guard).await?;
                self.create(&secrets(), &secret_ref(name), &secret, guard).await?
            }
            answer => answer?,
        };
        Parent::written(&body, draft.record, shards)
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
        let _writing = self.parent_writes().begin();
        let packed = shards::split(record, &parent.name, self.limits().record_max)?;
        let (mut shards, left) = self.write_shards(parent, owner, &packed, guard).await?;
        let secret = parent.secret(owner, record, &packed, group_kinds)?;
        let body = self
            .replace(&secrets(), &secret_ref(&parent.name), &secret, guard)
            .await?;
        shards.extend(self.remove_shards(left, guard).await);
        Parent::written(&body, record.clone(), shards)
    }

    /// Deletes a parent if nobody has written it since it was read, and before it what it refers to: one that is left without
    /// parts of its record is found again, parts without their parent are in everybody's way.
    pub(crate) async fn delete_parent<R: Stored>(
        &self,
        parent: &Parent<R>,
        guard: Guard<'_>,
    ) -> Result<(), Error> {
        let _writing = self.parent_writes().begin();
        self.remove_shards(parent.shards.clone(), guard).await;
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
