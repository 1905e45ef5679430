//! Letter case: `upper`, `title`, `camelcase` and their like.

use super::args::{STR, text};
use crate::Error;
use crate::exec::Executor;
use crate::function::Native;
use crate::unicode::{
    decode, is_digit, is_letter, is_lower, is_number, is_punct, is_space, is_title, is_upper, runes,
    to_lower, to_title, to_upper,
};
use crate::value::Value;

pub(super) static TABLE: &[Native] = &[
    Native::concrete("upper", &[STR], false, upper),
    Native::concrete("lower", &[STR], false, lower),
    Native::concrete("title", &[STR], false, title),
    Native::concrete("untitle", &[STR], false, untitle),
    Native::concrete("swapcase", &[STR], false, swap_case),
    Native::concrete("initials", &[STR], false, initials),
    Native::concrete("snakecase", &[STR], false, snake_case),
    Native::concrete("kebabcase", &[STR], false, kebab_case),
    Native::concrete("camelcase", &[STR], false, camel_case),
];

type Result = std::result::Result<Value, Error>;

fn mapped(source: &[u8], map: impl Fn(char) -> char) -> Value {
    Value::from(runes(source).map(|(c, _)| map(c)).collect::<String>())
}

fn upper(_: &mut Executor, args: &[Value]) -> Result {
    let source = text(args, 0);
    Ok(if source.is_ascii() {
        Value::from(source.to_ascii_uppercase())
    } else {
        mapped(source, to_upper)
    })
}

fn lower(_: &mut Executor, args: &[Value]) -> Result {
    let source = text(args, 0);
    Ok(if source.is_ascii() {
        Value::from(source.to_ascii_lowercase())
    } else {
        mapped(source, to_lower)
    })
}

/// What ends a word for Go's `strings.Title`.
fn is_separator(c: char) -> bool {
    if c.is_ascii() {
        return !(c.is_ascii_alphanumeric() || c == '_');
    }
    !is_letter(c) && !is_digit(c) && is_space(c)
}

fn title(_: &mut Executor, args: &[Value]) -> Result {
    let mut last = ' ';
    let titled = runes(text(args, 0)).map(|(c, _)| {
        let start = is_separator(last);
        last = c;
        if start { to_title(c) } else { c }
    });
    Ok(Value::from(titled.collect::<String>()))
}

fn untitle(_: &mut Executor, args: &[Value]) -> Result {
    let mut start = true;
    let lowered = runes(text(args, 0)).map(|(c, _)| {
        if is_space(c) {
            start = true;
            return c;
        }
        if std::mem::replace(&mut start, false) {
            to_lower(c)
        } else {
            c
        }
    });
    Ok(Value::from(lowered.collect::<String>()))
}

fn swap_case(_: &mut Executor, args: &[Value]) -> Result {
    let mut after_space = true;
    let swapped = runes(text(args, 0)).map(|(c, _)| {
        if is_upper(c) || is_title(c) {
            after_space = false;
            to_lower(c)
        } else if is_lower(c) {
            let start = std::mem::replace(&mut after_space, false);
            if start { to_title(c) } else { to_upper(c) }
        } else {
            after_space = is_space(c);
            c
        }
    });
    Ok(Value::from(swapped.collect::<String>()))
}

fn initials(_: &mut Executor, args: &[Value]) -> Result {
    let mut start = true;
    let mut out = String::new();
    // Sprig takes bytes for runes.
    for c in text(args, 0).iter().map(|byte| char::from(*byte)) {
        if is_space(c) {
            start = true;
        } else if std::mem::replace(&mut start, false) {
            out.push(c);
        }
    }
    Ok(Value::from(out))
}

fn is_connector(c: char) -> bool {
    c == '-' || c == '_' || is_space(c)
}

fn camel_case(_: &mut Executor, args: &[Value]) -> Result {
    let mut out = String::new();
    let mut chars = runes(text(args, 0)).map(|(c, _)| c).peekable();
    let mut current = None;
    let mut first_upper = false;
    // Leading connectors stay.
    for c in chars.by_ref() {
        if is_connector(c) {
            out.push(c);
            current = Some(c);
        } else {
            first_upper = is_upper(c);
            current = Some(to_upper(c));
            break;
        }
    }
    let Some(mut current) = current else {
        return Ok(Value::from(""));
    };
    if chars.peek().is_none() {
        out.push(current);
        return Ok(Value::from(out));
    }
    for next in chars {
        let before = std::mem::replace(&mut current, next);
        if is_connector(current) && is_connector(before) {
            out.push(before);
            continue;
        }
        if is_connector(before) {
            first_upper = is_upper(current);
            current = to_upper(current);
        } else {
            if first_upper {
                if is_upper(current) {
                    current = to_lower(current);
                } else {
                    first_upper = false;
                }
            }
            out.push(before);
        }
    }
    out.push(current);
    Ok(Value::from(out))
}

fn snake_case(_: &mut Executor, args: &[Value]) -> Result {
    Ok(Value::from(separated(text(args, 0), '_')))
}

fn kebab_case(_: &mut Executor, args: &[Value]) -> Result {
    Ok(Value::from(separated(text(args, 0), '-')))
}

/// Kinds of words that xstrings tells apart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    Invalid,
    Number,
    Upper,
    Alphabet,
    Connector,
    Punct,
    Other,
}

/// Whether a rune is a letter for xstrings, which leaves Han characters out.
fn is_alphabet(c: char) -> bool {
    let han = matches!(c, '\u{4e00}'..='\u{9fcc}' | '\u{3400}'..='\u{4d85}' | '\u{20000}'..='\u{2b81d}');
    is_letter(c) && !han
}

