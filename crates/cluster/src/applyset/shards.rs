//! A record that one Secret cannot hold: its objects are kept in further Secrets beside the parent.
//!
//! ```text
//! Secret evenkeel-web                      parent: fence, revision, …; names of its shards, no objects
//!   Secret evenkeel-web-objects-<digest>   a part of the objects
//!   Secret evenkeel-web-objects-<digest>   …
//! ```
//! A shard is named for its content and never changed. New ones are written before the parent refers to them, and those
//! that it no longer refers to go afterwards, so that whatever is interrupted, the parent and its shards fit together.
//! They carry the parents' label: one LIST reads them all. Which part an object is in depends on its name alone, so a
//! change of one object writes one shard anew.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use evenkeel_core::Digest;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Owner;
use super::labels::{CLAIMED_AT, FLEET_LABEL, RECORD_OF, SYSTEM_NAMESPACE};
use super::parent::{Parent, SecretBody, secret_ref};
use super::record::{Stored, compress, decompress, pack};
use crate::connection::{Guard, PatchKind};
use crate::live::LiveObject;
use crate::objects::{DeletePreconditions, Propagation, Selection, secrets};
use crate::{Cluster, Error};

/// The most shards of one record: some 600,000 objects.
const SHARDS_MAX: usize = 64;
/// The key of a shard's data.
const KEY: &str = "objects";
/// The Secret type of shards.
const SECRET_TYPE: &str = "evenkeel.dev/record";
/// Hexadecimal digits of the digest in a shard's name.
const DIGITS: usize = 16;

/// What the parent's Secret says of its shards.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Index {
    /// Their names.
    pub(super) shards: BTreeSet<String>,
    /// How many objects they hold together.
    pub(super) objects: usize,
}

/// One shard as it is at the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shard {
    uid: String,
    resource_version: String,
    /// Whether the parent, as it was read, refers to it.
    referred: bool,
}

/// Shards by name.
pub(crate) type Shards = BTreeMap<String, Shard>;

/// A record in the form in which it is stored.
pub(super) struct Packed {
    /// The parent's part, base64.
    pub(super) head: String,
    /// The other parts, base64, by the name of their Secret; none when everything fits into the parent.
    pub(super) shards: BTreeMap<String, String>,
    /// How many objects the shards hold.
    pub(super) objects: usize,
}

impl Packed {
    pub(super) fn index(&self) -> Option<Index> {
        (!self.shards.is_empty()).then(|| Index {
            shards: self.shards.keys().cloned().collect(),
            objects: self.objects,
        })
    }
}

/// Packs the record of `parent` so that no part is larger than `limit`, in bytes of base64.
///
/// # Errors
/// [`Error::TooLarge`] when more parts than [`SHARDS_MAX`] would be needed.
pub(super) fn split<R: Stored>(record: &R, parent: &str, limit: usize) -> Result<Packed, Error> {
    let entries = record.entries();
    let whole = STANDARD.encode(pack(record)?);
    if whole.len() <= limit || entries.is_empty() {
        return Ok(Packed {
            head: whole,
            shards: BTreeMap::new(),
            objects: 0,
        });
    }
    let mut count = whole.len().div_ceil(limit).next_power_of_two();
    while count <= SHARDS_MAX {
        if let Some(shards) = parts::<R>(entries, parent, count, limit)? {
            return Ok(Packed {
                head: STANDARD.encode(pack(&record.without_entries())?),
                shards,
                objects: entries.len(),
            });
        }
        count *= 2;
    }
    Err(Error::TooLarge {
        what: format!("the record of {parent}"),
        bytes: whole.len(),
        limit: limit * SHARDS_MAX,
    })
}

/// `entries` in `count` parts; none when one of them is larger than `limit`.
fn parts<R: Stored>(
    entries: &[R::Entry],
    parent: &str,
    count: usize,
    limit: usize,
) -> Result<Option<BTreeMap<String, String>>, Error> {
    let mut buckets: Vec<Vec<&R::Entry>> = (0..count).map(|_| Vec::new()).collect();
    for entry in entries {
        let place = Digest::of(R::object(entry).to_string()).hex();
        let place = place
            .get(..4)
            .and_then(|digits| usize::from_str_radix(digits, 16).ok());
        if let Some(bucket) = buckets.get_mut(place.unwrap_or_default() % count) {
            bucket.push(entry);
        }
    }
    let mut shards = BTreeMap::new();
    for bucket in buckets.into_iter().filter(|bucket| !bucket.is_empty()) {
        let failed =
            |error: &dyn std::fmt::Display| Error::Bug(format!("a record cannot be written: {error}"));
        let json = serde_json::to_vec(&bucket).map_err(|error| failed(&error))?;
        let packed = STANDARD.encode(compress(&json).map_err(|error| failed(&error))?);
        if packed.len() > limit {
            return Ok(None);
        }
        shards.insert(name(parent, &json), packed);
    }
    Ok(Some(shards))
}

