//! A constraint as it is written, taken apart: `>= 1.2, < 2.x-0`.
//!
//! By hand, since most charts have a constraint, and the expressions that Masterminds/semver uses would take longer to
//! build than a chart to render. They are quoted where they are followed. None of them can be matched in two ways, so
//! nothing here goes back.

/// One comparison: `ops\s*cv`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Term<'t> {
    pub(super) operator: &'t str,
    pub(super) version: VersionText<'t>,
}

/// The version of a comparison, whose parts may be missing or `x`:
/// `v?([0-9|xX*]+)(\.[0-9|xX*]+)?(\.[0-9|xX*]+)?(-([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?(\+…)?`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct VersionText<'t> {
    pub(super) whole: &'t str,
    pub(super) major: &'t str,
    /// With the dot before it; empty where it is missing, as all that follow.
    pub(super) minor: &'t str,
    pub(super) patch: &'t str,
    /// With the dash before it.
    pub(super) pre: &'t str,
}

/// `1.2 - 1.4`: two comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range<'t> {
    pub(super) whole: &'t str,
    pub(super) from: &'t str,
    pub(super) to: &'t str,
}

/// The comparisons of one alternative; none where it has another form:
/// `^(\s*ops\s*cv\s*)((?:\s+|,\s*)ops\s*cv\s*)*$`.
pub(super) fn terms(text: &str) -> Option<Vec<Term<'_>>> {
    let mut reader = Reader { text, at: 0 };
    reader.skip(is_space);
    let mut terms = vec![reader.term()?];
    loop {
        let spaces = reader.skip(is_space);
        if reader.at == text.len() {
            return Some(terms);
        }
        if reader.take(",") {
            reader.skip(is_space);
        } else if spaces == 0 {
            return None;
        }
        terms.push(reader.term()?);
    }
}

/// All ranges, from left to right: `\s*cv\s+-\s+cv\s*`.
pub(super) fn ranges(text: &str) -> Vec<Range<'_>> {
    let mut ranges = Vec::new();
    // Most constraints have none, which this sees soonest.
    if !text.contains('-') {
        return ranges;
    }
    let mut start = 0;
    while start < text.len() {
        let mut reader = Reader { text, at: start };
        match reader.range() {
            Some(range) => {
                ranges.push(range);
                start = reader.at;
            }
            None => start += 1,
        }
    }
    ranges
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    /// Passes over all such bytes that come next, and tells how many there were.
    fn skip(&mut self, belongs: fn(u8) -> bool) -> usize {
        let count = self.rest().iter().take_while(|byte| belongs(**byte)).count();
        self.at += count;
        count
    }

    fn take(&mut self, token: &str) -> bool {
        let is_next = self.rest().starts_with(token.as_bytes());
        if is_next {
            self.at += token.len();
        }
        is_next
    }

    /// What was read since `start`. All that is read is ASCII, so this always begins and ends between characters.
    fn since(&self, start: usize) -> &'t str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    fn range(&mut self) -> Option<Range<'t>> {
        let start = self.at;
        self.skip(is_space);
        let from = self.version()?.whole;
        if self.skip(is_space) == 0 || !self.take("-") || self.skip(is_space) == 0 {
            return None;
        }
        let to = self.version()?.whole;
        self.skip(is_space);
        Some(Range {
            whole: self.since(start),
            from,
            to,
        })
    }

    fn term(&mut self) -> Option<Term<'t>> {
        let start = self.at;
        // The longer ones first; no text goes on after the shorter one as after the longer.
        let _ = ["!=", ">=", "=>", "<=", "=<", "~>", "=", ">", "<", "~", "^"]
            .into_iter()
            .any(|operator| self.take(operator));
        let operator = self.since(start);
        self.skip(is_space);
        Some(Term {
            operator,
            version: self.version()?,
        })
    }

    fn version(&mut self) -> Option<VersionText<'t>> {
        let start = self.at;
        self.take("v");
        let major_start = self.at;
        if self.skip(is_number) == 0 {
            return None;
        }
        let major = self.since(major_start);
        let (minor, patch) = (self.number_after_dot(), self.number_after_dot());
        let pre = self.identifiers_after("-");
        self.identifiers_after("+");
        Some(VersionText {
            whole: self.since(start),
            major,
            minor,
            patch,
            pre,
        })
    }

    /// `(\.[0-9|xX*]+)?`
    fn number_after_dot(&mut self) -> &'t str {
        let start = self.at;
        if self.take(".") && self.skip(is_number) == 0 {
            self.at = start;
        }
        self.since(start)
    }

    /// `(-([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?` and the same after a plus sign.
    fn identifiers_after(&mut self, sign: &str) -> &'t str {
        let start = self.at;
        let mut end = start;
        let mut follows = self.take(sign);
        while follows && self.skip(is_identifier) > 0 {
            end = self.at;
            follows = self.take(".");
        }
        self.at = end;
        self.since(start)
    }
}

