//! Rust sources as checks want to see them: without comments, with or without strings, tests told apart.

use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::repository::Repository;

/// All text files of the repository.
pub(super) struct Sources {
    pub(super) files: Vec<SourceFile>,
}

/// One text file.
pub(super) struct SourceFile {
    /// From the root of the repository.
    pub(super) path: PathBuf,
    pub(super) text: String,
}

impl Sources {
    /// Reads them.
    pub(super) fn read(repository: &Repository) -> Result<Self> {
        let mut files = Vec::new();
        for path in repository.files()? {
            if let Some(text) = repository.text(&path)? {
                files.push(SourceFile { path, text });
            }
        }
        Ok(Self { files })
    }

    /// Those in Rust.
    pub(super) fn rust(&self) -> impl Iterator<Item = &SourceFile> {
        self.files
            .iter()
            .filter(|file| file.path.extension().is_some_and(|extension| extension == "rs"))
    }
}

impl SourceFile {
    /// Whether the whole file is for tests, benches or examples.
    pub(super) fn is_test(&self) -> bool {
        is_test_path(&self.path)
    }

    /// The code: comments are blanks, and so are strings unless `strings`. Lines stay what they are.
    pub(super) fn code(&self, strings: Strings) -> String {
        blank(&self.text, strings)
    }

    /// Numbered lines of the code that is not for tests.
    pub(super) fn shipped_lines(&self, strings: Strings) -> Vec<(usize, String)> {
        if self.is_test() {
            return Vec::new();
        }
        let bare = self.code(Strings::Blank);
        let tests = test_modules(&bare);
        let code = self.code(strings);
        let mut start = 0;
        let mut lines = Vec::new();
        for (index, line) in code.split('\n').enumerate() {
            if !tests.iter().any(|range| range.contains(&start)) {
                lines.push((index + 1, line.to_owned()));
            }
            start += line.len() + 1;
        }
        lines
    }
}

fn is_test_path(path: &Path) -> bool {
    let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
    let folders = ["tests", "benches", "examples", "fuzz"];
    parts
        .iter()
        .any(|part| folders.contains(part) || *part == "tests.rs" || part.ends_with("_tests.rs"))
}

/// What [`SourceFile::code`] does with strings and characters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Strings {
    Keep,
    Blank,
}

/// Replaces comments, and strings if so asked, by blanks of the same length.
fn blank(text: &str, strings: Strings) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let rest = bytes.get(at..).unwrap_or_default();
        let (length, is_string) = match rest {
            [b'/', b'/', ..] => (line_length(rest), false),
            [b'/', b'*', ..] => (block_length(rest), false),
            _ => match string_length(
                rest,
                at.checked_sub(1).and_then(|before| bytes.get(before)).copied(),
            ) {
                Some(length) => (length, true),
                None => {
                    at += 1;
                    continue;
                }
            },
        };
        if !is_string || strings == Strings::Blank {
            for byte in out.iter_mut().skip(at).take(length) {
                if *byte != b'\n' {
                    *byte = b' ';
                }
            }
        }
        at += length;
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn line_length(rest: &[u8]) -> usize {
    rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())
}

