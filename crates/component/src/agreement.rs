//! What whoever runs an operation has agreed to delete.

use std::collections::BTreeSet;

use evenkeel_core::{ConsentNeeded, Digest};

/// What is agreed to beforehand, by a person at a terminal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Agreement {
    /// Nothing: a plan that deletes much, or everything, is not carried out.
    #[default]
    Nothing,
    /// The plans of these digests.
    Plans(BTreeSet<Digest>),
    /// Whatever is planned.
    Everything,
}

impl Agreement {
    /// Whether the plan may be carried out.
    pub fn covers(&self, needed: &ConsentNeeded) -> bool {
        match self {
            Self::Nothing => false,
            Self::Plans(plans) => plans.contains(&needed.digest()),
            Self::Everything => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_core::{ComponentName, ConsentKind};

    use super::*;

    #[test]
    fn a_plan_is_agreed_to_by_its_digest() {
        let needed = |of| ConsentNeeded {
            component: ComponentName::new("web").unwrap(),
            kind: ConsentKind::Deletions,
            deletions: Vec::new(),
            of,
        };
        let empty = ConsentNeeded {
            kind: ConsentKind::EmptyRender,
            ..needed(7)
        };
        let plans = Agreement::Plans([needed(7).digest()].into());
        assert!(plans.covers(&needed(7)) && plans.covers(&needed(8)) && !plans.covers(&empty));
        assert!(Agreement::Everything.covers(&empty) && !Agreement::Nothing.covers(&empty));
    }
}
