//! The checked graph. Node and slot numbers are made here and never leave the crate, so indexing with them
//! cannot miss.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;
use std::time::Duration;

use crate::permission::Rights;
use crate::slot::SlotId;
use crate::step::{Declared, Step};
use crate::{Error, Hook, Name, Predicate, Problem};

/// A graph of steps without mistakes.
pub(crate) struct Graph<S> {
    pub(crate) name: Name,
    /// Sorted by (weight, name): a node's number is its rank among ready steps.
    pub(crate) nodes: Vec<Node<S>>,
    /// All nodes in the order in which one worker runs them.
    pub(crate) order: Vec<usize>,
    pub(crate) slots: Vec<SlotInfo>,
    /// In the order in which they were registered.
    pub(crate) hooks: Vec<Arc<dyn Hook<S>>>,
}

pub(crate) struct Node<S> {
    pub(crate) name: Name,
    pub(crate) step: Arc<dyn Step<S>>,
    pub(crate) weight: i32,
    pub(crate) timeout: Duration,
    pub(crate) when: Option<Predicate<S>>,
    pub(crate) live_only: bool,
    pub(crate) condition: Option<&'static str>,
    pub(crate) rights: Arc<Rights>,
    pub(crate) needs: Vec<NodeNeed>,
    pub(crate) provides: Vec<usize>,
    /// Sorted by the node they come from, one per node.
    pub(crate) edges: Vec<Edge>,
    pub(crate) successors: Vec<usize>,
}

pub(crate) struct NodeNeed {
    pub(crate) id: SlotId,
    pub(crate) slot: usize,
    pub(crate) optional: bool,
}

pub(crate) struct SlotInfo {
    pub(crate) id: SlotId,
    pub(crate) provider: Option<usize>,
    pub(crate) given: bool,
}

pub(crate) struct Edge {
    pub(crate) from: usize,
    pub(crate) require_success: bool,
    pub(crate) causes: Vec<Cause>,
}

/// A step before the graph is checked.
type Candidate<S> = (Declared<S>, Arc<dyn Step<S>>);

/// Why an edge exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    After,
    AfterSuccess,
    Before,
    Slot(&'static str),
}

impl<S: Send + Sync + 'static> Graph<S> {
    /// Checks the steps and makes a graph of them, or says everything that is wrong.
    pub(crate) fn build(
        name: String,
        steps: Vec<Arc<dyn Step<S>>>,
        given: &[SlotId],
        hooks: Vec<Arc<dyn Hook<S>>>,
    ) -> Result<Self, Error> {
        let mut problems = Vec::new();
        let pipeline = checked_name(&name, &mut problems);

        let mut steps: Vec<Candidate<S>> = steps
            .into_iter()
            .map(|step| (step.spec().declared, step))
            .collect();
        steps.sort_by(|(a, _), (b, _)| (a.weight, &a.name).cmp(&(b.weight, &b.name)));

        let mut by_name: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (number, (declared, _)) in steps.iter().enumerate() {
            by_name.entry(declared.name.clone()).or_default().push(number);
        }
        let names: Vec<Option<Name>> = steps
            .iter()
            .map(|(declared, _)| checked_name(&declared.name, &mut problems))
            .collect();
        for (name, numbers) in by_name.iter().filter(|(_, numbers)| numbers.len() > 1) {
            problems.push(Problem::DuplicateStep {
                name: name.clone(),
                count: numbers.len(),
            });
        }

        let slots = Slots::collect(&steps, given, &mut problems);
        let edges = edges(&steps, &by_name, &slots, &mut problems);
        let order = order(&steps, &edges, &mut problems);

        let (Some(pipeline), true) = (pipeline, problems.is_empty()) else {
            return Err(Error::Graph {
                pipeline: name,
                problems,
            });
        };

        let mut successors: Vec<Vec<usize>> = vec![Vec::new(); steps.len()];
        for (to, edges) in edges.iter().enumerate() {
            for from in edges.keys() {
                successors[*from].push(to);
            }
        }
        let nodes = steps
            .into_iter()
            .zip(names.into_iter().flatten())
            .zip(edges.into_iter().zip(successors))
            .map(|(((declared, step), name), (edges, successors))| Node {
                name,
                step,
                weight: declared.weight,
                timeout: declared.timeout,
                when: declared.when,
                live_only: declared.live_only,
                condition: declared.condition,
                rights: Arc::new(Rights {
                    who: format!("step {}", declared.name),
                    may: declared.may,
                }),
                needs: declared
                    .needs
                    .iter()
                    .filter_map(|need| {
                        let slot = slots.number(need.id.name)?;
                        Some(NodeNeed {
                            id: need.id,
                            slot,
                            optional: need.optional,
                        })
                    })
                    .collect(),
                provides: declared
                    .provides
                    .iter()
                    .filter_map(|id| slots.number(id.name))
                    .collect(),
                edges: edges.into_values().collect(),
                successors,
            })
            .collect();
        Ok(Self {
            name: pipeline,
            nodes,
            order,
            slots: slots.infos,
            hooks,
        })
    }
}

