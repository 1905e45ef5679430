//! Which step is next, and which will never run. Knows nothing of time or futures.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::graph::Graph;
use crate::guarded::panic_message;
use crate::pass::{Restriction, RestrictionKind};
use crate::report::{Ending, Interruption, Skip};
use crate::{Failure, Mode};

/// The state of one pass over a graph.
pub(crate) struct Schedule<'g, S> {
    graph: &'g Graph<S>,
    /// What was decided about a step before anything ran: a reason not to run it.
    unselected: Vec<Option<Ending>>,
    endings: Vec<Option<Ending>>,
    /// How many predecessors have not ended yet.
    waiting_for: Vec<usize>,
    /// The failed or waiting step that keeps this one from running.
    culprit: Vec<Option<usize>>,
    ready: BinaryHeap<Reverse<usize>>,
    halt: Option<Halt>,
}

/// Why no further step starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Halt {
    /// A step ended the pass.
    Stopped { by: usize, reason: String },
    /// It was cut short from outside.
    Interrupted(Interruption),
}

/// What to do next.
#[derive(Debug)]
pub(crate) enum Next {
    /// Start this step.
    Start(usize),
    /// This step does not run; it was not resolved yet.
    Ended(usize, Ending),
    /// Nothing is ready: wait for a running step, or all is over.
    Nothing,
}

impl<'g, S: Send + Sync + 'static> Schedule<'g, S> {
    /// Selects the steps.
    pub(crate) fn new(graph: &'g Graph<S>, state: &S, restrictions: &[Restriction]) -> Self {
        let unselected = graph.nodes.iter().map(|node| {
            let excluded = restrictions.iter().find(|restriction| match &restriction.kind {
                RestrictionKind::Only(names) => !names.iter().any(|name| node.name == **name),
                RestrictionKind::Except(names) => names.iter().any(|name| node.name == **name),
                RestrictionKind::PlanOnly | RestrictionKind::Forbid(_) | RestrictionKind::Approved(_) => {
                    false
                }
            });
            if let Some(restriction) = excluded {
                return Some(Ending::Skipped(Skip::Restricted {
                    reason: restriction.reason.clone(),
                }));
            }
            let predicate = node.when.as_ref()?;
            match catch_unwind(AssertUnwindSafe(|| predicate.refusal(state))) {
                Ok(None) => None,
                Ok(Some(because)) => Some(Ending::Skipped(Skip::NotSelected {
                    predicate: predicate.to_string(),
                    because,
                })),
                Err(panic) => Some(Ending::Failed(Failure::bug(format!(
                    "the predicate {predicate} panicked: {}",
                    panic_message(&*panic)
                )))),
            }
        });
        let waiting_for: Vec<usize> = graph.nodes.iter().map(|node| node.edges.len()).collect();
        let ready = waiting_for
            .iter()
            .enumerate()
            .filter(|(_, count)| **count == 0)
            .map(|(number, _)| Reverse(number))
            .collect();
        Self {
            graph,
            unselected: unselected.collect(),
            endings: graph.nodes.iter().map(|_| None).collect(),
            waiting_for,
            culprit: vec![None; graph.nodes.len()],
            ready,
            halt: None,
        }
    }

    /// No further step starts. The first reason stays.
    pub(crate) fn halt(&mut self, halt: Halt) {
        self.halt.get_or_insert(halt);
    }

    /// Takes the next ready step. `filled` says whether a slot has a value, `interruption` whether the pass is
    /// cut short by now.
    pub(crate) fn next(
        &mut self,
        mode: Mode,
        filled: impl Fn(usize) -> bool,
        interruption: impl FnOnce() -> Option<Interruption>,
    ) -> Next {
        let Some(Reverse(number)) = self.ready.pop() else {
            return Next::Nothing;
        };
        if let Some(ending) = self.unselected[number].take() {
            return Next::Ended(number, ending);
        }
        if let Some(skip) = self.skip(number, mode, filled, interruption) {
            return Next::Ended(number, Ending::Skipped(skip));
        }
        Next::Start(number)
    }

    fn skip(
        &mut self,
        number: usize,
        mode: Mode,
        filled: impl Fn(usize) -> bool,
        interruption: impl FnOnce() -> Option<Interruption>,
    ) -> Option<Skip> {
        let graph = self.graph;
        let node = &graph.nodes[number];
        if let Some(culprit) = self.culprit_above(number) {
            return Some(Skip::Blocked {
                by: graph.nodes[culprit].name.clone(),
                because: self.ending_text(culprit),
            });
        }
        if self.halt.is_none()
            && let Some(interruption) = interruption()
        {
            self.halt = Some(Halt::Interrupted(interruption));
        }
        match &self.halt {
            Some(Halt::Stopped { by, reason }) => {
                return Some(Skip::PassStopped {
                    by: graph.nodes[*by].name.clone(),
                    reason: reason.clone(),
                });
            }
            Some(Halt::Interrupted(interruption)) => return Some(Skip::Interrupted(*interruption)),
            None => {}
        }
        for edge in node.edges.iter().filter(|edge| edge.require_success) {
            if !self.endings[edge.from].as_ref().is_some_and(Ending::succeeded) {
                return Some(Skip::NeedsSuccess {
                    of: graph.nodes[edge.from].name.clone(),
                    because: self.ending_text(edge.from),
                });
            }
        }
        let empty = node
            .needs
            .iter()
            .find(|need| !need.optional && !filled(need.slot));
        if let Some(need) = empty {
            let because = match graph.slots[need.slot].provider {
                Some(provider) => match &self.endings[provider] {
                    Some(Ending::Planned) => {
                        format!("{} provides it only when it acts", graph.nodes[provider].name)
                    }
                    _ => format!(
                        "{} was {}",
                        graph.nodes[provider].name,
                        self.ending_text(provider)
                    ),
                },
                None => "the caller did not give it".to_owned(),
            };
            return Some(Skip::EmptySlot {
                slot: need.id.name,
                because,
            });
        }
        (node.live_only && mode == Mode::DryRun).then_some(Skip::DryRun)
    }

    /// Records how a step ended and makes the steps ready that waited for it.
    pub(crate) fn resolve(&mut self, number: usize, ending: Ending) {
        self.culprit[number] = if ending.blocks() {
            Some(number)
        } else {
            self.culprit_above(number)
        };
        if let Ending::Stopped { reason } = &ending {
            self.halt(Halt::Stopped {
                by: number,
                reason: reason.clone(),
            });
        }
        self.endings[number] = Some(ending);
        for successor in &self.graph.nodes[number].successors {
            self.waiting_for[*successor] -= 1;
            if self.waiting_for[*successor] == 0 {
                self.ready.push(Reverse(*successor));
            }
        }
    }

    fn culprit_above(&self, number: usize) -> Option<usize> {
        self.graph.nodes[number]
            .edges
            .iter()
            .find_map(|edge| self.culprit[edge.from])
    }

    fn ending_text(&self, number: usize) -> String {
        self.endings[number]
            .as_ref()
            .map_or_else(String::new, Ending::to_string)
    }
}
