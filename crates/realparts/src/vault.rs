//! A Vault server: the secret store of the operator, for tests.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use reqwest::Method;
use serde_json::Value;

use crate::loopback::{Body, Credentials, Failure, request};
use crate::supervisor::{Ending, Server};
use crate::unprivileged::Instance;
use crate::{Error, binaries, ports};

/// How long a start may take on a busy machine. An idle one needs a second.
const START_BOUND: Duration = Duration::from_secs(90);

/// How often a start is tried again because another process took the port first.
const PORT_TRIES: usize = 5;

/// The token that may do everything. It protects nothing: server and data end with the test.
const ROOT_TOKEN: &str = "evenkeel-root";

/// A running Vault on loopback, unsealed, in memory, without TLS. It has a key-value engine of version 2 at `secret` and
/// forgets everything when dropped.
#[derive(Debug)]
pub struct Vault {
    server: Server,
    port: u16,
}

impl Vault {
    /// Starts a server and waits until it answers.
    ///
    /// # Errors
    /// When the binary is missing, or it does not start; with the last lines of its log.
    pub fn start() -> Result<Self, Error> {
        let binary = binaries::vault_binary()?;
        let mut tries = 0;
        loop {
            tries += 1;
            match Self::start_on(&binary, ports::free()?) {
                Err(Error::Start { last_lines, .. })
                    if last_lines.contains("address already in use") && tries < PORT_TRIES => {}
                result => return result,
            }
        }
    }

    fn start_on(binary: &Path, port: u16) -> Result<Self, Error> {
        let instance = Instance::new("Vault", "ek-vault-")?;
        let mut server = match launch(&instance, binary, port) {
            Ok(server) => server,
            Err(error) => {
                instance.remove();
                return Err(error);
            }
        };
        server.wait_until("ready", START_BOUND, || {
            // 200 says that it is initialized, unsealed and active.
            let answer = request(
                port,
                Method::GET,
                "/v1/sys/health",
                &Credentials::None,
                Body::None,
            );
            Ok(answer.is_ok_and(|(status, _)| status == 200))
        })?;
        Ok(Self { server, port })
    }

    /// Its address: `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The token that may do everything.
    pub fn root_token(&self) -> &str {
        ROOT_TOKEN
    }

    /// The log file, for as long as the server runs.
    pub fn log(&self) -> &Path {
        self.server.log()
    }

    /// Calls the HTTP interface with the root token. `path` is what follows `/v1/`; a null body is none. Gives back the JSON
    /// of the answer, null where there is none.
    ///
    /// # Errors
    /// [`Error::Refused`] when the answer is no success, [`Error::Http`] when there is none.
    pub fn call(&self, method: Method, path: &str, body: &Value) -> Result<Value, Error> {
        let doing = format!("{method} {path} at Vault");
        let credentials = Credentials::Header("X-Vault-Token", ROOT_TOKEN.to_owned());
        let body = if body.is_null() {
            Body::None
        } else {
            Body::Json(body)
        };
        let (status, answer) = request(self.port, method, &format!("/v1/{path}"), &credentials, body)
            .map_err(|failure| match failure {
                Failure::Io(error) => error,
                Failure::Http(source) => Error::Http {
                    doing: doing.clone(),
                    source,
                },
            })?;
        if !(200..300).contains(&status) {
            return Err(Error::Refused {
                server: "Vault",
                doing,
                status,
                answer,
            });
        }
        Ok(serde_json::from_str(&answer).unwrap_or_default())
    }
}

/// Starts the server in a home of its own, in which it would leave a token otherwise.
fn launch(instance: &Instance, binary: &Path, port: u16) -> Result<Server, Error> {
    let part = instance.reach(binary.parent().unwrap_or(binary))?;
    let mut command = Command::new(part.join("vault"));
    command.args(["-dev", "-dev-no-store-token"]);
    command.arg(format!("-dev-root-token-id={ROOT_TOKEN}"));
    command.arg(format!("-dev-listen-address=127.0.0.1:{port}"));
    command
        .env("HOME", &instance.folder)
        .env("VAULT_DISABLE_MLOCK", "true");
    Server::start("vault", &command, &instance.folder, Ending::Kill, instance.user)
}
