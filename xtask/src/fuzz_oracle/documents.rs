//! YAML and JSON texts: from a grammar, from real ones with small faults, from loose parts.

mod pools;

use super::case::Case;
use super::choices::Choices;
use pools::{BLOCK_LINES, DOUBLE, KEYS, PLAIN, REAL, SINGLE, SOUP, TAGS};

/// How deep values nest.
const DEPTH: usize = 4;

/// One text, as values or for the functions that read.
pub(crate) fn generate(choices: &mut Choices) -> Case {
    let is_values = choices.below(2) == 0;
    let mut text = match choices.weighted(&[12, 5, 3, 2]) {
        0 => {
            let mut writer = Writer {
                choices,
                anchors: Vec::new(),
            };
            writer.document()
        }
        1 => choices.pick(REAL).to_owned(),
        2 => (0..choices.count(1, 20)).map(|_| choices.pick(SOUP)).collect(),
        _ => json(choices, DEPTH),
    }
    .into_bytes();
    if choices.below(5) > 2 {
        damage(choices, &mut text);
    }
    if is_values {
        Case::Values { text }
    } else {
        Case::Read { text }
    }
}

fn damage(choices: &mut Choices, text: &mut Vec<u8>) {
    for _ in 0..choices.count(1, 3) {
        let at = choices.below(text.len());
        if at >= text.len() {
            return;
        }
        match choices.below(5) {
            0 => drop(text.remove(at)),
            1 => {
                let twice = text.get(at).copied().unwrap_or(b' ');
                text.insert(at, twice);
            }
            2 => {
                let piece = choices.pick(SOUP);
                text.splice(at..at, piece.bytes());
            }
            3 => {
                let scalar = choices.pick(PLAIN);
                text.splice(at..at, scalar.bytes());
            }
            _ => {
                let byte = u8::try_from(choices.below(256)).unwrap_or_default();
                text.insert(at, byte);
            }
        }
    }
}

fn json(choices: &mut Choices, depth: usize) -> String {
    match choices.weighted(if depth == 0 { &[1] } else { &[2, 2, 2] }) {
        0 => choices
            .pick(&[
                "1",
                "\"a\"",
                "null",
                "true",
                "-2.5e-3",
                "1E400",
                "0.1",
                "\"\\u00e9\\n\\/\"",
                "\"\\ud83d\\ude00\"",
                "01",
                "-",
                "\"\t\"",
                "12345678901234567890",
                "\"\\x\"",
                "nul",
                "1.",
                ".5",
                "\"é\"",
                "\"\\ud800\"",
                "1e2",
                "-0",
            ])
            .to_owned(),
        1 => {
            let items: Vec<String> = (0..choices.count(0, 4))
                .map(|_| json(choices, depth - 1))
                .collect();
            format!("[{}]", items.join(choices.pick(&[", ", ",", ",\n "])))
        }
        _ => {
            let items: Vec<String> = (0..choices.count(0, 4))
                .map(|_| {
                    let key = choices.pick(&["a", "b", "", "é", "\\u0061", "1", "a b", "<<"]);
                    let colon = choices.pick(&[": ", ":", " : "]);
                    format!("\"{key}\"{colon}{}", json(choices, depth - 1))
                })
                .collect();
            format!("{{{}}}", items.join(choices.pick(&[", ", ",", ",\n "])))
        }
    }
}

struct Writer<'c> {
    choices: &'c mut Choices,
    anchors: Vec<String>,
}

