//! JSON as Go 1.27's encoding/json reads it, with its error texts.

use crate::decode::{MAX_DEPTH, TOO_DEEP};
use crate::json::{exact_number, replace_invalid_utf8};
use crate::{Error, Map, Numbers, Value, number, unicode};

/// What to do with an escape that is cut off.
const UNEXPECTED_END: &str = "unexpected end of JSON input";

/// Reads one JSON text; anything but white space after it is an error.
///
/// Of equal keys the last wins. Invalid UTF-8 and lone surrogates become U+FFFD. Fails with Go's text
/// (`invalid character 'x' looking for beginning of value`).
pub fn from_json(text: &[u8], numbers: Numbers) -> Result<Value, Error> {
    let mut reader = Reader {
        text,
        position: 0,
        numbers,
        path: Vec::new(),
        overflow: None,
    };
    reader.skip_space();
    let value = reader.value(0)?;
    reader.skip_space();
    if reader.peek().is_some() {
        return Err(reader.invalid("after top-level value"));
    }
    match reader.overflow {
        Some(error) => Err(error.with_partial(value)),
        None => Ok(value),
    }
}

/// Reads a JSON text into Go's `map[string]interface {}`, as Helm's `fromJson` does; null gives no map.
/// Fails like [`from_json`], or with `json: cannot unmarshal array into Go value of type map[string]interface {}`.
pub fn from_json_map(text: &[u8], numbers: Numbers) -> Result<Option<Map>, Error> {
    let value = from_json(text, numbers);
    match value {
        Ok(Value::Map(map)) => Ok(Some(map)),
        Ok(Value::Null) => Ok(None),
        other => Err(mismatch(other, &Value::Map(Map::new()))),
    }
}

/// Reads a JSON text into Go's `[]interface {}`, as Helm's `fromJsonArray` does; null gives no list.
/// Fails like [`from_json`], or with `json: cannot unmarshal object into Go value of type []interface {}`.
pub fn from_json_list(text: &[u8], numbers: Numbers) -> Result<Option<Vec<Value>>, Error> {
    match from_json(text, numbers) {
        Ok(Value::List(items)) => Ok(Some(items)),
        Ok(Value::Null) => Ok(None),
        other => Err(mismatch(other, &Value::List(Vec::new()))),
    }
}

/// The error of a text that did not give a value of the kind of `wanted`.
fn mismatch(found: Result<Value, Error>, wanted: &Value) -> Error {
    match found {
        Ok(value) => Error::json(cannot_unmarshal(&value, wanted)),
        Err(error) => match error.partial() {
            // A number out of range inside a value of the wrong kind: the kind is looked at first.
            Some(partial) if std::mem::discriminant(partial) != std::mem::discriminant(wanted) => {
                Error::json(cannot_unmarshal(partial, wanted))
            }
            _ => error,
        },
    }
}

/// Go's words for a value that does not fit the target.
pub(crate) fn cannot_unmarshal(value: &Value, wanted: &Value) -> String {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Int(_) | Value::Uint(_) | Value::Float(_) => "number",
        Value::String(_) | Value::Timestamp(_) | Value::Binary(_) => "string",
        Value::List(_) => "array",
        Value::Map(_) => "object",
    };
    let target = if matches!(wanted, Value::List(_)) {
        "[]interface {}"
    } else {
        "map[string]interface {}"
    };
    format!("json: cannot unmarshal {found} into Go value of type {target}")
}

struct Reader<'t> {
    text: &'t [u8],
    position: usize,
    numbers: Numbers,
    /// Keys and indexes of the place being read, as in a JSON pointer; for error texts only.
    path: Vec<Step>,
    /// The first number that fits no float; Go reads on.
    overflow: Option<Error>,
}

