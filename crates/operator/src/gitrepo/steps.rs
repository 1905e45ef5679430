//! The steps of a repository, a file each.

mod ci_variables;
mod connect;
mod deploy_keys;
mod description;
mod files;
mod key_pairs;
mod label;
mod project;
mod removal;
mod token;

use evenkeel_steps::{Error, Failure, FailureClass, Pipeline, Slot};

use super::connection::Connection;
use super::state::RepoState;
use crate::frame::EveryKind;
use crate::git::Project;

pub(crate) use ci_variables::{APPLIED, applied_text};
pub(crate) use key_pairs::PAIRS;

/// The way to the host.
pub(crate) const CONNECTION: Slot<Connection> = Slot::new("connection");

/// The repository, there and ours.
pub(crate) const PROJECT: Slot<Project> = Slot::new("project");

/// Conditions, by what they mean to people.
pub(crate) const REPO_READY: &str = "RepoReady";
pub(crate) const DEPLOY_KEYS_SYNCED: &str = "DeployKeysSynced";
pub(crate) const CI_SYNCED: &str = "CiSynced";
pub(crate) const FILES_SYNCED: &str = "FilesSynced";
pub(crate) const TOKEN_FRESH: &str = "TokenFresh";

/// All of them.
pub(crate) const CONDITIONS: &[&str] = &[
    CI_SYNCED,
    DEPLOY_KEYS_SYNCED,
    FILES_SYNCED,
    REPO_READY,
    TOKEN_FRESH,
];

/// The steps towards a repository.
pub(crate) fn pipeline() -> Result<Pipeline<RepoState>, Error> {
    Pipeline::builder("gitrepo")
        .bundle(&EveryKind)
        .step(label::step())
        .step(connect::step())
        .step(key_pairs::step())
        .step(project::observe())
        .step(project::ensure())
        .step(description::step())
        .step(deploy_keys::step())
        .step(token::leave())
        .step(token::step())
        .step(ci_variables::step())
        .step(files::step())
        .build()
}

/// The steps away from it.
pub(crate) fn teardown() -> Result<Pipeline<RepoState>, Error> {
    Pipeline::builder("gitrepo.teardown")
        .step(removal::connect())
        .step(removal::locate())
        .step(token::revoke())
        .step(removal::remove())
        .step(removal::release())
        .build()
}

/// Right after its creation a repository may not be known everywhere at its host: what is missing is looked for again (OPR-03).
pub(crate) fn soon(error: crate::Error) -> Failure {
    match &error {
        crate::Error::Refused { status: 404, .. } => Failure::new(FailureClass::Transient, error.to_string()),
        _ => error.into(),
    }
}

/// What is wrong with parts of a list, of which the others were done: told together.
#[derive(Debug, Default)]
pub(crate) struct Problems(Vec<String>);

impl Problems {
    pub(crate) fn add(&mut self, problem: impl std::fmt::Display) {
        self.0.push(problem.to_string());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn end(self) -> Result<(), Failure> {
        if self.0.is_empty() {
            return Ok(());
        }
        Err(Failure::invalid(self.0.join("; ")))
    }
}
