//! Templates that mostly parse, from arbitrary bytes: every function, with arguments of every type.

use std::fmt::Write as _;
use std::sync::LazyLock;

use arbitrary::{Arbitrary, Result, Unstructured};
use evenkeel_gotemplate::FuncMap;

/// How deep calls nest.
const DEPTH: usize = 4;

/// Slow on purpose: hashes of passwords. Bounded by their own parameters, they would only slow the search down.
const SLOW: [&str; 3] = ["bcrypt", "derivePassword", "htpasswd"];

/// Functions of the chart engine, beside those of the template engine.
const OF_CHARTS: [&str; 3] = ["include", "tpl", "required"];

static NAMES: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let mut names = FuncMap::native_names();
    names.retain(|name| !SLOW.contains(name));
    names.extend(OF_CHARTS);
    names
});

const OPERANDS: &[&str] = &[
    ".",
    "$",
    ".Values",
    ".Values.l",
    ".Values.m",
    ".Values.m.k",
    ".Values.s",
    ".Values.n",
    ".Values.nope",
    ".Values.nope.x",
    "nil",
    "true",
    "false",
    "0",
    "1",
    "-1",
    "3",
    "100",
    "65536",
    "-9223372036854775808",
    "9223372036854775807",
    "0x1F",
    "1e3",
    "1.5",
    "-0.0",
    "1e308",
    "'a'",
    "1i",
    "\"\"",
    "\"a\"",
    "\"é☺\"",
    "\"a,b\"",
    "\"\\xff\\x00\"",
    "`\\n`",
    "\"1.2.3\"",
    "\">=1.2, <2 || ^3\"",
    "\"(a|b)*c+?\"",
    "\"$1\"",
    "\"2006-01-02T15:04:05Z07:00\"",
    "\"2024-02-29\"",
    "\"1h30m\"",
    "\"UTC\"",
    "\"a: [1, {b: c}]\"",
    "\"{\\\"a\\\": [1, null]}\"",
    "\"a = 1\"",
    "\"%v %5.2f %x %q\"",
    "\"h\"",
    "\"r\"",
    "\"{{ . }}\"",
    "\"http://u:p@h:1/p?q#f\"",
    "\"aGVsbG8=\"",
    "$x",
    "$i",
    "$e",
    ".Files",
    ".Capabilities",
    ".Capabilities.APIVersions",
    ".Chart",
    ".Release",
    ".Template",
];

const VERBATIM: &[&str] = &[
    "text",
    "\n",
    "---\n",
    "a: 1\n",
    "kind: X\n",
    "{{/* c */}}",
    "{{- /* c */ -}}",
    "{{ break }}",
    "{{ continue }}",
    "{{ template \"h\" . }}",
    "{{ block \"b\" . }}b{{ end }}",
    "{{ define \"d\" }}d{{ end }}",
];

/// A template.
#[derive(Debug)]
pub struct Program(pub String);

impl<'a> Arbitrary<'a> for Program {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> Result<Self> {
        let mut text = String::from("{{ $x := 1 }}{{ $i := 0 }}{{ $e := \"\" }}");
        let mut open = 0;
        while !bytes.is_empty() && text.len() < 4096 {
            match bytes.int_in_range(0..=9)? {
                0 => text.push_str(bytes.choose(VERBATIM)?),
                1 => {
                    let keyword = bytes.choose(&["if", "with", "range", "range $i, $e :=", "range $e :="])?;
                    write!(text, "{{{{ {keyword} {} }}}}", pipeline(bytes)?)
                        .map_err(|_| arbitrary::Error::IncorrectFormat)?;
                    open += 1;
                }
                2 if open > 0 => text.push_str("{{ else }}"),
                2 | 3 if open > 0 => {
                    text.push_str("{{ end }}");
                    open -= 1;
                }
                4 => {
                    let sign = bytes.choose(&["=", ":="])?;
                    write!(text, "{{{{- $x {sign} {} -}}}}", pipeline(bytes)?)
                        .map_err(|_| arbitrary::Error::IncorrectFormat)?;
                }
                5 => {
                    let raw: String = bytes.arbitrary()?;
                    text.push_str(raw.get(..raw.floor_char_boundary(40)).unwrap_or_default());
                }
                _ => write!(text, "{{{{ {} }}}}", pipeline(bytes)?)
                    .map_err(|_| arbitrary::Error::IncorrectFormat)?,
            }
        }
        text.push_str(&"{{ end }}".repeat(open));
        Ok(Self(text))
    }
}

fn pipeline(bytes: &mut Unstructured<'_>) -> Result<String> {
    let mut text = call(bytes, DEPTH)?;
    for _ in 0..bytes.int_in_range(0..=3)? {
        text.push_str(" | ");
        text.push_str(&call(bytes, DEPTH)?);
    }
    Ok(text)
}

fn call(bytes: &mut Unstructured<'_>, depth: usize) -> Result<String> {
    let mut text = (*bytes.choose(&NAMES)?).to_owned();
    for _ in 0..bytes.int_in_range(0..=4)? {
        text.push(' ');
        text.push_str(&operand(bytes, depth)?);
    }
    Ok(text)
}

fn operand(bytes: &mut Unstructured<'_>, depth: usize) -> Result<String> {
    if depth > 0 && once_in(bytes, 3)? {
        return Ok(format!("({})", call(bytes, depth - 1)?));
    }
    if once_in(bytes, 8)? {
        let text: String = bytes.arbitrary()?;
        return Ok(format!(
            "{:?}",
            text.get(..text.floor_char_boundary(40)).unwrap_or_default()
        ));
    }
    if once_in(bytes, 8)? {
        return Ok(bytes.arbitrary::<i64>()?.to_string());
    }
    Ok((*bytes.choose(OPERANDS)?).to_owned())
}

/// True once in that many times, and never when the bytes have run out.
pub(crate) fn once_in(bytes: &mut Unstructured<'_>, times: u8) -> Result<bool> {
    Ok(bytes.int_in_range(0..=times - 1)? == times - 1)
}
