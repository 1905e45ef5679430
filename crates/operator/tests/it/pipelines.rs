//! The pipelines themselves: what every kind has (L24), and their shape.

use evenkeel_operator::pipelines;

/// L24: it is registered once, and no kind can be without it. What touches anything comes after.
#[test]
fn every_kind_claims_its_object_before_anything_else_and_lets_go_of_it_last() {
    let pipelines = pipelines().unwrap();
    assert_eq!(pipelines.len(), 6);
    for kind in pipelines.chunks(2) {
        let [towards, away] = [&kind[0].text, &kind[1].text];
        let first = towards.lines().find(|line| line.starts_with("  1. "));
        assert_eq!(first, Some("  1. claim"), "{towards}");
        let last = away.lines().rfind(|line| line.get(3..5) == Some(". "));
        assert!(last.is_some_and(|line| line.ends_with(". release")), "{away}");
        let unordered = towards
            .split("\n")
            .filter(|line| line.get(3..5) == Some(". "))
            .count();
        let ordered = towards
            .lines()
            .filter(|line| line.trim_start().starts_with("after "))
            .count();
        assert_eq!(
            unordered,
            ordered + 1,
            "all but the claim come after something: {towards}"
        );
    }
}
