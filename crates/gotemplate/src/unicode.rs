//! UTF-8 decoding and character classes as Go has them.

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

/// `unicode.IsLetter`
pub(crate) fn is_letter(c: char) -> bool {
    if c.is_ascii() {
        c.is_ascii_alphabetic()
    } else {
        c.is_alphabetic()
    }
}

/// `unicode.IsDigit`
pub(crate) fn is_digit(c: char) -> bool {
    if c.is_ascii() {
        c.is_ascii_digit()
    } else {
        c.is_numeric()
    }
}

/// `unicode.IsUpper`
pub(crate) fn is_upper(c: char) -> bool {
    c.is_uppercase()
}

/// `unicode.IsLower`
pub(crate) fn is_lower(c: char) -> bool {
    c.is_lowercase()
}

/// `strconv.IsPrint`
pub(crate) fn is_print(c: char) -> bool {
    if c.is_ascii() {
        matches!(c, ' '..='~')
    } else {
        !c.is_control() && !is_space(c) && c != '\u{ad}'
    }
}

/// `unicode.ToUpper`: the simple mapping, never more than one rune.
pub(crate) fn to_upper(c: char) -> char {
    let mut upper = c.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(c), None) => c,
        _ => c,
    }
}

/// `unicode.ToLower`: the simple mapping, never more than one rune.
pub(crate) fn to_lower(c: char) -> char {
    let mut lower = c.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(c), None) => c,
        _ => c,
    }
}

/// `unicode.ToTitle`: differs from upper case for the Latin digraphs only.
pub(crate) fn to_title(c: char) -> char {
    match c {
        'Ǆ' | 'ǅ' | 'ǆ' => 'ǅ',
        'Ǉ' | 'ǈ' | 'ǉ' => 'ǈ',
        'Ǌ' | 'ǋ' | 'ǌ' => 'ǋ',
        'Ǳ' | 'ǲ' | 'ǳ' => 'ǲ',
        // Georgian letters have no title case.
        '\u{10d0}'..='\u{10fa}' | '\u{10fd}'..='\u{10ff}' => c,
        _ => to_upper(c),
    }
}

/// `unicode.IsTitle`
pub(crate) fn is_title(c: char) -> bool {
    matches!(c, 'ǅ' | 'ǈ' | 'ǋ' | 'ǲ' | '\u{1f88}'..='\u{1f8f}' | '\u{1f98}'..='\u{1f9f}'
        | '\u{1fa8}'..='\u{1faf}' | '\u{1fbc}' | '\u{1fcc}' | '\u{1ffc}')
}

/// `unicode.IsNumber`
pub(crate) fn is_number(c: char) -> bool {
    c.is_numeric()
}

/// `unicode.IsPunct`
pub(crate) fn is_punct(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_punctuation() && !matches!(c, '$' | '+' | '<' | '=' | '>' | '^' | '`' | '|' | '~');
    }
    matches!(c, '¡' | '§' | '«' | '¶' | '·' | '»' | '¿' | '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{2043}'
        | '\u{2045}'..='\u{2051}' | '\u{2053}'..='\u{205e}' | '\u{3001}'..='\u{3003}' | '\u{3008}'..='\u{3011}')
}
