//! What must hold for every graph.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use evenkeel_steps::{Ending, Failure, Outcome, Pipeline, Predicate, Skip, Spec, Step, step};
use proptest::prelude::*;

use crate::support::{Diary, after, endings, options, run, secs};

/// What a random step does.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Deed {
    Done,
    Changed,
    Wait(u64),
    Limited(u64),
    Invalid,
    Panic,
    Unselected,
}

#[derive(Debug, Clone)]
struct Node {
    deed: Deed,
    weight: i32,
    /// Numbers of nodes above.
    above: BTreeSet<usize>,
    /// Virtual time the step takes.
    takes: u64,
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        6 => Just(Deed::Done),
        3 => Just(Deed::Changed),
        1 => (100u64..1000).prop_map(Deed::Wait),
        1 => (100u64..1000).prop_map(Deed::Limited),
        1 => Just(Deed::Invalid),
        1 => Just(Deed::Panic),
        2 => Just(Deed::Unselected),
    ]
}

fn graph() -> impl Strategy<Value = Vec<Node>> {
    (1usize..14).prop_flat_map(|count| {
        (0..count)
            .map(|number| {
                let above = proptest::collection::vec(any::<bool>(), number);
                (deed(), -2i32..3, above, 0u64..4).prop_map(|(deed, weight, above, takes)| Node {
                    deed,
                    weight,
                    above: above
                        .iter()
                        .enumerate()
                        .filter(|(_, edge)| **edge)
                        .map(|(n, _)| n)
                        .collect(),
                    takes,
                })
            })
            .collect::<Vec<_>>()
    })
}

/// Names do not follow the numbers, so that ties are not in topological order by accident.
fn name(number: usize) -> String {
    format!("s{:02}", (number * 37 + 11) % 97)
}

fn pipeline(nodes: &[Node], registered: &[usize], above_by_before: bool) -> Pipeline<()> {
    let steps = registered.iter().map(|number| {
        let node = nodes[*number].clone();
        let mut spec: Spec<()> = step(name(*number)).weight(node.weight);
        if above_by_before {
            for (below, other) in nodes.iter().enumerate() {
                if other.above.contains(number) {
                    spec = spec.before(name(below));
                }
            }
        } else {
            for above in &node.above {
                spec = spec.after(name(*above));
            }
        }
        if node.deed == Deed::Unselected {
            spec = spec.when(Predicate::new("wanted", |(): &()| false));
        }
        let step = spec.run(move |cx, ()| async move {
            if node.takes > 0 {
                cx.sleep(secs(node.takes)).await;
            }
            match node.deed {
                Deed::Done | Deed::Unselected => Ok(Outcome::done()),
                Deed::Changed => Ok(Outcome::changed("changed")),
                Deed::Wait(at) => Ok(Outcome::wait(after(secs(at)), "waits")),
                Deed::Limited(at) => Err(Failure::rate_limited(after(secs(at)), "limited")),
                Deed::Invalid => Err(Failure::invalid("invalid")),
                Deed::Panic => panic!("panics"),
            }
        });
        Box::new(step) as Box<dyn Step<()>>
    });
    Pipeline::builder("random").steps(steps).build().unwrap()
}

fn ancestors(nodes: &[Node]) -> Vec<BTreeSet<usize>> {
    let mut all: Vec<BTreeSet<usize>> = Vec::new();
    for node in nodes {
        let mut mine = node.above.clone();
        for above in &node.above {
            mine.extend(all[*above].iter().copied());
        }
        all.push(mine);
    }
    all
}

fn blocks(deed: Deed) -> bool {
    matches!(
        deed,
        Deed::Wait(_) | Deed::Limited(_) | Deed::Invalid | Deed::Panic
    )
}

fn on_paused_clock<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(future)
}

