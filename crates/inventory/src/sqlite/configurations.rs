//! Accepting configurations, and reading them.

use async_trait::async_trait;
use evenkeel_core::{
    ClusterId, ClusterSpec, ClusterState, ConfigurationVersion, DueReason, Sensitive, SourceRef,
};
use evenkeel_telemetry::request;
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use uuid::Uuid;

use super::SqliteStore;
use super::clusters::accepts_changes;
use super::due::DueWrite;
use super::rows::{Cells, database, int, is_unique_violation, lane, list, uint};
use super::status::{Next, Present, row_key};
use crate::canonical::canonical;
use crate::cipher::Column;
use crate::{
    Change, Configuration, ConfigurationSummary, Configurations, Cursor, Error, FailureCount, Page,
    PageRequest, PutCluster, PutOutcome, Signal,
};

const ACCEPTING: &str = "accepting a configuration";
const CONFIGURATION: &str = "SELECT version, spec, kubeconfig, created_at FROM cluster_configurations WHERE cluster_id = ?1 AND version = ?2";

/// What a put finds.
struct Found {
    id: String,
    name: String,
    version: i64,
    kubeconfig: Option<i64>,
    deleted: bool,
}

/// The key of a kubeconfig's row.
pub(super) fn kubeconfig_key(cluster: &str, number: i64) -> String {
    row_key(cluster, number)
}

fn unwritable(error: serde_json::Error) -> Error {
    Error::Database {
        doing: ACCEPTING,
        transient: false,
        source: Box::new(error),
    }
}

impl SqliteStore {
    /// Registers a cluster or gives it a new version.
    pub(super) async fn put(&self, put: PutCluster) -> Result<PutOutcome, Error> {
        let PutCluster {
            id,
            spec,
            kubeconfig,
            if_version,
        } = put;
        spec.validate().map_err(Error::Invalid)?;
        let mut transaction = self.write(ACCEPTING).await?;
        let found = match &id {
            Some(id) => find(&mut transaction, FIND_BY_ID, id.as_str()).await?,
            None => find(&mut transaction, FIND_BY_NAME, spec.name.as_str()).await?,
        };
        let present_version = found.as_ref().map_or(0, |found| found.version);
        if let Some(expected) = if_version
            && int(expected.0) != present_version
        {
            return Err(Error::VersionMismatch {
                expected,
                found: ConfigurationVersion(uint(present_version)),
            });
        }
        let outcome = match found {
            None => {
                let id = id.unwrap_or_else(|| ClusterId::from(self.new_uuid()));
                self.create(&mut transaction, &id, &spec, kubeconfig.as_ref())
                    .await?
            }
            Some(found) => {
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
                self.change(&mut transaction, &id, &found, &spec, kubeconfig.as_ref())
                    .await?
            }
        };
        transaction.commit().await.map_err(database(ACCEPTING))?;
        self.announce(&outcome);
        Ok(outcome)
    }

    /// A new version with the newest specification and another kubeconfig.
    pub(super) async fn replace_kubeconfig(
        &self,
        cluster: &ClusterId,
        kubeconfig: Sensitive<String>,
    ) -> Result<PutOutcome, Error> {
        let mut transaction = self.write(ACCEPTING).await?;
        let found = find(&mut transaction, FIND_BY_ID, cluster.as_str())
            .await?
            .filter(|found| !found.deleted)
            .ok_or_else(|| Error::not_found("cluster", cluster))?;
        let row = sqlx::query(CONFIGURATION)
            .bind(cluster.as_str())
            .bind(found.version)
            .fetch_optional(&mut *transaction)
            .await
            .map_err(database(ACCEPTING))?
            .ok_or_else(|| Error::not_found("configuration of cluster", cluster))?;
        let newest = self.configuration_row(&row, cluster)?;
        let outcome = self
            .change(&mut transaction, cluster, &found, &newest.spec, Some(&kubeconfig))
            .await?;
        transaction.commit().await.map_err(database(ACCEPTING))?;
        self.announce(&outcome);
        Ok(outcome)
    }

    fn announce(&self, outcome: &PutOutcome) {
        if outcome.change != Change::Unchanged {
            self.signals.send(Signal::ClusterDue);
            self.signals.send(Signal::ClusterChanged);
        }
    }

