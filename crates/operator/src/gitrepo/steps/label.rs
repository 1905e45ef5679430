//! Says on the object which tenant it is of.

use evenkeel_steps::{Change, Decision, Outcome, Step};

use crate::frame::{CLAIM, permission};
use crate::gitrepo::state::RepoState;
use crate::resources::GitRepo;

pub(super) fn step() -> impl Step<RepoState> {
    evenkeel_steps::step::<RepoState>("label")
        .after(CLAIM)
        .may([permission::patch::<GitRepo>()])
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
