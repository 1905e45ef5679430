//! Git hosts: one suite, at a real Gitea.

mod faults;
mod files;
mod keys;
mod repositories;
mod variables;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use evenkeel_core::Sensitive;
use evenkeel_operator::git::{
    CommitNote, FileAction, FilePath, GitHost, Gitea, GiteaSettings, Project, RepoPath,
};
use evenkeel_testkit::gitea;
use evenkeel_testkit::realparts::Visibility;

/// An organisation of its own, so that tests do not meet.
pub(crate) fn new_group() -> String {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let name = format!("group-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    gitea().create_organization(&name, Visibility::Private).unwrap();
    name
}

pub(crate) fn host_at(address: &str, token: &str) -> Gitea {
    evenkeel_testkit::install_crypto_provider();
    Gitea::new(&GiteaSettings {
        address: address.parse().unwrap(),
        token: Sensitive::new(token.to_owned()),
        authority: None,
    })
    .unwrap()
}

pub(crate) fn host() -> Gitea {
    host_at(&gitea().url(), gitea().token())
}

/// A new repository, as the host shows it.
pub(crate) async fn new_project(host: &dyn GitHost) -> Project {
    let path = RepoPath::new(&new_group(), "t-one").unwrap();
    host.create(&path, "One Corp.").await.unwrap()
}

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
