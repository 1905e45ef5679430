//! Issue 6: motherships and workers under `kill -9` at random moments.

use super::*;

/// The shortest lease that is of use: a second for one write, half a second for a heartbeat.
const SHORT_LEASE: SignedDuration = SignedDuration::from_secs(2);
const QUICK_PODS: Duration = Duration::from_millis(300);
const MOTHERSHIPS: usize = 3;
const WORKERS: usize = 5;
/// How many processes are killed unless [`HOW_MANY`] says otherwise.
const KILLS: usize = 50;
/// Set to 1000 it is the run that is reported before a release.
const HOW_MANY: &str = "EVENKEEL_TEST_KILLS";
/// Between two kills: no moment of an operation, of a start or of a take-over is spared.
const PAUSE_MS: std::ops::Range<u64> = 20..600;

/// The arguments of the process that has this place.
fn role(place: usize) -> [&'static str; 2] {
    ["--role", if place < MOTHERSHIPS { "all" } else { "worker" }]
}

/// Whether every cluster is as its newest version wants it, and says so.
fn is_settled(several: &Several, round: u64) -> bool {
    let clusters = several.json(&["cluster", "list"]);
    clusters["items"].as_array().unwrap().iter().all(|cluster| {
        // The first version is made by the first round, which is round 0.
        cluster["state"] == "ready" && cluster["observedVersion"].as_u64() == Some(round + 1)
    })
}

#[test]
fn nothing_is_lost_or_doubled_however_many_are_killed() {
    let kills = std::env::var(HOW_MANY).map_or(KILLS, |number| number.parse().unwrap());
    let mut several = Several::with(SHORT_LEASE, QUICK_PODS);
    for place in 0..MOTHERSHIPS + WORKERS {
        several.start(&role(place));
    }
    let (mut killed, mut rounds) = (0, 0);
    while killed < kills {
        several.apply(rounds, &[]);
        loop {
            std::thread::sleep(Duration::from_millis(rand::random_range(PAUSE_MS)));
            let place = rand::random_range(0..several.processes.len());
            several.replace(place, &role(place));
            killed += 1;
            if is_settled(&several, rounds.into()) {
                break;
            }
        }
        rounds += 1;
    }
    several.until_ready(rounds - 1);
    nothing_is_lost_or_doubled(&several, rounds);
    println!("{killed} kills in {rounds} rounds");
    several.end();
}
