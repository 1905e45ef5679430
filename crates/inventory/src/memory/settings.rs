//! Settings.

use async_trait::async_trait;
use evenkeel_core::ClusterId;

use super::{MemoryStore, Transaction};
use crate::{AuditAction, Error, Setting, SettingDefinition, SettingLayers, SettingScope, Settings, Signal};

impl Transaction<'_> {
    fn put_setting(&mut self, scope: &SettingScope, key: &str, value: Option<Setting>) -> Result<(), Error> {
        let target = match scope {
            SettingScope::Default => format!("setting/{key}"),
            SettingScope::Group(group) => format!("setting/{key} of group {group}"),
            SettingScope::Cluster(cluster) => {
                format!(
                    "setting/{key} of cluster {}",
                    self.rows.live_cluster(cluster)?.name
                )
            }
        };
        let place = (scope.to_string(), key.to_owned());
        if self.rows.settings.get(&place) == value.as_ref() {
            return Ok(());
        }
        let detail = serde_json::json!({"value": value});
        match value {
            Some(value) => drop(self.write().settings.insert(place, value)),
            None => drop(self.write().settings.remove(&place)),
        }
        self.audit(AuditAction::PutSetting, &target, &detail);
        self.signal(Signal::SettingChanged);
        Ok(())
    }

    fn effective_setting(&self, cluster: &ClusterId, key: &str) -> Result<Option<Setting>, Error> {
        let group = self.rows.cluster(cluster)?.group.clone();
        let own = SettingScope::Cluster(cluster.clone());
        let scopes = [
            Some(own),
            group.map(SettingScope::Group),
            Some(SettingScope::Default),
        ];
        let value = |scope: SettingScope| self.rows.settings.get(&(scope.to_string(), key.to_owned()));
        Ok(scopes.into_iter().flatten().find_map(value).cloned())
    }
}

#[async_trait]
impl Settings for MemoryStore {
    async fn setting(&self, scope: &SettingScope, key: &str) -> Result<Option<Setting>, Error> {
        self.call("setting", |transaction| {
            let place = (scope.to_string(), key.to_owned());
            Ok(transaction.rows.settings.get(&place).cloned())
        })
        .await
    }

    async fn put_setting(
        &self,
        scope: &SettingScope,
        key: &str,
        value: Option<Setting>,
    ) -> Result<(), Error> {
        let value = SettingDefinition::check_put(scope, key, value.as_ref())?;
        self.call("put_setting", |transaction| {
            transaction.put_setting(scope, key, value)
        })
        .await
    }

    async fn effective_setting(&self, cluster: &ClusterId, key: &str) -> Result<Option<Setting>, Error> {
        self.call("effective_setting", |transaction| {
            transaction.effective_setting(cluster, key)
        })
        .await
    }

    async fn setting_layers(&self) -> Result<SettingLayers, Error> {
        self.call("setting_layers", |transaction| {
            let mut layers = SettingLayers::default();
            for ((scope, key), value) in &transaction.rows.settings {
                if let Some(scope) = SettingScope::from_key(scope) {
                    layers.put(scope, key.clone(), value.clone());
                }
            }
            Ok(layers)
        })
        .await
    }
}
