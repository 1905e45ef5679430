//! The order in which go-yaml writes the keys of a mapping: `sorter.go` of v2.4.4 and v3.0.5.

use std::cmp::Ordering;

use crate::resolve::Dialect;
use crate::unicode::{is_digit, is_letter};

/// Key order of yaml.v2 (`toYaml`): runs of digits by their number, letters after digits and punctuation, else by
/// code point. `"1" "1.5" "2" "10"`, `a1 a01 a2 a10`, `A B Z9 Z10 a a-b a.b a_b`.
pub fn natural_order(a: &str, b: &str) -> Ordering {
    compare(a, b, Dialect::V2)
}

/// The number of a run of digits (wrapping as Go's `int64` does) and how many characters it has.
fn number<'s>(chars: impl Iterator<Item = char> + 's, first: i64) -> (i64, usize) {
    let mut value = first;
    let mut length = 0;
    for c in chars.take_while(|c| is_digit(*c)) {
        value = value
            .wrapping_mul(10)
            .wrapping_add(i64::from(u32::from(c)) - i64::from(u32::from('0')));
        length += 1;
    }
    (value, length)
}

pub(crate) fn compare(a: &str, b: &str, dialect: Dialect) -> Ordering {
    // Where the keys part. Most do in the first few bytes.
    let mut common = a.bytes().zip(b.bytes()).take_while(|(x, y)| x == y).count();
    while !a.is_char_boundary(common) || !b.is_char_boundary(common) {
        common -= 1;
    }
    let (same, rest_a, rest_b) = match (a.split_at_checked(common), b.get(common..)) {
        (Some((same, rest_a)), Some(rest_b)) => (same, rest_a, rest_b),
        _ => return a.cmp(b),
    };
    let (Some(ca), Some(cb)) = (rest_a.chars().next(), rest_b.chars().next()) else {
        // One is the beginning of the other.
        return rest_a.len().cmp(&rest_b.len());
    };
    match (is_letter(ca), is_letter(cb)) {
        (true, true) => return ca.cmp(&cb),
        (false, false) => {}
        (a_is_letter, _) => {
            // v3 puts letters first where digits came before.
            let after_digits = dialect == Dialect::V3 && same.chars().next_back().is_some_and(is_digit);
            return if a_is_letter == after_digits {
                Ordering::Less
            } else {
                Ordering::Greater
            };
        }
    }
    let mut first = 0;
    if (ca == '0' || cb == '0') && same.chars().rev().take_while(|c| is_digit(*c)).any(|c| c != '0') {
        // Zeros inside a number count.
        first = 1;
    }
    let (number_a, length_a) = number(rest_a.chars(), first);
    let (number_b, length_b) = number(rest_b.chars(), first);
    number_a
        .cmp(&number_b)
        .then(length_a.cmp(&length_b))
        .then(ca.cmp(&cb))
}

/// Sorts by an order that need not be a total one, which the standard library's sort may refuse by a panic. Go's is not:
/// `29` < `2z` < `9z` < `29`. Go's own output is random for such keys (it sorts from a random order); here equal maps give
/// equal text. Merges from the bottom up; entries of nearly all maps are few.
pub(crate) fn sort<T: Copy>(items: &mut Vec<T>, order: impl Fn(&T, &T) -> Ordering) {
    let mut width = 1;
    let mut merged = Vec::with_capacity(items.len());
    while width < items.len() {
        merged.clear();
        for pair in items.chunks(width * 2) {
            let (mut left, mut right) = pair.split_at_checked(width).unwrap_or((pair, &[]));
            while let (Some((l, left_rest)), Some((r, right_rest))) =
                (left.split_first(), right.split_first())
            {
                if order(r, l) == Ordering::Less {
                    merged.push(*r);
                    right = right_rest;
                } else {
                    merged.push(*l);
                    left = left_rest;
                }
            }
            merged.extend_from_slice(left);
            merged.extend_from_slice(right);
        }
        std::mem::swap(items, &mut merged);
        width *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(keys: &[&'static str], dialect: Dialect) -> Vec<&'static str> {
        let mut keys = keys.to_vec();
        sort(&mut keys, |a, b| compare(a, b, dialect));
        keys
    }

    #[test]
    fn numbers_sort_by_value() {
        assert_eq!(
            sorted(&["10", "2", "1.5", "1"], Dialect::V2),
            ["1", "1.5", "2", "10"]
        );
        assert_eq!(
            sorted(&["a10", "a2", "a01", "a1"], Dialect::V2),
            ["a1", "a01", "a2", "a10"]
        );
        assert_eq!(sorted(&["x100", "x20", "x3"], Dialect::V2), ["x3", "x20", "x100"]);
    }

    #[test]
    fn letters_come_last_and_v3_differs_after_digits() {
        assert_eq!(
            sorted(&["ab", "a_b", "a.b", "a-b", "a"], Dialect::V2),
            ["a", "a-b", "a.b", "a_b", "ab"]
        );
        assert_eq!(sorted(&["1a", "1-"], Dialect::V2), ["1-", "1a"]);
        assert_eq!(sorted(&["1a", "1-"], Dialect::V3), ["1a", "1-"]);
    }

    #[test]
    fn long_runs_of_digits_never_panic() {
        let mut keys: Vec<String> = (0..200u64)
            .map(|i| format!("{}{}", "9".repeat(17), i * 7_919))
            .collect();
        keys.reverse();
        let mut refs: Vec<&String> = keys.iter().collect();
        sort(&mut refs, |a, b| compare(a, b, Dialect::V2));
        assert_eq!(refs.len(), 200);
    }
}
