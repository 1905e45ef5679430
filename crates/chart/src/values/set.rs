//! The little language of `--set` and its relatives: `a.b=1,list[0].name=x,l={1,2}`.

use std::num::IntErrorKind;

use evenkeel_gotemplate::{go_quoted, go_quoted_char};
use evenkeel_goyaml::{Map, Numbers, Value, from_json};

/// Helm's limit for a list index.
const MAX_INDEX: usize = 65_536;
/// Helm's limit for dots in a name.
const MAX_NAME_LEVEL: usize = 30;
/// Our limit for brackets in a name; Helm has none.
const MAX_BRACKETS: usize = 256;

/// Reads the file that a `--set-file` argument names; the error is shown to the user.
pub(super) type FileReader<'r> = dyn Fn(&str) -> Result<String, String> + 'r;

/// How the text after the `=` is read.
#[derive(Clone, Copy)]
pub(super) enum Mode<'r> {
    /// `--set`: numbers, booleans, `null`, else text.
    Typed,
    /// `--set-string`: always text.
    Text,
    /// `--set-json`: a JSON value.
    Json,
    /// `--set-file`: the contents of the named file.
    File(&'r FileReader<'r>),
    /// `--set-literal`: all the rest of the argument, commas and all.
    Literal,
}

/// Lays one argument over `values`.
pub(super) fn apply(argument: &str, mode: Mode<'_>, values: &mut Map) -> Result<(), String> {
    let mut parser = Parser {
        input: argument.chars().collect(),
        at: 0,
        mode,
    };
    loop {
        match parser.key(values, 0) {
            Ok(()) => {}
            Err(Stop::End) => return Ok(()),
            Err(Stop::Fault(problem)) => return Err(problem),
        }
    }
}

/// Why a step did not go on to the next pair.
enum Stop {
    /// The argument is used up. Not a fault where a pair may begin or a value may be empty.
    End,
    Fault(String),
}

fn fault<T>(problem: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Fault(problem.into()))
}

struct Parser<'r> {
    input: Vec<char>,
    at: usize,
    mode: Mode<'r>,
}

