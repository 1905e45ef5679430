//! Regular expressions by Go's rules (RE2), matched by the regex crate.

mod compiled;
mod translate;

use std::borrow::Cow;
use std::ops::Range;
use std::rc::Rc;

use regex::bytes::{Captures, Match, Regex};

use super::args::{INT, STR, int, string, strings, text};
use crate::Error;
use crate::exec::Executor;
use crate::fmt::quote;
use crate::function::Native;
use crate::value::{LIST_STR, List, Str, Value};

pub(crate) use compiled::{OfRender, OfTemplates};

pub(super) static TABLE: &[Native] = &[
    Native::concrete("regexMatch", &[STR, STR], false, regex_match),
    Native::concrete("mustRegexMatch", &[STR, STR], false, must_regex_match),
    Native::concrete("regexFind", &[STR, STR], false, regex_find),
    Native::concrete("mustRegexFind", &[STR, STR], false, must_regex_find),
    Native::concrete("regexFindAll", &[STR, STR, INT], false, regex_find_all),
    Native::concrete("mustRegexFindAll", &[STR, STR, INT], false, must_regex_find_all),
    Native::concrete("regexReplaceAll", &[STR, STR, STR], false, regex_replace_all),
    Native::concrete(
        "mustRegexReplaceAll",
        &[STR, STR, STR],
        false,
        must_regex_replace_all,
    ),
    Native::concrete(
        "regexReplaceAllLiteral",
        &[STR, STR, STR],
        false,
        regex_replace_all_literal,
    ),
    Native::concrete(
        "mustRegexReplaceAllLiteral",
        &[STR, STR, STR],
        false,
        must_regex_replace_all_literal,
    ),
    Native::concrete("regexSplit", &[STR, STR, INT], false, regex_split),
    Native::concrete("mustRegexSplit", &[STR, STR, INT], false, must_regex_split),
    Native::concrete("regexQuoteMeta", &[STR], false, regex_quote_meta),
];

type Result<T = Value> = std::result::Result<T, Error>;

/// For the `must` forms, which return the error.
fn must(executor: &mut Executor, args: &[Value]) -> Result<Rc<Regex>> {
    executor
        .regex(&string(args, 0))
        .map_err(|reason| Error::message(&*reason))
}

/// For the other forms, which panic in Go: the text says so.
fn plain(executor: &mut Executor, args: &[Value]) -> Result<Rc<Regex>> {
    let source = string(args, 0);
    executor.regex(&source).map_err(|error| {
        let bytes = source.as_bytes();
        let shown = if quote::can_backquote(bytes) {
            format!("`{source}`")
        } else {
            quote::bytes(bytes)
        };
        Error::message(format!("regexp: Compile({shown}): {error}"))
    })
}

/// A text as the regex crate can match it: in Go a byte that is no UTF-8 matches as U+FFFD, there as nothing at all.
struct Haystack<'s> {
    text: Cow<'s, [u8]>,
    /// Where each byte of `text` comes from, and the end; none where all are in their own place.
    origins: Option<Vec<usize>>,
}

impl<'s> Haystack<'s> {
    fn of(source: &'s [u8]) -> Self {
        if std::str::from_utf8(source).is_ok() {
            return Self {
                text: Cow::Borrowed(source),
                origins: None,
            };
        }
        let (mut text, mut origins, mut at) = (Vec::new(), Vec::new(), 0);
        for (c, width) in crate::unicode::runes(source) {
            text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            origins.resize(text.len(), at);
            at += width;
        }
        origins.push(at);
        Self {
            text: Cow::Owned(text),
            origins: Some(origins),
        }
    }

    /// The place of a match in the source.
    fn place(&self, found: &Match<'_>) -> Range<usize> {
        let origin = |at: usize| match &self.origins {
            None => at,
            Some(origins) => origins.get(at).or_else(|| origins.last()).copied().unwrap_or(at),
        };
        origin(found.start())..origin(found.end())
    }

    fn matches(&self, regex: &Regex) -> impl Iterator<Item = Range<usize>> {
        regex
            .find_iter(&self.text)
            .filter(|found| stands_between_runes(&self.text, found))
            .map(|found| self.place(&found))
    }

