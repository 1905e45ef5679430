//! What the operator notes about a repository, in an annotation of its object: which project is ours, what was begun, what we
//! added. It survives the loss of a status (B19).

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use evenkeel_steps::{Failure, Intent, Intents, Record as Begun};
use jiff::Timestamp;
use kube::{Resource as _, ResourceExt as _};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::frame::{Access, Identity, TENANT_LABEL};
use crate::git::{Project, ProjectId};
use crate::resources::GitRepo;

/// The annotation.
pub(crate) const ANNOTATION: &str = "evenkeel.dev/record";

/// What is noted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Record {
    /// The project that is ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) project: Option<OwnProject>,
    /// A creation that was begun, and of which nobody knows how it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) creating: Option<Creating>,
    /// Where the project is being moved: it may be there, on its way, or still where it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) moving: Option<String>,
    /// Titles of the deploy keys that we added.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) deploy_keys: BTreeSet<String>,
    /// Name of the Secret in which we keep an access token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) token_secret: Option<String>,
}

/// A project at a host. The number alone says nothing at another host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OwnProject {
    pub(crate) id: u64,
    pub(crate) path: String,
    pub(crate) endpoint: String,
}

/// A creation that was begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Creating {
    pub(crate) nonce: String,
    pub(crate) at: Timestamp,
}

/// The metadata that this controller writes: label and record. Steps note one after another; nobody else writes these fields.
#[derive(Debug)]
pub(crate) struct Notes {
    access: Access,
    identity: Identity,
    label: Option<String>,
    /// What the object has.
    stored: Mutex<Stored>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Stored {
    label: Option<String>,
    record: Record,
}

impl OwnProject {
    pub(crate) fn new(project: &Project, endpoint: &str) -> Self {
        Self {
            id: project.id.0,
            path: project.path.to_string(),
            endpoint: endpoint.to_owned(),
        }
    }

    /// Whether it is this one. The host may have got another address, or the project another place; not both.
    pub(crate) fn is(&self, project: &Project, endpoint: &str) -> bool {
        self.id == project.id.0 && (self.endpoint == endpoint || self.is_at(project))
    }

    /// Whether it is where it was when it was noted.
    pub(crate) fn is_at(&self, project: &Project) -> bool {
        self.path.eq_ignore_ascii_case(&project.path.to_string())
    }

    pub(crate) fn id(&self) -> ProjectId {
        ProjectId(self.id)
    }
}

impl Record {
    /// The project is ours, and nothing is open.
    pub(crate) fn settle(&mut self, own: OwnProject) {
        self.project = Some(own);
        self.creating = None;
        self.moving = None;
    }
}

impl Notes {
    pub(crate) fn of(object: &GitRepo, access: Access) -> Self {
        let record = object
            .annotations()
            .get(ANNOTATION)
            // What somebody broke says nothing; ownership is then proved by the address, as for the predecessor's objects.
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default();
        let tenant = object.spec.tenant_ref.as_ref().map(|tenant| tenant.name.clone());
        Self {
            access,
            identity: Identity::of(object),
            label: tenant.filter(|name| !name.is_empty()),
            stored: Mutex::new(Stored {
                label: object.labels().get(TENANT_LABEL).cloned(),
                record,
            }),
        }
    }

    /// What is noted.
    pub(crate) fn record(&self) -> Record {
        self.stored().record.clone()
    }

    /// Whether the label says which tenant it is.
    pub(crate) fn is_labelled(&self) -> bool {
        self.label.is_none() || self.stored().label == self.label
    }

    /// Notes a change, durably, and writes the label along. Writes nothing when all is noted.
    pub(crate) async fn write(&self, change: impl FnOnce(&mut Record)) -> Result<(), Failure> {
        let present = self.stored().clone();
        let mut record = present.record.clone();
        change(&mut record);
        let wanted = Stored {
            label: self.label.clone().or_else(|| present.label.clone()),
            record,
        };
        if wanted == present {
            return Ok(());
        }
        let text = serde_json::to_string(&wanted.record)
            .map_err(|error| Failure::bug(format!("the record cannot be written: {error}")))?;
        let mut metadata = json!({
            "name": self.identity.name, "namespace": self.identity.namespace, "uid": self.identity.uid,
        });
        if wanted.record != Record::default() {
            metadata["annotations"] = json!({ ANNOTATION: text });
        }
        if let Some(label) = &self.label {
            metadata["labels"] = json!({ TENANT_LABEL: label });
        }
        let fields = json!({
            "apiVersion": GitRepo::api_version(&()), "kind": GitRepo::kind(&()), "metadata": metadata,
        });
        self.access
            .apply::<GitRepo>(&self.identity.namespace, &self.identity.name, &fields)
            .await?;
        *self.stored() = wanted;
        Ok(())
    }

    fn stored(&self) -> std::sync::MutexGuard<'_, Stored> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The creation of the project, which must not happen twice.
pub(crate) struct Creation<'a> {
    pub(crate) notes: &'a Notes,
    pub(crate) endpoint: &'a str,
}

impl Intents for Creation<'_> {
    type Receipt = Project;

    /// A project that is known was looked for before: who comes here wants a new one.
    async fn look(&self, operation: &str) -> Result<Begun<Project>, Failure> {
        Ok(match self.notes.record().creating {
            Some(creating) => Begun::Open(Intent {
                operation: operation.to_owned(),
                nonce: creating.nonce,
                at: creating.at,
            }),
            None => Begun::Nothing,
        })
    }

    async fn begin(&self, intent: &Intent) -> Result<(), Failure> {
        let creating = Creating {
            nonce: intent.nonce.clone(),
            at: intent.at,
        };
        self.notes.write(|record| record.creating = Some(creating)).await
    }

    async fn finish(&self, _: &Intent, project: &Project) -> Result<(), Failure> {
        let own = OwnProject::new(project, self.endpoint);
        self.notes.write(|record| record.settle(own)).await
    }
}
