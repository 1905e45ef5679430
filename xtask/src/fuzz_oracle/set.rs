//! Arguments of `--set` and its kin.

use super::case::{Case, ROOT};
use super::choices::Choices;

const FLAGS: &[&str] = &["--set", "--set", "--set-string", "--set-json", "--set-literal"];

const KEYS: &[&str] = &[
    "a", "b", "m", "l", "s", "n", "new", "k\\.x", "k\\=x", "é", "10", "", " ", "a b", "nul", "\\", "k\\,y",
    "k\\[0\\]",
];

const SCALARS: &[&str] = &[
    "1",
    "x",
    "",
    "true",
    "false",
    "null",
    "0",
    "-5",
    "+5",
    "007",
    "08",
    "0x1F",
    "0o17",
    "1.5",
    "1e3",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775809",
    "1_000",
    "True",
    "NULL",
    "nil",
    "~",
    "yes",
    " 1",
    "1 ",
    "a\\,b",
    "a\\=b",
    "a=b",
    "é☺",
    "\\",
    "\\n",
    "a\\",
    "\"q\"",
    "'q'",
    "{",
    "}",
    "{}",
    "[",
    "]",
    "[]",
    ".",
    "a.b",
    "--",
    "$x",
    "\t",
    "\n",
    "a\nb",
    "TRUE",
    "tRue",
    "-",
    "+",
    "-0",
    "00",
    "1e",
    "Inf",
    "NaN",
];

const JSON: &[&str] = &[
    "1",
    "\"x\"",
    "null",
    "{}",
    "[]",
    "{\"c\":[1,{\"d\":null}]}",
    "[1,2.5,\"a,b\"]",
    "1e400",
    "12345678901234567890",
    "{\"a\":1,\"a\":2}",
    "tru",
    "{\"a\"",
    "\"\\ud83d\\ude00\"",
    "\"\\ud800\"",
    "  true ",
    "-0",
    "01",
    "'a'",
    "nul",
    "",
    "[1,]",
    "\"a\nb\"",
];

const WRONG_INDEXES: &[&str] = &[
    "[-1]",
    "[]",
    "[a]",
    "[0",
    "[00]",
    "[+1]",
    "[ 1]",
    "[1.0]",
    "[65537]",
    "[99999999999999999999]",
];

/// Values that stand below the key of a case before it is set.
const BASE: &str = "{a: {b: {c: 1}}, b: text, l: [1, {x: y}, [2, 3]], m: {p: null, q: [a]}, n: 5, nul: null}";

/// One argument.
pub(crate) fn generate(choices: &mut Choices) -> Case {
    let flag = choices.pick(FLAGS);
    let mut text = String::new();
    if flag == "--set-literal" {
        text.push_str(&path(choices));
        text.push('=');
        for _ in 0..choices.count(0, 3) {
            text.push_str(choices.pick(SCALARS));
        }
    } else {
        for index in 0..choices.count(1, 4) {
            if index > 0 {
                text.push(',');
            }
            text.push_str(&pair(choices, flag == "--set-json"));
        }
    }
    if choices.once_in(25) {
        text = damaged(choices, &text);
    }
    Case::Set { flag, text }
}

fn pair(choices: &mut Choices, is_json: bool) -> String {
    let mut text = path(choices);
    if choices.once_in(40) {
        return text;
    }
    text.push('=');
    if is_json {
        text.push_str(choices.pick(JSON));
        return text;
    }
    match choices.weighted(&[8, 2, 1]) {
        0 => text.push_str(choices.pick(SCALARS)),
        1 => {
            text.push('{');
            for index in 0..choices.count(0, 4) {
                if index > 0 {
                    text.push(',');
                }
                text.push_str(choices.pick(SCALARS));
            }
            text.push('}');
        }
        _ => {
            for _ in 0..choices.count(0, 3) {
                text.push_str(choices.pick(SCALARS));
            }
        }
    }
    text
}

fn path(choices: &mut Choices) -> String {
    let mut text = String::from(ROOT);
    for _ in 0..choices.count(1, 4) {
        if choices.below(4) == 3 {
            let wrong = choices.once_in(12);
            text.push_str(choices.pick(if wrong {
                WRONG_INDEXES
            } else {
                &["[0]", "[1]", "[2]", "[5]"]
            }));
        } else {
            text.push('.');
            text.push_str(choices.pick(KEYS));
        }
    }
    text
}

/// A character left out, doubled, or put in.
fn damaged(choices: &mut Choices, text: &str) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    let at = choices.below(chars.len());
    // The key of the case stays: another case must not see it.
    if chars.get(at).is_some_and(|c| *c != ROOT) {
        match choices.below(3) {
            0 => drop(chars.remove(at)),
            1 => {
                if let Some(twice) = chars.get(at).copied() {
                    chars.insert(at, twice);
                }
            }
            _ => {
                let new = choices.pick(&[",", "=", ".", "[", "]", "{", "}", "\\", " ", "1", "a"]);
                chars.splice(at..at, new.chars());
            }
        }
    }
    chars.into_iter().collect()
}

/// The argument with the key of its place.
pub(crate) fn rooted(text: &str, place: usize) -> String {
    text.replace(ROOT, &format!("k{place}"))
}

/// Values for that many places.
pub(crate) fn base(places: usize) -> String {
    (0..places).map(|place| format!("k{place}: {BASE}\n")).collect()
}

/// The template that prints the values of that many places, each in a line.
pub(crate) fn printer(places: usize) -> String {
    format!(
        "{{{{ range $i := until {places} }}}}{{{{ pick $.Values (printf \"k%d\" $i) | toJson }}}}\n{{{{ end }}}}"
    )
}

/// The line of a place as it would be if it were the only one.
pub(crate) fn as_first(line: &str, place: usize) -> String {
    match line.strip_prefix(&format!("{{\"k{place}\":")) {
        Some(rest) => format!("{{\"k0\":{rest}"),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_simplest_argument_sets_one_key() {
        let case = generate(&mut Choices::replay(Vec::new()));
        let Case::Set { flag, text } = case else {
            panic!("an argument")
        };
        assert_eq!((flag, rooted(&text, 3).as_str()), ("--set", "k3.a=1"));
    }

    #[test]
    fn every_pair_is_below_the_key_of_its_case() {
        for index in 0..2000 {
            let Case::Set { text, .. } = generate(&mut Choices::random(1, index)) else {
                panic!("an argument")
            };
            assert!(text.starts_with(ROOT) || !text.contains(ROOT), "{text:?}");
        }
    }
}
