//! The patterns of `.Files.Glob`: `*` within one path part, `**` across parts, `?`, `[abc]`, `[a-z]`, `[!a]`, `{a,b}`.
//!
//! Helm uses gobwas/glob with `/` as separator, and takes every file when a pattern is malformed. A pattern becomes a
//! regular expression, so no pattern can take more than linear time; of the light kind, for it is built anew for each call
//! and sees few paths.

use regex_lite::Regex;

/// A compiled pattern.
pub(crate) struct Glob(Option<Regex>);

impl Glob {
    /// A malformed pattern matches everything.
    pub(crate) fn new(pattern: &str) -> Self {
        Self(translate(pattern).and_then(|expression| Regex::new(&expression).ok()))
    }

    pub(crate) fn matches(&self, path: &str) -> bool {
        self.0.as_ref().is_none_or(|expression| expression.is_match(path))
    }
}

/// The pattern as a regular expression, `None` when malformed.
fn translate(pattern: &str) -> Option<String> {
    let mut chars = pattern.chars().peekable();
    let mut out = String::from("(?s)^(?:");
    let mut open = 0_usize;
    while let Some(c) = chars.next() {
        match c {
            '{' => {
                open += 1;
                out.push_str("(?:");
            }
            '}' if open > 0 => {
                open -= 1;
                out.push(')');
            }
            ',' if open > 0 => out.push('|'),
            '?' => out.push_str("[^/]"),
            '*' if chars.peek() == Some(&'*') => {
                chars.next();
                out.push_str(".*");
            }
            '*' => out.push_str("[^/]*"),
            '[' => class(&mut chars, &mut out)?,
            // A backslash at the very end stands for nothing.
            '\\' => out.extend(chars.next().map(escape).into_iter().flatten()),
            c => out.extend(escape(c)),
        }
    }
    // An open brace at the end closes by itself.
    out.extend(std::iter::repeat_n(')', open + 1));
    out.push('$');
    Some(out)
}

fn escape(c: char) -> impl Iterator<Item = char> {
    let special = c.is_ascii_punctuation().then_some('\\');
    special.into_iter().chain([c])
}

/// Reads after `[`: an optional `!`, then either one `lo-hi` pair or a list of characters, then `]`.
fn class(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, out: &mut String) -> Option<()> {
    out.push('[');
    let mut first = chars.next()?;
    if first == '!' {
        out.push('^');
        first = chars.next()?;
    }
    if chars.peek() == Some(&'-') {
        chars.next();
        let high = chars.next()?;
        if high < first || chars.next()? != ']' {
            return None;
        }
        out.extend(escape(first).chain(['-']).chain(escape(high)).chain([']']));
        return Some(());
    }
    let (mut c, mut any) = (first, false);
    loop {
        match c {
            ']' => break,
            '\\' => c = chars.next()?,
            _ => {}
        }
        out.extend(escape(c));
        any = true;
        c = chars.next()?;
    }
    out.push(']');
    any.then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_helm() {
        for (pattern, path, expected) in [
            ("*", "a", true),
            ("*", "a/b", false),
            ("**", "a/b", true),
            ("config/*", "config/a.txt", true),
            ("config/*", "config/a/b.txt", false),
            ("config/**", "config/a/b.txt", true),
            ("**.yaml", "x/y.yaml", true),
            ("**/x.yaml", "x.yaml", false),
            ("{a,b}.txt", "b.txt", true),
            ("{a,b}.txt", "c.txt", false),
            ("{a,{b,c}}.txt", "c.txt", true),
            ("a?c", "abc", true),
            ("a?c", "a/c", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[abc]x", "cx", true),
            ("[!abc]x", "dx", true),
            ("a.c", "abc", false),
            ("a\\*c", "a*c", true),
            ("a\\*c", "abc", false),
        ] {
            assert_eq!(Glob::new(pattern).matches(path), expected, "{pattern} {path}");
        }
    }

    /// The light crate must mean the same by what [`translate`] writes as the one that is used everywhere else.
    #[test]
    fn expressions_mean_the_same_to_the_other_crate() {
        let pieces = [
            "a",
            "b",
            "/",
            ".",
            "*",
            "**",
            "?",
            "[ab]",
            "[!a]",
            "[a-z]",
            "{a,b}",
            "{a,{b,c}}",
            "\\*",
            "é",
            "-",
            "^",
            "$",
        ];
        let paths = [
            "a", "b", "ab", "a/b", "a/b/c", "é", "a.b", "*", "a\n", "", "^", "a-b", "abc/é.b",
        ];
        let mut state = 3_u64;
        let mut next = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            usize::try_from(state >> 33).unwrap() % below
        };
        let mut matched = 0;
        for _ in 0..3_000 {
            let pattern: String = (0..=next(5)).map(|_| pieces[next(pieces.len())]).collect();
            let expression = regex::Regex::new(&translate(&pattern).unwrap()).unwrap();
            for path in paths {
                let is_match = Glob::new(&pattern).matches(path);
                assert_eq!(is_match, expression.is_match(path), "{pattern:?} {path:?}");
                matched += usize::from(is_match);
            }
        }
        assert!(matched > 500, "{matched}");
    }

    #[test]
    fn malformed_patterns_match_everything() {
        for pattern in ["[a", "[a-zA-Z]", "[]", "[c-a]", "[!"] {
            assert!(Glob::new(pattern).matches("any/thing"), "{pattern}");
        }
    }
}
