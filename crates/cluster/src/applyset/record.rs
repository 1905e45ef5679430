//! What a parent remembers of its set.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};

use evenkeel_core::{ComponentName, ComponentRevision, Digest, Fence, GroupKind, Namespace, ObjectRef};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::contest::Contest;
use super::hooks::RecordedHook;
use crate::fingerprint::Fingerprint;
use crate::{Error, Owner};

/// The version of the records that this code writes.
const FORMAT: u32 = 1;
/// The version of one whose objects are in Secrets of their own: to a binary that knows of none it would seem empty.
const FORMAT_SHARDED: u32 = 2;
/// The largest record that is read, unpacked, in bytes; a Secret holds 1 MiB, packed about tenfold.
const UNPACKED_MAX: u64 = 64 * 1024 * 1024;
/// The most bytes of a Secret, of which the API server allows 1 MiB.
pub(crate) const SECRET_MAX: usize = 1_000_000;
/// The most bytes of a record, packed and in base64, that stay in the parent itself. Well below [`SECRET_MAX`]: what others
/// put on it needs room, too.
pub(crate) const RECORD_MAX: usize = 700_000;

/// What a component's parent holds: who wrote it and what was applied. No content, so nothing secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    format: u32,
    /// The fleet that owns it.
    pub fleet: String,
    /// The cluster's name in that fleet.
    pub cluster: String,
    /// The component.
    pub component: ComponentName,
    /// The number that the last attempt took.
    pub fence: Fence,
    /// The component revision last applied to the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<ComponentRevision>,
    /// A digest of all that decided the objects last applied to the end, as the caller computed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Digest>,
    /// The release namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Namespace>,
    /// Whether an attempt began to write and has not recorded its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unfinished: bool,
    /// The objects of the set.
    #[serde(default)]
    pub objects: Vec<RecordedObject>,
    /// A digest of what decided the revision last applied to the end, so that a ledger without memory knows it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Digest>,
    /// Whether the render of that revision is kept beside the parent, because it cannot be made again; none where whoever wrote
    /// the record did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keeps_render: Option<bool>,
    /// Whether its life here began with the objects of somebody else: then there was nothing to install.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub taken_over: bool,
    /// The hooks that ran, and the objects they left.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<RecordedHook>,
    /// The hooks of its deletion that are kept beside the parent, as a digest of their bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_hooks: Option<Digest>,
    /// Objects of which somebody else sets fields anew each time that we correct them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub contests: BTreeMap<String, Contest>,
}

/// One object as it was after it was applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedObject {
    /// API group; empty for the core group.
    #[serde(rename = "g", default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Kind.
    #[serde(rename = "k")]
    pub kind: String,
    /// Namespace; none for cluster-scoped kinds.
    #[serde(rename = "ns", default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name.
    #[serde(rename = "n")]
    pub name: String,
    /// Its uid, so that one made anew by somebody else is not taken for it.
    #[serde(rename = "u")]
    pub uid: String,
    /// The content that was applied.
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Fingerprint>,
    /// What was applied in fields that stay as they were made; none for kinds without a rule.
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    pub fixed: Option<Fingerprint>,
    /// The fields that we owned afterwards.
    #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
    pub owned: Option<Fingerprint>,
    /// The resource version at which it was last seen as it should be, and ready.
    #[serde(rename = "v")]
    pub resource_version: String,
    /// Whether it is no longer rendered and stays because nothing may delete it.
    #[serde(rename = "kept", default, skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
    /// Whether it is a Job that completed and removes itself: then its absence is no reason to run it again.
    #[serde(rename = "done", default, skip_serializing_if = "std::ops::Not::not")]
    pub done: bool,
}

impl RecordedObject {
    /// The object that it is about.
    pub fn object(&self) -> ObjectRef {
        ObjectRef {
            group: self.group.clone(),
            kind: self.kind.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }

    /// Its kind.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind::new(self.group.clone(), self.kind.clone())
    }
}

impl Record {
    pub(crate) fn new(fleet: &str, cluster: &str, component: ComponentName, fence: Fence) -> Self {
        Self {
            format: FORMAT,
            fleet: fleet.to_owned(),
            cluster: cluster.to_owned(),
            component,
            fence,
            revision: None,
            inputs: None,
            namespace: None,
            unfinished: false,
            objects: Vec::new(),
            source: None,
            keeps_render: None,
            taken_over: false,
            hooks: Vec::new(),
            delete_hooks: None,
            contests: BTreeMap::new(),
        }
    }

