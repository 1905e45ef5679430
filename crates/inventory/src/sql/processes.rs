//! Processes and chores.

use std::time::Duration;

use async_trait::async_trait;
use evenkeel_core::{Fence, Lease};
use jiff::Timestamp;
use uuid::Uuid;

use super::SqlStore;
use super::rows::{int, millis, moment, span, uint};
use super::statement::Value;
use crate::sql::{Cells, Row, database, query, query_scalar, repeating};
use crate::{Chore, Error, Instance, PAGE_MAX, Processes, SeenInstance, Signal};

const CHORE: &str = "taking a chore";
/// Instances heard of, oldest first.
pub(super) const INSTANCES: &str = "SELECT id, host, version, role, started_at, last_seen_at, draining FROM instances \
     WHERE last_seen_at >= $1 ORDER BY last_seen_at DESC LIMIT $2";

fn seen(row: &Row) -> Result<SeenInstance, Error> {
    let key: String = Cells::new(row, "instances", "").get("id")?;
    let cells = Cells::new(row, "instances", key);
    Ok(SeenInstance {
        instance: Instance {
            id: cells.parse("id")?,
            host: cells.get("host")?,
            version: cells.get("version")?,
            role: cells.parse("role")?,
            draining: cells.get::<i64>("draining")? != 0,
        },
        started_at: cells.time("started_at")?,
        last_seen_at: cells.time("last_seen_at")?,
    })
}

impl SqlStore {
    async fn note_once(&self, instance: &Instance) -> Result<(), Error> {
        let doing = "noting a process";
        let mut transaction = self.write(doing).await?;
        let known: Option<i64> = query_scalar("SELECT draining FROM instances WHERE id = $1")
            .bind(instance.id.to_string())
            .fetch_optional(&mut *transaction)
            .await
            .map_err(database(doing))?;
        query(
            "INSERT INTO instances (id, host, version, started_at, last_seen_at, draining, role) \
             VALUES ($1, $2, $3, $4, $4, $5, $6) \
             ON CONFLICT (id) DO UPDATE SET last_seen_at = $4, draining = $5",
        )
        .bind(instance.id.to_string())
        .bind(&instance.host)
        .bind(&instance.version)
        .bind(self.now())
        .bind(i64::from(instance.draining))
        .bind(instance.role.as_str())
        .execute(&mut *transaction)
        .await
        .map_err(database(doing))?;
        transaction.commit(doing).await?;
        if known != Some(i64::from(instance.draining)) {
            self.signal(Signal::InstancesChanged);
        }
        Ok(())
    }

    async fn delete_instances<'q>(
        &self,
        statement: &'static str,
        key: impl Into<Value<'q>>,
    ) -> Result<(), Error> {
        let doing = "forgetting processes";
        let mut transaction = self.write(doing).await?;
        query(statement)
            .bind(key)
            .execute(&mut *transaction)
            .await
            .map_err(database(doing))?;
        transaction.commit(doing).await
    }

    /// Forgets all processes.
    pub(super) async fn forget_all_instances(&self) -> Result<(), Error> {
        repeating(|| self.delete_instances("DELETE FROM instances WHERE last_seen_at < $1", i64::MAX)).await
    }

    async fn take_once(
        &self,
        chore: Chore,
        owner: Uuid,
        lease: Duration,
        every: Duration,
    ) -> Result<Option<Lease>, Error> {
        let now = self.now();
        let until = now.saturating_add(span(lease));
        let mut transaction = self.write(CHORE).await?;
        let fence = query_scalar::<i64>(
            "INSERT INTO chores (name, owner, fence, lease_until) VALUES ($1, $2, 1, $3) \
             ON CONFLICT (name) DO UPDATE SET owner = $2, fence = chores.fence + 1, lease_until = $3 \
             WHERE chores.lease_until <= $4 AND (chores.done_at IS NULL OR chores.done_at <= $5) RETURNING fence",
        )
        .bind(chore.as_str())
        .bind(owner.to_string())
        .bind(until)
        .bind(now)
        .bind(now.saturating_sub(span(every)))
        .fetch_optional(&mut *transaction)
        .await
        .map_err(database(CHORE))?;
        transaction.commit(CHORE).await?;
        Ok(fence.map(|fence| Lease {
            fence: Fence(uint(fence)),
            until: moment(until),
        }))
    }

    /// Writes to a chore that is held under `fence`. Answers whether it is.
    async fn write_chore(
        &self,
        chore: Chore,
        fence: Fence,
        until: i64,
        done_at: Option<i64>,
    ) -> Result<bool, Error> {
        let mut transaction = self.write(CHORE).await?;
        let held = query(
            "UPDATE chores SET lease_until = $3, done_at = coalesce($4, done_at) WHERE name = $1 AND fence = $2 \
             AND lease_until > $5",
        )
        .bind(chore.as_str())
        .bind(int(fence.0))
        .bind(until)
        .bind(done_at)
        .bind(self.now())
        .execute(&mut *transaction)
        .await
        .map_err(database(CHORE))?;
        transaction.commit(CHORE).await?;
        Ok(held > 0)
    }
}

#[async_trait]
impl Processes for SqlStore {
    async fn note_instance(&self, instance: &Instance) -> Result<(), Error> {
        repeating(|| self.note_once(instance)).await
    }

    async fn forget_instance(&self, id: Uuid) -> Result<(), Error> {
        let id = id.to_string();
        repeating(|| self.delete_instances("DELETE FROM instances WHERE id = $1", &id)).await?;
        self.signal(Signal::InstancesChanged);
        Ok(())
    }

    async fn instances(&self, since: Timestamp) -> Result<Vec<SeenInstance>, Error> {
        let rows = query(INSTANCES)
            .bind(millis(since))
            .bind(i64::from(PAGE_MAX))
            .fetch_all(self.read())
            .await
            .map_err(database("listing processes"))?;
        let readable = |row| match seen(row) {
            Ok(seen) => Some(seen),
            Err(error) => {
                tracing::warn!(%error, "a process cannot be read and is left out");
                None
            }
        };
        let mut instances: Vec<_> = rows.iter().filter_map(readable).collect();
        instances.sort_by_key(|seen| (seen.started_at, seen.instance.id));
        Ok(instances)
    }

    async fn forget_instances(&self, before: Timestamp) -> Result<(), Error> {
        let before = millis(before);
        repeating(|| self.delete_instances("DELETE FROM instances WHERE last_seen_at < $1", before)).await
    }

    async fn take_chore(
        &self,
        chore: Chore,
        owner: Uuid,
        lease: Duration,
        every: Duration,
    ) -> Result<Option<Lease>, Error> {
        repeating(|| self.take_once(chore, owner, lease, every)).await
    }

    async fn keep_chore(&self, chore: Chore, fence: Fence, lease: Duration) -> Result<Option<Lease>, Error> {
        let until = self.now().saturating_add(span(lease));
        let held = repeating(|| self.write_chore(chore, fence, until, None)).await?;
        Ok(held.then(|| Lease {
            fence,
            until: moment(until),
        }))
    }

    async fn end_chore(&self, chore: Chore, fence: Fence, done: bool) -> Result<(), Error> {
        let now = self.now();
        repeating(|| self.write_chore(chore, fence, now, done.then_some(now)))
            .await
            .map(drop)
    }
}
