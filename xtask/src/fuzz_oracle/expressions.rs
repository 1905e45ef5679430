//! Templates: mostly one action with calls inside calls, sometimes whole blocks, now and then broken ones.

mod functions;
mod leaves;
mod printf;

use std::fmt::Write as _;

use super::case::Case;
use super::choices::Choices;

pub(crate) use leaves::VALUES;

/// How deep calls nest.
const CALL_DEPTH: usize = 3;

/// How deep blocks nest.
const BLOCK_DEPTH: usize = 3;

/// Parts of the names of functions that give times.
const MAKING_TIMES: [&str; 3] = ["oDate", "ate_modify", "ateModify"];

/// What is known to differ and is left so: in the YAML of `toYamlPretty` a time has no quotes, bytes that are no text are
/// binary and structs are named otherwise; under a verb that is not for texts a time shows where its zone lies in memory.
fn is_known(text: &[u8]) -> bool {
    let has = |word: &str| contains(text, word.as_bytes());
    let makes_time = MAKING_TIMES.iter().any(|name| has(name));
    let pretty = has("toYamlPretty");
    let whole = || {
        let mut words = text.split(|byte| b" (){}|`\"".contains(byte));
        words.any(|word| word == b"." || word == b"$")
    };
    (makes_time && (pretty || has("printf")))
        || (pretty && (has("Capabilities") || has("\\x") || whole() || std::str::from_utf8(text).is_err()))
}

/// One template.
pub(crate) fn generate(choices: &mut Choices) -> Case {
    let mut writer = Writer {
        choices,
        variables: Vec::new(),
        in_range: false,
    };
    let mut text = match writer.choices.weighted(&[14, 4, 2]) {
        0 => writer.action(CALL_DEPTH),
        1 => writer.blocks(BLOCK_DEPTH),
        _ => printf::call(writer.choices),
    }
    .into_bytes();
    if choices.once_in(25) {
        damage(choices, &mut text);
    }
    if functions::REFUSING
        .iter()
        .any(|name| contains(&text, name.as_bytes()))
    {
        return Case::Refusal { text };
    }
    if is_known(&text) {
        let text = b"{{ 1 }}".to_vec();
        return Case::Template { text, included: true };
    }
    let included = !choices.once_in(6);
    Case::Template { text, included }
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|window| window == word)
}

/// A byte left out, doubled, or put in.
fn damage(choices: &mut Choices, text: &mut Vec<u8>) {
    for _ in 0..choices.count(1, 3) {
        let at = choices.below(text.len());
        if at >= text.len() {
            return;
        }
        match choices.below(3) {
            0 => drop(text.remove(at)),
            1 => {
                let twice = text.get(at).copied().unwrap_or(b' ');
                text.insert(at, twice);
            }
            _ => {
                let new = choices.pick(leaves::DAMAGE);
                text.splice(at..at, new.iter().copied());
            }
        }
    }
}

/// Writes one template.
pub(crate) struct Writer<'c> {
    choices: &'c mut Choices,
    /// Declared in the template so far, those of closed blocks among them: using one of these is an error to compare.
    variables: Vec<&'static str>,
    in_range: bool,
}

