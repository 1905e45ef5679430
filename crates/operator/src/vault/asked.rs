//! A store whose callers say what they are about to ask of it (E2, E14).

use std::sync::Arc;

use async_trait::async_trait;
use evenkeel_steps::Permission;

use super::{Reading, Removal, SecretData, SecretPath, SecretStore, Version};
use crate::Error;
use crate::resources::DeletionPolicy;

/// How permissions call the store, and what is in it.
const VAULT: &str = "vault";
const SECRETS: &str = "secrets";

/// A store behind the question whether the step that calls it declared that.
#[derive(Debug)]
pub(crate) struct Asked(pub(crate) Arc<dyn SecretStore>);

/// Keeping a secret.
pub(crate) fn may_keep() -> [Permission; 2] {
    [
        Permission::read(VAULT, "read", SECRETS),
        Permission::write(VAULT, "write", SECRETS),
    ]
}

/// Taking secrets away.
pub(crate) fn may_remove() -> [Permission; 2] {
    [
        Permission::read(VAULT, "list", SECRETS),
        Permission::write(VAULT, "remove", SECRETS),
    ]
}

fn ask(verb: &str) -> Result<(), Error> {
    evenkeel_steps::ask(VAULT, verb, SECRETS).map_err(|failure| Error::Undeclared {
        problem: failure.message().to_owned(),
    })
}

#[async_trait]
impl SecretStore for Asked {
    async fn read(&self, path: &SecretPath) -> Result<Reading, Error> {
        ask("read")?;
        self.0.read(path).await
    }

    async fn write(&self, path: &SecretPath, data: &SecretData, over: Version) -> Result<(), Error> {
        ask("write")?;
        self.0.write(path, data, over).await
    }

    async fn below(&self, path: &SecretPath) -> Result<Vec<SecretPath>, Error> {
        ask("list")?;
        self.0.below(path).await
    }

    async fn remove(&self, path: &SecretPath, policy: DeletionPolicy) -> Result<Removal, Error> {
        ask("remove")?;
        self.0.remove(path, policy).await
    }
}