/// The name of the shard of `parent` with this content.
fn name(parent: &str, json: &[u8]) -> String {
    let digest = Digest::of(json).hex();
    format!("{parent}-objects-{}", digest.get(..DIGITS).unwrap_or_default())
}

/// Puts the objects of `found` back into the record that the parent held without them. `false` when a part is missing or
/// is not what its name says: then the record is incomplete, and what it lacks is found by its label.
pub(super) fn join<R: Stored>(record: &mut R, parent: &str, index: &Index, found: &[SecretBody]) -> bool {
    let mut entries = Vec::with_capacity(index.objects);
    for name in &index.shards {
        let part = found
            .iter()
            .find(|secret| secret.metadata.name == *name)
            .and_then(|secret| read::<R>(parent, secret));
        let Some(part) = part else {
            tracing::warn!(
                shard = name,
                "a part of a component's record is missing or damaged"
            );
            continue;
        };
        entries.extend(part);
    }
    let whole = entries.len() == index.objects;
    entries.sort_by_cached_key(R::object);
    record.set_entries(entries);
    whole
}

fn read<R: Stored>(parent: &str, secret: &SecretBody) -> Option<Vec<R::Entry>> {
    let packed = STANDARD.decode(secret.data.get(KEY)?).ok()?;
    let json = decompress(&packed).ok()?;
    (name(parent, &json) == secret.metadata.name).then(|| serde_json::from_slice(&json).ok())?
}

/// The shards among `found`, as far as names and versions go.
pub(super) fn known(index: Option<&Index>, found: &[SecretBody]) -> Shards {
    let shard = |secret: &SecretBody| {
        let metadata = &secret.metadata;
        let referred = index.is_some_and(|index| index.shards.contains(&metadata.name));
        let shard = Shard {
            uid: metadata.uid.clone(),
            resource_version: metadata.resource_version.clone(),
            referred,
        };
        (metadata.name.clone(), shard)
    };
    found.iter().map(shard).collect()
}

impl Cluster {
    /// Every shard of one parent, whether it refers to it or not.
    pub(super) async fn shards_of(&self, parent: &str) -> Result<Vec<SecretBody>, Error> {
        let selector = format!("{RECORD_OF}={parent}");
        let selection = Selection {
            namespace: Some(SYSTEM_NAMESPACE),
            labels: &selector,
            ..Selection::default()
        };
        let listed = self.list_full(&secrets(), selection).await?;
        let read = |item| {
            serde_json::from_value(item).map_err(|error| Error::decode("list parts of a record", &error))
        };
        listed.items.into_iter().map(read).collect()
    }

    /// Writes the shards of `packed` that are not there yet. Gives all of them, and what they leave to be removed.
    pub(super) async fn write_shards<R: Stored>(
        &self,
        parent: &Parent<R>,
        owner: &Owner,
        packed: &Packed,
        guard: Guard<'_>,
    ) -> Result<(Shards, Shards), Error> {
        let mut present = Shards::new();
        for (name, data) in &packed.shards {
            let shard = match parent.shards.get(name) {
                Some(shard) if shard.referred => shard.clone(),
                // Whoever wrote the parent last may be about to remove it.
                Some(_) => self.claim_shard(parent, owner, name, data, guard).await?,
                None => self.create_shard(parent, owner, name, data, guard).await?,
            };
            present.insert(name.clone(), shard);
        }
        let left = parent
            .shards
            .iter()
            .filter(|(name, _)| !present.contains_key(*name));
        let left = left.map(|(name, shard)| (name.clone(), shard.clone())).collect();
        Ok((present, left))
    }

    async fn create_shard<R: Stored>(
        &self,
        parent: &Parent<R>,
        owner: &Owner,
        name: &str,
        data: &str,
        guard: Guard<'_>,
    ) -> Result<Shard, Error> {
        let body = secret(&parent.name, owner, name, data);
        match self.create(&secrets(), &secret_ref(name), &body, guard).await {
            Ok(body) => Ok(Shard::of(LiveObject::read(&body, "write a part of a record")?)),
            // Left by an attempt that did not get as far as the parent.
            Err(Error::AlreadyExists { .. }) => {
                let claimed = self.touch_shard(parent, name, guard).await;
                claimed.map(Shard::of)
            }
            Err(error) => Err(error),
        }
    }

    /// Makes sure that an unused shard stays: a removal by somebody who saw it unused carries its old version.
    async fn claim_shard<R: Stored>(
        &self,
        parent: &Parent<R>,
        owner: &Owner,
        name: &str,
        data: &str,
        guard: Guard<'_>,
    ) -> Result<Shard, Error> {
        match self.touch_shard(parent, name, guard).await {
            Ok(live) => Ok(Shard::of(live)),
            Err(error) if error.is_not_found() => self.create_shard(parent, owner, name, data, guard).await,
            Err(error) => Err(error),
        }
    }

