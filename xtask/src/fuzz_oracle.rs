//! `cargo xtask fuzz-oracle`: random templates, documents and `--set` arguments, rendered by Helm and by Evenkeel.
//!
//! ```text
//!  Choices ──▶ generator ──▶ Case ──▶ chart per case ──▶ one `lint` of all charts ──┐
//!                              │                                                      ├─▶ the same? else shrink
//!                              └────▶ evenkeel-chart ────────────────────────────────┘
//! ```
//!
//! A seed and a number name a case for ever, until its generator changes.

mod case;
mod choices;
mod documents;
mod engine;
mod expressions;
mod helm;
mod set;
mod shrink;

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::{Result, bail};

use case::{Answer, Case, Kind, shown};
use choices::Choices;
use helm::Helm;

/// Cases for one process of Helm.
const BATCH: u64 = 500;

/// How often Helm is asked again about a difference.
const REPEATS: usize = 8;

/// Seconds between two lines about the progress.
const PROGRESS: u64 = 10;

/// Arguments of the command.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// What to generate.
    #[arg(long, value_enum, default_value_t = Kind::Expressions)]
    kind: Kind,

    /// Where the random cases start from. The same seed gives the same cases.
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// How many cases.
    #[arg(long, default_value_t = 100_000)]
    count: u64,

    /// The number of the first case.
    #[arg(long, default_value_t = 0)]
    from: u64,

    /// Differences after which to stop.
    #[arg(long, default_value_t = 1)]
    differences: usize,

    /// Show differences as they are found, which may be large.
    #[arg(long)]
    no_shrink: bool,
}

/// A case that the engines answer differently.
pub(crate) struct Difference {
    index: u64,
    recording: Vec<u32>,
    case: Case,
    ours: Answer,
    theirs: Answer,
}

/// Cases by what became of them.
#[derive(Default)]
struct Tally {
    outputs: u64,
    errors: u64,
    unstable: u64,
}

/// Makes a case.
fn generate(kind: Kind, choices: &mut Choices) -> Case {
    match kind {
        Kind::Expressions => expressions::generate(choices),
        Kind::Documents => documents::generate(choices),
        Kind::Set => set::generate(choices),
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let helm = Helm::find()?;
    let started = Instant::now();
    let mut next = PROGRESS;
    let mut tally = Tally::default();
    let mut found: BTreeMap<Vec<u8>, Difference> = BTreeMap::new();
    let end = arguments.from.saturating_add(arguments.count);
    let mut from = arguments.from;
    while from < end && found.len() < arguments.differences {
        let to = from.saturating_add(BATCH).min(end);
        for difference in compare(&helm, arguments.kind, arguments.seed, from..to, &mut tally)? {
            if found.len() >= arguments.differences {
                break;
            }
            let difference = if arguments.no_shrink {
                difference
            } else {
                shrink::shrink(&helm, arguments.kind, difference)?
            };
            found.entry(difference.case.text()).or_insert_with(|| {
                report(arguments, &difference);
                difference
            });
        }
        from = to;
        if started.elapsed().as_secs() >= next {
            println!(
                "{} of {} {}, {} s",
                from - arguments.from,
                arguments.count,
                arguments.kind,
                next
            );
            next = started.elapsed().as_secs() + PROGRESS;
        }
    }
    println!(
        "{} {} with seed {} in {} s: {} outputs and {} errors compared, {} differ each time",
        from - arguments.from,
        arguments.kind,
        arguments.seed,
        started.elapsed().as_secs(),
        tally.outputs,
        tally.errors,
        tally.unstable,
    );
    if !found.is_empty() {
        bail!("{} differences", found.len());
    }
    Ok(())
}

/// Compares the cases of these numbers.
fn compare(
    helm: &Helm,
    kind: Kind,
    seed: u64,
    numbers: std::ops::Range<u64>,
    tally: &mut Tally,
) -> Result<Vec<Difference>> {
    let made: Vec<(u64, Vec<u32>, Case)> = numbers
        .map(|index| {
            let mut choices = Choices::random(seed, index);
            let case = generate(kind, &mut choices);
            (index, choices.into_made(), case)
        })
        .collect();
    let ours: Vec<Answer> = made.iter().map(|(_, _, case)| engine::answer(case)).collect();
    // What has no end here would take all of the machine's memory there.
    let (asked, cases): (Vec<usize>, Vec<Case>) = made
        .iter()
        .zip(&ours)
        .enumerate()
        .filter(|(_, (_, ours))| !ours.is_limit())
        .map(|(place, ((_, _, case), _))| (place, case.clone()))
        .unzip();
    let mut theirs = vec![Answer::Unstable; ours.len()];
    for (place, answer) in asked.into_iter().zip(helm.answers(&cases)?) {
        if let Some(kept) = theirs.get_mut(place) {
            *kept = answer;
        }
    }
    let mut differences = Vec::new();
    for ((theirs, ours), (index, recording, case)) in theirs.into_iter().zip(ours).zip(made) {
        match (&ours, &theirs) {
            (Answer::Unstable, _) | (_, Answer::Unstable) => tally.unstable += 1,
            (_, Answer::Output(_)) => tally.outputs += 1,
            (_, Answer::Error(_)) => tally.errors += 1,
        }
        if !ours.agrees(&theirs) {
            differences.push(Difference {
                index,
                recording,
                case,
                ours,
                theirs,
            });
        }
    }
    // What Helm itself answers in another way each time, a digest of an address or keys in any order, is none.
    let mut steady = Vec::new();
    for difference in differences {
        let again = helm.answers(&vec![difference.case.clone(); REPEATS])?;
        if again.iter().all(|answer| *answer == difference.theirs) {
            steady.push(difference);
        } else {
            tally.unstable += 1;
        }
    }
    Ok(steady)
}

fn report(arguments: &Arguments, difference: &Difference) {
    println!(
        "\n{}: {}\n  Helm:     {}\n  Evenkeel: {}\n  again:    cargo xtask fuzz-oracle --kind {} --seed {} --from {} --count 1",
        difference.case.name(),
        shown(&difference.case.text()),
        difference.theirs,
        difference.ours,
        arguments.kind,
        arguments.seed,
        difference.index,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A few seconds of what the command does for minutes.
    fn check(kind: Kind, count: u64) {
        let helm = Helm::find().unwrap();
        let mut tally = Tally::default();
        let differences = compare(&helm, kind, 20_261_201, 0..count, &mut tally).unwrap();
        let told: Vec<String> = differences
            .iter()
            .map(|one| {
                format!(
                    "{}\n  Helm: {}\n  ours: {}",
                    shown(&one.case.text()),
                    one.theirs,
                    one.ours
                )
            })
            .collect();
        assert!(
            told.is_empty(),
            "{} differences:\n{}",
            told.len(),
            told.join("\n")
        );
        assert!(
            tally.outputs > count / 4 && tally.errors > count / 50,
            "the cases are not worth it"
        );
        assert!(
            tally.unstable < count / 10,
            "{} of {count} cannot be compared",
            tally.unstable
        );
    }

    #[test]
    fn templates_are_rendered_as_by_helm() {
        check(Kind::Expressions, 2000);
    }

    #[test]
    fn documents_are_read_as_by_helm() {
        check(Kind::Documents, 1000);
    }

    #[test]
    fn arguments_set_values_as_in_helm() {
        check(Kind::Set, 100);
    }
}
