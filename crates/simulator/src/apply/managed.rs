//! `metadata.managedFields`: entries, who is who, and the rules around the merge.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::conflict;
use super::field_set::FieldSet;
use super::typed;
use super::updater::{Conflict, Owned, Owners, ResetFields, Updater, Versions};
use crate::clock::{format_seconds, parse_seconds};
use crate::status::ApiError;

/// More update entries than this are folded into one called `ancient-changes`.
const MAX_UPDATE_MANAGERS: usize = 10;
/// The manager that fields get which were there before anyone applied.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";
const ANCIENT_CHANGES: &str = "ancient-changes";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// How a manager wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Operation {
    Apply,
    Update,
}

impl Operation {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// Tells entries apart. Appliers keep one entry over all versions, updaters have one for each version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ManagerId {
    pub(crate) name: String,
    pub(crate) operation: Operation,
    /// Only for updates.
    pub(crate) api_version: String,
    pub(crate) subresource: String,
}

/// All entries of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Managed {
    pub(crate) owners: Owners,
    /// Seconds since 1970.
    pub(crate) times: BTreeMap<ManagerId, i64>,
}

impl Managed {
    /// Reads `metadata.managedFields`.
    pub(crate) fn decode(entries: &[Value]) -> Result<Self, String> {
        let mut managed = Self::default();
        let nothing = Value::Object(Map::new());
        for (position, entry) in entries.iter().enumerate() {
            let text = |key: &str| {
                entry
                    .get(key)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned()
            };
            let operation = match text("operation").as_str() {
                "Apply" => Operation::Apply,
                "Update" => Operation::Update,
                _ => return Err("operation must be `Apply` or `Update`".into()),
            };
            let api_version = text("apiVersion");
            if api_version.is_empty() {
                return Err("apiVersion must not be empty".into());
            }
            match text("fieldsType").as_str() {
                "FieldsV1" => {}
                "" => return Err(format!("missing fieldsType in managed fields entry {position}")),
                other => {
                    return Err(format!(
                        "invalid fieldsType {other:?} in managed fields entry {position}"
                    ));
                }
            }
            let fields = FieldSet::from_fields_v1(entry.get("fieldsV1").unwrap_or(&nothing))?;
            let id = ManagerId {
                name: text("manager"),
                operation,
                api_version: if operation == Operation::Update {
                    api_version.clone()
                } else {
                    String::new()
                },
                subresource: text("subresource"),
            };
            if let Some(time) = entry.get("time").and_then(Value::as_str).and_then(parse_seconds) {
                managed.times.insert(id.clone(), time);
            }
            managed.owners.insert(id, Owned { api_version, fields });
        }
        Ok(managed)
    }

    /// Writes the entries in the server's order: operation, time, name, version, subresource.
    pub(crate) fn encode(&self) -> Vec<Value> {
        let mut ids: Vec<&ManagerId> = self.owners.keys().collect();
        ids.sort_by_key(|id| {
            let version = self
                .owners
                .get(*id)
                .map(|owned| owned.api_version.as_str())
                .unwrap_or_default();
            (
                id.operation,
                self.times.get(*id).copied().unwrap_or(0),
                id.name.as_str(),
                version,
                id.subresource.as_str(),
            )
        });
        ids.into_iter()
            .filter_map(|id| {
                let owned = self.owners.get(id)?;
                let mut entry = Map::new();
                entry.insert("manager".into(), id.name.as_str().into());
                entry.insert("operation".into(), id.operation.as_str().into());
                entry.insert("apiVersion".into(), owned.api_version.as_str().into());
                if let Some(time) = self.times.get(id) {
                    entry.insert("time".into(), format_seconds(*time).into());
                }
                entry.insert("fieldsType".into(), "FieldsV1".into());
                entry.insert("fieldsV1".into(), owned.fields.to_fields_v1());
                if !id.subresource.is_empty() {
                    entry.insert("subresource".into(), id.subresource.as_str().into());
                }
                Some(Value::Object(entry))
            })
            .collect()
    }

    /// The entries to start an update from: those that the request carries, if they can be read and are not empty;
    /// else those of the live object. An explicit empty list, or one empty entry, forgets all.
    pub(crate) fn for_update(live: Option<&Value>, new: &Value, subresource: bool) -> Self {
        let entries = |value: &Value| value.pointer("/metadata/managedFields").cloned();
        let from_live = || {
            let entries = live.and_then(entries).unwrap_or(Value::Null);
            Self::decode(entries.as_array().map(Vec::as_slice).unwrap_or_default()).unwrap_or_default()
        };
        if subresource {
            return from_live();
        }
        match entries(new) {
            Some(Value::Array(list)) if list.is_empty() => Self::default(),
            Some(Value::Array(list)) if list.len() == 1 && list.iter().all(is_empty_entry) => Self::default(),
            Some(Value::Array(list)) => Self::decode(&list)
                .ok()
                .filter(|managed| !managed.owners.is_empty())
                .unwrap_or_else(from_live),
            _ => from_live(),
        }
    }
}

