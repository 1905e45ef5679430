//! Accepting configurations, and reading them.

mod contents;

use async_trait::async_trait;
use evenkeel_core::{
    ClusterId, ClusterSpec, ClusterState, ConfigurationVersion, Digest, DueReason, Kubeconfig,
};
use evenkeel_telemetry::request;

use super::SqlStore;
use super::clusters::accepts_changes;
use super::rows::{int, lane, refuse_nul, uint};
use super::status::{Next, Present, row_key};
use crate::canonical::canonical;
use crate::cipher::Column;
use crate::rules::DueWrite;
use crate::sql::{Cells, Connection, Row, Statement, database, query, query_scalar};
use crate::{
    AuditAction, Change, Configuration, ConfigurationSummary, Configurations, Cursor, Error, FailureCount,
    Page, PageRequest, PutCluster, PutOutcome, Signal,
};
use contents::{list_components, name_archives};

/// How often a put looks again because somebody else registered the cluster in between.
const PUT_TRIES: u32 = 3;
pub(super) const ACCEPTING: &str = "accepting a configuration";
const CONFIGURATION: &str = "SELECT version, spec, kubeconfig, created_at FROM cluster_configurations WHERE cluster_id = $1 AND version = $2";

/// What a put finds.
struct Found {
    id: String,
    name: String,
    version: i64,
    kubeconfig: Option<i64>,
    deleted: bool,
}

pub(super) fn unwritable(error: serde_json::Error) -> Error {
    Error::Database {
        doing: ACCEPTING,
        transient: false,
        source: Box::new(error),
    }
}

impl SqlStore {
    /// Registers a cluster or gives it a new version.
    pub(super) async fn put(&self, put: &PutCluster) -> Result<PutOutcome, Error> {
        let PutCluster {
            id,
            spec,
            kubeconfig,
            if_version,
        } = put;
        spec.validate().map_err(Error::Invalid)?;
        for (what, text) in [("the tenant", &spec.tenant), ("the group", &spec.group)] {
            refuse_nul(what, text.as_deref().unwrap_or_default())?;
        }
        for (key, value) in &spec.labels {
            refuse_nul("a label's key", key)?;
            refuse_nul("a label's value", value)?;
        }
        let mut transaction = self.write(ACCEPTING).await?;
        let mut tries = 0;
        let outcome = loop {
            let found = match id {
                Some(id) => find(&mut transaction, FIND_BY_ID, id.as_str()).await?,
                None => find(&mut transaction, FIND_BY_NAME, spec.name.as_str()).await?,
            };
            let present_version = found.as_ref().map_or(0, |found| found.version);
            if let Some(expected) = if_version
                && int(expected.0) != present_version
            {
                return Err(Error::VersionMismatch {
                    expected: *expected,
                    found: ConfigurationVersion(uint(present_version)),
                });
            }
            if let Some(found) = found {
                let id: ClusterId = found.id.parse().map_err(Error::Invalid)?;
                if found.deleted {
                    return Err(Error::IdUsed(id));
                }
                if found.name != spec.name.as_str() {
                    return Err(Error::NameImmutable {
                        cluster: id,
                        name: found.name.parse().map_err(Error::Invalid)?,
                    });
                }
                break self
                    .change(&mut transaction, &id, &found, spec, kubeconfig.as_ref())
                    .await?;
            }
            let new = id.clone().unwrap_or_else(|| ClusterId::from(self.new_uuid()));
            if let Some(outcome) = self
                .create(&mut transaction, &new, spec, kubeconfig.as_ref())
                .await?
            {
                break outcome;
            }
            // Somebody else registered this very cluster meanwhile, or one with this name.
            tries += 1;
            let owner = find(&mut transaction, FIND_BY_NAME, spec.name.as_str()).await?;
            let owner: Option<ClusterId> = owner.and_then(|owner| owner.id.parse().ok());
            match (id, owner) {
                (Some(id), Some(owner)) if *id != owner => {
                    return Err(Error::NameTaken {
                        name: spec.name.clone(),
                        owner,
                    });
                }
                _ if tries > PUT_TRIES => return Err(Error::Outdated(new)),
                _ => {}
            }
        };
        self.audit_outcome(
            &mut transaction,
            AuditAction::PutCluster,
            spec.name.as_str(),
            &outcome,
        )
        .await?;
        transaction.commit(ACCEPTING).await?;
        self.announce(&outcome);
        Ok(outcome)
    }

