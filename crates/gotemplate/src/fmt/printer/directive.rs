//! The format of `printf`: flags, width, precision, argument indexes.

use super::{Flags, Printer};
use crate::unicode::decode;
use crate::value::{Kind, Value};

/// Go's bound on width and precision.
const MAX_NUMBER: i64 = 1_000_000;

impl Printer<'_> {
    pub(super) fn printf(&mut self, format: &[u8], args: &[Value]) {
        let mut cursor = Cursor {
            format,
            pos: 0,
            arg: 0,
            reordered: false,
            good_index: true,
        };
        loop {
            cursor.good_index = true;
            let rest = cursor.rest();
            let plain = memchr::memchr(b'%', rest).unwrap_or(rest.len());
            self.out.extend_from_slice(rest.get(..plain).unwrap_or_default());
            cursor.pos += plain;
            if cursor.byte().is_none() {
                break;
            }
            cursor.pos += 1;
            self.flags = Flags::default();
            if !self.directive(&mut cursor, args) || !self.within_limits() {
                break;
            }
        }
        if !cursor.reordered && cursor.arg < args.len() {
            self.flags = Flags::default();
            self.put("%!(EXTRA ");
            for (index, arg) in args.iter().skip(cursor.arg).enumerate() {
                if index > 0 {
                    self.put(", ");
                }
                if arg.is_nil() {
                    self.put("<nil>");
                } else {
                    self.put(arg.type_name());
                    self.put("=");
                    self.arg(arg, 'v');
                }
            }
            self.put(")");
        }
    }

    /// One `%…`; false when the format ends inside it.
    fn directive(&mut self, cursor: &mut Cursor<'_>, args: &[Value]) -> bool {
        while let Some(byte) = cursor.byte() {
            match byte {
                b'#' => self.flags.sharp = true,
                b'0' => self.flags.zero = true,
                b'+' => self.flags.plus = true,
                b'-' => self.flags.minus = true,
                b' ' => self.flags.space = true,
                _ => break,
            }
            cursor.pos += 1;
        }
        let mut after_index = cursor.argument_index(args.len());
        if cursor.byte() == Some(b'*') {
            cursor.pos += 1;
            let width = cursor.int_arg(args);
            match width {
                None => self.put("%!(BADWIDTH)"),
                Some(width) => {
                    self.flags.width = Some(width.unsigned_abs() as usize);
                    if width < 0 {
                        self.flags.minus = true;
                        self.flags.zero = false;
                    }
                }
            }
            after_index = false;
        } else {
            self.flags.width = cursor.number();
            if after_index && self.flags.width.is_some() {
                cursor.good_index = false;
            }
        }
        if cursor.byte() == Some(b'.') && cursor.pos + 1 < cursor.format.len() {
            cursor.pos += 1;
            if after_index {
                cursor.good_index = false;
            }
            after_index = cursor.argument_index(args.len());
            if cursor.byte() == Some(b'*') {
                cursor.pos += 1;
                let precision = cursor.int_arg(args).filter(|precision| *precision >= 0);
                self.flags.precision = precision.map(|precision| precision as usize);
                if precision.is_none() {
                    self.put("%!(BADPREC)");
                }
                after_index = false;
            } else {
                self.flags.precision = Some(cursor.number().unwrap_or(0));
            }
        }
        if !after_index {
            cursor.argument_index(args.len());
        }
        if cursor.pos >= cursor.format.len() {
            self.put("%!(NOVERB)");
            return false;
        }
        let (verb, width) = decode(cursor.rest());
        cursor.pos += width;
        if verb == '%' {
            self.put("%");
            return true;
        }
        let mut shown = [0; 4];
        let shown = verb.encode_utf8(&mut shown);
        if !cursor.good_index {
            self.put("%!");
            self.put(shown);
            self.put("(BADINDEX)");
            return true;
        }
        let Some(arg) = args.get(cursor.arg) else {
            self.put("%!");
            self.put(shown);
            self.put("(MISSING)");
            return true;
        };
        cursor.arg += 1;
        if matches!(verb, 'v' | 'w') {
            self.flags.sharp_v = std::mem::replace(&mut self.flags.sharp, false);
            self.flags.plus_v = std::mem::replace(&mut self.flags.plus, false);
        }
        if verb == 'w' {
            // %w wraps errors in Errorf only; here it is no verb.
            self.bad_verb(arg, verb);
        } else {
            self.arg(arg, verb);
        }
        true
    }
}

/// Where `printf` is in its format and arguments.
struct Cursor<'f> {
    format: &'f [u8],
    pos: usize,
    arg: usize,
    reordered: bool,
    good_index: bool,
}

impl<'f> Cursor<'f> {
    fn rest(&self) -> &'f [u8] {
        self.format.get(self.pos..).unwrap_or_default()
    }

    fn byte(&self) -> Option<u8> {
        self.format.get(self.pos).copied()
    }

    /// A decimal number; none when there is none or it is absurdly long.
    fn number(&mut self) -> Option<usize> {
        let mut value: Option<i64> = None;
        while let Some(byte @ b'0'..=b'9') = self.byte() {
            let so_far = value.unwrap_or(0);
            if so_far > MAX_NUMBER {
                self.pos = self.format.len();
                return None;
            }
            value = Some(so_far * 10 + i64::from(byte - b'0'));
            self.pos += 1;
        }
        value.and_then(|value| usize::try_from(value).ok())
    }

    /// `[n]`: which argument is next. True when there was an index.
    fn argument_index(&mut self, count: usize) -> bool {
        if self.byte() != Some(b'[') {
            return false;
        }
        self.reordered = true;
        let rest = self.rest();
        let close = memchr::memchr(b']', rest);
        let Some(close) = close.filter(|_| rest.len() >= 3) else {
            self.pos += 1;
            self.good_index = false;
            return false;
        };
        let digits = rest.get(1..close).unwrap_or_default();
        self.pos += close + 1;
        let mut number = Cursor {
            format: digits,
            pos: 0,
            arg: 0,
            reordered: false,
            good_index: true,
        };
        let parsed = number.number().filter(|_| number.pos == digits.len());
        match parsed {
            Some(index) if index >= 1 && index <= count => {
                self.arg = index - 1;
                true
            }
            other => {
                self.good_index = false;
                other.is_some()
            }
        }
    }

    /// The next argument as width or precision.
    fn int_arg(&mut self, args: &[Value]) -> Option<i64> {
        let arg = args.get(self.arg)?;
        self.arg += 1;
        let number = match arg {
            Value::Int(_, number) => *number,
            Value::Uint(_, number) => i64::try_from(*number).ok()?,
            Value::Object(object) => match (object.kind(), object.data()) {
                (Kind::Int | Kind::Int64, Some(Value::Int(_, number))) => number,
                _ => return None,
            },
            _ => return None,
        };
        (-MAX_NUMBER..=MAX_NUMBER).contains(&number).then_some(number)
    }
}
