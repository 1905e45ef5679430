//! What kustomization files refer to.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_goyaml::{Map, Numbers, Value, from_yaml_documents};

use super::RemoteReference;
use crate::Error;
use crate::directory::File;
use crate::format::KUSTOMIZATION_FILES;

/// Fields whose entries are other kustomizations, by folder, or files.
const FOLDER_FIELDS: [&str; 6] = [
    "resources",
    "bases",
    "components",
    "generators",
    "transformers",
    "validators",
];
/// Fields, at any depth, whose texts are opened as files; `name=path` in some.
const FILE_FIELDS: [&str; 10] = [
    "path",
    "files",
    "env",
    "envs",
    "crds",
    "configurations",
    "patchesStrategicMerge",
    "valuesFile",
    "additionalValuesFiles",
    "repo",
];
/// Starts of addresses that kustomize hands to Git, besides those with a scheme and `user@host:`.
const GIT_STARTS: [&str; 4] = ["git::", "gh:", "github.com/", "github.com:"];

/// Files by path; parts separated by `/`, none of them `.` or `..`.
#[derive(Debug, Default)]
pub(super) struct Tree(BTreeMap<String, Vec<u8>>);

/// What is referred to from one folder on.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Paths that are not in the tree. One may leave the tree's root: then it starts with `../`.
    pub(super) missing: BTreeSet<String>,
    /// What would be loaded over the network.
    pub(super) remote: BTreeSet<RemoteReference>,
}

impl Tree {
    pub(super) fn add(&mut self, files: Vec<File>) {
        self.0
            .extend(files.into_iter().map(|file| (file.path, file.content)));
    }

    pub(super) fn into_files(self) -> Vec<File> {
        self.0
            .into_iter()
            .map(|(path, content)| File { path, content })
            .collect()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The bytes of all files together.
    pub(super) fn size(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    fn has_folder(&self, folder: &str) -> bool {
        if folder.is_empty() {
            return !self.0.is_empty();
        }
        let start = format!("{folder}/");
        let next = self.0.range(start.clone()..).next();
        next.is_some_and(|(path, _)| path.starts_with(&start))
    }

    /// Everything that the kustomization in `folder` refers to, and what it refers to in turn.
    pub(super) fn follow(&self, name: &str, folder: &str) -> Result<Found, Error> {
        let mut found = Found::default();
        let mut seen = BTreeSet::new();
        let mut open = vec![Reference::Folder(folder.to_owned())];
        while let Some(reference) = open.pop() {
            if !seen.insert(reference.clone()) {
                continue;
            }
            let (folder, files) = match reference {
                Reference::Folder(folder) => {
                    let files = KUSTOMIZATION_FILES.map(|file| join(&folder, file)).to_vec();
                    (folder, files)
                }
                Reference::Plugin { folder, file } => (folder, vec![file]),
            };
            for file in files {
                let Some(contents) = self.0.get(&file) else {
                    continue;
                };
                let mut scan = Scan {
                    tree: self,
                    name,
                    file: &file,
                    folder: &folder,
                    found: &mut found,
                    open: &mut open,
                };
                scan.document(contents)?;
            }
        }
        Ok(found)
    }
}

/// What is to be looked at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reference {
    /// Another kustomization.
    Folder(String),
    /// A file that configures generators or transformers of the kustomization in `folder`.
    Plugin { folder: String, file: String },
}

/// One file that is being looked at.
struct Scan<'a> {
    tree: &'a Tree,
    name: &'a str,
    file: &'a str,
    folder: &'a str,
    found: &'a mut Found,
    open: &'a mut Vec<Reference>,
}

impl Scan<'_> {
    fn document(&mut self, contents: &[u8]) -> Result<(), Error> {
        let documents =
            from_yaml_documents(contents, Numbers::Exact).map_err(|error| Error::Kustomization {
                name: self.name.to_owned(),
                problem: format!("{}: {error}", self.file),
            })?;
        for document in documents {
            if let Value::Map(map) = document.value {
                self.map(&map, 0);
            }
        }
        Ok(())
    }

    fn map(&mut self, map: &Map, depth: usize) {
        for (field, value) in map {
            if depth == 0 && FOLDER_FIELDS.contains(&field.as_str()) {
                for entry in texts(value) {
                    self.entry(field, entry);
                }
            } else if FILE_FIELDS.contains(&field.as_str()) {
                for entry in texts(value) {
                    let path = entry.split_once('=').map_or(entry, |(_, path)| path);
                    if is_url(entry) {
                        self.remote(field, path);
                    }
                }
            }
            self.nested(value, depth + 1);
        }
    }

    fn nested(&mut self, value: &Value, depth: usize) {
        match value {
            Value::Map(map) => self.map(map, depth),
            Value::List(items) => items.iter().for_each(|item| self.nested(item, depth)),
            _ => {}
        }
    }

    /// One entry of a field that names folders and files.
    fn entry(&mut self, field: &str, entry: &str) {
        let is_plugin = matches!(field, "generators" | "transformers" | "validators");
        if is_plugin && entry.contains('\n') {
            // It may stand in the list itself. One that cannot be read is kustomize's to tell.
            for document in from_yaml_documents(entry.as_bytes(), Numbers::Exact).unwrap_or_default() {
                self.nested(&document.value, 1);
            }
            return;
        }
        if is_url(entry) || is_git(entry) {
            self.remote(field, entry);
            return;
        }
        let Some(path) = resolve(self.folder, entry) else {
            return;
        };
        if self.tree.has_folder(&path) {
            self.open.push(Reference::Folder(path));
        } else if !self.tree.0.contains_key(&path) {
            self.found.missing.insert(path);
        } else if is_plugin {
            // Resources are objects; what configures plugins may name files.
            self.open.push(Reference::Plugin {
                folder: self.folder.to_owned(),
                file: path,
            });
        }
    }

    fn remote(&mut self, field: &str, address: &str) {
        self.found.remote.insert(RemoteReference {
            file: self.file.to_owned(),
            field: field.to_owned(),
            address: address.to_owned(),
        });
    }
}

/// A text, or the texts of a list.
fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text.as_str()],
        Value::List(items) => items
            .iter()
            .filter_map(|item| match item {
                Value::String(text) => Some(text.as_str()),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn is_url(text: &str) -> bool {
    text.contains("://")
}

/// Whether kustomize takes the text for a Git repository, whatever lies there.
fn is_git(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let user_at_host = text
        .split_once(':')
        .is_some_and(|(before, _)| before.contains('@') && !before.contains('/'));
    user_at_host || GIT_STARTS.iter().any(|start| lower.starts_with(start))
}

/// `folder/name`.
pub(super) fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() {
        name.to_owned()
    } else {
        format!("{folder}/{name}")
    }
}

/// The path of `entry` seen from `folder`; it may lead out of the root, by `../` at its start. None for an absolute one,
/// which kustomize refuses.
fn resolve(folder: &str, entry: &str) -> Option<String> {
    if entry.starts_with('/') || entry.is_empty() {
        return None;
    }
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in entry.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_none_or(|last| *last == "..") => parts.push(".."),
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}
