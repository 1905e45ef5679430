//! How flags are written where Helm reads them: Go's pflag, whose forms clap does not have by itself.

use std::str::FromStr;

use clap::builder::ValueParser;
use clap::{ArgAction, Command};

/// A yes or no: the flag alone, or with one of Go's words behind `=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Switch(pub(super) bool);

impl FromStr for Switch {
    type Err = String;

    /// As Go's `strconv.ParseBool`.
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(Self(true)),
            "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(Self(false)),
            _ => Err("expected true or false".to_owned()),
        }
    }
}

/// Whether a word of Go's means yes.
pub(super) fn is_true(word: &str) -> bool {
    Switch::from_str(word) == Ok(Switch(true))
}

/// Several texts in one argument, separated by commas and quoted as in a CSV file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fields(pub(super) Vec<String>);

impl FromStr for Fields {
    type Err = String;

    /// The first record, as Go's `encoding/csv` reads it.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut fields = Vec::new();
        let mut rest = text.trim_start_matches(['\r', '\n']);
        if rest.is_empty() {
            return Ok(Self(fields));
        }
        loop {
            let (field, after) = match rest.strip_prefix('"') {
                Some(quoted) => quoted_field(quoted)?,
                None => {
                    let end = rest.find([',', '\n']).unwrap_or(rest.len());
                    let (field, after) = rest.split_at(end);
                    let field = if after.starts_with('\n') {
                        field.trim_end_matches('\r')
                    } else {
                        field
                    };
                    if field.contains('"') {
                        return Err("a quote inside of a field that does not start with one".to_owned());
                    }
                    (field.to_owned(), after)
                }
            };
            fields.push(field);
            match after.strip_prefix(',') {
                Some(next) => rest = next,
                None => return Ok(Self(fields)),
            }
        }
    }
}

/// What stands before the closing quote, and what follows it.
fn quoted_field(text: &str) -> Result<(String, &str), String> {
    let mut field = String::new();
    let mut rest = text;
    loop {
        let Some((before, after)) = rest.split_once('"') else {
            return Err("a quote is not closed".to_owned());
        };
        field.push_str(before);
        match after.strip_prefix('"') {
            Some(next) => {
                field.push('"');
                rest = next;
            }
            None if after.is_empty() || after.starts_with([',', '\n']) || after.starts_with("\r\n") => {
                return Ok((field, after));
            }
            None => return Err("text behind a closing quote".to_owned()),
        }
    }
}

/// `key=value` pairs in one argument.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Pairs(pub(super) Vec<(String, String)>);

impl FromStr for Pairs {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = match text.matches('=').count() {
            0 => return Err(format!("{text} must be formatted as key=value")),
            1 => vec![text.trim_matches('"').to_owned()],
            _ => Fields::from_str(text)?.0,
        };
        let pair = |part: String| match part.split_once('=') {
            Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
            None => Err(format!("{part} must be formatted as key=value")),
        };
        parts.into_iter().map(pair).collect::<Result<_, _>>().map(Self)
    }
}

/// A length of time as Go writes it: `300s`, `1h30m`, `1.5h`. Only its form is looked at: nothing here waits for a
/// cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GoDuration;

impl FromStr for GoDuration {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused =
            || format!("invalid duration {text:?}: expected a number and a unit such as 300s or 1h30m");
        let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
        if rest == "0" {
            return Ok(Self);
        }
        if rest.is_empty() {
            return Err(refused());
        }
        while !rest.is_empty() {
            let number = rest
                .find(|c: char| !c.is_ascii_digit() && c != '.')
                .ok_or_else(refused)?;
            let (digits, after) = rest.split_at(number);
            if !digits.contains(|c: char| c.is_ascii_digit()) || digits.matches('.').count() > 1 {
                return Err(refused());
            }
            let unit = after
                .find(|c: char| c.is_ascii_digit() || c == '.')
                .unwrap_or(after.len());
            let (unit, next) = after.split_at(unit);
            if !matches!(unit, "ns" | "us" | "µs" | "μs" | "ms" | "s" | "m" | "h") {
                return Err(refused());
            }
            rest = next;
        }
        Ok(Self)
    }
}

/// What `--wait` can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WaitStrategy;

impl FromStr for WaitStrategy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "watcher" | "hookOnly" | "legacy" | "true" | "false" => Ok(Self),
            _ => Err("expected watcher, hookOnly or legacy".to_owned()),
        }
    }
}

/// Makes every flag of a command behave as pflag's: the last of several wins, a value may start with a hyphen, and a
/// switch may have a value behind `=`.
pub(super) fn as_pflag(command: Command) -> Command {
    let switch = ValueParser::from(Switch::from_str).type_id();
    command.args_override_self(true).mut_args(|arg| {
        if arg.is_positional() || !matches!(arg.get_action(), ArgAction::Set | ArgAction::Append) {
            return arg;
        }
        if arg.get_value_parser().type_id() != switch {
            return arg.allow_hyphen_values(true);
        }
        let arg = if arg.get_default_values().is_empty() {
            arg.default_value("false")
        } else {
            arg
        };
        arg.required(false)
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true")
            .value_name("BOOL")
            .hide_default_value(true)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_as_a_csv_record() {
        let fields = |text: &str| Fields::from_str(text).map(|fields| fields.0);
        assert_eq!(fields("a,b"), Ok(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(
            fields("\"a,b\",\"c\"\"d\","),
            Ok(vec!["a,b".to_owned(), "c\"d".to_owned(), String::new()])
        );
        assert_eq!(fields(""), Ok(Vec::new()));
        assert_eq!(fields("a\r\nb"), Ok(vec!["a".to_owned()]));
        for wrong in ["a,\"b,c", "a\"b", "\"a\"b"] {
            assert!(fields(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn pairs_need_a_key_and_a_value() {
        let pairs = |text: &str| Pairs::from_str(text).map(|pairs| pairs.0);
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(pairs("a=b"), Ok(vec![pair("a", "b")]));
        assert_eq!(pairs("a=b,c"), Ok(vec![pair("a", "b,c")]));
        assert_eq!(pairs("a=b,c=d=e"), Ok(vec![pair("a", "b"), pair("c", "d=e")]));
        assert!(pairs("a").is_err() && pairs("a=b,c=d,e").is_err());
    }

    #[test]
    fn durations_have_units() {
        for good in ["0", "5m0s", "-1.5h", "300ms", "1h2m3s", ".5s", "1µs"] {
            assert_eq!(GoDuration::from_str(good), Ok(GoDuration), "{good}");
        }
        for wrong in ["", "5", "x", "1d", "1..5s", ".s", "s", "5m "] {
            assert!(GoDuration::from_str(wrong).is_err(), "{wrong}");
        }
    }
}
