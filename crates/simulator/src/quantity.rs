//! Resource quantities in the form the API server prints them: `0.5` becomes `500m`, `1024Mi` becomes `1Gi`.

/// What the API server says of a quantity it cannot read.
pub(crate) const QUANTITY_ERROR: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// Nothing smaller than this power of ten is kept.
const SMALLEST: i32 = -9;
const DECIMAL: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];
const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

enum Notation {
    Decimal,
    Exponent,
    Binary,
}

/// A number as `mantissa * 10^exponent`.
struct Number {
    mantissa: i128,
    exponent: i32,
}

/// The canonical form, or `None` when the text is no quantity.
pub(crate) fn canonical(text: &str) -> Option<String> {
    let (mut number, notation) = parse(text)?;
    round_up(&mut number, SMALLEST)?;
    format(number, notation)
}

/// The canonical form rounded up to thousandths, as resource lists are.
pub(crate) fn canonical_milli(text: &str) -> Option<String> {
    let (mut number, notation) = parse(text)?;
    round_up(&mut number, -3)?;
    format(number, notation)
}

/// The amount in billionths, for comparing two.
pub(crate) fn billionths(text: &str) -> Option<i128> {
    let (number, _) = parse(text)?;
    let power = u32::try_from(number.exponent - SMALLEST).ok()?;
    number.mantissa.checked_mul(10_i128.checked_pow(power)?)
}

fn parse(text: &str) -> Option<(Number, Notation)> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let negative = text.starts_with('-');
    let end = unsigned
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(unsigned.len());
    let (digits, suffix) = unsigned.split_at(end);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    // More digits than anyone means are refused rather than rounded.
    let mut mantissa: i128 = format!("0{whole}{fraction}").parse().ok()?;
    if negative {
        mantissa = -mantissa;
    }
    let mut number = Number {
        mantissa,
        exponent: -i32::try_from(fraction.len()).ok()?,
    };
    if let Some((_, exponent)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        number.exponent += exponent;
        return Some((number, Notation::Decimal));
    }
    if let Some(power) = BINARY.iter().position(|name| *name == suffix) {
        let factor = 1_i128.checked_shl(u32::try_from(power + 1).ok()? * 10)?;
        number.mantissa = number.mantissa.checked_mul(factor)?;
        return Some((number, Notation::Binary));
    }
    let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    number.exponent = number.exponent.checked_add(exponent)?;
    Some((number, Notation::Exponent))
}

fn round_up(number: &mut Number, smallest: i32) -> Option<()> {
    while number.exponent < smallest {
        let up = number.mantissa > 0 && number.mantissa % 10 != 0;
        number.mantissa = number.mantissa / 10 + i128::from(up);
        number.exponent += 1;
    }
    Some(())
}

fn format(mut number: Number, notation: Notation) -> Option<String> {
    if number.mantissa == 0 {
        return Some("0".into());
    }
    if matches!(notation, Notation::Binary) {
        let mut integer = Number { ..number };
        round_up(&mut integer, 0)?;
        let mut value = integer
            .mantissa
            .checked_mul(10_i128.checked_pow(u32::try_from(integer.exponent).ok()?)?)?;
        if value.abs() >= 1024 {
            let mut power = 0;
            while value % 1024 == 0 && power < BINARY.len() {
                value /= 1024;
                power += 1;
            }
            let suffix = power
                .checked_sub(1)
                .and_then(|power| BINARY.get(power))
                .copied()
                .unwrap_or_default();
            return Some(format!("{value}{suffix}"));
        }
    }
    while number.mantissa % 10 == 0 {
        number.mantissa /= 10;
        number.exponent += 1;
    }
    let mut power = number.exponent.div_euclid(3) * 3;
    if !matches!(notation, Notation::Exponent) {
        power = power.min(18);
    }
    let spare = u32::try_from(number.exponent - power).ok()?;
    let mantissa = number.mantissa.checked_mul(10_i128.checked_pow(spare)?)?;
    match notation {
        Notation::Exponent if power != 0 => Some(format!("{mantissa}e{power}")),
        Notation::Exponent => Some(mantissa.to_string()),
        _ => {
            let (suffix, _) = DECIMAL.iter().find(|(_, exponent)| *exponent == power)?;
            Some(format!("{mantissa}{suffix}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_read_as_the_api_server_prints_them() {
        for (text, expected) in [
            ("0.5", "500m"),
            ("1000m", "1"),
            ("100m", "100m"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("128Mi", "128Mi"),
            ("0.5Ki", "512"),
            ("100000000", "100M"),
            ("1536", "1536"),
            ("2000", "2k"),
            ("1e3", "1e3"),
            ("12e6", "12e6"),
            ("0", "0"),
            ("0.0", "0"),
            ("-1.5", "-1500m"),
            ("5.", "5"),
            (".25", "250m"),
            ("1Ei", "1Ei"),
            ("0.0000000001", "1n"),
        ] {
            assert_eq!(canonical(text).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(canonical_milli("0.0001").as_deref(), Some("1m"));
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        for text in ["", "x", "1.2.3", "1Zi", "Mi", "1 Gi", "--1", "e3", "1e"] {
            assert_eq!(canonical(text), None, "{text}");
        }
    }
}
