//! Looks for the repository, and makes it be there: created, adopted, brought back from the archive. What is not ours is
//! touched only when the policy says to adopt it (§3.11, B19).

use std::sync::Arc;

use evenkeel_steps::{
    Change, Creation as Creating, Decision, Existence, Failure, FailureClass, Intent, Outcome, Slot, Step,
    once,
};

use jiff::Timestamp;

use super::{CONNECTION, PROJECT, REPO_READY};
use crate::Error;
use crate::frame::{Input, permission, policy};
use crate::git::asked::{REPOSITORIES, may_find, may_write};
use crate::git::{Project, RepoPath};
use crate::gitrepo::connection::{Connection, wanted_path};
use crate::gitrepo::record::{Creation, OwnProject, Record};
use crate::gitrepo::state::{RepoState, managed};
use crate::resources::{CreationPolicy, GitRepo};

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
    /// Ours is at another place, and a foreign one is where it is to be.
    Displaced {
        /// Ours.
        ours: Project,
        /// The foreign one.
        foreign: Project,
    },
    /// There is none.
    Absent,
}

/// Name of what is remembered.
const LOOK: &str = "project";

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
        .may([may_find()])
        .run(|cx, connection| async move {
            let (state, now) = (cx.state(), cx.now());
            let input = input(state, &connection)?;
            if let Some(project) = remembered(state, &input, now)? {
                return Ok(Outcome::Done(Found::Ours(project)));
            }
            let found = look(state, &connection).await?;
            if let Found::Ours(project) = &found
                && is_settled(state, &connection, project)
            {
                let seen = (&project.description, &project.default_branch);
                state.looks.saw(LOOK, input, now, &seen);
            }
            Ok(Outcome::Done(found))
        })
}

/// What the look at the repository depends on.
fn input(state: &RepoState, connection: &Connection) -> Result<Input, Failure> {
    let path = wanted(state)?.to_string();
    let record = state.notes.record();
    Ok(Input::of(&(
        &connection.version,
        path,
        state.description(),
        record,
    )))
}

/// The repository as it was seen before, where it is to be. Whose it is stands in the record, whatever a status says.
fn remembered(state: &RepoState, input: &Input, now: Timestamp) -> Result<Option<Project>, Failure> {
    let Some(own) = state.notes.record().project else {
        return Ok(None);
    };
    let Some((description, default_branch)) = state.looks.found(LOOK, input, now) else {
        return Ok(None);
    };
    Ok(Some(Project {
        id: own.id(),
        path: wanted(state)?,
        description,
        is_archived: false,
        default_branch,
    }))
}

/// Whether there is nothing to do about a repository. One without a commit gets its branch by the first.
fn is_settled(state: &RepoState, connection: &Connection, project: &Project) -> bool {
    let record = state.notes.record();
    let is_noted = record.project.as_ref() == Some(&OwnProject::new(project, &connection.endpoint));
    let is_open = record.creating.is_some() || record.moving.is_some();
    is_noted && !is_open && !project.is_archived && project.default_branch.is_some()
}

/// Whose the repository at the wanted place is. That this cannot be found out is a failure, never an absence (A32).
pub(super) async fn look(state: &RepoState, connection: &Connection) -> Result<Found, Failure> {
    let path = wanted(state)?;
    let record = state.notes.record();
    let Some(project) = connection.host.find(&path).await? else {
        return Ok(elsewhere(state, connection, &path)
            .await?
            .map_or(Found::Absent, Found::Elsewhere));
    };
    let is_noted = record
        .project
        .as_ref()
        .is_some_and(|own| own.is(&project, &connection.endpoint));
    let is_begun = record
        .creating
        .as_ref()
        .is_some_and(|creating| project.description.contains(&mark(&creating.nonce)));
    let is_known = record.project.is_none() && known_url(state) == Some(connection.url(&path).as_str());
    if is_noted || is_begun || is_known {
        return Ok(Found::Ours(project));
    }
    Ok(match elsewhere(state, connection, &path).await? {
        Some(ours) => Found::Displaced {
            ours,
            foreign: project,
        },
        None => Found::Foreign(project),
    })
}