    /// Writes down that a configuration was accepted, and which, so that it can be told from every other.
    async fn audit_outcome(
        &self,
        connection: &mut Connection,
        action: AuditAction,
        name: &str,
        outcome: &PutOutcome,
    ) -> Result<(), Error> {
        let change = match outcome.change {
            Change::Unchanged => return Ok(()),
            Change::Created => "created",
            Change::Changed => "changed",
        };
        let hash = self
            .version_hash(connection, &outcome.id, int(outcome.version.0))
            .await?
            .and_then(|hash| <[u8; 32]>::try_from(hash).ok())
            .map(|hash| Digest::from(hash).to_string());
        let detail = serde_json::json!({
            "id": outcome.id.as_str(), "version": outcome.version.0, "change": change, "configuration": hash,
        });
        self.audit(connection, action, &format!("cluster/{name}"), detail)
            .await
    }

    /// A new version with the newest specification and another kubeconfig.
    pub(super) async fn replace_kubeconfig(
        &self,
        cluster: &ClusterId,
        kubeconfig: &Kubeconfig,
    ) -> Result<PutOutcome, Error> {
        let mut transaction = self.write(ACCEPTING).await?;
        let found = find(&mut transaction, FIND_BY_ID, cluster.as_str())
            .await?
            .filter(|found| !found.deleted)
            .ok_or_else(|| Error::not_found("cluster", cluster))?;
        let row = query(CONFIGURATION)
            .bind(cluster.as_str())
            .bind(found.version)
            .fetch_optional(&mut *transaction)
            .await
            .map_err(database(ACCEPTING))?
            .ok_or_else(|| Error::not_found("configuration of cluster", cluster))?;
        let newest = self.configuration_row(&row, cluster)?;
        let outcome = self
            .change(&mut transaction, cluster, &found, &newest.spec, Some(kubeconfig))
            .await?;
        self.audit_outcome(
            &mut transaction,
            AuditAction::PutKubeconfig,
            &found.name,
            &outcome,
        )
        .await?;
        transaction.commit(ACCEPTING).await?;
        self.announce(&outcome);
        Ok(outcome)
    }

    fn announce(&self, outcome: &PutOutcome) {
        if outcome.change != Change::Unchanged {
            self.signal(Signal::ClusterDue);
            self.signal(Signal::ClusterChanged);
        }
    }

    /// Registers a cluster; none when its id or name is taken.
    async fn create(
        &self,
        connection: &mut Connection,
        id: &ClusterId,
        spec: &ClusterSpec,
        kubeconfig: Option<&Kubeconfig>,
    ) -> Result<Option<PutOutcome>, Error> {
        let now = self.now();
        let inserted = query(
            "INSERT INTO clusters (id, name, tenant, cluster_group, labels, version, kubeconfig, created_at) \
             VALUES ($1, $2, NULL, NULL, '{}', 0, NULL, $3) ON CONFLICT DO NOTHING",
        )
        .bind(id.as_str())
        .bind(spec.name.as_str())
        .bind(now)
        .execute(&mut *connection)
        .await
        .map_err(database(ACCEPTING))?;
        if inserted == 0 {
            return Ok(None);
        }
        query(
            "INSERT INTO cluster_status (cluster_id, name, state, since, observed_version, reason, due_lane, next_due_at, \
             due_stamp, request_id, failures, changes) VALUES ($1, $2, $3, $4, 1, NULL, $5, $4, 1, $6, 0, 0)",
        )
        .bind(id.as_str())
        .bind(spec.name.as_str())
        .bind(ClusterState::Pending.as_str())
        .bind(now)
        .bind(lane(DueReason::Change))
        .bind(request::current())
        .execute(&mut *connection)
        .await
        .map_err(database(ACCEPTING))?;
        let kubeconfig = match kubeconfig {
            None => None,
            Some(kubeconfig) => Some(self.kubeconfig_number(connection, id, kubeconfig).await?),
        };
        self.insert_version(connection, id, spec, 1, kubeconfig).await?;
        Ok(Some(PutOutcome {
            id: id.clone(),
            version: ConfigurationVersion(1),
            change: Change::Created,
        }))
    }

