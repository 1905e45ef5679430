//! Types of Kubernetes objects, as far as merging, normalising and defaulting need them.
//!
//! Two sources fill the same model: `data/types.txt` for the built-in kinds ([`builtin`]) and the structural schemas of
//! custom resource definitions at run time ([`structural`]). The model follows structured-merge-diff: an [`Atom`] says
//! what a value may be (scalar, list, map; "untyped" values may be all three), and each list or map says whether it is
//! merged element by element or replaced as one.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

use serde_json::Value;

pub(crate) mod builtin;
pub(crate) mod normalise;
pub(crate) mod structural;

/// Index of an [`Atom`] in its [`Schema`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TypeId(pub(crate) u32);

/// Values below are replaced as one (`__untyped_atomic_` of structured-merge-diff).
pub(crate) const UNTYPED: TypeId = TypeId(0);
/// Maps below are merged, lists replaced, all without a declared type (`__untyped_deduced_`).
pub(crate) const DEDUCED: TypeId = TypeId(1);
/// [`DEDUCED`], as a use of it.
pub(crate) const DEDUCED_REF: TypeRef = TypeRef {
    id: DEDUCED,
    atomic: false,
};
/// A type that accepts anything and merges nothing it does not understand; what [`Schema::atom`] gives for a bad id.
static ANYTHING: LazyLock<Atom> = LazyLock::new(|| Atom::untyped(DEDUCED, false));

/// A use of a type, with the override that a field may put on it (`x-kubernetes-map-type` beside a `$ref`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TypeRef {
    pub(crate) id: TypeId,
    pub(crate) atomic: bool,
}

impl From<TypeId> for TypeRef {
    fn from(id: TypeId) -> Self {
        Self { id, atomic: false }
    }
}

/// How a scalar is checked and brought into the form the API server prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scalar {
    String,
    Int32,
    Int64,
    Number,
    Boolean,
    /// Base64 text.
    Bytes,
    /// RFC 3339 with seconds.
    Time,
    /// RFC 3339 with microseconds.
    MicroTime,
    Quantity,
    IntOrString,
    /// Any scalar.
    Untyped,
}

/// How lists of a type are merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ListRelation {
    /// Replaced as one.
    Atomic,
    /// A set of scalars.
    Set,
    /// Items are told apart by these fields.
    Map(Box<[Box<str>]>),
}

/// A list type.
#[derive(Debug, Clone)]
pub(crate) struct ListType {
    pub(crate) element: TypeRef,
    pub(crate) relation: ListRelation,
}

/// How `kubectl`'s strategic merge patch treats a field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PatchStrategy {
    /// Lists are merged, not replaced.
    pub(crate) merge: bool,
    /// Only the keys that the patch names are kept (`retainKeys`).
    pub(crate) retain_keys: bool,
    /// The field that tells list items apart; without it the list is a set of scalars.
    pub(crate) merge_key: Option<Box<str>>,
}

/// A named field of a struct.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    pub(crate) ty: TypeRef,
    /// A pointer in Go: its zero value is printed when it is set.
    pub(crate) pointer: bool,
    /// Left out when empty (`omitempty`).
    pub(crate) omit_empty: bool,
    /// Left out when zero (`omitzero`).
    pub(crate) omit_zero: bool,
    /// What the server fills in when the field is absent.
    pub(crate) default: Option<Value>,
    pub(crate) patch: Option<Box<PatchStrategy>>,
}

/// A struct (`fields`), a dictionary (`element`), or both.
#[derive(Debug, Clone, Default)]
pub(crate) struct MapType {
    pub(crate) fields: BTreeMap<Box<str>, Field>,
    /// Type of values under undeclared keys; `None` forbids such keys.
    pub(crate) element: Option<TypeRef>,
    /// Replaced as one.
    pub(crate) atomic: bool,
    /// The name of the Go struct, for errors.
    pub(crate) go_name: Box<str>,
}

impl MapType {
    /// The type of the value under `key`, if that key may exist.
    pub(crate) fn field_type(&self, key: &str) -> Option<TypeRef> {
        self.fields.get(key).map(|field| field.ty).or(self.element)
    }
}

