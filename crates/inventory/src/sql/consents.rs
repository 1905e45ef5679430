//! Questions before deletions, and the consent that was given.

use async_trait::async_trait;
use evenkeel_core::{ClusterId, ComponentName, ConfigurationVersion, OperationStateKind};
use evenkeel_telemetry::request;
use jiff::Timestamp;

use super::SqlStore;
use super::lock::Lock;
use super::queue::Held;
use super::rows::{deflate, inflate, int, millis, span};
use crate::sql::{Cells, Connection, Row, database, query, query_as, query_scalar, repeating};
use crate::{
    AuditAction, Consent, ConsentKey, Consents, DELETIONS_KEPT, Error, Level, Question, Signal, TimelineEntry,
};

const ASKING: &str = "asking for consent";
const GIVING: &str = "giving consent";
/// The most bytes that what would be deleted unpacks to.
const DELETIONS_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A question counts while its version is the newest, or while the operation that asked is open: one that is equal in a newer
/// version goes on as it is.
macro_rules! counts {
    () => {
        "(version = (SELECT version FROM clusters WHERE id = $1) OR EXISTS \
         (SELECT 1 FROM operations o WHERE o.id = consents.operation_id AND o.finished_at IS NULL))"
    };
}

macro_rules! consent_fields {
    () => {
        "version, component, kind, plan, operation_id, deletions, deleted, of_objects, asked_at, until, given_at, request_id"
    };
}

/// A question that was used up is a new one when it is asked again.
const ASK: &str = concat!(
    "INSERT INTO consents (cluster_id, version, component, kind, plan, operation_id, deletions, deleted, of_objects, \
     asked_at, until) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) \
     ON CONFLICT (cluster_id, version, component, kind, plan) DO UPDATE SET operation_id = excluded.operation_id, \
     asked_at = CASE WHEN consents.used_at IS NULL THEN consents.asked_at ELSE excluded.asked_at END, \
     until = CASE WHEN consents.used_at IS NULL THEN consents.until ELSE excluded.until END, \
     given_at = CASE WHEN consents.used_at IS NULL THEN consents.given_at END, \
     request_id = CASE WHEN consents.used_at IS NULL THEN consents.request_id END, used_at = NULL RETURNING ",
    consent_fields!()
);
const FORGET: &str = concat!(
    "DELETE FROM consents WHERE cluster_id = $1 AND (version < $2 AND NOT ",
    counts!(),
    " OR component = $3 AND given_at IS NULL AND plan <> $4)"
);
pub(super) const OF_CLUSTER: &str = concat!(
    "SELECT ",
    consent_fields!(),
    " FROM consents WHERE cluster_id = $1 AND used_at IS NULL AND ",
    counts!(),
    " ORDER BY component, kind, plan"
);
const GIVE: &str = concat!(
    "UPDATE consents SET given_at = coalesce(given_at, $6), request_id = CASE WHEN given_at IS NULL THEN $7 ELSE request_id END \
     WHERE cluster_id = $1 AND version = $2 AND component = $3 AND kind = $4 AND plan = $5 AND used_at IS NULL AND ",
    counts!(),
    " RETURNING ",
    consent_fields!()
);
pub(super) const USE: &str = "UPDATE consents SET used_at = $3 \
     WHERE cluster_id = $1 AND component = $2 AND given_at IS NOT NULL AND used_at IS NULL";
pub(super) const CONSENTED: &str = "SELECT o.id FROM consents c JOIN operations o ON o.id = c.operation_id \
     WHERE c.given_at IS NOT NULL AND c.used_at IS NULL AND o.state = 'waiting' ORDER BY c.given_at LIMIT $1";

