//! Clusters: what is asked for, what is known, how they are.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_core::{
    BrokerStatus, ChangeConsent, ClusterId, ClusterName, ClusterSpec, ClusterState, ComponentName,
    ComponentRevision, ConfigurationVersion, DeleteMode, Error, FieldError, Kubeconfig, KubeconfigFrom,
    OperationId, OperationState, ReconciliationId, Sensitive,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Page, Suspension};

/// The fields of a [`ClusterDocument`] that are no part of the specification.
const KUBECONFIG: &str = "kubeconfig";
const KUBECONFIG_FROM: &str = "kubeconfigFrom";
const CONSENT: &str = "consent";

/// The body of `PUT /v2/clusters/{name}`: a [`ClusterSpec`] and, where it is to change, how the cluster is reached: a
/// `kubeconfig`, or `kubeconfigFrom`, which says where one is read.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterDocument {
    /// What the cluster should run.
    pub spec: ClusterSpec,
    /// How it is reached. Left out, what is stored is kept; the content of a kubeconfig is write-only.
    pub kubeconfig: Option<Kubeconfig>,
    /// What the change may lose. Write-only; needed only by a change that loses it.
    pub consent: BTreeSet<ChangeConsent>,
}

impl ClusterDocument {
    /// Reads a document that was parsed from JSON or YAML.
    ///
    /// # Errors
    /// [`Error::Spec`] with the path of the field that is unknown, missing or of the wrong type.
    pub fn from_value(mut value: Value) -> Result<Self, Error> {
        let kubeconfig = kubeconfig(&mut value)?;
        let consent = match value.as_object_mut().and_then(|fields| fields.remove(CONSENT)) {
            None | Some(Value::Null) => BTreeSet::new(),
            Some(consent) => read_field(CONSENT, consent)?,
        };
        let spec = serde_path_to_error::deserialize(value).map_err(|error| {
            Error::Spec(vec![FieldError::new(
                error.path().to_string(),
                error.inner().to_string(),
            )])
        })?;
        Ok(Self {
            spec,
            kubeconfig,
            consent,
        })
    }

    /// The document as it goes over the wire; it holds the kubeconfig in plain, so it is never printed.
    ///
    /// # Errors
    /// Never for a specification that was read; a [`serde_json::Error`] otherwise.
    pub fn to_value(&self) -> Result<Value, serde_json::Error> {
        let mut value = serde_json::to_value(&self.spec)?;
        if let (Some(fields), Some(kubeconfig)) = (value.as_object_mut(), &self.kubeconfig) {
            let (field, value) = match kubeconfig {
                Kubeconfig::Inline(content) => (KUBECONFIG, Value::String(content.expose().clone())),
                Kubeconfig::From(from) => (KUBECONFIG_FROM, serde_json::to_value(from)?),
            };
            fields.insert(field.to_owned(), value);
        }
        if let Some(fields) = value.as_object_mut().filter(|_| !self.consent.is_empty()) {
            fields.insert(CONSENT.to_owned(), serde_json::to_value(&self.consent)?);
        }
        Ok(value)
    }
}

/// Takes how the cluster is reached out of a document.
fn kubeconfig(document: &mut Value) -> Result<Option<Kubeconfig>, Error> {
    let mut take = |field: &str| {
        let value = document.as_object_mut().and_then(|fields| fields.remove(field));
        value.filter(|value| !value.is_null())
    };
    let refused = |field: &str, message: String| Err(Error::Spec(vec![FieldError::new(field, message)]));
    match (take(KUBECONFIG), take(KUBECONFIG_FROM)) {
        (None, None) => Ok(None),
        (Some(Value::String(content)), None) => Ok(Some(Sensitive::new(content).into())),
        (Some(_), None) => refused(KUBECONFIG, "expected the kubeconfig's content as text".to_owned()),
        (None, Some(from)) => {
            let from: KubeconfigFrom = read_field(KUBECONFIG_FROM, from)?;
            match from.field_errors(KUBECONFIG_FROM) {
                errors if errors.is_empty() => Ok(Some(from.into())),
                errors => Err(Error::Spec(errors)),
            }
        }
        (Some(_), Some(_)) => refused(
            KUBECONFIG_FROM,
            format!("expected one of {KUBECONFIG} and {KUBECONFIG_FROM}, found both"),
        ),
    }
}

