//! Lists of clusters: keyset pages by name, driven by the index of the most telling condition.

use super::SqlStore;
use super::rows::has_nul;
use crate::sql::{Cells, Row, Statement, database, query};
use crate::{Cluster, ClusterFilter, Cursor, Error, Page, PageRequest};
use evenkeel_core::ClusterState;

/// The columns of a cluster with its status.
macro_rules! cluster_fields {
    () => {
        "SELECT c.id, c.name, c.tenant, c.cluster_group, c.labels, c.version, c.kubeconfig, c.kube_system_uid, \
         c.created_at, c.deletion_mode, c.deletion_requested_at, c.deleted_at, s.state, s.since, s.observed_version, \
         s.reason, s.due_lane, s.next_due_at, s.due_stamp, s.failures, s.suspended_until, s.asked, s.last_check_at FROM "
    };
}
pub(super) use cluster_fields;

/// The text of one statement: what drives, what it asks of the driver, the name that gives the order, and the
/// condition for the wanted labels. $1 after, $2 limit, $3 state, $4 tenant, $5 group, $6 component, $7 labels as JSON
/// object, $8 and $9 the driving label.
macro_rules! page {
    ($from:expr, $driver:literal, $name:literal, $labels:literal) => {
        concat!(
            cluster_fields!(),
            $from,
            " WHERE c.deleted_at IS NULL AND ",
            $driver,
            " AND ",
            $name,
            " > $1 AND ($3 IS NULL OR s.state = $3) AND ($4 IS NULL OR c.tenant = $4) \
             AND ($5 IS NULL OR c.cluster_group = $5) \
             AND ($6 IS NULL OR EXISTS (SELECT 1 FROM components k \
                  WHERE k.cluster_id = c.id AND k.component = $6 AND k.listed = 1)) \
             AND ",
            $labels,
            " ORDER BY ",
            $name,
            " LIMIT $2"
        )
    };
}

/// One statement per driver: its index gives the order, and the conditions that do not drive are tested row by row.
/// Neither planner may begin elsewhere: on SQLite `CROSS JOIN` keeps the driver outermost, on PostgreSQL what is joined is
/// a row of its own for each of the driver's, which `OFFSET 0` keeps apart.
macro_rules! driven {
    ($first:literal $(, $table:literal $alias:literal by $column:literal = $key:literal)+; $driver:literal, $name:literal) => {
        Statement::each(
            page!(
                concat!($first $(, " CROSS JOIN ", $table, " ", $alias, " ON ", $alias, ".", $column, " = ", $key)+),
                $driver,
                $name,
                "NOT EXISTS (SELECT 1 FROM json_each($7) w WHERE NOT EXISTS (SELECT 1 FROM cluster_labels l \
                 WHERE l.key = w.key AND l.value = w.value AND l.name = c.name))"
            ),
            page!(
                concat!($first $(, " JOIN LATERAL (SELECT * FROM ", $table, " WHERE ", $column, " = ", $key, " OFFSET 0) ", $alias, " ON true")+),
                $driver,
                $name,
                "c.labels::jsonb @> $7::jsonb"
            ),
        )
    };
}

const BY_LABEL: Statement = driven!(
    "cluster_labels d", "clusters" "c" by "id" = "d.cluster_id", "cluster_status" "s" by "cluster_id" = "c.id";
    "d.key = $8 AND d.value = $9", "d.name"
);
const BY_COMPONENT: Statement = driven!(
    "components d", "clusters" "c" by "id" = "d.cluster_id", "cluster_status" "s" by "cluster_id" = "c.id";
    "d.component = $6 AND d.listed = 1", "d.name"
);
const BY_STATE: Statement = driven!(
    "cluster_status s", "clusters" "c" by "id" = "s.cluster_id";
    "s.state = $3", "s.name"
);
const BY_TENANT: Statement = driven!(
    "clusters c", "cluster_status" "s" by "cluster_id" = "c.id";
    "c.tenant = $4", "c.name"
);
const BY_GROUP: Statement = driven!(
    "clusters c", "cluster_status" "s" by "cluster_id" = "c.id";
    "c.cluster_group = $5", "c.name"
);
const ALL: Statement = driven!(
    "clusters c", "cluster_status" "s" by "cluster_id" = "c.id";
    "true", "c.name"
);

/// The statement for a filter: a rare state, then labels, tenant, group, component, and the state `ready` last.
pub(super) fn statement(filter: &ClusterFilter) -> Statement {
    match filter {
        ClusterFilter {
            state: Some(state), ..
        } if *state != ClusterState::Ready => BY_STATE,
        ClusterFilter { labels, .. } if !labels.is_empty() => BY_LABEL,
        ClusterFilter { tenant: Some(_), .. } => BY_TENANT,
        ClusterFilter { group: Some(_), .. } => BY_GROUP,
        ClusterFilter {
            component: Some(_), ..
        } => BY_COMPONENT,
        ClusterFilter { state: Some(_), .. } => BY_STATE,
        _ => ALL,
    }
}

impl SqlStore {
    /// One page of live clusters.
    pub(super) async fn list(
        &self,
        filter: &ClusterFilter,
        page: &PageRequest,
    ) -> Result<Page<Cluster>, Error> {
        let limit = page.limit();
        // No text that is kept holds a NUL: PostgreSQL has no such texts.
        let own = [filter.tenant.as_deref(), filter.group.as_deref()];
        let labels = filter
            .labels
            .iter()
            .flat_map(|(key, value)| [key.as_str(), value]);
        if own.into_iter().flatten().chain(labels).any(has_nul) {
            return Ok(Page::default());
        }
        let labels = serde_json::json!(filter.labels).to_string();
        let driving = filter.labels.first_key_value();
        let rows = query(statement(filter))
            .bind(page.text_cursor().unwrap_or_default())
            .bind(i64::from(limit) + 1)
            .bind(filter.state.map(ClusterState::as_str))
            .bind(filter.tenant.as_deref())
            .bind(filter.group.as_deref())
            .bind(
                filter
                    .component
                    .as_ref()
                    .map(evenkeel_core::ComponentName::as_str),
            )
            .bind(labels)
            .bind(driving.map(|(key, _)| key.as_str()))
            .bind(driving.map(|(_, value)| value.as_str()))
            .fetch_all(self.read())
            .await
            .map_err(database("listing clusters"))?;
        let read = |row: &Row| {
            let cells = Cells::new(row, "clusters", "");
            let name: String = cells.get("name").unwrap_or_default();
            let id: String = cells.get("id").unwrap_or_default();
            (Cursor(name), id, self.cluster_row(row))
        };
        Ok(Page::collect(&rows, limit, read))
    }
}