fn is_empty_entry(entry: &Value) -> bool {
    entry.as_object().is_some_and(Map::is_empty)
}

/// Keeps the entries of objects of one kind, at one endpoint.
pub(crate) struct FieldManager<'a> {
    pub(crate) versions: &'a dyn Versions,
    pub(crate) api_version: &'a str,
    pub(crate) subresource: &'a str,
    pub(crate) reset: &'a ResetFields,
    /// Seconds since 1970.
    pub(crate) now: i64,
    /// What the server takes for an object before it is created: structs that Go always has are there already, and
    /// nobody comes to own them.
    pub(crate) blank: &'a Value,
}

/// Fields that belong to the server or to the object's identity, never to a manager.
fn without_identity(set: &FieldSet) -> FieldSet {
    set.difference(&FieldSet::of_fields(&[
        "apiVersion",
        "kind",
        "metadata",
        "metadata.name",
        "metadata.namespace",
        "metadata.creationTimestamp",
        "metadata.selfLink",
        "metadata.uid",
        "metadata.clusterName",
        "metadata.generation",
        "metadata.managedFields",
        "metadata.resourceVersion",
    ]))
}

impl FieldManager<'_> {
    fn updater(&self) -> Updater<'_> {
        Updater {
            versions: self.versions,
            api_version: self.api_version,
            reset: self.reset,
        }
    }

    fn id(&self, name: &str, operation: Operation) -> ManagerId {
        ManagerId {
            name: if name.is_empty() { "unknown" } else { name }.to_owned(),
            operation,
            api_version: if operation == Operation::Update {
                self.api_version.to_owned()
            } else {
                String::new()
            },
            subresource: self.subresource.to_owned(),
        }
    }

    /// Entries after `name` changed `live` (`None`: created) into `new`. Objects that nobody has tracked so far stay
    /// untracked.
    pub(crate) fn update(&self, live: Option<&Value>, new: &Value, managed: Managed, name: &str) -> Managed {
        if managed.owners.is_empty() && live.is_some() {
            return managed;
        }
        let managed = self.track(live.unwrap_or(self.blank), new, managed, name);
        cap_updates(managed)
    }

    fn track(&self, live: &Value, new: &Value, managed: Managed, name: &str) -> Managed {
        // The running operation has a name of its own, so that it can be seen whether it changed anything.
        let current = ManagerId {
            name: "\u{0}current-operation".into(),
            ..self.id(name, Operation::Update)
        };
        let id = self.id(name, Operation::Update);
        let Managed { owners, mut times } = managed;
        let mut owners = self.updater().update(live, new, owners, &current);
        if let Some(claimed) = owners.remove(&current) {
            let claimed_fields = without_identity(&claimed.fields);
            if !claimed_fields.is_empty() {
                let owned = owners.entry(id.clone()).or_insert_with(|| Owned {
                    api_version: self.api_version.to_owned(),
                    fields: FieldSet::new(),
                });
                owned.fields = owned.fields.union(&claimed_fields);
                // A real server keeps no time for those who scale.
                if self.subresource != "scale" {
                    times.insert(id, self.now);
                }
            }
        }
        Managed { owners, times }
    }

    /// Applies `config` for `name`. The object is `None` when it stays what it was; the entries may change all the
    /// same.
    pub(crate) fn apply(
        &self,
        live: Option<&Value>,
        config: &Value,
        managed: Managed,
        name: &str,
        force: bool,
    ) -> Result<(Option<Value>, Managed), ApiError> {
        let live_value = live.unwrap_or(self.blank);
        let (schema, ty) = self
            .versions
            .type_in(self.api_version)
            .ok_or_else(|| ApiError::internal(format!("no type for {}", self.api_version)))?;
        let errors = typed::validate(&schema, ty.into(), config);
        if !errors.is_empty() {
            return Err(ApiError::internal(format!(
                "failed to create typed patch object ({}): {}",
                object_name(config),
                list_errors(&errors)
            )));
        }
        let managed = if managed.owners.is_empty() && live.is_some() {
            self.track(self.blank, live_value, managed, BEFORE_FIRST_APPLY)
        } else {
            managed
        };
        let id = self.id(name, Operation::Apply);
        let Managed { owners, times } = managed;
        let run = |force| {
            self.updater()
                .apply(live_value, config, owners.clone(), &id, force)
        };
        let outcome = run(force).or_else(|conflicts| {
            let allowed = if name == "kubectl" {
                self.last_applied_fields(live_value)
            } else {
                None
            };
            match allowed {
                None => Err(conflicts),
                Some(allowed) => {
                    let rest: Vec<Conflict> = conflicts
                        .into_iter()
                        .filter(|conflict| !allowed.contains(&conflict.path))
                        .collect();
                    if rest.is_empty() { run(true) } else { Err(rest) }
                }
            }
        });
        let (new, mut owners) = outcome.map_err(|conflicts| conflict::error(&conflicts))?;
        if let Some(owned) = owners.get_mut(&id) {
            owned.fields = without_identity(&owned.fields);
            if owned.fields.is_empty() {
                owners.remove(&id);
            }
        }
        let mut managed = Managed { owners, times };
        if new.is_some() {
            managed.times.insert(id, self.now);
        }
        let mut managed = cap_updates(managed);
        managed.times.retain(|id, _| managed.owners.contains_key(id));
        let new = new.map(|new| refresh_last_applied(new, config, name));
        Ok((new, managed))
    }

    /// Fields that `kubectl apply` without `--server-side` wrote and that nobody changed since: `kubectl` may take them
    /// over without a conflict.
    fn last_applied_fields(&self, live: &Value) -> Option<FieldSet> {
        let text = live
            .pointer("/metadata/annotations")?
            .get(LAST_APPLIED)?
            .as_str()?;
        let applied: Value = serde_json::from_str(text).ok()?;
        if applied.get("apiVersion")?.as_str()? != self.api_version {
            return None;
        }
        let (schema, ty) = self.versions.type_in(self.api_version)?;
        let set = typed::to_field_set(&schema, ty.into(), &applied);
        let changes = typed::compare(&schema, ty.into(), &applied, live);
        Some(
            set.difference(&changes.modified)
                .difference(&changes.added)
                .difference(&changes.removed),
        )
    }
}

