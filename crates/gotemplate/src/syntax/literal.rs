//! Numeric literals: parsed under every type that can hold them, as Go's ideal constants.

use super::lexer::TokenKind;
use super::node::Number;
use crate::fmt::quote;
use crate::strconv::{parse_float, parse_int, parse_uint, unquote_char};

impl Number {
    /// The number of a token, or what is wrong with it.
    pub(crate) fn parse(text: &str, kind: TokenKind) -> Result<Self, String> {
        let mut number = Self {
            text: text.into(),
            ..Self::default()
        };
        match kind {
            TokenKind::CharConstant => {
                let body = text.as_bytes().get(1..).unwrap_or_default();
                let (unit, tail) = unquote_char(body, b'\'').ok_or("invalid syntax")?;
                if tail != b"'" {
                    return Err(format!("malformed character constant: {text}"));
                }
                let code = unit.code();
                number.int = Some(code.into());
                number.uint = Some(code.into());
                number.float = Some(code.into());
                return Ok(number);
            }
            TokenKind::Complex => {
                number.set_complex(parse_complex(text).ok_or("syntax error scanning complex number")?);
                return Ok(number);
            }
            _ => {}
        }
        if let Some(imaginary) = text.strip_suffix('i')
            && let Ok(im) = parse_float(imaginary.as_bytes())
        {
            number.set_complex((0.0, im));
            return Ok(number);
        }
        number.uint = parse_uint(text.as_bytes(), 0).ok();
        number.int = parse_int(text.as_bytes(), 0).ok();
        if number.int == Some(0) && number.uint.is_none() {
            number.uint = Some(0);
        }
        if let Some(int) = number.int {
            number.float = Some(int as f64);
        } else if let Some(uint) = number.uint {
            number.float = Some(uint as f64);
        } else if let Ok(float) = parse_float(text.as_bytes()) {
            if !text.contains(['.', 'e', 'E', 'p', 'P']) {
                return Err(format!("integer overflow: {}", quote::text(text)));
            }
            number.float = Some(float);
            number.int = whole_int(float);
            number.uint = whole_uint(float);
        }
        if number.int.is_none() && number.uint.is_none() && number.float.is_none() {
            return Err(format!("illegal number syntax: {}", quote::text(text)));
        }
        Ok(number)
    }

    fn set_complex(&mut self, (re, im): (f64, f64)) {
        self.complex = Some((re, im));
        if im == 0.0 {
            self.float = Some(re);
            self.int = whole_int(re);
            self.uint = whole_uint(re);
        }
    }
}

fn whole_int(float: f64) -> Option<i64> {
    let int = float as i64;
    (int as f64 == float && float < -(i64::MIN as f64)).then_some(int)
}

fn whole_uint(float: f64) -> Option<u64> {
    let uint = float as u64;
    (uint as f64 == float && float < u64::MAX as f64).then_some(uint)
}

/// `1+2i`: two numbers, the second signed and ending in `i`.
fn parse_complex(text: &str) -> Option<(f64, f64)> {
    let body = text.strip_suffix('i')?;
    let bytes = body.as_bytes();
    let split = (1..bytes.len()).rev().find(|index| {
        let sign = matches!(bytes.get(*index), Some(b'+' | b'-'));
        let after_exponent = matches!(bytes.get(index - 1), Some(b'e' | b'E' | b'p' | b'P'));
        sign && !after_exponent
    })?;
    let (re, im) = bytes.split_at_checked(split)?;
    Some((parse_float(re).ok()?, parse_float(im).ok()?))
}
