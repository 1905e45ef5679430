//! Calls about history, settings, keys and the audit log.

use std::time::Duration;

use evenkeel_core::ClusterName;
use reqwest::Method;

use super::Client;
use crate::{
    AuditPage, AuditVerdict, ChangePage, Error, HistoryPage, Instance, Keys, KnownHead, ListAudit,
    ListChanges, ListHistory, PutSetting, Setting, SettingFor, SyncReport,
};

/// How long a comparison with the broker's whole list may take.
const SYNC_TIMEOUT: Duration = Duration::from_secs(60);

impl Client {
    /// The states that a cluster was in, newest first.
    ///
    /// # Errors
    /// See [`Client::put_cluster`].
    pub async fn history(&self, name: &ClusterName, list: &ListHistory) -> Result<HistoryPage, Error> {
        let request = self.request(Method::GET, &["v2", "clusters", name.as_str(), "history"])?;
        self.call(request.query(list)).await
    }

    /// What was done to a cluster's objects.
    ///
    /// # Errors
    /// See [`Client::put_cluster`].
    pub async fn changes(&self, name: &ClusterName, list: &ListChanges) -> Result<ChangePage, Error> {
        let request = self.request(Method::GET, &["v2", "clusters", name.as_str(), "changes"])?;
        self.call(request.query(list)).await
    }

    /// All settings, with the values that count for whom is asked.
    ///
    /// # Errors
    /// See [`Client::put_cluster`].
    pub async fn settings(&self, of: &SettingFor) -> Result<Vec<Setting>, Error> {
        self.call(self.request(Method::GET, &["v2", "settings"])?.query(of))
            .await
    }

    /// Sets a setting.
    ///
    /// # Errors
    /// See [`Client::put_cluster`].
    pub async fn put_setting(&self, name: &str, of: &SettingFor, put: &PutSetting) -> Result<Setting, Error> {
        let request = self.request(Method::PUT, &["v2", "settings", name])?;
        self.call(request.query(of).json(put)).await
    }

    /// Takes a setting back.
    ///
    /// # Errors
    /// See [`Client::put_cluster`].
    pub async fn remove_setting(&self, name: &str, of: &SettingFor) -> Result<Setting, Error> {
        let request = self.request(Method::DELETE, &["v2", "settings", name])?;
        self.call(request.query(of)).await
    }

    /// Compares the inventory with the environment broker's list now, and repairs as the settings say.
    ///
    /// # Errors
    /// See [`Client::put_cluster`].
    pub async fn sync_broker(&self) -> Result<SyncReport, Error> {
        let request = self.request(Method::POST, &["v2", "broker", "sync"])?;
        self.call(request.timeout(SYNC_TIMEOUT)).await
    }

    /// A page of the audit log.
    ///
    /// # Errors
    /// See [`Client::put_cluster`].
    pub async fn audit(&self, list: &ListAudit) -> Result<AuditPage, Error> {
        self.call(self.request(Method::GET, &["v2", "audit"])?.query(list))
            .await
    }

    /// Whether the audit log is whole.
    ///
    /// # Errors
    /// See [`Client::put_cluster`].
    pub async fn verify_audit(&self, known: &KnownHead) -> Result<AuditVerdict, Error> {
        let request = self.request(Method::GET, &["v2", "audit", "verify"])?;
        self.call(request.query(known)).await
    }

    /// The encryption keys and how much each is used.
    ///
    /// # Errors
    /// See [`Client::put_cluster`].
    pub async fn keys(&self) -> Result<Keys, Error> {
        self.call(self.request(Method::GET, &["v2", "keys"])?).await
    }

    /// The processes of the installation, longest running first.
    ///
    /// # Errors
    /// See [`Client::put_cluster`].
    pub async fn instances(&self) -> Result<Vec<Instance>, Error> {
        self.call(self.request(Method::GET, &["v2", "instances"])?).await
    }

    /// Says that a key is needed no more.
    ///
    /// # Errors
    /// See [`Client::put_cluster`].
    pub async fn remove_key(&self, id: &str) -> Result<Keys, Error> {
        self.call(self.request(Method::DELETE, &["v2", "keys", id])?)
            .await
    }
}
