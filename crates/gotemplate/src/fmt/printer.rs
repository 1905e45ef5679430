//! The printer behind `print`, `printf`, `println` and the output of templates.

mod directive;
mod number;

use super::quote;
use crate::env::{Limit, Limits};
use crate::unicode::{rune_count, runes};
use crate::value::{Kind, List, Map, Object, Str, Type, Value};

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

    /// Go prints where a pointer points; no two runs agree, so ours is always the same, and as long as most of Go's are
    /// since its heap begins at a random address (Go 1.26).
    fn address(&mut self) {
        self.put("0x30c000000000");
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
        if !self.erroring
            && self.flags.sharp_v
            && let Some(text) = object.go_string()
        {
            self.pad(text.as_bytes());
            return;
        }
        if let (Kind::Int | Kind::Int64, Some(Value::Int(_, int))) = (object.kind(), object.data()) {
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
        for (index, (name, field)) in object.printed_fields().iter().enumerate() {
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
}
