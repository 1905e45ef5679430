//! Looks for the repository, and makes it be there: created, adopted, brought back from the archive. What is not ours is
//! touched only when the policy says to adopt it (§3.11, B19).

use std::sync::Arc;

use evenkeel_steps::{
    Change, Creation as Creating, Decision, Existence, Failure, FailureClass, Intent, Outcome, Slot, Step,
    once,
};

use super::{CONNECTION, PROJECT, REPO_READY};
use crate::Error;
use crate::git::{Project, RepoPath};
use crate::gitrepo::connection::{Connection, wanted_path};
use crate::gitrepo::record::{Creation, OwnProject};
use crate::gitrepo::state::{RepoState, managed};
use crate::resources::CreationPolicy;

/// What was found where the repository is to be.
const FOUND: Slot<Found> = Slot::new("found");

/// Whose a repository is.
#[derive(Clone, Debug)]
pub(super) enum Found {
    /// It is ours.
    Ours(Project),
    /// It is not.
    Foreign(Project),
    /// Ours is at another place.
    Elsewhere(Project),
    /// There is none.
    Absent,
}

/// How every such note begins.
const MARK: &str = "[evenkeel:";

/// What a description holds while nobody knows yet whether the creation succeeded.
fn mark(nonce: &str) -> String {
    format!("{MARK}{nonce}]")
}

/// Whether a description still holds such a note.
pub(super) fn is_marked(project: &Project) -> bool {
    project.description.contains(MARK)
}

pub(super) fn observe() -> impl Step<RepoState> {
    evenkeel_steps::step::<RepoState>("observe")
        .condition(REPO_READY)
        .needs(CONNECTION)
        .provides(FOUND)
        .when(managed())
        .run(|cx, connection| async move { look(cx.state(), &connection).await.map(Outcome::Done) })
}

/// Whose the repository at the wanted place is. That this cannot be found out is a failure, never an absence (A32).
pub(super) async fn look(state: &RepoState, connection: &Connection) -> Result<Found, Failure> {
    let template = state.template();
    let path = wanted_path(template.path.as_deref(), template.repo_name.as_deref())?;
    let record = state.notes.record();
    let Some(project) = connection.host.find(&path).await? else {
        let own = record.project.filter(|own| own.endpoint == connection.endpoint);
        let elsewhere = match &own {
            Some(own) => connection.host.get(own.id()).await?,
            None => None,
        };
        return Ok(elsewhere.map_or(Found::Absent, Found::Elsewhere));
    };
    let is_noted = record
        .project
        .as_ref()
        .is_some_and(|own| own.is(&project, &connection.endpoint));
    let is_begun = record
        .creating
        .as_ref()
        .is_some_and(|creating| project.description.contains(&mark(&creating.nonce)));
    // The predecessor's proof, for objects of its making.
    let known = state
        .object
        .status
        .as_ref()
        .and_then(|status| status.url.as_deref());
    let is_known = record.project.is_none() && known == Some(connection.url(&path).as_str());
    Ok(if is_noted || is_begun || is_known {
        Found::Ours(project)
    } else {
        Found::Foreign(project)
    })
}

pub(super) fn ensure() -> impl Step<RepoState> {
    evenkeel_steps::step::<RepoState>("project")
        .condition(REPO_READY)
        .needs((CONNECTION, FOUND))
        .provides(PROJECT)
        .when(managed())
        .decide(|cx, (connection, found)| async move {
            let state = cx.shared_state();
            match (&*found, state.creation_policy()) {
                (Found::Ours(project), _) => Ok(keep(state, connection, project.clone())),
                (Found::Foreign(project), CreationPolicy::Adopt) => Ok(adopt(state, connection, project.clone())),
                (Found::Foreign(project), CreationPolicy::Create) => Err(Failure::invalid(format!(
                    "the repository {} exists and is not managed by this object: nothing was changed; set \
                     creationPolicy: Adopt to take it over",
                    project.path
                ))),
                (Found::Elsewhere(project), _) => Err(Failure::invalid(format!(
                    "our repository is at {} and not where the specification wants it: move it there at the host",
                    project.path
                ))),
                (Found::Absent, _) => {
                    let template = state.template();
                    let path = wanted_path(template.path.as_deref(), template.repo_name.as_deref())?;
                    let plan = vec![Change::new("create", format!("repository {path}"))];
                    let now = cx.now();
                    Ok(Decision::act(plan, async move {
                        let project = create(&state, &connection, path, now).await?;
                        Ok(Outcome::changed_with(project, "repository created"))
                    }))
                }
            }
        })
}