    async fn change(
        &self,
        connection: &mut Connection,
        id: &ClusterId,
        found: &Found,
        spec: &ClusterSpec,
        kubeconfig: Option<&Kubeconfig>,
    ) -> Result<PutOutcome, Error> {
        let present = Present::load(connection, id.as_str()).await?;
        if present.deleting || !accepts_changes(present.state) {
            return Err(Error::BeingDeleted(id.clone()));
        }
        let kubeconfig = match kubeconfig {
            None => found.kubeconfig,
            Some(kubeconfig) => Some(self.kubeconfig_number(connection, id, kubeconfig).await?),
        };
        let unchanged = kubeconfig == found.kubeconfig
            && self.version_hash(connection, id, found.version).await? == Some(self.spec_hash(spec)?);
        if unchanged {
            return Ok(PutOutcome {
                id: id.clone(),
                version: ConfigurationVersion(uint(found.version)),
                change: Change::Unchanged,
            });
        }
        let version = found.version.saturating_add(1);
        self.insert_version(connection, id, spec, version, kubeconfig)
            .await?;
        let next = Next {
            state: ClusterState::Pending,
            observed_version: version,
            reason: None,
            due: DueWrite::Merge((self.now(), lane(DueReason::Change))),
            failures: FailureCount::Reset,
        };
        self.write_status(connection, &present, next).await?;
        Ok(PutOutcome {
            id: id.clone(),
            version: ConfigurationVersion(uint(version)),
            change: Change::Changed,
        })
    }

    fn spec_hash(&self, spec: &ClusterSpec) -> Result<Vec<u8>, Error> {
        let text = canonical(spec).map_err(unwritable)?;
        Ok(self.cipher.content_hash([&b"configuration"[..], &text]).to_vec())
    }

    async fn version_hash(
        &self,
        connection: &mut Connection,
        id: &ClusterId,
        version: i64,
    ) -> Result<Option<Vec<u8>>, Error> {
        query_scalar("SELECT content_hash FROM cluster_configurations WHERE cluster_id = $1 AND version = $2")
            .bind(id.as_str())
            .bind(version)
            .fetch_optional(connection)
            .await
            .map_err(database(ACCEPTING))
    }

    /// Inserts a version and makes the cluster's row, labels and list of components follow it.
    async fn insert_version(
        &self,
        connection: &mut Connection,
        id: &ClusterId,
        spec: &ClusterSpec,
        version: i64,
        kubeconfig: Option<i64>,
    ) -> Result<(), Error> {
        let text = canonical(spec).map_err(unwritable)?;
        let sealed = self
            .cipher
            .seal(Column::SPEC, &row_key(id.as_str(), version), &text)?;
        query(
            "INSERT INTO cluster_configurations (cluster_id, version, spec, content_hash, kubeconfig, created_at) \
             VALUES ($1, $2, $3, $4, $5, $6)",
        )
        .bind(id.as_str())
        .bind(version)
        .bind(sealed)
        .bind(self.spec_hash(spec)?)
        .bind(kubeconfig)
        .bind(self.now())
        .execute(&mut *connection)
        .await
        .map_err(database(ACCEPTING))?;
        name_archives(connection, id, spec, version).await?;

        let labels = serde_json::json!(spec.labels).to_string();
        query(
            "UPDATE clusters SET tenant = $2, cluster_group = $3, labels = $4, version = $5, kubeconfig = $6 WHERE id = $1",
        )
        .bind(id.as_str())
        .bind(spec.tenant.as_deref())
        .bind(spec.group.as_deref())
        .bind(&labels)
        .bind(version)
        .bind(kubeconfig)
        .execute(&mut *connection)
        .await
        .map_err(database(ACCEPTING))?;
        query("DELETE FROM cluster_labels WHERE cluster_id = $1")
            .bind(id.as_str())
            .execute(&mut *connection)
            .await
            .map_err(database(ACCEPTING))?;
        query(INSERT_LABELS)
            .bind(id.as_str())
            .bind(spec.name.as_str())
            .bind(labels)
            .execute(&mut *connection)
            .await
            .map_err(database(ACCEPTING))?;
        list_components(connection, id, spec).await
    }

    fn configuration_row(&self, row: &Row, cluster: &ClusterId) -> Result<Configuration, Error> {
        let version: i64 = Cells::new(row, "cluster_configurations", cluster.as_str()).get("version")?;
        let key = row_key(cluster.as_str(), version);
        let cells = Cells::new(row, "cluster_configurations", &*key);
        let text = self.cipher.open(Column::SPEC, &key, cells.get("spec")?)?;
        // The parser's message may quote a value.
        let spec = serde_json::from_slice(text.expose())
            .map_err(|_| Column::SPEC.unreadable(&key, "it is no cluster specification of this release"))?;
        Ok(Configuration {
            cluster: cluster.clone(),
            version: ConfigurationVersion(cells.number("version")?),
            spec,
            kubeconfig: cells.get::<Option<i64>>("kubeconfig")?.map(uint),
            created_at: cells.time("created_at")?,
        })
    }
}

