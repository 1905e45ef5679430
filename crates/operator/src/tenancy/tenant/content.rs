//! What a tenant's repository holds because of its clusters: a file for each, the files of its pipelines, their variables
//! (§3.2 step 4, §3.9, B11).

use std::collections::{BTreeMap, BTreeSet};

use kube::ResourceExt as _;

use super::TenantState;
use crate::gitrepo::FILES_SYNCED;
use crate::resources::{
    ConditionStatus, EnvVar, EnvVarSource, GitLabOptions, GitRepo, SecretKeyRef, TOMBSTONE, TenantSpec,
};

/// The class file that all clusters of a tenant include.
const COMMON: &str = "common.yml";

/// Annotation of the GitRepo with the paths of files that we put there, in a JSON list.
const GENERATED: &str = "evenkeel.dev/generated-files";

/// Annotation of the GitRepo with those that are kept as they are here.
const SYNCED: &str = "evenkeel.dev/synced-files";

/// Variables of pipelines.
const API_URL: &str = "COMMODORE_API_URL";
const API_TOKEN: &str = "COMMODORE_API_TOKEN";
const CLUSTERS: &str = "CLUSTERS";
const ACCESS_TOKEN: &str = "ACCESS_TOKEN_";

/// Key of tokens in their Secrets.
const TOKEN: &str = "token";

/// Files and annotations of the GitRepo.
pub(super) struct Content {
    pub(super) files: BTreeMap<String, String>,
    pub(super) annotations: BTreeMap<String, String>,
}

pub(super) fn files(state: &TenantState, spec: &TenantSpec) -> Content {
    let class = format!("classes:\n- {}.common\n", state.identity.name);
    // One that is being deleted keeps its file until it is gone: it may be protected (B1).
    let mut generated: BTreeMap<String, String> = state
        .clusters
        .iter()
        .map(|cluster| (format!("{}.yml", cluster.name), class.clone()))
        .collect();
    let pipelines = spec.compile_pipeline.clone().unwrap_or_default();
    let synced = if pipelines.enabled == Some(true) {
        pipelines.pipeline_files
    } else {
        BTreeMap::new()
    };

    let template = spec.git_repo_template.clone().unwrap_or_default();
    let mut files = BTreeMap::from([(COMMON.to_owned(), String::new())]);
    // A file of this content was of the predecessor's making, for a cluster that is gone.
    let given = template.template_files.into_iter().map(|(path, content)| {
        let is_left = content == class && !generated.contains_key(&path);
        (path, if is_left { TOMBSTONE.to_owned() } else { content })
    });
    files.extend(given);
    generated.retain(|path, _| files.get(path).is_none_or(|content| content == TOMBSTONE));
    let names: BTreeSet<&String> = generated.keys().chain(synced.keys()).collect();
    let annotations = BTreeMap::from([
        (GENERATED.to_owned(), serde_json::json!(names).to_string()),
        (
            SYNCED.to_owned(),
            serde_json::json!(synced.keys().collect::<Vec<_>>()).to_string(),
        ),
    ]);
    // Before ours are put in: what the repository has and nobody asks for.
    let earlier = earlier(state.repository.as_ref(), &class);
    let gone: Vec<String> = earlier.into_iter().filter(|path| !names.contains(path)).collect();
    for path in gone {
        files.entry(path).or_insert_with(|| TOMBSTONE.to_owned());
    }
    files.extend(generated);
    files.extend(synced);
    Content { files, annotations }
}

/// Files of our making that the repository may still have. A tombstone that was carried out is none any more.
fn earlier(repository: Option<&GitRepo>, class: &str) -> BTreeSet<String> {
    let Some(repository) = repository else {
        return BTreeSet::new();
    };
    let noted = repository.annotations().get(GENERATED);
    let mut earlier: BTreeSet<String> = noted
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    let status = repository.status.as_ref();
    let are_synced = status.is_some_and(|status| {
        status.observed_generation == repository.metadata.generation
            && status
                .conditions
                .iter()
                .any(|condition| condition.kind == FILES_SYNCED && condition.status == ConditionStatus::True)
    });
    for (path, content) in &repository.spec.template.template_files {
        if content == class || content == TOMBSTONE && !are_synced {
            earlier.insert(path.clone());
        }
    }
    earlier
}

/// The variables that the specification has, and those of the pipelines.
pub(super) fn variables(state: &TenantState, spec: &TenantSpec) -> Vec<EnvVar> {
    let template = spec.git_repo_template.as_ref();
    let given = template
        .map(|template| template.ci_variables.clone())
        .unwrap_or_default();
    let pipelines = spec.compile_pipeline.as_ref();
    let mut variables: Vec<EnvVar> = given.into_iter().filter(|variable| !is_ours(variable)).collect();
    if pipelines.and_then(|pipelines| pipelines.enabled) != Some(true) {
        return variables;
    }
    variables.push(plain(API_URL, state.shared.settings.api_url.clone()));
    variables.push(plain(CLUSTERS, state.compiled().join(" ")));
    variables.push(from_secret(API_TOKEN, &state.identity.name));
    let tokens = state.clusters.iter().filter(|cluster| cluster.is_compiled);
    variables.extend(tokens.filter_map(|cluster| {
        let name = format!("{ACCESS_TOKEN}{}", cluster.name.replace('-', "_"));
        Some(from_secret(&name, cluster.token_secret.as_deref()?))
    }));
    variables
}

/// Whether a variable is one that pipelines get; those that the predecessor wrote back stand among a tenant's own.
fn is_ours(variable: &EnvVar) -> bool {
    let name = variable.name.as_str();
    [API_URL, API_TOKEN, CLUSTERS].contains(&name)
        || name.starts_with(ACCESS_TOKEN) && variable.value_from.is_some()
}

fn plain(name: &str, value: String) -> EnvVar {
    EnvVar {
        name: name.to_owned(),
        value: (!value.is_empty()).then_some(value),
        value_from: None,
        gitlab_options: Some(GitLabOptions {
            raw: Some(true),
            ..GitLabOptions::default()
        }),
    }
}

fn from_secret(name: &str, secret: &str) -> EnvVar {
    EnvVar {
        name: name.to_owned(),
        value: None,
        value_from: Some(EnvVarSource {
            secret_key_ref: Some(SecretKeyRef {
                name: secret.to_owned(),
                key: TOKEN.to_owned(),
                optional: None,
            }),
        }),
        gitlab_options: Some(GitLabOptions {
            masked: Some(true),
            raw: Some(true),
            ..GitLabOptions::default()
        }),
    }
}