proptest! {
    #[test]
    fn order_blocking_and_requeue(nodes in graph(), parallelism in 1usize..5) {
        let registered: Vec<usize> = (0..nodes.len()).collect();
        let diary = Arc::new(Diary::default());
        let report = on_paused_clock(async {
            run(&pipeline(&nodes, &registered, false), (), options().observer(diary.clone()).parallelism(parallelism)).await
        });
        let ancestors = ancestors(&nodes);
        let numbers: BTreeMap<String, usize> = registered.iter().map(|n| (name(*n), *n)).collect();
        prop_assert_eq!(report.steps.len(), nodes.len(), "every step has an entry");

        // A step starts only after all above it have ended; nothing starts twice.
        let mut ended = BTreeSet::new();
        let mut started = BTreeSet::new();
        for line in diary.lines() {
            let mut words = line.split(' ');
            match (words.next().unwrap(), words.next().and_then(|word| numbers.get(word))) {
                ("start", Some(number)) => {
                    prop_assert!(started.insert(*number));
                    prop_assert!(nodes[*number].above.is_subset(&ended), "{line}: {:?}", diary.lines());
                }
                ("end" | "skip", Some(number)) => {
                    prop_assert!(ended.insert(*number));
                }
                _ => {}
            }
        }

        // One worker takes the smallest (weight, name) of what is ready.
        if parallelism == 1 {
            let mut resolved = BTreeSet::new();
            let mut expected = Vec::new();
            while resolved.len() < nodes.len() {
                let next = (0..nodes.len())
                    .filter(|n| !resolved.contains(n) && nodes[*n].above.is_subset(&resolved))
                    .min_by_key(|n| (nodes[*n].weight, name(*n)))
                    .unwrap();
                resolved.insert(next);
                if started.contains(&next) {
                    expected.push(name(next));
                }
            }
            prop_assert_eq!(diary.started(), expected);
        }

        // A failed or waiting step blocks its descendants that are selected, and nothing else.
        let mut earliest: Option<u64> = None;
        for (number, node) in nodes.iter().enumerate() {
            let entry = report.step(&name(number)).unwrap();
            let culprits: BTreeSet<String> = ancestors[number]
                .iter()
                .filter(|above| blocks(nodes[**above].deed) && started.contains(*above))
                .map(|above| name(*above))
                .collect();
            match &entry.ending {
                Ending::Skipped(Skip::NotSelected { .. }) => prop_assert_eq!(node.deed, Deed::Unselected),
                Ending::Skipped(Skip::Blocked { by, .. }) => prop_assert!(culprits.contains(by.as_str())),
                Ending::Skipped(other) => prop_assert!(false, "{other:?}"),
                _ => {
                    prop_assert!(culprits.is_empty(), "{} ran below {culprits:?}", entry.name);
                    prop_assert!(started.contains(&number));
                }
            }
            if started.contains(&number)
                && let Deed::Wait(at) | Deed::Limited(at) = node.deed
            {
                earliest = Some(earliest.map_or(at, |earlier| earlier.min(at)));
            }
        }

        // No wish is lost. A panic wants a retry too, 300 s after it happened.
        let wishes: Vec<_> = report.steps.iter().filter_map(|entry| entry.retry_at).collect();
        prop_assert_eq!(report.requeue().map(|requeue| requeue.at), wishes.iter().min().copied());
        if let Some(earliest) = earliest {
            prop_assert!(report.requeue().unwrap().at <= after(secs(earliest)));
        }
        let panicked = report.failures().any(|(_, failure)| failure.message().contains("panics"));
        prop_assert_eq!(earliest.is_some() || panicked, report.requeue().is_some());
    }

    #[test]
    fn neither_registration_nor_parallelism_nor_the_side_of_an_edge_changes_the_result(
        (nodes, shuffled) in graph().prop_flat_map(|nodes| {
            let numbers: Vec<usize> = (0..nodes.len()).collect();
            (Just(nodes), Just(numbers).prop_shuffle())
        }),
        parallelism in 1usize..5,
        before in any::<bool>(),
    ) {
        let registered: Vec<usize> = (0..nodes.len()).collect();
        let (one, other) = on_paused_clock(async {
            (
                run(&pipeline(&nodes, &registered, false), (), options()).await,
                run(&pipeline(&nodes, &shuffled, before), (), options().parallelism(parallelism)).await,
            )
        });
        prop_assert_eq!(endings(&one), endings(&other));
        prop_assert_eq!(one.conclusion(), other.conclusion());
        prop_assert!(other.duration <= one.duration + Duration::ZERO);
    }

    #[test]
    fn a_cut_short_pass_accounts_for_every_step(nodes in graph(), budget in 1u64..12, parallelism in 1usize..4) {
        let registered: Vec<usize> = (0..nodes.len()).collect();
        let report = on_paused_clock(async {
            let budget = evenkeel_steps::Budget { work: secs(budget), publish: secs(1) };
            run(&pipeline(&nodes, &registered, false), (), options().budget(budget).parallelism(parallelism)).await
        });
        prop_assert_eq!(report.steps.len(), nodes.len());
        prop_assert!(report.duration <= secs(budget));
        let cut = report.steps.iter().any(|entry| matches!(
            entry.ending,
            Ending::Interrupted(_) | Ending::Skipped(Skip::Interrupted(_))
        ));
        if cut {
            prop_assert!(report.requeue().is_some(), "{report}");
        }
    }
}
