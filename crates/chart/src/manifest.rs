//! Rendered documents: splitting, what they are, hooks, order.

use std::collections::BTreeMap;

use evenkeel_goyaml::{Numbers, Value, from_yaml};

use crate::Error;
use crate::decode::{self, Place, mismatch, names};

/// One rendered document.
#[derive(Clone, PartialEq)]
pub struct Manifest {
    /// The template it came from: `chart/templates/file.yaml`.
    pub source: String,
    /// What it is.
    pub head: Head,
    /// Its text as Helm prints it.
    pub text: String,
    /// Its contents, numbers exact; `Null` when it holds nothing but comments.
    pub object: Value,
    /// Set when the document is a hook.
    pub hook: Option<Hook>,
}

impl std::fmt::Debug for Manifest {
    /// Without the text: Secrets are manifests too.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Manifest")
            .field("source", &self.source)
            .field("head", &self.head)
            .field("hook", &self.hook)
            .finish_non_exhaustive()
    }
}

/// The fields that say which object a document describes; empty where the document says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// `apps/v1`
    pub api_version: String,
    /// `Deployment`
    pub kind: String,
    /// `metadata.name`
    pub name: String,
    /// `metadata.namespace`, empty for the release namespace and for cluster-wide objects.
    pub namespace: String,
}

/// When and how a hook object is used. Hooks of one event run by weight, then by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hook {
    /// The events it runs at.
    pub events: Vec<HookEvent>,
    /// Lower runs first; 0 when absent or not a number.
    pub weight: i64,
    /// When to delete the object.
    pub delete_policies: Vec<HookDeletePolicy>,
}

/// A moment in a release's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HookEvent {
    /// `pre-install`
    PreInstall,
    /// `post-install`
    PostInstall,
    /// `pre-delete`
    PreDelete,
    /// `post-delete`
    PostDelete,
    /// `pre-upgrade`
    PreUpgrade,
    /// `post-upgrade`
    PostUpgrade,
    /// `pre-rollback`
    PreRollback,
    /// `post-rollback`
    PostRollback,
    /// `test`, only run on request
    Test,
}

impl HookEvent {
    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "pre-install" => Self::PreInstall,
            "post-install" => Self::PostInstall,
            "pre-delete" => Self::PreDelete,
            "post-delete" => Self::PostDelete,
            "pre-upgrade" => Self::PreUpgrade,
            "post-upgrade" => Self::PostUpgrade,
            "pre-rollback" => Self::PreRollback,
            "post-rollback" => Self::PostRollback,
            // The second name is Helm 2's.
            "test" | "test-success" => Self::Test,
            _ => return None,
        })
    }
}

/// When a hook object is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookDeletePolicy {
    /// After it succeeded.
    Succeeded,
    /// After it failed.
    Failed,
    /// Before the next one of the same name is created (the default when a hook names none).
    BeforeCreation,
}

impl HookDeletePolicy {
    fn parse(name: &str) -> Option<Self> {
        match name {
            "hook-succeeded" => Some(Self::Succeeded),
            "hook-failed" => Some(Self::Failed),
            "before-hook-creation" => Some(Self::BeforeCreation),
            _ => None,
        }
    }
}

/// All documents of a render in Helm's order.
#[derive(Default)]
pub(crate) struct Sorted {
    pub(crate) manifests: Vec<Manifest>,
    pub(crate) hooks: Vec<Manifest>,
}

/// Splits rendered files (already in path order) into documents, reads each, and sorts them by kind.
pub(crate) fn sort<'f>(
    files: impl Iterator<Item = (&'f str, &'f [u8])>,
    warnings: &mut Vec<String>,
) -> Result<Sorted, Error> {
    let mut sorted = Sorted::default();
    for (source, contents) in files {
        for document in split(contents) {
            let manifest = read(source, document, warnings)?;
            match manifest {
                Some(manifest) if manifest.hook.is_some() => sorted.hooks.push(manifest),
                Some(manifest) => sorted.manifests.push(manifest),
                None => {}
            }
        }
    }
    for list in [&mut sorted.manifests, &mut sorted.hooks] {
        list.sort_by(|a, b| install_rank(&a.head.kind).cmp(&install_rank(&b.head.kind)));
    }
    Ok(sorted)
}

/// Splits at every line that starts with `---`, whatever follows it; blank documents vanish, blanks before a
/// document go, blanks after it stay.
pub(crate) fn split(contents: &[u8]) -> Vec<&[u8]> {
    let contents = trim_start(contents);
    let mut documents = Vec::new();
    let (mut start, mut line) = (0, 0);
    loop {
        let rest = contents.get(line..).unwrap_or_default();
        if rest.starts_with(b"---") {
            documents.push(trim_start(contents.get(start..line).unwrap_or_default()));
            let blanks = rest
                .iter()
                .skip(3)
                .take_while(|byte| matches!(byte, b' ' | b'\t'))
                .count();
            start = line + 3 + blanks;
            line = start;
        }
        match contents
            .get(line..)
            .and_then(|rest| rest.iter().position(|byte| *byte == b'\n'))
        {
            Some(end) => line += end + 1,
            None => break,
        }
    }
    documents.push(trim_start(contents.get(start..).unwrap_or_default()));
    documents.retain(|document| !document.is_empty());
    documents
}

