//! The map that LLD writes: which section of which object file it put where, and the symbols in it.

use std::collections::HashMap;

use anyhow::{Result, bail};

/// How the first line of such a map ends.
const HEADER: [&str; 3] = ["Out", "In", "Symbol"];

/// Code that the linker moves as a whole: in Rust, one function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Section {
    /// Its name in the object file.
    pub(super) name: String,
    /// In bytes.
    pub(super) size: u64,
}

/// All sections of code.
#[derive(Debug, Default)]
pub(super) struct Map {
    sections: Vec<Section>,
    of_symbol: HashMap<String, usize>,
}

impl Map {
    /// Reads what `-Wl,-Map` wrote.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let mut lines = text.lines();
        let header: Vec<&str> = lines.next().unwrap_or_default().split_whitespace().collect();
        if !header.ends_with(&HEADER) {
            bail!("the map of the linker is not one of LLD, which Rust links with on x86_64 Linux");
        }
        let mut map = Self::default();
        let mut is_code = false;
        for line in lines {
            let Some((size, entry)) = entry(line) else {
                continue;
            };
            if let Some((_, section)) = entry.rsplit_once(":(") {
                let name = section.trim_end_matches(')');
                is_code = name.starts_with(".text.");
                if is_code {
                    map.sections.push(Section {
                        name: name.to_owned(),
                        size,
                    });
                }
            } else if is_code {
                map.of_symbol.insert(entry.to_owned(), map.sections.len() - 1);
            }
        }
        Ok(map)
    }

    /// All of them.
    pub(super) fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// The section that a symbol lies in, by its place among all.
    pub(super) fn of_symbol(&self, symbol: &str) -> Option<usize> {
        self.of_symbol.get(symbol).copied()
    }
}

/// A size, and what has it. Before both are the address, twice, and behind the size the alignment.
fn entry(line: &str) -> Option<(u64, &str)> {
    let mut rest = line.trim_start();
    let mut size = 0;
    for column in 0..4 {
        let (word, behind) = rest.split_once(' ')?;
        if column == 2 {
            size = u64::from_str_radix(word, 16).ok()?;
        }
        rest = behind.trim_start();
    }
    Some((size, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_and_their_symbols_are_read() {
        let text = "             VMA              LMA     Size Align Out     In      Symbol\n\
                    10a0 10a0 80 16 .text\n\
                    10a0 10a0 40 16         /x/a b.o:(.text._ZN1a1bE)\n\
                    10a0 10a0 3f 1                 _ZN1a1bE\n\
                    10e0 10e0 10 16         /x/c.o:(.text.memory_copy)\n\
                    10e0 10e0 10 1                 memory_copy\n\
                    20e0 20e0 10 16         /x/c.o:(.rodata.numbers)\n\
                    20e0 20e0 10 1                 numbers\n";
        let map = Map::parse(text).unwrap();
        let sections: Vec<_> = map
            .sections()
            .iter()
            .map(|section| (section.name.as_str(), section.size))
            .collect();
        assert_eq!(sections, [(".text._ZN1a1bE", 0x40), (".text.memory_copy", 0x10)]);
        assert_eq!(map.of_symbol("memory_copy"), Some(1));
        assert_eq!(map.of_symbol("numbers"), None);
    }

    #[test]
    fn the_map_of_another_linker_is_refused() {
        assert!(Map::parse("Archive member included to satisfy reference by file (symbol)\n").is_err());
    }
}
