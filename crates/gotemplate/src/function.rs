//! Functions that templates call, and the map that names them.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;
use std::sync::LazyLock;

use crate::exec::{Executor, Operand};
use crate::value::{Returns, Signature, Value};
use crate::{Error, builtins, sprig};

/// A library function without state.
pub type NativeFn = fn(&mut Executor, &[Value]) -> Result<Value, Error>;

/// A Go builtin: it sees operands as `reflect.Value`, so it can tell a nil interface from no value.
pub(crate) type BuiltinFn = fn(&mut Executor, &[Operand]) -> Result<Operand, Error>;

/// A function of this crate, named in the table of its subject.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Native {
    pub(crate) name: &'static str,
    pub(crate) signature: Signature,
    pub(crate) body: Body,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Body {
    Native(NativeFn),
    Builtin(BuiltinFn),
    /// `and`, `or`: evaluated by the executor because they do not evaluate all their arguments.
    ShortCircuit {
        stop_at: bool,
    },
    /// `call`: evaluated by the executor because it names its first argument in errors.
    Call,
}

impl Native {
    /// A function whose Go signature ends in a concrete type.
    pub(crate) const fn concrete(
        name: &'static str,
        params: &'static [crate::Type],
        variadic: bool,
        call: NativeFn,
    ) -> Self {
        Self {
            name,
            signature: Signature {
                params,
                variadic,
                returns: Returns::Concrete,
            },
            body: Body::Native(call),
        }
    }

    /// A function whose Go signature ends in `interface {}`.
    pub(crate) const fn interface(
        name: &'static str,
        params: &'static [crate::Type],
        variadic: bool,
        call: NativeFn,
    ) -> Self {
        Self {
            name,
            signature: Signature {
                params,
                variadic,
                returns: Returns::Interface,
            },
            body: Body::Native(call),
        }
    }
}

type Callback = dyn Fn(&mut Executor, &[Value]) -> Result<Value, Error>;

/// A function with state, made for one render: `include`, `tpl`, `lookup`.
pub struct Closure {
    signature: Signature,
    call: Box<Callback>,
}

impl Closure {
    /// A function from its signature and body. The body gets the executor, so it can run other templates.
    pub fn new(
        signature: Signature,
        call: impl Fn(&mut Executor, &[Value]) -> Result<Value, Error> + 'static,
    ) -> Self {
        Self {
            signature,
            call: Box::new(call),
        }
    }

    /// Parameters and result.
    pub const fn signature(&self) -> Signature {
        self.signature
    }

    /// Runs the body.
    pub fn call(&self, executor: &mut Executor, args: &[Value]) -> Result<Value, Error> {
        (self.call)(executor, args)
    }
}

impl fmt::Debug for Closure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Closure")
            .field("signature", &self.signature)
            .finish_non_exhaustive()
    }
}

/// What a name stands for.
#[derive(Clone)]
pub(crate) enum Callee {
    Native(&'static Native),
    Closure(Rc<Closure>),
}

/// Hash of short names: FNV-1a, a few nanoseconds.
#[derive(Clone, Copy)]
pub(crate) struct NameHasher(u64);

impl Default for NameHasher {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for NameHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

pub(crate) type NameMap<K, V> = HashMap<K, V, BuildHasherDefault<NameHasher>>;

/// All functions of this crate by name; a library function hides a builtin of the same name (`slice`).
static NATIVES: LazyLock<NameMap<&'static str, &'static Native>> = LazyLock::new(|| {
    let mut natives: NameMap<&'static str, &'static Native> = NameMap::default();
    for table in builtins::TABLES.iter().chain(sprig::TABLES) {
        for native in *table {
            natives.insert(native.name, native);
        }
    }
    natives
});

/// The functions that templates may call: those of this crate, and those the caller adds for one render.
#[derive(Clone, Default)]
pub struct FuncMap {
    added: NameMap<Box<str>, Rc<Closure>>,
}

impl FuncMap {
    /// Go's builtins and the functions of Sprig and Helm that need nothing but their arguments, the time and
    /// randomness. `include`, `tpl`, `required` and `lookup` are the chart engine's to add.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether this crate has a function of this name.
    pub fn has_native(name: &str) -> bool {
        NATIVES.contains_key(name)
    }

    /// Names of all functions of this crate, sorted.
    pub fn native_names() -> Vec<&'static str> {
        let mut names: Vec<_> = NATIVES.keys().copied().collect();
        names.sort_unstable();
        names
    }

    /// Adds a function, in place of any other of that name.
    pub fn insert(&mut self, name: &str, function: Closure) {
        self.added.insert(name.into(), Rc::new(function));
    }

    /// Whether a template may call this name; the parser asks.
    pub fn contains(&self, name: &str) -> bool {
        self.added.contains_key(name) || Self::has_native(name)
    }

    pub(crate) fn find(&self, name: &str) -> Option<Callee> {
        if let Some(closure) = self.added.get(name) {
            return Some(Callee::Closure(Rc::clone(closure)));
        }
        NATIVES.get(name).map(|native| Callee::Native(native))
    }
}

impl fmt::Debug for FuncMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FuncMap")
            .field("added", &self.added.keys())
            .finish_non_exhaustive()
    }
}