/// Drops leading white space of any kind Unicode knows.
pub(crate) fn trim_start(text: &[u8]) -> &[u8] {
    let mut rest = text;
    loop {
        match rest.first() {
            None => return rest,
            Some(byte) if byte.is_ascii() => {
                if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c) {
                    return rest;
                }
                rest = rest.get(1..).unwrap_or_default();
            }
            Some(_) => {
                let chunk = rest.get(..rest.len().min(4)).unwrap_or(rest);
                let valid = chunk
                    .utf8_chunks()
                    .next()
                    .map(|chunk| chunk.valid())
                    .unwrap_or_default();
                match valid.chars().next() {
                    Some(c) if c.is_whitespace() => rest = rest.get(c.len_utf8()..).unwrap_or_default(),
                    _ => return rest,
                }
            }
        }
    }
}

/// Drops trailing white space of any kind Unicode knows.
pub(crate) fn trim_end(text: &[u8]) -> &[u8] {
    let mut rest = text;
    while let Some(last) = rest.last() {
        if last.is_ascii() {
            if !matches!(last, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c) {
                break;
            }
            rest = rest.get(..rest.len() - 1).unwrap_or_default();
            continue;
        }
        // The one character that ends here; none of white space is longer than three bytes.
        let last = (2..=3).find_map(|width| {
            let at = rest.len().checked_sub(width)?;
            let mut chars = std::str::from_utf8(rest.get(at..)?).ok()?.chars();
            chars
                .next()
                .filter(|c| c.is_whitespace() && chars.as_str().is_empty())
                .map(|_| at)
        });
        match last {
            Some(at) => rest = rest.get(..at).unwrap_or_default(),
            None => break,
        }
    }
    rest
}

/// Reads one document; `None` for a hook of an unknown event, which Helm drops.
fn read(source: &str, document: &[u8], warnings: &mut Vec<String>) -> Result<Option<Manifest>, Error> {
    let object = from_yaml(document, Numbers::Exact).map_err(|e| Error::manifest(source, &e))?;
    let (head, annotations) = head(&object).map_err(|problem| Error::Manifest {
        file: source.to_owned(),
        problem,
        line: None,
        outputs: Vec::new(),
    })?;
    let hook = match annotations.get("helm.sh/hook") {
        None => None,
        Some(events) => match read_hook(events, &annotations, source, warnings) {
            Some(hook) => Some(hook),
            None => return Ok(None),
        },
    };
    let text = String::from_utf8_lossy(document).into_owned();
    Ok(Some(Manifest {
        source: source.to_owned(),
        head,
        text,
        object,
        hook,
    }))
}

fn read_hook(
    events: &str,
    annotations: &BTreeMap<String, String>,
    source: &str,
    warnings: &mut Vec<String>,
) -> Option<Hook> {
    let mut hook = Hook::default();
    for name in events.split(',') {
        let Some(event) = HookEvent::parse(&name.trim().to_lowercase()) else {
            warnings.push(format!(
                "{source}: unknown hook {events:?}: the document is left out"
            ));
            return None;
        };
        hook.events.push(event);
    }
    let weight = annotations.get("helm.sh/hook-weight");
    hook.weight = weight.and_then(|weight| weight.parse().ok()).unwrap_or_default();
    for name in annotations
        .get("helm.sh/hook-delete-policy")
        .iter()
        .flat_map(|policies| policies.split(','))
    {
        match HookDeletePolicy::parse(&name.trim().to_lowercase()) {
            Some(policy) => hook.delete_policies.push(policy),
            None => warnings.push(format!("{source}: unknown hook delete policy {name:?}")),
        }
    }
    Some(hook)
}

/// Reads the fields that matter, with the type errors Go would give.
fn head(object: &Value) -> Result<(Head, BTreeMap<String, String>), String> {
    let mut head = Head::default();
    let mut annotations = None;
    for (key, value) in decode::object(object, "util.SimpleHead")?.into_iter().flatten() {
        if names(key, "apiVersion") {
            decode::text(value, &mut head.api_version, Place("apiVersion"))?;
        } else if names(key, "kind") {
            decode::text(value, &mut head.kind, Place("kind"))?;
        } else if names(key, "metadata") {
            match value {
                Value::Null => {
                    head.name.clear();
                    annotations = None;
                }
                Value::Map(metadata) => {
                    for (key, value) in metadata {
                        if names(key, "name") {
                            decode::text(value, &mut head.name, Place("metadata.name"))?;
                        } else if names(key, "annotations") {
                            decode::text_map(value, &mut annotations, Place("metadata.annotations"))?;
                        } else if let ("namespace", Value::String(namespace)) = (key.as_str(), value) {
                            head.namespace.clone_from(namespace);
                        }
                    }
                }
                other => return Err(mismatch(other, "struct field .metadata of type struct")),
            }
        }
    }
    Ok((head, annotations.unwrap_or_default()))
}

/// Helm's order of installing: known kinds by the table, then all others by name.
pub(crate) fn install_rank(kind: &str) -> (usize, &str) {
    match INSTALL_ORDER.iter().position(|known| *known == kind) {
        Some(rank) => (rank, ""),
        None => (INSTALL_ORDER.len(), kind),
    }
}

const INSTALL_ORDER: [&str; 38] = [
    "PriorityClass",
    "Namespace",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodSecurityPolicy",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "SecretList",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleList",
    "ClusterRoleBinding",
    "ClusterRoleBindingList",
    "Role",
    "RoleList",
    "RoleBinding",
    "RoleBindingList",
    "Service",
    "DaemonSet",
    "Pod",
    "ReplicationController",
    "ReplicaSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "StatefulSet",
    "Job",
    "CronJob",
    "IngressClass",
    "Ingress",
    "APIService",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
];

#[cfg(test)]
mod tests;
