//! Go's `strconv`: numbers and quoted strings from text.

/// Why a number was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumError {
    /// `invalid syntax`
    Syntax,
    /// `value out of range`
    Range,
}

/// `strconv.ParseUint(text, base, 64)`; base 0 takes the prefix's base and allows underscores.
pub(crate) fn parse_uint(text: &[u8], base: u32) -> Result<u64, NumError> {
    let (digits, radix, underscores) = if base == 0 {
        split_prefix(text)
    } else {
        (text, base, false)
    };
    if digits.is_empty() {
        return Err(NumError::Syntax);
    }
    let mut value: u64 = 0;
    let mut overflow = false;
    let mut seen_underscore = false;
    for byte in digits {
        if *byte == b'_' && underscores {
            seen_underscore = true;
            continue;
        }
        let digit = char::from(*byte)
            .to_digit(36)
            .filter(|digit| *digit < radix)
            .ok_or(NumError::Syntax)?;
        match value
            .checked_mul(u64::from(radix))
            .and_then(|value| value.checked_add(u64::from(digit)))
        {
            Some(next) => value = next,
            None => overflow = true,
        }
    }
    if seen_underscore && !underscore_ok(text) {
        return Err(NumError::Syntax);
    }
    if overflow { Err(NumError::Range) } else { Ok(value) }
}

fn split_prefix(text: &[u8]) -> (&[u8], u32, bool) {
    match text {
        [b'0', b'x' | b'X', rest @ ..] if !rest.is_empty() => (rest, 16, true),
        [b'0', b'b' | b'B', rest @ ..] if !rest.is_empty() => (rest, 2, true),
        [b'0', b'o' | b'O', rest @ ..] if !rest.is_empty() => (rest, 8, true),
        [b'0', rest @ ..] if !rest.is_empty() => (rest, 8, true),
        _ => (text, 10, true),
    }
}

/// `strconv.ParseInt(text, base, 64)`.
pub(crate) fn parse_int(text: &[u8], base: u32) -> Result<i64, NumError> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let value = parse_uint(digits, base)?;
    if negative {
        0i64.checked_sub_unsigned(value).ok_or(NumError::Range)
    } else {
        i64::try_from(value).map_err(|_| NumError::Range)
    }
}

/// Underscores stand only between digits, or between a base prefix and a digit.
fn underscore_ok(text: &[u8]) -> bool {
    let mut rest = match text {
        [b'-' | b'+', rest @ ..] => rest,
        _ => text,
    };
    let mut hex = false;
    // '0' digit or prefix, '_' underscore, '!' neither, '^' start.
    let mut last = b'^';
    if let [b'0', kind, after @ ..] = rest
        && matches!(kind.to_ascii_lowercase(), b'b' | b'o' | b'x')
    {
        rest = after;
        last = b'0';
        hex = kind.eq_ignore_ascii_case(&b'x');
    }
    for byte in rest {
        if byte.is_ascii_digit() || (hex && byte.is_ascii_hexdigit()) {
            last = b'0';
        } else if *byte == b'_' {
            if last != b'0' {
                return false;
            }
            last = b'_';
        } else {
            if last == b'_' {
                return false;
            }
            last = b'!';
        }
    }
    last != b'_'
}

/// `strconv.ParseFloat(text, 64)`.
pub(crate) fn parse_float(text: &[u8]) -> Result<f64, NumError> {
    let text = std::str::from_utf8(text).map_err(|_| NumError::Syntax)?;
    let (negative, body) = match text.as_bytes() {
        [b'-', ..] => (true, text.get(1..).unwrap_or_default()),
        [b'+', ..] => (false, text.get(1..).unwrap_or_default()),
        _ => (false, text),
    };
    let sign = |value: f64| if negative { -value } else { value };
    let lower = body.to_ascii_lowercase();
    match lower.as_str() {
        "inf" | "infinity" => return Ok(sign(f64::INFINITY)),
        "nan" => return Ok(f64::NAN),
        _ => {}
    }
    let plain;
    let digits = if body.contains('_') {
        if !underscore_ok(text.as_bytes()) {
            return Err(NumError::Syntax);
        }
        plain = lower.replace('_', "");
        plain.as_str()
    } else {
        lower.as_str()
    };
    if let Some(hex) = digits.strip_prefix("0x") {
        return parse_hex_float(hex).map(sign);
    }
    let valid = digits
        .bytes()
        .all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'+' | b'-'));
    if !valid {
        return Err(NumError::Syntax);
    }
    let value: f64 = digits.parse().map_err(|_| NumError::Syntax)?;
    if value.is_infinite() {
        Err(NumError::Range)
    } else {
        Ok(sign(value))
    }
}

