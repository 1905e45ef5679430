//! The printer behind `print`, `printf`, `println` and the output of templates.

use super::float::format_float;
use super::quote;
use crate::env::{Limit, Limits};
use crate::unicode::{decode, is_print, rune_count, runes};
use crate::value::{Kind, List, Map, Object, Str, Type, Value};

/// Go's bound on width and precision.
const MAX_NUMBER: i64 = 1_000_000;
/// Stack to leave and to add when values nest.
const RED_ZONE: usize = 64 << 10;
const STACK: usize = 1 << 20;

/// `fmt.Sprint(args...)`: a space between two operands when neither is a string.
pub(crate) fn sprint(args: &[Value], limits: &Limits) -> Result<Vec<u8>, Limit> {
    if let [Value::Str(text)] = args {
        return Ok(text.as_bytes().to_vec());
    }
    let mut printer = Printer::new(limits);
    let mut after_string = false;
    for (index, arg) in args.iter().enumerate() {
        let is_string = matches!(arg, Value::Str(_));
        if index > 0 && !is_string && !after_string {
            printer.out.push(b' ');
        }
        printer.arg(arg, 'v');
        after_string = is_string;
    }
    printer.finish()
}

/// `fmt.Sprintln(args...)`
pub(crate) fn sprintln(args: &[Value], limits: &Limits) -> Result<Vec<u8>, Limit> {
    let mut printer = Printer::new(limits);
    for (index, arg) in args.iter().enumerate() {
        if index > 0 {
            printer.out.push(b' ');
        }
        printer.arg(arg, 'v');
    }
    printer.out.push(b'\n');
    printer.finish()
}

/// `fmt.Sprintf(format, args...)`
pub(crate) fn sprintf(format: &[u8], args: &[Value], limits: &Limits) -> Result<Vec<u8>, Limit> {
    let mut printer = Printer::new(limits);
    printer.printf(format, args);
    printer.finish()
}

