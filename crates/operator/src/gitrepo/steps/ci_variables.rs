//! Variables of the repository's pipelines. Those of others stay; one that is wrong keeps no other from being set (B16).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use evenkeel_core::Sensitive;
use evenkeel_steps::{Change, Decision, Failure, Outcome, Slot, Step};

use super::{CI_SYNCED, CONNECTION, PROJECT, Problems, soon};
use crate::frame::Input;
use crate::git::asked::{VARIABLES, may_read, may_write};
use crate::git::{Comparison, GitHost, Project, Variable, VariableOptions, VariableSetting};
use crate::gitrepo::connection::{Connection, text};
use crate::gitrepo::state::{RepoState, managed};
use crate::resources::EnvVar;

/// That the variables are as the specification has them.
pub(crate) const APPLIED: Slot<()> = Slot::new("ci-variables");

/// Name of what is remembered.
const LOOK: &str = "ci-variables";

/// What becomes of one variable.
enum Work {
    Set {
        name: String,
        setting: VariableSetting,
        /// As the host keeps it in another place, which it leaves first.
        over: Option<bool>,
    },
    Delete {
        name: String,
        is_masked: bool,
    },
}

pub(super) fn step() -> impl Step<RepoState> {
    evenkeel_steps::step::<RepoState>("ci-variables")
        .condition(CI_SYNCED)
        .needs((CONNECTION, PROJECT))
        .provides(APPLIED)
        .when(managed())
        .may([
            may_read("list", VARIABLES),
            may_write("set", VARIABLES),
            may_write("delete", VARIABLES),
        ])
        .decide(|cx, (connection, project)| async move {
            let state = cx.shared_state();
            let mut problems = Problems::default();
            let applied = applied_names(&state);
            let spec = &state.template().ci_variables;
            if spec.is_empty() && applied.is_empty() {
                return Ok(Decision::End(Outcome::Done(())));
            }
            let wanted = wanted(&state, &mut problems)?;
            let named: BTreeSet<&str> = spec.iter().map(|variable| variable.name.as_str()).collect();
            let stale = applied.iter().filter(|name| !named.contains(name.as_str()));
            let input = input(&state, &connection, &project, &applied);
            if problems.is_empty() && state.looks.found::<()>(LOOK, &input, cx.now()).is_some() {
                return Ok(Decision::End(Outcome::Done(())));
            }
            let present = connection.host.variables(&project).await.map_err(soon)?;
            let work = work(&state, &connection, &present, wanted, stale);
            if work.is_empty() {
                problems.end()?;
                state.looks.saw(LOOK, input, cx.now(), &());
                return Ok(Decision::End(Outcome::Done(())));
            }
            let plan = work.iter().map(Work::change).collect();
            Ok(Decision::act(plan, async move {
                act(&state, &connection, &project, work, &mut problems).await?;
                problems.end()?;
                Ok(Outcome::changed_with((), "variables set"))
            }))
        })
}

/// What the look at the variables depends on: the versions of Secrets in the place of what they hold.
fn input(state: &RepoState, connection: &Connection, project: &Project, applied: &BTreeSet<String>) -> Input {
    let spec = &state.template().ci_variables;
    let sources = spec.iter().filter_map(|variable| {
        let key = variable.value_from.as_ref()?.secret_key_ref.as_ref()?;
        Some((&key.name, state.secret_version(&key.name)))
    });
    let sources: BTreeMap<_, _> = sources.collect();
    Input::of(&(project.id.0, &connection.version, spec, sources, applied))
}

impl Work {
    fn change(&self) -> Change {
        match self {
            Self::Set { name, .. } => Change::new("set", format!("variable {name}")),
            Self::Delete { name, .. } => Change::new("delete", format!("variable {name}")),
        }
    }
}

/// The settings by name. What cannot be had is told, and left as it is.
fn wanted(state: &RepoState, problems: &mut Problems) -> Result<BTreeMap<String, VariableSetting>, Failure> {
    let mut wanted = BTreeMap::new();
    for variable in &state.template().ci_variables {
        match value(state, variable)? {
            Ok(value) => {
                let options = variable.gitlab_options.clone().unwrap_or_default();
                let setting = VariableSetting {
                    value,
                    is_masked: options.masked.unwrap_or_default(),
                    options: VariableOptions {
                        description: options.description.unwrap_or_default(),
                        is_protected: options.protected.unwrap_or_default(),
                        is_raw: options.raw.unwrap_or_default(),
                    },
                };
                if wanted.insert(variable.name.clone(), setting).is_some() {
                    problems.add(format!("the variable {} is named twice", variable.name));
                }
            }
            Err(problem) => problems.add(format!("the variable {}: {problem}", variable.name)),
        }
    }
    Ok(wanted)
}

