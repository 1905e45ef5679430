//! Semantic versions and constraints by the rules of Masterminds/semver, which differ from Cargo's: a pre-release
//! matches only where the constraint names one, parts may be missing, `v` may stand in front.

mod versions;
mod written;

use std::any::Any;
use std::cmp::Ordering;

use self::written::{Term, VersionText};
use super::args::{STR, string};
use crate::Error;
use crate::exec::Executor;
use crate::fmt::quote;
use crate::function::Native;
use crate::value::{Object, Returns, Signature, Str, Type, UintKind, Value};

pub use versions::{VersionConstraint, compare_versions, is_version, version_satisfies};

pub(super) static TABLE: &[Native] = &[
    Native::concrete("semver", &[STR], false, semver),
    Native::concrete("semverCompare", &[STR, STR], false, semver_compare),
];

type Result<T = Value> = std::result::Result<T, Error>;

/// Longest version text.
const MAX_VERSION: usize = 256;
/// Longest constraint text, and most alternatives in it.
const MAX_CONSTRAINT: usize = 512;
const MAX_GROUPS: usize = 32;

/// A version; build metadata plays no part in comparisons.
#[derive(Clone, Debug)]
struct Version {
    major: u64,
    minor: u64,
    patch: u64,
    pre: String,
    metadata: String,
    original: String,
}

/// The parts of a version's text, before the numbers are read.
struct Parts<'t> {
    numbers: [&'t str; 3],
    pre: &'t str,
    metadata: &'t str,
}

impl<'t> Parts<'t> {
    /// Takes a text apart; none when it has another form. By hand, since every chart's version comes through here and an
    /// expression would take longer to build than the chart to render.
    fn of(text: &'t str) -> Option<Self> {
        let rest = text.strip_prefix('v').unwrap_or(text);
        let (rest, metadata) = match rest.split_once('+') {
            Some((rest, metadata)) => (rest, Some(metadata)),
            None => (rest, None),
        };
        let (core, pre) = match rest.split_once('-') {
            Some((core, pre)) => (core, Some(pre)),
            None => (rest, None),
        };
        let mut numbers = [""; 3];
        let mut places = numbers.iter_mut();
        for number in core.split('.') {
            let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
            *places.next().filter(|_| digits)? = number;
        }
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        let identifiers = |text: &str| {
            text.split('.')
                .all(|one| !one.is_empty() && one.bytes().all(plain))
        };
        (pre.is_none_or(identifiers) && metadata.is_none_or(identifiers)).then(|| Self {
            numbers,
            pre: pre.unwrap_or_default(),
            metadata: metadata.unwrap_or_default(),
        })
    }
}

impl Version {
    fn parse(text: &str) -> Result<Self> {
        if text.len() > MAX_VERSION {
            return Err(Error::message(format!(
                "version string is too long (max {MAX_VERSION} bytes)"
            )));
        }
        let Parts {
            numbers: [major, minor, patch],
            pre,
            metadata,
        } = Parts::of(text).ok_or_else(|| Error::message("invalid semantic version"))?;
        let segment = |digits: &str| {
            if digits.is_empty() {
                return Ok(0);
            }
            digits.parse::<u64>().map_err(|_| {
                let shown = quote::text(digits);
                Error::message(format!(
                    "error parsing version segment: strconv.ParseUint: parsing {shown}: value out of range"
                ))
            })
        };
        let (major, minor, patch) = (segment(major)?, segment(minor)?, segment(patch)?);
        let leading_zero = |part: &str| {
            part.len() > 1 && part.starts_with('0') && part.bytes().all(|byte| byte.is_ascii_digit())
        };
        if pre.split('.').any(leading_zero) {
            return Err(Error::message("version segment starts with 0"));
        }
        Ok(Self {
            major,
            minor,
            patch,
            pre: pre.to_owned(),
            metadata: metadata.to_owned(),
            original: text.to_owned(),
        })
    }

    fn compare(&self, other: &Self) -> Ordering {
        let numbers = |version: &Self| (version.major, version.minor, version.patch);
        numbers(self)
            .cmp(&numbers(other))
            .then_with(|| match (self.pre.is_empty(), other.pre.is_empty()) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => compare_pre(&self.pre, &other.pre),
            })
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        if !self.pre.is_empty() {
            write!(f, "-{}", self.pre)?;
        }
        if !self.metadata.is_empty() {
            write!(f, "+{}", self.metadata)?;
        }
        Ok(())
    }
}

