//! Compares an output with several of which no two may be alike: charts print passwords, keys and times, and Go walks
//! some maps in another order each time.

/// With fewer letters in all of theirs, a kind of letter may be missing by chance.
const TELLING: usize = 64;

/// Whether `ours` could be one more of `theirs`: equal wherever they are all equal, and of the same make where they are
/// not. False when they are all alike, for then nothing is to be masked.
pub(super) fn fits(theirs: &[&[u8]], ours: &[u8]) -> bool {
    let Some((first, rest)) = theirs.split_first() else {
        return false;
    };
    if rest.iter().all(|other| other == first) {
        return false;
    }
    let split = |text: &[u8]| -> Vec<Vec<u8>> { lines(text).map(<[u8]>::to_vec).collect() };
    let plain: Vec<_> = theirs.iter().map(|text| split(text)).collect();
    if lines_fit(&plain, &split(ours)) {
        return true;
    }
    // Keys of another length take another number of lines.
    let folded: Vec<_> = plain.iter().map(|lines| without_bodies(lines)).collect();
    lines_fit(&folded, &without_bodies(&split(ours)))
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n')
}

fn lines_fit(theirs: &[Vec<Vec<u8>>], ours: &[Vec<u8>]) -> bool {
    if theirs.iter().any(|lines| lines.len() != ours.len()) {
        return false;
    }
    let mut moved = Vec::new();
    for (index, line) in ours.iter().enumerate() {
        let same: Vec<&[u8]> = theirs
            .iter()
            .filter_map(|lines| lines.get(index).map(Vec::as_slice))
            .collect();
        if !line_fits(&same, line) {
            if same.iter().all(|other| Some(other) == same.first()) {
                return false;
            }
            moved.push(index);
        }
    }
    // What is left must be the same lines in another order.
    let sorted = |lines: &[Vec<u8>]| {
        let mut there: Vec<Vec<u8>> = moved
            .iter()
            .filter_map(|index| lines.get(*index).cloned())
            .collect();
        there.sort();
        there
    };
    moved.is_empty() || theirs.iter().any(|lines| sorted(lines) == sorted(ours))
}

fn line_fits(theirs: &[&[u8]], ours: &[u8]) -> bool {
    if theirs.iter().all(|line| *line == ours) {
        return true;
    }
    let ours = words(ours);
    let theirs: Vec<Vec<&[u8]>> = theirs.iter().map(|line| words(line)).collect();
    if theirs.iter().any(|words| words.len() != ours.len()) {
        return false;
    }
    ours.iter().enumerate().all(|(index, word)| {
        let same: Vec<&[u8]> = theirs
            .iter()
            .filter_map(|words| words.get(index).copied())
            .collect();
        word_fits(&same, word)
    })
}

/// A line as words and what is between them.
fn words(line: &[u8]) -> Vec<&[u8]> {
    line.chunk_by(|a, b| is_between(*a) == is_between(*b)).collect()
}

fn is_between(byte: u8) -> bool {
    byte.is_ascii_whitespace() || b",;(){}[]<>|".contains(&byte)
}

fn word_fits(theirs: &[&[u8]], ours: &[u8]) -> bool {
    if theirs.iter().all(|word| *word == ours) {
        return true;
    }
    if theirs.iter().all(|word| Some(word) == theirs.first()) {
        return false;
    }
    let lengths = || theirs.iter().map(|word| word.len());
    let (least, most) = (lengths().min().unwrap_or(0), lengths().max().unwrap_or(0));
    let slack = (most / 8).max(4);
    if ours.len() + slack < least || ours.len() > most + slack {
        return false;
    }
    theirs.iter().map(|word| word.len()).sum::<usize>() < TELLING
        || makes(ours) & !theirs.iter().fold(0, |all, word| all | makes(word)) == 0
}

/// The kinds of letters in a word, as bits.
fn makes(word: &[u8]) -> u8 {
    word.iter().fold(0, |kinds, byte| {
        kinds
            | match byte {
                b'0'..=b'9' => 1,
                b'a'..=b'f' => 2,
                b'g'..=b'z' => 4,
                b'A'..=b'Z' | b'+' | b'/' | b'=' => 8,
                _ => 16,
            }
    })
}

/// The lines without what is between `-----BEGIN` and `-----END`.
fn without_bodies(lines: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let has = |line: &[u8], text: &[u8]| line.windows(text.len()).any(|window| window == text);
    let mut inside = false;
    let mut kept = Vec::new();
    for line in lines {
        if inside && has(line, b"-----END ") {
            inside = false;
        }
        if !inside {
            kept.push(line.clone());
        }
        if has(line, b"-----BEGIN ") && !has(line, b"-----END ") {
            inside = true;
        }
    }
    kept
}

#[cfg(test)]
mod tests {

    fn fits(theirs: &[&str], ours: &str) -> bool {
        let theirs: Vec<&[u8]> = theirs.iter().map(|text| text.as_bytes()).collect();
        super::fits(&theirs, ours.as_bytes())
    }

    #[test]
    fn only_what_differs_between_them_is_masked() {
        let theirs = [
            "a: 1\npassword: \"dGhpcyBpcw==\"\n",
            "a: 1\npassword: \"aXMgdGhpcw==\"\n",
        ];
        assert!(fits(&theirs, "a: 1\npassword: \"b3RoZXJzIQ==\"\n"));
        assert!(!fits(&theirs, "a: 2\npassword: \"b3RoZXJzIQ==\"\n"));
        assert!(!fits(&theirs, "a: 1\npasswort: \"b3RoZXJzIQ==\"\n"));
        assert!(!fits(&theirs, "a: 1\npassword: \"\"\n"));
        assert!(!fits(&theirs, "a: 1\npassword: \"b3RoZXJzIQ==\"\nb: 1\n"));
        assert!(!fits(&["a: 1\n", "a: 1\n"], "a: 2\n"));
    }

    #[test]
    fn a_random_word_keeps_its_make() {
        let theirs = [
            "sum: 0123456789abcdef0123456789abcdef",
            "sum: fedcba9876543210fedcba9876543210",
        ];
        assert!(fits(&theirs, "sum: 00112233aabbccdd00112233aabbccdd"));
        assert!(!fits(&theirs, "sum: 00112233AABBCCDD00112233AABBCCDD"));
        assert!(!fits(&theirs, "sum: no-such-value"));
    }

    #[test]
    fn keys_may_take_more_lines() {
        let key = |lines: &[&str]| {
            format!(
                "k: |\n  -----BEGIN KEY-----\n  {}\n  -----END KEY-----\nz: 1\n",
                lines.join("\n  ")
            )
        };
        let theirs = [key(&["aaaa", "bb"]), key(&["aaab"])];
        let theirs = [theirs[0].as_str(), theirs[1].as_str()];
        assert!(fits(&theirs, &key(&["cccc", "dddd"])));
        assert!(!fits(&theirs, &key(&["cccc"]).replace("z: 1", "z: 2")));
    }

    #[test]
    fn lines_in_a_random_order_may_have_any() {
        let theirs = ["x: 1\na: 1\nbb: 22 2\nc: 3\n", "x: 1\nc: 3\na: 1\nbb: 22 2\n"];
        assert!(fits(&theirs, "x: 1\nbb: 22 2\nc: 3\na: 1\n"));
        assert!(!fits(&theirs, "x: 1\nbb: 22 2\nc: 3\nd: 1 1\n"));
        assert!(!fits(&theirs, "a: 1\nbb: 22 2\nc: 3\nx: 1\n"));
    }
}
