//! Settings.

use async_trait::async_trait;
use evenkeel_core::ClusterId;

use super::SqliteStore;
use super::rows::database;
use crate::{Error, Setting, SettingScope, Settings};

fn scope_key(scope: &SettingScope) -> String {
    match scope {
        SettingScope::Default => "default".to_owned(),
        SettingScope::Group(group) => format!("group:{group}"),
        SettingScope::Cluster(cluster) => format!("cluster:{cluster}"),
    }
}

fn read(scope: &str, key: &str, json: &str) -> Result<Setting, Error> {
    serde_json::from_str(json).map_err(|_| Error::Unreadable {
        table: "settings",
        column: "value",
        row: format!("{scope}/{key}"),
        reason: "it is no boolean, whole number or text".to_owned(),
    })
}

#[async_trait]
impl Settings for SqliteStore {
    async fn setting(&self, scope: &SettingScope, key: &str) -> Result<Option<Setting>, Error> {
        let scope = scope_key(scope);
        let json: Option<String> =
            sqlx::query_scalar("SELECT value FROM settings WHERE scope = ? AND key = ?")
                .bind(&scope)
                .bind(key)
                .fetch_optional(self.read())
                .await
                .map_err(database("reading a setting"))?;
        json.map(|json| read(&scope, key, &json)).transpose()
    }

    async fn put_setting(
        &self,
        scope: &SettingScope,
        key: &str,
        value: Option<Setting>,
    ) -> Result<(), Error> {
        let doing = "writing a setting";
        let scope = scope_key(scope);
        let mut transaction = self.write(doing).await?;
        match value {
            None => {
                sqlx::query("DELETE FROM settings WHERE scope = ? AND key = ?")
                    .bind(scope)
                    .bind(key)
                    .execute(&mut *transaction)
                    .await
            }
            Some(value) => {
                sqlx::query(
                    "INSERT INTO settings (scope, key, value, updated_at) VALUES (?1, ?2, ?3, ?4) \
                     ON CONFLICT (scope, key) DO UPDATE SET value = ?3, updated_at = ?4 WHERE value <> ?3",
                )
                .bind(scope)
                .bind(key)
                .bind(serde_json::json!(value).to_string())
                .bind(self.now())
                .execute(&mut *transaction)
                .await
            }
        }
        .map_err(database(doing))?;
        transaction.commit().await.map_err(database(doing))
    }

    async fn effective_setting(&self, cluster: &ClusterId, key: &str) -> Result<Option<Setting>, Error> {
        let found: Option<(String, String)> = sqlx::query_as(
            "SELECT s.scope, s.value FROM clusters c JOIN settings s ON s.key = ?2 \
             AND s.scope IN ('default', 'group:' || c.cluster_group, 'cluster:' || c.id) WHERE c.id = ?1 \
             ORDER BY CASE s.scope WHEN 'default' THEN 2 WHEN 'cluster:' || c.id THEN 0 ELSE 1 END LIMIT 1",
        )
        .bind(cluster.as_str())
        .bind(key)
        .fetch_optional(self.read())
        .await
        .map_err(database("reading a setting"))?;
        match found {
            Some((scope, json)) => read(&scope, key, &json).map(Some),
            None => self.must_exist(cluster).await.map(|()| None),
        }
    }
}