fn compare_pre(a: &str, b: &str) -> Ordering {
    let mut left = a.split('.');
    let mut right = b.split('.');
    loop {
        let (a, b) = match (left.next(), right.next()) {
            (None, None) => return Ordering::Equal,
            (a, b) => (a.unwrap_or_default(), b.unwrap_or_default()),
        };
        if a == b {
            continue;
        }
        if a.is_empty() {
            return Ordering::Less;
        }
        if b.is_empty() {
            return Ordering::Greater;
        }
        return match (a.parse::<u64>(), b.parse::<u64>()) {
            (Err(_), Err(_)) => a.cmp(b),
            (Ok(_), Err(_)) => Ordering::Less,
            (Err(_), Ok(_)) => Ordering::Greater,
            (Ok(a), Ok(b)) if a > b => Ordering::Greater,
            _ => Ordering::Less,
        };
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    /// `=` or none: equal, or like a tilde when parts are missing.
    Equal,
    NotEqual,
    Greater,
    Less,
    GreaterEqual,
    LessEqual,
    Tilde,
    Caret,
}

/// One comparison of a constraint.
#[derive(Clone, Debug)]
struct Comparison {
    operator: Operator,
    version: Version,
    /// A part was missing or `x`.
    dirty: bool,
    minor_dirty: bool,
    patch_dirty: bool,
}

fn is_x(part: &str) -> bool {
    matches!(part.trim_start_matches('.'), "" | "x" | "X" | "*")
}

impl Comparison {
    fn of(term: &Term<'_>) -> Result<Self> {
        let operator = match term.operator {
            "!=" => Operator::NotEqual,
            ">" => Operator::Greater,
            "<" => Operator::Less,
            ">=" | "=>" => Operator::GreaterEqual,
            "<=" | "=<" => Operator::LessEqual,
            "~" | "~>" => Operator::Tilde,
            "^" => Operator::Caret,
            _ => Operator::Equal,
        };
        let VersionText {
            whole,
            major,
            minor,
            patch,
            pre,
        } = term.version;
        let (mut minor_dirty, mut patch_dirty) = (false, false);
        let version = if is_x(major) {
            format!("0.0.0{pre}")
        } else if is_x(minor) {
            minor_dirty = true;
            format!("{major}.0.0{pre}")
        } else if is_x(patch) {
            patch_dirty = true;
            format!("{major}{minor}.0{pre}")
        } else {
            whole.to_owned()
        };
        let dirty = is_x(major) || minor_dirty || patch_dirty;
        let version = Version::parse(&version).map_err(|_| Error::message("constraint parser error"))?;
        Ok(Self {
            operator,
            version,
            dirty,
            minor_dirty,
            patch_dirty,
        })
    }

    fn matches(&self, version: &Version, pre_releases: bool) -> bool {
        if !version.pre.is_empty() && !pre_releases {
            return false;
        }
        let own = &self.version;
        let order = version.compare(own);
        match self.operator {
            Operator::Equal if self.dirty => self.tilde(version),
            Operator::Equal => order == Ordering::Equal,
            Operator::NotEqual => self.differs(version),
            Operator::Greater if !self.dirty => order == Ordering::Greater,
            Operator::Greater => match version.major.cmp(&own.major) {
                Ordering::Greater => true,
                Ordering::Less => false,
                // ">11" wants 12, ">11.1" wants 11.2.
                Ordering::Equal if self.minor_dirty => false,
                Ordering::Equal if self.patch_dirty => version.minor > own.minor,
                Ordering::Equal => order == Ordering::Greater,
            },
            Operator::Less => order == Ordering::Less,
            Operator::GreaterEqual => order != Ordering::Less,
            Operator::LessEqual if !self.dirty => order != Ordering::Greater,
            Operator::LessEqual => {
                let beyond = version.major > own.major
                    || (version.major == own.major && version.minor > own.minor && !self.minor_dirty);
                !beyond
            }
            Operator::Tilde => self.tilde(version),
            Operator::Caret => self.caret(version),
        }
    }

    fn differs(&self, version: &Version) -> bool {
        let own = &self.version;
        if self.dirty {
            if own.major != version.major {
                return true;
            }
            if own.minor != version.minor && !self.minor_dirty {
                return true;
            }
            if self.minor_dirty {
                return false;
            }
            if own.patch != version.patch && !self.patch_dirty {
                return true;
            }
            if self.patch_dirty {
                return (!version.pre.is_empty() || !own.pre.is_empty())
                    && compare_pre(&version.pre, &own.pre) != Ordering::Equal;
            }
        }
        version.compare(own) != Ordering::Equal
    }

    fn tilde(&self, version: &Version) -> bool {
        let own = &self.version;
        if version.compare(own) == Ordering::Less {
            return false;
        }
        let any =
            own.major == 0 && own.minor == 0 && own.patch == 0 && !self.minor_dirty && !self.patch_dirty;
        any || (version.major == own.major && (version.minor == own.minor || self.minor_dirty))
    }

    fn caret(&self, version: &Version) -> bool {
        let own = &self.version;
        if version.compare(own) == Ordering::Less {
            return false;
        }
        if own.major > 0 || self.minor_dirty {
            return version.major == own.major;
        }
        if version.major > 0 {
            return false;
        }
        if own.minor > 0 || self.patch_dirty {
            return version.minor == own.minor;
        }
        version.minor == 0 && version.patch == own.patch
    }
}

/// Comparisons joined by "and" inside a group; one group must hold.
#[derive(Clone, Debug)]
struct Constraint {
    groups: Vec<(Vec<Comparison>, bool)>,
}

impl Constraint {
    fn parse(text: &str) -> Result<Self> {
        if text.len() > MAX_CONSTRAINT {
            return Err(Error::message(format!(
                "constraint string is too long (max {MAX_CONSTRAINT} bytes)"
            )));
        }
        // "1.2 - 1.4" stands for two comparisons.
        let given = text;
        let mut text = given.to_owned();
        for range in written::ranges(given) {
            let (from, to) = (range.from, range.to);
            text = text.replacen(range.whole, &format!(">= {from}, <= {to} "), 1);
        }
        let alternatives: Vec<&str> = text.split("||").collect();
        if alternatives.len() > MAX_GROUPS {
            return Err(Error::message(format!(
                "too many constraint groups (max {MAX_GROUPS})"
            )));
        }
        let mut groups = Vec::with_capacity(alternatives.len());
        for alternative in alternatives {
            let terms = written::terms(alternative).ok_or_else(|| {
                Error::message(format!("improper constraint: {}", quote::text(alternative)))
            })?;
            let comparisons = terms.iter().map(Comparison::of).collect::<Result<Vec<_>>>()?;
            let pre_releases = comparisons
                .iter()
                .any(|comparison| !comparison.version.pre.is_empty());
            groups.push((comparisons, pre_releases));
        }
        Ok(Self { groups })
    }

    fn matches(&self, version: &Version) -> bool {
        self.groups.iter().any(|(comparisons, pre_releases)| {
            comparisons
                .iter()
                .all(|comparison| comparison.matches(version, *pre_releases))
        })
    }
}

fn semver_compare(_: &mut Executor, args: &[Value]) -> Result {
    let constraint = string(args, 0);
    let Some(text) = constraint.as_str() else {
        return Err(Error::message(format!(
            "improper constraint: {}",
            quote::bytes(constraint.as_bytes())
        )));
    };
    let constraint = Constraint::parse(text)?;
    let version = Version::parse(&string(args, 1).to_text())?;
    Ok(Value::Bool(constraint.matches(&version)))
}

fn semver(_: &mut Executor, args: &[Value]) -> Result {
    Ok(Value::object(Version::parse(&string(args, 0).to_text())?))
}

const NO_ARGS: Signature = Signature::fixed(&[], Returns::Concrete);
const ONE_VERSION: Signature = Signature::fixed(&[Type::Object("*semver.Version")], Returns::Concrete);
const ONE_TEXT: Signature = Signature::fixed(&[Type::Str], Returns::Concrete);

impl Object for Version {
    fn type_name(&self) -> &'static str {
        "*semver.Version"
    }

    fn method(&self, name: &str) -> Option<Signature> {
        match name {
            "Major" | "Minor" | "Patch" | "Prerelease" | "Metadata" | "Original" | "String" | "IncPatch"
            | "IncMinor" | "IncMajor" => Some(NO_ARGS),
            "Compare" | "Equal" | "LessThan" | "GreaterThan" | "LessThanEqual" | "GreaterThanEqual" => {
                Some(ONE_VERSION)
            }
            "SetPrerelease" | "SetMetadata" => Some(ONE_TEXT),
            _ => None,
        }
    }

    fn call(&self, _: &mut Executor, name: &str, args: &[Value]) -> Result {
        let number = |number: u64| Ok(Value::Uint(UintKind::Uint64, number));
        match name {
            "Major" => return number(self.major),
            "Minor" => return number(self.minor),
            "Patch" => return number(self.patch),
            "Prerelease" => return Ok(Value::from(self.pre.as_str())),
            "Metadata" => return Ok(Value::from(self.metadata.as_str())),
            "Original" => return Ok(Value::from(self.original.as_str())),
            "String" => return Ok(Value::from(self.to_string())),
            "IncPatch" | "IncMinor" | "IncMajor" => return Ok(Value::object(self.next(name))),
            "SetPrerelease" | "SetMetadata" => return self.with_label(name, &string(args, 0).to_text()),
            _ => {}
        }
        let other = match args.first() {
            Some(Value::Object(other)) => other.as_any().downcast_ref::<Self>(),
            _ => None,
        };
        let Some(other) = other else {
            return Err(Error::message(
                "runtime error: invalid memory address or nil pointer dereference",
            ));
        };
        let order = self.compare(other);
        Ok(match name {
            "Compare" => Value::int(order as i64),
            "Equal" => Value::Bool(order == Ordering::Equal),
            "LessThan" => Value::Bool(order == Ordering::Less),
            "GreaterThan" => Value::Bool(order == Ordering::Greater),
            "LessThanEqual" => Value::Bool(order != Ordering::Greater),
            _ => Value::Bool(order != Ordering::Less),
        })
    }

    /// Nothing is exported, but `fmt` shows it under verbs that are not for texts.
    fn printed_fields(&self) -> Vec<(&'static str, Value)> {
        let number = |number: u64| Value::Uint(UintKind::Uint64, number);
        vec![
            ("major", number(self.major)),
            ("minor", number(self.minor)),
            ("patch", number(self.patch)),
            ("pre", self.pre.as_str().into()),
            ("metadata", self.metadata.as_str().into()),
            ("original", self.original.as_str().into()),
        ]
    }

    fn string(&self) -> Option<Str> {
        Some(self.to_string().into())
    }

    fn data(&self) -> Option<Value> {
        Some(Value::from(self.to_string()))
    }

    /// Sprig's copy leaves out what is not exported, which is everything.
    fn deep_copy(&self) -> Option<Value> {
        Some(Value::object(Self {
            major: 0,
            minor: 0,
            patch: 0,
            pre: String::new(),
            metadata: String::new(),
            original: String::new(),
        }))
    }

    fn equals(&self, other: &dyn Object) -> bool {
        other
            .as_any()
            .downcast_ref::<Self>()
            .is_some_and(|other| self.compare(other) == Ordering::Equal && self.original == other.original)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Version {
    fn next(&self, what: &str) -> Self {
        let mut next = self.clone();
        match what {
            "IncMajor" => (next.major, next.minor, next.patch) = (self.major.saturating_add(1), 0, 0),
            "IncMinor" => (next.minor, next.patch) = (self.minor.saturating_add(1), 0),
            // A pre-release comes before its own version.
            _ if self.pre.is_empty() => next.patch = self.patch.saturating_add(1),
            _ => {}
        }
        next.pre.clear();
        next.metadata.clear();
        next.relabelled(self)
    }

    fn relabelled(mut self, before: &Self) -> Self {
        let prefix = if before.original.starts_with('v') { "v" } else { "" };
        self.original = format!("{prefix}{self}");
        self
    }

    fn with_label(&self, what: &str, label: &str) -> Result {
        let mut next = self.clone();
        if what == "SetPrerelease" {
            next.pre = label.to_owned();
        } else {
            next.metadata = label.to_owned();
        }
        let next = next.relabelled(self);
        if Version::parse(&next.original).is_err() {
            let kind = if what == "SetPrerelease" {
                "prerelease"
            } else {
                "metadata"
            };
            return Err(Error::message(format!("invalid {kind} string")));
        }
        Ok(Value::object(next))
    }
}
