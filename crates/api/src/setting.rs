//! Settings in three layers.

use evenkeel_core::ClusterName;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One setting and the value that counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// The value that counts for whom was asked; none when nobody set one: then each process counts as it was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// The layer the value comes from: `default`, `group` or `cluster`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer: Option<String>,
    /// What a value may be, for people.
    pub expected: String,
    /// The narrowest layer that may set it.
    pub finest: String,
    /// What it is for.
    pub about: String,
}

/// Whom a setting is for: a cluster, a group, or everyone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SettingFor {
    /// One cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterName>,
    /// The clusters of one group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

/// The body of `PUT /v2/settings/{name}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PutSetting {
    /// `true` or `false`, a whole number, or a text; times as `1h30m`.
    pub value: Value,
}
