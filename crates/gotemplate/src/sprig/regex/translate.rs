//! From Go's regular expression syntax to the regex crate's. What Go refuses is refused with Go's words.

use std::iter::Peekable;
use std::str::CharIndices;

/// Go's bound on repeat counts.
const MAX_REPEAT: u32 = 1_000;
/// Go's bound on nesting.
const MAX_DEPTH: usize = 1_000;

const DIGIT: &str = "0-9";
const WORD: &str = "0-9A-Za-z_";
const SPACE: &str = r"\t\n\x0C\r\x20";

/// Translates an expression.
///
/// # Errors
/// Go's reason and the part of the expression it is about.
pub(super) fn translate(source: &[u8]) -> Result<String, String> {
    let source = match std::str::from_utf8(source) {
        Ok(source) => source,
        Err(problem) => {
            let rest = source.get(problem.valid_up_to()..).unwrap_or_default();
            return Err(format!("invalid UTF-8: `{}`", crate::value::lossy(rest)));
        }
    };
    let mut translator = Translator {
        source,
        chars: source.char_indices().peekable(),
        out: String::with_capacity(source.len() + 16),
        groups: Vec::new(),
        names: Vec::new(),
    };
    translator.run()?;
    Ok(translator.out)
}

struct Translator<'s> {
    source: &'s str,
    chars: Peekable<CharIndices<'s>>,
    out: String,
    /// The largest repeat count inside each open group.
    groups: Vec<u32>,
    names: Vec<&'s str>,
}

/// Whether a repetition may follow, and where the last one began.
#[derive(Clone, Copy)]
enum Last {
    /// Nothing to repeat.
    Nothing,
    Atom,
    /// A group with a repeat count inside.
    Group(u32),
    /// A repetition that began here; a second one is an error.
    Repeat(usize),
}

impl<'s> Translator<'s> {
    fn peek(&mut self) -> Option<char> {
        self.chars.peek().map(|(_, c)| *c)
    }

    fn offset(&mut self) -> usize {
        self.chars.peek().map_or(self.source.len(), |(at, _)| *at)
    }