/// What a value of a type may be.
#[derive(Debug, Clone, Default)]
pub(crate) struct Atom {
    pub(crate) scalar: Option<Scalar>,
    pub(crate) list: Option<ListType>,
    pub(crate) map: Option<MapType>,
}

impl Atom {
    fn untyped(element: TypeId, atomic: bool) -> Self {
        Self {
            scalar: Some(Scalar::Untyped),
            list: Some(ListType {
                element: UNTYPED.into(),
                relation: ListRelation::Atomic,
            }),
            map: Some(MapType {
                element: Some(element.into()),
                atomic,
                ..MapType::default()
            }),
        }
    }
}

/// What a value is taken for: its own form decides where a type allows several.
#[derive(Debug, Clone, Copy)]
pub(crate) enum View<'a> {
    Scalar(Scalar),
    List(&'a ListType),
    /// The map and whether it is replaced as one.
    Map(&'a MapType, bool),
    /// The type allows nothing.
    Nothing,
}

/// Group, version and kind.
type KindName = (Box<str>, Box<str>, Box<str>);

/// A closed set of types.
#[derive(Debug)]
pub(crate) struct Schema {
    atoms: Vec<Atom>,
    names: HashMap<Box<str>, TypeId>,
    kinds: HashMap<KindName, TypeId>,
}

impl Default for Schema {
    fn default() -> Self {
        Self::new()
    }
}

impl Schema {
    /// A schema that knows only untyped values.
    pub(crate) fn new() -> Self {
        Self {
            atoms: vec![Atom::untyped(UNTYPED, true), Atom::untyped(DEDUCED, false)],
            names: HashMap::new(),
            kinds: HashMap::new(),
        }
    }

    /// The types of the built-in kinds.
    pub(crate) fn builtin() -> Arc<Self> {
        static BUILTIN: LazyLock<Arc<Schema>> = LazyLock::new(|| Arc::new(builtin::load()));
        BUILTIN.clone()
    }

    pub(crate) fn add(&mut self, atom: Atom) -> TypeId {
        let id = TypeId(u32::try_from(self.atoms.len()).unwrap_or(u32::MAX));
        self.atoms.push(atom);
        id
    }

    /// The type's id, reserved on first mention so that types may refer to each other.
    pub(crate) fn named(&mut self, name: &str) -> TypeId {
        if let Some(id) = self.names.get(name) {
            return *id;
        }
        let id = self.add(Atom::default());
        self.names.insert(name.into(), id);
        id
    }

    pub(crate) fn define(&mut self, id: TypeId, atom: Atom) {
        if let Some(slot) = self.atoms.get_mut(id.0 as usize) {
            *slot = atom;
        }
    }

    pub(crate) fn define_kind(&mut self, group: &str, version: &str, kind: &str, id: TypeId) {
        self.kinds.insert((group.into(), version.into(), kind.into()), id);
    }

    /// The type of objects of a kind.
    pub(crate) fn kind(&self, group: &str, version: &str, kind: &str) -> Option<TypeId> {
        self.kinds
            .get(&(group.into(), version.into(), kind.into()))
            .copied()
    }

    /// The type of `metadata`.
    pub(crate) fn metadata_type(&self) -> TypeId {
        self.names.get("meta.ObjectMeta").copied().unwrap_or(DEDUCED)
    }

    pub(crate) fn atom(&self, id: TypeId) -> &Atom {
        self.atoms.get(id.0 as usize).unwrap_or(&ANYTHING)
    }

    /// What `value` is taken for under `ty`; an absent or null value takes the first form that the type allows.
    pub(crate) fn view(&self, ty: TypeRef, value: Option<&Value>) -> View<'_> {
        let atom = self.atom(ty.id);
        let map = |map: &'_ MapType| map.atomic || ty.atomic;
        match value {
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_)) if atom.scalar.is_some() => {
                atom.scalar.map_or(View::Nothing, View::Scalar)
            }
            Some(Value::Array(_)) if atom.list.is_some() => {
                atom.list.as_ref().map_or(View::Nothing, View::List)
            }
            _ => match (&atom.map, atom.scalar, &atom.list) {
                (Some(m), _, _) => View::Map(m, map(m)),
                (None, Some(scalar), _) => View::Scalar(scalar),
                (None, None, Some(list)) => View::List(list),
                (None, None, None) => View::Nothing,
            },
        }
    }
}
