//! What docs/steps.md shows is what the example says, which is built with the tests.

const PAGE: &str = include_str!("../../../../docs/steps.md");
const EXAMPLE: [&str; 2] = [
    include_str!("../../examples/mailbox/main.rs"),
    include_str!("../../examples/mailbox/quota.rs"),
];

/// The lines of a text without comments and empty ones.
fn lines(text: &str) -> Vec<&str> {
    text.lines()
        .map(|line| line.split("//").next().unwrap_or_default().trim())
        .filter(|line| !line.is_empty())
        .collect()
}

/// Whether these lines are there, in that order. Closing brackets between them may stand for what a page leaves out.
fn follows(file: &str, block: &[&str]) -> bool {
    let mut file = lines(file).into_iter();
    block.iter().all(|line| file.any(|other| other == *line))
}

#[test]
fn every_block_of_the_page_is_in_the_example() {
    let blocks: Vec<Vec<&str>> = PAGE
        .split("```rust\n")
        .skip(1)
        .map(|rest| lines(rest.split("```").next().unwrap_or_default()))
        .collect();
    assert_eq!(blocks.len(), 2, "a step and a kind");
    for block in &blocks {
        assert!(block.len() > 5, "{block:#?}");
        assert!(
            EXAMPLE.iter().any(|file| follows(file, block)),
            "not in the example: {block:#?}"
        );
    }
}