/// Length of a block comment, which may hold others.
fn block_length(rest: &[u8]) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        match rest.get(at..).unwrap_or_default() {
            [b'/', b'*', ..] => {
                depth += 1;
                at += 2;
            }
            [b'*', b'/', ..] => {
                depth = depth.saturating_sub(1);
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    rest.len()
}

/// Length of the string or character that starts here, if one does. `before` is the byte before: in `var"` the `r` is
/// no prefix.
fn string_length(rest: &[u8], before: Option<u8>) -> Option<usize> {
    let in_word = before.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let prefix = match rest {
        [b'b' | b'c', b'r', b'"' | b'#', ..] if !in_word => 2,
        [b'r', b'"' | b'#', ..] if !in_word => 1,
        [b'"', ..] => return Some(quoted_length(rest, b'"')),
        [b'\'', ..] => return character_length(rest),
        _ => return None,
    };
    let hashes = rest.iter().skip(prefix).take_while(|byte| **byte == b'#').count();
    if rest.get(prefix + hashes) != Some(&b'"') {
        // r#type is a name.
        return None;
    }
    let mut end = vec![b'"'];
    end.resize(hashes + 1, b'#');
    let start = prefix + hashes + 1;
    let body = rest.get(start..)?;
    let length = body
        .windows(end.len())
        .position(|window| window == end)
        .map_or(body.len(), |at| at + end.len());
    Some(start + length)
}

fn quoted_length(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while let Some(byte) = rest.get(at) {
        match byte {
            b'\\' => at += 2,
            byte if *byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// A quote starts a character or a lifetime.
fn character_length(rest: &[u8]) -> Option<usize> {
    match rest {
        [_, b'\\', ..] => Some(quoted_length(rest, b'\'')),
        [_, b'\'', ..] => None,
        _ => {
            let text = std::str::from_utf8(rest.get(1..rest.len().min(6))?).unwrap_or_else(|error| {
                std::str::from_utf8(rest.get(1..1 + error.valid_up_to()).unwrap_or_default())
                    .unwrap_or_default()
            });
            let width = text.chars().next()?.len_utf8();
            (rest.get(1 + width) == Some(&b'\'')).then_some(width + 2)
        }
    }
}

/// Byte ranges of what is compiled for tests alone, in code without comments and strings.
fn test_modules(code: &str) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut from = 0;
    while let Some(start) = code
        .get(from..)
        .and_then(|rest| rest.find("#[cfg(test)]"))
        .map(|at| from + at)
    {
        let body = code.get(start..).unwrap_or_default();
        let end = item_length(body);
        ranges.push(start..start + end);
        from = start + end.max(1);
    }
    ranges
}

/// Length of the item at the start: to its `;`, or to the brace that closes its first one.
fn item_length(code: &str) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate() {
        match byte {
            b';' if depth == 0 => return at + 1,
            b'{' => depth += 1,
            b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    code.len()
}

/// Whether `name` stands in `code` as a word of its own.
pub(super) fn has_word(code: &str, name: &str) -> bool {
    let is_word = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    code.match_indices(name).any(|(at, _)| {
        let bytes = code.as_bytes();
        let before = at.checked_sub(1).and_then(|at| bytes.get(at));
        !is_word(before) && !is_word(bytes.get(at + name.len()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> SourceFile {
        SourceFile {
            path: PathBuf::from(path),
            text: text.to_owned(),
        }
    }

    #[test]
    fn comments_and_strings_become_blanks_and_lines_stay() {
        let text =
            "let a = \"std::fs // no\"; // std::net\n/* std::env\n /* more */ */ let b = r#\"\"std\"\"#; x";
        let code = blank(text, Strings::Blank);
        assert!(!code.contains("std"), "{code}");
        assert_eq!(code.len(), text.len());
        assert_eq!(code.lines().count(), 3);
        assert!(code.ends_with("; x"));
        assert!(blank(text, Strings::Keep).contains("\"std::fs // no\"; "));
        assert!(!blank(text, Strings::Keep).contains("std::net"));
    }

    #[test]
    fn lifetimes_raw_names_and_characters_are_told_apart() {
        let text = "fn f<'a>(r#type: &'a str) { g('\"', '\\'', 'é', b'x'); std::fs::read(\"x\") }";
        let code = blank(text, Strings::Blank);
        assert!(code.contains("std::fs::read(   )"), "{code}");
        assert!(code.contains("<'a>(r#type: &'a str)"), "{code}");
    }

    #[test]
    fn what_is_for_tests_alone_is_left_out() {
        let text = "use a;\n#[cfg(test)]\nuse b;\nfn f() {}\n#[cfg(test)]\nmod tests {\n fn g() { \"}\"; }\n}\nfn h() {}\n";
        let lines = file("crates/x/src/y.rs", text).shipped_lines(Strings::Keep);
        let lines: Vec<(usize, &str)> = lines
            .iter()
            .filter(|(_, line)| !line.is_empty())
            .map(|(number, line)| (*number, line.as_str()))
            .collect();
        assert_eq!(lines, [(1, "use a;"), (4, "fn f() {}"), (9, "fn h() {}")]);
        assert!(
            file("crates/x/src/y/tests.rs", text)
                .shipped_lines(Strings::Keep)
                .is_empty()
        );
        assert!(
            file("crates/x/tests/it/main.rs", text)
                .shipped_lines(Strings::Keep)
                .is_empty()
        );
    }

    #[test]
    fn words_are_whole() {
        assert!(has_word("use serde::Deserialize;", "serde"));
        assert!(!has_word("use serde_json::Value;", "serde"));
        assert!(!has_word("use my_serde;", "serde"));
    }
}