    /// Places of the groups of each match, that of the whole first.
    fn groups(&self, regex: &Regex) -> impl Iterator<Item = Vec<Option<Range<usize>>>> {
        let between = |found: &Captures<'_>| {
            found
                .get(0)
                .is_some_and(|whole| stands_between_runes(&self.text, &whole))
        };
        regex.captures_iter(&self.text).filter(between).map(|found| {
            found
                .iter()
                .map(|group| group.map(|group| self.place(&group)))
                .collect()
        })
    }
}

fn regex_match(executor: &mut Executor, args: &[Value]) -> Result {
    let matched = executor
        .regex(&string(args, 0))
        .is_ok_and(|regex| regex.is_match(&Haystack::of(text(args, 1)).text));
    Ok(Value::Bool(matched))
}

fn must_regex_match(executor: &mut Executor, args: &[Value]) -> Result {
    let regex = must(executor, args)?;
    Ok(Value::Bool(regex.is_match(&Haystack::of(text(args, 1)).text)))
}

/// Whether a match may stand here: the regex crate finds empty ones inside a rune, Go does not.
fn stands_between_runes(source: &[u8], found: &Match<'_>) -> bool {
    if !found.is_empty() {
        return true;
    }
    let at = found.start();
    let start = at.saturating_sub(3);
    // Inside a rune when one that begins before this place ends behind it.
    (start..at).all(|from| {
        let (_, width) = crate::unicode::decode(source.get(from..).unwrap_or_default());
        from + width <= at
    })
}

fn find(regex: &Regex, args: &[Value]) -> Value {
    let source = text(args, 1);
    let haystack = Haystack::of(source);
    let found = regex.find(&haystack.text).map(|found| haystack.place(&found));
    Value::Str(
        found
            .and_then(|place| source.get(place))
            .map_or(Str::EMPTY, Str::new),
    )
}

fn regex_find(executor: &mut Executor, args: &[Value]) -> Result {
    Ok(find(&*plain(executor, args)?, args))
}

fn must_regex_find(executor: &mut Executor, args: &[Value]) -> Result {
    Ok(find(&*must(executor, args)?, args))
}

/// A limit below zero means all.
fn limit(args: &[Value], index: usize) -> usize {
    usize::try_from(int(args, index)).unwrap_or(usize::MAX)
}

fn find_all(regex: &Regex, args: &[Value]) -> Value {
    let source = text(args, 1);
    let found: Vec<Str> = Haystack::of(source)
        .matches(regex)
        .take(limit(args, 2))
        .map(|place| Str::new(source.get(place).unwrap_or_default()))
        .collect();
    if found.is_empty() {
        Value::List(List::nil(&LIST_STR))
    } else {
        strings(found)
    }
}

fn regex_find_all(executor: &mut Executor, args: &[Value]) -> Result {
    Ok(find_all(&*plain(executor, args)?, args))
}

fn must_regex_find_all(executor: &mut Executor, args: &[Value]) -> Result {
    Ok(find_all(&*must(executor, args)?, args))
}

/// Go's `$name`, `${name}` and `$$`; anything else after a dollar sign stays as it is.
fn expand(template: &[u8], regex: &Regex, source: &[u8], groups: &[Option<Range<usize>>], out: &mut Vec<u8>) {
    let mut rest = template;
    while let Some(at) = memchr::memchr(b'$', rest) {
        out.extend_from_slice(rest.get(..at).unwrap_or_default());
        rest = rest.get(at + 1..).unwrap_or_default();
        if let Some(tail) = rest.strip_prefix(b"$") {
            out.push(b'$');
            rest = tail;
            continue;
        }
        let Some((name, tail)) = group_name(rest) else {
            out.push(b'$');
            continue;
        };
        rest = tail;
        let is_number =
            name.bytes().all(|byte| byte.is_ascii_digit()) && (name.len() == 1 || !name.starts_with('0'));
        let index = if is_number {
            name.parse().ok()
        } else {
            regex.capture_names().position(|known| known == Some(name))
        };
        let place = index
            .and_then(|index: usize| groups.get(index))
            .cloned()
            .flatten();
        out.extend_from_slice(place.and_then(|place| source.get(place)).unwrap_or_default());
    }
    out.extend_from_slice(rest);
}

