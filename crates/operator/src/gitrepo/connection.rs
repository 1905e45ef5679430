//! The way to a Git host, as a Secret describes it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use evenkeel_core::Sensitive;
use evenkeel_steps::Failure;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;
use reqwest::Url;

use crate::Error;
use crate::frame::version;
use crate::gate::{Gate, GateTerms};
use crate::git::asked::Asked;
use crate::git::{BranchName, GitHost, GitLab, GitLabSettings, Gitea, GiteaSettings, RepoPath};
use crate::remote::host_of;

/// How many Git hosts are kept connected; more than that and all are connected anew.
const HOSTS_MAX: usize = 256;

/// A Git host with all that its Secret says.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    pub(crate) host: Arc<dyn GitHost>,
    /// Where the host's interface is, without a slash at its end.
    pub(crate) endpoint: String,
    /// Which version of its Secret this is.
    pub(crate) version: String,
    /// Its keys, as a `known_hosts` file has them.
    pub(crate) host_keys: Option<String>,
    ssh_host: String,
}

/// Clients of Git hosts, kept from pass to pass so that connections are used again, and so that a host that is down is left alone by
/// all.
#[derive(Debug)]
pub(crate) struct Connections {
    known: Mutex<HashMap<(String, String), Connection>>,
    first_branch: BranchName,
    terms: GateTerms,
}

impl Connections {
    pub(crate) fn new(first_branch: BranchName, terms: GateTerms) -> Self {
        Self {
            known: Mutex::default(),
            first_branch,
            terms,
        }
    }

    /// The host that a Secret speaks of. A Secret that changed is read anew, and its host is called again: somebody mended it.
    pub(crate) fn of(&self, secret: &Secret) -> Result<Connection, Failure> {
        let key = (
            secret.uid().unwrap_or_default(),
            secret.resource_version().unwrap_or_default(),
        );
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(connection) = known.get(&key) {
            return Ok(connection.clone());
        }
        let connection = Connection::new(secret, self)?;
        known.retain(|(uid, _), _| *uid != key.0);
        if known.len() >= HOSTS_MAX {
            known.clear();
        }
        known.insert(key, connection.clone());
        Ok(connection)
    }
}

impl Connection {
    fn new(secret: &Secret, common: &Connections) -> Result<Self, Failure> {
        let name = secret.name_any();
        let invalid =
            |problem: String| Failure::invalid(format!("the Secret {name} cannot be used: {problem}"));
        let required = |key: &str| text(secret, key).ok_or_else(|| invalid(format!("it has no {key}")));
        let endpoint = required("endpoint")?;
        let address: Url = endpoint
            .trim()
            .parse()
            .map_err(|error| invalid(format!("its endpoint {endpoint:?} is no address: {error}")))?;
        if address.host_str().is_none() {
            return Err(invalid(format!("its endpoint {endpoint:?} names no host")));
        }
        let token = Sensitive::new(required("token")?.trim().to_owned());
        let owner = format!("{}/{name}", secret.namespace().unwrap_or_default());
        let gate = Gate::new(host_of(&address), owner, &common.terms);
        let first_branch = common.first_branch.clone();
        let authority = text(secret, "caCertificate").map(String::into_bytes);
        let host: Arc<dyn GitHost> = match text(secret, "provider").as_deref().map(str::trim) {
            None | Some("" | "gitlab") => Arc::new(
                GitLab::new(&GitLabSettings {
                    address: address.clone(),
                    token,
                    authority,
                    first_branch,
                })?
                .behind(gate),
            ),
            Some("gitea" | "forgejo") => Arc::new(
                Gitea::new(&GiteaSettings {
                    address: address.clone(),
                    token,
                    authority,
                    first_branch,
                })?
                .behind(gate),
            ),
            Some(other) => {
                return Err(invalid(format!(
                    "its provider {other:?} is not known: gitlab, gitea or forgejo"
                )));
            }
        };
        let ssh_host = match text(secret, "sshEndpoint").filter(|text| !text.trim().is_empty()) {
            Some(given) => {
                ssh_host(&given).ok_or_else(|| invalid(format!("its sshEndpoint {given:?} names no host")))?
            }
            None => host_of(&address),
        };
        Ok(Self {
            host: Arc::new(Asked(host)),
            version: version(secret),
            endpoint: address.as_str().trim_end_matches('/').to_owned(),
            host_keys: text(secret, "hostKeys").filter(|keys| !keys.is_empty()),
            ssh_host,
        })
    }

    /// Where an address to clone from leads to, if it is one of this host.
    pub(crate) fn place(&self, url: &str) -> Option<RepoPath> {
        let path = url.strip_prefix(&format!("ssh://git@{}/", self.ssh_host))?;
        let (group, name) = path.strip_suffix(".git")?.rsplit_once('/')?;
        RepoPath::new(group, name).ok()
    }

    /// Address to clone a repository from.
    pub(crate) fn url(&self, path: &RepoPath) -> String {
        format!("ssh://git@{}/{path}.git", self.ssh_host)
    }
}

/// The text under a key of a Secret.
pub(crate) fn text(secret: &Secret, key: &str) -> Option<String> {
    let bytes = secret.data.as_ref()?.get(key)?;
    String::from_utf8(bytes.0.clone()).ok()
}

/// The host of what people write for an SSH server: `ssh://user@host:port`, `user@host`, `host`, a path behind it.
fn ssh_host(given: &str) -> Option<String> {
    let given = given.trim();
    let bare = given.split_once("://").map_or(given, |(_, rest)| rest);
    let authority = bare.split('/').next()?;
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = match host.strip_prefix('[') {
        // An address of IPv6 keeps its brackets.
        Some(rest) => format!("[{}]", rest.split_once(']')?.0),
        None => host.split(':').next()?.to_owned(),
    };
    (!host.is_empty()).then_some(host)
}

/// Where the specification wants the repository.
pub(crate) fn wanted_path(path: Option<&str>, name: Option<&str>) -> Result<RepoPath, Error> {
    RepoPath::new(path.unwrap_or_default(), name.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// L30's endpoints, as upstream's tests fix them (§3.4d).
    #[test]
    fn an_ssh_endpoint_is_its_host_however_it_is_written() {
        for (given, host) in [
            ("ssh://git@ssh.example.org:2222", "ssh.example.org"),
            ("ssh.example.org", "ssh.example.org"),
            ("git@ssh.example.org", "ssh.example.org"),
            ("ssh://ssh.example.org/some/path", "ssh.example.org"),
            (" ssh.example.org ", "ssh.example.org"),
            ("ssh://git@[::1]:22/x", "[::1]"),
        ] {
            assert_eq!(ssh_host(given).as_deref(), Some(host), "{given}");
        }
        assert_eq!(ssh_host("ssh://"), None);
    }
}
