//! The merge itself: what an update claims, what an apply changes, prunes and conflicts with.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::field_set::FieldSet;
use super::managed::ManagerId;
use super::path::PathElement;
use super::typed::{self, Comparison};
use crate::schema::{ListRelation, Schema, TypeId, TypeRef, View};

/// The versions of one kind: their types, and how an object is converted between them.
pub(crate) trait Versions {
    /// The type of the kind in a version (`apps/v1`), or `None` when the server does not know that version.
    fn type_in(&self, api_version: &str) -> Option<(Arc<Schema>, TypeId)>;
    /// The object in another version.
    fn convert<'v>(&self, value: &'v Value, to: &str) -> Cow<'v, Value>;
}

/// Fields that an endpoint resets and therefore never lets a manager own: `status` at the main resource, `spec` at the
/// status subresource.
#[derive(Debug, Clone, Default)]
pub(crate) struct ResetFields(pub(crate) Option<FieldSet>);

impl ResetFields {
    fn filter(&self, set: FieldSet) -> FieldSet {
        match &self.0 {
            Some(reset) => set.recursive_difference(reset),
            None => set,
        }
    }

    fn filter_comparison(&self, comparison: Comparison) -> Comparison {
        Comparison {
            removed: self.filter(comparison.removed),
            modified: self.filter(comparison.modified),
            added: self.filter(comparison.added),
        }
    }
}

/// The fields of one manager, in the version it wrote them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owned {
    pub(crate) api_version: String,
    pub(crate) fields: FieldSet,
}

pub(crate) type Owners = BTreeMap<ManagerId, Owned>;

/// A field that another manager owns with another value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Conflict {
    pub(crate) manager: ManagerId,
    pub(crate) path: Vec<PathElement>,
}

/// Merges objects of one kind in one version.
pub(crate) struct Updater<'a> {
    pub(crate) versions: &'a dyn Versions,
    pub(crate) api_version: &'a str,
    pub(crate) reset: &'a ResetFields,
}

/// An object in some version, with its type there.
struct Typed<'v> {
    schema: Arc<Schema>,
    ty: TypeRef,
    value: Cow<'v, Value>,
}

impl Typed<'_> {
    fn field_set(&self) -> FieldSet {
        typed::to_field_set(&self.schema, self.ty, &self.value)
    }

    fn without(&self, remove: &FieldSet) -> Value {
        typed::remove_items(&self.schema, self.ty, &self.value, remove)
            .unwrap_or_else(|| Value::Object(Map::new()))
    }

    fn named(&self, set: &FieldSet) -> FieldSet {
        set.with_named_fields(&self.schema, self.ty)
    }
}

