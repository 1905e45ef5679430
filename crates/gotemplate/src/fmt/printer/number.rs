//! Verbs of numbers.

use super::Printer;
use crate::fmt::float::format_float;
use crate::fmt::quote;
use crate::unicode::is_print;
use crate::value::Value;

impl Printer<'_> {
    pub(super) fn complex(&mut self, re: f64, im: f64, verb: char, value: &Value) {
        if !matches!(verb, 'v' | 'b' | 'g' | 'G' | 'x' | 'X' | 'f' | 'F' | 'e' | 'E') {
            self.bad_verb(value, verb);
            return;
        }
        let plus = self.flags.plus;
        self.put("(");
        self.float_verb(re, verb, value);
        self.flags.plus = true;
        self.float_verb(im, verb, value);
        self.put("i)");
        self.flags.plus = plus;
    }

    pub(super) fn integer(&mut self, bits: u64, signed: bool, verb: char, value: &Value) {
        match verb {
            'v' if self.flags.sharp_v && !signed => {
                let sharp = std::mem::replace(&mut self.flags.sharp, true);
                self.digits(bits, 16, signed, 'v');
                self.flags.sharp = sharp;
            }
            'v' | 'd' => self.digits(bits, 10, signed, verb),
            'b' => self.digits(bits, 2, signed, verb),
            'o' | 'O' => self.digits(bits, 8, signed, verb),
            'x' | 'X' => self.digits(bits, 16, signed, verb),
            'c' => {
                let c = to_rune(bits);
                self.pad(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            'q' => {
                let shown = quote::quoted_rune(to_rune(bits), self.flags.plus);
                self.pad(&shown);
            }
            'U' => self.code_point(bits),
            _ => self.bad_verb(value, verb),
        }
    }

    fn code_point(&mut self, bits: u64) {
        let precision = self
            .flags
            .precision
            .filter(|precision| *precision > 4)
            .unwrap_or(4);
        let mut shown = format!("U+{bits:0precision$X}");
        if self.flags.sharp
            && let Some(c) = u32::try_from(bits)
                .ok()
                .and_then(char::from_u32)
                .filter(|c| is_print(*c))
        {
            shown.push_str(&format!(" '{c}'"));
        }
        self.pad_spaces(shown.as_bytes());
    }

    fn digits(&mut self, bits: u64, base: u32, signed: bool, verb: char) {
        let negative = signed && (bits as i64) < 0;
        let magnitude = if negative { bits.wrapping_neg() } else { bits };
        let mut precision = 0;
        if let Some(wanted) = self.flags.precision {
            precision = wanted;
            if wanted == 0 && magnitude == 0 {
                let zero = std::mem::replace(&mut self.flags.zero, false);
                self.padding(self.flags.width.unwrap_or(0));
                self.flags.zero = zero;
                return;
            }
        } else if self.flags.zero
            && !self.flags.minus
            && let Some(width) = self.flags.width
        {
            precision = width;
            if negative || self.flags.plus || self.flags.space {
                precision = precision.saturating_sub(1);
            }
        }
        let bare = match base {
            2 => format!("{magnitude:b}"),
            8 => format!("{magnitude:o}"),
            16 if verb == 'X' => format!("{magnitude:X}"),
            16 => format!("{magnitude:x}"),
            _ => magnitude.to_string(),
        };
        // Not by the width of a format argument: those end at 65,535.
        let mut digits = "0".repeat(precision.saturating_sub(bare.len()));
        digits.push_str(&bare);
        let mut shown = String::with_capacity(digits.len() + 3);
        if negative {
            shown.push('-');
        } else if self.flags.plus {
            shown.push('+');
        } else if self.flags.space {
            shown.push(' ');
        }
        if verb == 'O' {
            shown.push_str("0o");
        }
        if self.flags.sharp {
            match base {
                2 => shown.push_str("0b"),
                8 if !digits.starts_with('0') => shown.push('0'),
                16 => shown.push_str(if verb == 'X' { "0X" } else { "0x" }),
                _ => {}
            }
        }
        shown.push_str(&digits);
        self.pad_spaces(shown.as_bytes());
    }

    pub(super) fn float_verb(&mut self, value: f64, verb: char, operand: &Value) {
        match verb {
            'v' => self.float(value, b'g', None),
            'b' | 'g' | 'G' | 'x' | 'X' => self.float(value, verb as u8, None),
            'f' | 'e' | 'E' => self.float(value, verb as u8, Some(6)),
            'F' => self.float(value, b'f', Some(6)),
            _ => self.bad_verb(operand, verb),
        }
    }

    fn float(&mut self, value: f64, verb: u8, default: Option<usize>) {
        let precision = self.flags.precision.or(default);
        let mut number = format_float(value, verb, precision);
        if !number.starts_with(['-', '+']) {
            number.insert(0, '+');
        }
        if self.flags.space && number.starts_with('+') && !self.flags.plus {
            number.replace_range(..1, " ");
        }
        if value.is_nan() || value.is_infinite() {
            // NaN has no sign unless asked for; neither is padded with zeros.
            let bare = value.is_nan() && !self.flags.space && !self.flags.plus;
            let shown = if bare {
                number.get(1..).unwrap_or_default()
            } else {
                number.as_str()
            };
            self.pad_spaces(shown.as_bytes());
            return;
        }
        if self.flags.sharp && verb != b'b' {
            number = with_point(&number, verb, precision);
        }
        if self.flags.plus || !number.starts_with('+') {
            if self.flags.zero
                && !self.flags.minus
                && let Some(width) = self.flags.width.filter(|width| *width > number.len())
            {
                let (sign, digits) = number.split_at(1);
                self.put(sign);
                self.padding(width - number.len());
                self.put(digits);
                return;
            }
            self.pad(number.as_bytes());
            return;
        }
        self.pad(number.get(1..).unwrap_or_default().as_bytes());
    }
}

fn to_rune(bits: u64) -> char {
    u32::try_from(bits)
        .ok()
        .and_then(char::from_u32)
        .unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// The `#` flag of float verbs: always a decimal point, and trailing zeros for `%g`.
fn with_point(number: &str, verb: u8, precision: Option<usize>) -> String {
    let mut missing: i64 = match verb {
        b'g' | b'G' | b'x' => precision.map_or(6, |precision| precision as i64),
        _ => 0,
    };
    let is_hex = matches!(verb, b'x' | b'X');
    let tail_start = number
        .char_indices()
        .skip(1)
        .find(|(_, c)| matches!(c, 'p' | 'P') || (!is_hex && matches!(c, 'e' | 'E')))
        .map_or(number.len(), |(index, _)| index);
    let (head, tail) = number.split_at(tail_start);
    let mut has_point = false;
    let mut seen_nonzero = false;
    for c in head.chars().skip(1) {
        if c == '.' {
            has_point = true;
            continue;
        }
        seen_nonzero |= c != '0';
        if seen_nonzero {
            missing -= 1;
        }
    }
    let mut out = head.to_owned();
    if !has_point {
        if out.len() == 2 && out.ends_with('0') {
            missing -= 1;
        }
        out.push('.');
    }
    out.extend(std::iter::repeat_n('0', missing.max(0) as usize));
    out.push_str(tail);
    out
}
