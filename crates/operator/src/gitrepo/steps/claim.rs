//! Makes the object ours: finalizer, protection, label. Before anything outside is touched (B36).

use evenkeel_steps::{Change, Decision, Outcome, Step};

use super::CLAIM;
use crate::frame::{Claim, FINALIZER, claim};
use crate::gitrepo::state::RepoState;

pub(super) fn step() -> impl Step<RepoState> {
    evenkeel_steps::step::<RepoState>(CLAIM).decide(|cx, ()| async move {
        let state = cx.shared_state();
        let missing = Claim::of(&state.object, &[FINALIZER], state.shared.settings.protect, None);
        let is_labelled = state.notes.is_labelled();
        let mut changes = missing.as_ref().map(Claim::changes).unwrap_or_default();
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