fn consent(row: &Row, cluster: &ClusterId) -> Result<Consent, Error> {
    let cells = Cells::new(row, "consents", cluster.to_string());
    let deletions: Vec<u8> = cells.get("deletions")?;
    Ok(Consent {
        key: ConsentKey {
            version: ConfigurationVersion(cells.number("version")?),
            component: cells.parse("component")?,
            kind: cells.parse("kind")?,
            plan: cells.parse("plan")?,
        },
        operation: cells.parse("operation_id")?,
        deletions: inflate(&deletions, DELETIONS_BYTES_MAX)
            .map_err(|reason| cells.unreadable("deletions", reason))?,
        deleted: cells.number("deleted")?,
        of: cells.number("of_objects")?,
        asked_at: cells.time("asked_at")?,
        until: cells.time("until")?,
        given_at: cells.time_option("given_at")?,
        request_id: cells.get("request_id")?,
    })
}

impl SqlStore {
    /// One try.
    async fn ask_consent_once(&self, question: &Question) -> Result<Consent, Error> {
        let Question {
            operation,
            version,
            needed,
            within,
        } = question;
        let cluster = operation.cluster();
        let plan = needed.digest().to_string();
        let kept = needed.deletions.iter().take(DELETIONS_KEPT).collect::<Vec<_>>();
        let now = self.now();
        let mut transaction = self.write(ASKING).await?;
        transaction.lock(Lock::Cluster(cluster.as_str())).await?;
        let exists: Option<i64> =
            query_scalar("SELECT version FROM clusters WHERE id = $1 AND deleted_at IS NULL")
                .bind(cluster.as_str())
                .fetch_optional(&mut *transaction)
                .await
                .map_err(database(ASKING))?;
        if exists.is_none() {
            return Err(Error::not_found("cluster", cluster));
        }
        query(FORGET)
            .bind(cluster.as_str())
            .bind(int(version.0))
            .bind(needed.component.as_str())
            .bind(&plan)
            .execute(&mut *transaction)
            .await
            .map_err(database(ASKING))?;
        let row = query(ASK)
            .bind(cluster.as_str())
            .bind(int(version.0))
            .bind(needed.component.as_str())
            .bind(needed.kind.as_str())
            .bind(&plan)
            .bind(operation.to_string())
            .bind(deflate(&kept)?)
            .bind(i64::try_from(needed.deletions.len()).unwrap_or(i64::MAX))
            .bind(i64::try_from(needed.of).unwrap_or(i64::MAX))
            .bind(now)
            .bind(now.saturating_add(span(*within)))
            .fetch_optional(&mut *transaction)
            .await
            .map_err(database(ASKING))?;
        let row = row.ok_or_else(|| Error::not_found("cluster", cluster))?;
        let asked = consent(&row, cluster)?;
        transaction.commit(ASKING).await?;
        self.signal(Signal::ClusterChanged);
        Ok(asked)
    }

    /// One try.
    async fn give_consent_once(
        &self,
        cluster: &ClusterId,
        key: &ConsentKey,
        run_deadline: Timestamp,
    ) -> Result<Consent, Error> {
        let ConsentKey {
            version,
            component,
            kind,
            plan,
        } = key;
        let mut transaction = self.write(GIVING).await?;
        transaction.lock(Lock::Cluster(cluster.as_str())).await?;
        let request_id = request::current();
        let row = query(GIVE)
            .bind(cluster.as_str())
            .bind(int(version.0))
            .bind(component.as_str())
            .bind(kind.as_str())
            .bind(plan.to_string())
            .bind(self.now())
            .bind(request_id.as_deref())
            .fetch_optional(&mut *transaction)
            .await
            .map_err(database(GIVING))?;
        let id = || format!("{component}, version {version}, {kind}, {plan}");
        let row = row.ok_or_else(|| Error::not_found("question of consent", id()))?;
        let given = consent(&row, cluster)?;
        let resumed = self
            .go_on(&mut transaction, &given.operation.to_string(), run_deadline)
            .await?;
        let name: Option<String> = query_scalar("SELECT name FROM clusters WHERE id = $1")
            .bind(cluster.as_str())
            .fetch_optional(&mut *transaction)
            .await
            .map_err(database(GIVING))?;
        let detail = serde_json::json!({
            "version": version, "component": component, "kind": kind, "planDigest": plan,
            "deleted": given.deleted, "of": given.of, "operation": given.operation,
        });
        let target = format!("cluster/{}", name.unwrap_or_else(|| cluster.to_string()));
        self.audit_always(&mut transaction, AuditAction::Consent, &target, detail)
            .await?;
        transaction.commit(GIVING).await?;
        if resumed {
            self.signal(Signal::OperationReady);
        }
        self.signal(Signal::ClusterChanged);
        Ok(given)
    }

