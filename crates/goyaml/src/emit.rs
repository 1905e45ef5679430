//! From values to text, as go-yaml emits: `emitterc.go` and `encode.go` of `go.yaml.in/yaml` v2.4.4 and v3.0.5.
//!
//! Both are one state machine over events; here it is one recursion over the value, with the same notes on where the
//! cursor stands (`column`, `indent`, `whitespace`, `indention`).

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::decode::{MAX_DEPTH, TOO_DEEP};
use crate::document::Document;
use crate::json::{self, JsonStyle};
use crate::key_order;
use crate::parser::Parser;
use crate::resolve::{self, Dialect, Resolved};
use crate::scanner::Input;
use crate::{Error, Numbers, Value, decode, number};
use scalar::{Analysis, Style};

pub(crate) mod scalar;

/// Step of indentation of both emitters.
const INDENT: usize = 2;

/// Longest key, in bytes, that is written without `? `.
const MAX_SIMPLE_KEY: usize = 128;

/// Longest key, in bytes, whose JSON form surely is a simple key when go-yaml reads it back (1024 characters).
const SURELY_SIMPLE_JSON_KEY: usize = 160;

/// Characters in a line of base64 (`encodeBase64`).
const BASE64_LINE: usize = 70;

/// From this column on, v2 breaks long scalars at blanks.
const V2_WIDTH: usize = 80;

/// Writes a value as `sigs.k8s.io/yaml.Marshal` does (Helm's `toYaml`), with the newline at the end that Go gives it.
///
/// Go makes JSON of the value, reads it back as YAML 1.1 and writes that; what does not survive the detour (NaN, DEL
/// and other control characters, keys over 1024 characters) gives "", as Helm's `toYaml` does.
pub fn to_yaml(value: &Value) -> String {
    try_to_yaml(value).unwrap_or_default()
}

/// Like [`to_yaml`], but says what Go says of a value that does not survive, for `mustToYaml`.
pub fn try_to_yaml(value: &Value) -> Result<String, Error> {
    let mut emitter = Emitter::new(Dialect::V2);
    match emitter.document(value) {
        Ok(()) => Ok(emitter.out),
        Err(Detour) => by_way_of_json(value),
    }
}

/// Writes a value as go-yaml v3 does with indentation 2 (Helm's `toYamlPretty`), with the newline at the end.
/// Here nothing goes through JSON: floats print as floats (`1e+06`), lists inside maps are indented, lines never break.
/// A value nested too deep gives "".
pub fn to_yaml_pretty(value: &Value) -> String {
    let mut emitter = Emitter::new(Dialect::V3);
    match emitter.document(value) {
        Ok(()) => emitter.out,
        Err(Detour) => String::new(),
    }
}

/// Really does what Go does. Needed only for values with characters that the reader of YAML changes or refuses.
fn by_way_of_json(value: &Value) -> Result<String, Error> {
    if is_too_deep(value, 0) {
        return Err(Error::json(format!("yaml: {TOO_DEEP}")));
    }
    let json = json::try_to_json(value, JsonStyle::Compact)
        .map_err(|error| error.prefixed("error marshaling into JSON: "))?;
    let input = Input::new(json.as_bytes());
    let document = Document::read(&mut Parser::new(&input)).map_err(Error::bare)?;
    let read_back = document
        .map_or(Ok(Value::Null), |document| {
            decode::decode(&document, Numbers::Exact)
        })
        .map_err(Error::bare)?;
    let mut emitter = Emitter::new(Dialect::V2);
    emitter.survived = true;
    match emitter.document(&read_back) {
        Ok(()) => Ok(emitter.out),
        Err(Detour) => Err(Error::json(format!("yaml: {TOO_DEEP}"))),
    }
}

fn is_too_deep(value: &Value, depth: usize) -> bool {
    match value {
        Value::List(items) => depth >= MAX_DEPTH || items.iter().any(|item| is_too_deep(item, depth + 1)),
        Value::Map(map) => depth >= MAX_DEPTH || map.values().any(|item| is_too_deep(item, depth + 1)),
        _ => false,
    }
}

/// This value must take the way through JSON for real.
struct Detour;

