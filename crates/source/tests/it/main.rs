//! Sources through their public face: other hosts are servers on loopback, Gitea and Helm the real ones.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod gitea;
mod helm;
mod host;
mod hosts;
mod processes;
mod redirects;
mod registry;
mod repository;
mod signed;
mod tls;
mod world;
