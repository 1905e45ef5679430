//! Settings in three layers: a cluster's own, else its group's, else the default. A value has a type, a range and, where
//! it is a text, a pattern; nothing of it is ever evaluated.

mod definition;

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use async_trait::async_trait;
use evenkeel_core::ClusterId;
use serde::{Deserialize, Serialize};

use crate::{Error, RowFailure};

pub use definition::{SETTINGS, SettingDefinition, SettingKind, SettingLayer};

/// Whom a setting is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingScope {
    /// Everyone, unless a group or cluster says otherwise.
    Default,
    /// The clusters of one group.
    Group(String),
    /// One cluster.
    Cluster(ClusterId),
}

impl fmt::Display for SettingScope {
    /// As the database has it: `default`, `group:<name>`, `cluster:<id>`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Group(group) => write!(f, "group:{group}"),
            Self::Cluster(cluster) => write!(f, "cluster:{cluster}"),
        }
    }
}

impl SettingScope {
    /// The layer it belongs to.
    pub fn layer(&self) -> SettingLayer {
        match self {
            Self::Default => SettingLayer::Default,
            Self::Group(_) => SettingLayer::Group,
            Self::Cluster(_) => SettingLayer::Cluster,
        }
    }

    pub(crate) fn from_key(key: &str) -> Option<Self> {
        match key.split_once(':') {
            None => (key == "default").then_some(Self::Default),
            Some(("group", group)) => Some(Self::Group(group.to_owned())),
            Some(("cluster", id)) => id.parse().ok().map(Self::Cluster),
            Some(_) => None,
        }
    }
}

/// The value of a setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Setting {
    /// On or off.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// A text, also durations.
    Text(String),
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean(value) => write!(f, "{value}"),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Text(value) => f.write_str(value),
        }
    }
}

/// All settings that were set, to be asked without the database.
#[derive(Debug, Default)]
pub struct SettingLayers {
    default: BTreeMap<String, Setting>,
    groups: HashMap<String, BTreeMap<String, Setting>>,
    clusters: HashMap<ClusterId, BTreeMap<String, Setting>>,
    /// The rows that cannot be read or are not valid (any more): the layer below shows.
    pub failed: Vec<RowFailure>,
}

impl SettingLayers {
    pub(crate) fn put(&mut self, scope: SettingScope, key: String, value: Setting) {
        let layer = match scope {
            SettingScope::Default => &mut self.default,
            SettingScope::Group(group) => self.groups.entry(group).or_default(),
            SettingScope::Cluster(cluster) => self.clusters.entry(cluster).or_default(),
        };
        layer.insert(key, value);
    }

    /// The value that counts for a cluster of a group, and the layer it comes from. Without cluster and group: for
    /// everyone else.
    pub fn effective(
        &self,
        cluster: Option<&ClusterId>,
        group: Option<&str>,
        key: &str,
    ) -> Option<(&Setting, SettingLayer)> {
        let own = cluster.and_then(|cluster| self.clusters.get(cluster)?.get(key));
        let groups = || group.and_then(|group| self.groups.get(group)?.get(key));
        own.map(|value| (value, SettingLayer::Cluster))
            .or_else(|| groups().map(|value| (value, SettingLayer::Group)))
            .or_else(|| self.default.get(key).map(|value| (value, SettingLayer::Default)))
    }

    /// Whether any setting at all counts for such a cluster beyond what counts for everyone else; for everyone else:
    /// whether any is set.
    pub fn is_set_for(&self, cluster: Option<&ClusterId>, group: Option<&str>) -> bool {
        match (cluster, group) {
            (None, None) => !self.default.is_empty(),
            _ => {
                cluster.is_some_and(|cluster| self.clusters.contains_key(cluster))
                    || group.is_some_and(|group| self.groups.contains_key(group))
            }
        }
    }

    /// Whether some group has settings of its own.
    pub fn has_groups(&self) -> bool {
        !self.groups.is_empty()
    }
}

/// The settings of the fleet.
#[async_trait]
pub trait Settings: Send + Sync {
    /// The value at exactly this layer.
    ///
    /// # Errors
    /// [`Error::Unreadable`].
    async fn setting(&self, scope: &SettingScope, key: &str) -> Result<Option<Setting>, Error>;

    /// Sets the value at this layer; none removes it, so that the layer below shows. A value is kept as it is usually
    /// written: `90m` is `1h30m`.
    ///
    /// # Errors
    /// [`Error::Setting`] for a name or value that is not valid, [`Error::NotFound`] for a cluster that does not exist;
    /// [`Error::Database`].
    async fn put_setting(&self, scope: &SettingScope, key: &str, value: Option<Setting>)
    -> Result<(), Error>;

    /// The value that counts for a cluster: its own, else its group's, else the default.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the cluster does not exist; [`Error::Unreadable`].
    async fn effective_setting(&self, cluster: &ClusterId, key: &str) -> Result<Option<Setting>, Error>;

    /// Everything that was set.
    ///
    /// # Errors
    /// [`Error::Database`].
    async fn setting_layers(&self) -> Result<SettingLayers, Error>;
}