    /// Returns an operation to the queue if it waits, gives its run time, and says so in its timeline.
    async fn go_on(
        &self,
        connection: &mut Connection,
        operation: &str,
        run_deadline: Timestamp,
    ) -> Result<bool, Error> {
        let key = vec![operation.to_owned()];
        connection.lock(Lock::RunsOf(&key)).await?;
        // Retention may have taken it.
        let Some(held) = Held::load_all(connection, &key).await?.remove(operation) else {
            return Ok(false);
        };
        if held.state() != Some(OperationStateKind::Waiting) {
            return Ok(false);
        }
        query(
            "UPDATE reconciliations SET deadline = CASE WHEN deadline < $2 THEN $2 ELSE deadline END \
             WHERE id = (SELECT reconciliation_id FROM operations WHERE id = $1)",
        )
        .bind(operation)
        .bind(millis(run_deadline))
        .execute(&mut *connection)
        .await
        .map_err(database(GIVING))?;
        self.requeue_waiting(connection, &held).await?;
        let by = match request::current() {
            Some(request_id) => format!("by request {request_id}"),
            None => "before it began to wait".to_owned(),
        };
        let entry = TimelineEntry {
            at: super::rows::moment(self.now()),
            level: Level::Info,
            step: None,
            message: format!("consent was given {by}; the operation returned to the queue"),
        };
        self.append_reports(connection, &[(&held, &[], &[entry])]).await?;
        Ok(true)
    }

    /// One try.
    async fn use_consents_once(&self, cluster: &ClusterId, component: &ComponentName) -> Result<u64, Error> {
        let doing = "using consent up";
        let mut transaction = self.write(doing).await?;
        let used = query(USE)
            .bind(cluster.as_str())
            .bind(component.as_str())
            .bind(self.now())
            .execute(&mut *transaction)
            .await
            .map_err(database(doing))?;
        transaction.commit(doing).await?;
        Ok(used)
    }

    /// One try.
    async fn resume_consented_once(&self, limit: u32, run_deadline: Timestamp) -> Result<u32, Error> {
        let waiting: Vec<(String,)> = query_as(CONSENTED)
            .bind(i64::from(limit))
            .fetch_all(self.read())
            .await
            .map_err(database(GIVING))?;
        let mut resumed = 0;
        for (operation,) in waiting {
            let mut transaction = self.write(GIVING).await?;
            if self.go_on(&mut transaction, &operation, run_deadline).await? {
                transaction.commit(GIVING).await?;
                resumed += 1;
            } else {
                transaction.rollback(GIVING).await?;
            }
        }
        if resumed > 0 {
            self.signal(Signal::OperationReady);
        }
        Ok(resumed)
    }
}

#[async_trait]
impl Consents for SqlStore {
    async fn ask_consent(&self, question: &Question) -> Result<Consent, Error> {
        repeating(|| self.ask_consent_once(question)).await
    }

    async fn consents(&self, cluster: &ClusterId) -> Result<Vec<Consent>, Error> {
        let rows = query(OF_CLUSTER)
            .bind(cluster.as_str())
            .fetch_all(self.read())
            .await
            .map_err(database("reading consents"))?;
        rows.iter().map(|row| consent(row, cluster)).collect()
    }

    async fn give_consent(
        &self,
        cluster: &ClusterId,
        key: &ConsentKey,
        run_deadline: Timestamp,
    ) -> Result<Consent, Error> {
        repeating(|| self.give_consent_once(cluster, key, run_deadline)).await
    }

    async fn use_consents(&self, cluster: &ClusterId, component: &ComponentName) -> Result<u64, Error> {
        repeating(|| self.use_consents_once(cluster, component)).await
    }

    async fn resume_consented(&self, limit: u32, run_deadline: Timestamp) -> Result<u32, Error> {
        repeating(|| self.resume_consented_once(limit, run_deadline)).await
    }
}
