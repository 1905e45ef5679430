//! Makes the smallest case that still shows a difference.

use anyhow::Result;

use super::case::{Answer, Case};
use super::choices::{Choices, simpler};
use super::helm::Helm;
use super::{Difference, engine, generate};
use crate::fuzz_oracle::case::Kind;

/// Candidates that are tried in one run of Helm.
const BATCH: usize = 400;

/// Runs of Helm for one difference.
const ROUNDS: usize = 40;

/// Shrinks. What comes back differs in the same way: an error that should be an output stays one.
pub(crate) fn shrink(helm: &Helm, kind: Kind, mut smallest: Difference) -> Result<Difference> {
    for _ in 0..ROUNDS {
        let mut candidates: Vec<(Vec<u32>, Case)> = Vec::new();
        for recording in simpler(&smallest.recording) {
            let mut choices = Choices::replay(recording);
            let case = generate(kind, &mut choices);
            if engine::answer(&case).is_limit() {
                continue;
            }
            let known = candidates.iter().any(|(_, other)| *other == case);
            if case != smallest.case && !known && size(&case) <= size(&smallest.case) {
                candidates.push((choices.into_made(), case));
            }
            if candidates.len() == BATCH {
                break;
            }
        }
        let cases: Vec<Case> = candidates.iter().map(|(_, case)| case.clone()).collect();
        let best = helm
            .answers(&cases)?
            .into_iter()
            .zip(candidates)
            .filter_map(|(theirs, (recording, case))| {
                let ours = engine::answer(&case);
                let same_kind = classes(&ours, &theirs) == classes(&smallest.ours, &smallest.theirs);
                (!ours.agrees(&theirs) && same_kind).then_some(Difference {
                    index: smallest.index,
                    recording,
                    case,
                    ours,
                    theirs,
                })
            })
            .min_by_key(|difference| (size(&difference.case), difference.recording.len()));
        match best {
            Some(best) if weight(&best) < weight(&smallest) => smallest = best,
            _ => break,
        }
    }
    Ok(smallest)
}

fn size(case: &Case) -> usize {
    case.text().len()
}

fn weight(difference: &Difference) -> (usize, usize, u64) {
    let sum = difference.recording.iter().map(|choice| u64::from(*choice)).sum();
    (size(&difference.case), difference.recording.len(), sum)
}

fn classes(ours: &Answer, theirs: &Answer) -> (&'static str, &'static str) {
    (ours.class(), theirs.class())
}
