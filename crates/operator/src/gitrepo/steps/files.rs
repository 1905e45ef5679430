//! Files that the repository begins with. What is there is left alone, but for those that are kept as the specification has them
//! and those that are to go (§3.4k, B11 to B14).

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_steps::{Change, Decision, Failure, Outcome, Step};
use kube::ResourceExt as _;

use super::{CONNECTION, FILES_SYNCED, PROJECT, Problems, soon};
use crate::frame::Input;
use crate::git::asked::{FILES, may_read, may_write};
use crate::git::{BlobDigest, CommitNote, FileAction, FilePath};
use crate::gitrepo::state::{RepoState, SYNCED_FILES, managed};
use crate::resources::TOMBSTONE;

/// Name of what is remembered.
const LOOK: &str = "files";

pub(super) fn step() -> impl Step<RepoState> {
    evenkeel_steps::step::<RepoState>("files")
        .condition(FILES_SYNCED)
        .needs((CONNECTION, PROJECT))
        .when(managed())
        .may([may_read("list", FILES), may_write("commit", FILES)])
        .decide(|cx, (connection, project)| async move {
            let state = cx.shared_state();
            let mut problems = Problems::default();
            if state.template().template_files.is_empty() {
                return Ok(Decision::End(Outcome::done()));
            }
            let (files, synced) = (&state.template().template_files, synced(&state)?);
            let input = Input::of(&(project.id.0, &connection.version, files, &synced));
            if state.looks.found::<()>(LOOK, &input, cx.now()).is_some() {
                return Ok(Decision::End(Outcome::done()));
            }
            let present = connection.host.files(&project).await.map_err(soon)?;
            let actions = actions(files, &synced, &present, &mut problems);
            if actions.is_empty() {
                problems.end()?;
                state.looks.saw(LOOK, input, cx.now(), &());
                return Ok(Decision::End(Outcome::done()));
            }
            let plan = actions
                .iter()
                .map(|(path, action)| {
                    let verb = match action {
                        FileAction::Create { .. } => "create",
                        FileAction::Update { .. } => "update",
                        FileAction::Delete { .. } => "delete",
                    };
                    Change::new(verb, format!("file {path}"))
                })
                .collect();
            Ok(Decision::act(plan, async move {
                let note = CommitNote {
                    message: "Update cluster files".to_owned(),
                    author: "Lieutenant Operator".to_owned(),
                    email: "lieutenant-operator@syn.local".to_owned(),
                };
                let committed = connection.host.commit(&project, &actions, &note).await;
                committed.map_err(soon)?;
                problems.end()?;
                Ok(Outcome::changed(format!("{} files committed", actions.len())))
            }))
        })
}

fn actions(
    files: &BTreeMap<String, String>,
    synced: &BTreeSet<String>,
    present: &BTreeMap<FilePath, BlobDigest>,
    problems: &mut Problems,
) -> BTreeMap<FilePath, FileAction> {
    let mut actions = BTreeMap::new();
    for (path, content) in files {
        let file = match FilePath::new(path) {
            Ok(file) => file,
            Err(error) => {
                problems.add(error);
                continue;
            }
        };
        let action = match present.get(&file) {
            Some(digest) if content == TOMBSTONE => FileAction::Delete { over: digest.clone() },
            None if content != TOMBSTONE => FileAction::Create {
                content: content.clone().into_bytes(),
            },
            Some(digest) if synced.contains(path) && *digest != BlobDigest::of(content.as_bytes()) => {
                FileAction::Update {
                    content: content.clone().into_bytes(),
                    over: digest.clone(),
                }
            }
            _ => continue,
        };
        actions.insert(file, action);
    }
    actions
}

fn synced(state: &RepoState) -> Result<BTreeSet<String>, Failure> {
    let Some(text) = state.object.annotations().get(SYNCED_FILES) else {
        return Ok(BTreeSet::new());
    };
    serde_json::from_str(text).map_err(|error| {
        Failure::invalid(format!(
            "the annotation {SYNCED_FILES} is no JSON list of paths: {error}"
        ))
    })
}
