//! Numbers as Go's `strconv` reads and prints them.

use std::fmt::Write as _;

/// Most digits that the shortest decimal form of an `f64` can have.
const MAX_DIGITS: usize = 17;

/// Go's `%g` with the shortest precision prints plain digits from this decimal exponent on ...
const GENERAL_MIN_EXPONENT: i32 = -4;

/// ... and below this one; the exponent form elsewhere.
const GENERAL_MAX_EXPONENT: i32 = 6;

/// Absolute values below this one are printed with an exponent in JSON (ECMAScript's rule).
const JSON_MIN_FIXED: f64 = 1e-6;

/// Absolute values from this one on are printed with an exponent in JSON (ECMAScript's rule).
const JSON_MAX_FIXED: f64 = 1e21;

/// Whole floats below this one are exact, their digits the shortest.
const EXACT_INTEGERS: f64 = 9_007_199_254_740_992.0;

/// The shortest decimal digits that read back as the same float: `0.d1d2d3... * 10^point`.
struct Shortest {
    digits: [u8; MAX_DIGITS],
    len: usize,
    /// Digits before the decimal point (may be negative or larger than `len`).
    point: i32,
    negative: bool,
}

/// Takes apart the text that Rust prints for `{:e}`, without allocating.
struct Collector {
    shortest: Shortest,
    in_exponent: bool,
    exponent: i32,
    exponent_negative: bool,
}

impl Collector {
    fn collect(text: std::fmt::Arguments<'_>) -> Shortest {
        let mut collector = Collector {
            shortest: Shortest {
                digits: [0; MAX_DIGITS],
                len: 0,
                point: 0,
                negative: false,
            },
            in_exponent: false,
            exponent: 0,
            exponent_negative: false,
        };
        // Writing into the collector cannot fail.
        let _ = collector.write_fmt(text);
        let exponent = if collector.exponent_negative {
            -collector.exponent
        } else {
            collector.exponent
        };
        let mut shortest = collector.shortest;
        shortest.point = exponent + 1;
        shortest
    }
}

