//! What can be wrong with a pipeline before it ever runs.

use std::fmt;

/// Why a name or a pipeline was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text is no [`Name`](crate::Name).
    #[error("{given:?} is not a valid name: {rule}")]
    Name {
        /// The refused text.
        given: String,
        /// The rule it breaks.
        rule: &'static str,
    },
    /// The graph of steps has mistakes; all of them are listed, not only the first.
    #[error("pipeline {pipeline:?} cannot be built:{}", list(.problems))]
    Graph {
        /// The pipeline's name as given.
        pipeline: String,
        /// Every mistake found, in a stable order. Never empty.
        problems: Vec<Problem>,
    },
}

/// One mistake in a graph of steps.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// A step's or the pipeline's name breaks the rules of [`Name`](crate::Name).
    #[error("{given:?} is not a valid name: {rule}")]
    Name {
        /// The refused text.
        given: String,
        /// The rule it breaks.
        rule: &'static str,
    },
    /// Two steps have one name.
    #[error("{count} steps are named {name:?}")]
    DuplicateStep {
        /// The name.
        name: String,
        /// How many steps have it.
        count: usize,
    },
    /// `after` or `before` names a step that does not exist.
    #[error("step {step:?} is to run {relation} {unknown:?}, but there is no such step (there are: {known})")]
    UnknownStep {
        /// The step with the reference.
        step: String,
        /// `after` or `before`.
        relation: &'static str,
        /// The name nobody has.
        unknown: String,
        /// The names there are.
        known: String,
    },
    /// The steps wait for each other.
    #[error("the steps wait for each other: {path}")]
    Cycle {
        /// The way round, each hop with its cause.
        path: String,
    },
    /// Two steps (or a step and the caller) fill one slot.
    #[error("slot {slot:?} is provided by more than one: {providers}")]
    TwoProviders {
        /// The slot.
        slot: &'static str,
        /// Who provides it.
        providers: String,
    },
    /// A step needs a slot that nobody fills.
    #[error(
        "step {step:?} needs slot {slot:?}, but no step provides it and it is not declared as given from outside"
    )]
    NoProvider {
        /// The step in need.
        step: String,
        /// The slot.
        slot: &'static str,
    },
    /// One slot name is used with two types.
    #[error("slot {slot:?} is used with two types: {first} and {second}")]
    SlotType {
        /// The slot.
        slot: &'static str,
        /// One type.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
}

fn list(problems: &[Problem]) -> impl fmt::Display {
    let mut text = String::new();
    for problem in problems {
        text.push_str("\n  - ");
        text.push_str(&problem.to_string());
    }
    text
}