    async fn create(
        &self,
        connection: &mut SqliteConnection,
        id: &ClusterId,
        spec: &ClusterSpec,
        kubeconfig: Option<&Sensitive<String>>,
    ) -> Result<PutOutcome, Error> {
        let now = self.now();
        let inserted = sqlx::query(
            "INSERT INTO clusters (id, name, tenant, cluster_group, labels, version, kubeconfig, created_at) \
             VALUES (?, ?, NULL, NULL, '{}', 0, NULL, ?)",
        )
        .bind(id.as_str())
        .bind(spec.name.as_str())
        .bind(now)
        .execute(&mut *connection)
        .await;
        match inserted {
            Ok(_) => {}
            Err(error) if is_unique_violation(&error) => {
                let owner = find(connection, FIND_BY_NAME, spec.name.as_str())
                    .await?
                    .and_then(|owner| owner.id.parse().ok())
                    .unwrap_or_else(|| ClusterId::from(Uuid::nil()));
                return Err(Error::NameTaken {
                    name: spec.name.clone(),
                    owner,
                });
            }
            Err(error) => return Err(database(ACCEPTING)(error)),
        }
        sqlx::query(
            "INSERT INTO cluster_status (cluster_id, name, state, since, observed_version, reason, due_lane, next_due_at, \
             due_stamp, request_id, failures, changes) VALUES (?1, ?2, ?3, ?4, 1, NULL, ?5, ?4, 1, ?6, 0, 0)",
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
            Some(kubeconfig) => Some(self.insert_kubeconfig(connection, id, 1, kubeconfig).await?),
        };
        self.insert_version(connection, id, spec, 1, kubeconfig).await?;
        Ok(PutOutcome {
            id: id.clone(),
            version: ConfigurationVersion(1),
            change: Change::Created,
        })
    }

