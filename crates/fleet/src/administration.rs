//! What people ask about the installation: history, settings, keys, audit log.

use evenkeel_api as api;
use evenkeel_core::{ClusterId, ClusterName};
use evenkeel_inventory::{
    AuditFilter, ChangeFilter, Cursor, KeyId, KeyState, PageRequest, SETTINGS, Setting, SettingDefinition,
    SettingLayers, SettingScope,
};

use crate::requests::{PAGE_SIZE, warn_of};
use crate::{Error, Fleet};

/// Which page somebody asks for.
fn page(after: Option<&String>, limit: Option<u32>) -> PageRequest {
    let limit = limit.unwrap_or(PAGE_SIZE);
    match after.map(|after| after.parse::<Cursor>()) {
        Some(Ok(cursor)) => PageRequest::after(cursor, limit),
        None => PageRequest::first(limit),
    }
}

/// Whom a setting is for, as the inventory knows them.
struct Whom {
    scope: SettingScope,
    cluster: Option<ClusterId>,
    group: Option<String>,
}

impl Fleet {
    /// The states that a cluster was in, newest first.
    ///
    /// # Errors
    /// What the inventory answers.
    pub async fn history(
        &self,
        name: &ClusterName,
        list: &api::ListHistory,
    ) -> Result<api::HistoryPage, Error> {
        let cluster = self.store().cluster_by_name(name).await?;
        let request = page(list.after.as_ref(), list.limit);
        let found = self.store().status_history(&cluster.id, &request).await?;
        warn_of(&found.failed);
        let items = found.items.into_iter().map(|past| api::PastStatus {
            seconds: past.duration().as_secs(),
            state: past.state,
            observed_version: past.observed_version,
            reason: past.reason,
            since: past.since,
            until: past.until,
        });
        Ok(api::HistoryPage {
            items: items.collect(),
            next: found.next.map(|cursor| cursor.to_string()),
        })
    }

    /// What was done to a cluster's objects.
    ///
    /// # Errors
    /// What the inventory answers.
    pub async fn changes(
        &self,
        name: &ClusterName,
        list: &api::ListChanges,
    ) -> Result<api::ChangePage, Error> {
        let cluster = self.store().cluster_by_name(name).await?;
        let filter = ChangeFilter {
            component: list.component.clone(),
            kind: list.kind.clone(),
            namespace: list.namespace.clone(),
            name: list.name.clone(),
            since: list.since,
            until: list.until,
        };
        let request = page(list.after.as_ref(), list.limit);
        let found = self
            .store()
            .object_changes(&cluster.id, &filter, &request)
            .await?;
        warn_of(&found.failed);
        let items = found.items.into_iter().map(|change| api::RecordedChange {
            at: change.at,
            action: change.action,
            object: change.object,
            component: change.component,
            reconciliation: change.reconciliation,
            operation: change.operation,
            attempt: change.attempt,
            request_id: change.request_id,
        });
        Ok(api::ChangePage {
            items: items.collect(),
            next: found.next.map(|cursor| cursor.to_string()),
        })
    }

    async fn whom(&self, of: &api::SettingFor) -> Result<Whom, Error> {
        match (&of.cluster, &of.group) {
            (Some(_), Some(_)) => Err(Error::Parameter {
                name: "group",
                problem: "a setting is for a cluster or for a group, not both".to_owned(),
            }),
            (None, None) => Ok(Whom {
                scope: SettingScope::Default,
                cluster: None,
                group: None,
            }),
            (None, Some(group)) => Ok(Whom {
                scope: SettingScope::Group(group.clone()),
                cluster: None,
                group: Some(group.clone()),
            }),
            (Some(name), None) => {
                let cluster = self.store().cluster_by_name(name).await?;
                Ok(Whom {
                    scope: SettingScope::Cluster(cluster.id.clone()),
                    cluster: Some(cluster.id),
                    group: cluster.group,
                })
            }
        }
    }

    /// All settings, with the values that count for whom is asked.
    ///
    /// # Errors
    /// [`Error::Parameter`], and what the inventory answers.
    pub async fn all_settings(&self, of: &api::SettingFor) -> Result<Vec<api::Setting>, Error> {
        let whom = self.whom(of).await?;
        let layers = self.store().setting_layers().await?;
        warn_of(&layers.failed);
        Ok(SETTINGS
            .iter()
            .map(|definition| shown(definition, &layers, &whom))
            .collect())
    }

