//! What a version names: archives, which are kept as long as it is, and components.

use evenkeel_core::{ClusterId, ClusterSpec, SourceRef};

use super::ACCEPTING;
use crate::Error;
use crate::sql::rows::list;
use crate::sql::{Connection, Statement, database, query};

/// An archive that is being named is not removed meanwhile.
const NAME_ARCHIVE: Statement = Statement::each(
    "INSERT INTO configuration_archives (digest, cluster_id, version) \
     SELECT digest, $2, $3 FROM archives WHERE digest = $1 ON CONFLICT DO NOTHING",
    "INSERT INTO configuration_archives (digest, cluster_id, version) \
     SELECT digest, $2, $3 FROM archives WHERE digest = $1 FOR KEY SHARE ON CONFLICT DO NOTHING",
);
const LIST_COMPONENTS: Statement = Statement::each(
    "INSERT INTO components (cluster_id, component, name, listed, revision, fence) \
     SELECT $1, value, $2, 1, 0, 0 FROM json_each($3) WHERE true \
     ON CONFLICT (cluster_id, component) DO UPDATE SET listed = 1 WHERE components.listed = 0",
    "INSERT INTO components (cluster_id, component, name, listed, revision, fence) \
     SELECT $1, n.component, $2, 1, 0, 0 FROM unnest($3) AS n (component) ORDER BY n.component \
     ON CONFLICT (cluster_id, component) DO UPDATE SET listed = 1 WHERE components.listed = 0",
);
const UNLIST_COMPONENTS: Statement = Statement::each(
    "UPDATE components SET listed = 0, not_ready = NULL WHERE cluster_id = $1 AND listed = 1 \
     AND component NOT IN (SELECT value FROM json_each($2))",
    "UPDATE components SET listed = 0, not_ready = NULL WHERE cluster_id = $1 AND listed = 1 \
     AND component <> ALL ($2)",
);

/// Notes which archives a version names; they are kept as long as it is.
pub(super) async fn name_archives(
    connection: &mut Connection,
    id: &ClusterId,
    spec: &ClusterSpec,
    version: i64,
) -> Result<(), Error> {
    for component in &spec.components {
        let SourceRef::Archive { digest } = &component.source else {
            continue;
        };
        let done = query(NAME_ARCHIVE)
            .bind(digest.to_string())
            .bind(id.as_str())
            .bind(version)
            .execute(&mut *connection)
            .await
            .map_err(database(ACCEPTING))?;
        if done > 0 {
            continue;
        }
        let named_twice = query("SELECT 1 FROM archives WHERE digest = $1")
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
pub(super) async fn list_components(
    connection: &mut Connection,
    id: &ClusterId,
    spec: &ClusterSpec,
) -> Result<(), Error> {
    let components = list(spec.components.iter().map(|component| &component.name));
    query(LIST_COMPONENTS)
        .bind(id.as_str())
        .bind(spec.name.as_str())
        .bind(&components)
        .execute(&mut *connection)
        .await
        .map_err(database(ACCEPTING))?;
    query(UNLIST_COMPONENTS)
        .bind(id.as_str())
        .bind(components)
        .execute(&mut *connection)
        .await
        .map_err(database(ACCEPTING))?;
    query(
        "DELETE FROM components WHERE cluster_id = $1 AND listed = 0 AND fence = 0 AND operation_id IS NULL",
    )
    .bind(id.as_str())
    .execute(connection)
    .await
    .map(drop)
    .map_err(database(ACCEPTING))
}