/// The columns of [`Found`].
macro_rules! found {
    ($condition:literal) => {
        concat!(
            "SELECT id, name, version, kubeconfig, deleted_at IS NOT NULL AS deleted FROM clusters WHERE ",
            $condition
        )
    };
}
/// What is found is locked: what is read of it holds until the transaction ends.
const FIND_BY_ID: Statement = Statement::each(found!("id = $1"), found!("id = $1 FOR NO KEY UPDATE"));
const FIND_BY_NAME: Statement = Statement::each(
    found!("name = $1 AND deleted_at IS NULL"),
    found!("name = $1 AND deleted_at IS NULL FOR NO KEY UPDATE"),
);
const INSERT_LABELS: Statement = Statement::each(
    "INSERT INTO cluster_labels (key, value, name, cluster_id) SELECT key, value, $2, $1 FROM json_each($3)",
    "INSERT INTO cluster_labels (key, value, name, cluster_id) SELECT key, value, $2, $1 FROM json_each_text($3::json)",
);
async fn find(connection: &mut Connection, statement: Statement, key: &str) -> Result<Option<Found>, Error> {
    let row = query(statement)
        .bind(key)
        .fetch_optional(connection)
        .await
        .map_err(database(ACCEPTING))?;
    let Some(row) = row else {
        return Ok(None);
    };
    let cells = Cells::new(&row, "clusters", key);
    Ok(Some(Found {
        id: cells.get("id")?,
        name: cells.get("name")?,
        version: cells.get("version")?,
        kubeconfig: cells.get("kubeconfig")?,
        deleted: cells.get("deleted")?,
    }))
}

#[async_trait]
impl Configurations for SqlStore {
    async fn configuration(
        &self,
        cluster: &ClusterId,
        version: ConfigurationVersion,
    ) -> Result<Configuration, Error> {
        let row = query(CONFIGURATION)
            .bind(cluster.as_str())
            .bind(int(version.0))
            .fetch_optional(self.read())
            .await
            .map_err(database("reading a configuration"))?
            .ok_or_else(|| {
                Error::not_found("configuration version", row_key(cluster.as_str(), int(version.0)))
            })?;
        self.configuration_row(&row, cluster)
    }

    async fn newest_configuration(&self, cluster: &ClusterId) -> Result<Configuration, Error> {
        let row = query(
            "SELECT v.version, v.spec, v.kubeconfig, v.created_at FROM clusters c \
             JOIN cluster_configurations v ON v.cluster_id = c.id AND v.version = c.version WHERE c.id = $1",
        )
        .bind(cluster.as_str())
        .fetch_optional(self.read())
        .await
        .map_err(database("reading a configuration"))?
        .ok_or_else(|| Error::not_found("cluster", cluster))?;
        self.configuration_row(&row, cluster)
    }

    async fn configurations(
        &self,
        cluster: &ClusterId,
        page: &PageRequest,
    ) -> Result<Page<ConfigurationSummary>, Error> {
        let before = page.number_cursor()?;
        let limit = page.limit();
        let rows = query(
            "SELECT version, kubeconfig, created_at FROM cluster_configurations \
             WHERE cluster_id = $1 AND version < $2 ORDER BY version DESC LIMIT $3",
        )
        .bind(cluster.as_str())
        .bind(before)
        .bind(i64::from(limit) + 1)
        .fetch_all(self.read())
        .await
        .map_err(database("listing configurations"))?;
        if rows.is_empty() {
            self.must_exist(cluster).await?;
        }
        let read = |row: &Row| {
            let cells = Cells::new(row, "cluster_configurations", cluster.as_str());
            let version: i64 = cells.get("version").unwrap_or(0);
            let summary = || {
                Ok(ConfigurationSummary {
                    version: ConfigurationVersion(cells.number("version")?),
                    kubeconfig: cells.get::<Option<i64>>("kubeconfig")?.map(uint),
                    created_at: cells.time("created_at")?,
                })
            };
            (
                Cursor(version.to_string()),
                row_key(cluster.as_str(), version),
                summary(),
            )
        };
        Ok(Page::collect(&rows, limit, read))
    }
}
