//! Makes the object ours: finalizer, protection, label. Before anything outside is touched (B36).

use evenkeel_steps::{Change, Decision, Outcome, Step};

use super::CLAIM;
use crate::frame::{Claim, FINALIZER, PROTECTION, claim};
use crate::gitrepo::state::RepoState;

pub(super) fn step() -> impl Step<RepoState> {
    evenkeel_steps::step::<RepoState>(CLAIM).decide(|cx, ()| async move {
        let state = cx.shared_state();
        let missing = Claim::of(&state.object, state.shared.settings.protect);
        let is_labelled = state.notes.is_labelled();
        let mut changes = Vec::new();
        if missing.is_some_and(|missing| missing.finalizer) {
            changes.push(Change::new("add", format!("the finalizer {FINALIZER}")));
        }
        if missing.is_some_and(|missing| missing.protection) {
            changes.push(Change::new("add", format!("the annotation {PROTECTION}")));
        }
        if !is_labelled {
            changes.push(Change::new("add", "the label of the tenant"));
        }
        if changes.is_empty() {
            return Ok(Decision::End(Outcome::done()));
        }
        Ok(Decision::act(changes, async move {
            if let Some(missing) = missing {
                claim(&state.shared.access, &state.object, missing).await?;
            }
            state.notes.write(|_| {}).await?;
            Ok(Outcome::changed("claimed"))
        }))
    })
}