async fn create(
    state: &RepoState,
    connection: &Connection,
    path: RepoPath,
    now: jiff::Timestamp,
) -> Result<Project, Failure> {
    let creation = Creation {
        notes: &state.notes,
        endpoint: &connection.endpoint,
    };
    let project = AtHost {
        state,
        connection,
        path,
    };
    let nonce = || uuid::Uuid::new_v4().simple().to_string();
    let once = once(&creation, &project, "create-project", nonce, now).await?;
    Ok(once.receipt().clone())
}

/// The creation at the host, marked so that it is found again when its answer is lost.
struct AtHost<'a> {
    state: &'a RepoState,
    connection: &'a Connection,
    path: RepoPath,
}

impl Creating for AtHost<'_> {
    type Receipt = Project;

    async fn find(&self, intent: &Intent) -> Result<Existence<Project>, Failure> {
        let found = self.connection.host.find(&self.path).await?;
        let ours = found.filter(|project| project.description.contains(&mark(&intent.nonce)));
        Ok(ours.map_or(Existence::No, Existence::Yes))
    }

    async fn create(&self, intent: &Intent) -> Result<Project, Failure> {
        let description = format!("{} {}", self.state.description(), mark(&intent.nonce));
        let host = &self.connection.host;
        let created = host.create(&self.path, description.trim()).await;
        created.map_err(|error| match error {
            // Looked for and not found, and yet taken: hosts keep the name of what they delete some days later (OPR-01). To ask
            // again at once, as after other conflicts, would go on for all these days.
            Error::Conflict { .. } => Failure::new(
                FailureClass::Transient,
                format!(
                    "the name {} is taken at the host by what is not shown, such as a repository that waits for its deletion: \
                     restore or remove that one",
                    self.path
                ),
            ),
            error => error.into(),
        })
    }
}

/// Ours: noted, and not archived.
fn keep(state: Arc<RepoState>, connection: Arc<Connection>, project: Project) -> Decision<'static, Project> {
    let own = OwnProject::new(&project, &connection.endpoint);
    let record = state.notes.record();
    let is_noted = record.project.as_ref() == Some(&own) && record.creating.is_none();
    if is_noted && !project.is_archived {
        return Decision::End(Outcome::Done(project));
    }
    let mut plan = Vec::new();
    if !is_noted {
        plan.push(Change::new("note", format!("repository {}", project.path)));
    }
    if project.is_archived {
        plan.push(Change::new("unarchive", format!("repository {}", project.path)));
    }
    settle(state, connection, project, plan, "repository brought back")
}

fn adopt(state: Arc<RepoState>, connection: Arc<Connection>, project: Project) -> Decision<'static, Project> {
    let plan = vec![Change::new("adopt", format!("repository {}", project.path))];
    settle(state, connection, project, plan, "repository adopted")
}

fn settle(
    state: Arc<RepoState>,
    connection: Arc<Connection>,
    mut project: Project,
    plan: Vec<Change>,
    summary: &'static str,
) -> Decision<'static, Project> {
    Decision::act(plan, async move {
        let own = OwnProject::new(&project, &connection.endpoint);
        let note = |record: &mut crate::gitrepo::record::Record| {
            record.project = Some(own);
            record.creating = None;
        };
        state.notes.write(note).await?;
        if project.is_archived {
            connection.host.set_archived(&project, false).await?;
            project.is_archived = false;
        }
        Ok(Outcome::changed_with(project, summary))
    })
}
