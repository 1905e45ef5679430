//! Lists of clusters: keyset pages by name, driven by the index of the most telling condition.

use sqlx::sqlite::SqliteRow;

use super::SqliteStore;
use super::rows::{Cells, database};
use crate::{Cluster, ClusterFilter, Cursor, Error, Page, PageRequest};
use evenkeel_core::ClusterState;

/// The columns of a cluster with its status.
macro_rules! cluster_fields {
    () => {
        "SELECT c.id, c.name, c.tenant, c.cluster_group, c.labels, c.version, c.kubeconfig, c.kube_system_uid, \
         c.created_at, c.deletion_mode, c.deletion_requested_at, c.deleted_at, s.state, s.since, s.observed_version, \
         s.reason, s.due_lane, s.next_due_at, s.due_stamp, s.failures, s.suspended_until, s.last_check_at FROM "
    };
}
pub(super) use cluster_fields;

/// One statement per driver: `CROSS JOIN` keeps the driver outermost, its index gives the order, and the conditions
/// that do not drive are tested row by row. ?1 after, ?2 limit, ?3 state, ?4 tenant, ?5 group, ?6 component,
/// ?7 labels as JSON object, ?8 and ?9 the driving label.
macro_rules! driven {
    ($from:literal, $driver:literal, $name:literal) => {
        concat!(
            cluster_fields!(),
            $from,
            " WHERE c.deleted_at IS NULL AND ",
            $driver,
            " AND ",
            $name,
            " > ?1 AND (?3 IS NULL OR s.state = ?3) AND (?4 IS NULL OR c.tenant = ?4) \
             AND (?5 IS NULL OR c.cluster_group = ?5) \
             AND (?6 IS NULL OR EXISTS (SELECT 1 FROM components k \
                  WHERE k.cluster_id = c.id AND k.component = ?6 AND k.listed = 1)) \
             AND NOT EXISTS (SELECT 1 FROM json_each(?7) w WHERE NOT EXISTS (SELECT 1 FROM cluster_labels l \
                  WHERE l.key = w.key AND l.value = w.value AND l.name = c.name)) ORDER BY ",
            $name,
            " LIMIT ?2"
        )
    };
}

const BY_LABEL: &str = driven!(
    "cluster_labels d CROSS JOIN clusters c ON c.id = d.cluster_id CROSS JOIN cluster_status s ON s.cluster_id = c.id",
    "d.key = ?8 AND d.value = ?9",
    "d.name"
);
const BY_COMPONENT: &str = driven!(
    "components d CROSS JOIN clusters c ON c.id = d.cluster_id CROSS JOIN cluster_status s ON s.cluster_id = c.id",
    "d.component = ?6 AND d.listed = 1",
    "d.name"
);
const BY_STATE: &str = driven!(
    "cluster_status s CROSS JOIN clusters c ON c.id = s.cluster_id",
    "s.state = ?3",
    "s.name"
);
const BY_TENANT: &str = driven!(
    "clusters c CROSS JOIN cluster_status s ON s.cluster_id = c.id",
    "c.tenant = ?4",
    "c.name"
);
const BY_GROUP: &str = driven!(
    "clusters c CROSS JOIN cluster_status s ON s.cluster_id = c.id",
    "c.cluster_group = ?5",
    "c.name"
);
const ALL: &str = driven!(
    "clusters c CROSS JOIN cluster_status s ON s.cluster_id = c.id",
    "true",
    "c.name"
);

/// The statement for a filter: a rare state, then labels, tenant, group, component, and the state `ready` last.
pub(super) fn statement(filter: &ClusterFilter) -> &'static str {
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

impl SqliteStore {
    /// One page of live clusters.
    pub(super) async fn list(
        &self,
        filter: &ClusterFilter,
        page: &PageRequest,
    ) -> Result<Page<Cluster>, Error> {
        let limit = page.limit();
        let labels = serde_json::json!(filter.labels).to_string();
        let driving = filter.labels.first_key_value();
        let rows = sqlx::query(statement(filter))
            .bind(page.after.as_ref().map_or("", |cursor| cursor.0.as_str()))
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
        let read = |row: &SqliteRow| {
            let cells = Cells::new(row, "clusters", "");
            let name: String = cells.get("name").unwrap_or_default();
            let id: String = cells.get("id").unwrap_or_default();
            (Cursor(name), id, self.cluster_row(row))
        };
        Ok(Page::collect(&rows, limit, read))
    }
}
