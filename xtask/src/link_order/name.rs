//! What a mangled name says of where a function stands in the sources.

/// What stands for signs, and words that are no names, in the older kind of mangled names.
const SIGNS: [&str; 25] = [
    "", "_", "BP", "C", "GT", "LP", "LT", "RF", "RP", "SP", "as", "const", "dyn", "for", "impl", "mut",
    "u20", "u27", "u2b", "u3b", "u3d", "u5b", "u5d", "u7b", "u7d",
];

/// The paths that a name of the older kind (`_ZN`, then words with their lengths) holds, each split into its words:
/// `_ZN4core3ptr42drop_in_place$LT$evenkeel_chart..Chart$GT$17h…E` has `core ptr drop_in_place` and
/// `evenkeel_chart Chart`. None of another kind of name.
pub(crate) fn paths(name: &str) -> Vec<Vec<&str>> {
    let mut paths = Vec::new();
    let Some((_, mut rest)) = name.split_once("_ZN") else {
        return paths;
    };
    let mut path = Vec::new();
    while let Some((word, behind)) = word(rest) {
        rest = behind;
        if is_hash(word) {
            break;
        }
        let mut parts = word.split('$').peekable();
        while let Some(part) = parts.next() {
            if SIGNS.contains(&part) {
                paths.extend(Some(std::mem::take(&mut path)).filter(|path| !path.is_empty()));
            } else {
                path.extend(part.split("..").filter(|word| !word.is_empty()));
                // What follows a sign begins anew.
                if parts.peek().is_some() {
                    paths.push(std::mem::take(&mut path));
                }
            }
        }
    }
    paths.extend(Some(path).filter(|path| !path.is_empty()));
    paths
}

/// The word at the start, which its length stands before, and what follows.
fn word(text: &str) -> Option<(&str, &str)> {
    let digits = text.find(|sign: char| !sign.is_ascii_digit())?;
    let (length, rest) = text.split_at(digits);
    // Of a pattern, the hash is cut short.
    let length = length.parse::<usize>().ok()?.min(rest.len());
    rest.split_at_checked(length)
}

/// The last word of each name: `h` and 16 digits, or `h*` in a pattern.
fn is_hash(word: &str) -> bool {
    word.strip_prefix('h').is_some_and(|hash| {
        hash.starts_with('*') || (hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_hold_paths() {
        assert_eq!(
            paths(".text._ZN15evenkeel_goyaml4emit7to_yaml17h*E"),
            [["evenkeel_goyaml", "emit", "to_yaml"]]
        );
        assert_eq!(
            paths("_ZN4core3ptr45drop_in_place$LT$evenkeel_chart..set..Set$GT$17h0123456789abcdefE"),
            [["core", "ptr", "drop_in_place"], ["evenkeel_chart", "set", "Set"]]
        );
        assert_eq!(
            paths(".text._ZN58_$LT$evenkeel_chart..Chart$u20$as$u20$core..fmt..Debug$GT$3fmt17h*E"),
            [
                vec!["evenkeel_chart", "Chart"],
                vec!["core", "fmt", "Debug"],
                vec!["fmt"]
            ]
        );
        assert_eq!(
            paths("_ZN14evenkeel_chart4load28_$u7b$$u7b$closure$u7d$$u7d$17h*E"),
            [vec!["evenkeel_chart", "load"], vec!["closure"]]
        );
        assert!(paths(".text.memcpy").is_empty() && paths(".text._RNvCs*_3std4main").is_empty());
    }
}
