//! Schedules of motherships, workers and faults in virtual time (issue 6, "Faults and speed"; K29). Millions of them:
//! `cargo xtask simulate`.

use std::sync::atomic::{AtomicU64, Ordering};

use evenkeel_fleet::simulation::{Outcome, run};

/// How many schedules are run here, where little is optimized; `cargo xtask test` runs 100,000 besides.
const SCHEDULES: u64 = 500;
/// Two, so that the other tests go on meanwhile.
const THREADS: u64 = 2;

#[test]
fn no_schedule_breaks_a_promise() {
    let next = AtomicU64::new(1);
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed > SCHEDULES {
                return;
            }
            let outcome = run(seed, false).unwrap();
            if let Some(fault) = &outcome.fault {
                next.store(SCHEDULES, Ordering::Relaxed);
                panic!("seed {seed}: {fault}\n  again: {}", outcome.replay());
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(work);
        }
    });
}

#[test]
fn the_same_seed_gives_the_same_schedule() {
    for seed in 1..=40 {
        let first = run(seed, true).unwrap();
        assert!(!first.trace.is_empty() && first.steps as usize == first.trace.len());
        // On another thread, with other addresses and hashes, and without words.
        let (again, silent) =
            std::thread::spawn(move || (run(seed, true).unwrap(), run(seed, false).unwrap()))
                .join()
                .unwrap();
        let differ = first
            .trace
            .iter()
            .zip(&again.trace)
            .position(|(one, other)| one != other);
        assert_eq!(differ, None, "seed {seed}");
        assert_eq!(first, again);
        let without_words = Outcome {
            trace: Vec::new(),
            ..first
        };
        assert_eq!(silent, without_words);
    }
}

#[test]
fn other_seeds_give_other_schedules() {
    let mut digests: Vec<u64> = (1..=100).map(|seed| run(seed, false).unwrap().digest).collect();
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), 100);
}
