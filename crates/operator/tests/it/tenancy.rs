//! The controllers of tenants and clusters, at a real API server with controllers, a real Gitea and a real Vault.

mod cluster;
mod deletion;
mod faults;
mod land;
mod live;
mod tenant;
mod tokens;
mod upkeep;

pub(crate) use land::Land;