impl Writer<'_> {
    /// `{{ … }}`, sometimes with trim markers.
    fn action(&mut self, depth: usize) -> String {
        let inner = self.pipeline('a', depth);
        self.braces(&inner)
    }

    fn braces(&mut self, inner: &str) -> String {
        let (open, close) = match self.choices.weighted(&[10, 1, 1, 1]) {
            0 => ("{{ ", " }}"),
            1 => ("{{- ", " }}"),
            2 => ("{{ ", " -}}"),
            _ => ("{{", "}}"),
        };
        format!("{open}{inner}{close}")
    }

    /// `f a | g b`: the last argument of `g` is what `f` gives.
    fn pipeline(&mut self, wanted: char, depth: usize) -> String {
        let more = self.choices.below(3).saturating_sub(self.choices.below(2));
        let first = if more == 0 { wanted } else { 'a' };
        let (mut text, mut given) = self.command(first, depth);
        for _ in 0..more {
            let function = if self.choices.once_in(12) {
                functions::giving(self.choices, wanted)
            } else {
                functions::taking(self.choices, given)
            };
            given = function.gives;
            text.push_str(" | ");
            text.push_str(&self.call(function, depth, true));
        }
        text
    }

    /// What may stand at the start of a pipeline: a call without parentheses, or an operand; and the type of it.
    fn command(&mut self, wanted: char, depth: usize) -> (String, char) {
        if depth == 0 || self.choices.below(8) == 7 {
            return (self.leaf(wanted), wanted);
        }
        let function = functions::giving(self.choices, wanted);
        (self.call(function, depth, false), function.gives)
    }

    /// An operand of this type, or once in a while of any.
    fn operand(&mut self, wanted: char, depth: usize) -> String {
        let wanted = if self.choices.once_in(40) { 'a' } else { wanted };
        if depth > 0 && self.choices.below(5) > 2 {
            let function = functions::giving(self.choices, wanted);
            let call = if self.choices.once_in(12) {
                self.pipeline(wanted, depth - 1)
            } else {
                self.call(function, depth - 1, false)
            };
            let mut text = format!("({call})");
            if self.choices.once_in(40) {
                text.push_str(self.choices.pick(leaves::FIELDS));
            }
            return text;
        }
        self.leaf(wanted)
    }

    fn leaf(&mut self, wanted: char) -> String {
        if !self.variables.is_empty() && self.choices.once_in(6) {
            let index = self.choices.below(self.variables.len());
            let mut text = self.variables.get(index).copied().unwrap_or_default().to_owned();
            if self.choices.once_in(8) {
                text.push_str(self.choices.pick(leaves::FIELDS));
            }
            return text;
        }
        leaves::leaf(self.choices, wanted)
    }

    fn call(&mut self, function: &functions::Function, depth: usize, piped: bool) -> String {
        let mut arguments = function.arguments(self.choices);
        if self.choices.once_in(150) {
            // A wrong number of arguments.
            if self.choices.below(2) == 0 {
                arguments.pop();
            } else {
                arguments.push('a');
            }
        }
        if piped {
            arguments.pop();
        }
        let mut text = function.name.to_owned();
        for wanted in arguments {
            text.push(' ');
            text.push_str(&self.operand(wanted, depth.saturating_sub(1)));
        }
        match function.wrapped {
            // Go's maps have no order.
            true if !piped => format!("sortAlpha ({text})"),
            true => format!("{text} | sortAlpha"),
            false => text,
        }
    }

    fn blocks(&mut self, depth: usize) -> String {
        let mut text = String::new();
        for _ in 0..self.choices.count(1, 4) {
            text.push_str(&self.block(depth));
        }
        text
    }

    fn block(&mut self, depth: usize) -> String {
        let weights: &[usize] = if depth == 0 {
            &[4, 3, 2]
        } else {
            &[4, 3, 3, 4, 3, 5, 2, 2, 2, 1, 1]
        };
        match self.choices.weighted(weights) {
            0 => self.action(2),
            1 => self.choices.pick(leaves::TEXTS).to_owned(),
            2 => self.assignment(),
            3 => self.conditional("if", depth),
            4 => self.conditional("with", depth),
            5 => self.range(depth),
            6 => self.definition(depth),
            7 => self.nested_text(depth),
            8 => self.choices.pick(leaves::COMMENTS).to_owned(),
            9 => self.choices.pick(leaves::JUMPS).to_owned(),
            _ => {
                let inner = self.blocks(depth - 1);
                let dot = self.operand('a', 1);
                format!(
                    "{{{{ block \"k{}\" {dot} }}}}{inner}{{{{ end }}}}",
                    self.choices.below(3)
                )
            }
        }
    }

    fn assignment(&mut self) -> String {
        let name = self.choices.pick(&["$x", "$y", "$z"]);
        let operator = if self.variables.contains(&name) && self.choices.below(2) == 1 {
            "="
        } else {
            ":="
        };
        let value = self.pipeline('a', 2);
        self.variables.push(name);
        self.braces(&format!("{name} {operator} {value}"))
    }

    fn conditional(&mut self, keyword: &str, depth: usize) -> String {
        let condition = if self.choices.once_in(5) {
            self.variables.push("$c");
            format!("$c := {}", self.pipeline('a', 2))
        } else {
            self.pipeline('b', 2)
        };
        let mut text = self.braces(&format!("{keyword} {condition}"));
        text.push_str(&self.blocks(depth - 1));
        if self.choices.once_in(3) {
            let condition = self.pipeline('a', 1);
            text.push_str(&self.braces(&format!("else {keyword} {condition}")));
            text.push_str(&self.blocks(depth - 1));
        }
        if self.choices.below(2) == 1 {
            text.push_str(&self.braces("else"));
            text.push_str(&self.blocks(depth - 1));
        }
        text.push_str(&self.braces("end"));
        text
    }

    fn range(&mut self, depth: usize) -> String {
        let over = match self.choices.weighted(&[4, 3, 2, 1]) {
            0 => self.pipeline('l', 2),
            1 => self.pipeline('m', 2),
            2 => self
                .choices
                .pick(&[
                    "3",
                    "0",
                    "-1",
                    "(int 2)",
                    ".Values.i",
                    "(int64 4)",
                    "(len .Values.l)",
                ])
                .to_owned(),
            _ => self.pipeline('a', 1),
        };
        let variables = self
            .choices
            .pick(&["", "$i, $e := ", "$e := ", "$i, $e = ", "$e = "]);
        if variables.contains(":=") {
            self.variables.extend(["$e", "$i"]);
        }
        let mut text = self.braces(&format!("range {variables}{over}"));
        let outer = std::mem::replace(&mut self.in_range, true);
        text.push_str(&self.blocks(depth - 1));
        if self.choices.once_in(4) {
            let condition = self.pipeline('b', 1);
            let jump = self.choices.pick(&["break", "continue"]);
            write!(text, "{{{{ if {condition} }}}}{{{{ {jump} }}}}{{{{ end }}}}").unwrap_or_default();
            text.push_str(&self.blocks(depth - 1));
        }
        self.in_range = outer;
        if self.choices.once_in(3) {
            text.push_str(&self.braces("else"));
            text.push_str(&self.blocks(depth - 1));
        }
        text.push_str(&self.braces("end"));
        text
    }

    fn definition(&mut self, depth: usize) -> String {
        let name = self.choices.pick(&["d0", "d1", "d2"]);
        let outer = std::mem::take(&mut self.variables);
        let inner = self.blocks(depth - 1);
        self.variables = outer;
        let mut text = format!("{{{{ define \"{name}\" }}}}{inner}{{{{ end }}}}");
        for _ in 0..self.choices.count(1, 2) {
            let dot = self.operand('a', 1);
            let call = match self.choices.below(3) {
                0 => format!("{{{{ include \"{name}\" {dot} }}}}"),
                1 => format!("{{{{ template \"{name}\" {dot} }}}}"),
                _ => format!("{{{{ template \"{name}\" }}}}"),
            };
            text.push_str(&call);
        }
        text
    }

    fn nested_text(&mut self, depth: usize) -> String {
        let outer = std::mem::take(&mut self.variables);
        let inner = self.blocks(depth - 1);
        self.variables = outer;
        let quoted = if inner.contains('`') || self.choices.below(2) == 1 {
            leaves::quoted(&inner)
        } else {
            format!("`{inner}`")
        };
        let dot = self
            .choices
            .pick(&[".", "$", ".Values", "nil", "(dict)", "(dict \"Template\" 1)"]);
        self.braces(&format!("tpl {quoted} {dot}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_simplest_template_is_one_small_action() {
        let Case::Template { text, .. } = generate(&mut Choices::replay(Vec::new())) else {
            panic!("a template")
        };
        assert!(
            text.starts_with(b"{{ ") && text.ends_with(b" }}") && text.len() < 60,
            "{}",
            text.escape_ascii()
        );
    }

    #[test]
    fn templates_differ_and_are_not_endless() {
        let all: std::collections::HashSet<Vec<u8>> = (0..2000)
            .map(|index| generate(&mut Choices::random(7, index)).text())
            .collect();
        assert!(all.len() > 1700, "{}", all.len());
        assert!(all.iter().all(|text| text.len() < 100_000));
    }
}