impl std::fmt::Write for Collector {
    fn write_str(&mut self, s: &str) -> std::fmt::Result {
        for b in s.bytes() {
            match b {
                b'-' if self.in_exponent => self.exponent_negative = true,
                b'-' => self.shortest.negative = true,
                b'e' => self.in_exponent = true,
                b'0'..=b'9' if self.in_exponent => self.exponent = self.exponent * 10 + i32::from(b - b'0'),
                b'0'..=b'9' => {
                    if let Some(slot) = self.shortest.digits.get_mut(self.shortest.len) {
                        *slot = b;
                        self.shortest.len += 1;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// From this many digits on, two shortest forms can be equally near.
const TIE_DIGITS: usize = 6;

impl Shortest {
    fn of<F>(value: F) -> Self
    where
        F: std::fmt::LowerExp + std::str::FromStr + PartialEq + Copy,
    {
        let shortest = Collector::collect(format_args!("{value:e}"));
        if shortest.len < TIE_DIGITS {
            return shortest;
        }
        // Of two equally near forms Go takes the even one, Rust's shortest form the larger: 1844674407370955.25.
        let precision = shortest.len - 1;
        let nearest = Collector::collect(format_args!("{value:.precision$e}"));
        if nearest.digits() != shortest.digits()
            && format!("{value:.precision$e}").parse::<F>().ok() == Some(value)
        {
            return nearest;
        }
        shortest
    }

    fn digits(&self) -> &[u8] {
        self.digits.get(..self.len).unwrap_or(&[])
    }

    /// `d.ddde±xx`, the exponent with at least `min_exponent_digits` digits.
    fn push_exponent(&self, out: &mut String, min_exponent_digits: usize) {
        if self.negative {
            out.push('-');
        }
        for (i, d) in self.digits().iter().enumerate() {
            if i == 1 {
                out.push('.');
            }
            out.push(char::from(*d));
        }
        let exponent = self.point - 1;
        out.push('e');
        out.push(if exponent < 0 { '-' } else { '+' });
        let _ = write!(
            out,
            "{:0width$}",
            exponent.unsigned_abs(),
            width = min_exponent_digits
        );
    }

    /// Plain decimal digits, no exponent.
    fn push_fixed(&self, out: &mut String) {
        if self.negative {
            out.push('-');
        }
        let digits = self.digits();
        let len = i32::try_from(self.len).unwrap_or(0);
        if self.point <= 0 {
            out.push_str("0.");
            for _ in self.point..0 {
                out.push('0');
            }
            digits.iter().for_each(|d| out.push(char::from(*d)));
            return;
        }
        for (i, d) in (0i32..).zip(digits) {
            if i == self.point {
                out.push('.');
            }
            out.push(char::from(*d));
        }
        for _ in len..self.point {
            out.push('0');
        }
    }
}

fn push_zero(out: &mut String, negative: bool) {
    out.push_str(if negative { "-0" } else { "0" });
}

/// Go's `strconv.FormatFloat(value, 'g', -1, 64)`, with YAML's names for the non-finite values.
pub(crate) fn push_general(out: &mut String, value: f64) {
    if value.is_nan() {
        out.push_str(".nan");
    } else if value.is_infinite() {
        out.push_str(if value > 0.0 { ".inf" } else { "-.inf" });
    } else if value == 0.0 {
        push_zero(out, value.is_sign_negative());
    } else {
        push_general_finite(out, &Shortest::of(value));
    }
}

/// Go's `strconv.FormatFloat(value, 'g', -1, 32)`: how a float becomes a mapping key in JSON.
pub(crate) fn push_general_f32(out: &mut String, value: f64) {
    #[allow(clippy::cast_possible_truncation)]
    let single = value as f32;
    if !single.is_finite() {
        push_general(out, f64::from(single));
    } else if single == 0.0 {
        push_zero(out, single.is_sign_negative());
    } else {
        push_general_finite(out, &Shortest::of(single));
    }
}

fn push_general_finite(out: &mut String, shortest: &Shortest) {
    let exponent = shortest.point - 1;
    if (GENERAL_MIN_EXPONENT..GENERAL_MAX_EXPONENT).contains(&exponent) {
        shortest.push_fixed(out);
    } else {
        shortest.push_exponent(out, 2);
    }
}

/// Appends a finite float as Go's encoding/json prints it; the caller refuses NaN and infinities first.
pub(crate) fn push_json(out: &mut String, value: f64) {
    let abs = value.abs();
    if value == 0.0 {
        push_zero(out, value.is_sign_negative());
    } else if value.fract() == 0.0 && abs < EXACT_INTEGERS {
        #[allow(clippy::cast_possible_truncation)]
        let whole = value as i64;
        // Writing into a string cannot fail.
        let _ = write!(out, "{whole}");
    } else if (JSON_MIN_FIXED..JSON_MAX_FIXED).contains(&abs) {
        Shortest::of(value).push_fixed(out);
    } else {
        Shortest::of(value).push_exponent(out, 1);
    }
}

/// A float as Go's encoding/json prints it: plain digits from 1e-6 up to 1e21, the exponent form elsewhere.
/// NaN and infinities, which JSON refuses, give Go's names `NaN`, `+Inf` and `-Inf`.
pub fn format_json_float(value: f64) -> String {
    let mut out = String::new();
    if value.is_finite() {
        push_json(&mut out, value);
    } else {
        out.push_str(non_finite_name(value));
    }
    out
}

/// Go's name of a value that is not finite.
pub(crate) fn non_finite_name(value: f64) -> &'static str {
    if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "+Inf"
    } else {
        "-Inf"
    }
}

/// Go's `strconv.ParseInt(text, 0, 64)`; `text` holds no underscores.
pub(crate) fn parse_int(text: &str) -> Option<i64> {
    let (negative, magnitude) = match text.as_bytes().first()? {
        b'-' => (true, parse_uint(text.get(1..)?)?),
        b'+' => (false, parse_uint(text.get(1..)?)?),
        _ => (false, parse_uint(text)?),
    };
    signed(negative, magnitude)
}

fn signed(negative: bool, magnitude: u64) -> Option<i64> {
    if negative {
        0i64.checked_sub_unsigned(magnitude)
    } else {
        i64::try_from(magnitude).ok()
    }
}

/// Go's `strconv.ParseUint(text, 0, 64)`; `text` holds no underscores.
pub(crate) fn parse_uint(text: &str) -> Option<u64> {
    let bytes = text.as_bytes();
    let (radix, digits) = match (bytes.first()?, bytes.get(1).map(u8::to_ascii_lowercase)) {
        (b'0', Some(b'b')) if bytes.len() > 2 => (2, bytes.get(2..)?),
        (b'0', Some(b'o')) if bytes.len() > 2 => (8, bytes.get(2..)?),
        (b'0', Some(b'x')) if bytes.len() > 2 => (16, bytes.get(2..)?),
        (b'0', _) => (8, bytes.get(1..)?),
        _ => (10, bytes),
    };
    parse_digits(digits, radix)
}

fn parse_digits(digits: &[u8], radix: u32) -> Option<u64> {
    let mut value: u64 = 0;
    for b in digits {
        let digit = char::from(*b).to_digit(radix)?;
        value = value
            .checked_mul(u64::from(radix))?
            .checked_add(u64::from(digit))?;
    }
    Some(value)
}

/// Go's `strconv.ParseInt(text, radix, 64)` with an explicit radix: no prefix, an optional sign, at least one digit.
pub(crate) fn parse_int_radix(text: &str, radix: u32) -> Option<i64> {
    let (negative, digits) = match text.as_bytes() {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    if digits.is_empty() {
        return None;
    }
    signed(negative, parse_digits(digits, radix)?)
}

/// Go's `strconv.ParseUint(text, radix, 64)` with an explicit radix.
pub(crate) fn parse_uint_radix(text: &str, radix: u32) -> Option<u64> {
    if text.is_empty() {
        None
    } else {
        parse_digits(text.as_bytes(), radix)
    }
}

/// Whether the text has the shape `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`.
pub(crate) fn is_yaml_float(text: &str) -> bool {
    let mut rest = text.as_bytes();
    if let [b'-' | b'+', tail @ ..] = rest {
        rest = tail;
    }
    let (whole, tail) = split_digits(rest);
    rest = tail;
    if let [b'.', tail @ ..] = rest {
        let (fraction, tail) = split_digits(tail);
        if whole == 0 && fraction == 0 {
            return false;
        }
        rest = tail;
    } else if whole == 0 {
        return false;
    }
    if let [b'e' | b'E', tail @ ..] = rest {
        let tail = match tail {
            [b'-' | b'+', digits @ ..] => digits,
            digits => digits,
        };
        let (digits, tail) = split_digits(tail);
        return digits > 0 && tail.is_empty();
    }
    rest.is_empty()
}

fn split_digits(bytes: &[u8]) -> (usize, &[u8]) {
    let count = bytes.iter().take_while(|b| b.is_ascii_digit()).count();
    (count, bytes.get(count..).unwrap_or(&[]))
}

/// Go's `strconv.ParseFloat` for a text of the shape [`is_yaml_float`]; nothing when it is out of range.
pub(crate) fn parse_float(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|f| f.is_finite())
}

/// Go's `strconv.ParseFloat` for a text that begins with a point, where Go also allows `_` between digits.
pub(crate) fn parse_point_float(text: &str) -> Option<f64> {
    if !text.contains('_') {
        return if is_yaml_float(text) {
            parse_float(text)
        } else {
            None
        };
    }
    let bytes = text.as_bytes();
    let between_digits = |i: usize| {
        let digit = |j: Option<usize>| j.and_then(|j| bytes.get(j)).is_some_and(u8::is_ascii_digit);
        digit(i.checked_sub(1)) && digit(i.checked_add(1))
    };
    let well_placed = bytes
        .iter()
        .enumerate()
        .all(|(i, b)| *b != b'_' || between_digits(i));
    let plain = text.replace('_', "");
    if well_placed && is_yaml_float(&plain) {
        parse_float(&plain)
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