    async fn change(
        &self,
        connection: &mut SqliteConnection,
        id: &ClusterId,
        found: &Found,
        spec: &ClusterSpec,
        kubeconfig: Option<&Sensitive<String>>,
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
            due: DueWrite::Merge(self.now(), lane(DueReason::Change)),
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

    fn kubeconfig_hash(&self, kubeconfig: &Sensitive<String>) -> Vec<u8> {
        let parts = [&b"kubeconfig"[..], kubeconfig.expose().as_bytes()];
        self.cipher.content_hash(parts).to_vec()
    }

    async fn version_hash(
        &self,
        connection: &mut SqliteConnection,
        id: &ClusterId,
        version: i64,
    ) -> Result<Option<Vec<u8>>, Error> {
        sqlx::query_scalar(
            "SELECT content_hash FROM cluster_configurations WHERE cluster_id = ? AND version = ?",
        )
        .bind(id.as_str())
        .bind(version)
        .fetch_optional(connection)
        .await
        .map_err(database(ACCEPTING))
    }

    /// The number of a kubeconfig: the newest one's when it is the same, else a new one's.
    async fn kubeconfig_number(
        &self,
        connection: &mut SqliteConnection,
        id: &ClusterId,
        kubeconfig: &Sensitive<String>,
    ) -> Result<i64, Error> {
        let newest: Option<(i64, Vec<u8>)> = sqlx::query_as(
            "SELECT number, content_hash FROM kubeconfigs WHERE cluster_id = ? ORDER BY number DESC LIMIT 1",
        )
        .bind(id.as_str())
        .fetch_optional(&mut *connection)
        .await
        .map_err(database(ACCEPTING))?;
        match newest {
            Some((number, hash)) if hash == self.kubeconfig_hash(kubeconfig) => Ok(number),
            newest => {
                let number = newest.map_or(1, |(number, _)| number.saturating_add(1));
                self.insert_kubeconfig(connection, id, number, kubeconfig).await
            }
        }
    }

    async fn insert_kubeconfig(
        &self,
        connection: &mut SqliteConnection,
        id: &ClusterId,
        number: i64,
        kubeconfig: &Sensitive<String>,
    ) -> Result<i64, Error> {
        let key = kubeconfig_key(id.as_str(), number);
        let content = self
            .cipher
            .seal(Column::KUBECONFIG, &key, kubeconfig.expose().as_bytes())?;
        sqlx::query(
            "INSERT INTO kubeconfigs (cluster_id, number, content, content_hash, created_at) VALUES (?, ?, ?, ?, ?)",
        )
        .bind(id.as_str())
        .bind(number)
        .bind(content)
        .bind(self.kubeconfig_hash(kubeconfig))
        .bind(self.now())
        .execute(connection)
        .await
        .map_err(database(ACCEPTING))?;
        Ok(number)
    }

    /// Inserts a version and makes the cluster's row, labels and list of components follow it.
    async fn insert_version(
        &self,
        connection: &mut SqliteConnection,
        id: &ClusterId,
        spec: &ClusterSpec,
        version: i64,
        kubeconfig: Option<i64>,
    ) -> Result<(), Error> {
        let text = canonical(spec).map_err(unwritable)?;
        let sealed = self
            .cipher
            .seal(Column::SPEC, &row_key(id.as_str(), version), &text)?;
        sqlx::query(
            "INSERT INTO cluster_configurations (cluster_id, version, spec, content_hash, kubeconfig, created_at) \
             VALUES (?, ?, ?, ?, ?, ?)",
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
        sqlx::query(
            "UPDATE clusters SET tenant = ?2, cluster_group = ?3, labels = ?4, version = ?5, kubeconfig = ?6 WHERE id = ?1",
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
        sqlx::query("DELETE FROM cluster_labels WHERE cluster_id = ?")
            .bind(id.as_str())
            .execute(&mut *connection)
            .await
            .map_err(database(ACCEPTING))?;
        sqlx::query(
            "INSERT INTO cluster_labels (key, value, name, cluster_id) SELECT key, value, ?2, ?1 FROM json_each(?3)",
        )
        .bind(id.as_str())
        .bind(spec.name.as_str())
        .bind(labels)
        .execute(&mut *connection)
        .await
        .map_err(database(ACCEPTING))?;
        list_components(connection, id, spec).await
    }

    fn configuration_row(&self, row: &SqliteRow, cluster: &ClusterId) -> Result<Configuration, Error> {
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

const FIND_BY_ID: &str =
    "SELECT id, name, version, kubeconfig, deleted_at IS NOT NULL AS deleted FROM clusters WHERE id = ?1";
const FIND_BY_NAME: &str = "SELECT id, name, version, kubeconfig, false AS deleted FROM clusters \
     WHERE name = ?1 AND deleted_at IS NULL";

async fn find(
    connection: &mut SqliteConnection,
    statement: &'static str,
    key: &str,
) -> Result<Option<Found>, Error> {
    let row = sqlx::query(statement)
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

/// Notes which archives a version names; they are kept as long as it is.
async fn name_archives(
    connection: &mut SqliteConnection,
    id: &ClusterId,
    spec: &ClusterSpec,
    version: i64,
) -> Result<(), Error> {
    for component in &spec.components {
        let SourceRef::Archive { digest } = &component.source else {
            continue;
        };
        let done = sqlx::query(
            "INSERT OR IGNORE INTO configuration_archives (digest, cluster_id, version) \
             SELECT digest, ?2, ?3 FROM archives WHERE digest = ?1",
        )
        .bind(digest.to_string())
        .bind(id.as_str())
        .bind(version)
        .execute(&mut *connection)
        .await
        .map_err(database(ACCEPTING))?;
        if done.rows_affected() > 0 {
            continue;
        }
        let named_twice = sqlx::query("SELECT 1 FROM archives WHERE digest = ?")
            .bind(digest.to_string())
            .fetch_optional(&mut *connection)
            .await
            .map_err(database(ACCEPTING))?
            .is_some();
        if !named_twice {
            return Err(Error::ArchiveUnknown {
                component: component.name.clone(),
                digest: *digest,
            });
        }
    }
    Ok(())
}

/// Marks the components of the newest version. One that was never worked on and is not listed leaves no trace.
async fn list_components(
    connection: &mut SqliteConnection,
    id: &ClusterId,
    spec: &ClusterSpec,
) -> Result<(), Error> {
    let components = list(spec.components.iter().map(|component| &component.name));
    sqlx::query(
        "INSERT INTO components (cluster_id, component, name, listed, revision, fence) \
         SELECT ?1, value, ?2, 1, 0, 0 FROM json_each(?3) WHERE true \
         ON CONFLICT (cluster_id, component) DO UPDATE SET listed = 1 WHERE listed = 0",
    )
    .bind(id.as_str())
    .bind(spec.name.as_str())
    .bind(&components)
    .execute(&mut *connection)
    .await
    .map_err(database(ACCEPTING))?;
    sqlx::query(
        "UPDATE components SET listed = 0, not_ready = NULL WHERE cluster_id = ?1 AND listed = 1 \
         AND component NOT IN (SELECT value FROM json_each(?2))",
    )
    .bind(id.as_str())
    .bind(components)
    .execute(&mut *connection)
    .await
    .map_err(database(ACCEPTING))?;
    sqlx::query(
        "DELETE FROM components WHERE cluster_id = ? AND listed = 0 AND fence = 0 AND operation_id IS NULL",
    )
    .bind(id.as_str())
    .execute(connection)
    .await
    .map(drop)
    .map_err(database(ACCEPTING))
}

#[async_trait]
impl Configurations for SqliteStore {
    async fn configuration(
        &self,
        cluster: &ClusterId,
        version: ConfigurationVersion,
    ) -> Result<Configuration, Error> {
        let row = sqlx::query(CONFIGURATION)
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
        let row = sqlx::query(
            "SELECT v.version, v.spec, v.kubeconfig, v.created_at FROM clusters c \
             JOIN cluster_configurations v ON v.cluster_id = c.id AND v.version = c.version WHERE c.id = ?",
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
        let rows = sqlx::query(
            "SELECT version, kubeconfig, created_at FROM cluster_configurations \
             WHERE cluster_id = ? AND version < ? ORDER BY version DESC LIMIT ?",
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
        let read = |row: &SqliteRow| {
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
