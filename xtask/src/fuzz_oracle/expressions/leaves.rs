//! Operands without parts: literals, fields and small calls, chosen for being interesting to one type.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::super::choices::Choices;
use super::printf;

/// `values.yaml` of every chart.
pub(crate) const VALUES: &str = include_str!("values.yaml");

/// What may be put into a text to break it.
pub(crate) const DAMAGE: &[&[u8]] = &[
    b" ",
    b"}",
    b"{",
    b"(",
    b")",
    b"\"",
    b"`",
    b"'",
    b"|",
    b".",
    b"$",
    b":=",
    b"=",
    b",",
    b"-",
    b"\n",
    b"{{",
    b"}}",
    b"\xff",
    b"\xc3",
    b"\0",
    b"/*",
    b"*/",
    b"\\",
    b"1",
    b"nil",
    b"%",
    b"#",
    b"{{end}}",
    b"{{else}}",
    b"\xe2\x98\xba",
    b"@",
    b"&",
];

/// Fields of what came before.
pub(crate) const FIELDS: &[&str] = &[
    ".a", ".b", ".k", ".nope", ".a.b", ".nope.x", ".Values", ".Name", ".Major", ".String", ".Year", "._0",
];

/// Text between actions.
pub(crate) const TEXTS: &[&str] = &[
    "x",
    " ",
    "\n",
    " \t\n a \n",
    "é",
    "a: 1\n",
    "}}",
    "{ {",
    "<no value>",
    "{",
    "\"",
    "\\",
];

/// Comments.
pub(crate) const COMMENTS: &[&str] = &[
    "{{/* c */}}",
    " {{- /* c */ -}} ",
    "{{- /* c\n */}}",
    "{{/* c */ -}}\n ",
    "{{ /* c */ }}",
    "{{/* c }}",
    "{{/**/}}",
    "{{/* c */ 1}}",
];

/// Jumps; outside `range` they do not parse.
pub(crate) const JUMPS: &[&str] = &[
    "{{ break }}",
    "{{ continue }}",
    "{{- continue -}}",
    "{{ break 1 }}",
    "{{break}}",
    "{{ end }}",
    "{{ else }}",
];

/// The operands of each type.
static POOLS: LazyLock<HashMap<char, Vec<&'static str>>> = LazyLock::new(|| {
    let mut pools: HashMap<char, Vec<&'static str>> = HashMap::new();
    let mut kind = None;
    for line in OPERANDS.lines() {
        match line.strip_prefix("== ") {
            Some(title) => kind = title.chars().next(),
            None if line.is_empty() => {}
            None => {
                if let Some(kind) = kind {
                    pools.entry(kind).or_default().push(line);
                }
            }
        }
    }
    pools
});

/// Headings of a type's letter, then its operands.
const OPERANDS: &str = include_str!("operands.txt");

/// An operand of this type.
pub(crate) fn leaf(choices: &mut Choices, wanted: char) -> String {
    match wanted {
        'F' => quoted(&printf::format(choices)),
        'a' => any(choices),
        _ => {
            let pool = POOLS.get(&wanted).map_or(&[][..], Vec::as_slice);
            pool.get(choices.below(pool.len()))
                .copied()
                .unwrap_or("1")
                .to_owned()
        }
    }
}

fn any(choices: &mut Choices) -> String {
    const KINDS: &[char] = &[
        's', 'i', 'l', 'm', 'f', 'b', 'n', 't', 'v', 'y', 'j', 'D', 'U', 'w', 'k',
    ];
    let pool = POOLS.get(&'a').map_or(&[][..], Vec::as_slice);
    if choices.below(5) == 4 {
        return pool
            .get(choices.below(pool.len()))
            .copied()
            .unwrap_or("nil")
            .to_owned();
    }
    let kind = KINDS.get(choices.below(KINDS.len())).copied().unwrap_or('s');
    leaf(choices, kind)
}

/// A Go string literal.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_operands() {
        for kind in "siwnfblSmMtDvcrpyjTzoOuU62/YeEak".chars() {
            assert!(POOLS.get(&kind).is_some_and(|pool| pool.len() > 3), "{kind}");
        }
        assert_eq!(leaf(&mut Choices::replay(Vec::new()), 's'), "\"a\"");
    }
}
