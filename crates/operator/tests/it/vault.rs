//! The store of secrets, at a real Vault.

mod faults;
mod kubernetes;
mod removal;
mod secrets;

use std::sync::atomic::{AtomicUsize, Ordering};

use evenkeel_core::Sensitive;
use evenkeel_operator::vault::{Engine, Login, SecretPath, Vault, VaultSettings};
use evenkeel_testkit::realparts::Vault as Server;
use reqwest::Method;
use serde_json::{Value, json};

/// An engine of its own, so that tests do not meet.
pub(crate) fn engine(version: Engine) -> String {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let mount = format!("kv-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    let number = match version {
        Engine::V1 => "1",
        Engine::V2 => "2",
    };
    let body = json!({ "type": "kv", "options": { "version": number } });
    call(Method::POST, &format!("sys/mounts/{mount}"), &body);
    mount
}

pub(crate) fn server() -> &'static Server {
    evenkeel_testkit::vault()
}

/// What an administrator does.
pub(crate) fn call(method: Method, path: &str, body: &Value) -> Value {
    server().call(method, path, body).unwrap()
}

pub(crate) fn settings(mount: &str, version: Engine, login: Login) -> VaultSettings {
    VaultSettings {
        mount: mount.to_owned(),
        engine: version,
        ..VaultSettings::new(server().url().parse().unwrap(), login)
    }
}

pub(crate) fn root() -> Login {
    Login::Token(Sensitive::new(server().root_token().to_owned()))
}

/// A store that may do everything.
pub(crate) fn store(mount: &str, version: Engine) -> Vault {
    evenkeel_testkit::install_crypto_provider();
    Vault::new(&settings(mount, version, root())).unwrap()
}

pub(crate) fn path(text: &str) -> SecretPath {
    SecretPath::new(text.split('/')).unwrap()
}

pub(crate) fn secret(text: &str) -> Sensitive<String> {
    Sensitive::new(text.to_owned())
}

/// What Vault itself shows of a secret in an engine of version 2.
pub(crate) fn shown(mount: &str, path: &str) -> Value {
    call(Method::GET, &format!("{mount}/data/{path}"), &Value::Null)["data"].clone()
}
