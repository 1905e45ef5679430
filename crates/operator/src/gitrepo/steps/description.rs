//! Says at the host what the repository is for.

use evenkeel_steps::{Change, Decision, Outcome, Step};

use super::project::is_marked;
use super::{CONNECTION, PROJECT, REPO_READY, soon};
use crate::git::asked::{REPOSITORIES, may_write};
use crate::gitrepo::state::{RepoState, managed};

pub(super) fn step() -> impl Step<RepoState> {
    evenkeel_steps::step::<RepoState>("description")
        .condition(REPO_READY)
        .needs((CONNECTION, PROJECT))
        .when(managed())
        .may([may_write("describe", REPOSITORIES)])
        .decide(|cx, (connection, project)| async move {
            let state = cx.shared_state();
            // An object without a name has nothing to say: what others wrote stays (B17), but not what we noted there.
            let has_nothing_to_say = state.description().is_empty() && !is_marked(&project);
            if has_nothing_to_say || project.description == state.description() {
                return Ok(Decision::End(Outcome::done()));
            }
            let plan = vec![Change::new("update", "the description")];
            Ok(Decision::act(plan, async move {
                let described = connection.host.describe(&project, state.description()).await;
                described.map_err(soon)?;
                Ok(Outcome::changed("description set"))
            }))
        })
}
