//! Go types as templates can see them: in error texts, in `%T`, `typeOf`, and when arguments are checked.

use std::fmt;

use crate::{Error, Executor, Value};

/// Go's signed integer types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IntKind {
    /// `int`, the type of integer literals.
    Int,
    /// `int8`
    Int8,
    /// `int16`
    Int16,
    /// `int32`
    Int32,
    /// `int64`, the type of `add` and of integers given with `--set`.
    Int64,
}

/// Go's unsigned integer types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UintKind {
    /// `uint`
    Uint,
    /// `uint8`, the type of a byte of a string.
    Uint8,
    /// `uint16`
    Uint16,
    /// `uint32`
    Uint32,
    /// `uint64`
    Uint64,
}

/// Go's `reflect.Kind`, as printed by `kindOf`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Kind {
    Invalid,
    Bool,
    Int,
    Int8,
    Int16,
    Int32,
    Int64,
    Uint,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Float64,
    Complex128,
    String,
    Slice,
    Map,
    Ptr,
    Struct,
    Func,
    Interface,
}

impl Kind {
    /// Go's name of the kind.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Int8 => "int8",
            Self::Int16 => "int16",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Uint => "uint",
            Self::Uint8 => "uint8",
            Self::Uint16 => "uint16",
            Self::Uint32 => "uint32",
            Self::Uint64 => "uint64",
            Self::Float64 => "float64",
            Self::Complex128 => "complex128",
            Self::String => "string",
            Self::Slice => "slice",
            Self::Map => "map",
            Self::Ptr => "ptr",
            Self::Struct => "struct",
            Self::Func => "func",
            Self::Interface => "interface",
        }
    }
}

impl From<IntKind> for Kind {
    fn from(kind: IntKind) -> Self {
        match kind {
            IntKind::Int => Self::Int,
            IntKind::Int8 => Self::Int8,
            IntKind::Int16 => Self::Int16,
            IntKind::Int32 => Self::Int32,
            IntKind::Int64 => Self::Int64,
        }
    }
}

impl From<UintKind> for Kind {
    fn from(kind: UintKind) -> Self {
        match kind {
            UintKind::Uint => Self::Uint,
            UintKind::Uint8 => Self::Uint8,
            UintKind::Uint16 => Self::Uint16,
            UintKind::Uint32 => Self::Uint32,
            UintKind::Uint64 => Self::Uint64,
        }
    }
}

