//! `printf` with every verb, flag, width and precision over every kind of value.

use super::super::choices::Choices;
use super::leaves;

const VERBS: &[&str] = &[
    "v", "d", "s", "q", "x", "X", "t", "f", "e", "E", "g", "G", "F", "b", "o", "O", "c", "U", "T", "w", "z",
    "%", "",
];

const FLAGS: &[&str] = &["", "+", "-", "#", " ", "0", "+#", "-0", "# ", "+0", "+-# 0"];

const WIDTHS: &[&str] = &["", "1", "5", "12", "*", "[1]*", "[3]*", "10000011"];

const PRECISIONS: &[&str] = &["", ".", ".0", ".2", ".9", ".*", ".[1]*", ".20"];

/// A call with one to three directives.
pub(crate) fn call(choices: &mut Choices) -> String {
    let format = format(choices);
    let mut text = format!("{{{{ printf {}", leaves::quoted(&format));
    for _ in 0..choices.count(1, 4) {
        // Times are left out: under verbs that are not for texts, Go shows where their zones lie in memory.
        let kinds = ['i', 's', 'f', 'n', 'l', 'm', 'b', 'v'];
        let wanted = kinds.get(choices.below(kinds.len())).copied().unwrap_or('i');
        text.push(' ');
        text.push_str(&leaves::leaf(choices, wanted));
    }
    text.push_str(" }}");
    text
}

/// Directives with some text between.
pub(crate) fn format(choices: &mut Choices) -> String {
    let mut text = String::new();
    for _ in 0..choices.count(1, 3) {
        text.push('%');
        text.push_str(choices.pick(FLAGS));
        text.push_str(choices.pick(WIDTHS));
        text.push_str(choices.pick(PRECISIONS));
        if choices.once_in(12) {
            text.push_str(choices.pick(&["[1]", "[2]", "[0]", "[9]", "[x]", "["]));
        }
        text.push_str(choices.pick(VERBS));
        text.push_str(choices.pick(&["", " ", "é", "%", "|"]));
    }
    text
}
