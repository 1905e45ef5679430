//! `strconv.FormatFloat`.

/// Most digits that an exact decimal form of a float64 can have before or after the point.
const MAX_PRECISION: usize = 1_100;

/// Decimal digits of a positive finite number: `0.d1d2d3… × 10^point`.
struct Decimal {
    digits: Vec<u8>,
    point: i32,
}

/// Formats like `strconv.AppendFloat(nil, value, verb, precision, 64)`; no precision means the shortest form that
/// reads back as the same number.
pub(crate) fn format_float(value: f64, verb: u8, precision: Option<usize>) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let negative = value.is_sign_negative();
    let value = value.abs();
    let mut out = String::with_capacity(24);
    if negative {
        out.push('-');
    }
    match verb {
        b'b' => binary(&mut out, value),
        b'x' | b'X' => hex(&mut out, value, precision, verb == b'X'),
        b'e' | b'E' => exponent(&mut out, &digits_for_exponent(value, precision), precision, verb),
        b'f' => out.push_str(&plain(value, precision)),
        _ => general(&mut out, value, precision, verb),
    }
    out
}

fn shortest(value: f64) -> Decimal {
    parse_scientific(&format!("{value:e}"))
}

/// The first `count` significant digits, correctly rounded.
fn rounded(value: f64, count: usize) -> Decimal {
    let cut = count.clamp(1, MAX_PRECISION) - 1;
    parse_scientific(&format!("{value:.cut$e}"))
}

fn parse_scientific(text: &str) -> Decimal {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let digits = mantissa.bytes().filter(u8::is_ascii_digit).collect();
    let exponent: i32 = exponent.parse().unwrap_or(0);
    Decimal {
        digits,
        point: exponent + 1,
    }
}

fn digits_for_exponent(value: f64, precision: Option<usize>) -> Decimal {
    match precision {
        None => shortest(value),
        Some(precision) => rounded(value, precision + 1),
    }
}

fn exponent(out: &mut String, decimal: &Decimal, precision: Option<usize>, verb: u8) {
    let precision = precision.unwrap_or_else(|| decimal.digits.len().saturating_sub(1));
    let digit = |index: usize| decimal.digits.get(index).map_or('0', |digit| char::from(*digit));
    out.push(digit(0));
    if precision > 0 {
        out.push('.');
        for index in 1..=precision {
            out.push(digit(index));
        }
    }
    let is_zero = decimal.digits.iter().all(|digit| *digit == b'0');
    let exponent = if is_zero { 0 } else { decimal.point - 1 };
    out.push(char::from(verb));
    out.push(if exponent < 0 { '-' } else { '+' });
    let exponent = exponent.unsigned_abs();
    if exponent < 10 {
        out.push('0');
    }
    out.push_str(&exponent.to_string());
}

fn plain(value: f64, precision: Option<usize>) -> String {
    match precision {
        None => format!("{value}"),
        Some(precision) => {
            let shown = precision.min(MAX_PRECISION);
            let mut text = format!("{value:.shown$}");
            text.extend(std::iter::repeat_n('0', precision - shown));
            text
        }
    }
}

/// `%g`: scientific for very small and large exponents.
fn general(out: &mut String, value: f64, precision: Option<usize>, verb: u8) {
    let (decimal, mut limit) = match precision {
        None => (shortest(value), 6),
        Some(precision) => {
            let precision = precision.max(1);
            (rounded(value, precision), precision as i64)
        }
    };
    let mut digits = decimal.digits;
    // Trailing zeros are not significant digits.
    while digits.len() > 1 && digits.last() == Some(&b'0') {
        digits.pop();
    }
    let is_zero = digits.iter().all(|digit| *digit == b'0');
    let count = if is_zero { 0 } else { digits.len() as i64 };
    let point = if is_zero { 0 } else { i64::from(decimal.point) };
    let decimal = Decimal {
        digits,
        point: decimal.point,
    };
    if precision.is_some() && limit > count && count >= point {
        limit = count;
    }
    let exp = point - 1;
    if exp < -4 || exp >= limit {
        let wanted = count.max(1) as usize - 1;
        exponent(out, &decimal, Some(wanted), verb + b'e' - b'g');
        return;
    }
    if is_zero {
        out.push('0');
        return;
    }
    if point <= 0 {
        out.push_str("0.");
        out.extend(std::iter::repeat_n('0', (-point) as usize));
        out.extend(decimal.digits.iter().map(|digit| char::from(*digit)));
        return;
    }
    let whole = point as usize;
    for index in 0..whole.max(decimal.digits.len()) {
        if index == whole {
            out.push('.');
        }
        out.push(decimal.digits.get(index).map_or('0', |digit| char::from(*digit)));
    }
}

/// Mantissa and exponent: value = mantissa × 2^exponent.
fn parts(value: f64) -> (u64, i32) {
    let bits = value.to_bits();
    let exponent = ((bits >> 52) & 0x7ff) as i32;
    let fraction = bits & ((1 << 52) - 1);
    if exponent == 0 {
        (fraction, -1074)
    } else {
        (fraction | 1 << 52, exponent - 1075)
    }
}

fn binary(out: &mut String, value: f64) {
    let (mantissa, exponent) = parts(value);
    out.push_str(&format!("{mantissa}p{exponent:+}"));
}

fn hex(out: &mut String, value: f64, precision: Option<usize>, upper: bool) {
    let (mut mantissa, mut exponent) = parts(value);
    if mantissa == 0 {
        exponent = 0;
    } else {
        // Normalise to 1.xxx with 60 fraction bits.
        let shift = mantissa.leading_zeros() as i32 - 3;
        mantissa = mantissa.wrapping_shl(shift as u32);
        exponent = exponent - shift + 60;
        if let Some(precision) = precision
            && precision < 15
        {
            let drop = 60 - 4 * precision as u32;
            let extra = mantissa & ((1u64 << drop) - 1);
            let half = 1u64 << (drop - 1);
            mantissa >>= drop;
            if extra > half || (extra == half && mantissa & 1 == 1) {
                mantissa += 1;
            }
            mantissa <<= drop;
            if mantissa >> 61 != 0 {
                mantissa >>= 1;
                exponent += 1;
            }
        }
    }
    let fraction = mantissa & ((1 << 60) - 1);
    let mut digits = format!("{fraction:015x}");
    match precision {
        None => digits.truncate(digits.trim_end_matches('0').len()),
        Some(precision) if precision < 15 => digits.truncate(precision),
        Some(precision) => digits.extend(std::iter::repeat_n('0', precision - 15)),
    }
    let mut text = format!("0x{}", mantissa >> 60);
    if !digits.is_empty() {
        text.push('.');
        text.push_str(&digits);
    }
    text.push('p');
    text.push(if exponent < 0 { '-' } else { '+' });
    text.push_str(&format!("{:02}", exponent.unsigned_abs()));
    out.push_str(&if upper { text.to_uppercase() } else { text });
}