/// Ours, if it is at another place than `wanted`: by what is noted, or by the address that the predecessor left.
async fn elsewhere(
    state: &RepoState,
    connection: &Connection,
    wanted: &RepoPath,
) -> Result<Option<Project>, Failure> {
    let record = state.notes.record();
    if let Some(own) = record.project {
        let is_here = own.endpoint == connection.endpoint;
        return match is_here {
            true => Ok(connection.host.get(own.id()).await?),
            false => Ok(None),
        };
    }
    let place = known_url(state).and_then(|url| connection.place(url));
    match place.filter(|place| !place.is_same_place(wanted)) {
        Some(place) => Ok(connection.host.find(&place).await?),
        None => Ok(None),
    }
}

/// The predecessor's proof of what is ours.
fn known_url(state: &RepoState) -> Option<&str> {
    state.object.status.as_ref()?.url.as_deref()
}

pub(super) fn ensure() -> impl Step<RepoState> {
    evenkeel_steps::step::<RepoState>("project")
        .condition(REPO_READY)
        .needs((CONNECTION, FOUND))
        .provides(PROJECT)
        .when(managed())
        .may([
            may_find(),
            may_write("create", REPOSITORIES),
            may_write("move", REPOSITORIES),
            may_write("unarchive", REPOSITORIES),
            permission::patch::<GitRepo>(),
        ])
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
                (Found::Elsewhere(project), _) => relocate(state, connection, project.clone()),
                (Found::Displaced { ours, foreign }, _) => Err(Failure::invalid(format!(
                    "our repository is at {}, and where it is to be there is another one that is not managed by this \
                     object: nothing was changed; move {} away, or change path or repoName",
                    ours.path, foreign.path
                ))),
                (Found::Absent, _) => {
                    let path = wanted(&state)?;
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

fn wanted(state: &RepoState) -> Result<RepoPath, Failure> {
    let template = state.template();
    let path = wanted_path(template.path.as_deref(), template.repo_name.as_deref())?;
    Ok(path)
}

async fn create(
    state: &RepoState,
    connection: &Connection,
    path: RepoPath,
    now: Timestamp,
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
    let is_open = record.creating.is_some() || record.moving.is_some();
    let is_noted = record.project.as_ref() == Some(&own) && !is_open;
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

/// Ours, brought to where the specification wants it (B19). Only from where we left it: what somebody moved at the host was moved
/// for a reason, and nobody fights about it.
fn relocate(
    state: Arc<RepoState>,
    connection: Arc<Connection>,
    mut project: Project,
) -> Result<Decision<'static, Project>, Failure> {
    let to = wanted(&state)?;
    let record = state.notes.record();
    let is_left = record.project.as_ref().is_none_or(|own| own.is_at(&project));
    if !is_left && record.moving.is_none() {
        return Err(Failure::invalid(format!(
            "our repository is at {}, where somebody moved it, and the specification wants it at {to}: move it back, or \
             change path or repoName",
            project.path
        )));
    }
    let change = Change::new("move", format!("repository {}", project.path)).detail(format!("to {to}"));
    Ok(Decision::act(vec![change], async move {
        let begun = |record: &mut Record| record.moving = Some(to.to_string());
        state.notes.write(begun).await?;
        if project.is_archived {
            connection.host.set_archived(&project, false).await?;
        }
        project = connection.host.relocate(&project, &to).await?;
        let own = OwnProject::new(&project, &connection.endpoint);
        state.notes.write(|record| record.settle(own)).await?;
        Ok(Outcome::changed_with(project, "repository moved"))
    }))
}

fn adopt(state: Arc<RepoState>, connection: Arc<Connection>, project: Project) -> Decision<'static, Project> {
    let plan = vec![Change::new(policy::ADOPT, format!("repository {}", project.path))];
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
        state.notes.write(|record| record.settle(own)).await?;
        if project.is_archived {
            connection.host.set_archived(&project, false).await?;
            project.is_archived = false;
        }
        Ok(Outcome::changed_with(project, summary))
    })
}
