//! The order of the binary's functions is worth nothing once the functions that it names are gone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::metadata::Metadata;
use super::source::{Sources, Strings};
use super::{Finding, Report};
use crate::link_order::{self, name};

/// The share of our functions in the order, in percent, that the sources must still have.
const FRESH: usize = 80;

/// Checks how many of our functions that the order names stand in the sources.
///
/// This compiles nothing, so it knows nothing of functions that the compiler names, and looks only for the words that
/// their names are made of: `cargo xtask link-order --check` looks at a release build, and takes as long.
pub(super) fn check(metadata: &Metadata, sources: &Sources) -> Report {
    let mut report = Report::default();
    let Some(script) = sources
        .files
        .iter()
        .find(|file| file.path == Path::new(link_order::SCRIPT))
    else {
        return report;
    };
    let words = words(metadata, sources);
    let names = named(&script.text, &words);
    let gone: Vec<&str> = names
        .iter()
        .filter(|(_, is_there)| !**is_there)
        .map(|(name, _)| name.as_str())
        .collect();
    let there = names.len() - gone.len();
    let told = format!(
        "{there} of {} places of ours that it names are there",
        names.len()
    );
    if there * 100 < names.len() * FRESH || names.is_empty() {
        report.findings.push(Finding::new(
            link_order::SCRIPT,
            format!("{told}: too few for `evenkeel template` to start fast"),
            "make it anew with `cargo xtask link-order` (needs valgrind and a release build)",
        ));
    } else if !gone.is_empty() {
        report.notes.push(format!(
            "{}: {told}; gone: {}",
            link_order::SCRIPT,
            gone.join(", ")
        ));
    }
    report
}

/// The words in the code of each of our libraries.
fn words(metadata: &Metadata, sources: &Sources) -> BTreeMap<String, BTreeSet<String>> {
    let mut words: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in metadata.members() {
        let folder = package
            .manifest_path
            .parent()
            .and_then(|path| path.strip_prefix(&metadata.workspace_root).ok());
        let Some(folder) = folder.map(|folder| folder.join("src")) else {
            continue;
        };
        let of_library = words.entry(package.library()).or_default();
        for file in sources.rust().filter(|file| file.path.starts_with(&folder)) {
            let code = file.code(Strings::Blank);
            let found = code.split(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_');
            of_library.extend(found.map(str::to_owned));
        }
    }
    words
}

/// The places in our sources that a script names, and whether they are there.
fn named(script: &str, words: &BTreeMap<String, BTreeSet<String>>) -> BTreeMap<String, bool> {
    let mut named = BTreeMap::new();
    for path in link_order::patterns(script).into_iter().flat_map(name::paths) {
        if let [library, inside @ ..] = path.as_slice()
            && let Some(words) = words.get(*library)
        {
            let is_there = inside.iter().all(|word| words.contains(*word));
            named.insert(path.join("::"), is_there);
        }
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_is_told() {
        let script = ".text._ZN14evenkeel_chart4load17h*E\n.text._ZN14evenkeel_chart4save17h*E\n.text._ZN4serde2de17h*E\n";
        let words = BTreeMap::from([("evenkeel_chart".to_owned(), BTreeSet::from(["load".to_owned()]))]);
        let named: Vec<_> = named(script, &words).into_iter().collect();
        assert_eq!(
            named,
            [
                ("evenkeel_chart::load".to_owned(), true),
                ("evenkeel_chart::save".to_owned(), false)
            ]
        );
    }
}