/// Reads one field of a document; an error names the whole path.
fn read_field<T: serde::de::DeserializeOwned>(field: &str, value: Value) -> Result<T, Error> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = match error.path().to_string() {
            path if path == "." => field.to_owned(),
            path if path.starts_with('[') => format!("{field}{path}"),
            path => format!("{field}.{path}"),
        };
        Error::Spec(vec![FieldError::new(path, error.inner().to_string())])
    })
}

/// What became of an accepted document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AcceptedChange {
    /// The cluster is new.
    Created,
    /// It has a new configuration version.
    Changed,
    /// It was equal to the newest version.
    Unchanged,
}

/// The answer to every accepted change of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Accepted {
    /// The cluster.
    pub name: ClusterName,
    /// Its id.
    pub id: ClusterId,
    /// The version that is now wanted.
    pub version: ConfigurationVersion,
    /// What became of the document.
    pub change: AcceptedChange,
}

/// One cluster as its owner asked for it; secret values are masked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cluster {
    /// Its id.
    pub id: ClusterId,
    /// The newest configuration version.
    pub version: ConfigurationVersion,
    /// When it was registered.
    pub created: Timestamp,
    /// Whether it is known how to reach it.
    pub has_kubeconfig: bool,
    /// Where its kubeconfig is read; none for one that was sent itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubeconfig_from: Option<KubeconfigFrom>,
    /// What it should run.
    pub spec: ClusterSpec,
    /// How it is.
    pub state: ClusterState,
}

/// One cluster in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSummary {
    /// Its name.
    pub name: ClusterName,
    /// Its id.
    pub id: ClusterId,
    /// Whose it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The group whose settings it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Its labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// How it is.
    pub state: ClusterState,
    /// Why, where there is something to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Since when.
    pub since: Timestamp,
    /// The newest configuration version.
    pub version: ConfigurationVersion,
    /// The version that [`ClusterSummary::state`] is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_version: Option<ConfigurationVersion>,
}

/// Filters and position of `GET /v2/clusters`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListClusters {
    /// Only clusters in this state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<ClusterState>,
    /// Only clusters of this tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Only clusters of this group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Only clusters with this label, written `key=value`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Only clusters whose newest configuration lists this component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<ComponentName>,
    /// How many at most; the server's page size when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Only clusters after this name: [`Page::next`] of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// One page of a list: the clusters, by name.
pub type ClusterPage = Page<ClusterSummary>;

/// How a cluster is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterStatus {
    /// Its name.
    pub name: ClusterName,
    /// Its id.
    pub id: ClusterId,
    /// Differs whenever anything else here differs; for waiting on the next change.
    pub revision: String,
    /// How it is.
    pub state: ClusterState,
    /// The same in the words of the environment broker's contract; `reconcile_error_retryable` and
    /// `delete_error_retryable` are shown to it as `reconciling` and `deleting`.
    pub broker_status: BrokerStatus,
    /// Set while the cluster is suspended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspension: Option<Suspension>,
    /// Why, where there is something to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Since when.
    pub since: Timestamp,
    /// The newest configuration version.
    pub version: ConfigurationVersion,
    /// The version that the state is about; ready never speaks of an older one than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_version: Option<ConfigurationVersion>,
    /// When it was last looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked: Option<Timestamp>,
    /// When it is due again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_due: Option<Timestamp>,
    /// The newest reconciliation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconciliation: Option<ReconciliationId>,
    /// Its components, in the order of their dependencies.
    pub components: Vec<ComponentStatus>,
}

/// How one component of a cluster is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ComponentStatus {
    /// Its name.
    pub name: ComponentName,
    /// How its newest operation is; none before the first.
    #[serde(flatten)]
    pub state: Option<OperationState>,
    /// The newest operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<OperationId>,
    /// Set when a check found it not ready, with the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_ready: Option<String>,
    /// Its revision, as `.Release.Revision`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<ComponentRevision>,
}

/// One configuration version; secret values are masked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Configuration {
    /// Its number.
    pub version: ConfigurationVersion,
    /// When it was accepted.
    pub created: Timestamp,
    /// What it asks for.
    pub spec: ClusterSpec,
}

/// The query of `DELETE /v2/clusters/{name}`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Deletion {
    /// How.
    #[serde(default)]
    pub mode: DeleteMode,
}