    /// Whether it says that no render of `revision` is kept, so that nobody need look for one.
    pub fn keeps_no_render(&self, revision: ComponentRevision) -> bool {
        // An attempt that did not reach its end may have kept one since.
        !self.unfinished && self.revision == Some(revision) && self.keeps_render == Some(false)
    }

    /// How often fields of an object were corrected in vain.
    pub(crate) fn contest(&self, object: &ObjectRef) -> Option<&Contest> {
        self.contests.get(&object.to_string())
    }
}

/// What the parent of the shared set holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SharedRecord {
    format: u32,
    pub(crate) fleet: String,
    pub(crate) cluster: String,
    /// Whether we made the namespace of the parents.
    #[serde(default)]
    pub(crate) made_system_namespace: bool,
    #[serde(default)]
    pub(crate) objects: Vec<SharedObject>,
}

/// A Namespace or CustomResourceDefinition and the components that want it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SharedObject {
    /// As in a component's record; `content` is what was applied last, whoever applied it.
    #[serde(flatten)]
    pub(crate) recorded: RecordedObject,
    /// Whether it did not exist before us, so that it may be deleted with the last component that wants it.
    #[serde(rename = "made")]
    pub(crate) made_by_us: bool,
    /// The components that want it, each with the content it rendered; none for a release namespace.
    #[serde(rename = "w", default)]
    pub(crate) wanted_by: BTreeMap<ComponentName, Option<Fingerprint>>,
}

impl SharedRecord {
    pub(crate) fn new(fleet: &str, cluster: &str) -> Self {
        Self {
            format: FORMAT,
            fleet: fleet.to_owned(),
            cluster: cluster.to_owned(),
            made_system_namespace: false,
            objects: Vec::new(),
        }
    }

    pub(crate) fn get(&self, object: &ObjectRef) -> Option<&SharedObject> {
        self.objects
            .iter()
            .find(|shared| shared.recorded.object() == *object)
    }

    pub(crate) fn get_mut(&mut self, object: &ObjectRef) -> Option<&mut SharedObject> {
        self.objects
            .iter_mut()
            .find(|shared| shared.recorded.object() == *object)
    }
}

/// A record of either kind, for the code that stores them.
pub(crate) trait Stored: Serialize + DeserializeOwned + Clone + PartialEq {
    /// What it holds of one object.
    type Entry: Serialize + DeserializeOwned + Clone;
    /// The object that an entry is about.
    fn object(entry: &Self::Entry) -> ObjectRef;
    fn entries(&self) -> &[Self::Entry];
    /// Puts entries into a record that was stored without.
    fn set_entries(&mut self, entries: Vec<Self::Entry>);
    /// The same without its entries, which are stored elsewhere.
    fn without_entries(&self) -> Self;
    /// Notes that a part of it was lost, so that the component is looked at and applied once more.
    fn set_unfinished(&mut self);
    fn owner(&self) -> (&str, &str);
    /// Whether it was written in the name of `owner`.
    fn is_of(&self, owner: &Owner) -> bool {
        self.owner() == (owner.fleet(), owner.cluster().as_str())
    }
    fn format(&self) -> u32;
    /// The kinds it speaks of.
    fn group_kinds(&self) -> Vec<GroupKind>;
    /// The namespaces it speaks of.
    fn namespaces(&self) -> Vec<String>;
}

impl Stored for Record {
    type Entry = RecordedObject;

    fn object(entry: &RecordedObject) -> ObjectRef {
        entry.object()
    }

    fn entries(&self) -> &[RecordedObject] {
        &self.objects
    }

    fn set_entries(&mut self, entries: Vec<RecordedObject>) {
        self.format = FORMAT;
        self.objects = entries;
    }

    fn without_entries(&self) -> Self {
        Self {
            format: FORMAT_SHARDED,
            objects: Vec::new(),
            ..self.clone()
        }
    }

    fn set_unfinished(&mut self) {
        self.unfinished = true;
    }

    fn owner(&self) -> (&str, &str) {
        (&self.fleet, &self.cluster)
    }

    fn format(&self) -> u32 {
        self.format
    }

