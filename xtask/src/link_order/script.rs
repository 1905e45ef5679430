//! The linker script: which functions come first, by patterns that outlive a compiler.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::RENDERS;
use super::map::Map;

/// Bytes of functions that never ran which a pattern may bring with it, for each one that did. A pattern that brings
/// more names its functions exactly: these are found only as long as the compiler and the versions of the dependencies
/// stay the same. An eighth of this took 1 MB less in a render, but 2 MB more once no exact name was left.
const SPARE: u64 = 16_384;

/// What stands at the start of the script.
const HEAD: &str = "/* Functions that `evenkeel template` runs, to lie side by side: first those that every render runs. Made by
   `cargo xtask link-order`. What is not found is left out; all other code follows where it always does. */
SECTIONS
{
  .text.template :
  {
";
/// What stands at its end.
const TAIL: &str = "  }
}
INSERT BEFORE .text;
";

/// Patterns of sections, in the order in which they shall lie.
#[derive(Debug, Default)]
pub(super) struct Script {
    /// What every render ran.
    always: BTreeSet<String>,
    /// What some renders ran.
    sometimes: BTreeSet<String>,
}

/// Sections that one pattern stands for.
#[derive(Default)]
struct Group {
    /// Names of those that ran, and in how many renders at the most.
    ran: BTreeSet<String>,
    times: usize,
    /// Bytes of those that did not.
    idle: u64,
}

impl Script {
    /// Chooses the patterns for functions that ran, each in a number of renders.
    pub(super) fn choose(map: &Map, runs: &BTreeMap<String, usize>) -> Self {
        let mut times = vec![0; map.sections().len()];
        for (symbol, runs) in runs {
            if let Some(times) = map.of_symbol(symbol).and_then(|section| times.get_mut(section)) {
                *times = (*times).max(*runs);
            }
        }
        let mut groups: BTreeMap<String, Group> = BTreeMap::new();
        for (section, times) in map.sections().iter().zip(times) {
            let group = groups.entry(pattern(&section.name)).or_default();
            if times > 0 {
                group.ran.insert(section.name.clone());
                group.times = group.times.max(times);
            } else {
                group.idle += section.size;
            }
        }
        let mut script = Self::default();
        for (pattern, group) in groups {
            if group.ran.is_empty() {
                continue;
            }
            let patterns = if group.idle > SPARE * group.ran.len() as u64 {
                group.ran
            } else {
                BTreeSet::from([pattern])
            };
            if group.times == RENDERS.len() {
                script.always.extend(patterns);
            } else {
                script.sometimes.extend(patterns);
            }
        }
        script
    }

    /// How many patterns there are, and how much they gather.
    pub(super) fn summary(&self, map: &Map) -> String {
        let exact: BTreeSet<&String> = self.always.iter().chain(&self.sometimes).collect();
        let gathered: u64 = map
            .sections()
            .iter()
            .filter(|section| exact.contains(&section.name) || exact.contains(&pattern(&section.name)))
            .map(|section| section.size)
            .sum();
        let all: u64 = map.sections().iter().map(|section| section.size).sum();
        format!(
            "{} patterns for what every render runs, {} for what some do: {} KiB of {} KiB",
            self.always.len(),
            self.sometimes.len(),
            gathered / 1_024,
            all / 1_024
        )
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HEAD)?;
        let groups = [&self.always, &self.sometimes];
        // GNU's linker does not take an empty group.
        for patterns in groups.into_iter().filter(|patterns| !patterns.is_empty()) {
            f.write_str("    *(\n")?;
            for pattern in patterns {
                writeln!(f, "      {pattern}")?;
            }
            f.write_str("    )\n")?;
        }
        f.write_str(TAIL)
    }
}

/// All patterns of a script.
pub(crate) fn patterns(script: &str) -> Vec<&str> {
    let words = script.lines().map(str::trim);
    words
        .filter(|word| word.starts_with(".text.") && !word.ends_with(':'))
        .collect()
}

