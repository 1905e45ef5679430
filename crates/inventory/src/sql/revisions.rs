//! Component revisions.

use async_trait::async_trait;
use evenkeel_core::{ClusterId, ComponentName, ComponentRevision, Digest};

use super::SqlStore;
use super::lock::Lock;
use super::renders::forget_renders;
use super::rows::int;
use crate::sql::{Cells, Connection, database, query, repeating};
use crate::{Error, Revisions};

impl SqlStore {
    /// One try.
    async fn resolve_revision_once(
        &self,
        cluster: &ClusterId,
        component: &ComponentName,
        inputs: &Digest,
    ) -> Result<ComponentRevision, Error> {
        let doing = "resolving a revision";
        // The digest covers secret values: kept as it is, guesses could be tried on it.
        let hash = self
            .cipher
            .content_hash([&b"inputs"[..], inputs.as_bytes()])
            .to_vec();
        let mut transaction = self.write(doing).await?;
        transaction.lock(Lock::Cluster(cluster.as_str())).await?;
        let row = query(
            "SELECT c.name, k.revision, k.inputs_hash FROM clusters c \
             LEFT JOIN components k ON k.cluster_id = c.id AND k.component = $2 WHERE c.id = $1 AND c.deleted_at IS NULL",
        )
        .bind(cluster.as_str())
        .bind(component.as_str())
        .fetch_optional(&mut *transaction)
        .await
        .map_err(database(doing))?
        .ok_or_else(|| Error::not_found("cluster", cluster))?;
        let cells = Cells::new(&row, "components", format!("{cluster}/{component}"));
        let present = ComponentRevision(match cells.get::<Option<i64>>("revision")? {
            None => 0,
            Some(_) => cells.number("revision")?,
        });
        if cells.get::<Option<Vec<u8>>>("inputs_hash")?.as_ref() == Some(&hash) {
            return Ok(present);
        }
        let next = present.next();
        query(
            "INSERT INTO components (cluster_id, component, name, listed, revision, inputs_hash, fence) \
             VALUES ($1, $2, $3, 0, $4, $5, 0) \
             ON CONFLICT (cluster_id, component) DO UPDATE SET revision = $4, inputs_hash = $5",
        )
        .bind(cluster.as_str())
        .bind(component.as_str())
        .bind(cells.get::<&str>("name")?)
        .bind(int(next.0))
        .bind(hash)
        .execute(&mut *transaction)
        .await
        .map_err(database(doing))?;
        transaction.commit(doing).await?;
        Ok(next)
    }
}

#[async_trait]
impl Revisions for SqlStore {
    async fn resolve_revision(
        &self,
        cluster: &ClusterId,
        component: &ComponentName,
        inputs: &Digest,
    ) -> Result<ComponentRevision, Error> {
        repeating(|| self.resolve_revision_once(cluster, component, inputs)).await
    }
}

impl SqlStore {
    /// A component was deleted: the next install is revision 1 again, with passwords of its own. The fence stays.
    pub(super) async fn forget_revision(
        &self,
        connection: &mut Connection,
        cluster: &str,
        component: &str,
    ) -> Result<(), Error> {
        query(
            "UPDATE components SET revision = 0, inputs_hash = NULL WHERE cluster_id = $1 AND component = $2",
        )
        .bind(cluster)
        .bind(component)
        .execute(&mut *connection)
        .await
        .map_err(database("forgetting a revision"))?;
        forget_renders(connection, cluster, component).await
    }
}
