//! What a pass over a repository works on.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use evenkeel_steps::{Failure, Predicate};
use evenkeel_telemetry::Tasks;
use futures::{StreamExt as _, future, stream};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;

use super::connection::{Connection, Connections};
use super::controller::GitRepoSettings;
use super::record::Notes;
use crate::frame::{Access, Claim, Claimable, FINALIZER, Looks, Snapshot, is_orphaned, version};
use crate::git::BlobDigest;
use crate::resources::{CreationPolicy, DeletionPolicy, GitRepo, GitRepoTemplate, RepoType};

/// Annotation of a Secret that lets repositories of other namespaces use it: their names, separated by commas, or `*`.
const ALLOWED_NAMESPACES: &str = "evenkeel.dev/allowed-namespaces";

/// Annotation with the paths of template files that are kept as the specification has them, in a JSON list. All others are
/// written once.
pub(crate) const SYNCED_FILES: &str = "evenkeel.dev/synced-files";

/// How many Secrets of one object are read at once.
const READS_AT_ONCE: usize = 8;

/// The most values of variables that are remembered; more than that and all are set once more.
const REMEMBERED_MAX: usize = 100_000;

/// What all passes share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) access: Access,
    pub(crate) settings: GitRepoSettings,
    pub(crate) tasks: Tasks,
    pub(crate) connections: Connections,
    pub(crate) values: Values,
}

/// Digests of values that a host took and does not show: by uid of the object and name of the variable.
#[derive(Debug, Default)]
pub(crate) struct Values(Mutex<HashMap<(String, String), BlobDigest>>);

impl Values {
    pub(crate) fn is(&self, uid: &str, name: &str, value: &str) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (uid.to_owned(), name.to_owned());
        known.get(&key) == Some(&BlobDigest::of(value.as_bytes()))
    }

    pub(crate) fn remember(&self, uid: &str, name: &str, value: &str) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED_MAX {
            known.clear();
        }
        let key = (uid.to_owned(), name.to_owned());
        known.insert(key, BlobDigest::of(value.as_bytes()));
    }

    fn forget(&self, uid: &str) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(of, _), _| of != uid);
    }
}

/// A repository as one pass sees it.
#[derive(Debug)]
pub(crate) struct RepoState {
    pub(crate) object: GitRepo,
    pub(crate) uid: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// The way to the host, or why there is none.
    pub(crate) connection: Result<Connection, Failure>,
    /// Every Secret of the namespace that matters, or that there is none, or why it cannot be read.
    secrets: BTreeMap<String, Result<Option<Secret>, Failure>>,
    pub(crate) notes: Notes,
    pub(crate) looks: Looks,
    pub(crate) shared: Arc<Shared>,
}

impl Snapshot for RepoState {
    type Object = GitRepo;

    fn object(&self) -> &GitRepo {
        &self.object
    }
}

impl Claimable for RepoState {
    fn access(&self) -> &Access {
        &self.shared.access
    }

    fn claim(&self) -> Option<Claim> {
        Claim::of(&self.object, &[FINALIZER], self.shared.settings.protect, None)
    }
}

impl RepoState {
    pub(crate) async fn gather(object: GitRepo, shared: Arc<Shared>) -> Result<Self, Failure> {
        let namespace = object.namespace().unwrap_or_default();
        let name = object.name_any();
        let access = &shared.access;
        let notes = Notes::of(&object, access.clone());
        let mut names = BTreeSet::new();
        let template = &object.spec.template;
        let is_managed = template.repo_type != Some(RepoType::Unmanaged);
        if is_managed {
            let referred = template
                .ci_variables
                .iter()
                .filter_map(|variable| variable.value_from.as_ref()?.secret_key_ref.as_ref());
            names.extend(referred.map(|key| key.name.clone()));
            let pairs = template.generated_deploy_keys.keys();
            names.extend(pairs.map(|pair| pair_secret(&name, pair)));
            let status = object.status.as_ref();
            let made = status
                .into_iter()
                .flat_map(|status| status.generated_deploy_keys.values());
            names.extend(made.filter_map(|key| Some(key.secret_ref.as_ref()?.name.clone())));
            names.extend(token_secret(template).map(str::to_owned));
            names.extend(notes.record().token_secret);
        }
        names.remove("");
        let secrets = stream::iter(names)
            .map(|secret| {
                let namespace = &namespace;
                async move {
                    let found = access.find::<Secret>(namespace, &secret).await;
                    (secret, found)
                }
            })
            .buffer_unordered(READS_AT_ONCE)
            .collect();
        let connection = async {
            if is_managed {
                connect(&object, &namespace, &shared).await
            } else {
                Err(Failure::invalid("an unmanaged repository has no host"))
            }
        };
        let (secrets, connection) = future::join(secrets, connection).await;
        let looks = object.status.as_ref().map(|status| &status.looks);
        let settings = &shared.settings;
        Ok(Self {
            looks: Looks::new(looks, settings.interval, settings.remember),
            uid: object.uid().unwrap_or_default(),
            namespace,
            name,
            connection,
            secrets,
            notes,
            object,
            shared,
        })
    }