    fn group_kinds(&self) -> Vec<GroupKind> {
        self.objects.iter().map(RecordedObject::group_kind).collect()
    }

    fn namespaces(&self) -> Vec<String> {
        self.objects
            .iter()
            .filter_map(|object| object.namespace.clone())
            .collect()
    }
}

impl Stored for SharedRecord {
    type Entry = SharedObject;

    fn object(entry: &SharedObject) -> ObjectRef {
        entry.recorded.object()
    }

    fn entries(&self) -> &[SharedObject] {
        &self.objects
    }

    fn set_entries(&mut self, entries: Vec<SharedObject>) {
        self.format = FORMAT;
        self.objects = entries;
    }

    fn without_entries(&self) -> Self {
        Self {
            format: FORMAT_SHARDED,
            objects: Vec::new(),
            ..self.clone()
        }
    }

    /// What it lost is written again by the components that want it.
    fn set_unfinished(&mut self) {}

    fn owner(&self) -> (&str, &str) {
        (&self.fleet, &self.cluster)
    }

    fn format(&self) -> u32 {
        self.format
    }

    fn group_kinds(&self) -> Vec<GroupKind> {
        self.objects
            .iter()
            .map(|object| object.recorded.group_kind())
            .collect()
    }

    fn namespaces(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Packs a record: JSON, gzip.
pub(crate) fn pack(record: &impl Serialize) -> Result<Vec<u8>, Error> {
    let failed = |error: &dyn std::fmt::Display| Error::Bug(format!("a record cannot be written: {error}"));
    let json = serde_json::to_vec(record).map_err(|error| failed(&error))?;
    compress(&json).map_err(|error| failed(&error))
}

/// Unpacks what [`pack`] made; the error is for people.
pub(crate) fn unpack<T: Stored>(packed: &[u8]) -> Result<T, String> {
    let json = decompress(packed).map_err(|error| format!("its record cannot be unpacked: {error}"))?;
    // A newer format may not have our fields at all, so the number is read first.
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    let Format { format } =
        serde_json::from_slice(&json).map_err(|error| format!("its record is no JSON of ours: {error}"))?;
    if format > FORMAT_SHARDED {
        return Err(format!(
            "its record has format {format}, this binary reads up to {FORMAT_SHARDED}; use a newer Evenkeel"
        ));
    }
    let record: T =
        serde_json::from_slice(&json).map_err(|error| format!("its record is not as expected: {error}"))?;
    debug_assert_eq!(record.format(), format);
    Ok(record)
}

pub(crate) fn compress(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes)?;
    encoder.finish()
}

pub(crate) fn decompress(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut unpacked = Vec::new();
    GzDecoder::new(bytes)
        .take(UNPACKED_MAX)
        .read_to_end(&mut unpacked)?;
    Ok(unpacked)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(objects: usize) -> Record {
        let mut record = Record::new("f", "c", ComponentName::new("web").expect("name"), Fence(7));
        record.objects = (0..objects)
            .map(|index| RecordedObject {
                group: "apps".into(),
                kind: "Deployment".into(),
                namespace: Some("shop".into()),
                name: format!("web-{index}"),
                uid: format!("{:08x}-0000-4000-8000-{:012x}", index * 7919, index * 104_729),
                content: Some(Fingerprint::of(&serde_json::json!(index))),
                fixed: None,
                owned: Some(Fingerprint::of(&serde_json::json!("x"))),
                resource_version: (1000 + index).to_string(),
                kept: false,
                done: false,
            })
            .collect();
        record
    }

    #[test]
    fn records_read_what_they_write() {
        let record = record(3);
        assert_eq!(unpack::<Record>(&pack(&record).expect("pack")), Ok(record));
    }

    #[test]
    fn a_big_component_fits_into_one_secret() {
        let packed = pack(&record(5_000)).expect("pack");
        assert!(packed.len() * 4 / 3 < RECORD_MAX, "{}", packed.len());
    }

    #[test]
    fn a_newer_format_is_not_misread() {
        let newer = pack(&serde_json::json!({"format": 3, "sets": []})).expect("pack");
        let error = unpack::<Record>(&newer).expect_err("newer");
        assert!(error.contains("format 3"), "{error}");
        assert!(unpack::<Record>(b"%%").is_err() && unpack::<Record>(b"").is_err());
    }
}