/// Go's `\s`, which is ASCII only.
fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\x0c' | b'\r' | b' ')
}

/// `[0-9|xX*]`
fn is_number(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'|' | b'x' | b'X' | b'*')
}

/// `[0-9A-Za-z\-]`
fn is_identifier(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

#[cfg(test)]
mod tests {
    use regex::{Captures, Regex};

    use super::*;

    const OPERATORS: &str = r"=||!=|>|<|>=|=>|<=|=<|~|~>|\^";
    const VERSION: &str = r"v?([0-9|xX*]+)(\.[0-9|xX*]+)?(\.[0-9|xX*]+)?(-([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?(\+([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?";
    const SPACE: &str = r"[\t\n\f\r ]";

    fn pattern(source: &str) -> Regex {
        let source = source
            .replace("{s}", SPACE)
            .replace("{ops}", OPERATORS)
            .replace("{cv}", VERSION);
        Regex::new(&source).unwrap()
    }

    fn parts<'t>(term: &Term<'t>) -> [&'t str; 6] {
        let version = &term.version;
        let VersionText {
            whole,
            major,
            minor,
            patch,
            pre,
        } = version;
        [term.operator, whole, major, minor, patch, pre]
    }

    /// Texts of the characters that matter, each of which the expressions of Masterminds/semver are asked about.
    #[test]
    fn texts_are_taken_apart_as_by_the_expressions_of_masterminds() {
        let valid = pattern("^({s}*({ops}){s}*({cv}){s}*)((?:{s}+|,{s}*)({ops}){s}*({cv}){s}*)*$");
        let find = pattern("({ops}){s}*({cv})");
        let range = pattern("{s}*({cv}){s}+-{s}+({cv}){s}*");
        let pieces = [
            "1", "0", "x", "X", "*", "|", "v", ".", "-", "+", " ", "\t", ",", ">", "<", "=", "!", "~", "^",
            "a", "é", "1.2", " - ", "1.2.3", "-rc.1", ">=",
        ];
        let mut state = 7_u64;
        let mut next = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap() % below
        };
        let (mut accepted, mut with_ranges) = (0, 0);
        for _ in 0..60_000 {
            let text: String = (0..=next(9)).map(|_| pieces[next(pieces.len())]).collect();
            let by_hand = terms(&text);
            assert_eq!(by_hand.is_some(), valid.is_match(&text), "{text:?}");
            let by_hand: Option<Vec<[&str; 6]>> = by_hand.map(|terms| terms.iter().map(parts).collect());
            let expected = by_hand.is_some().then(|| {
                let part = |found: &Captures<'_>, index| found.get(index).map_or(0..0, |part| part.range());
                find.captures_iter(&text)
                    .map(|found| [1, 2, 3, 4, 5, 6].map(|index| &text[part(&found, index)]))
                    .collect()
            });
            assert_eq!(by_hand, expected, "{text:?}");
            accepted += usize::from(by_hand.is_some());

            let expected: Vec<[&str; 3]> = range
                .captures_iter(&text)
                .map(|found| [0, 1, 11].map(|index| found.get(index).unwrap().as_str()))
                .collect();
            let by_hand: Vec<[&str; 3]> = ranges(&text)
                .iter()
                .map(|range| [range.whole, range.from, range.to])
                .collect();
            assert_eq!(by_hand, expected, "{text:?}");
            with_ranges += usize::from(!expected.is_empty());
        }
        assert!(accepted > 2_000 && with_ranges > 200, "{accepted} {with_ranges}");
    }
}
