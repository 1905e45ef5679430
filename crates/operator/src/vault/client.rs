//! Secrets in Vault's key-value engine, version 1 and 2.

use std::time::Duration;

use async_trait::async_trait;
use reqwest::{Method, StatusCode, Url};
use serde_json::{Value, json};

use super::session::{self, Login, Session};
use super::{Reading, Removal, SecretData, SecretPath, SecretStore, Version};
use crate::Error;
use crate::gate::{Gate, GateTerms};
use crate::remote::{Answer, Call, Reach, Remote, host_of};
use crate::resources::DeletionPolicy;

/// How long one call may take, unless a setting says otherwise.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// How many secrets may lie below a path that is removed. One cluster has one.
const SECRETS_MAX: usize = 1000;

/// How deep they may lie.
const DEPTH_MAX: usize = 16;

/// Version of the key-value engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// Keeps one version, and deletes for good.
    V1,
    /// Keeps several, and can bring back what was deleted.
    #[default]
    V2,
}

/// Which Vault, and how to speak to it.
#[derive(Clone, Debug)]
pub struct VaultSettings {
    /// Its address: `https://vault.example.org:8200`.
    pub address: Url,
    /// The namespace of an enterprise server.
    pub namespace: Option<String>,
    /// Path of the key-value engine.
    pub mount: String,
    /// Its version.
    pub engine: Engine,
    /// How we get a token.
    pub login: Login,
    /// A certificate authority to trust beside the machine's, in PEM.
    pub authority: Option<Vec<u8>>,
    /// How long one call may take.
    pub timeout: Duration,
}

impl VaultSettings {
    /// The engine at `kv` in version 2, as Lieutenant expects it.
    pub fn new(address: Url, login: Login) -> Self {
        Self {
            address,
            namespace: None,
            mount: "kv".to_owned(),
            engine: Engine::V2,
            login,
            authority: None,
            timeout: DEFAULT_TIMEOUT,
        }
    }
}

/// A Vault server. Clones share the token.
#[derive(Clone, Debug)]
pub struct Vault {
    remote: Remote,
    session: Session,
    namespace: Option<String>,
    mount: Vec<String>,
    engine: Engine,
}

impl Vault {
    /// One of these settings. Nothing is asked of it yet.
    ///
    /// # Errors
    /// [`Error::Invalid`] when the settings cannot be used.
    pub fn new(settings: &VaultSettings) -> Result<Self, Error> {
        Self::through(settings, None)
    }

    /// As [`Self::new`]; one that fails, or has had enough, is left alone for a while.
    pub(crate) fn gated(settings: &VaultSettings, terms: &GateTerms) -> Result<Self, Error> {
        let gate = Gate::new(host_of(&settings.address), String::new(), terms);
        Self::through(settings, Some(gate))
    }

    fn through(settings: &VaultSettings, gate: Option<Gate>) -> Result<Self, Error> {
        // The same rules hold for the path of the engine.
        SecretPath::new(settings.mount.split('/'))?;
        let mut remote = Remote::new(&Reach {
            system: "Vault",
            base: &settings.address,
            timeout: settings.timeout,
            authority: settings.authority.as_deref(),
        })?;
        if let Some(gate) = gate {
            remote.behind(gate);
        }
        Ok(Self {
            session: Session::new(remote.clone(), settings.namespace.clone(), settings.login.clone()),
            remote,
            namespace: settings.namespace.clone(),
            mount: settings.mount.split('/').map(str::to_owned).collect(),
            engine: settings.engine,
        })
    }

    /// Calls a path of the engine; `area` is the part of it that version 2 has. A token that Vault takes no more is replaced,
    /// once.
    async fn call(&self, request: &Request<'_>) -> Result<Answer, Error> {
        let lease = self.session.lease().await?;
        let answer = self.send(request, &lease.token).await?;
        if answer.status != StatusCode::FORBIDDEN || self.session.is_known(&lease).await? {
            return Ok(answer);
        }
        let lease = self.session.replace(&lease).await?;
        self.send(request, &lease.token).await
    }