impl Parser<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.input.get(self.at).copied();
        self.at += usize::from(c.is_some());
        c
    }

    fn peek(&self) -> Option<char> {
        self.input.get(self.at).copied()
    }

    /// The text up to one of `stops` and that stop, or `None` at the end. A backslash takes the next character as
    /// it is, except in a literal.
    fn until(&mut self, stops: &[char]) -> (String, Option<char>) {
        let mut text = String::new();
        while let Some(c) = self.next() {
            if stops.contains(&c) {
                return (text, Some(c));
            }
            if c == '\\' && !matches!(self.mode, Mode::Literal) {
                let Some(escaped) = self.next() else { break };
                text.push(escaped);
            } else {
                text.push(c);
            }
        }
        (text, None)
    }

    /// Reads a name and what follows it into `values`.
    fn key(&mut self, values: &mut Map, level: usize) -> Result<(), Stop> {
        let stops: &[char] = if matches!(self.mode, Mode::Literal) {
            &['=', '[', '.']
        } else {
            &['=', '[', ',', '.']
        };
        let (name, stop) = self.until(stops);
        match stop {
            None if name.is_empty() => Err(Stop::End),
            None => fault(format!("key {} has no value", go_quoted(&name))),
            Some('[') => {
                let index = self.index()?;
                let mut list = match values.get_mut(&name) {
                    None => Vec::new(),
                    Some(Value::List(list)) => std::mem::take(list),
                    Some(other) => return wrong_type(other, "[]interface {}"),
                };
                let outcome = self.item(&mut list, index, level, 0);
                set(values, name, Value::List(list));
                outcome
            }
            Some('.') => self.inner(values, name, level + 1),
            Some(',') => {
                let problem = format!("key {} has no value (cannot end with ,)", go_quoted(&name));
                set(values, name, Value::String(String::new()));
                fault(problem)
            }
            Some(_) => match self.value() {
                Ok(value) => {
                    set(values, name, value);
                    Ok(())
                }
                Err(Stop::End) => {
                    set(values, name, Value::String(String::new()));
                    Err(Stop::End)
                }
                Err(other) => Err(other),
            },
        }
    }

    /// Reads the rest of a dotted name into the mapping under `name`.
    fn inner(&mut self, values: &mut Map, name: String, level: usize) -> Result<(), Stop> {
        if level > MAX_NAME_LEVEL {
            return fault(format!(
                "value name nested level is greater than maximum supported nested level of {MAX_NAME_LEVEL}"
            ));
        }
        match values.get_mut(&name) {
            Some(Value::Map(inner)) => {
                self.key(inner, level)?;
                if inner.is_empty() {
                    return fault(format!("key map {} has no value", go_quoted(&name)));
                }
                Ok(())
            }
            Some(other) => wrong_type(other, "map[string]interface {}"),
            None => {
                let mut inner = Map::new();
                let outcome = self.key(&mut inner, level);
                if inner.is_empty() {
                    outcome?;
                    return fault(format!("key map {} has no value", go_quoted(&name)));
                }
                set(values, name, Value::Map(inner));
                outcome
            }
        }
    }

    /// Reads what follows `name[index]` into the list.
    fn item(&mut self, list: &mut Vec<Value>, index: i64, level: usize, brackets: usize) -> Result<(), Stop> {
        let Ok(index) = usize::try_from(index) else {
            return fault(format!("negative {index} index not allowed"));
        };
        let (text, stop) = self.until(&['[', '.', '=']);
        if !text.is_empty() {
            // Go prints the characters one by one.
            let shown: Vec<String> = text.chars().map(go_quoted_char).collect();
            return fault(format!(
                "unexpected data at end of array index: [{}]",
                shown.join(" ")
            ));
        }
        match stop {
            None => Err(Stop::End),
            Some('=') => match self.value() {
                Ok(value) => set_index(list, index, value),
                Err(Stop::End) => set_index(list, index, Value::String(String::new())),
                Err(other) => Err(other),
            },
            Some('[') => {
                if brackets >= MAX_BRACKETS {
                    return fault(format!("lists are nested deeper than {MAX_BRACKETS} levels"));
                }
                let next = self.index()?;
                match list.get_mut(index) {
                    Some(Value::List(inner)) => self.item(inner, next, level, brackets + 1),
                    None | Some(Value::Null) => {
                        let mut inner = Vec::new();
                        self.item(&mut inner, next, level, brackets + 1)?;
                        set_index(list, index, Value::List(inner))
                    }
                    Some(other) => wrong_type(other, "[]interface {}"),
                }
            }
            Some(_) => match list.get_mut(index) {
                Some(Value::Map(inner)) => self.key(inner, level),
                Some(other) => {
                    let mut inner = Map::new();
                    let outcome = self.key(&mut inner, level);
                    *other = Value::Map(inner);
                    outcome
                }
                None => {
                    let mut inner = Map::new();
                    self.key(&mut inner, level)?;
                    set_index(list, index, Value::Map(inner))
                }
            },
        }
    }

    /// Reads the number between brackets.
    fn index(&mut self) -> Result<i64, Stop> {
        let (text, stop) = self.until(&[']']);
        // Helm takes an index that is cut off for the end of the argument.
        if stop.is_none() {
            return Err(Stop::End);
        }
        match text.parse::<i64>() {
            Ok(index) => Ok(index),
            Err(problem) => {
                let problem = match problem.kind() {
                    IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
                    _ => "invalid syntax",
                };
                fault(format!(
                    "error parsing index: strconv.Atoi: parsing {}: {problem}",
                    go_quoted(&text)
                ))
            }
        }
    }

    /// Reads what stands after a `=`; [`Stop::End`] when nothing does.
    fn value(&mut self) -> Result<Value, Stop> {
        match self.mode {
            Mode::Json => self.json(),
            Mode::Literal => {
                let (text, _) = self.until(&[]);
                Ok(Value::String(text))
            }
            _ => match self.peek() {
                None => Err(Stop::End),
                Some('{') => {
                    self.at += 1;
                    self.list()
                }
                Some(_) => {
                    let (text, _) = self.until(&[',']);
                    self.scalar(text)
                }
            },
        }
    }

    fn list(&mut self) -> Result<Value, Stop> {
        let mut list = Vec::new();
        loop {
            let (text, stop) = self.until(&[',', '}']);
            if stop.is_none() {
                return fault("list must terminate with '}'");
            }
            list.push(self.scalar(text)?);
            if stop == Some('}') {
                if self.peek() == Some(',') {
                    self.at += 1;
                }
                return Ok(Value::List(list));
            }
        }
    }

    fn scalar(&self, text: String) -> Result<Value, Stop> {
        match self.mode {
            Mode::Typed => Ok(typed(text)),
            Mode::File(read) => read(&text).map(Value::String).map_err(Stop::Fault),
            Mode::Text | Mode::Json | Mode::Literal => Ok(Value::String(text)),
        }
    }

    /// One JSON value and the comma after it; nothing at all counts as `null`.
    fn json(&mut self) -> Result<Value, Stop> {
        if self.skip_to_value() {
            return Ok(Value::Null);
        }
        let rest: String = self.input.iter().skip(self.at).collect();
        let mut values = serde_json::Deserializer::from_str(&rest).into_iter::<serde::de::IgnoredAny>();
        match values.next() {
            Some(Ok(_)) => {}
            Some(Err(problem)) => return fault(problem.to_string()),
            None => return fault("EOF"),
        }
        let text = rest.get(..values.byte_offset()).unwrap_or(&rest);
        let value = from_json(text.as_bytes(), Numbers::Float64).map_err(|e| Stop::Fault(e.to_string()))?;
        self.at += text.chars().count();
        self.skip_to_value();
        Ok(value)
    }

    /// Passes over blanks; true when a comma (passed over as well) or the end comes before anything else.
    fn skip_to_value(&mut self) -> bool {
        loop {
            match self.peek() {
                None => return true,
                Some(c) if c.is_whitespace() => self.at += 1,
                Some(',') => {
                    self.at += 1;
                    return true;
                }
                Some(_) => return false,
            }
        }
    }
}