/// What surrounds the node being written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Context {
    Root,
    Sequence,
    /// A key that stands before its `:` in one line.
    SimpleKey,
    /// A key after `? `, or a value.
    Mapping,
}

struct Emitter {
    out: String,
    dialect: Dialect,
    /// Whether the value has been through JSON already.
    survived: bool,
    /// Characters in the current line.
    column: usize,
    /// Indentation of the current block; `None` before the first.
    indent: Option<usize>,
    /// The last character was white space, or no more is needed.
    whitespace: bool,
    /// The line so far is indentation (with `- ` and `? `) only.
    indention: bool,
}

impl Emitter {
    fn new(dialect: Dialect) -> Self {
        Emitter {
            out: String::with_capacity(128),
            dialect,
            survived: false,
            column: 0,
            indent: None,
            whitespace: true,
            indention: true,
        }
    }

    fn document(&mut self, value: &Value) -> Result<(), Detour> {
        self.node(value, Context::Root, 0)?;
        self.write_indent();
        Ok(())
    }

    fn node(&mut self, value: &Value, context: Context, depth: usize) -> Result<(), Detour> {
        match value {
            Value::Null => self.word("null"),
            Value::Bool(true) => self.word("true"),
            Value::Bool(false) => self.word("false"),
            Value::Int(i) => self.number(|out| {
                // Writing into a string cannot fail.
                let _ = write!(out, "{i}");
            }),
            Value::Uint(u) => self.number(|out| {
                let _ = write!(out, "{u}");
            }),
            Value::Float(f) => return self.float(*f),
            Value::Timestamp(moment) if self.dialect == Dialect::V3 => self.word(moment),
            Value::Binary(bytes) if self.dialect == Dialect::V3 => self.binary(bytes),
            Value::Binary(bytes) => return self.string(&json::replace_invalid_utf8(bytes), context),
            Value::String(s) | Value::Timestamp(s) => return self.string(s, context),
            Value::List(items) if items.is_empty() => self.word("[]"),
            Value::Map(map) if map.is_empty() => self.word("{}"),
            Value::List(_) | Value::Map(_) if depth >= MAX_DEPTH => return Err(Detour),
            Value::List(items) => return self.sequence(items, context, depth + 1),
            Value::Map(map) => return self.mapping(map, depth + 1),
        }
        Ok(())
    }

    /// Base64 behind its tag, cut into lines where it is long.
    fn binary(&mut self, bytes: &[u8]) {
        self.word("!!binary");
        let text = STANDARD.encode(bytes);
        if text.len() < BASE64_LINE {
            self.word(&text);
            return;
        }
        let mut lines = String::with_capacity(text.len() + text.len() / BASE64_LINE + 1);
        for (index, c) in text.chars().enumerate() {
            if index > 0 && index % BASE64_LINE == 0 {
                lines.push('\n');
            }
            lines.push(c);
        }
        lines.push('\n');
        self.below(|emitter| emitter.write_literal(&lines));
    }

    /// Writes a scalar; as Go does for every one, so that the lines after the first are indented.
    fn below(&mut self, write: impl FnOnce(&mut Self)) {
        let outer = self.indent;
        self.indent = Some(outer.map_or(INDENT, |indent| indent + INDENT));
        write(self);
        self.indent = outer;
    }

    fn sequence(&mut self, items: &[Value], context: Context, depth: usize) -> Result<(), Detour> {
        // v2 does not indent a list that is the value of a key.
        let indentless = self.dialect == Dialect::V2 && context == Context::Mapping && !self.indention;
        let outer = self.indent;
        self.indent = Some(match outer {
            None => 0,
            Some(indent) if indentless => indent,
            Some(indent) => indent + INDENT,
        });
        for item in items {
            self.write_indent();
            self.write_indicator("-", true, true);
            self.node(item, Context::Sequence, depth)?;
        }
        self.indent = outer;
        Ok(())
    }