/// The name after a dollar sign and what follows it.
fn group_name(source: &[u8]) -> Option<(&str, &[u8])> {
    let (braced, source) = match source.strip_prefix(b"{") {
        Some(inner) => (true, inner),
        None => (false, source),
    };
    let is_word = |c: char| c == '_' || crate::unicode::is_letter(c) || crate::unicode::is_digit(c);
    let length: usize = crate::unicode::runes(source)
        .take_while(|(c, _)| is_word(*c))
        .map(|(_, width)| width)
        .sum();
    let (name, tail) = source.split_at_checked(length)?;
    let tail = if braced { tail.strip_prefix(b"}")? } else { tail };
    let name = std::str::from_utf8(name).ok().filter(|name| !name.is_empty())?;
    Some((name, tail))
}

fn replace(executor: &mut Executor, regex: &Regex, args: &[Value], literal: bool) -> Result {
    let (source, replacement) = (text(args, 1), text(args, 2));
    let mut out = Vec::with_capacity(source.len());
    let mut from = 0;
    let haystack = Haystack::of(source);
    for groups in haystack.groups(regex) {
        let Some(Some(whole)) = groups.first() else {
            continue;
        };
        out.extend_from_slice(source.get(from..whole.start).unwrap_or_default());
        if literal {
            out.extend_from_slice(replacement);
        } else {
            expand(replacement, regex, source, &groups, &mut out);
        }
        from = whole.end;
        if out.len() > executor.limits().output_bytes {
            return Err(Error::limit(crate::Limit::OutputBytes(
                executor.limits().output_bytes,
            )));
        }
    }
    out.extend_from_slice(source.get(from..).unwrap_or_default());
    Ok(Value::from(out))
}

fn regex_replace_all(executor: &mut Executor, args: &[Value]) -> Result {
    let regex = plain(executor, args)?;
    replace(executor, &regex, args, false)
}

fn must_regex_replace_all(executor: &mut Executor, args: &[Value]) -> Result {
    let regex = must(executor, args)?;
    replace(executor, &regex, args, false)
}

fn regex_replace_all_literal(executor: &mut Executor, args: &[Value]) -> Result {
    let regex = plain(executor, args)?;
    replace(executor, &regex, args, true)
}

fn must_regex_replace_all_literal(executor: &mut Executor, args: &[Value]) -> Result {
    let regex = must(executor, args)?;
    replace(executor, &regex, args, true)
}

fn split(regex: &Regex, args: &[Value]) -> Value {
    let source = text(args, 1);
    let most = limit(args, 2);
    if most == 0 {
        return Value::List(List::nil(&LIST_STR));
    }
    if source.is_empty() && !text(args, 0).is_empty() {
        return strings([Str::EMPTY]);
    }
    let mut parts = Vec::new();
    let (mut start, mut end) = (0, 0);
    for found in Haystack::of(source).matches(regex).take(most) {
        if parts.len() + 1 == most {
            break;
        }
        end = found.start;
        if found.end != 0 {
            parts.push(Str::new(source.get(start..end).unwrap_or_default()));
        }
        start = found.end;
    }
    if end != source.len() {
        parts.push(Str::new(source.get(start..).unwrap_or_default()));
    }
    strings(parts)
}

fn regex_split(executor: &mut Executor, args: &[Value]) -> Result {
    Ok(split(&*plain(executor, args)?, args))
}

fn must_regex_split(executor: &mut Executor, args: &[Value]) -> Result {
    Ok(split(&*must(executor, args)?, args))
}

fn regex_quote_meta(_: &mut Executor, args: &[Value]) -> Result {
    let mut out = Vec::with_capacity(text(args, 0).len() + 8);
    for byte in text(args, 0) {
        if br"\.+*?()|[]{}^$".contains(byte) {
            out.push(b'\\');
        }
        out.push(*byte);
    }
    Ok(Value::from(out))
}