enum Step {
    Key(String),
    Index(usize),
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.position).copied()
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.position += 1;
        }
    }

    /// The character here does not belong; or the text ends here.
    fn invalid(&self, place: &str) -> Error {
        let rest = self.text.get(self.position..).unwrap_or(&[]);
        match rest.utf8_chunks().next() {
            None => Error::json(UNEXPECTED_END),
            Some(chunk) => {
                let mut what = String::from("'");
                match chunk.valid().chars().next() {
                    Some(c) => crate::decode::push_quoted_char(&mut what, c, '\''),
                    None => what.push_str(&format!("\\x{:02x}", rest.first().copied().unwrap_or(0))),
                }
                Error::json(format!("invalid character {what}' {place}"))
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value, Error> {
        match self.peek() {
            Some(b'{' | b'[') if depth >= MAX_DEPTH => Err(Error::json(TOO_DEEP)),
            Some(b'{') => self.object(depth + 1),
            Some(b'[') => self.array(depth + 1),
            Some(b'"') => self.string().map(Value::String),
            Some(b't') => self.literal("true", Value::Bool(true)),
            Some(b'f') => self.literal("false", Value::Bool(false)),
            Some(b'n') => self.literal("null", Value::Null),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(self.invalid("looking for beginning of value")),
        }
    }

    fn literal(&mut self, word: &str, value: Value) -> Result<Value, Error> {
        for expected in word.chars() {
            if self.peek() != u8::try_from(expected).ok() {
                return Err(self.invalid(&format!("in literal {word} (expecting '{expected}')")));
            }
            self.position += 1;
        }
        Ok(value)
    }

    fn array(&mut self, depth: usize) -> Result<Value, Error> {
        self.position += 1;
        let mut items = Vec::new();
        self.skip_space();
        if self.peek() == Some(b']') {
            self.position += 1;
            return Ok(Value::List(items));
        }
        loop {
            self.skip_space();
            self.path.push(Step::Index(items.len()));
            items.push(self.value(depth)?);
            self.path.pop();
            self.skip_space();
            match self.peek() {
                Some(b',') => self.position += 1,
                Some(b']') => {
                    self.position += 1;
                    return Ok(Value::List(items));
                }
                _ => return Err(self.invalid("after array element")),
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, Error> {
        self.position += 1;
        let mut entries: Vec<(String, Value)> = Vec::new();
        self.skip_space();
        if self.peek() == Some(b'}') {
            self.position += 1;
            return Ok(Value::Map(Map::new()));
        }
        loop {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return Err(self.invalid("looking for beginning of object key string"));
            }
            let key = self.string()?;
            self.skip_space();
            if self.peek() != Some(b':') {
                return Err(self.invalid("after object key"));
            }
            self.position += 1;
            self.skip_space();
            self.path.push(Step::Key(key));
            let value = self.value(depth)?;
            if let Some(Step::Key(key)) = self.path.pop() {
                entries.push((key, value));
            }
            self.skip_space();
            match self.peek() {
                Some(b',') => self.position += 1,
                Some(b'}') => {
                    self.position += 1;
                    // Of equal keys the last wins.
                    return Ok(Value::Map(entries.into_iter().collect()));
                }
                _ => return Err(self.invalid("after object key:value pair")),
            }
        }
    }

    fn digits(&mut self) -> Result<(), Error> {
        if !self.peek().is_some_and(|b| b.is_ascii_digit()) {
            return Err(self.invalid("in numeric literal"));
        }
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.position += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Result<Value, Error> {
        let from = self.position;
        if self.peek() == Some(b'-') {
            self.position += 1;
        }
        if self.peek() == Some(b'0') {
            self.position += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.position += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.position += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.position += 1;
            }
            self.digits()?;
        }
        let text = self
            .text
            .get(from..self.position)
            .and_then(|b| std::str::from_utf8(b).ok())
            .unwrap_or("");
        let value = match self.numbers {
            Numbers::Exact => exact_number(text),
            Numbers::Float64 => number::parse_float(text).map(Value::Float),
        };
        Ok(value.unwrap_or_else(|| {
            if self.overflow.is_none() {
                self.overflow = Some(Error::json(self.overflow_text(text)));
            }
            Value::Float(0.0)
        }))
    }

    fn overflow_text(&self, number: &str) -> String {
        let mut field = String::new();
        for (i, step) in self.path.iter().enumerate() {
            if i > 0 {
                field.push('.');
            }
            match step {
                Step::Key(key) => field.push_str(&key.replace('~', "~0").replace('/', "~1")),
                Step::Index(index) => field.push_str(&index.to_string()),
            }
        }
        if field.is_empty() {
            return format!("json: cannot unmarshal number {number} into Go value of type float64");
        }
        let last = field.rsplit('.').next().unwrap_or("");
        let index = !last.is_empty() && last.bytes().all(|b| b.is_ascii_digit());
        let into = if index { "" } else { "Go struct field " };
        format!("json: cannot unmarshal number {number} into {into}.{field} of type float64")
    }

    fn string(&mut self) -> Result<String, Error> {
        self.position += 1;
        let mut out = String::new();
        loop {
            let rest = self.text.get(self.position..).unwrap_or(&[]);
            let run = rest
                .iter()
                .take_while(|b| !matches!(b, b'"' | b'\\' | 0..0x20))
                .count();
            let plain = rest.get(..run).unwrap_or(&[]);
            out.push_str(&replace_invalid_utf8(plain));
            self.position += run;
            match self.peek() {
                None => return Err(Error::json(UNEXPECTED_END)),
                Some(b'"') => {
                    self.position += 1;
                    return Ok(out);
                }
                Some(b'\\') => self.escape(&mut out)?,
                Some(_) => return Err(self.invalid("in string")),
            }
        }
    }

    fn escape(&mut self, out: &mut String) -> Result<(), Error> {
        let letter = self
            .text
            .get(self.position + 1)
            .copied()
            .ok_or_else(|| Error::json(UNEXPECTED_END))?;
        let character = match letter {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                out.push(self.unicode_escape()?);
                return Ok(());
            }
            _ => return Err(self.invalid_escape(2)),
        };
        out.push(character);
        self.position += 2;
        Ok(())
    }

    /// `\uXXXX`, or two of them for a surrogate pair; half a pair is U+FFFD.
    fn unicode_escape(&mut self) -> Result<char, Error> {
        let unit = self.unit_at(self.position)?;
        self.position += 6;
        if !(0xd800..0xe000).contains(&unit) {
            return Ok(char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        if unit < 0xdc00
            && self.text.get(self.position..self.position + 2) == Some(b"\\u".as_slice())
            && let Ok(low @ 0xdc00..0xe000) = self.unit_at(self.position)
        {
            self.position += 6;
            let code = 0x1_0000 + ((unit & 0x3ff) << 10) + (low & 0x3ff);
            return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn unit_at(&self, at: usize) -> Result<u32, Error> {
        let available = self.text.get(at + 2..).unwrap_or(&[]);
        let mut unit = 0;
        for i in 0..4 {
            match available.get(i) {
                Some(b) => match char::from(*b).to_digit(16) {
                    Some(digit) => unit = unit << 4 | digit,
                    None => return Err(self.invalid_escape(6)),
                },
                None => return Err(Error::json(UNEXPECTED_END)),
            }
        }
        Ok(unit)
    }

    /// Shows `length` bytes of the escape here, or what there is of it.
    fn invalid_escape(&self, length: usize) -> Error {
        let rest = self.text.get(self.position..).unwrap_or(&[]);
        let bytes = rest.get(..length).unwrap_or(rest);
        let what = replace_invalid_utf8(bytes);
        let strange = |c: char| matches!(c, '`' | ' ' | char::REPLACEMENT_CHARACTER) || !unicode::is_print(c);
        if what.contains(strange) {
            let mut quoted = String::new();
            crate::decode::push_quoted(&mut quoted, bytes);
            Error::json(format!("invalid escape sequence {quoted} in string"))
        } else {
            Error::json(format!("invalid escape sequence `{what}` in string"))
        }
    }
}
