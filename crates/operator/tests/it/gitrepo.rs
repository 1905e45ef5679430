//! The controller of repositories, at a real API server with a real Gitea and the double of GitLab.

mod ci_variables;
mod deletion;
mod deploy_keys;
mod faults;
mod files;
mod looks;
mod moves;
mod outages;
mod policies;
mod repository;
mod tokens;
mod watches;
mod world;

pub(crate) use world::{KEY, OTHER_KEY, World};