fn checked_name(given: &str, problems: &mut Vec<Problem>) -> Option<Name> {
    match Name::new(given) {
        Ok(name) => Some(name),
        Err(Error::Name { given, rule }) => {
            problems.push(Problem::Name { given, rule });
            None
        }
        Err(Error::Graph { .. }) => None,
    }
}

/// All slots of a pipeline, numbered by name.
struct Slots {
    infos: Vec<SlotInfo>,
    numbers: BTreeMap<&'static str, usize>,
}

impl Slots {
    fn collect<S>(steps: &[Candidate<S>], given: &[SlotId], problems: &mut Vec<Problem>) -> Self {
        let mut ids: BTreeMap<&'static str, SlotId> = BTreeMap::new();
        let mut providers: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
        let mut numbers_of_providers: BTreeMap<&'static str, usize> = BTreeMap::new();
        let mut mismatched = BTreeSet::new();
        let mut see = |id: SlotId, problems: &mut Vec<Problem>| {
            let first = *ids.entry(id.name).or_insert(id);
            if first.type_id != id.type_id && mismatched.insert((id.name, id.type_name)) {
                problems.push(Problem::SlotType {
                    slot: id.name,
                    first: first.type_name,
                    second: id.type_name,
                });
            }
        };
        for id in given {
            see(*id, problems);
            providers
                .entry(id.name)
                .or_default()
                .push("the caller".to_owned());
        }
        for (number, (declared, _)) in steps.iter().enumerate() {
            for id in &declared.provides {
                see(*id, problems);
                providers
                    .entry(id.name)
                    .or_default()
                    .push(format!("step {:?}", declared.name));
                numbers_of_providers.entry(id.name).or_insert(number);
            }
        }
        for (declared, _) in steps {
            for need in &declared.needs {
                see(need.id, problems);
                if !need.optional && !providers.contains_key(need.id.name) {
                    problems.push(Problem::NoProvider {
                        step: declared.name.clone(),
                        slot: need.id.name,
                    });
                }
            }
        }
        for (slot, providers) in providers.iter().filter(|(_, providers)| providers.len() > 1) {
            problems.push(Problem::TwoProviders {
                slot,
                providers: providers.join(", "),
            });
        }
        let infos: Vec<SlotInfo> = ids
            .into_values()
            .map(|id| SlotInfo {
                id,
                provider: numbers_of_providers.get(id.name).copied(),
                given: given.iter().any(|given| given.name == id.name),
            })
            .collect();
        let numbers = infos
            .iter()
            .enumerate()
            .map(|(number, info)| (info.id.name, number))
            .collect();
        Self { infos, numbers }
    }

    fn number(&self, name: &str) -> Option<usize> {
        self.numbers.get(name).copied()
    }

    fn provider(&self, name: &str) -> Option<usize> {
        self.number(name).and_then(|number| self.infos[number].provider)
    }
}

/// For each step, the edges into it by the step they come from.
type Edges = Vec<BTreeMap<usize, Edge>>;

