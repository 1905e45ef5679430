//! Strings: trimming, cutting, quoting, indenting.

use super::args::{ANY, INT, STR, any, int, rest, string, text};
use crate::Error;
use crate::exec::Executor;
use crate::fmt::{quote as go_quote, sprint, strval};
use crate::function::Native;
use crate::unicode::{trim_left, trim_right, trim_space};
use crate::value::{Str, Value};

pub(super) static TABLE: &[Native] = &[
    Native::concrete("trim", &[STR], false, trim),
    Native::concrete("trimAll", &[STR, STR], false, trim_all),
    Native::concrete("trimall", &[STR, STR], false, trim_all),
    Native::concrete("trimSuffix", &[STR, STR], false, trim_suffix),
    Native::concrete("trimPrefix", &[STR, STR], false, trim_prefix),
    Native::concrete("contains", &[STR, STR], false, contains),
    Native::concrete("hasPrefix", &[STR, STR], false, has_prefix),
    Native::concrete("hasSuffix", &[STR, STR], false, has_suffix),
    Native::concrete("quote", &[ANY], true, quote),
    Native::concrete("squote", &[ANY], true, squote),
    Native::concrete("cat", &[ANY], true, cat),
    Native::concrete("indent", &[INT, STR], false, indent),
    Native::concrete("nindent", &[INT, STR], false, nindent),
    Native::concrete("replace", &[STR, STR, STR], false, replace),
    Native::concrete("plural", &[STR, STR, INT], false, plural),
    Native::concrete("trunc", &[INT, STR], false, trunc),
    Native::concrete("substr", &[INT, INT, STR], false, substr),
    Native::concrete("repeat", &[INT, STR], false, repeat),
    Native::concrete("nospace", &[STR], false, no_space),
    Native::concrete("abbrev", &[INT, STR], false, abbrev),
    Native::concrete("abbrevboth", &[INT, INT, STR], false, abbrev_both),
    Native::concrete("wrap", &[INT, STR], false, wrap),
    Native::concrete("wrapWith", &[INT, STR, STR], false, wrap_with),
    Native::concrete("toString", &[ANY], false, to_string),
    Native::concrete("hello", &[], false, hello),
];

type Result = std::result::Result<Value, Error>;

fn trim(_: &mut Executor, args: &[Value]) -> Result {
    Ok(Value::Str(Str::new(trim_space(text(args, 0)))))
}

fn trim_all(_: &mut Executor, args: &[Value]) -> Result {
    let cutset: Vec<char> = crate::unicode::runes(text(args, 0)).map(|(c, _)| c).collect();
    let cut = |c: char| cutset.contains(&c);
    Ok(Value::Str(Str::new(trim_right(
        trim_left(text(args, 1), cut),
        cut,
    ))))
}

fn trim_suffix(_: &mut Executor, args: &[Value]) -> Result {
    Ok(match text(args, 1).strip_suffix(text(args, 0)) {
        Some(trimmed) => Value::Str(Str::new(trimmed)),
        None => Value::Str(string(args, 1)),
    })
}

fn trim_prefix(_: &mut Executor, args: &[Value]) -> Result {
    Ok(match text(args, 1).strip_prefix(text(args, 0)) {
        Some(trimmed) => Value::Str(Str::new(trimmed)),
        None => Value::Str(string(args, 1)),
    })
}

fn contains(_: &mut Executor, args: &[Value]) -> Result {
    Ok(Value::Bool(
        memchr::memmem::find(text(args, 1), text(args, 0)).is_some(),
    ))
}

fn has_prefix(_: &mut Executor, args: &[Value]) -> Result {
    Ok(Value::Bool(text(args, 1).starts_with(text(args, 0))))
}

fn has_suffix(_: &mut Executor, args: &[Value]) -> Result {
    Ok(Value::Bool(text(args, 1).ends_with(text(args, 0))))
}

/// Joins the texts of all arguments but nil ones.
fn joined(
    executor: &Executor,
    args: &[Value],
    mut push: impl FnMut(&mut Vec<u8>, &Value) -> std::result::Result<(), Error>,
) -> Result {
    let mut out = Vec::new();
    let mut first = true;
    for arg in args.iter().filter(|arg| !arg.is_nil()) {
        if !std::mem::replace(&mut first, false) {
            out.push(b' ');
        }
        push(&mut out, arg)?;
        if out.len() > executor.limits().output_bytes {
            return Err(Error::limit(crate::Limit::OutputBytes(
                executor.limits().output_bytes,
            )));
        }
    }
    Ok(Value::from(out))
}

fn quote(executor: &mut Executor, args: &[Value]) -> Result {
    let executor = &*executor;
    joined(executor, args, |out, arg| {
        let shown = strval(arg, executor.limits()).map_err(Error::limit)?;
        out.append(&mut go_quote::quoted(shown.as_bytes(), b'"', false));
        Ok(())
    })
}