    async fn send(
        &self,
        request: &Request<'_>,
        token: &evenkeel_core::Sensitive<String>,
    ) -> Result<Answer, Error> {
        let area = request.area.filter(|_| self.engine == Engine::V2);
        let mut call = Call {
            doing: &request.doing,
            method: request.method.clone(),
            path: ["v1"]
                .into_iter()
                .chain(self.mount.iter().map(String::as_str))
                .chain(area)
                .chain(request.path.segments())
                .collect(),
            query: Vec::new(),
            headers: Vec::new(),
            body: request.body.clone(),
            timeout: None,
        };
        if request.is_list {
            call.query.push(("list", "true".to_owned()));
        }
        session::headers(&mut call, self.namespace.as_deref(), Some(token));
        self.remote.call(call).await
    }

    /// Names below a path; those of folders end with a slash.
    async fn list(&self, path: &SecretPath) -> Result<Vec<String>, Error> {
        let request = Request {
            is_list: true,
            ..Request::new(
                Method::GET,
                Some("metadata"),
                path,
                format!("list the secrets below {path}"),
            )
        };
        let answer = self.call(&request).await?;
        if is_absence(&answer) {
            return Ok(Vec::new());
        }
        self.succeed(&request.doing, &answer)?;
        let names = answer.body["data"]["keys"].as_array();
        let names = names.ok_or_else(|| self.remote.not_understood(&request.doing, "it holds no list"))?;
        Ok(names
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect())
    }

    /// Whether there is a secret, deleted or not, at exactly that path.
    async fn exists(&self, path: &SecretPath) -> Result<bool, Error> {
        let request = Request::new(
            Method::GET,
            Some("metadata"),
            path,
            format!("look for the secret {path}"),
        );
        let answer = self.call(&request).await?;
        if is_absence(&answer) {
            return Ok(false);
        }
        self.succeed(&request.doing, &answer)?;
        Ok(true)
    }

    /// Deletes a secret with all its versions. One that is gone is as good.
    async fn delete(&self, path: &SecretPath) -> Result<(), Error> {
        let request = Request::new(
            Method::DELETE,
            Some("metadata"),
            path,
            format!("delete the secret {path}"),
        );
        let answer = self.call(&request).await?;
        if is_absence(&answer) {
            return Ok(());
        }
        self.succeed(&request.doing, &answer)
    }

    /// Deletes all versions of a secret so that they can be brought back; whether there was one to delete.
    async fn archive(&self, path: &SecretPath) -> Result<bool, Error> {
        let request = Request::new(
            Method::GET,
            Some("metadata"),
            path,
            format!("look at the versions of the secret {path}"),
        );
        let answer = self.call(&request).await?;
        if is_absence(&answer) {
            return Ok(false);
        }
        self.succeed(&request.doing, &answer)?;
        let versions = answer.body["data"]["versions"].as_object();
        let living: Vec<u64> = versions
            .into_iter()
            .flatten()
            .filter(|(_, version)| {
                version["deletion_time"].as_str().is_none_or(str::is_empty)
                    && !version["destroyed"].as_bool().unwrap_or_default()
            })
            .filter_map(|(number, _)| number.parse().ok())
            .collect();
        if living.is_empty() {
            return Ok(false);
        }
        let request = Request {
            body: Some(json!({ "versions": living })),
            ..Request::new(
                Method::POST,
                Some("delete"),
                path,
                format!("archive the secret {path}"),
            )
        };
        let answer = self.call(&request).await?;
        self.succeed(&request.doing, &answer)?;
        Ok(true)
    }

    fn succeed(&self, doing: &str, answer: &Answer) -> Result<(), Error> {
        if answer.status.is_success() {
            Ok(())
        } else {
            Err(self.remote.refusal(doing, answer))
        }
    }
}

