//! Git hosts: one suite, at a real Gitea and at the double of GitLab.

mod faults;
mod files;
mod groups;
mod keys;
mod repositories;
mod site;
mod tokens;
mod variables;

use std::collections::BTreeMap;

use evenkeel_operator::git::{CommitNote, FileAction, FilePath};

pub(crate) use site::{Site, at_every_host};

pub(crate) fn file(path: &str) -> FilePath {
    FilePath::new(path).unwrap()
}

pub(crate) fn note() -> CommitNote {
    CommitNote {
        message: "Update cluster files".to_owned(),
        author: "Lieutenant Operator".to_owned(),
        email: "lieutenant-operator@syn.local".to_owned(),
    }
}

pub(crate) fn creations(files: &[(&str, &str)]) -> BTreeMap<FilePath, FileAction> {
    files
        .iter()
        .map(|(path, content)| {
            let content = content.as_bytes().to_vec();
            (file(path), FileAction::Create { content })
        })
        .collect()
}