/// `fmt.Sprint` of one value, which for a string is the string.
fn shown(executor: &Executor, value: &Value) -> std::result::Result<Vec<u8>, Error> {
    sprint(std::slice::from_ref(value), executor.limits()).map_err(Error::limit)
}

fn squote(executor: &mut Executor, args: &[Value]) -> Result {
    let executor = &*executor;
    joined(executor, args, |out, arg| {
        out.push(b'\'');
        out.append(&mut shown(executor, arg)?);
        out.push(b'\'');
        Ok(())
    })
}

fn cat(executor: &mut Executor, args: &[Value]) -> Result {
    let executor = &*executor;
    joined(executor, args, |out, arg| {
        out.append(&mut shown(executor, arg)?);
        Ok(())
    })
}

fn negative_repeat() -> Error {
    Error::message("strings: negative Repeat count")
}

fn indented(executor: &mut Executor, args: &[Value], start: &[u8]) -> Result {
    let width = usize::try_from(int(args, 0)).map_err(|_| negative_repeat())?;
    let body = text(args, 1);
    let lines = 1 + memchr::memchr_iter(b'\n', body).count();
    let size = width
        .saturating_mul(lines)
        .saturating_add(body.len() + start.len());
    // Asked before the text is made: the width is the template's.
    executor.charge(size.saturating_sub(body.len()))?;
    let mut out = Vec::with_capacity(size);
    out.extend_from_slice(start);
    for (index, line) in body.split(|byte| *byte == b'\n').enumerate() {
        if index > 0 {
            out.push(b'\n');
        }
        out.resize(out.len() + width, b' ');
        out.extend_from_slice(line);
    }
    Ok(Value::from(out))
}

fn indent(executor: &mut Executor, args: &[Value]) -> Result {
    indented(executor, args, b"")
}

fn nindent(executor: &mut Executor, args: &[Value]) -> Result {
    indented(executor, args, b"\n")
}

/// `strings.ReplaceAll`
pub(super) fn replace_all(source: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(source.len());
    if old.is_empty() {
        // Before every rune and at the end.
        out.extend_from_slice(new);
        let mut rest = source;
        while !rest.is_empty() {
            let (_, width) = crate::unicode::decode(rest);
            let (head, tail) = rest.split_at(width.max(1).min(rest.len()));
            out.extend_from_slice(head);
            out.extend_from_slice(new);
            rest = tail;
        }
        return out;
    }
    let mut from = 0;
    for at in memchr::memmem::find_iter(source, old) {
        out.extend_from_slice(source.get(from..at).unwrap_or_default());
        out.extend_from_slice(new);
        from = at + old.len();
    }
    out.extend_from_slice(source.get(from..).unwrap_or_default());
    out
}

fn replace(executor: &mut Executor, args: &[Value]) -> Result {
    let (old, new, source) = (text(args, 0), text(args, 1), text(args, 2));
    let most = if old.is_empty() {
        source.len() + 1
    } else {
        source.len() / old.len()
    };
    executor.charge(most.saturating_mul(new.len()))?;
    Ok(Value::from(replace_all(source, old, new)))
}

fn plural(_: &mut Executor, args: &[Value]) -> Result {
    Ok(Value::Str(string(args, usize::from(int(args, 2) != 1))))
}

fn trunc(_: &mut Executor, args: &[Value]) -> Result {
    let (count, source) = (int(args, 0), text(args, 1));
    let length = source.len() as i64;
    let cut = if count < 0 && length.saturating_add(count) > 0 {
        source.get((length + count) as usize..)
    } else if count >= 0 && length > count {
        source.get(..count as usize)
    } else {
        None
    };
    Ok(Value::Str(cut.map_or_else(|| string(args, 1), Str::new)))
}

fn substr(_: &mut Executor, args: &[Value]) -> Result {
    let (start, end, source) = (int(args, 0), int(args, 1), text(args, 2));
    let length = source.len() as i64;
    let out_of_range =
        |shown: String| Error::message(format!("runtime error: slice bounds out of range {shown}"));
    let (start, end) = if start < 0 {
        if end < 0 {
            return Err(out_of_range(format!("[:{end}]")));
        }
        if end > length {
            return Err(out_of_range(format!("[:{end}] with length {length}")));
        }
        (0, end)
    } else if end < 0 || end > length {
        (start, length)
    } else {
        (start, end)
    };
    if start > end {
        return Err(out_of_range(format!("[{start}:{end}]")));
    }
    Ok(Value::Str(Str::new(
        source.get(start as usize..end as usize).unwrap_or_default(),
    )))
}

