//! UTF-8 decoding and character classes as Go has them.

mod tables;
#[cfg(test)]
mod tests;

pub(crate) use evenkeel_goyaml::{is_digit, is_letter, is_print};

/// Decodes the first rune; a byte that starts no valid sequence is U+FFFD of width 1, the end is width 0.
pub(crate) fn decode(text: &[u8]) -> (char, usize) {
    let Some(first) = text.first() else {
        return (char::REPLACEMENT_CHARACTER, 0);
    };
    if first.is_ascii() {
        return (char::from(*first), 1);
    }
    let width = match first {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return (char::REPLACEMENT_CHARACTER, 1),
    };
    text.get(..width)
        .and_then(|bytes| std::str::from_utf8(bytes).ok())
        .and_then(|text| text.chars().next())
        .map_or((char::REPLACEMENT_CHARACTER, 1), |c| (c, width))
}

/// Decodes the last rune, as [`decode`].
pub(crate) fn decode_last(text: &[u8]) -> (char, usize) {
    for width in 1..=4 {
        let Some(start) = text.len().checked_sub(width) else {
            break;
        };
        let tail = text.get(start..).unwrap_or_default();
        if let Some(first) = tail.first()
            && (*first < 0x80 || *first >= 0xc0)
        {
            let (c, decoded) = decode(tail);
            if decoded == width {
                return (c, width);
            }
            break;
        }
    }
    (char::REPLACEMENT_CHARACTER, usize::from(!text.is_empty()))
}

/// The runes of a text with their widths in bytes.
pub(crate) fn runes(text: &[u8]) -> impl Iterator<Item = (char, usize)> + '_ {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (c, width) = decode(rest);
        if width == 0 {
            return None;
        }
        rest = rest.get(width..).unwrap_or_default();
        Some((c, width))
    })
}

/// `utf8.RuneCount`
pub(crate) fn rune_count(text: &[u8]) -> usize {
    if text.is_ascii() {
        text.len()
    } else {
        runes(text).count()
    }
}

/// `unicode.IsSpace`
pub(crate) fn is_space(c: char) -> bool {
    matches!(
        c,
        '\t' | '\n' | '\x0b' | '\x0c' | '\r' | ' ' | '\u{85}' | '\u{a0}' | '\u{1680}' | '\u{2000}'
            ..='\u{200a}' | '\u{2028}' | '\u{2029}' | '\u{202f}' | '\u{205f}' | '\u{3000}'
    )
}

/// `strings.TrimSpace`
pub(crate) fn trim_space(text: &[u8]) -> &[u8] {
    trim_right(trim_left(text, is_space), is_space)
}

/// Cuts leading runes that match.
pub(crate) fn trim_left(mut text: &[u8], cut: impl Fn(char) -> bool) -> &[u8] {
    loop {
        let (c, width) = decode(text);
        if width == 0 || !cut(c) {
            return text;
        }
        text = text.get(width..).unwrap_or_default();
    }
}

/// Cuts trailing runes that match.
pub(crate) fn trim_right(mut text: &[u8], cut: impl Fn(char) -> bool) -> &[u8] {
    loop {
        let (c, width) = decode_last(text);
        if width == 0 || !cut(c) {
            return text;
        }
        text = text.get(..text.len() - width).unwrap_or_default();
    }
}

/// Whether a sorted table of ranges holds the character.
fn holds(table: &[(u32, u32)], c: char) -> bool {
    let code = u32::from(c);
    let after = table.partition_point(|(first, _)| *first <= code);
    after
        .checked_sub(1)
        .and_then(|index| table.get(index))
        .is_some_and(|(_, last)| code <= *last)
}

/// `unicode.IsNumber`
pub(crate) fn is_number(c: char) -> bool {
    c.is_numeric()
}

/// `unicode.IsPunct`
pub(crate) fn is_punct(c: char) -> bool {
    holds(tables::PUNCT, c)
}

/// `unicode.IsUpper`: Rust also counts numbers and symbols that look like capitals.
pub(crate) fn is_upper(c: char) -> bool {
    c.is_uppercase() && is_letter(c)
}

/// `unicode.IsLower`: a letter that Rust calls lower-case and that is no modifier or ordinal.
pub(crate) fn is_lower(c: char) -> bool {
    c.is_lowercase() && is_letter(c) && !is_modifier(c)
}

/// Letters of categories Lm and Lo that have the property Lowercase.
fn is_modifier(c: char) -> bool {
    matches!(c, '\u{aa}' | '\u{ba}' | '\u{2b0}'..='\u{2b8}' | '\u{2c0}'..='\u{2c1}' | '\u{2e0}'..='\u{2e4}'
        | '\u{37a}' | '\u{10fc}' | '\u{1d2c}'..='\u{1d6a}' | '\u{1d78}' | '\u{1d9b}'..='\u{1dbf}' | '\u{2071}'
        | '\u{207f}' | '\u{2090}'..='\u{209c}' | '\u{2c7c}'..='\u{2c7d}' | '\u{a69c}'..='\u{a69d}' | '\u{a770}'
        | '\u{a7f1}'..='\u{a7f4}' | '\u{a7f8}'..='\u{a7f9}' | '\u{ab5c}'..='\u{ab5f}' | '\u{ab69}'
        | '\u{10780}'..='\u{107ba}' | '\u{1e030}'..='\u{1e06d}')
}

/// `unicode.IsTitle`
pub(crate) fn is_title(c: char) -> bool {
    matches!(c, 'ǅ' | 'ǈ' | 'ǋ' | 'ǲ' | '\u{1f88}'..='\u{1f8f}' | '\u{1f98}'..='\u{1f9f}'
        | '\u{1fa8}'..='\u{1faf}' | '\u{1fbc}' | '\u{1fcc}' | '\u{1ffc}')
}

/// `unicode.ToUpper`: the simple mapping, never more than one rune.
pub(crate) fn to_upper(c: char) -> char {
    match c {
        // The full mapping of these is two runes.
        '\u{1f80}'..='\u{1f87}' | '\u{1f90}'..='\u{1f97}' | '\u{1fa0}'..='\u{1fa7}' => {
            char::from_u32(u32::from(c) + 8).unwrap_or(c)
        }
        '\u{1fb3}' => '\u{1fbc}',
        '\u{1fc3}' => '\u{1fcc}',
        '\u{1ff3}' => '\u{1ffc}',
        _ => single(c.to_uppercase(), c),
    }
}

/// `unicode.ToLower`: the simple mapping, never more than one rune.
pub(crate) fn to_lower(c: char) -> char {
    if c == 'İ' {
        'i'
    } else {
        single(c.to_lowercase(), c)
    }
}

/// `unicode.ToTitle`: differs from upper case for the Latin digraphs and Georgian.
pub(crate) fn to_title(c: char) -> char {
    match c {
        'Ǆ'..='ǆ' => 'ǅ',
        'Ǉ'..='ǉ' => 'ǈ',
        'Ǌ'..='ǌ' => 'ǋ',
        'Ǳ'..='ǳ' => 'ǲ',
        '\u{10d0}'..='\u{10fa}' | '\u{10fd}'..='\u{10ff}' => c,
        _ => to_upper(c),
    }
}

/// A case mapping that is one rune, or the rune itself.
fn single(mut mapped: impl Iterator<Item = char>, c: char) -> char {
    match (mapped.next(), mapped.next()) {
        (Some(mapped), None) => mapped,
        _ => c,
    }
}
