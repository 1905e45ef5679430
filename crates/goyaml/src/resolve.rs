//! What a plain scalar means: go-yaml's implicit types of YAML 1.1.
//!
//! Rules: `resolve.go` of `go.yaml.in/yaml` v2.4.4 (reading, `toYaml`) and v3.0.5 (`toYamlPretty`).

use crate::Error;
use crate::number;

mod timestamp;

/// The prefix of the tags that YAML itself defines.
const YAML_TAG_PREFIX: &str = "tag:yaml.org,2002:";

/// Which go-yaml decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// go.yaml.in/yaml v2: `yes`, `on`, `y` and their kin are booleans.
    V2,
    /// go.yaml.in/yaml v3: only `true` and `false` are booleans.
    V3,
}

/// The meaning of a scalar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Resolved {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(f64),
    /// Kept as text when read, but quoted when a string of this shape is written.
    Timestamp,
    String,
}

impl Resolved {
    /// The short tag that go-yaml's messages use.
    fn tag(self) -> &'static str {
        match self {
            Resolved::Null => "!!null",
            Resolved::Bool(_) => "!!bool",
            Resolved::Int(_) | Resolved::Uint(_) => "!!int",
            Resolved::Float(_) => "!!float",
            Resolved::Timestamp => "!!timestamp",
            Resolved::String => "!!str",
        }
    }
}

/// The meaning of an untagged plain scalar.
pub(crate) fn resolve(text: &str, dialect: Dialect) -> Resolved {
    resolve_as(text, dialect, true)
}

/// The meaning of a scalar under an explicit tag.
pub(crate) enum Tagged {
    /// A value of a type that YAML defines.
    Value(Resolved),
    /// `!!binary`: the text is base64.
    Binary,
}

/// The meaning of a scalar that carries `tag`. An unknown tag makes it a string.
/// Fails as go-yaml does (`cannot decode !!str `x` as a !!int`).
pub(crate) fn resolve_tagged(text: &str, tag: &str, dialect: Dialect) -> Result<Tagged, Error> {
    let short = tag.strip_prefix(YAML_TAG_PREFIX);
    let wanted = match short {
        Some("str") => return Ok(Tagged::Value(Resolved::String)),
        Some("binary") => return Ok(Tagged::Binary),
        Some(name @ ("bool" | "int" | "float" | "null" | "timestamp")) => name,
        _ => return Ok(Tagged::Value(Resolved::String)),
    };
    let found = resolve_as(text, dialect, wanted == "timestamp");
    if found.tag().strip_prefix("!!") == Some(wanted) {
        return Ok(Tagged::Value(found));
    }
    if let (Resolved::Int(i), "float") = (found, wanted) {
        #[allow(clippy::cast_precision_loss)]
        return Ok(Tagged::Value(Resolved::Float(i as f64)));
    }
    Err(Error::yaml(
        None,
        format!("cannot decode {} `{text}` as a !!{wanted}", found.tag()),
    ))
}

fn resolve_as(text: &str, dialect: Dialect, timestamps: bool) -> Resolved {
    let Some(first) = text.as_bytes().first() else {
        return Resolved::Null;
    };
    match first {
        b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~' => {
            word(text, dialect).unwrap_or(Resolved::String)
        }
        // go-yaml v2 and v3 list `<<` among the words but never look it up: `<` is no hint. Only mapping keys merge.
        b'.' => special_float(text)
            .or_else(|| number::parse_point_float(text))
            .map_or(Resolved::String, Resolved::Float),
        b'+' | b'-' | b'0'..=b'9' => numeric(text, dialect, timestamps),
        _ => Resolved::String,
    }
}

/// Null and booleans.
fn word(text: &str, dialect: Dialect) -> Option<Resolved> {
    Some(match text {
        "~" | "null" | "Null" | "NULL" => Resolved::Null,
        "true" | "True" | "TRUE" => Resolved::Bool(true),
        "false" | "False" | "FALSE" => Resolved::Bool(false),
        _ if dialect == Dialect::V2 => Resolved::Bool(old_bool(text)?),
        _ => return None,
    })
}

/// The booleans that YAML 1.1 has beyond `true` and `false`.
pub(crate) fn old_bool(text: &str) -> Option<bool> {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Some(true),
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => Some(false),
        _ => None,
    }
}

