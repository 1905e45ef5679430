//! Settings.

use async_trait::async_trait;
use evenkeel_core::ClusterId;

use super::SqlStore;
use super::lock::Lock;
use super::rows::has_nul;
use crate::sql::{Row, database, query, query_as, query_scalar, repeating};
use crate::{
    AuditAction, Error, RowFailure, Setting, SettingDefinition, SettingLayers, SettingScope, Settings, Signal,
};

const READING: &str = "reading settings";
/// All rows of the table, some at a time.
pub(super) const AFTER: &str =
    "SELECT scope, key, value FROM settings WHERE (scope, key) > ($1, $2) ORDER BY scope, key LIMIT $3";
/// How many rows are read at a time.
const ROWS: i64 = 1_000;

/// A value as it is kept. What this release does not know or take is an error of its row.
fn read(scope: &SettingScope, key: &str, json: &str) -> Result<Setting, Error> {
    let unreadable = |reason: String| Error::Unreadable {
        table: "settings",
        column: "value",
        row: format!("{scope}/{key}"),
        reason,
    };
    let value: Setting = serde_json::from_str(json)
        .map_err(|_| unreadable("it is no boolean, whole number or text".to_owned()))?;
    SettingDefinition::check(scope, key, &value).map_err(|error| unreadable(error.to_string()))
}

impl SqlStore {
    /// One try.
    async fn put_setting_once(
        &self,
        scope: &SettingScope,
        key: &str,
        value: Option<&Setting>,
    ) -> Result<(), Error> {
        let doing = "writing a setting";
        let place = scope.to_string();
        let mut transaction = self.write(doing).await?;
        let mut target = format!("setting/{key}");
        match scope {
            SettingScope::Default => {}
            SettingScope::Group(group) => target = format!("{target} of group {group}"),
            SettingScope::Cluster(cluster) => {
                // A cluster that is deleted meanwhile leaves no setting behind.
                transaction.lock(Lock::Cluster(cluster.as_str())).await?;
                let name: String =
                    query_scalar("SELECT name FROM clusters WHERE id = $1 AND deleted_at IS NULL")
                        .bind(cluster.as_str())
                        .fetch_optional(&mut *transaction)
                        .await
                        .map_err(database(doing))?
                        .ok_or_else(|| Error::not_found("cluster", cluster))?;
                target = format!("{target} of cluster {name}");
            }
        }
        let written = match value {
            None => {
                query("DELETE FROM settings WHERE scope = $1 AND key = $2")
                    .bind(&place)
                    .bind(key)
                    .execute(&mut *transaction)
                    .await
            }
            Some(value) => {
                query(
                    "INSERT INTO settings (scope, key, value, updated_at) VALUES ($1, $2, $3, $4) \
                     ON CONFLICT (scope, key) DO UPDATE SET value = $3, updated_at = $4 WHERE settings.value <> $3",
                )
                .bind(&place)
                .bind(key)
                .bind(serde_json::json!(value).to_string())
                .bind(self.now())
                .execute(&mut *transaction)
                .await
            }
        }
        .map_err(database(doing))?;
        if written == 0 {
            return Ok(());
        }
        let detail = serde_json::json!({"value": value});
        self.audit(&mut transaction, AuditAction::PutSetting, &target, detail)
            .await?;
        transaction.commit(doing).await?;
        self.signal(Signal::SettingChanged);
        Ok(())
    }
}

#[async_trait]
impl Settings for SqlStore {
    async fn setting(&self, scope: &SettingScope, key: &str) -> Result<Option<Setting>, Error> {
        let place = scope.to_string();
        if has_nul(&place) || has_nul(key) {
            return Ok(None);
        }
        let json: Option<String> = query_scalar("SELECT value FROM settings WHERE scope = $1 AND key = $2")
            .bind(&place)
            .bind(key)
            .fetch_optional(self.read())
            .await
            .map_err(database(READING))?;
        json.map(|json| read(scope, key, &json)).transpose()
    }

    async fn put_setting(
        &self,
        scope: &SettingScope,
        key: &str,
        value: Option<Setting>,
    ) -> Result<(), Error> {
        let value = SettingDefinition::check_put(scope, key, value.as_ref())?;
        repeating(|| self.put_setting_once(scope, key, value.as_ref())).await
    }

    async fn effective_setting(&self, cluster: &ClusterId, key: &str) -> Result<Option<Setting>, Error> {
        if has_nul(key) {
            return self.must_exist(cluster).await.map(|()| None);
        }
        let found: Option<(String, String)> = query_as(
            "SELECT s.scope, s.value FROM clusters c JOIN settings s ON s.key = $2 \
             AND s.scope IN ('default', 'group:' || c.cluster_group, 'cluster:' || c.id) WHERE c.id = $1 \
             ORDER BY CASE s.scope WHEN 'default' THEN 2 WHEN 'cluster:' || c.id THEN 0 ELSE 1 END LIMIT 1",
        )
        .bind(cluster.as_str())
        .bind(key)
        .fetch_optional(self.read())
        .await
        .map_err(database(READING))?;
        match found {
            Some((place, json)) => {
                let scope = SettingScope::from_key(&place).unwrap_or(SettingScope::Default);
                read(&scope, key, &json).map(Some)
            }
            None => self.must_exist(cluster).await.map(|()| None),
        }
    }

    async fn setting_layers(&self) -> Result<SettingLayers, Error> {
        let mut layers = SettingLayers::default();
        let (mut scope, mut key) = (String::new(), String::new());
        loop {
            let rows = query(AFTER)
                .bind(&scope)
                .bind(&key)
                .bind(ROWS)
                .fetch_all(self.read())
                .await
                .map_err(database(READING))?;
            let cells = |row: &Row| -> Result<(String, String, String), sqlx::Error> {
                Ok((row.at(0)?, row.at(1)?, row.at(2)?))
            };
            for row in &rows {
                let json;
                (scope, key, json) = cells(row).map_err(database(READING))?;
                let value = match SettingScope::from_key(&scope) {
                    Some(place) => read(&place, &key, &json).map(|value| (place, value)),
                    None => Err(Error::not_found("scope", &scope)),
                };
                match value {
                    Ok((place, value)) => layers.put(place, key.clone(), value),
                    Err(error) => layers.failed.push(RowFailure {
                        row: format!("{scope}/{key}"),
                        error,
                    }),
                }
            }
            if rows.len() < usize::try_from(ROWS).unwrap_or(usize::MAX) {
                return Ok(layers);
            }
        }
    }
}