    fn mapping(&mut self, map: &crate::Map, depth: usize) -> Result<(), Detour> {
        let outer = self.indent;
        self.indent = Some(outer.map_or(0, |indent| indent + INDENT));
        let mut entries: Vec<(&String, &Value)> = map.iter().collect();
        let dialect = self.dialect;
        key_order::sort(&mut entries, |(a, _), (b, _)| key_order::compare(a, b, dialect));
        for (key, value) in entries {
            self.write_indent();
            self.entry(key, value, depth)?;
        }
        self.indent = outer;
        Ok(())
    }

    fn entry(&mut self, key: &str, value: &Value, depth: usize) -> Result<(), Detour> {
        if self.dialect == Dialect::V2 && !self.survived && key.len() > SURELY_SIMPLE_JSON_KEY {
            return Err(Detour);
        }
        if key.len() <= MAX_SIMPLE_KEY && !scalar::has_break(key) {
            self.string(key, Context::SimpleKey)?;
            self.write_indicator(":", false, false);
        } else {
            self.write_indicator("?", true, true);
            self.string(key, Context::Mapping)?;
            self.write_indent();
            self.write_indicator(":", true, true);
        }
        self.node(value, Context::Mapping, depth)
    }

    fn string(&mut self, text: &str, context: Context) -> Result<(), Detour> {
        let analysis = Analysis::of(text, self.dialect);
        if analysis.detour && self.dialect == Dialect::V2 && !self.survived {
            return Err(Detour);
        }
        let style = analysis.style(self.wanted_style(text), text, context == Context::SimpleKey);
        let may_fold = context != Context::SimpleKey && self.dialect == Dialect::V2;
        self.below(|emitter| match style {
            Style::Plain => emitter.write_plain(text, may_fold),
            Style::SingleQuoted => emitter.write_single_quoted(text, may_fold),
            Style::DoubleQuoted => emitter.write_double_quoted(text, may_fold),
            Style::Literal => emitter.write_literal(text),
        });
        Ok(())
    }

    /// Plain, unless the plain text would be read as something else.
    fn wanted_style(&self, text: &str) -> Style {
        if text.contains('\n') {
            return Style::Literal;
        }
        let plain = resolve::resolve(text, self.dialect) == Resolved::String
            && !resolve::is_base60(text)
            && (self.dialect == Dialect::V2 || resolve::old_bool(text).is_none());
        if plain { Style::Plain } else { Style::DoubleQuoted }
    }

    fn float(&mut self, value: f64) -> Result<(), Detour> {
        if self.dialect == Dialect::V3 {
            self.number(|out| number::push_general(out, value));
            return Ok(());
        }
        if !value.is_finite() {
            return Err(Detour);
        }
        // In JSON a whole number has no point, and go-yaml reads it back as an integer if it fits one.
        let mut text = String::new();
        number::push_json(&mut text, value);
        match json::exact_number(&text) {
            Some(Value::Int(i)) => self.number(|out| {
                // `-0` comes back as 0.
                let _ = write!(out, "{i}");
            }),
            Some(Value::Uint(_)) => self.word(&text),
            _ => self.number(|out| number::push_general(out, value)),
        }
        Ok(())
    }

    /// A token without characters that need care.
    fn word(&mut self, text: &str) {
        self.number(|out| out.push_str(text));
    }

    fn number(&mut self, write: impl FnOnce(&mut String)) {
        self.space();
        let from = self.out.len();
        write(&mut self.out);
        self.column += self.out.len() - from;
        self.whitespace = false;
        self.indention = false;
    }

    fn put(&mut self, c: char) {
        self.out.push(c);
        self.column += 1;
    }

    fn put_break(&mut self) {
        self.out.push('\n');
        self.column = 0;
    }

    fn space(&mut self) {
        if !self.whitespace {
            self.put(' ');
        }
    }

    fn write_indent(&mut self) {
        let indent = self.indent.unwrap_or(0);
        if !self.indention || self.column > indent || (self.column == indent && !self.whitespace) {
            self.put_break();
        }
        while self.column < indent {
            self.put(' ');
        }
        self.whitespace = true;
        self.indention = true;
    }

    fn write_indicator(&mut self, indicator: &str, need_whitespace: bool, is_indention: bool) {
        if need_whitespace {
            self.space();
        }
        self.out.push_str(indicator);
        self.column += indicator.len();
        self.whitespace = false;
        self.indention = self.indention && is_indention;
    }
}