    /// Sets a setting for somebody, or takes it back; answers what counts then.
    ///
    /// # Errors
    /// [`Error::Parameter`], and what the inventory refuses.
    pub async fn put_setting(
        &self,
        name: &str,
        of: &api::SettingFor,
        value: Option<serde_json::Value>,
    ) -> Result<api::Setting, Error> {
        let definition = SettingDefinition::known(name)?;
        let value = value
            .map(|value| {
                serde_json::from_value::<Setting>(value).map_err(|_| Error::Parameter {
                    name: "value",
                    problem: format!("expected {}", definition.kind),
                })
            })
            .transpose()?;
        let whom = self.whom(of).await?;
        self.store().put_setting(&whom.scope, name, value).await?;
        tracing::info!(setting = name, scope = %whom.scope, "a setting was changed");
        // Here it counts before the answer is given; the other processes hear of it.
        self.tuning().read(self.store()).await?;
        let layers = self.store().setting_layers().await?;
        Ok(shown(definition, &layers, &whom))
    }

    /// A page of the audit log, newest first.
    ///
    /// # Errors
    /// What the inventory answers.
    pub async fn audit(&self, list: &api::ListAudit) -> Result<api::AuditPage, Error> {
        let filter = AuditFilter {
            target: list.target.clone(),
            actor: list.actor.clone(),
            since: list.since,
            until: list.until,
        };
        let request = page(list.after.as_ref(), list.limit);
        let found = self.store().audit_entries(&filter, &request).await?;
        warn_of(&found.failed);
        let items = found.items.into_iter().map(|entry| api::AuditEntry {
            number: entry.number,
            at: entry.at,
            actor: entry.actor,
            request_id: entry.request_id,
            action: entry.action,
            target: entry.target,
            detail: entry.detail,
            digest: entry.digest,
        });
        Ok(api::AuditPage {
            items: items.collect(),
            next: found.next.map(|cursor| cursor.to_string()),
        })
    }

    /// Whether the audit log is whole.
    ///
    /// # Errors
    /// [`Error::Parameter`] for half a head, and what the inventory answers.
    pub async fn verify_audit(&self, known: &api::KnownHead) -> Result<api::AuditVerdict, Error> {
        let known = match (known.number, known.digest) {
            (Some(number), Some(digest)) => Some((number, digest)),
            (None, None) => None,
            _ => {
                return Err(Error::Parameter {
                    name: "digest",
                    problem: "a head has a number and a digest: give both".to_owned(),
                });
            }
        };
        let verdict = self.store().verify_audit(known).await?;
        if let Some(fault) = &verdict.fault {
            tracing::error!(%fault, "the audit log is not whole");
        }
        Ok(api::AuditVerdict {
            intact: verdict.fault.is_none(),
            entries: verdict.entries,
            head: verdict.head.0,
            digest: verdict.head.1,
            fault: verdict.fault.map(|fault| fault.to_string()),
        })
    }

    /// The encryption keys and how much each is used.
    ///
    /// # Errors
    /// What the inventory answers.
    pub async fn keys(&self) -> Result<api::Keys, Error> {
        let agreement = self.store().refresh_keys().await?;
        let status = self.store().key_status().await?;
        let keys = status.keys.into_iter().map(|key| api::Key {
            state: key_state(&key),
            id: key.id.to_string(),
            created: key.created_at,
            replaced: key.replaced_at,
            values: key.rows,
        });
        Ok(api::Keys {
            keys: keys.collect(),
            unreadable: status.damaged.saturating_add(status.unknown.values().sum()),
            waiting_for: agreement.waiting_for,
        })
    }

    /// Says that a key is needed no more.
    ///
    /// # Errors
    /// [`Error::Parameter`] for what is no id, and what the inventory refuses.
    pub async fn remove_key(&self, id: &str) -> Result<api::Keys, Error> {
        let id: KeyId = id
            .parse()
            .map_err(|problem| Error::Parameter { name: "id", problem })?;
        self.store().remove_key(id).await?;
        tracing::info!(key = %id, "a key is needed no more");
        self.keys().await
    }
}

fn shown(definition: &SettingDefinition, layers: &SettingLayers, whom: &Whom) -> api::Setting {
    let found = layers.effective(whom.cluster.as_ref(), whom.group.as_deref(), definition.key);
    let value = |value: &Setting| match value {
        Setting::Boolean(value) => (*value).into(),
        Setting::Integer(value) => (*value).into(),
        Setting::Text(value) => value.as_str().into(),
    };
    api::Setting {
        name: definition.key.to_owned(),
        value: found.map(|(found, _)| value(found)),
        layer: found.map(|(_, layer)| layer.as_str().to_owned()),
        expected: definition.kind.to_string(),
        finest: definition.finest.as_str().to_owned(),
        about: definition.about.to_owned(),
    }
}

fn key_state(key: &KeyState) -> api::KeyState {
    match key {
        KeyState { active: true, .. } => api::KeyState::Active,
        KeyState {
            removed_at: Some(_), ..
        } => api::KeyState::Removed,
        KeyState {
            replaced_at: Some(_), ..
        } => api::KeyState::Replaced,
        _ => api::KeyState::New,
    }
}
