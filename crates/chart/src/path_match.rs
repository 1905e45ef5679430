//! Shell patterns as Go's `filepath.Match` reads them: `*`, `?`, `[a-z]`, `\x`; a `*` never crosses a `/`.

/// The pattern is malformed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("syntax error in pattern")]
pub(crate) struct BadPattern;

/// Does the whole of `name` match `pattern`?
pub(crate) fn path_match(pattern: &str, name: &str) -> Result<bool, BadPattern> {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    check(&pattern)?;
    Ok(matches(&pattern, &name))
}

/// Goes over the whole pattern once, so that a bad one is refused whatever the name is.
fn check(mut pattern: &[char]) -> Result<(), BadPattern> {
    while let Some((first, rest)) = pattern.split_first() {
        pattern = match first {
            '[' => class(rest, None)?.1,
            '\\' => rest.split_first().ok_or(BadPattern)?.1,
            _ => rest,
        };
    }
    Ok(())
}

/// Reads a class after its `[`; says whether `c` is in it and what follows the `]`.
fn class(pattern: &[char], c: Option<char>) -> Result<(bool, &[char]), BadPattern> {
    let (negated, mut rest) = match pattern.split_first() {
        Some(('^', rest)) => (true, rest),
        _ => (false, pattern),
    };
    let (mut found, mut ranges) = (false, 0);
    loop {
        if let Some((']', after)) = rest.split_first()
            && ranges > 0
        {
            return Ok((found != negated, after));
        }
        let (low, after) = class_char(rest)?;
        let (high, after) = match after.split_first() {
            Some(('-', after)) => class_char(after)?,
            _ => (low, after),
        };
        found |= c.is_some_and(|c| (low..=high).contains(&c));
        ranges += 1;
        rest = after;
    }
}

fn class_char(pattern: &[char]) -> Result<(char, &[char]), BadPattern> {
    match pattern.split_first() {
        None | Some(('-' | ']', _)) => Err(BadPattern),
        Some(('\\', rest)) => match rest.split_first() {
            // Something must follow: at least the closing bracket.
            Some((c, rest)) if !rest.is_empty() => Ok((*c, rest)),
            _ => Err(BadPattern),
        },
        Some((_, [])) => Err(BadPattern),
        Some((c, rest)) => Ok((*c, rest)),
    }
}

/// Matches a checked pattern; on a mismatch goes back to the latest star.
fn matches(mut pattern: &[char], mut name: &[char]) -> bool {
    let mut star: Option<(&[char], &[char])> = None;
    loop {
        let stepped = match (pattern.split_first(), name.split_first()) {
            (None, None) => return true,
            (Some(('*', rest)), _) => {
                star = Some((rest, name));
                pattern = rest;
                continue;
            }
            (Some(('?', rest)), Some((c, tail))) if *c != '/' => Some((rest, tail)),
            (Some(('[', rest)), Some((c, tail))) => match class(rest, Some(*c)) {
                Ok((true, rest)) => Some((rest, tail)),
                _ => None,
            },
            (Some(('\\', rest)), Some((c, tail))) => match rest.split_first() {
                Some((p, rest)) if p == c => Some((rest, tail)),
                _ => None,
            },
            (Some((p, rest)), Some((c, tail))) if p == c && !matches!(p, '?') => Some((rest, tail)),
            _ => None,
        };
        if let Some(step) = stepped {
            (pattern, name) = step;
            continue;
        }
        match star {
            Some((after, from)) => match from.split_first() {
                Some((c, tail)) if *c != '/' => {
                    star = Some((after, tail));
                    (pattern, name) = (after, tail);
                }
                _ => return false,
            },
            None => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_go_documents_it() {
        for (pattern, name, expected) in [
            ("abc", "abc", Ok(true)),
            ("*", "abc", Ok(true)),
            ("*c", "abc", Ok(true)),
            ("a*", "a", Ok(true)),
            ("a*", "ab/c", Ok(false)),
            ("a*/b", "abc/b", Ok(true)),
            ("a*/b", "a/c/b", Ok(false)),
            ("a*b*c*d*e*/f", "axbxcxdxe/f", Ok(true)),
            ("a*b*c*d*e*/f", "axbxcxdxexxx/fff", Ok(false)),
            ("a*b?c*x", "abxbbxdbxebxczzx", Ok(true)),
            ("ab[c]", "abc", Ok(true)),
            ("ab[b-d]", "abc", Ok(true)),
            ("ab[^c]", "abc", Ok(false)),
            ("ab[^e-g]", "abc", Ok(true)),
            ("a\\*b", "a*b", Ok(true)),
            ("a\\*b", "ab", Ok(false)),
            ("a?b", "a☺b", Ok(true)),
            ("a?b", "a/b", Ok(false)),
            ("a*b", "a/b", Ok(false)),
            ("[\\]a]", "]", Ok(true)),
            ("[x\\-]", "-", Ok(true)),
            ("[]a]", "]", Err(BadPattern)),
            ("[-]", "-", Err(BadPattern)),
            ("[x-]", "x", Err(BadPattern)),
            ("a[", "a", Err(BadPattern)),
            ("a[", "ab", Err(BadPattern)),
            ("\\", "a", Err(BadPattern)),
            ("*x", "xxx", Ok(true)),
        ] {
            assert_eq!(path_match(pattern, name), expected, "{pattern} {name}");
        }
    }
}
