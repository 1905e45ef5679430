//! Credential plugins: programs that a user's own kubeconfig names, which print credentials (`ExecCredential` of
//! `client.authentication.k8s.io`, KEP-541). Run here and not by the library, which never renews a certificate before it
//! expires, and fails a request when an early renewal of a token fails.

use std::io::{self, IsTerminal as _};
use std::process::Stdio;
use std::time::Duration;

use base64::Engine as _;
use evenkeel_goyaml::{JsonStyle, Numbers, from_yaml, to_json};
use jiff::{SignedDuration, Timestamp};
use kube::config::{AuthInfo, ExecConfig, ExecInteractiveMode};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::timeout;

use crate::Error;

/// How long a plugin may take; a person may have to log in meanwhile.
const LONGEST: Duration = Duration::from_secs(120);
/// Credentials are renewed this long before they expire, or at half their life when that is later.
const MARGIN: SignedDuration = SignedDuration::from_secs(60);
/// Between two tries to renew what expires soon.
pub(super) const AGAIN_AFTER: SignedDuration = SignedDuration::from_secs(10);
const GROUP: &str = "client.authentication.k8s.io/";

/// What a plugin prints.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Printed {
    api_version: String,
    kind: String,
    status: Option<Status>,
}

impl Printed {
    /// JSON or YAML, as client-go's decoder takes both.
    fn read(output: &[u8]) -> Option<Self> {
        if let Ok(printed) = serde_json::from_slice(output) {
            return Some(printed);
        }
        let read = from_yaml(output, Numbers::Exact).ok()?;
        serde_json::from_str(&to_json(&read, JsonStyle::Compact)).ok()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
    expiration_timestamp: Option<Timestamp>,
}

/// What is known of the credentials that a plugin gave.
pub(super) struct Given {
    /// When they expire, where the plugin says so.
    pub(super) expires: Option<Timestamp>,
}

/// Runs the plugin that `user` names, if any, and puts what it gives into its place.
///
/// # Errors
/// [`Error::Credentials`], without the plugin's output, which may hold a token.
pub(super) async fn log_in(user: &mut AuthInfo) -> Result<Option<Given>, Error> {
    // What the kubeconfig itself says comes first, as for kubectl.
    if user.token.is_some() || user.token_file.is_some() || user.username.is_some() {
        return Ok(None);
    }
    let Some(plugin) = user.exec.take() else {
        return Ok(None);
    };
    let status = run(&plugin).await?;
    if let Some(token) = status.token.filter(|token| !token.is_empty()) {
        user.token = Some(token.into());
    }
    if let (Some(certificate), Some(key)) = (status.client_certificate_data, status.client_key_data) {
        let encode = |pem: String| base64::engine::general_purpose::STANDARD.encode(pem);
        user.client_certificate = None;
        user.client_key = None;
        user.client_certificate_data = Some(encode(certificate));
        user.client_key_data = Some(encode(key).into());
    }
    Ok(Some(Given {
        expires: status.expiration_timestamp,
    }))
}

/// When credentials that expire then are to be renewed.
pub(super) fn renewal(expires: Timestamp, now: Timestamp) -> Timestamp {
    let left = expires.duration_since(now);
    if !left.is_positive() {
        return later(now, AGAIN_AFTER);
    }
    later(now, (left / 2).max(left - MARGIN))
}

pub(super) fn later(now: Timestamp, by: SignedDuration) -> Timestamp {
    now.saturating_add(by).unwrap_or(Timestamp::MAX)
}

async fn run(plugin: &ExecConfig) -> Result<Status, Error> {
    let name = plugin
        .command
        .as_deref()
        .filter(|command| !command.is_empty())
        .ok_or_else(|| Error::Kubeconfig {
            field: "exec.command".to_owned(),
            reason: "expected the program to run, found none".to_owned(),
        })?;
    let failed = |what: String| Error::Credentials {
        reason: format!("credential plugin {name} {what}; run it by hand to see why"),
    };
    let mut command = command(name, plugin)?;
    let output = match timeout(LONGEST, command.output()).await {
        Ok(Ok(output)) => output,
        Ok(Err(error)) if error.kind() == io::ErrorKind::NotFound => {
            let hint = plugin.install_hint.as_deref().map(str::trim).unwrap_or_default();
            return Err(failed(format!("is not there ({hint})")));
        }
        Ok(Err(error)) => return Err(failed(format!("cannot be run: {error}"))),
        Err(_) => return Err(failed(format!("gave nothing within {LONGEST:?}"))),
    };
    if !output.status.success() {
        return Err(failed(format!("failed ({})", output.status)));
    }
    let printed =
        Printed::read(&output.stdout).ok_or_else(|| failed("printed no ExecCredential".to_owned()))?;
    if printed.kind != "ExecCredential" || !printed.api_version.starts_with(GROUP) {
        return Err(failed(format!("printed no ExecCredential of {GROUP}")));
    }
    if let Some(asked) = plugin
        .api_version
        .as_ref()
        .filter(|asked| **asked != printed.api_version)
    {
        let got = printed.api_version;
        return Err(failed(format!("printed {got} where the kubeconfig says {asked}")));
    }
    let status = printed
        .status
        .ok_or_else(|| failed("printed an ExecCredential without a status".to_owned()))?;
    let has_token = status.token.as_ref().is_some_and(|token| !token.is_empty());
    match (&status.client_certificate_data, &status.client_key_data) {
        (Some(_), Some(_)) => Ok(status),
        (None, None) if has_token => Ok(status),
        (None, None) => Err(failed("gave neither a token nor a client certificate".to_owned())),
        _ => Err(failed("gave only one of client certificate and key".to_owned())),
    }
}

/// The command as kubectl runs it (client-go's exec authenticator).
fn command(name: &str, plugin: &ExecConfig) -> Result<Command, Error> {
    let mut command = Command::new(name);
    command.kill_on_drop(true);
    command.args(plugin.args.iter().flatten());
    for variable in plugin.env.iter().flatten() {
        if let (Some(name), Some(value)) = (variable.get("name"), variable.get("value")) {
            command.env(name, value);
        }
    }
    let is_terminal = io::stdin().is_terminal();
    let interactive = match plugin.interactive_mode {
        Some(ExecInteractiveMode::Never) => false,
        Some(ExecInteractiveMode::IfAvailable) | None => is_terminal,
        Some(ExecInteractiveMode::Always) if is_terminal => true,
        Some(ExecInteractiveMode::Always) => {
            return Err(Error::Credentials {
                reason: format!("credential plugin {name} needs a terminal as its input; there is none"),
            });
        }
    };
    // What it has to say to the user, such as where to log in or why it fails, is said as by kubectl.
    command.stdout(Stdio::piped()).stderr(Stdio::inherit());
    command.stdin(if interactive {
        Stdio::inherit()
    } else {
        Stdio::null()
    });
    let mut spec = json!({ "interactive": interactive });
    if let Some(cluster) = plugin.cluster.as_ref().filter(|_| plugin.provide_cluster_info) {
        let cluster = serde_json::to_value(cluster)
            .map_err(|error| Error::Bug(format!("a cluster for a credential plugin: {error}")))?;
        if let Value::Object(spec) = &mut spec {
            spec.insert("cluster".to_owned(), cluster);
        }
    }
    let info = json!({"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec});
    command.env("KUBERNETES_EXEC_INFO", info.to_string());
    Ok(command)
}
