//! The way back: the repository as the policy says, the object last (§3.4h, E8, E9).

use std::time::Duration;

use evenkeel_steps::{Change, Decision, Outcome, Predicate, Slot, Step};

use super::CONNECTION;
use super::project::{Found, look};
use crate::frame::{FINALIZER, permission, policy, release as let_go};
use crate::git::Project;
use crate::git::asked::{REPOSITORIES, may_find, may_write};
use crate::gitrepo::state::{RepoState, managed};
use crate::resources::{CreationPolicy, DeletionPolicy, GitRepo};

/// The repository that the policy is about; none if there is none of ours.
pub(super) const OWN: Slot<Option<Project>> = Slot::new("own-project");

/// How long to wait before it is looked whether a deleted repository has gone.
const GRACE: Duration = Duration::from_secs(10);

/// Whether anything at the host may be ours, and something is to become of it. A host that nobody can reach keeps no object
/// that never had anything there.
fn at_the_host() -> Predicate<RepoState> {
    let orphaned = Predicate::new("orphaned", RepoState::may_orphan);
    let begun = Predicate::new("begun at the host", |state: &RepoState| {
        let record = state.notes.record();
        let status = state.object.status.as_ref();
        record.project.is_some()
            || record.creating.is_some()
            || status.is_some_and(|status| status.url.is_some())
            || state.creation_policy() == CreationPolicy::Adopt
    });
    let retained = Predicate::new("retained", |state: &RepoState| {
        state.deletion_policy() == DeletionPolicy::Retain && state.notes.record().token_secret.is_none()
    });
    managed() & !orphaned & begun & !retained
}

pub(super) fn connect() -> impl Step<RepoState> {
    evenkeel_steps::step::<RepoState>("connect")
        .provides(CONNECTION)
        .when(at_the_host())
        .run(|cx, ()| async move { cx.state().connection.clone().map(Outcome::Done) })
}

pub(super) fn locate() -> impl Step<RepoState> {
    evenkeel_steps::step::<RepoState>("locate")
        .needs(CONNECTION)
        .provides(OWN)
        .may([may_find()])
        .run(|cx, connection| async move {
            let state = cx.state();
            Ok(Outcome::Done(match look(state, &connection).await? {
                Found::Ours(ours) | Found::Elsewhere(ours) | Found::Displaced { ours, .. } => Some(ours),
                // The table of §3.11: what would be adopted is removed.
                Found::Foreign(project) if state.creation_policy() == CreationPolicy::Adopt => Some(project),
                Found::Foreign(_) | Found::Absent => None,
            }))
        })
}

pub(super) fn remove() -> impl Step<RepoState> {
    evenkeel_steps::step::<RepoState>("remove")
        .needs((CONNECTION, OWN))
        .after("revoke-token")
        .may([
            may_find(),
            may_write("archive", REPOSITORIES),
            may_write("delete", REPOSITORIES),
        ])
        .decide(|cx, (connection, project)| async move {
            let Some(project) = Option::clone(&project) else {
                return Ok(Decision::End(Outcome::done()));
            };
            let target = format!("repository {}", project.path);
            match cx.state().deletion_policy() {
                DeletionPolicy::Retain => Ok(Decision::End(Outcome::done())),
                DeletionPolicy::Archive if project.is_archived => Ok(Decision::End(Outcome::done())),
                DeletionPolicy::Archive => Ok(Decision::act(
                    vec![Change::new(policy::ARCHIVE, target)],
                    async move {
                        connection.host.set_archived(&project, true).await?;
                        Ok(Outcome::changed("repository archived"))
                    },
                )),
                DeletionPolicy::Delete => {
                    Ok(Decision::act(
                        vec![Change::new(policy::ERASE, target)],
                        async move {
                            connection.host.delete(&project).await?;
                            // A host that deletes later shows it as gone (OPR-01).
                            if connection.host.get(project.id).await?.is_some() {
                                return Ok(Outcome::wait(GRACE, "the repository is being deleted"));
                            }
                            Ok(Outcome::changed("repository deleted"))
                        },
                    ))
                }
            }
        })
}

pub(super) fn release() -> impl Step<RepoState> {
    evenkeel_steps::step::<RepoState>(crate::frame::RELEASE)
        .after("locate")
        .after("revoke-token")
        .after("remove")
        .may([permission::patch::<GitRepo>()])
        .decide(|cx, ()| async move {
            let state = cx.shared_state();
            let plan = vec![Change::new("remove", format!("the finalizer {FINALIZER}"))];
            if !state
                .object
                .metadata
                .finalizers
                .iter()
                .flatten()
                .any(|name| name == FINALIZER)
            {
                return Ok(Decision::End(Outcome::done()));
            }
            Ok(Decision::act(plan, async move {
                let_go(&state.shared.access, &state.object, &[FINALIZER]).await?;
                state.forget();
                Ok(Outcome::changed("released"))
            }))
        })
}