/// The part after `0x`: hexadecimal mantissa and a binary exponent, which is required.
fn parse_hex_float(text: &str) -> Result<f64, NumError> {
    let (mantissa, exponent) = text.split_once('p').ok_or(NumError::Syntax)?;
    let mut exponent: i64 = match exponent.parse::<i64>() {
        Ok(exponent) => exponent.clamp(-100_000, 100_000),
        Err(_)
            if exponent
                .strip_prefix(['+', '-'])
                .unwrap_or(exponent)
                .bytes()
                .all(|b| b.is_ascii_digit())
                && exponent.len() > 10 =>
        {
            if exponent.starts_with('-') {
                -100_000
            } else {
                100_000
            }
        }
        Err(_) => return Err(NumError::Syntax),
    };
    let mut value: u64 = 0;
    let mut seen_digit = false;
    let mut seen_dot = false;
    for byte in mantissa.bytes() {
        if byte == b'.' {
            if seen_dot {
                return Err(NumError::Syntax);
            }
            seen_dot = true;
            continue;
        }
        let digit = char::from(byte).to_digit(16).ok_or(NumError::Syntax)?;
        seen_digit = true;
        if value >> 60 == 0 {
            value = value << 4 | u64::from(digit);
            if seen_dot {
                exponent -= 4;
            }
        } else {
            // Beyond 64 bits only "is there more" matters for rounding.
            value |= u64::from(digit != 0);
            if !seen_dot {
                exponent += 4;
            }
        }
    }
    if !seen_digit {
        return Err(NumError::Syntax);
    }
    let mut result = value as f64;
    // Scale in steps that stay finite.
    let mut left = exponent;
    while left != 0 && result != 0.0 && result.is_finite() {
        let step = left.clamp(-1_000, 1_000);
        result *= 2f64.powi(step as i32);
        left -= step;
    }
    if result.is_infinite() {
        Err(NumError::Range)
    } else {
        Ok(result)
    }
}

/// `strconv.Unquote` for strings in double quotes or back quotes.
pub(crate) fn unquote(text: &[u8]) -> Option<Vec<u8>> {
    let (quote, body) = match text {
        [first, body @ .., last] if first == last => (*first, body),
        _ => return None,
    };
    match quote {
        b'`' => {
            if body.contains(&b'`') {
                return None;
            }
            Some(body.iter().copied().filter(|byte| *byte != b'\r').collect())
        }
        b'"' => {
            if body.contains(&b'\n') {
                return None;
            }
            let mut out = Vec::with_capacity(body.len());
            let mut rest = body;
            while !rest.is_empty() {
                let plain = rest
                    .iter()
                    .position(|byte| matches!(byte, b'\\' | b'"'))
                    .unwrap_or(rest.len());
                let (head, tail) = rest.split_at(plain);
                match std::str::from_utf8(head) {
                    Ok(_) => out.extend_from_slice(head),
                    // Go reads rune by rune, and what is none becomes U+FFFD.
                    Err(_) => crate::unicode::runes(head).for_each(|(c, _)| Unit::Char(c).push_to(&mut out)),
                }
                if tail.is_empty() {
                    break;
                }
                let (unit, tail) = unquote_char(tail, b'"')?;
                unit.push_to(&mut out);
                rest = tail;
            }
            Some(out)
        }
        _ => None,
    }
}

/// One character or byte of a quoted literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Char(char),
    Byte(u8),
}

impl Unit {
    fn push_to(self, out: &mut Vec<u8>) {
        match self {
            Self::Char(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            Self::Byte(byte) => out.push(byte),
        }
    }

    /// The rune value.
    pub(crate) fn code(self) -> u32 {
        match self {
            Self::Char(c) => c.into(),
            Self::Byte(byte) => byte.into(),
        }
    }
}

/// `strconv.UnquoteChar`: the first unit of the text and the rest.
pub(crate) fn unquote_char(text: &[u8], quote: u8) -> Option<(Unit, &[u8])> {
    let (first, rest) = text.split_first()?;
    if *first == quote && (quote == b'\'' || quote == b'"') {
        return None;
    }
    if *first != b'\\' {
        if first.is_ascii() {
            return Some((Unit::Char(char::from(*first)), rest));
        }
        let (c, width) = crate::unicode::decode(text);
        return Some((Unit::Char(c), text.get(width..)?));
    }
    let (escape, rest) = rest.split_first()?;
    let simple = |c: char| Some((Unit::Char(c), rest));
    match escape {
        b'a' => simple('\x07'),
        b'b' => simple('\x08'),
        b'f' => simple('\x0c'),
        b'n' => simple('\n'),
        b'r' => simple('\r'),
        b't' => simple('\t'),
        b'v' => simple('\x0b'),
        b'\\' => simple('\\'),
        b'\'' | b'"' if *escape == quote => simple(char::from(*escape)),
        b'x' => {
            let (code, rest) = radix(rest, 2, 16)?;
            Some((Unit::Byte(u8::try_from(code).ok()?), rest))
        }
        b'u' => {
            let (code, rest) = radix(rest, 4, 16)?;
            Some((Unit::Char(char::from_u32(code)?), rest))
        }
        b'U' => {
            let (code, rest) = radix(rest, 8, 16)?;
            Some((Unit::Char(char::from_u32(code)?), rest))
        }
        b'0'..=b'7' => {
            let (code, rest) = radix(text.get(1..)?, 3, 8)?;
            Some((Unit::Byte(u8::try_from(code).ok()?), rest))
        }
        _ => None,
    }
}

fn radix(text: &[u8], digits: usize, base: u32) -> Option<(u32, &[u8])> {
    let (head, rest) = text.split_at_checked(digits)?;
    let mut value: u32 = 0;
    for byte in head {
        value = value
            .checked_mul(base)?
            .checked_add(char::from(*byte).to_digit(base)?)?;
    }
    Some((value, rest))
}
