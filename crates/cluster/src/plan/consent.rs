//! What a plan deletes only when somebody has agreed to it.

use evenkeel_core::{ConsentNeeded, Doomed, LossLimit};

use super::ComponentPlan;

impl ComponentPlan {
    /// What the plan deletes beyond what is deleted without asking; none once somebody has agreed.
    ///
    /// Until then nothing of the plan is carried out: a render that lost much may be wrong in the rest, too.
    pub fn consent_needed(&self) -> Option<&ConsentNeeded> {
        self.consent.as_ref()
    }

    /// Somebody has agreed to what the plan deletes.
    pub fn agree(&mut self) {
        self.consent = None;
    }

    /// What has to be asked of somebody, if anything has.
    pub(super) fn question(&self, limit: LossLimit) -> Option<ConsentNeeded> {
        let doomed: Vec<Doomed> = self
            .deletions
            .iter()
            // What is on its way out is nobody's to decide any more.
            .filter(|removal| !removal.live.is_deleting())
            .map(|removal| Doomed {
                object: removal.object.clone(),
                uid: removal.live.uid.clone(),
            })
            .collect();
        let staying = self
            .steps
            .iter()
            .filter(|step| step.recorded.is_some() && step.live.is_some());
        let of = staying.count() + self.deletions.len() + self.kept.len();
        ConsentNeeded::of_plan(self.target.name(), doomed, of, !self.steps.is_empty(), limit)
    }
}
