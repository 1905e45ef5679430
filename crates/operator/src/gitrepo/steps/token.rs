//! The access token: renewed before it ends, the one before it revoked when all had time to take the new one (B15, A31).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_steps::{Change, Context, Decision, Failure, Outcome, Predicate, Step};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use k8s_openapi::api::core::v1::Secret;

use super::removal::OWN;
use super::{CONNECTION, PROJECT, REPO_READY, TOKEN_FRESH, soon};
use crate::Error;
use crate::frame::{Input, permission};
use crate::git::asked::{ACCESS_TOKENS, may_read, may_write};
use crate::git::{GitHost, PresentToken, Project};
use crate::gitrepo::connection::Connection;
use crate::gitrepo::state::{RepoState, managed};
use crate::gitrepo::token_secret::{Fresh, Kept, own, store};
use crate::resources::GitRepo;

/// The step that takes away a token that nobody wants any more.
const LEAVE: &str = "leave-token";

/// Name of what is remembered.
const LOOK: &str = "access-token";

/// How many days a token is good.
const LIFETIME_DAYS: i64 = 30;

/// A token that is good no longer than this is renewed: a third of its life.
const RENEWAL: Duration = Duration::from_secs(10 * 24 * 3600);

/// How long a token stays good after there is a new one.
const OVERLAP: Duration = Duration::from_secs(24 * 3600);

/// What is to be done about tokens.
#[derive(Debug, Default)]
struct Plan {
    /// Whether a new token is needed.
    create: bool,
    /// Older tokens and when they go.
    superseded: BTreeMap<u64, Timestamp>,
    /// Tokens to revoke now.
    revoke: Vec<u64>,
    /// Whether the Secret's list of older ones is out of date.
    note: bool,
}

pub(super) fn step() -> impl Step<RepoState> {
    evenkeel_steps::step::<RepoState>("access-token")
        .condition(TOKEN_FRESH)
        .needs((CONNECTION, PROJECT))
        .after(LEAVE)
        .when(managed() & wanted())
        .may([
            may_read("list", ACCESS_TOKENS),
            may_write("create", ACCESS_TOKENS),
            may_write("revoke", ACCESS_TOKENS),
            permission::patch::<GitRepo>(),
            permission::own::<GitRepo>(),
        ])
        .may(permission::keep::<Secret>())
        .decide(|cx, (connection, project)| async move {
            let state = cx.shared_state();
            let plan = plan(&cx, &connection, &project).await?;
            let changes = plan.changes(state.token_secret());
            if changes.is_empty() {
                return Ok(Decision::End(Outcome::done()));
            }
            Ok(Decision::act(changes, async move {
                act(&cx, &connection, &project, plan).await?;
                Ok(Outcome::changed("access tokens put in order"))
            }))
        })
}

fn wanted() -> Predicate<RepoState> {
    Predicate::new("access token wanted", |state: &RepoState| {
        state.token_secret().is_some()
    })
}

fn noted() -> Predicate<RepoState> {
    Predicate::new("access token made", |state: &RepoState| {
        state.notes.record().token_secret.is_some()
    })
}

/// Name of a Secret that is to hold a token no more.
fn left(state: &RepoState) -> Option<String> {
    let noted = state.notes.record().token_secret;
    noted.filter(|noted| Some(noted.as_str()) != state.token_secret())
}

/// Takes away a token that nobody wants any more, with its Secret.
pub(super) fn leave() -> impl Step<RepoState> {
    evenkeel_steps::step::<RepoState>(LEAVE)
        .condition(REPO_READY)
        .needs((CONNECTION, PROJECT))
        .when(managed() & Predicate::new("access token left over", |state| left(state).is_some()))
        .may([
            may_write("revoke", ACCESS_TOKENS),
            permission::delete::<Secret>(),
            permission::patch::<GitRepo>(),
        ])
        .decide(|cx, (connection, project)| async move {
            let state = cx.shared_state();
            let Some(name) = left(&state) else {
                return Ok(Decision::End(Outcome::done()));
            };
            let plan = vec![Change::new("delete", format!("access token in Secret {name}"))];
            Ok(Decision::act(plan, async move {
                let kept = Kept::of(state.secret(&name)?);
                for id in kept.id.into_iter().chain(kept.superseded.into_keys()) {
                    connection.host.revoke_access_token(&project, id).await?;
                }
                if let Some(secret) = own(&state, &name)? {
                    state.shared.access.delete::<Secret>(secret).await?;
                }
                state.notes.write(|record| record.token_secret = None).await?;
                Ok(Outcome::changed("access token taken away"))
            }))
        })
}