/// The body of `POST /v2/clusters/{name}/rollback`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rollback {
    /// The version whose components and labels become the newest version.
    pub to: ConfigurationVersion,
    /// What the change may lose.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub consent: BTreeSet<ChangeConsent>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_field_is_named_by_its_path() {
        let document = serde_json::json!({"name": "c1", "components": [{"name": "web", "chart": "x"}]});
        let text = ClusterDocument::from_value(document).map_err(|error| error.to_string());
        assert!(
            text.as_ref()
                .is_err_and(|text| text.contains("components[0]") && text.contains("chart")),
            "{text:?}"
        );
    }

    #[test]
    fn consent_is_no_part_of_the_specification() -> Result<(), Box<dyn std::error::Error>> {
        let document =
            serde_json::json!({"name": "c1", "components": [], "consent": ["removals", "emptyComponents"]});
        let read = ClusterDocument::from_value(document)?;
        assert_eq!(
            read.consent,
            BTreeSet::from([ChangeConsent::EmptyComponents, ChangeConsent::Removals])
        );
        assert_eq!(
            read.to_value()?["consent"],
            serde_json::json!(["emptyComponents", "removals"])
        );
        let wrong = serde_json::json!({"name": "c1", "consent": ["removals", "everything"]});
        let text = ClusterDocument::from_value(wrong).map_err(|error| error.to_string());
        assert!(
            text.as_ref()
                .is_err_and(|text| text.starts_with("consent[1]: ") && text.contains("emptyComponents")),
            "{text:?}"
        );
        let wrong = serde_json::json!({"name": "c1", "consent": true});
        let text = ClusterDocument::from_value(wrong).map_err(|error| error.to_string());
        assert!(text.is_err_and(|text| text.starts_with("consent: ")));
        Ok(())
    }

    #[test]
    fn the_kubeconfig_is_apart_and_hidden() -> Result<(), Box<dyn std::error::Error>> {
        let document = serde_json::json!({"name": "c1", "kubeconfig": "token: abc"});
        let read = ClusterDocument::from_value(document.clone())?;
        assert!(!format!("{read:?}").contains("abc"));
        assert_eq!(read.to_value()?["kubeconfig"], document["kubeconfig"]);
        Ok(())
    }

    #[test]
    fn a_kubeconfig_is_sent_or_read_elsewhere() -> Result<(), Box<dyn std::error::Error>> {
        for from in [
            serde_json::json!({"secret": {"namespace": "kcp-system", "name": "west", "key": "config"}}),
            serde_json::json!({"gardenerShoot": {"namespace": "garden-dev", "name": "west", "lifetime": "2h"}}),
        ] {
            let document = serde_json::json!({"name": "c1", "components": [], "kubeconfigFrom": from});
            let read = ClusterDocument::from_value(document.clone())?;
            assert!(matches!(read.kubeconfig, Some(Kubeconfig::From(_))));
            assert_eq!(read.to_value()?["kubeconfigFrom"], document["kubeconfigFrom"]);
        }
        for (kubeconfig, from, expected) in [
            (
                serde_json::json!("x"),
                serde_json::json!({"secret": {}}),
                "kubeconfigFrom: expected one of kubeconfig and kubeconfigFrom, found both",
            ),
            (
                Value::Null,
                serde_json::json!({"secret": {}, "gardenerShoot": {"namespace": "g", "name": "s"}}),
                "kubeconfigFrom",
            ),
            (
                Value::Null,
                serde_json::json!({"secret": {"nmae": "west"}}),
                "kubeconfigFrom.secret",
            ),
            (
                Value::Null,
                serde_json::json!({"gardenerShoot": {"namespace": "g", "name": "s", "lifetime": "1m"}}),
                "kubeconfigFrom.gardenerShoot.lifetime: expected a time from 10m to 1d",
            ),
            (
                Value::Null,
                serde_json::json!({"file": {"path": "/etc/passwd"}}),
                "kubeconfigFrom",
            ),
        ] {
            let document =
                serde_json::json!({"name": "c1", "kubeconfig": kubeconfig, "kubeconfigFrom": from});
            let text = ClusterDocument::from_value(document).map_err(|error| error.to_string());
            assert!(
                text.as_ref().is_err_and(|text| text.starts_with(expected)),
                "expected {expected:?}: {text:?}"
            );
        }
        Ok(())
    }
}