/// Sprig's `strval`: strings as they are, bytes as text, the rest as `%v`.
pub(crate) fn strval(value: &Value, limits: &Limits) -> Result<Str, Limit> {
    match value {
        Value::Str(text) => Ok(text.clone()),
        Value::Bytes(bytes) => Ok(Str::new(bytes)),
        _ => sprint(std::slice::from_ref(value), limits).map(Str::from),
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Flags {
    width: Option<usize>,
    precision: Option<usize>,
    minus: bool,
    plus: bool,
    sharp: bool,
    space: bool,
    zero: bool,
    plus_v: bool,
    sharp_v: bool,
}

/// Prints values with Go's verbs into a bounded buffer.
pub(crate) struct Printer<'l> {
    out: Vec<u8>,
    flags: Flags,
    limits: &'l Limits,
    passed: Option<Limit>,
    /// Set while printing the operand of a bad verb: methods are not asked then.
    erroring: bool,
}

impl<'l> Printer<'l> {
    pub(crate) fn new(limits: &'l Limits) -> Self {
        Self {
            out: Vec::new(),
            flags: Flags::default(),
            limits,
            passed: None,
            erroring: false,
        }
    }

    /// Continues a buffer.
    pub(crate) fn append(out: Vec<u8>, limits: &'l Limits) -> Self {
        Self {
            out,
            ..Self::new(limits)
        }
    }

    pub(crate) fn finish(self) -> Result<Vec<u8>, Limit> {
        match self.passed {
            Some(limit) => Err(limit),
            None => Ok(self.out),
        }
    }

    /// Whether printing goes on; a value that would print for ever stops here.
    fn within_limits(&mut self) -> bool {
        if self.out.len() > self.limits.output_bytes {
            self.passed
                .get_or_insert(Limit::OutputBytes(self.limits.output_bytes));
        }
        self.passed.is_none()
    }

    fn put(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    fn padding(&mut self, count: usize) {
        let fill = if self.flags.zero && !self.flags.minus {
            b'0'
        } else {
            b' '
        };
        self.out.resize(self.out.len() + count, fill);
    }

    fn pad(&mut self, text: &[u8]) {
        let width = match self.flags.width {
            None | Some(0) => {
                self.out.extend_from_slice(text);
                return;
            }
            Some(width) => width.saturating_sub(rune_count(text)),
        };
        if self.flags.minus {
            self.out.extend_from_slice(text);
            self.padding(width);
        } else {
            self.padding(width);
            self.out.extend_from_slice(text);
        }
    }

    /// Pads with spaces whatever the zero flag says.
    fn pad_spaces(&mut self, text: &[u8]) {
        let zero = std::mem::replace(&mut self.flags.zero, false);
        self.pad(text);
        self.flags.zero = zero;
    }

    /// Prints one operand.
    pub(crate) fn arg(&mut self, arg: &Value, verb: char) {
        if !self.within_limits() {
            return;
        }
        match (arg, verb) {
            (Value::Nil, 'T' | 'v') => self.pad(b"<nil>"),
            (Value::Nil, _) => self.bad_verb(arg, verb),
            (_, 'T') => self.string(arg.type_name().as_bytes(), 's', arg),
            (_, 'p') => self.bad_verb_or_pointer(arg, verb),
            _ => self.value(arg, verb, 0),
        }
    }

    fn bad_verb_or_pointer(&mut self, arg: &Value, verb: char) {
        match arg.kind() {
            Kind::Slice | Kind::Map | Kind::Ptr | Kind::Func => self.address(),
            _ => self.bad_verb(arg, verb),
        }
    }

    /// Go prints where a pointer points; no two runs agree, so ours is always the same.
    fn address(&mut self) {
        self.put("0xc000000000");
    }

    fn bad_verb(&mut self, arg: &Value, verb: char) {
        let erroring = std::mem::replace(&mut self.erroring, true);
        self.put("%!");
        self.out
            .extend_from_slice(verb.encode_utf8(&mut [0; 4]).as_bytes());
        self.put("(");
        if arg.is_nil() {
            self.put("<nil>");
        } else {
            self.put(arg.type_name());
            self.put("=");
            self.value(arg, 'v', 0);
        }
        self.put(")");
        self.erroring = erroring;
    }

    fn value(&mut self, value: &Value, verb: char, depth: usize) {
        if !self.within_limits() {
            return;
        }
        match value {
            Value::Nil => self.put("<nil>"),
            Value::Bool(flag) => match verb {
                't' | 'v' => self.pad(if *flag { b"true" } else { b"false" }),
                _ => self.bad_verb(value, verb),
            },
            Value::Int(_, int) => self.integer(*int as u64, true, verb, value),
            Value::Uint(_, int) => self.integer(*int, false, verb, value),
            Value::Float(float) => self.float_verb(*float, verb, value),
            Value::Complex(re, im) => self.complex(*re, *im, verb, value),
            Value::Str(text) => self.string(text.as_bytes(), verb, value),
            Value::Bytes(bytes) => self.bytes(bytes, verb, value),
            Value::List(list) => self.nested(depth, |printer| printer.list(list, verb, depth)),
            Value::Map(map) => self.nested(depth, |printer| printer.map(map, verb, depth)),
            Value::Object(object) => {
                self.nested(depth, |printer| printer.object(&**object, value, verb, depth))
            }
            Value::Func(_) => self.address(),
        }
    }

    fn nested(&mut self, depth: usize, print: impl FnOnce(&mut Self)) {
        if depth >= self.limits.value_depth {
            self.passed
                .get_or_insert(Limit::ValueDepth(self.limits.value_depth));
            return;
        }
        stacker::maybe_grow(RED_ZONE, STACK, || print(self));
    }

    /// An element of a container: a nil one prints as `<nil>` under every verb.
    fn element(&mut self, value: &Value, of: Type, verb: char, depth: usize) {
        if value.is_nil() {
            if self.flags.sharp_v {
                self.put(of.name());
                self.put("(nil)");
            } else {
                self.put("<nil>");
            }
            return;
        }
        self.value(value, verb, depth + 1);
    }

    fn list(&mut self, list: &List, verb: char, depth: usize) {
        let sharp_v = self.flags.sharp_v;
        if sharp_v {
            self.put(list.class().name);
            if list.is_nil() {
                self.put("(nil)");
                return;
            }
        }
        self.put(if sharp_v { "{" } else { "[" });
        for index in 0..list.len() {
            if index > 0 {
                self.put(if sharp_v { ", " } else { " " });
            }
            if let Some(item) = list.get(index) {
                self.element(&item, list.class().elem, verb, depth);
            }
            if self.passed.is_some() {
                return;
            }
        }
        self.put(if sharp_v { "}" } else { "]" });
    }

    fn map(&mut self, map: &Map, verb: char, depth: usize) {
        let sharp_v = self.flags.sharp_v;
        if sharp_v {
            self.put(map.class().name);
            if map.is_nil() {
                self.put("(nil)");
                return;
            }
            self.put("{");
        } else {
            self.put("map[");
        }
        if let Some(entries) = map.borrow() {
            for (index, (key, value)) in entries.iter().enumerate() {
                if index > 0 {
                    self.put(if sharp_v { ", " } else { " " });
                }
                self.string(key.as_bytes(), verb, &Value::Str(key.clone()));
                self.put(":");
                self.element(value, map.class().elem, verb, depth);
                if self.passed.is_some() {
                    return;
                }
            }
        }
        self.put(if sharp_v { "}" } else { "]" });
    }

    fn object(&mut self, object: &dyn Object, value: &Value, verb: char, depth: usize) {
        if !self.erroring
            && !self.flags.sharp_v
            && matches!(verb, 'v' | 's' | 'x' | 'X' | 'q')
            && let Some(text) = object.string()
        {
            self.string(text.as_bytes(), verb, value);
            return;
        }
        if let (true, Kind::Int | Kind::Int64, Some(Value::Int(_, int))) =
            (self.flags.sharp_v, object.kind(), object.data())
        {
            self.integer(int as u64, true, verb, value);
            return;
        }
        if object.kind() == Kind::Ptr {
            if depth > 0 {
                self.address();
                return;
            }
            self.put("&");
        }
        let sharp_v = self.flags.sharp_v;
        if sharp_v {
            self.put(object.type_name().trim_start_matches('*'));
        }
        self.put("{");
        for (index, (name, field)) in object.fields().iter().enumerate() {
            if index > 0 {
                self.put(if sharp_v { ", " } else { " " });
            }
            if sharp_v || self.flags.plus_v {
                self.put(name);
                self.put(":");
            }
            self.element(field, Type::Any, verb, depth);
        }
        self.put("}");
    }

    fn complex(&mut self, re: f64, im: f64, verb: char, value: &Value) {
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

    fn string(&mut self, text: &[u8], verb: char, value: &Value) {
        match verb {
            'v' if self.flags.sharp_v => self.quoted(text),
            'v' | 's' => {
                let text = self.truncated(text);
                self.pad(text);
            }
            'x' => self.hex_bytes(text, b"0123456789abcdefx"),
            'X' => self.hex_bytes(text, b"0123456789ABCDEFX"),
            'q' => self.quoted(text),
            _ => self.bad_verb(value, verb),
        }
    }

    fn truncated<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        match self.flags.precision {
            None => text,
            Some(precision) => {
                let end: usize = runes(text).take(precision).map(|(_, width)| width).sum();
                text.get(..end).unwrap_or(text)
            }
        }
    }

    fn quoted(&mut self, text: &[u8]) {
        let text = self.truncated(text);
        if self.flags.sharp && quote::can_backquote(text) {
            let mut shown = vec![b'`'];
            shown.extend_from_slice(text);
            shown.push(b'`');
            self.pad(&shown);
            return;
        }
        let shown = quote::quoted(text, b'"', self.flags.plus);
        self.pad(&shown);
    }

    fn hex_bytes(&mut self, text: &[u8], digits: &[u8; 17]) {
        let length = self
            .flags
            .precision
            .map_or(text.len(), |precision| precision.min(text.len()));
        let Some(text) = text.get(..length).filter(|text| !text.is_empty()) else {
            if let Some(width) = self.flags.width {
                self.padding(width);
            }
            return;
        };
        let mut width = 2 * length;
        if self.flags.space {
            if self.flags.sharp {
                width *= 2;
            }
            width += length - 1;
        } else if self.flags.sharp {
            width += 2;
        }
        let missing = self.flags.width.map_or(0, |wanted| wanted.saturating_sub(width));
        if !self.flags.minus {
            self.padding(missing);
        }
        let prefix = [b'0', digits[16]];
        for (index, byte) in text.iter().enumerate() {
            if self.flags.space && index > 0 {
                self.out.push(b' ');
            }
            if self.flags.sharp && (index == 0 || self.flags.space) {
                self.out.extend_from_slice(&prefix);
            }
            for nibble in [byte >> 4, byte & 15] {
                self.out
                    .push(digits.get(usize::from(nibble)).copied().unwrap_or(b'0'));
            }
        }
        if self.flags.minus {
            self.padding(missing);
        }
    }

    fn bytes(&mut self, bytes: &[u8], verb: char, value: &Value) {
        match verb {
            'v' | 'd' if self.flags.sharp_v => {
                self.put("[]byte{");
                for (index, byte) in bytes.iter().enumerate() {
                    if index > 0 {
                        self.put(", ");
                    }
                    self.put(&format!("{byte:#x}"));
                }
                self.put("}");
            }
            's' => {
                let text = self.truncated(bytes);
                self.pad(text);
            }
            'x' | 'X' | 'q' => self.string(bytes, verb, value),
            _ => {
                self.put("[");
                for (index, byte) in bytes.iter().enumerate() {
                    if index > 0 {
                        self.put(" ");
                    }
                    let item = Value::Uint(crate::value::UintKind::Uint8, u64::from(*byte));
                    self.integer(
                        u64::from(*byte),
                        false,
                        if verb == 'v' { 'd' } else { verb },
                        &item,
                    );
                    if !self.within_limits() {
                        return;
                    }
                }
                self.put("]");
            }
        }
    }

    fn integer(&mut self, bits: u64, signed: bool, verb: char, value: &Value) {
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
        let digits = match base {
            2 => format!("{magnitude:0precision$b}"),
            8 => format!("{magnitude:0precision$o}"),
            16 if verb == 'X' => format!("{magnitude:0precision$X}"),
            16 => format!("{magnitude:0precision$x}"),
            _ => format!("{magnitude:0precision$}"),
        };
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

    fn float_verb(&mut self, value: f64, verb: char, operand: &Value) {
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

    fn printf(&mut self, format: &[u8], args: &[Value]) {
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
            _ => return None,
        };
        (-MAX_NUMBER..=MAX_NUMBER).contains(&number).then_some(number)
    }
}
