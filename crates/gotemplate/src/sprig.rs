//! The functions of Sprig and Helm that need nothing but their arguments, the time and randomness.
//!
//! Each subject has its file and its table; a function is added by one line in the table of its subject.

mod args;
mod case;
mod cast;
mod certificates;
mod ciphers;
mod dates;
mod decimal;
mod defaults;
mod dicts;
mod encoding;
mod hashes;
mod lists;
mod math;
mod merge;
mod passwords;
mod paths;
mod random;
mod reflect;
mod regex;
mod semver;
mod split;
mod strings;
mod toml;
mod urls;

pub(crate) use certificates::private_key_from_pkcs8;
pub(crate) use dates::TIME_TYPE;
pub(crate) use encoding::base64_text;
pub(crate) use regex::{OfRender as RenderRegexes, OfTemplates as TemplateRegexes};
pub use semver::{VersionConstraint, compare_versions, is_version, version_satisfies};
pub use urls::url_scheme;

use crate::function::Native;

/// Tables of all subjects.
pub(crate) static TABLES: &[&[Native]] = &[
    case::TABLE,
    cast::TABLE,
    certificates::TABLE,
    ciphers::TABLE,
    dates::TABLE,
    defaults::TABLE,
    dicts::TABLE,
    encoding::TABLE,
    hashes::TABLE,
    lists::TABLE,
    math::TABLE,
    merge::TABLE,
    passwords::TABLE,
    paths::TABLE,
    random::TABLE,
    reflect::TABLE,
    regex::TABLE,
    semver::TABLE,
    split::TABLE,
    strings::TABLE,
    toml::TABLE,
    urls::TABLE,
];
