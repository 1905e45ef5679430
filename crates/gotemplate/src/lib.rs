//! Go's text/template, `fmt` and the function libraries of Sprig and Helm, as Helm 4.3.1 exposes them.
//!
//! ```text
//!  text ──parse──▶ Parsed ──add──▶ TemplateSet        trees: shared by renders and threads
//!                                       │
//!  Value (data) ──▶ Executor::execute ──┴──▶ text      one executor per render: values, limits, taints
//!                     │      ▲
//!                     ▼      │ &mut Executor
//!                   FuncMap: natives of this crate + closures of the caller (include, tpl, lookup, …)
//! ```
//!
//! The engine is pure: time, randomness, private keys and the local zone come in through [`Env`]; whatever makes a
//! render more than a function of its inputs is recorded in [`Taints`]. Values have Go's types, because templates see them
//! ([`Value`]); errors have Go's texts and positions, because chart authors know them ([`Error`]).

mod builtins;
mod env;
mod error;
mod exec;
mod fmt;
mod function;
mod keys;
mod sprig;
mod strconv;
mod syntax;
mod template_set;
mod unicode;
mod value;

pub use env::{Env, Instant, Limit, Limits, MissingKey, RandomSource, Taint, Taints};
pub use error::{Cause, Error, Frame, ParseError};
pub use exec::Executor;
pub use fmt::quote::{go_quoted, go_quoted_char};
pub use function::{Closure, FuncMap, NativeFn};
pub use keys::{Curve, KeyAlgorithm, KeyError, KeyMaker, PrivateKey};
pub use sprig::{VersionConstraint, compare_versions, is_version, url_scheme, version_satisfies};
pub use syntax::{Parsed, Tree, parse};
pub use template_set::TemplateSet;
pub use value::{
    Entries, IntKind, Kind, LIST_ANY, LIST_INT, LIST_LIST, LIST_MAP, LIST_STR, List, ListClass, MAP_ANY,
    MAP_STR, Map, MapClass, Method, MethodFn, Object, Returns, Signature, Str, Type, UintKind, Value,
    deep_equal,
};