/// The next valid rune and the bytes up to its end.
fn next_valid(source: &[u8], before: char) -> (char, usize) {
    let mut size = 0;
    let mut rest = source;
    while !rest.is_empty() {
        let (c, width) = decode(rest);
        size += width;
        if c != char::REPLACEMENT_CHARACTER {
            return (c, size);
        }
        rest = rest.get(width..).unwrap_or_default();
    }
    (before, size)
}

/// Length of the run that goes on while `more` holds, after `start` bytes.
fn run(source: &[u8], start: usize, first: char, more: impl Fn(char, usize) -> bool) -> usize {
    let mut offset = start;
    let mut c = first;
    while offset < source.len() {
        let size;
        (c, size) = next_valid(source.get(offset..).unwrap_or_default(), c);
        if !more(c, size) {
            break;
        }
        offset += size;
    }
    offset
}

fn next_word(source: &[u8]) -> (Word, &[u8], &[u8]) {
    if source.is_empty() {
        return (Word::Invalid, &[], &[]);
    }
    let (c, size) = next_valid(source, char::REPLACEMENT_CHARACTER);
    let (word, end) = if c == char::REPLACEMENT_CHARACTER {
        (Word::Invalid, size)
    } else if is_connector(c) {
        (Word::Connector, run(source, size, c, |c, _| is_connector(c)))
    } else if is_punct(c) {
        (Word::Punct, run(source, size, c, |c, _| is_punct(c)))
    } else if is_upper(c) {
        (Word::Upper, upper_word(source, size, c))
    } else if is_alphabet(c) {
        (
            Word::Alphabet,
            run(source, size, c, |c, _| is_alphabet(c) && !is_upper(c)),
        )
    } else if is_number(c) {
        (Word::Number, run(source, size, c, |c, _| is_number(c)))
    } else {
        let goes_on =
            |c, size| size != 0 && !is_connector(c) && !is_alphabet(c) && !is_number(c) && !is_punct(c);
        (Word::Other, run(source, size, c, goes_on))
    };
    let (head, tail) = source.split_at(end.min(source.len()));
    (word, head, tail)
}

/// A word that begins with an upper-case letter: `HTTP` of `HTTPStatus`, or `Status`.
fn upper_word(source: &[u8], first: usize, c: char) -> usize {
    if first >= source.len() {
        return first;
    }
    let (second, size) = next_valid(source.get(first..).unwrap_or_default(), c);
    if is_upper(second) {
        let mut end = first + size;
        let mut last_size = size;
        let mut c = second;
        while end < source.len() {
            let size;
            (c, size) = next_valid(source.get(end..).unwrap_or_default(), c);
            if !is_upper(c) {
                break;
            }
            last_size = size;
            end += size;
        }
        // The last capital belongs to the next word when small letters follow.
        if end < source.len() && is_alphabet(c) {
            end -= last_size;
        }
        return end;
    }
    if is_alphabet(second) {
        return run(source, first + size, second, |c, _| {
            is_alphabet(c) && !is_upper(c)
        });
    }
    first
}

fn push_lower(out: &mut Vec<u8>, kind: Word, word: &[u8], connector: char) {
    if !matches!(kind, Word::Upper | Word::Connector) {
        // As it is, invalid UTF-8 and all.
        out.extend_from_slice(word);
        return;
    }
    for (c, _) in runes(word) {
        push(out, if is_connector(c) { connector } else { to_lower(c) });
    }
}

fn push(out: &mut Vec<u8>, c: char) {
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

/// xstrings' ToSnakeCase and ToKebabCase.
fn separated(source: &[u8], connector: char) -> Vec<u8> {
    let mut out = Vec::with_capacity(source.len() + 8);
    let (mut kind, mut word, mut rest) = next_word(source);
    while !rest.is_empty() {
        if kind != Word::Connector {
            push_lower(&mut out, kind, word, connector);
        }
        let (before, last) = (kind, word);
        (kind, word, rest) = next_word(rest);
        match before {
            Word::Number => {
                while matches!(kind, Word::Alphabet | Word::Number) {
                    push_lower(&mut out, kind, word, connector);
                    (kind, word, rest) = next_word(rest);
                }
                if !matches!(kind, Word::Invalid | Word::Punct | Word::Connector) {
                    push(&mut out, connector);
                }
            }
            Word::Connector => push_lower(&mut out, before, last, connector),
            Word::Punct => {}
            _ => {
                if kind != Word::Number {
                    if !matches!(kind, Word::Connector | Word::Punct) {
                        push(&mut out, connector);
                    }
                    continue;
                }
                if rest.is_empty() {
                    continue;
                }
                let number = word;
                (kind, word, rest) = next_word(rest);
                // "Bld4Floor": the number belongs to the word before it.
                if kind != Word::Alphabet {
                    push_lower(&mut out, Word::Number, number, connector);
                    if !matches!(kind, Word::Connector | Word::Punct) {
                        push(&mut out, connector);
                    }
                    continue;
                }
                // "HTTP2xx": small letters follow, so the number begins a word.
                push(&mut out, connector);
                push_lower(&mut out, Word::Number, number, connector);
                while matches!(kind, Word::Alphabet | Word::Number) {
                    push_lower(&mut out, kind, word, connector);
                    (kind, word, rest) = next_word(rest);
                }
                if !matches!(kind, Word::Invalid | Word::Connector | Word::Punct) {
                    push(&mut out, connector);
                }
            }
        }
    }
    push_lower(&mut out, kind, word, connector);
    out
}