#[async_trait]
impl SecretStore for Vault {
    async fn read(&self, path: &SecretPath) -> Result<Reading, Error> {
        let request = Request::new(Method::GET, Some("data"), path, format!("read the secret {path}"));
        let answer = self.call(&request).await?;
        let (data, version) = match self.engine {
            Engine::V1 => (&answer.body["data"], Version::Uncounted),
            Engine::V2 => {
                let outer = &answer.body["data"];
                // A deleted secret has no data, but it has a number, and a write over it has to name that.
                let number = outer["metadata"]["version"].as_u64().unwrap_or_default();
                (&outer["data"], Version::Numbered(number))
            }
        };
        if is_absence(&answer) {
            return Ok(Reading { data: None, version });
        }
        self.succeed(&request.doing, &answer)?;
        let data = data
            .as_object()
            .ok_or_else(|| self.remote.not_understood(&request.doing, "it holds no data"))?;
        Ok(Reading {
            data: Some(SecretData::from_map(data.clone())),
            version,
        })
    }

    async fn write(&self, path: &SecretPath, data: &SecretData, over: Version) -> Result<(), Error> {
        let body = match (self.engine, over) {
            (Engine::V1, _) => data.to_value(),
            (Engine::V2, Version::Numbered(number)) => {
                json!({ "data": data.to_value(), "options": { "cas": number } })
            }
            (Engine::V2, Version::Uncounted) => json!({ "data": data.to_value() }),
        };
        let request = Request {
            body: Some(body),
            ..Request::new(
                Method::POST,
                Some("data"),
                path,
                format!("write the secret {path}"),
            )
        };
        let answer = self.call(&request).await?;
        let is_conflict = answer.status == StatusCode::BAD_REQUEST
            && answer.body["errors"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .any(|text| text.contains("check-and-set parameter did not match"));
        if is_conflict {
            return Err(Error::Conflict { doing: request.doing });
        }
        self.succeed(&request.doing, &answer)
    }

    async fn below(&self, path: &SecretPath) -> Result<Vec<SecretPath>, Error> {
        let too_many = |problem: String| Error::Invalid {
            what: format!("the path {path} in Vault"),
            problem,
        };
        let mut found = Vec::new();
        if self.exists(path).await? {
            found.push(path.clone());
        }
        let mut folders = vec![path.clone()];
        while let Some(folder) = folders.pop() {
            if folder.depth() > DEPTH_MAX {
                return Err(too_many(format!("secrets lie deeper below it than {DEPTH_MAX}")));
            }
            for name in self.list(&folder).await? {
                match name.strip_suffix('/') {
                    Some(name) => folders.push(folder.child(name)?),
                    None => found.push(folder.child(&name)?),
                }
            }
            if found.len() + folders.len() > SECRETS_MAX {
                return Err(too_many(format!("more than {SECRETS_MAX} secrets lie below it")));
            }
        }
        found.sort();
        Ok(found)
    }

    async fn remove(&self, path: &SecretPath, policy: DeletionPolicy) -> Result<Removal, Error> {
        let secrets = self.below(path).await?;
        let mut removal = Removal { removed: 0, kept: 0 };
        for secret in &secrets {
            match (policy, self.engine) {
                (DeletionPolicy::Delete, _) => {
                    self.delete(secret).await?;
                    removal.removed += 1;
                }
                (DeletionPolicy::Archive, Engine::V2) => {
                    if self.archive(secret).await? {
                        removal.removed += 1;
                    }
                }
                (DeletionPolicy::Archive, Engine::V1) | (DeletionPolicy::Retain, _) => removal.kept += 1,
            }
        }
        Ok(removal)
    }
}

/// One request to the engine.
struct Request<'a> {
    method: Method,
    /// The part of the engine that is meant; version 1 has none.
    area: Option<&'static str>,
    path: &'a SecretPath,
    doing: String,
    is_list: bool,
    body: Option<Value>,
}

impl<'a> Request<'a> {
    fn new(method: Method, area: Option<&'static str>, path: &'a SecretPath, doing: String) -> Self {
        Self {
            method,
            area,
            path,
            doing,
            is_list: false,
            body: None,
        }
    }
}

/// Whether there is nothing. Vault also answers 404 where it has no engine at all, and then says so.
fn is_absence(answer: &Answer) -> bool {
    answer.status == StatusCode::NOT_FOUND && answer.body["errors"].as_array().is_none_or(Vec::is_empty)
}