/// Keeps the annotation of client-side apply in step when `kubectl` goes on with server-side apply.
fn refresh_last_applied(mut new: Value, config: &Value, name: &str) -> Value {
    if name != "kubectl" {
        return new;
    }
    if let Some(annotation) = new
        .pointer_mut("/metadata/annotations")
        .and_then(|all| all.get_mut(LAST_APPLIED))
    {
        let mut config = config.clone();
        if let Some(annotations) = config
            .pointer_mut("/metadata/annotations")
            .and_then(Value::as_object_mut)
        {
            annotations.remove(LAST_APPLIED);
        }
        *annotation = Value::String(format!("{config}\n"));
    }
    new
}

fn list_errors(errors: &[String]) -> String {
    match errors {
        [one] => one.clone(),
        many => format!(
            "errors:\n{}",
            many.iter()
                .map(|error| format!("  {error}"))
                .collect::<Vec<_>>()
                .join("\n")
        ),
    }
}

/// `NAMESPACE/NAME; GROUP/VERSION, Kind=KIND`, as the API server names an object in errors.
pub(crate) fn object_name(object: &Value) -> String {
    let text = |pointer: &str| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let kind = kind_name(text("/apiVersion"), text("/kind"));
    format!(
        "{}/{}; {kind}",
        text("/metadata/namespace"),
        text("/metadata/name")
    )
}

/// `GROUP/VERSION, Kind=KIND`; the legacy group is empty.
pub(crate) fn kind_name(api_version: &str, kind: &str) -> String {
    let slash = if api_version.contains('/') { "" } else { "/" };
    format!("{slash}{api_version}, Kind={kind}")
}

/// Folds the oldest update entries together until there are few enough.
fn cap_updates(mut managed: Managed) -> Managed {
    let mut updates: Vec<ManagerId> = managed
        .owners
        .keys()
        .filter(|id| id.operation == Operation::Update)
        .cloned()
        .collect();
    let mut count = updates.len();
    if count <= MAX_UPDATE_MANAGERS {
        return managed;
    }
    updates.sort_by_key(|id| (managed.times.get(id).copied().unwrap_or(0), id.clone()));
    let mut first_of_version: BTreeMap<String, ManagerId> = BTreeMap::new();
    for id in updates {
        if count <= MAX_UPDATE_MANAGERS {
            break;
        }
        let Some(owned) = managed.owners.get(&id).cloned() else {
            continue;
        };
        let bucket = ManagerId {
            name: ANCIENT_CHANGES.into(),
            operation: Operation::Update,
            api_version: owned.api_version.clone(),
            subresource: String::new(),
        };
        let Some(first) = first_of_version.get(&owned.api_version) else {
            first_of_version.insert(owned.api_version.clone(), id);
            continue;
        };
        if !managed.owners.contains_key(&bucket)
            && let Some(first) = managed.owners.remove(first)
        {
            managed.owners.insert(bucket.clone(), first);
        }
        if let Some(folded) = managed.owners.get_mut(&bucket) {
            folded.fields = folded.fields.union(&owned.fields);
        }
        managed.owners.remove(&id);
        if let Some(time) = managed.times.get(&id).copied() {
            managed.times.insert(bucket, time);
        }
        count -= 1;
    }
    managed.times.retain(|id, _| managed.owners.contains_key(id));
    managed
}