    fn rest(&mut self) -> &'s str {
        let at = self.offset();
        self.source.get(at..).unwrap_or_default()
    }

    fn between(&self, from: usize, to: usize) -> &'s str {
        self.source.get(from..to).unwrap_or_default()
    }

    fn skip(&mut self, text: &str) {
        for _ in text.chars() {
            self.chars.next();
        }
    }

    fn literal(&mut self, c: char) {
        push_literal(&mut self.out, c);
    }

    fn run(&mut self) -> Result<(), String> {
        let mut last = Last::Nothing;
        while let Some((at, c)) = self.chars.next() {
            last = match c {
                '(' => self.group(at)?,
                ')' => {
                    let Some(inside) = self.groups.pop() else {
                        return Err(format!("unexpected ): `{}`", self.source));
                    };
                    self.note_repeat(inside);
                    self.out.push(')');
                    Last::Group(inside)
                }
                '|' => {
                    self.out.push('|');
                    Last::Nothing
                }
                '*' | '+' | '?' => {
                    self.out.push(c);
                    self.repeat(at, last)?
                }
                '{' => match self.counted(at)? {
                    Some((text, count)) => {
                        self.out.push_str(&text);
                        let inside = if let Last::Group(inside) = last { inside } else { 1 };
                        let repeated = self.repeat(at, last)?;
                        let total = inside.saturating_mul(count.max(1));
                        if total > MAX_REPEAT {
                            let end = self.offset();
                            return Err(format!("invalid repeat count: `{}`", self.between(at, end)));
                        }
                        self.note_repeat(total);
                        repeated
                    }
                    None => {
                        self.literal('{');
                        Last::Atom
                    }
                },
                '[' => {
                    self.class(at)?;
                    Last::Atom
                }
                '\\' => self.escape(at)?,
                '^' | '$' | '.' => {
                    self.out.push(c);
                    Last::Atom
                }
                _ => {
                    self.literal(c);
                    Last::Atom
                }
            };
        }
        if self.groups.is_empty() {
            Ok(())
        } else {
            Err(format!("missing closing ): `{}`", self.source))
        }
    }

    /// After a repetition operator: an optional `?`, and nothing it cannot repeat.
    fn repeat(&mut self, at: usize, last: Last) -> Result<Last, String> {
        if self.peek() == Some('?') {
            self.chars.next();
            self.out.push('?');
        }
        let end = self.offset();
        match last {
            Last::Nothing => Err(format!(
                "missing argument to repetition operator: `{}`",
                self.between(at, end)
            )),
            Last::Atom | Last::Group(_) => Ok(Last::Repeat(at)),
            Last::Repeat(from) => Err(format!(
                "invalid nested repetition operator: `{}`",
                self.between(from, end)
            )),
        }
    }

    /// Remembers the largest repeat count of the group around.
    fn note_repeat(&mut self, count: u32) {
        if let Some(group) = self.groups.last_mut() {
            *group = (*group).max(count);
        }
    }

    /// `{n}`, `{n,}` or `{n,m}` and how often it may repeat at least; anything else in braces is literal.
    fn counted(&mut self, at: usize) -> Result<Option<(String, u32)>, String> {
        let rest = self.rest();
        let Some(close) = rest.find('}') else {
            return Ok(None);
        };
        let body = rest.get(..close).unwrap_or_default();
        let number = |text: &str| -> Option<u32> {
            let valid = !text.is_empty()
                && text.bytes().all(|byte| byte.is_ascii_digit())
                && (text.len() == 1 || !text.starts_with('0'));
            // A number too long to parse is beyond every bound.
            valid.then(|| text.parse().unwrap_or(u32::MAX))
        };
        let (min, max) = match body.split_once(',') {
            None => match number(body) {
                Some(count) => (count, Some(count)),
                None => return Ok(None),
            },
            Some((min, "")) => match number(min) {
                Some(min) => (min, None),
                None => return Ok(None),
            },
            Some((min, max)) => match (number(min), number(max)) {
                (Some(min), Some(max)) => (min, Some(max)),
                _ => return Ok(None),
            },
        };
        let end = at + 1 + close + 1;
        if min > MAX_REPEAT || max.is_some_and(|max| max > MAX_REPEAT || max < min) {
            return Err(format!("invalid repeat count: `{}`", self.between(at, end)));
        }
        self.skip(body);
        self.chars.next();
        Ok(Some((format!("{{{body}}}"), max.unwrap_or(min))))
    }

    fn group(&mut self, at: usize) -> Result<Last, String> {
        if self.groups.len() >= MAX_DEPTH {
            return Err(format!("expression nests too deeply: `{}`", self.source));
        }
        let rest = self.rest();
        if !rest.starts_with('?') {
            self.groups.push(1);
            self.out.push('(');
            return Ok(Last::Nothing);
        }
        let whole = self.between(at, self.source.len());
        if rest.starts_with("?P<") || rest.starts_with("?<") {
            let skip = if rest.starts_with("?P<") { 3 } else { 2 };
            let Some(close) = rest.find('>') else {
                return Err(format!("invalid named capture: `{whole}`"));
            };
            let name = rest.get(skip..close).unwrap_or_default();
            let valid = !name.is_empty()
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            if !valid {
                return Err(format!(
                    "invalid named capture: `{}`",
                    self.between(at, at + close + 2)
                ));
            }
            // The regex crate wants names to be unique and to begin with a letter.
            let usable = !self.names.contains(&name) && !name.starts_with(|c: char| c.is_ascii_digit());
            self.names.push(name);
            let head = rest.get(..=close).unwrap_or_default();
            self.skip(head);
            self.groups.push(1);
            if usable {
                self.out.push_str(&format!("(?P<{name}>"));
            } else {
                self.out.push('(');
            }
            return Ok(Last::Nothing);
        }
        self.flags(at)
    }

    /// `(?flags)` or `(?flags:`.
    fn flags(&mut self, at: usize) -> Result<Last, String> {
        self.chars.next();
        let mut text = String::from("(?");
        let mut negated = false;
        let mut seen_flag = false;
        loop {
            let next = self.chars.next();
            let end = self.offset();
            let Some((_, c)) = next else {
                return Err(format!(
                    "invalid or unsupported Perl syntax: `{}`",
                    self.between(at, end)
                ));
            };
            match c {
                'i' | 'm' | 's' | 'U' => {
                    seen_flag = true;
                    text.push(c);
                }
                '-' if !negated => {
                    negated = true;
                    seen_flag = false;
                    text.push(c);
                }
                ':' | ')' if !negated || seen_flag => {
                    text.push(c);
                    if c == ':' {
                        self.groups.push(1);
                        self.out.push_str(&text);
                        return Ok(Last::Nothing);
                    }
                    if text != "(?)" {
                        self.out.push_str(&text);
                    }
                    return Ok(Last::Nothing);
                }
                _ => {
                    return Err(format!(
                        "invalid or unsupported Perl syntax: `{}`",
                        self.between(at, end)
                    ));
                }
            }
        }
    }

    fn escape(&mut self, at: usize) -> Result<Last, String> {
        match self.peek() {
            None => return Err("trailing backslash at end of expression: ``".to_owned()),
            Some('Q') => {
                self.chars.next();
                let rest = self.rest();
                let (body, more) = match rest.split_once("\\E") {
                    Some((body, _)) => (body, "\\E"),
                    None => (rest, ""),
                };
                self.skip(body);
                self.skip(more);
                for c in body.chars() {
                    self.literal(c);
                }
                return Ok(if body.is_empty() {
                    Last::Nothing
                } else {
                    Last::Atom
                });
            }
            Some('A') => {
                self.chars.next();
                self.out.push_str(r"\A");
                return Ok(Last::Atom);
            }
            Some('z') => {
                self.chars.next();
                self.out.push_str(r"\z");
                return Ok(Last::Atom);
            }
            Some(c @ ('b' | 'B')) => {
                self.chars.next();
                self.out
                    .push_str(if c == 'b' { r"(?-u:\b)" } else { r"(?-u:\B)" });
                return Ok(Last::Atom);
            }
            _ => {}
        }
        if let Some(class) = self.class_escape(at)? {
            self.out.push_str(&class);
            return Ok(Last::Atom);
        }
        let c = self.char_escape(at)?;
        self.literal(c);
        Ok(Last::Atom)
    }

    /// `\d`, `\pL` and their like as a class of the regex crate; none when it is another escape.
    fn class_escape(&mut self, at: usize) -> Result<Option<String>, String> {
        let Some(kind) = self.peek() else { return Ok(None) };
        let class = match kind {
            'd' => format!("[{DIGIT}]"),
            'D' => format!("[^{DIGIT}]"),
            'w' => format!("[{WORD}]"),
            'W' => format!("[^{WORD}]"),
            's' => format!("[{SPACE}]"),
            'S' => format!("[^{SPACE}]"),
            'p' | 'P' => {
                self.chars.next();
                return self.unicode_class(at, kind == 'P').map(Some);
            }
            _ => return Ok(None),
        };
        self.chars.next();
        Ok(Some(class))
    }

    fn unicode_class(&mut self, at: usize, mut negated: bool) -> Result<String, String> {
        let invalid = |range: &str| format!("invalid character class range: `{range}`");
        let rest = self.rest();
        let mut name = match self.peek() {
            None => return Err(invalid(self.between(at, self.source.len()))),
            Some('{') => {
                let Some(close) = rest.find('}') else {
                    return Err(invalid(self.between(at, self.source.len())));
                };
                let braced = rest.get(..=close).unwrap_or_default();
                self.skip(braced);
                braced.trim_start_matches('{').trim_end_matches('}')
            }
            Some(c) => {
                self.chars.next();
                rest.get(..c.len_utf8()).unwrap_or_default()
            }
        };
        if let Some(inner) = name.strip_prefix('^') {
            negated = !negated;
            name = inner;
        }
        let end = self.offset();
        let letter = if negated { 'P' } else { 'p' };
        let class = match name {
            "Any" if negated => "[^\\x00-\\x{10FFFF}]".to_owned(),
            "Any" => "[\\x00-\\x{10FFFF}]".to_owned(),
            _ => format!("\\{letter}{{{name}}}"),
        };
        let plausible = !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !plausible || regex::bytes::Regex::new(&class).is_err() {
            return Err(invalid(self.between(at, end)));
        }
        Ok(class)
    }

    /// An escape that stands for one character.
    fn char_escape(&mut self, at: usize) -> Result<char, String> {
        let Some((_, c)) = self.chars.next() else {
            return Err("trailing backslash at end of expression: ``".to_owned());
        };
        let invalid = |translator: &mut Self| {
            let end = translator.offset();
            format!("invalid escape sequence: `{}`", translator.between(at, end))
        };
        Ok(match c {
            '0'..='7' => {
                // A single digit other than 0 would be a back-reference.
                if c != '0' && !matches!(self.peek(), Some('0'..='7')) {
                    return Err(invalid(self));
                }
                let mut code = c.to_digit(8).unwrap_or(0);
                for _ in 0..2 {
                    let Some(digit) = self.peek().and_then(|c| c.to_digit(8)) else {
                        break;
                    };
                    self.chars.next();
                    code = code * 8 + digit;
                }
                char::from_u32(code).ok_or_else(|| invalid(self))?
            }
            'x' => self.hex_escape(at)?,
            'a' => '\x07',
            'f' => '\x0c',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\x0b',
            c if c.is_ascii() && !c.is_ascii_alphanumeric() => c,
            _ => return Err(invalid(self)),
        })
    }

    /// `\xFF` or `\x{10FFFF}`; what has been read when it goes wrong is part of the error.
    fn hex_escape(&mut self, at: usize) -> Result<char, String> {
        let mut code = None;
        if self.peek() == Some('{') {
            self.chars.next();
            let mut value = None;
            for (_, c) in self.chars.by_ref() {
                if c == '}' {
                    code = value;
                    break;
                }
                let Some(digit) = c.to_digit(16) else { break };
                let next = value.unwrap_or(0) * 16 + digit;
                value = Some(next);
                if next > u32::from(char::MAX) {
                    break;
                }
            }
        } else {
            let mut digit = || self.chars.next().and_then(|(_, c)| c.to_digit(16));
            let (high, low) = (digit(), digit());
            code = high.zip(low).map(|(high, low)| high * 16 + low);
        }
        let end = self.offset();
        code.and_then(char::from_u32)
            .ok_or_else(|| format!("invalid escape sequence: `{}`", self.between(at, end)))
    }

    /// `[…]`; the opening bracket has been read.
    fn class(&mut self, at: usize) -> Result<(), String> {
        self.out.push('[');
        if self.peek() == Some('^') {
            self.chars.next();
            self.out.push('^');
        }
        let mut first = true;
        loop {
            let rest = self.rest();
            if rest.is_empty() {
                return Err(format!(
                    "missing closing ]: `{}`",
                    self.between(at, self.source.len())
                ));
            }
            if rest.starts_with(']') && !first {
                self.chars.next();
                self.out.push(']');
                return Ok(());
            }
            first = false;
            if rest.starts_with("[:")
                && let Some(close) = rest.find(":]")
            {
                let name = rest.get(..close + 2).unwrap_or_default();
                if !is_posix_class(name) {
                    return Err(format!("invalid character class range: `{name}`"));
                }
                self.skip(name);
                self.out.push_str(name);
                continue;
            }
            let start = self.offset();
            if rest.starts_with('\\') {
                self.chars.next();
                if let Some(class) = self.class_escape(start)? {
                    self.out.push_str(&class);
                    continue;
                }
                let c = self.char_escape(start)?;
                self.class_range(at, start, c)?;
                continue;
            }
            let Some((_, c)) = self.chars.next() else { continue };
            self.class_range(at, start, c)?;
        }
    }

    /// A character of a class, or a range that begins with it.
    fn class_range(&mut self, at: usize, start: usize, low: char) -> Result<(), String> {
        self.literal(low);
        let rest = self.rest();
        if !rest.starts_with('-') || rest.len() < 2 || rest.starts_with("-]") {
            return Ok(());
        }
        self.chars.next();
        let here = self.offset();
        let high = match self.chars.next() {
            None => {
                return Err(format!(
                    "missing closing ]: `{}`",
                    self.between(at, self.source.len())
                ));
            }
            Some((_, '\\')) => self.char_escape(here)?,
            Some((_, c)) => c,
        };
        if high < low {
            let end = self.offset();
            return Err(format!(
                "invalid character class range: `{}`",
                self.between(start, end)
            ));
        }
        self.out.push('-');
        self.literal(high);
        Ok(())
    }
}

fn is_posix_class(text: &str) -> bool {
    let name = text.trim_start_matches("[:").trim_end_matches(":]");
    let name = name.strip_prefix('^').unwrap_or(name);
    matches!(
        name,
        "alnum"
            | "alpha"
            | "ascii"
            | "blank"
            | "cntrl"
            | "digit"
            | "graph"
            | "lower"
            | "print"
            | "punct"
            | "space"
            | "upper"
            | "word"
            | "xdigit"
    )
}

/// A literal that means the same inside and outside classes.
fn push_literal(out: &mut String, c: char) {
    if c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii() {
        out.push(c);
    } else {
        out.push_str(&format!("\\x{:02X}", u32::from(c)));
    }
}
