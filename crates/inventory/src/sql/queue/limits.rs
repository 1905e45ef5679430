//! Claiming within limits: what runs is counted, and whoever has its share is passed over.

use std::collections::HashMap;

use super::SqlStore;
use super::claim::Picked;
use crate::sql::lock::Lock;
use crate::sql::{Cells, Connection, Row, Statement, database, query};
use crate::{ClaimLimits, ClaimRequest, Claims, Error};

const CLAIMING: &str = "claiming operations within limits";
/// Stands for the right to claim within limits: one at a time, or two would each see room for one.
const LOCK: &str = "evenkeel claim limits";

/// What runs, by tenant and component.
const RUNNING: Statement = Statement::each(
    "SELECT coalesce(tenant, '') AS tenant, component, count(*) AS running FROM operations INDEXED BY operations_running \
     WHERE state = 'running' GROUP BY 1, 2",
    "SELECT coalesce(tenant, '') AS tenant, component, count(*) AS running FROM operations \
     WHERE state = 'running' GROUP BY 1, 2",
);
/// What is ready and of none of the tenants and components that have their share.
const READY: Statement = Statement::each(
    "SELECT o.id, o.cluster_id, o.component, coalesce(o.tenant, '') AS tenant, r.strategy, r.deadline, r.request_id \
     FROM operations o CROSS JOIN reconciliations r ON r.id = o.reconciliation_id \
     WHERE o.rank IS NOT NULL AND coalesce(o.tenant, '') NOT IN (SELECT value FROM json_each($2)) \
     AND o.component NOT IN (SELECT value FROM json_each($3)) AND NOT EXISTS (SELECT 1 FROM operations other \
     WHERE other.cluster_id = o.cluster_id AND other.component = o.component AND other.state = 'running') \
     ORDER BY o.rank LIMIT $1",
    "SELECT o.id, o.cluster_id, o.component, coalesce(o.tenant, '') AS tenant, r.strategy, r.deadline, r.request_id \
     FROM operations o JOIN reconciliations r ON r.id = o.reconciliation_id \
     WHERE o.rank IS NOT NULL AND coalesce(o.tenant, '') <> ALL ($2) AND o.component <> ALL ($3) \
     AND NOT EXISTS (SELECT 1 FROM operations other \
     WHERE other.cluster_id = o.cluster_id AND other.component = o.component AND other.state = 'running') \
     ORDER BY o.rank LIMIT $1 FOR NO KEY UPDATE OF o SKIP LOCKED",
);

/// What runs, and what may.
struct Room<'l> {
    limits: &'l ClaimLimits,
    total: u32,
    tenants: HashMap<String, u32>,
    components: HashMap<String, u32>,
}

impl Room<'_> {
    fn add(&mut self, tenant: &str, component: &str, count: u32) {
        self.total = self.total.saturating_add(count);
        for (counts, key) in [(&mut self.tenants, tenant), (&mut self.components, component)] {
            let running = counts.entry(key.to_owned()).or_default();
            *running = running.saturating_add(count);
        }
    }

    /// How many more may run.
    fn left(&self) -> u32 {
        self.limits
            .total
            .map_or(u32::MAX, |total| total.saturating_sub(self.total))
    }

    fn has_room(&self, tenant: &str, component: &str) -> bool {
        let below = |limit: Option<u32>, counts: &HashMap<String, u32>, key: &str| {
            limit.is_none_or(|limit| counts.get(key).copied().unwrap_or_default() < limit)
        };
        self.left() > 0
            && below(self.limits.per_tenant, &self.tenants, tenant)
            && below(self.limits.per_component, &self.components, component)
    }

    /// Whoever has its share already.
    fn full(limit: Option<u32>, counts: &HashMap<String, u32>) -> Vec<String> {
        let full = counts
            .iter()
            .filter(|(_, count)| limit.is_some_and(|limit| **count >= limit));
        full.map(|(key, _)| key.clone()).collect()
    }
}

impl SqlStore {
    /// Claims at most `most` operations within the limits. Answers whether anything was taken.
    pub(super) async fn claim_limited(
        &self,
        connection: &mut Connection,
        most: u32,
        (request, limits): (&ClaimRequest, &ClaimLimits),
        until: i64,
        claims: &mut Claims,
    ) -> Result<bool, Error> {
        connection.lock(Lock::Name(LOCK)).await?;
        let mut room = running(connection, limits).await?;
        let mut left = most;
        let mut took = false;
        // Each round leaves at least one tenant or component out that the one before still had.
        loop {
            let asked = left.min(room.left());
            if asked == 0 {
                return Ok(took);
            }
            let rows = query(READY)
                .bind(i64::from(asked))
                .bind(Room::full(limits.per_tenant, &room.tenants))
                .bind(Room::full(limits.per_component, &room.components))
                .fetch_all(&mut *connection)
                .await
                .map_err(database(CLAIMING))?;
            let picked = choose(&rows, &mut room)?;
            let chosen = u32::try_from(picked.len()).unwrap_or(u32::MAX);
            let passed_over = rows.len() > picked.len();
            if !picked.is_empty() {
                took = true;
                self.take(connection, &picked, request, until, claims).await?;
            }
            left = left.saturating_sub(chosen);
            if !passed_over || picked.is_empty() {
                return Ok(took);
            }
        }
    }
}

async fn running<'l>(connection: &mut Connection, limits: &'l ClaimLimits) -> Result<Room<'l>, Error> {
    let rows = query(RUNNING)
        .fetch_all(connection)
        .await
        .map_err(database(CLAIMING))?;
    let mut room = Room {
        limits,
        total: 0,
        tenants: HashMap::new(),
        components: HashMap::new(),
    };
    for row in &rows {
        let cells = Cells::new(row, "operations", "");
        let (tenant, component): (String, String) = (cells.get("tenant")?, cells.get("component")?);
        room.add(&tenant, &component, cells.count("running")?);
    }
    Ok(room)
}

/// Those of `rows` that there is room for, at most one of each component of a cluster.
fn choose(rows: &[Row], room: &mut Room<'_>) -> Result<HashMap<String, Picked>, Error> {
    let mut components = std::collections::HashSet::new();
    let mut picked = HashMap::with_capacity(rows.len());
    for (order, row) in rows.iter().enumerate() {
        let cells = Cells::new(row, "operations", "");
        let (cluster, component): (String, String) = (cells.get("cluster_id")?, cells.get("component")?);
        let tenant: String = cells.get("tenant")?;
        if room.has_room(&tenant, &component) && components.insert((cluster, component.clone())) {
            room.add(&tenant, &component, 1);
            picked.insert(cells.get("id")?, Picked::read(&cells, order)?);
        }
    }
    Ok(picked)
}