/// A Go type: of a value, of the elements of a container, or of a function's parameter.
#[derive(Clone, Copy, Debug)]
pub enum Type {
    /// `interface {}`
    Any,
    /// `reflect.Value`, the parameter type of most Go builtins.
    Reflect,
    /// `bool`
    Bool,
    /// A signed integer type.
    Int(IntKind),
    /// An unsigned integer type.
    Uint(UintKind),
    /// `float64`
    Float,
    /// `complex128`
    Complex,
    /// `string`
    Str,
    /// `[]uint8`
    Bytes,
    /// A slice type.
    List(&'static ListClass),
    /// A map type with string keys.
    Map(&'static MapClass),
    /// A struct or pointer type by its Go name, such as `time.Time`.
    Object(&'static str),
    /// A function type by its Go name.
    Func(&'static str),
}

impl Type {
    /// `int`
    pub const INT: Self = Self::Int(IntKind::Int);
    /// `int64`
    pub const INT64: Self = Self::Int(IntKind::Int64);
    /// `[]interface {}`
    pub const LIST: Self = Self::List(&LIST_ANY);
    /// `[]string`
    pub const STRINGS: Self = Self::List(&LIST_STR);
    /// `map[string]interface {}`
    pub const MAP: Self = Self::Map(&MAP_ANY);

    /// Go's name of the type.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Any => "interface {}",
            Self::Reflect => "reflect.Value",
            Self::Bool => "bool",
            Self::Int(IntKind::Int) => "int",
            Self::Int(IntKind::Int8) => "int8",
            Self::Int(IntKind::Int16) => "int16",
            Self::Int(IntKind::Int32) => "int32",
            Self::Int(IntKind::Int64) => "int64",
            Self::Uint(UintKind::Uint) => "uint",
            Self::Uint(UintKind::Uint8) => "uint8",
            Self::Uint(UintKind::Uint16) => "uint16",
            Self::Uint(UintKind::Uint32) => "uint32",
            Self::Uint(UintKind::Uint64) => "uint64",
            Self::Float => "float64",
            Self::Complex => "complex128",
            Self::Str => "string",
            Self::Bytes => "[]uint8",
            Self::List(class) => class.name,
            Self::Map(class) => class.name,
            Self::Object(name) | Self::Func(name) => name,
        }
    }

    /// Whether an untyped nil can be given for this type.
    pub(crate) fn can_be_nil(self) -> bool {
        match self {
            Self::Any | Self::Reflect | Self::Bytes | Self::List(_) | Self::Map(_) | Self::Func(_) => true,
            Self::Object(name) => name.starts_with('*'),
            _ => false,
        }
    }

    /// Go's assignability for the types templates can meet: equal types, any value to an interface, and a named
    /// slice or map type to the unnamed one of the same shape and back.
    pub(crate) fn accepts(self, other: Self) -> bool {
        match (self, other) {
            (Self::Any, _) => true,
            (Self::List(a), Self::List(b)) => {
                a.name == b.name || ((!a.named || !b.named) && a.elem.name() == b.elem.name())
            }
            (Self::Map(a), Self::Map(b)) => {
                a.name == b.name || ((!a.named || !b.named) && a.elem.name() == b.elem.name())
            }
            _ => self.name() == other.name(),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A slice type: `[]interface {}`, `[]string`, or a named one with methods.
#[derive(Debug)]
pub struct ListClass {
    /// Go's name.
    pub name: &'static str,
    /// Type of the elements.
    pub elem: Type,
    /// Whether this is a defined type (`common.VersionSet`) rather than a type literal.
    pub named: bool,
    /// Methods that a template can call.
    pub methods: &'static [Method],
}

/// A map type with string keys: `map[string]interface {}`, `map[string]string`, or a named one with methods.
#[derive(Debug)]
pub struct MapClass {
    /// Go's name.
    pub name: &'static str,
    /// Type of the elements.
    pub elem: Type,
    /// Whether this is a defined type (`common.Values`) rather than a type literal.
    pub named: bool,
    /// Methods that a template can call; they shadow keys of the same name.
    pub methods: &'static [Method],
}

/// `[]interface {}`
pub static LIST_ANY: ListClass = ListClass {
    name: "[]interface {}",
    elem: Type::Any,
    named: false,
    methods: &[],
};
/// `[]string`
pub static LIST_STR: ListClass = ListClass {
    name: "[]string",
    elem: Type::Str,
    named: false,
    methods: &[],
};
/// `[]int`
pub static LIST_INT: ListClass = ListClass {
    name: "[]int",
    elem: Type::INT,
    named: false,
    methods: &[],
};
/// `[][]interface {}`
pub static LIST_LIST: ListClass = ListClass {
    name: "[][]interface {}",
    elem: Type::List(&LIST_ANY),
    named: false,
    methods: &[],
};
/// `[]map[string]interface {}`
pub static LIST_MAP: ListClass = ListClass {
    name: "[]map[string]interface {}",
    elem: Type::Map(&MAP_ANY),
    named: false,
    methods: &[],
};
/// `map[string]interface {}`
pub static MAP_ANY: MapClass = MapClass {
    name: "map[string]interface {}",
    elem: Type::Any,
    named: false,
    methods: &[],
};
/// `map[string]string`
pub static MAP_STR: MapClass = MapClass {
    name: "map[string]string",
    elem: Type::Str,
    named: false,
    methods: &[],
};

/// What a function's Go signature says about its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returns {
    /// `interface {}`: the value counts as an interface until a pipeline ends, so a nil result is a nil interface.
    Interface,
    /// A concrete type.
    Concrete,
}

/// Parameters and result of a function or method; arguments are checked against it before the call.
#[derive(Clone, Copy, Debug)]
pub struct Signature {
    /// Parameter types; of a variadic function the last one is the type of each further argument.
    pub params: &'static [Type],
    /// Whether the last parameter takes any number of arguments.
    pub variadic: bool,
    /// What the result counts as.
    pub returns: Returns,
}

impl Signature {
    /// A function with exactly these parameters.
    pub const fn fixed(params: &'static [Type], returns: Returns) -> Self {
        Self {
            params,
            variadic: false,
            returns,
        }
    }

    /// A function whose last parameter repeats.
    pub const fn variadic(params: &'static [Type], returns: Returns) -> Self {
        Self {
            params,
            variadic: true,
            returns,
        }
    }

    /// The type expected for the argument at this index.
    pub(crate) fn param(&self, index: usize) -> Type {
        match self.params.get(index) {
            Some(param) => *param,
            None => self.params.last().copied().unwrap_or(Type::Any),
        }
    }
}

/// Calls a method: executor, receiver, checked arguments.
pub type MethodFn = fn(&mut Executor, &Value, &[Value]) -> Result<Value, Error>;

/// A method of a named slice or map type.
#[derive(Debug)]
pub struct Method {
    /// Name as written in the template.
    pub name: &'static str,
    /// Parameters without the receiver.
    pub signature: Signature,
    /// The body.
    pub call: MethodFn,
}
