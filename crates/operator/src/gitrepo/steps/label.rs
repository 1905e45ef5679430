//! Says on the object which tenant it is of.

use evenkeel_steps::{Change, Decision, Outcome, Step};

use crate::frame::CLAIM;
use crate::gitrepo::state::RepoState;

pub(super) fn step() -> impl Step<RepoState> {
    evenkeel_steps::step::<RepoState>("label")
        .after(CLAIM)
        .decide(|cx, ()| async move {
            let state = cx.shared_state();
            if state.notes.is_labelled() {
                return Ok(Decision::End(Outcome::done()));
            }
            let plan = vec![Change::new("add", "the label of the tenant")];
            Ok(Decision::act(plan, async move {
                state.notes.write(|_| {}).await?;
                Ok(Outcome::changed("labelled"))
            }))
        })
}
