//! Judges what both engines gave.

use super::engine::{Outcome, Pair};
use super::fault::Fault;
use super::mask;

/// Runs after which Helm is believed to print the same each time.
const BELIEVED: usize = 4;

/// How two outcomes compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    /// The same bytes.
    Equal,
    /// The same bytes but for what differs between Helm and Helm.
    Masked,
    /// Both refuse, with the same text.
    SameError,
    /// Both refuse, with cause and place the same.
    OtherWording,
    /// Anything else.
    Different,
}

impl Class {
    /// All, in the order of the report.
    pub(super) const ALL: [Self; 5] = [
        Self::Equal,
        Self::Masked,
        Self::SameError,
        Self::OtherWording,
        Self::Different,
    ];

    /// Its name in the report.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Masked => "masked-equal",
            Self::SameError => "same error",
            Self::OtherWording => "other wording",
            Self::Different => "different",
        }
    }
}

/// What became of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// How it compares.
    pub(super) class: Class,
    /// Whether Helm itself gave more than one outcome.
    random: bool,
}

impl Verdict {
    /// Whether the difference may lie in what Helm does differently each time, after that many further runs.
    pub(super) fn may_be_chance(&self, runs: usize) -> bool {
        self.random || runs < BELIEVED
    }
}

/// Compares our outcome with those of Helm.
pub(super) fn compare(pair: &Pair) -> Verdict {
    let alike = |a: &Outcome, b: &Outcome| {
        a.success == b.success
            && if a.success {
                a.output == b.output
            } else {
                Fault::read(&a.errors).text() == Fault::read(&b.errors).text()
            }
    };
    let random = pair
        .theirs
        .first()
        .is_some_and(|first| pair.theirs.iter().any(|other| !alike(first, other)));
    Verdict {
        class: class(pair),
        random,
    }
}

fn class(pair: &Pair) -> Class {
    let ours = &pair.ours;
    let theirs: Vec<&Outcome> = pair
        .theirs
        .iter()
        .filter(|outcome| outcome.success == ours.success)
        .collect();
    if ours.success {
        let outputs: Vec<&[u8]> = theirs.iter().map(|outcome| outcome.output.as_slice()).collect();
        if outputs.contains(&ours.output.as_slice()) {
            Class::Equal
        } else if mask::fits(&outputs, &ours.output) {
            Class::Masked
        } else {
            Class::Different
        }
    } else {
        let fault = Fault::read(&ours.errors);
        let faults: Vec<Fault> = theirs
            .iter()
            .map(|outcome| Fault::read(&outcome.errors))
            .collect();
        let texts: Vec<&[u8]> = faults.iter().map(|other| other.text().as_bytes()).collect();
        let is_same = texts.contains(&fault.text().as_bytes())
            || mask::fits(&texts, fault.text().as_bytes())
            || faults.iter().any(|other| other.is_same_set(&fault));
        if is_same {
            Class::SameError
        } else if faults.iter().any(|other| other.is_alike(&fault)) {
            Class::OtherWording
        } else {
            Class::Different
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(output: &str) -> Outcome {
        Outcome {
            success: true,
            output: output.into(),
            ..Outcome::default()
        }
    }

    #[test]
    fn faults_of_values_are_a_set() {
        let told = |lines: &str| {
            refused(&format!(
                "Error: values don't meet the specifications of the schema(s) in the following chart(s):\nc:\n{lines}"
            ))
        };
        let pair = |theirs: &str, ours: &str| Pair {
            theirs: vec![told(theirs)],
            ours: told(ours),
        };
        let one = "- at '/a': additional properties 'x', 'y' not allowed\n- at '/b': got null, want string\n";
        let other =
            "- at '/b': got null, want string\n- at '/a': additional properties 'y', 'x' not allowed\n";
        assert_eq!(compare(&pair(one, other)).class, Class::SameError);
        let fewer = "- at '/b': got null, want string\n- at '/a': additional properties 'y' not allowed\n";
        assert_ne!(compare(&pair(one, fewer)).class, Class::SameError);
    }

    fn refused(errors: &str) -> Outcome {
        Outcome {
            errors: errors.to_owned(),
            ..Outcome::default()
        }
    }

    fn class(theirs: &[Outcome], ours: Outcome) -> Class {
        let theirs = theirs.to_vec();
        compare(&Pair { theirs, ours }).class
    }

    #[test]
    fn each_class_is_told() {
        let same = [printed("a: 1\n"), printed("a: 1\n")];
        assert_eq!(class(&same, printed("a: 1\n")), Class::Equal);
        assert_eq!(class(&same, printed("a: 2\n")), Class::Different);
        assert_eq!(class(&same, refused("Error: no")), Class::Different);

        let random = [printed("a: x1y2z3w4\n"), printed("a: q9w8e7r6\n")];
        assert_eq!(class(&random, printed("a: t5z4u3i2\n")), Class::Masked);
        assert_eq!(class(&random, printed("b: t5z4u3i2\n")), Class::Different);

        let refusals = [
            refused("Error: a/b.yaml:1:2: x: no"),
            refused("Error: a/b.yaml:1:2: x: no"),
        ];
        assert_eq!(
            class(&refusals, refused("warning: w\nError: a/b.yaml:1:2: x: no\n")),
            Class::SameError
        );
        assert_eq!(
            class(&refusals, refused("Error: a/b.yaml:1:2: other: no")),
            Class::OtherWording
        );
        assert_eq!(
            class(&refusals, refused("Error: a/b.yaml:1:2: x: yes")),
            Class::Different
        );
        assert_eq!(class(&refusals, printed("")), Class::Different);

        let random = [
            refused("Error: one of small,medium"),
            refused("Error: one of medium,small"),
        ];
        assert_eq!(
            class(&random, refused("Error: one of medium,small")),
            Class::SameError
        );
        let random = [
            refused("Error: one of a1b2c3,d4e5f6,a7"),
            refused("Error: one of d4e5f6,a7,a1b2c3"),
        ];
        assert_eq!(
            class(&random, refused("Error: one of a7,a1b2c3,d4e5f6")),
            Class::SameError
        );
        assert_eq!(
            class(&random, refused("Error: none of a7,a1b2c3,d4e5f6")),
            Class::Different
        );
    }

    #[test]
    fn a_difference_is_chance_only_while_helm_may_be_random() {
        let verdict = |theirs: &[Outcome]| {
            let theirs = theirs.to_vec();
            let ours = printed("c: 3\n");
            compare(&Pair { theirs, ours })
        };
        let same = verdict(&[printed("a: 1\n"), printed("a: 1\n")]);
        assert!(same.may_be_chance(0) && !same.may_be_chance(BELIEVED));
        assert!(verdict(&[printed("a: 1\n"), printed("a: 2\n")]).may_be_chance(BELIEVED));
    }
}