impl Updater<'_> {
    fn typed<'v>(&self, value: &'v Value, api_version: &str) -> Option<Typed<'v>> {
        let (schema, ty) = self.versions.type_in(api_version)?;
        Some(Typed {
            schema,
            ty: ty.into(),
            value: self.versions.convert(value, api_version),
        })
    }

    /// A create, update or patch that is not an apply: what changed is the manager's from now on, taken from whoever
    /// had it.
    pub(crate) fn update(&self, live: &Value, new: &Value, owners: Owners, manager: &ManagerId) -> Owners {
        let owners = self.follow_schema(live, owners);
        let Some((mut owners, comparison)) = self.claim(live, new, owners, manager, true).ok().flatten()
        else {
            return Owners::new();
        };
        let before = owners
            .remove(manager)
            .map(|owned| owned.fields)
            .unwrap_or_default();
        let fields = before
            .difference(&comparison.removed)
            .union(&comparison.modified)
            .union(&comparison.added);
        let fields = self.reset.filter(fields);
        if !fields.is_empty() {
            owners.insert(
                manager.clone(),
                Owned {
                    api_version: self.api_version.to_owned(),
                    fields,
                },
            );
        }
        owners
    }

    /// A server-side apply. The object is `None` when it stays what it was.
    pub(crate) fn apply(
        &self,
        live: &Value,
        config: &Value,
        owners: Owners,
        manager: &ManagerId,
        force: bool,
    ) -> Result<(Option<Value>, Owners), Vec<Conflict>> {
        let mut owners = self.follow_schema(live, owners);
        let (Some(live_typed), Some(config_typed)) = (
            self.typed(live, self.api_version),
            self.typed(config, self.api_version),
        ) else {
            return Ok((None, owners));
        };
        let merged = typed::merge(&live_typed.schema, live_typed.ty, Some(live), Some(config))
            .unwrap_or_else(|| Value::Object(Map::new()));
        let fields = self.reset.filter(config_typed.field_set());
        let last = owners.insert(
            manager.clone(),
            Owned {
                api_version: self.api_version.to_owned(),
                fields,
            },
        );
        let new = match last {
            Some(last) if !last.fields.is_empty() => self.prune(merged, &owners, &last),
            _ => merged,
        };
        let owners = match self.claim(live, &new, owners, manager, force)? {
            Some((owners, _)) => owners,
            None => Owners::new(),
        };
        let changed = !typed::same_value(live, &new);
        Ok((changed.then_some(new), owners))
    }

    /// Compares old and new for every other manager: fields it owns that changed are conflicts, or taken by force.
    fn claim(
        &self,
        old: &Value,
        new: &Value,
        mut owners: Owners,
        manager: &ManagerId,
        force: bool,
    ) -> Result<Option<(Owners, Comparison)>, Vec<Conflict>> {
        let compare = |api_version: &str| {
            let (old, new) = (self.typed(old, api_version)?, self.typed(new, api_version)?);
            Some(typed::compare(&old.schema, old.ty, &old.value, &new.value))
        };
        let Some(own) = compare(self.api_version) else {
            return Ok(None);
        };
        let mut by_version: BTreeMap<String, Option<Comparison>> = BTreeMap::new();
        let own_changes = own.modified.union(&own.added);
        let own_filtered = self.reset.filter_comparison(Comparison {
            removed: own.removed.clone(),
            modified: own_changes,
            added: FieldSet::new(),
        });
        by_version.insert(self.api_version.to_owned(), Some(own_filtered));
        let mut conflicts: Vec<(ManagerId, FieldSet)> = Vec::new();
        let mut missing = Vec::new();
        for (id, owned) in owners.iter().filter(|(id, _)| *id != manager) {
            let comparison = by_version.entry(owned.api_version.clone()).or_insert_with(|| {
                compare(&owned.api_version).map(|comparison| self.reset.filter_comparison(comparison))
            });
            let Some(comparison) = comparison else {
                missing.push(id.clone());
                continue;
            };
            let conflict = owned
                .fields
                .intersection(&comparison.modified.union(&comparison.added));
            if !conflict.is_empty() {
                conflicts.push((id.clone(), conflict));
            }
        }
        if !force && !conflicts.is_empty() {
            let list = |(id, set): (ManagerId, FieldSet)| {
                set.paths().into_iter().map(move |path| Conflict {
                    manager: id.clone(),
                    path,
                })
            };
            return Err(conflicts.into_iter().flat_map(list).collect());
        }
        for id in missing {
            owners.remove(&id);
        }
        for (id, conflict) in conflicts {
            if let Some(owned) = owners.get_mut(&id) {
                owned.fields = owned.fields.difference(&conflict);
            }
        }
        for (id, owned) in &mut owners {
            if id == manager {
                continue;
            }
            if let Some(Some(comparison)) = by_version.get(&owned.api_version) {
                owned.fields = owned.fields.difference(&comparison.removed);
            }
        }
        owners.retain(|_, owned| !owned.fields.is_empty());
        Ok(Some((owners, own)))
    }

    /// Removes what the manager applied last time and does not apply now, unless another manager owns it too.
    fn prune(&self, merged: Value, owners: &Owners, last: &Owned) -> Value {
        let Some(at_last) = self.typed(&merged, &last.api_version) else {
            return merged;
        };
        let mut pruned = at_last.without(&at_last.named(&last.fields));
        let mut managed: BTreeMap<&str, FieldSet> = BTreeMap::new();
        for owned in owners.values() {
            let set = managed.entry(owned.api_version.as_str()).or_default();
            *set = set.union(&owned.fields);
        }
        // The version of the last apply first, so that nothing a conversion needs is missing.
        let mut versions: Vec<&str> = managed.keys().copied().collect();
        versions.sort_by_key(|version| *version != last.api_version);
        for version in versions {
            let (Some(whole), Some(part), Some(managed)) = (
                self.typed(&at_last.value, version),
                self.typed(&pruned, version),
                managed.get(version),
            ) else {
                continue;
            };
            let keep = part.named(&part.field_set()).union(&whole.named(managed));
            let remove = whole.named(&whole.field_set()).difference(&keep);
            pruned = whole.without(&remove);
        }
        // What was not ours before is not ours to remove: add it back.
        let pruned = match self.typed(&pruned, &last.api_version) {
            Some(part) => {
                let gone = at_last
                    .named(&at_last.field_set())
                    .difference(&part.named(&part.field_set()));
                at_last.without(&gone.intersection(&at_last.named(&last.fields)))
            }
            None => return merged,
        };
        self.versions.convert(&pruned, self.api_version).into_owned()
    }

    /// Brings old field sets in line with lists and maps that have become atomic since.
    fn follow_schema(&self, live: &Value, owners: Owners) -> Owners {
        owners
            .into_iter()
            .filter_map(|(id, mut owned)| {
                let live = self.typed(live, &owned.api_version)?;
                let mut atomic = FieldSet::new();
                find_atomic(&live.schema, live.ty, &owned.fields, &mut Vec::new(), &mut atomic);
                if !atomic.is_empty() {
                    owned.fields = owned.fields.recursive_difference(&atomic).union(&atomic);
                }
                Some((id, owned))
            })
            .collect()
    }
}

/// Collects paths at which a set goes into what the schema now replaces as one.
fn find_atomic(
    schema: &Schema,
    ty: TypeRef,
    set: &FieldSet,
    path: &mut Vec<PathElement>,
    out: &mut FieldSet,
) {
    let list = Value::Array(Vec::new());
    for (element, _, below) in set.elements() {
        if below.is_empty() {
            continue;
        }
        let below_type = match (element, schema.view(ty, None), schema.view(ty, Some(&list))) {
            (PathElement::Field(name), View::Map(map, _), _) => map.field_type(name),
            (PathElement::Keys(_) | PathElement::Item(_), _, View::List(list)) => Some(list.element),
            _ => None,
        };
        let Some(below_type) = below_type.filter(|ty| ty.id != crate::schema::DEDUCED) else {
            continue;
        };
        path.push(element.clone());
        let atomic = match schema.view(below_type, None) {
            View::Map(_, atomic) => atomic,
            View::List(list) => list.relation == ListRelation::Atomic,
            _ => false,
        };
        if atomic {
            out.insert(path);
        } else {
            find_atomic(schema, below_type, below, path, out);
        }
        path.pop();
    }
}