/// The name of a section without what a compiler or a version puts into it: the hash at the end of a name of the older
/// kind (`17h` and 16 digits), the hash of a crate in one of the newer kind (`Cs`, digits and letters, `_`), the number
/// behind what was split off (`.llvm.`).
fn pattern(name: &str) -> String {
    let (name, is_split) = match name.split_once(".llvm.") {
        Some((name, _)) => (name, true),
        None => (name, false),
    };
    let mut pattern = match name
        .strip_suffix('E')
        .and_then(|name| name.split_at_checked(name.len().checked_sub(19)?))
    {
        Some((start, hash)) if hash.starts_with("17h") => format!("{start}17h*E"),
        _ => without_crate_hashes(name),
    };
    if is_split {
        pattern.push_str(".llvm.*");
    }
    pattern
}

fn without_crate_hashes(name: &str) -> String {
    if !name.contains("._R") {
        return name.to_owned();
    }
    let mut pieces = name.split("Cs");
    let mut pattern = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        pattern.push_str("Cs");
        match piece.split_once('_') {
            // The hash is a number of 64 bits in base 62.
            Some((hash, rest))
                if (8..=11).contains(&hash.len())
                    && hash.bytes().all(|byte| byte.is_ascii_alphanumeric()) =>
            {
                pattern.push_str("*_");
                pattern.push_str(rest);
            }
            _ => pattern.push_str(piece),
        }
    }
    pattern
}

/// Whether a pattern names this section: `*` stands for anything.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut rest) = name.strip_prefix(pieces.next().unwrap_or_default()) else {
        return false;
    };
    let mut pieces = pieces.peekable();
    if pieces.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return rest.ends_with(piece);
        }
        match rest.split_once(piece) {
            Some((_, behind)) => rest = behind,
            None => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = ".text._ZN15evenkeel_goyaml4emit7to_yaml17h0123456789abcdefE";
    const OTHER: &str = ".text._ZN15evenkeel_goyaml4emit7to_yaml17hfedcba9876543210E";
    const NEW: &str =
        ".text._RNvMs4_NtCslNYArtu3iFV_5alloc7raw_vecNtB5_11RawVecInner11finish_growCsjrHSEGnQ3l9_3std";

    #[test]
    fn names_lose_what_a_version_puts_into_them() {
        assert_eq!(pattern(OLD), ".text._ZN15evenkeel_goyaml4emit7to_yaml17h*E");
        assert_eq!(
            pattern(NEW),
            ".text._RNvMs4_NtCs*_5alloc7raw_vecNtB5_11RawVecInner11finish_growCs*_3std"
        );
        assert_eq!(
            pattern(&format!("{OLD}.llvm.12345")),
            format!("{}.llvm.*", pattern(OLD))
        );
        assert_eq!(
            pattern(".text.unlikely.memory_Csopy_x"),
            ".text.unlikely.memory_Csopy_x"
        );
        for name in [OLD, NEW, ".text.plain"] {
            assert!(matches(&pattern(name), name), "{name}");
        }
        assert!(!matches(&pattern(OLD), NEW) && !matches(".text.plain", ".text.plainer"));
    }

    fn map(sections: &[(&str, u64)]) -> Map {
        let mut text = String::from("VMA LMA Size Align Out In Symbol\n");
        for (name, size) in sections {
            let symbol = name.trim_start_matches(".text.");
            text.push_str(&format!(
                "0 0 {size:x} 16 /a.o:({name})\n0 0 {size:x} 1 {symbol}\n"
            ));
        }
        Map::parse(&text).unwrap()
    }

    fn runs(times: usize) -> BTreeMap<String, usize> {
        BTreeMap::from([(OLD.trim_start_matches(".text.").to_owned(), times)])
    }

    #[test]
    fn what_every_render_runs_comes_first() {
        let map = map(&[(OLD, 64), (OTHER, 64), (NEW, 64)]);
        let script = Script::choose(&map, &runs(RENDERS.len()));
        assert_eq!(
            (script.always, script.sometimes),
            (BTreeSet::from([pattern(OLD)]), BTreeSet::new())
        );
        let script = Script::choose(&map, &runs(1));
        assert_eq!(
            (&script.always, &script.sometimes),
            (&BTreeSet::new(), &BTreeSet::from([pattern(OLD)]))
        );
        assert_eq!(patterns(&script.to_string()), [pattern(OLD)]);
    }

    #[test]
    fn a_pattern_that_brings_too_much_becomes_exact() {
        let script = Script::choose(&map(&[(OLD, 64), (OTHER, SPARE + 1)]), &runs(1));
        assert_eq!(script.sometimes, BTreeSet::from([OLD.to_owned()]));
    }
}