/// An empty name is read and dropped.
fn set(values: &mut Map, name: String, value: Value) {
    if !name.is_empty() {
        values.insert(name, value);
    }
}

/// A list grows with `null` up to its new item.
fn set_index(list: &mut Vec<Value>, index: usize, value: Value) -> Result<(), Stop> {
    if index > MAX_INDEX {
        return fault(format!(
            "index of {index} is greater than maximum supported index of {MAX_INDEX}"
        ));
    }
    if list.len() <= index {
        list.resize(index + 1, Value::Null);
    }
    if let Some(place) = list.get_mut(index) {
        *place = value;
    }
    Ok(())
}

fn wrong_type<T>(value: &Value, wanted: &str) -> Result<T, Stop> {
    let is = match value {
        Value::Null => "nil",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Uint(_) => "uint64",
        Value::Float(_) => "float64",
        Value::String(_) | Value::Timestamp(_) | Value::Binary(_) => "string",
        Value::List(_) => "[]interface {}",
        Value::Map(_) => "map[string]interface {}",
    };
    fault(format!(
        "unable to parse key: interface conversion: interface {{}} is {is}, not {wanted}"
    ))
}

/// `true`, `false` and `null` in any case, whole numbers without a leading zero, else text.
fn typed(text: String) -> Value {
    if text.eq_ignore_ascii_case("true") {
        return Value::Bool(true);
    }
    if text.eq_ignore_ascii_case("false") {
        return Value::Bool(false);
    }
    if text.eq_ignore_ascii_case("null") {
        return Value::Null;
    }
    if text == "0" {
        return Value::Int(0);
    }
    match text.parse::<i64>() {
        Ok(number) if !text.starts_with('0') => Value::Int(number),
        _ => Value::String(text),
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_goyaml::{JsonStyle, to_json};

    use super::*;

    fn run(start: &str, argument: &str, mode: Mode<'_>) -> Result<String, String> {
        let Value::Map(mut values) = from_json(start.as_bytes(), Numbers::Exact).unwrap() else {
            panic!("no map")
        };
        apply(argument, mode, &mut values)?;
        Ok(to_json(&Value::Map(values), JsonStyle::Raw))
    }

    #[test]
    fn set_reads_what_helm_reads() {
        for (argument, expected) in [
            ("a=1", r#"{"a":1}"#),
            (
                "a=+5,b=-5,c=007,d=1e3,e=1.5,f=0,g=00",
                r#"{"a":5,"b":-5,"c":"007","d":"1e3","e":"1.5","f":0,"g":"00"}"#,
            ),
            (
                "a=TRUE,b=False,c=Null,d=nil",
                r#"{"a":true,"b":false,"c":null,"d":"nil"}"#,
            ),
            ("a=", r#"{"a":""}"#),
            ("a.b=", r#"{"a":{"b":""}}"#),
            ("a[0].b=", r#"{"a":[]}"#),
            ("a[0]=", r#"{"a":[""]}"#),
            ("a={}", r#"{"a":[""]}"#),
            ("a={1,two,true}", r#"{"a":[1,"two",true]}"#),
            ("a={1,2},b=3", r#"{"a":[1,2],"b":3}"#),
            ("a\\.b=c\\,d", r#"{"a.b":"c,d"}"#),
            ("a[1]=x", r#"{"a":[null,"x"]}"#),
            ("a[0].b=1,a[0].c=2,a[1].b=3", r#"{"a":[{"b":1,"c":2},{"b":3}]}"#),
            ("a[0][1]=x", r#"{"a":[[null,"x"]]}"#),
            ("a[1].b=1,a[0].b=2", r#"{"a":[{"b":2},{"b":1}]}"#),
            ("a.b.c=1,a.b.d=2", r#"{"a":{"b":{"c":1,"d":2}}}"#),
            ("a=1=2", r#"{"a":"1=2"}"#),
            (".a=1", r#"{}"#),
            ("a[", r#"{}"#),
            ("b=1,a[0", r#"{"b":1}"#),
            ("", r#"{}"#),
        ] {
            assert_eq!(
                run("{}", argument, Mode::Typed).as_deref(),
                Ok(expected),
                "{argument}"
            );
        }
    }

    #[test]
    fn set_refuses_what_helm_refuses() {
        for (argument, problem) in [
            ("a", "key \"a\" has no value"),
            ("a,b=1", "key \"a\" has no value (cannot end with ,)"),
            ("a.b", "key \"b\" has no value"),
            ("a={1,2", "list must terminate with '}'"),
            ("a[-1]=x", "negative -1 index not allowed"),
            (
                "a[x]=1",
                "error parsing index: strconv.Atoi: parsing \"x\": invalid syntax",
            ),
            (
                "a[99999999999999999999]=1",
                "error parsing index: strconv.Atoi: parsing \"99999999999999999999\": value out of range",
            ),
            (
                "a[65537]=1",
                "index of 65537 is greater than maximum supported index of 65536",
            ),
            ("a[0]]x=1", "unexpected data at end of array index: [']' 'x']"),
            (
                "s.b=1",
                "unable to parse key: interface conversion: interface {} is string, not map[string]interface {}",
            ),
            (
                "n[0]=1",
                "unable to parse key: interface conversion: interface {} is nil, not []interface {}",
            ),
        ] {
            assert_eq!(
                run(r#"{"s":"text","n":null}"#, argument, Mode::Typed).unwrap_err(),
                problem,
                "{argument}"
            );
        }
        let deep = format!("{}=1", vec!["a"; 40].join("."));
        assert!(
            run("{}", &deep, Mode::Typed)
                .unwrap_err()
                .contains("maximum supported nested level of 30")
        );
        let deep = format!("a{}=1", "[0]".repeat(5000));
        assert!(
            run("{}", &deep, Mode::Typed)
                .unwrap_err()
                .contains("nested deeper")
        );
    }

    #[test]
    fn the_other_flags() {
        for (mode, argument, expected) in [
            (
                Mode::Text,
                "a=1,b=true,c={1,2}",
                r#"{"a":"1","b":"true","c":["1","2"]}"#,
            ),
            (
                Mode::Json,
                r#"a={"b":[1,2.5]},c=null,d="x,y""#,
                r#"{"a":{"b":[1,2.5]},"c":null,"d":"x,y"}"#,
            ),
            (
                Mode::Json,
                "a=,b= 1 ,c.d[1]=true",
                r#"{"a":null,"b":1,"c":{"d":[null,true]}}"#,
            ),
            (Mode::Literal, r"a.b=x,y=\z{1}", r#"{"a":{"b":"x,y=\\z{1}"}}"#),
            (Mode::Literal, "a[1]=x", r#"{"a":[null,"x"]}"#),
            (
                Mode::File(&|name| Ok(format!("<{name}>"))),
                "a=f1,b={f2,f3}",
                r#"{"a":"<f1>","b":["<f2>","<f3>"]}"#,
            ),
        ] {
            assert_eq!(run("{}", argument, mode).as_deref(), Ok(expected), "{argument}");
        }
    }
}