async fn plan(cx: &Context<RepoState>, connection: &Connection, project: &Project) -> Result<Plan, Failure> {
    let state = cx.state();
    let now = cx.now();
    let mut plan = Plan::default();
    let Some(name) = state.token_secret() else {
        return Ok(plan);
    };
    let kept = Kept::of(own(state, name)?);
    let input = Input::of(&(
        project.id.0,
        &connection.version,
        name,
        state.secret_version(name),
    ));
    if let Some(renewal) = state.looks.found::<Timestamp>(LOOK, &input, now)
        && renewal > now
    {
        cx.due(renewal, "the access token is renewed");
        return Ok(plan);
    }
    let tokens = connection.host.access_tokens(project).await.map_err(soon)?;
    let current = kept
        .id
        .and_then(|id| tokens.iter().find(|token| token.id == id && token.is_active))
        .and_then(|token| Some((token, midnight(token.expires_on?)?)));
    let renewal = current.map(|(_, expires_at)| before(expires_at));
    plan.create = renewal.is_none_or(|at| at <= now);
    if let Some(at) = renewal.filter(|_| !plan.create) {
        cx.due(at, "the access token is renewed");
    }
    let good = current.map(|(token, _)| token.id).filter(|_| !plan.create);
    for token in tokens.iter().filter(|token| is_older(token, state, &kept, good)) {
        let until = kept.superseded.get(&token.id).copied();
        let until = until.unwrap_or_else(|| now.checked_add(OVERLAP).unwrap_or(Timestamp::MAX));
        if until <= now {
            plan.revoke.push(token.id);
        } else {
            cx.due(until, "an older access token is revoked");
            plan.superseded.insert(token.id, until);
        }
    }
    plan.note = plan.superseded != kept.superseded;
    // While an older one is still good, its end is waited for.
    if let Some(renewal) = renewal.filter(|_| plan.is_empty() && plan.superseded.is_empty()) {
        state.looks.saw(LOOK, input, now, &renewal);
    }
    Ok(plan)
}

/// Whether a token is of our making and not the one that counts.
fn is_older(token: &PresentToken, state: &RepoState, kept: &Kept, good: Option<u64>) -> bool {
    let is_ours = token.name == state.name || kept.id == Some(token.id);
    token.is_active && is_ours && Some(token.id) != good
}

impl Plan {
    fn is_empty(&self) -> bool {
        !self.create && !self.note && self.revoke.is_empty()
    }

    fn changes(&self, name: Option<&str>) -> Vec<Change> {
        let name = name.unwrap_or_default();
        let mut changes = Vec::new();
        if self.create {
            changes.push(Change::new("create", format!("access token in Secret {name}")));
        }
        let revoked = self
            .revoke
            .iter()
            .map(|id| Change::new("revoke", format!("access token {id}")));
        changes.extend(revoked);
        if self.note && changes.is_empty() {
            changes.push(Change::new("note", "which access tokens are older"));
        }
        changes
    }
}

async fn act(
    cx: &Context<RepoState>,
    connection: &Connection,
    project: &Project,
    plan: Plan,
) -> Result<(), Failure> {
    let state = cx.state();
    let host = &connection.host;
    if let Some(name) = state.token_secret() {
        if plan.create {
            state
                .notes
                .write(|record| record.token_secret = Some(name.to_owned()))
                .await?;
            let fresh = create(cx.now(), &state.name, &**host, project).await?;
            cx.due(before(fresh.expires_at), "the access token is renewed");
            store(state, name, Some(&fresh), &plan.superseded).await?;
        } else if plan.note {
            store(state, name, None, &plan.superseded).await?;
        }
    }
    for id in plan.revoke {
        host.revoke_access_token(project, id).await.map_err(soon)?;
    }
    Ok(())
}

async fn create(now: Timestamp, name: &str, host: &dyn GitHost, project: &Project) -> Result<Fresh, Failure> {
    let today = now.to_zoned(TimeZone::UTC).date();
    let until = today
        .checked_add(Span::new().days(LIFETIME_DAYS))
        .map_err(|error| Failure::bug(format!("a token cannot end: {error}")))?;
    let token = host
        .create_access_token(project, name, until)
        .await
        .map_err(soon)?;
    let expires_at = midnight(token.expires_on).unwrap_or(now);
    Ok(Fresh {
        id: token.id,
        expires_at,
        secret: token.secret,
    })
}

/// When a token that is good until then is renewed.
fn before(expires_at: Timestamp) -> Timestamp {
    expires_at.checked_sub(RENEWAL).unwrap_or(Timestamp::MIN)
}

/// The beginning of a day.
fn midnight(day: Date) -> Option<Timestamp> {
    day.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
}

/// Takes the token away before the repository goes into the archive, where nobody can.
pub(super) fn revoke() -> impl Step<RepoState> {
    evenkeel_steps::step::<RepoState>("revoke-token")
        .needs((CONNECTION, OWN))
        .when(wanted() | noted())
        .may([
            may_read("list", ACCESS_TOKENS),
            may_write("revoke", ACCESS_TOKENS),
        ])
        .decide(|cx, (connection, project)| async move {
            let state = cx.shared_state();
            let name = state.notes.record().token_secret;
            let name = name
                .as_deref()
                .or_else(|| state.token_secret())
                .unwrap_or_default();
            let kept = Kept::of(state.secret(name)?);
            let ids: Vec<u64> = kept.id.into_iter().chain(kept.superseded.into_keys()).collect();
            let Some(project) =
                Option::clone(&project).filter(|project| !project.is_archived && !ids.is_empty())
            else {
                return Ok(Decision::End(Outcome::done()));
            };
            let tokens = match connection.host.access_tokens(&project).await {
                Ok(tokens) => tokens,
                Err(Error::Unsupported { .. }) => return Ok(Decision::End(Outcome::done())),
                Err(error) => return Err(error.into()),
            };
            let ids: Vec<u64> = tokens
                .into_iter()
                .filter(|token| token.is_active && ids.contains(&token.id))
                .map(|token| token.id)
                .collect();
            if ids.is_empty() {
                return Ok(Decision::End(Outcome::done()));
            }
            let plan = ids
                .iter()
                .map(|id| Change::new("revoke", format!("access token {id}")))
                .collect();
            let host = Arc::clone(&connection.host);
            Ok(Decision::act(plan, async move {
                for id in ids {
                    host.revoke_access_token(&project, id).await?;
                }
                Ok(Outcome::changed("access tokens revoked"))
            }))
        })
}
