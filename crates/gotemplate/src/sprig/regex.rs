//! Regular expressions by Go's rules (RE2), matched by the regex crate.

mod translate;

use std::collections::HashMap;
use std::rc::Rc;

use regex::bytes::{Captures, Match, Regex, RegexBuilder};

use super::args::{INT, STR, int, string, strings, text};
use crate::Error;
use crate::exec::Executor;
use crate::fmt::quote;
use crate::function::Native;
use crate::value::{LIST_STR, List, Str, Value};

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

/// Most expressions that one render keeps compiled; charts have a handful, generated ones must not pile up.
const MAX_CACHED: usize = 256;
/// Memory that one compiled expression may take.
const MAX_COMPILED: usize = 4 << 20;

/// Compiled expressions of one render, or Go's reason why one does not compile.
#[derive(Debug, Default)]
pub(crate) struct RegexCache(HashMap<Str, std::result::Result<Rc<Regex>, String>>);

impl RegexCache {
    fn get(&mut self, source: &Str) -> std::result::Result<Rc<Regex>, String> {
        if let Some(known) = self.0.get(source) {
            return known.clone();
        }
        let compiled = compile(source).map(Rc::new);
        if self.0.len() >= MAX_CACHED {
            self.0.clear();
        }
        self.0.insert(source.clone(), compiled.clone());
        compiled
    }
}

fn compile(source: &Str) -> std::result::Result<Regex, String> {
    let too_large = || {
        let shown = source.to_text();
        format!("error parsing regexp: expression too large: `{shown}`")
    };
    let pattern =
        translate::translate(source.as_bytes()).map_err(|error| format!("error parsing regexp: {error}"))?;
    RegexBuilder::new(&pattern)
        .size_limit(MAX_COMPILED)
        .build()
        .map_err(|_| too_large())
}

/// For the `must` forms, which return the error.
fn must(executor: &mut Executor, args: &[Value]) -> Result<Rc<Regex>> {
    executor.regexes.get(&string(args, 0)).map_err(Error::message)
}

/// For the other forms, which panic in Go: the text says so.
fn plain(executor: &mut Executor, args: &[Value]) -> Result<Rc<Regex>> {
    let source = string(args, 0);
    executor.regexes.get(&source).map_err(|error| {
        let bytes = source.as_bytes();
        let shown = if quote::can_backquote(bytes) {
            format!("`{source}`")
        } else {
            quote::bytes(bytes)
        };
        Error::message(format!("regexp: Compile({shown}): {error}"))
    })
}

fn regex_match(executor: &mut Executor, args: &[Value]) -> Result {
    let matched = executor
        .regexes
        .get(&string(args, 0))
        .is_ok_and(|regex| regex.is_match(text(args, 1)));
    Ok(Value::Bool(matched))
}

fn must_regex_match(executor: &mut Executor, args: &[Value]) -> Result {
    Ok(Value::Bool(must(executor, args)?.is_match(text(args, 1))))
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

fn matches<'r, 's>(regex: &'r Regex, source: &'s [u8]) -> impl Iterator<Item = Match<'s>> + use<'r, 's> {
    regex
        .find_iter(source)
        .filter(|found| stands_between_runes(source, found))
}

fn captures<'r, 's>(regex: &'r Regex, source: &'s [u8]) -> impl Iterator<Item = Captures<'s>> + use<'r, 's> {
    let between = |found: &Captures<'s>| {
        found
            .get(0)
            .is_some_and(|whole| stands_between_runes(source, &whole))
    };
    regex.captures_iter(source).filter(between)
}

fn find(regex: &Regex, args: &[Value]) -> Value {
    Value::Str(
        regex
            .find(text(args, 1))
            .map_or(Str::EMPTY, |found| Str::new(found.as_bytes())),
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
    let found: Vec<Str> = matches(regex, text(args, 1))
        .take(limit(args, 2))
        .map(|found| Str::new(found.as_bytes()))
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
fn expand(template: &[u8], captures: &Captures<'_>, out: &mut Vec<u8>) {
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
        let group = if is_number {
            name.parse().ok().and_then(|index: usize| captures.get(index))
        } else {
            captures.name(name)
        };
        out.extend_from_slice(group.map_or(&[], |group| group.as_bytes()));
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
    for captures in captures(regex, source) {
        let Some(whole) = captures.get(0) else { continue };
        out.extend_from_slice(source.get(from..whole.start()).unwrap_or_default());
        if literal {
            out.extend_from_slice(replacement);
        } else {
            expand(replacement, &captures, &mut out);
        }
        from = whole.end();
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
    for found in matches(regex, source).take(most) {
        if parts.len() + 1 == most {
            break;
        }
        end = found.start();
        if found.end() != 0 {
            parts.push(Str::new(source.get(start..end).unwrap_or_default()));
        }
        start = found.end();
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