fn repeat(executor: &mut Executor, args: &[Value]) -> Result {
    let count = usize::try_from(int(args, 0)).map_err(|_| negative_repeat())?;
    let source = text(args, 1);
    let size = count
        .checked_mul(source.len())
        .ok_or_else(|| Error::message("strings: Repeat output length overflow"))?;
    executor.charge(size)?;
    Ok(Value::from(source.repeat(count)))
}

/// Sprig looks at bytes as if they were runes, so text outside ASCII with white space in it is spoilt.
fn no_space(_: &mut Executor, args: &[Value]) -> Result {
    let source = text(args, 0);
    let is_space = |byte: &u8| crate::unicode::is_space(char::from(*byte));
    if !source.iter().any(is_space) {
        return Ok(Value::Str(string(args, 0)));
    }
    let kept: String = source
        .iter()
        .filter(|byte| !is_space(byte))
        .map(|byte| char::from(*byte))
        .collect();
    Ok(Value::from(kept))
}

fn abbreviated(source: &[u8], offset: i64, width: i64) -> Option<Vec<u8>> {
    let length = source.len() as i64;
    if source.is_empty() {
        return Some(Vec::new());
    }
    if width < 4 {
        return None;
    }
    if length <= width {
        return Some(source.to_vec());
    }
    let mut offset = offset.min(length);
    if length - offset < width - 3 {
        offset = length - (width - 3);
    }
    let keep = (width - 3) as usize;
    if offset <= 4 {
        let mut out = source.get(..keep)?.to_vec();
        out.extend_from_slice(b"...");
        return Some(out);
    }
    if width < 7 {
        return None;
    }
    let mut out = b"...".to_vec();
    if offset + width - 3 < length {
        out.append(&mut abbreviated(source.get(offset as usize..)?, 0, width - 3).unwrap_or_default());
    } else {
        out.extend_from_slice(source.get(source.len() - keep..)?);
    }
    Some(out)
}

fn abbrev(_: &mut Executor, args: &[Value]) -> Result {
    let width = int(args, 0);
    if width < 4 {
        return Ok(Value::Str(string(args, 1)));
    }
    Ok(Value::from(
        abbreviated(text(args, 1), 0, width).unwrap_or_default(),
    ))
}

fn abbrev_both(_: &mut Executor, args: &[Value]) -> Result {
    let (left, right) = (int(args, 0), int(args, 1));
    if right < 4 || (left > 0 && right < 7) {
        return Ok(Value::Str(string(args, 2)));
    }
    Ok(Value::from(
        abbreviated(text(args, 2), left, right).unwrap_or_default(),
    ))
}

fn wrapped(
    executor: &mut Executor,
    source: &[u8],
    width: i64,
    separator: &[u8],
    break_words: bool,
) -> Result {
    let separator = if separator.is_empty() {
        b"\n".as_slice()
    } else {
        separator
    };
    let width = width.max(1) as usize;
    executor.charge((source.len() / width + 1).saturating_mul(separator.len()))?;
    let mut out = Vec::with_capacity(source.len() + 16);
    let mut offset = 0;
    while source.len() - offset > width {
        if source.get(offset) == Some(&b' ') {
            offset += 1;
            continue;
        }
        let window = source.get(offset..=offset + width).unwrap_or_default();
        if let Some(space) = memchr::memrchr(b' ', window) {
            out.extend_from_slice(window.get(..space).unwrap_or_default());
            out.extend_from_slice(separator);
            offset += space + 1;
        } else if break_words {
            out.extend_from_slice(window.get(..width).unwrap_or_default());
            out.extend_from_slice(separator);
            offset += width;
        } else {
            // A long word goes on past the margin.
            let tail = source.get(offset..).unwrap_or_default();
            let space = tail
                .get(width..)
                .and_then(|tail| memchr::memchr(b' ', tail))
                .map(|at| at + width);
            match space {
                Some(space) => {
                    out.extend_from_slice(tail.get(..space).unwrap_or_default());
                    out.extend_from_slice(separator);
                    offset += space + 1;
                }
                None => {
                    out.extend_from_slice(tail);
                    offset = source.len();
                }
            }
        }
    }
    out.extend_from_slice(source.get(offset..).unwrap_or_default());
    Ok(Value::from(out))
}

fn wrap(executor: &mut Executor, args: &[Value]) -> Result {
    wrapped(executor, text(args, 1), int(args, 0), b"", false)
}

fn wrap_with(executor: &mut Executor, args: &[Value]) -> Result {
    wrapped(executor, text(args, 2), int(args, 0), text(args, 1), true)
}

fn to_string(executor: &mut Executor, args: &[Value]) -> Result {
    strval(any(args, 0), executor.limits())
        .map(Value::Str)
        .map_err(Error::limit)
}

fn hello(_: &mut Executor, args: &[Value]) -> Result {
    debug_assert!(rest(args, 0).is_empty());
    Ok(Value::from("Hello!"))
}