    async fn touch_shard<R: Stored>(
        &self,
        parent: &Parent<R>,
        name: &str,
        guard: Guard<'_>,
    ) -> Result<LiveObject, Error> {
        let patch = json!({"metadata": {"annotations": {CLAIMED_AT: parent.resource_version}}});
        self.patch(&secrets(), &secret_ref(name), PatchKind::Merge, &patch, guard)
            .await
    }

    /// Removes shards that nothing refers to. Those that cannot be removed now are found again by the next write.
    pub(crate) async fn remove_shards(&self, shards: Shards, guard: Guard<'_>) -> Shards {
        let mut left = Shards::new();
        for (name, shard) in shards {
            let preconditions = DeletePreconditions {
                uid: &shard.uid,
                resource_version: &shard.resource_version,
            };
            let removed = self
                .delete(
                    &secrets(),
                    &secret_ref(&name),
                    preconditions,
                    Propagation::Background,
                    guard,
                )
                .await;
            if let Err(error) = removed {
                tracing::debug!(shard = name, %error, "a part of an older record stays for now");
                left.insert(
                    name,
                    Shard {
                        referred: false,
                        ..shard
                    },
                );
            }
        }
        left
    }
}

impl Shard {
    fn of(live: LiveObject) -> Self {
        Self {
            uid: live.uid,
            resource_version: live.resource_version,
            referred: true,
        }
    }
}

fn secret(parent: &str, owner: &Owner, name: &str, data: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": SECRET_TYPE, "immutable": true,
        "metadata": {
            "name": name, "namespace": SYSTEM_NAMESPACE,
            "labels": {RECORD_OF: parent, FLEET_LABEL: owner.fleet()},
        },
        "data": {KEY: data},
    })
}

#[cfg(test)]
mod tests {
    use evenkeel_core::{ComponentName, Fence};

    use super::*;
    use crate::applyset::record::{Record, RecordedObject};

    fn record(objects: usize) -> Record {
        let mut record = Record::new("f", "c", ComponentName::new("web").expect("name"), Fence(7));
        record.objects = (0..objects)
            .map(|index| RecordedObject {
                group: String::new(),
                kind: "ConfigMap".into(),
                namespace: Some("shop".into()),
                name: format!("web-{index:06}"),
                uid: Digest::of(index.to_string()).hex().chars().take(36).collect(),
                content: None,
                fixed: None,
                owned: None,
                resource_version: index.to_string(),
                kept: false,
                done: false,
            })
            .collect();
        record
    }

    fn found(packed: &Packed) -> Vec<SecretBody> {
        let body = |(name, data): (&String, &String)| {
            serde_json::from_value(json!({"metadata": {"name": name}, "data": {KEY: data}})).expect("secret")
        };
        packed.shards.iter().map(body).collect()
    }

    #[test]
    fn what_fits_stays_in_the_parent() {
        let packed = split(&record(10), "evenkeel-web", 10_000).expect("packed");
        assert!(packed.shards.is_empty() && packed.index().is_none());
    }

    #[test]
    fn what_was_split_is_joined() {
        let record = record(2_000);
        let packed = split(&record, "evenkeel-web", 10_000).expect("packed");
        assert!(packed.shards.len() > 4, "{}", packed.shards.len());
        assert!(packed.head.len() < 1_000 && packed.shards.values().all(|data| data.len() <= 10_000));
        let index = packed.index().expect("an index");
        let mut joined = record.without_entries();
        assert!(join(&mut joined, "evenkeel-web", &index, &found(&packed)));
        assert_eq!(joined, record);
        // The same record, the same shards.
        assert_eq!(
            split(&record, "evenkeel-web", 10_000).expect("packed").shards,
            packed.shards
        );
    }

    #[test]
    fn one_object_changes_one_shard() {
        let mut record = record(2_000);
        let before = split(&record, "evenkeel-web", 10_000).expect("packed").shards;
        record.objects[7].resource_version = "changed".into();
        let after = split(&record, "evenkeel-web", 10_000).expect("packed").shards;
        let kept = before.keys().filter(|name| after.contains_key(*name)).count();
        assert_eq!((before.len(), kept), (after.len(), after.len() - 1));
    }

    #[test]
    fn a_missing_or_damaged_part_is_noticed() {
        let record = record(2_000);
        let packed = split(&record, "evenkeel-web", 10_000).expect("packed");
        let index = packed.index().expect("an index");
        let mut parts = found(&packed);
        let taken = parts.pop().expect("a part");
        let mut joined = record.without_entries();
        assert!(!join(&mut joined, "evenkeel-web", &index, &parts));
        assert!(joined.objects.len() < 2_000 && joined.objects.len() > 1_000);
        // One with the content of another.
        let data = parts.first().expect("a part").data.clone();
        parts.push(SecretBody { data, ..taken });
        assert!(!join(&mut joined, "evenkeel-web", &index, &parts));
    }

    #[test]
    fn there_is_a_bound() {
        let refused = split(&record(2_000), "evenkeel-web", 100).err();
        assert!(matches!(refused, Some(Error::TooLarge { .. })), "{refused:?}");
    }
}