/// The value of a variable, or what is wrong with it. A failure means that nobody can say.
fn value(state: &RepoState, variable: &EnvVar) -> Result<Result<Sensitive<String>, String>, Failure> {
    let plain = variable.value.clone().unwrap_or_default();
    let Some(key) = variable
        .value_from
        .as_ref()
        .and_then(|source| source.secret_key_ref.as_ref())
    else {
        return Ok(Ok(Sensitive::new(plain)));
    };
    if !plain.is_empty() {
        return Ok(Err(
            "it has a value and says where its value comes from".to_owned()
        ));
    }
    let secret = state.secret(&key.name)?;
    let is_there = secret.is_some_and(|secret| {
        secret
            .data
            .as_ref()
            .is_some_and(|data| data.contains_key(&key.key))
    });
    Ok(match secret.and_then(|secret| text(secret, &key.key)) {
        Some(value) => Ok(Sensitive::new(value)),
        None if is_there => Err(format!(
            "the key {} of the Secret {} is no text",
            key.key, key.name
        )),
        None if key.optional == Some(true) => Ok(Sensitive::new(String::new())),
        None if secret.is_some() => Err(format!("the Secret {} has no key {}", key.name, key.key)),
        None => Err(format!("there is no Secret {}", key.name)),
    })
}

fn work<'a>(
    state: &RepoState,
    connection: &Connection,
    present: &BTreeMap<String, Variable>,
    wanted: BTreeMap<String, VariableSetting>,
    stale: impl Iterator<Item = &'a String>,
) -> Vec<Work> {
    let find = |name: &str| present_as(&*connection.host, present, name);
    let mut work: Vec<Work> = stale
        .filter_map(|name| {
            let variable = find(name)?;
            Some(Work::Delete {
                name: name.clone(),
                is_masked: variable.is_masked,
            })
        })
        .collect();
    for (name, setting) in wanted {
        let found = find(&name);
        let comparison = found.map(|variable| setting.compare(variable));
        let is_same = match comparison {
            Some(Comparison::Same) => true,
            Some(Comparison::Hidden) => state.shared.values.is(&state.uid, &name, setting.value.expose()),
            Some(Comparison::Different) | None => false,
        };
        if !is_same {
            let over = found
                .filter(|variable| variable.options.is_none() && variable.is_masked != setting.is_masked)
                .map(|variable| variable.is_masked);
            work.push(Work::Set { name, setting, over });
        }
    }
    work
}

/// A variable as the host shows it. Gitea writes their names in capitals.
fn present_as<'a>(
    host: &dyn GitHost,
    present: &'a BTreeMap<String, Variable>,
    name: &str,
) -> Option<&'a Variable> {
    let in_capitals = || (host.kind() == "gitea").then(|| present.get(&name.to_ascii_uppercase()));
    present.get(name).or_else(|| in_capitals().flatten())
}

async fn act(
    state: &Arc<RepoState>,
    connection: &Connection,
    project: &Project,
    work: Vec<Work>,
    problems: &mut Problems,
) -> Result<(), Failure> {
    let host = &connection.host;
    for item in work {
        let done = match &item {
            Work::Delete { name, is_masked } => host.delete_variable(project, name, *is_masked).await,
            Work::Set { name, setting, over } => {
                let left = match over {
                    Some(is_masked) => host.delete_variable(project, name, *is_masked).await,
                    None => Ok(()),
                };
                match left {
                    Ok(()) => host.set_variable(project, name, setting).await,
                    Err(error) => Err(error),
                }
            }
        };
        match done {
            Ok(()) => {
                if let Work::Set { name, setting, .. } = &item {
                    state
                        .shared
                        .values
                        .remember(&state.uid, name, setting.value.expose());
                }
            }
            // The host does not take this one; the others go on.
            Err(error @ crate::Error::Refused { status, .. }) if status != 404 => problems.add(error),
            Err(error) => return Err(soon(error)),
        }
    }
    Ok(())
}

/// The variables that were set last time.
fn applied(state: &RepoState) -> Vec<EnvVar> {
    let status = state.object.status.as_ref();
    let text = status.and_then(|status| status.last_applied_ci_variables.as_deref());
    text.and_then(|text| serde_json::from_str::<Option<Vec<EnvVar>>>(text).ok().flatten())
        .unwrap_or_default()
}

fn applied_names(state: &RepoState) -> BTreeSet<String> {
    applied(state).into_iter().map(|variable| variable.name).collect()
}

/// What the status says was set. While not all is done, those of before count as well: they are to be removed yet.
pub(crate) fn applied_text(state: &RepoState, is_done: bool) -> String {
    let spec = &state.template().ci_variables;
    let mut listed = spec.clone();
    if !is_done {
        let left = applied(state)
            .into_iter()
            .filter(|earlier| !spec.iter().any(|variable| variable.name == earlier.name));
        listed.extend(left);
    }
    if listed.is_empty() {
        // As the predecessor writes a list without anything.
        return "null".to_owned();
    }
    serde_json::to_string(&listed).unwrap_or_default()
}