fn special_float(text: &str) -> Option<f64> {
    match text {
        ".nan" | ".NaN" | ".NAN" => Some(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Some(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

/// Longest text worth a look as a number or timestamp before the cheap test for letters.
const SHORT_NUMBER: usize = 8;

fn numeric(text: &str, dialect: Dialect, timestamps: bool) -> Resolved {
    // Most texts that begin with a digit are versions, addresses, quantities: one look ends the search.
    if text.len() > SHORT_NUMBER && text.bytes().any(|b| !could_be_numeric(b)) {
        return Resolved::String;
    }
    if let Some(f) = special_float(text) {
        return Resolved::Float(f);
    }
    if timestamps && timestamp::is_timestamp(text) {
        return Resolved::Timestamp;
    }
    let without_underscores;
    let plain = if text.contains('_') {
        without_underscores = text.replace('_', "");
        &without_underscores
    } else {
        text
    };
    if let Some(i) = number::parse_int(plain) {
        return Resolved::Int(i);
    }
    if let Some(u) = number::parse_uint(plain) {
        return Resolved::Uint(u);
    }
    if number::is_yaml_float(plain)
        && let Some(f) = number::parse_float(plain)
    {
        return Resolved::Float(f);
    }
    // Leftovers of go-yaml's own prefix handling: they accept a sign after the prefix (`0b+1`).
    prefixed(plain, 'b', 2)
        .or_else(|| {
            if dialect == Dialect::V3 {
                prefixed(plain, 'o', 8)
            } else {
                None
            }
        })
        .unwrap_or(Resolved::String)
}

fn prefixed(plain: &str, letter: char, radix: u32) -> Option<Resolved> {
    let strip = |text: &str| {
        text.strip_prefix('0')
            .and_then(|t| t.strip_prefix(letter))
            .map(str::to_owned)
    };
    if let Some(digits) = strip(plain) {
        return number::parse_int_radix(&digits, radix)
            .map(Resolved::Int)
            .or_else(|| number::parse_uint_radix(&digits, radix).map(Resolved::Uint));
    }
    let digits = strip(plain.strip_prefix('-')?)?;
    number::parse_int_radix(&format!("-{digits}"), radix).map(Resolved::Int)
}

/// Characters of numbers (any base), of special floats and of timestamps.
fn could_be_numeric(b: u8) -> bool {
    matches!(b, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F' | b'x' | b'X' | b'o' | b'O' | b't' | b'T' | b'Z' | b'_' | b'+' | b'-' | b'.' | b',' | b':' | b' ')
}

/// Whether a string looks like a base 60 number, which YAML 1.1 readers would take for one.
/// go-yaml never reads such numbers but quotes them: `[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?`.
pub(crate) fn is_base60(text: &str) -> bool {
    let mut rest = text.as_bytes();
    if let [b'-' | b'+', tail @ ..] = rest {
        rest = tail;
    }
    let [b'0'..=b'9', tail @ ..] = rest else {
        return false;
    };
    rest = skip_while(tail, |b| b.is_ascii_digit() || b == b'_');
    let mut groups = 0usize;
    while let [b':', tail @ ..] = rest {
        rest = match tail {
            [b'0'..=b'5', b'0'..=b'9', tail @ ..] | [b'0'..=b'9', tail @ ..] => tail,
            _ => return false,
        };
        groups += 1;
    }
    if groups == 0 {
        return false;
    }
    if let [b'.', tail @ ..] = rest {
        rest = skip_while(tail, |b| b.is_ascii_digit() || b == b'_');
    }
    rest.is_empty()
}

fn skip_while(bytes: &[u8], keep: impl Fn(u8) -> bool) -> &[u8] {
    let count = bytes.iter().take_while(|b| keep(**b)).count();
    bytes.get(count..).unwrap_or(&[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_1_1_words_are_booleans_only_in_v2() {
        assert_eq!(resolve("yes", Dialect::V2), Resolved::Bool(true));
        assert_eq!(resolve("yes", Dialect::V3), Resolved::String);
        assert_eq!(resolve("tRue", Dialect::V2), Resolved::String);
        assert_eq!(resolve("", Dialect::V2), Resolved::Null);
        assert_eq!(resolve("<<", Dialect::V2), Resolved::String);
    }

    #[test]
    fn numbers_in_every_base() {
        assert_eq!(resolve("08", Dialect::V2), Resolved::Float(8.0));
        assert_eq!(resolve("1_000", Dialect::V2), Resolved::Int(1000));
        assert_eq!(resolve("0b1010_0111", Dialect::V2), Resolved::Int(167));
        assert_eq!(resolve("0b+1", Dialect::V2), Resolved::Int(1));
        assert_eq!(resolve("0o+1", Dialect::V2), Resolved::String);
        assert_eq!(resolve("0o+1", Dialect::V3), Resolved::Int(1));
        assert_eq!(
            resolve("9223372036854775808", Dialect::V2),
            Resolved::Uint(9_223_372_036_854_775_808)
        );
        assert_eq!(resolve("1e400", Dialect::V2), Resolved::String);
        assert_eq!(resolve("-.inf", Dialect::V2), Resolved::Float(f64::NEG_INFINITY));
    }

    #[test]
    fn base_60_shapes() {
        assert!(is_base60("1:20") && is_base60("190:20:30.15") && is_base60("+1_0:5"));
        assert!(!is_base60("1:60") && !is_base60("12") && !is_base60("1:") && !is_base60("a:1"));
        assert!(!is_base60("1:2:3:"));
    }

    #[test]
    fn a_tag_that_does_not_fit_is_an_error() {
        let error = resolve_tagged("x", "tag:yaml.org,2002:null", Dialect::V2)
            .err()
            .unwrap();
        assert_eq!(
            error.to_string(),
            "error converting YAML to JSON: yaml: cannot decode !!str `x` as a !!null"
        );
    }
}