    pub(crate) fn template(&self) -> &GitRepoTemplate {
        &self.object.spec.template
    }

    /// A Secret as it was when the pass began.
    pub(crate) fn secret(&self, name: &str) -> Result<Option<&Secret>, Failure> {
        match self.secrets.get(name) {
            Some(Ok(secret)) => Ok(secret.as_ref()),
            Some(Err(failure)) => Err(failure.clone()),
            None => Ok(None),
        }
    }

    /// Which version of a Secret that was; none if there is none.
    pub(crate) fn secret_version(&self, name: &str) -> Option<String> {
        self.secret(name).ok().flatten().map(version)
    }

    pub(crate) fn description(&self) -> &str {
        self.template().display_name.as_deref().unwrap_or_default()
    }

    pub(crate) fn creation_policy(&self) -> CreationPolicy {
        let own = self.template().creation_policy;
        own.unwrap_or(self.shared.settings.creation_policy)
    }

    pub(crate) fn deletion_policy(&self) -> DeletionPolicy {
        let own = self.template().deletion_policy;
        own.unwrap_or(self.shared.settings.deletion_policy)
    }

    /// Whether the annotation lets the repository be left behind.
    pub(crate) fn may_orphan(&self) -> bool {
        is_orphaned(&self.object)
    }

    /// Name of the Secret that is to hold an access token.
    pub(crate) fn token_secret(&self) -> Option<&str> {
        token_secret(self.template())
    }

    /// Forgets what is remembered of an object that goes.
    pub(crate) fn forget(&self) {
        self.shared.values.forget(&self.uid);
    }
}

/// Whether the operator looks after the repository: every step that speaks to the host asks this (A5).
pub(crate) fn managed() -> Predicate<RepoState> {
    Predicate::new("managed", |state: &RepoState| {
        state.template().repo_type != Some(RepoType::Unmanaged)
    })
}

fn token_secret(template: &GitRepoTemplate) -> Option<&str> {
    let name = template.access_token.as_ref()?.secret_ref.as_deref()?;
    (!name.is_empty()).then_some(name)
}

/// Name of the Secret with a key pair of our making.
pub(crate) fn pair_secret(repository: &str, pair: &str) -> String {
    format!("{repository}-deploy-key-{pair}")
}

async fn connect(object: &GitRepo, namespace: &str, shared: &Shared) -> Result<Connection, Failure> {
    let reference = object.spec.template.api_secret_ref.as_ref();
    let name = reference
        .and_then(|reference| reference.name.as_deref())
        .filter(|name| !name.is_empty())
        .ok_or_else(|| {
            Failure::invalid("spec.apiSecretRef.name is missing: name the Secret of the Git host")
        })?;
    let home = reference
        .and_then(|reference| reference.namespace.as_deref())
        .filter(|home| !home.is_empty())
        .unwrap_or(namespace);
    let secret = shared.access.find::<Secret>(home, name).await?;
    let secret = secret.ok_or_else(|| {
        Failure::invalid(format!(
            "there is no Secret {home}/{name}, which spec.apiSecretRef names"
        ))
    })?;
    // B24: who may write here could otherwise use any Secret that the operator can read.
    if home != namespace {
        let allowed = secret.annotations().get(ALLOWED_NAMESPACES);
        let is_allowed = allowed.is_some_and(|allowed| {
            let mut names = allowed.split(',').map(str::trim);
            names.any(|name| name == "*" || name == namespace)
        });
        if !is_allowed {
            return Err(Failure::forbidden(format!(
                "the Secret {home}/{name} is not for this namespace: annotate it with {ALLOWED_NAMESPACES}: {namespace}"
            )));
        }
    }
    shared.connections.of(&secret)
}
