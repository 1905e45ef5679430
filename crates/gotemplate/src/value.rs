//! The value model: what a Go template can hold, with Go's types.

mod containers;
mod convert;
mod equal;
mod object;
mod str;
mod types;

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

pub use containers::{Entries, List, Map};
pub use equal::deep_equal;
pub use object::Object;
pub use str::Str;
pub(crate) use str::lossy;
pub use types::{
    IntKind, Kind, LIST_ANY, LIST_INT, LIST_LIST, LIST_MAP, LIST_STR, ListClass, MAP_ANY, MAP_STR, MapClass,
    Method, MethodFn, Returns, Signature, Type, UintKind,
};

use crate::function::Closure;

/// A Go value.
///
/// Scalars are held inside, strings and containers are shared, so a clone costs at most one counter. Numbers of
/// values files are [`Value::Float`], integer literals of templates are `int`, numbers of `--set` are `int64`:
/// templates see the difference.
#[derive(Clone, Debug)]
pub enum Value {
    /// An untyped nil.
    Nil,
    /// `bool`
    Bool(bool),
    /// A signed integer with its type.
    Int(IntKind, i64),
    /// An unsigned integer with its type.
    Uint(UintKind, u64),
    /// `float64`
    Float(f64),
    /// `complex128`: only literals such as `1i` make it.
    Complex(f64, f64),
    /// `string`
    Str(Str),
    /// `[]uint8`, the content of a chart file.
    Bytes(Arc<[u8]>),
    /// A slice.
    List(List),
    /// A map with string keys.
    Map(Map),
    /// A struct or pointer.
    Object(Rc<dyn Object>),
    /// A function value, for `call`.
    Func(Rc<Closure>),
}

impl fmt::Debug for dyn Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.type_name())
    }
}

impl Value {
    /// An `int`, the type of literals, `len` and `int`.
    pub const fn int(value: i64) -> Self {
        Self::Int(IntKind::Int, value)
    }

    /// An `int64`, the type of `add` and of `--set`.
    pub const fn int64(value: i64) -> Self {
        Self::Int(IntKind::Int64, value)
    }

    /// A string.
    pub fn str(text: impl Into<Str>) -> Self {
        Self::Str(text.into())
    }

    /// Wraps an object.
    pub fn object(object: impl Object) -> Self {
        Self::Object(Rc::new(object))
    }

    /// Go's kind.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Nil => Kind::Invalid,
            Self::Bool(_) => Kind::Bool,
            Self::Int(kind, _) => (*kind).into(),
            Self::Uint(kind, _) => (*kind).into(),
            Self::Float(_) => Kind::Float64,
            Self::Complex(..) => Kind::Complex128,
            Self::Str(_) => Kind::String,
            Self::Bytes(_) | Self::List(_) => Kind::Slice,
            Self::Map(_) => Kind::Map,
            Self::Object(object) => object.kind(),
            Self::Func(_) => Kind::Func,
        }
    }

    /// Go's dynamic type; none for nil.
    pub fn go_type(&self) -> Option<Type> {
        Some(match self {
            Self::Nil => return None,
            Self::Bool(_) => Type::Bool,
            Self::Int(kind, _) => Type::Int(*kind),
            Self::Uint(kind, _) => Type::Uint(*kind),
            Self::Float(_) => Type::Float,
            Self::Complex(..) => Type::Complex,
            Self::Str(_) => Type::Str,
            Self::Bytes(_) => Type::Bytes,
            Self::List(list) => Type::List(list.class()),
            Self::Map(map) => Type::Map(map.class()),
            Self::Object(object) => Type::Object(object.type_name()),
            Self::Func(_) => Type::Func("func()"),
        })
    }

    /// Go's name of the dynamic type, `<nil>` for nil, as `%T` prints it.
    pub fn type_name(&self) -> &'static str {
        self.go_type().map_or("<nil>", Type::name)
    }

    /// Truth as `if`, `and` and `or` see it: neither nil, false, zero, nor empty.
    pub fn truth(&self) -> bool {
        match self {
            Self::Nil => false,
            Self::Bool(value) => *value,
            Self::Int(_, value) => *value != 0,
            Self::Uint(_, value) => *value != 0,
            Self::Float(value) => *value != 0.0,
            Self::Complex(re, im) => *re != 0.0 || *im != 0.0,
            Self::Str(text) => !text.is_empty(),
            Self::Bytes(bytes) => !bytes.is_empty(),
            Self::List(list) => !list.is_empty(),
            Self::Map(map) => !map.is_empty(),
            Self::Object(object) => object.truth(),
            Self::Func(_) => true,
        }
    }

    /// Length of a string (in bytes), slice or map.
    pub fn len(&self) -> Option<usize> {
        match self {
            Self::Str(text) => Some(text.len()),
            Self::Bytes(bytes) => Some(bytes.len()),
            Self::List(list) => Some(list.len()),
            Self::Map(map) => Some(map.len()),
            _ => None,
        }
    }

    /// Whether a string, slice or map is empty; false for everything else.
    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }

    /// Whether this is the untyped nil.
    pub const fn is_nil(&self) -> bool {
        matches!(self, Self::Nil)
    }

    /// The map, if it is one.
    pub const fn as_map(&self) -> Option<&Map> {
        match self {
            Self::Map(map) => Some(map),
            _ => None,
        }
    }

    /// The list, if it is one.
    pub const fn as_list(&self) -> Option<&List> {
        match self {
            Self::List(list) => Some(list),
            _ => None,
        }
    }

    /// The string, if it is one.
    pub const fn as_str(&self) -> Option<&Str> {
        match self {
            Self::Str(text) => Some(text),
            _ => None,
        }
    }

    /// The zero value of a type, as a missing key of a typed map gives.
    pub(crate) fn zero(of: Type) -> Self {
        match of {
            Type::Any | Type::Reflect | Type::Object(_) | Type::Func(_) => Self::Nil,
            Type::Bool => Self::Bool(false),
            Type::Int(kind) => Self::Int(kind, 0),
            Type::Uint(kind) => Self::Uint(kind, 0),
            Type::Float => Self::Float(0.0),
            Type::Complex => Self::Complex(0.0, 0.0),
            Type::Str => Self::Str(Str::EMPTY),
            Type::Bytes => Self::Bytes(Arc::from([])),
            Type::List(class) => Self::List(List::nil(class)),
            Type::Map(class) => Self::Map(Map::nil(class)),
        }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Str(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Str(text.into())
    }
}

impl From<Str> for Value {
    fn from(text: Str) -> Self {
        Self::Str(text)
    }
}

impl From<Vec<u8>> for Value {
    fn from(text: Vec<u8>) -> Self {
        Self::Str(text.into())
    }
}

impl From<List> for Value {
    fn from(list: List) -> Self {
        Self::List(list)
    }
}

impl From<Map> for Value {
    fn from(map: Map) -> Self {
        Self::Map(map)
    }
}
