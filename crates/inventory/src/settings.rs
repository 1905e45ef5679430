//! Settings: typed values in layers, default < group < cluster.

use async_trait::async_trait;
use evenkeel_core::ClusterId;
use serde::{Deserialize, Serialize};

use crate::Error;

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

/// The settings of the fleet.
#[async_trait]
pub trait Settings: Send + Sync {
    /// The value at exactly this layer.
    ///
    /// # Errors
    /// [`Error::Unreadable`].
    async fn setting(&self, scope: &SettingScope, key: &str) -> Result<Option<Setting>, Error>;

    /// Sets the value at this layer; none removes it, so that the layer below shows.
    ///
    /// # Errors
    /// [`Error::Database`].
    async fn put_setting(&self, scope: &SettingScope, key: &str, value: Option<Setting>)
    -> Result<(), Error>;

    /// The value that counts for a cluster: its own, else its group's, else the default.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the cluster does not exist; [`Error::Unreadable`].
    async fn effective_setting(&self, cluster: &ClusterId, key: &str) -> Result<Option<Setting>, Error>;
}