impl Writer<'_> {
    fn document(&mut self) -> String {
        let mut text = String::new();
        for index in 0..self.choices.count(1, 2) {
            if index > 0 || self.choices.once_in(10) {
                text.push_str(self.choices.pick(&[
                    "---\n",
                    "--- # c\n",
                    "---\n\n",
                    "...\n---\n",
                    "--- ",
                    "%YAML 1.1\n---\n",
                    "%TAG !e! tag:e,2000:\n---\n",
                    "%YAML 1.2\n---\n",
                    "----\n",
                    "---\t\n",
                ]));
            }
            let body = match self.choices.weighted(&[12, 2, 2, 1]) {
                0 => self.map(0, DEPTH),
                1 => self.list(0, DEPTH),
                2 => self.flow(DEPTH) + "\n",
                _ => self.scalar(0) + "\n",
            };
            text.push_str(&body);
        }
        if self.choices.once_in(12) {
            text = text.replace('\n', self.choices.pick(&["\r\n", "\r", "\n\n", " \n", " # c\n"]));
        }
        text
    }

    fn indent(&mut self, indent: usize) -> String {
        " ".repeat(if self.choices.once_in(60) {
            indent + 1
        } else {
            indent
        })
    }

    fn key(&mut self) -> String {
        if self.choices.below(3) > 0 {
            return self.choices.pick(&["a", "b", "c", "d", "e"]).to_owned();
        }
        match self.choices.once_in(30) {
            true => format!("k{}", "x".repeat(self.choices.below(2000))),
            false => self.choices.pick(KEYS).to_owned(),
        }
    }

    fn map(&mut self, indent: usize, depth: usize) -> String {
        let mut text = String::new();
        for _ in 0..self.choices.count(1, 5) {
            text.push_str(&self.indent(indent));
            if self.choices.once_in(25) {
                let key = self.flow(1);
                text.push_str(&format!("? {key}\n{}", self.indent(indent)));
                text.push_str(&format!(": {}\n", self.flow(1)));
                continue;
            }
            if self.choices.once_in(20) && !self.anchors.is_empty() {
                let one = self.anchor();
                let merged = match self.choices.below(3) {
                    0 => format!("*{one}"),
                    1 => format!("[*{one}, {{m: 1}}]"),
                    _ => self.flow(1),
                };
                text.push_str(&format!("<<: {merged}\n"));
                continue;
            }
            text.push_str(&self.key());
            text.push(':');
            text.push_str(&self.value(indent, depth));
        }
        text
    }

    fn list(&mut self, indent: usize, depth: usize) -> String {
        let mut text = String::new();
        for _ in 0..self.choices.count(1, 4) {
            text.push_str(&self.indent(indent));
            text.push('-');
            if depth > 0 && self.choices.once_in(4) {
                // A map or list that starts in the line of its dash.
                let inner = if self.choices.below(2) == 0 {
                    self.map(indent + 2, depth - 1)
                } else {
                    self.list(indent + 2, depth - 1)
                };
                text.push(' ');
                text.push_str(inner.trim_start_matches(' '));
            } else {
                text.push_str(&self.value(indent, depth));
            }
        }
        text
    }

    fn anchor(&mut self) -> String {
        let index = self.choices.below(self.anchors.len());
        self.anchors
            .get(index)
            .cloned()
            .unwrap_or_else(|| "none".to_owned())
    }

    fn properties(&mut self) -> String {
        let mut text = String::new();
        if self.choices.once_in(12) {
            let name = self.choices.pick(&["x", "y", "k", "é", "a-1", "a:b"]).to_owned();
            text.push_str(&format!(" &{name}"));
            self.anchors.push(name);
        }
        if self.choices.once_in(20) {
            text.push(' ');
            text.push_str(self.choices.pick(TAGS));
        }
        text
    }

    /// What follows `key:` or `-`, with its line end.
    fn value(&mut self, indent: usize, depth: usize) -> String {
        let mut text = self.properties();
        match self
            .choices
            .weighted(if depth == 0 { &[8, 2] } else { &[8, 2, 4, 3, 3, 1] })
        {
            0 => {
                text.push(' ');
                text.push_str(&self.scalar(indent));
                if self.choices.once_in(12) {
                    text.push_str(self.choices.pick(&[" # c", "# c", "\t# c", " ", "\t", " #"]));
                }
                text.push('\n');
            }
            1 => {
                text.push(' ');
                text.push_str(&self.block(indent));
            }
            2 => {
                text.push('\n');
                text.push_str(&self.map(indent + 2, depth - 1));
            }
            3 => {
                text.push('\n');
                let deeper = indent + 2 * usize::from(self.choices.below(2) == 0);
                text.push_str(&self.list(deeper, depth - 1));
            }
            4 => {
                text.push(' ');
                text.push_str(&self.flow(depth - 1));
                text.push('\n');
            }
            _ => {
                let name = if self.anchors.is_empty() {
                    "none".to_owned()
                } else {
                    self.anchor()
                };
                text.push_str(&format!(" *{name}\n"));
            }
        }
        text
    }

    fn scalar(&mut self, indent: usize) -> String {
        let continued = format!("\n{}", " ".repeat(indent + 1));
        match self.choices.weighted(&[8, 2, 2, 1]) {
            0 => self.choices.pick(PLAIN).to_owned(),
            1 => format!("\"{}\"", self.choices.pick(DOUBLE).replace("\n ", &continued)),
            2 => format!("'{}'", self.choices.pick(SINGLE).replace("\n ", &continued)),
            _ => {
                let mut words: Vec<&str> = Vec::new();
                for _ in 0..self.choices.count(2, 30) {
                    words.push(self.choices.pick(&[
                        "word",
                        "a",
                        "longer-word",
                        "é",
                        "#x",
                        "-",
                        "1",
                        "x:y",
                        "\"",
                        "'",
                    ]));
                }
                let between = if self.choices.once_in(4) {
                    continued.as_str()
                } else {
                    " "
                };
                words.join(between)
            }
        }
    }

    /// A block scalar with its lines.
    fn block(&mut self, indent: usize) -> String {
        let mut text = self
            .choices
            .pick(&[
                "|", ">", "|-", ">-", "|+", ">+", "|2", ">1", "|2-", "|-2", "| # c", "|0", "|9", "|a", ">+2",
            ])
            .to_owned();
        text.push('\n');
        let inner = indent + 1 + self.choices.below(3);
        for _ in 0..self.choices.count(0, 6) {
            let line = self.choices.pick(BLOCK_LINES);
            if !line.is_empty() {
                text.push_str(&self.indent(inner));
            }
            text.push_str(line);
            text.push('\n');
        }
        text
    }

    fn flow(&mut self, depth: usize) -> String {
        let prefix = self.properties();
        let prefix = prefix.trim_start();
        let space = if prefix.is_empty() { "" } else { " " };
        let body = match self.choices.weighted(if depth == 0 { &[1] } else { &[3, 2, 2] }) {
            0 => self.scalar(0),
            1 => {
                let items: Vec<String> = (0..self.choices.count(0, 4))
                    .map(|_| self.flow(depth - 1))
                    .collect();
                let end = self.choices.pick(&["", "", "", ",", " "]);
                format!("[{}{end}]", items.join(self.choices.pick(&[", ", ",", ",\n  "])))
            }
            _ => {
                let items: Vec<String> = (0..self.choices.count(0, 4))
                    .map(|_| {
                        let key = self.key();
                        match self.choices.below(10) {
                            9 => key,
                            8 => format!("{key}:{}", self.flow(depth - 1)),
                            7 => format!("? {key} : {}", self.flow(depth - 1)),
                            _ => format!("{key}: {}", self.flow(depth - 1)),
                        }
                    })
                    .collect();
                format!("{{{}}}", items.join(self.choices.pick(&[", ", ",", ",\n  "])))
            }
        };
        format!("{prefix}{space}{body}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_simplest_document_is_a_map() {
        let Case::Values { text } = generate(&mut Choices::replay(Vec::new())) else {
            panic!("values")
        };
        assert_eq!(text, b"a: a\n");
    }

    #[test]
    fn many_documents_are_sound() {
        let sound = (0..1000)
            .filter(|index| {
                let text = generate(&mut Choices::random(3, *index)).text();
                evenkeel_goyaml::from_yaml(&text, evenkeel_goyaml::Numbers::Float64).is_ok()
            })
            .count();
        assert!((200..900).contains(&sound), "{sound}");
    }
}
