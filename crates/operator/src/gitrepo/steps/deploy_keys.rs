//! The keys that may read or write the repository. Keys that people added by hand stay (B17).

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_steps::{Change, Decision, Outcome, Step};

use super::{CONNECTION, DEPLOY_KEYS_SYNCED, PAIRS, PROJECT, Problems, soon};
use crate::frame::{Input, permission};
use crate::git::asked::{DEPLOY_KEYS, may_read, may_write};
use crate::git::{PresentKey, PublicKey};
use crate::gitrepo::state::{RepoState, managed};
use crate::resources::{DeployKeyStatus, GitRepo};

/// Name of what is remembered.
const LOOK: &str = "deploy-keys";

/// What a key is to be.
#[derive(Clone, Debug)]
struct Wanted {
    key: PublicKey,
    may_write: bool,
}

impl Wanted {
    fn is(&self, present: &PresentKey) -> bool {
        self.key == present.key && self.may_write == present.may_write
    }
}

pub(super) fn step() -> impl Step<RepoState> {
    evenkeel_steps::step::<RepoState>("deploy-keys")
        .condition(DEPLOY_KEYS_SYNCED)
        .needs((CONNECTION, PROJECT, PAIRS))
        .when(managed())
        .may([
            may_read("list", DEPLOY_KEYS),
            may_write("add", DEPLOY_KEYS),
            may_write("delete", DEPLOY_KEYS),
            permission::patch::<GitRepo>(),
        ])
        .decide(|cx, (connection, project, pairs)| async move {
            let state = cx.shared_state();
            let mut problems = Problems::default();
            let wanted = wanted(&state, &pairs, &mut problems);
            let titles: BTreeSet<String> = state
                .template()
                .deploy_keys
                .keys()
                .chain(pairs.keys())
                .cloned()
                .collect();
            let noted = state.notes.record().deploy_keys;
            let ours = noted.union(&earlier(&state)).cloned().collect::<BTreeSet<_>>();
            if titles.is_empty() && ours.is_empty() {
                return Ok(Decision::End(Outcome::done()));
            }
            let given = &state.template().deploy_keys;
            let input = Input::of(&(project.id.0, &connection.version, given, &*pairs, &noted, &ours));
            if state.looks.found::<()>(LOOK, &input, cx.now()).is_some() {
                return Ok(Decision::End(Outcome::done()));
            }
            let present = connection.host.deploy_keys(&project).await.map_err(soon)?;
            let removals: Vec<PresentKey> = present
                .iter()
                .filter(|key| match wanted.get(&key.title) {
                    Some(wanted) => !wanted.is(key),
                    // A key that cannot be read is wanted still.
                    None => ours.contains(&key.title) && !titles.contains(&key.title),
                })
                .cloned()
                .collect();
            let additions: Vec<(String, Wanted)> = wanted
                .into_iter()
                .filter(|(title, wanted)| !present.iter().any(|key| key.title == *title && wanted.is(key)))
                .collect();
            let mut plan: Vec<Change> = removals
                .iter()
                .map(|key| Change::new("delete", format!("deploy key {}", key.title)))
                .collect();
            let added = additions
                .iter()
                .map(|(title, _)| Change::new("add", format!("deploy key {title}")));
            plan.extend(added);
            if noted != titles {
                plan.push(Change::new("note", "which deploy keys are ours"));
            }
            if plan.is_empty() {
                problems.end()?;
                state.looks.saw(LOOK, input, cx.now(), &());
                return Ok(Decision::End(Outcome::done()));
            }
            Ok(Decision::act(plan, async move {
                // Before the first change: what we add is known to be ours, whatever happens on the way.
                let all: BTreeSet<String> = ours.union(&titles).cloned().collect();
                state.notes.write(|record| record.deploy_keys = all).await?;
                for key in &removals {
                    let deleted = connection.host.delete_deploy_key(&project, key.id).await;
                    deleted.map_err(soon)?;
                }
                for (title, wanted) in additions {
                    let host = &connection.host;
                    match host
                        .add_deploy_key(&project, &title, &wanted.key, wanted.may_write)
                        .await
                    {
                        Ok(()) => {}
                        // The host does not take this one; the others go on.
                        Err(error @ crate::Error::Refused { status, .. }) if status != 404 => {
                            problems.add(error)
                        }
                        Err(error) => return Err(soon(error)),
                    }
                }
                state.notes.write(|record| record.deploy_keys = titles).await?;
                problems.end()?;
                Ok(Outcome::changed("deploy keys set"))
            }))
        })
}

/// The keys by title; one of the specification wins over one of our making.
fn wanted(
    state: &RepoState,
    pairs: &BTreeMap<String, DeployKeyStatus>,
    problems: &mut Problems,
) -> BTreeMap<String, Wanted> {
    let mut wanted = BTreeMap::new();
    let made = pairs
        .iter()
        .map(|(title, key)| (title, &key.kind, &key.key, key.write_access));
    let given = state
        .template()
        .deploy_keys
        .iter()
        .map(|(title, key)| (title, &key.kind, &key.key, key.write_access));
    for (title, kind, key, may_write) in made.chain(given) {
        let kind = kind.as_deref().unwrap_or_default();
        match PublicKey::new(kind, key.as_deref().unwrap_or_default()) {
            Ok(key) => {
                let may_write = may_write.unwrap_or_default();
                wanted.insert(title.clone(), Wanted { key, may_write });
            }
            Err(error) => problems.add(format!("the deploy key {title}: {error}")),
        }
    }
    wanted
}

/// Keys of our making that the predecessor noted.
fn earlier(state: &RepoState) -> BTreeSet<String> {
    let status = state.object.status.as_ref();
    status
        .map(|status| status.generated_deploy_keys.keys().cloned().collect())
        .unwrap_or_default()
}
