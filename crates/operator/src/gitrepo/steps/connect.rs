//! Finds the way to the host.

use evenkeel_steps::{Outcome, Step};

use super::{CONNECTION, REPO_READY};
use crate::frame::CLAIM;
use crate::gitrepo::state::{RepoState, managed};

pub(super) fn step() -> impl Step<RepoState> {
    evenkeel_steps::step::<RepoState>("connect")
        .condition(REPO_READY)
        .provides(CONNECTION)
        .after(CLAIM)
        .when(managed())
        .run(|cx, ()| async move { cx.state().connection.clone().map(Outcome::Done) })
}