fn edges<S>(
    steps: &[Candidate<S>],
    by_name: &BTreeMap<String, Vec<usize>>,
    slots: &Slots,
    problems: &mut Vec<Problem>,
) -> Edges {
    let mut edges: Edges = steps.iter().map(|_| BTreeMap::new()).collect();
    let known = || by_name.keys().cloned().collect::<Vec<_>>().join(", ");
    let mut connect = |from: usize, to: usize, cause: Cause| {
        let edge = edges[to].entry(from).or_insert(Edge {
            from,
            require_success: false,
            causes: Vec::new(),
        });
        edge.require_success |= cause == Cause::AfterSuccess;
        if !edge.causes.contains(&cause) {
            edge.causes.push(cause);
        }
    };
    for (number, (declared, _)) in steps.iter().enumerate() {
        let mut unknown = |relation, name: &str| {
            problems.push(Problem::UnknownStep {
                step: declared.name.clone(),
                relation,
                unknown: name.to_owned(),
                known: known(),
            });
        };
        for after in &declared.after {
            let cause = if after.require_success {
                Cause::AfterSuccess
            } else {
                Cause::After
            };
            match by_name.get(&after.step).and_then(|numbers| numbers.first()) {
                Some(from) => connect(*from, number, cause),
                None => unknown("after", &after.step),
            }
        }
        for before in &declared.before {
            match by_name.get(before).and_then(|numbers| numbers.first()) {
                Some(to) => connect(number, *to, Cause::Before),
                None => unknown("before", before),
            }
        }
        for need in &declared.needs {
            if let Some(from) = slots.provider(need.id.name) {
                connect(from, number, Cause::Slot(need.id.name));
            }
        }
    }
    edges
}

/// Topological order, ties by number. What is left over waits for itself.
fn order<S>(steps: &[Candidate<S>], edges: &Edges, problems: &mut Vec<Problem>) -> Vec<usize> {
    let mut successors: Vec<Vec<usize>> = vec![Vec::new(); steps.len()];
    let mut waiting_for: Vec<usize> = edges.iter().map(BTreeMap::len).collect();
    for (to, edges) in edges.iter().enumerate() {
        for from in edges.keys() {
            successors[*from].push(to);
        }
    }
    let mut order = Vec::with_capacity(steps.len());
    let mut left: BTreeSet<usize> = (0..steps.len()).collect();
    let mut ready: BinaryHeap<Reverse<usize>> = left
        .iter()
        .filter(|number| waiting_for[**number] == 0)
        .map(|number| Reverse(*number))
        .collect();
    loop {
        while let Some(Reverse(number)) = ready.pop() {
            if !left.remove(&number) {
                continue;
            }
            order.push(number);
            for successor in &successors[number] {
                let count = &mut waiting_for[*successor];
                // Already 0 for a step that was taken out of a cycle.
                if *count > 0 {
                    *count -= 1;
                    if *count == 0 {
                        ready.push(Reverse(*successor));
                    }
                }
            }
        }
        let Some(cycle) = cycle(steps, edges, &left) else {
            return order;
        };
        problems.push(Problem::Cycle {
            path: spell(steps, edges, &cycle),
        });
        // Taken out of the way, so that a second, independent cycle is reported too.
        for number in cycle {
            waiting_for[number] = 0;
            ready.push(Reverse(number));
        }
    }
}

/// One cycle among the steps that are `left`, as numbers in running order, beginning with the smallest name.
fn cycle<S>(steps: &[Candidate<S>], edges: &Edges, left: &BTreeSet<usize>) -> Option<Vec<usize>> {
    let mut path = Vec::new();
    let mut current = *left.first()?;
    // Every step left has a predecessor that is left, so walking back must come round.
    let start = loop {
        if let Some(position) = path.iter().position(|number| *number == current) {
            break position;
        }
        path.push(current);
        current = *edges[current].keys().find(|from| left.contains(from))?;
    };
    let mut cycle = path.split_off(start);
    cycle.reverse();
    let smallest = (0..cycle.len()).min_by_key(|index| &steps[cycle[*index]].0.name)?;
    cycle.rotate_left(smallest);
    Some(cycle)
}

fn spell<S>(steps: &[Candidate<S>], edges: &Edges, cycle: &[usize]) -> String {
    let name = |number: usize| steps[number].0.name.as_str();
    let Some(first) = cycle.first() else {
        return String::new();
    };
    let mut text = name(*first).to_owned();
    for (from, to) in cycle.iter().zip(cycle.iter().cycle().skip(1)) {
        let cause = edges[*to].get(from).and_then(|edge| edge.causes.first());
        let why = match cause {
            Some(Cause::Slot(slot)) => format!("needs slot {slot:?}"),
            Some(Cause::Before) => format!("{} runs before it", name(*from)),
            Some(Cause::After | Cause::AfterSuccess) | None => format!("runs after {}", name(*from)),
        };
        text.push_str(&format!(" → {} ({why})", name(*to)));
    }
    text
}
