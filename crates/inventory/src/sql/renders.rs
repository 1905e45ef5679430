//! Kept renders.

use async_trait::async_trait;
use evenkeel_core::{ClusterId, ComponentName, ComponentRevision, Sensitive};

use super::SqlStore;
use super::failures::is_foreign_key_violation;
use super::rows::{deflate_bytes, inflate_bytes, int};
use crate::cipher::Column;
use crate::sql::{Connection, database, query, query_scalar, repeating};
use crate::{Error, RENDER_BYTES_MAX, RENDERS_KEPT, Renders};

const KEEPING: &str = "keeping a render";
const RENDER: &str = "SELECT content FROM renders WHERE cluster_id = $1 AND component = $2 AND revision = $3";

fn key(cluster: &ClusterId, component: &ComponentName, revision: ComponentRevision) -> String {
    format!("{cluster}/{component}/{revision}")
}

impl SqlStore {
    fn open_render(&self, key: &str, sealed: &[u8]) -> Result<Sensitive<Vec<u8>>, Error> {
        let packed = self.cipher.open(Column::RENDER, key, sealed)?;
        inflate_bytes(packed.expose(), RENDER_BYTES_MAX)
            .map_err(|reason| Column::RENDER.unreadable(key, reason))
    }
}

impl SqlStore {
    /// One try.
    async fn put_render_once(
        &self,
        cluster: &ClusterId,
        component: &ComponentName,
        revision: ComponentRevision,
        content: &Sensitive<Vec<u8>>,
    ) -> Result<Sensitive<Vec<u8>>, Error> {
        let size = content.expose().len();
        if size > RENDER_BYTES_MAX {
            return Err(Error::TooLarge {
                what: "render",
                size,
                max: RENDER_BYTES_MAX,
            });
        }
        let key = key(cluster, component, revision);
        let packed = deflate_bytes(content.expose())
            .map(Sensitive::new)
            .map_err(|source| Error::Database {
                doing: KEEPING,
                transient: false,
                source: Box::new(source),
            })?;
        let sealed = self.cipher.seal(Column::RENDER, &key, packed.expose())?;
        let mut transaction = self.write(KEEPING).await?;
        let inserted = query(
            "INSERT INTO renders (cluster_id, component, revision, content, created_at) VALUES ($1, $2, $3, $4, $5) \
             ON CONFLICT (cluster_id, component, revision) DO NOTHING",
        )
        .bind(cluster.as_str())
        .bind(component.as_str())
        .bind(int(revision.0))
        .bind(sealed)
        .bind(self.now())
        .execute(&mut *transaction)
        .await
        .map_err(database(KEEPING))
        .map_err(|error| match is_foreign_key_violation(&error) {
            true => Error::not_found("cluster", cluster),
            false => error,
        })?;
        if inserted == 0 {
            let kept: Vec<u8> = query_scalar(RENDER)
                .bind(cluster.as_str())
                .bind(component.as_str())
                .bind(int(revision.0))
                .fetch_one(&mut *transaction)
                .await
                .map_err(database(KEEPING))?;
            return self.open_render(&key, &kept);
        }
        query("DELETE FROM renders WHERE cluster_id = $1 AND component = $2 AND revision <= $3")
            .bind(cluster.as_str())
            .bind(component.as_str())
            .bind(int(revision.0).saturating_sub(int(RENDERS_KEPT)))
            .execute(&mut *transaction)
            .await
            .map_err(database(KEEPING))?;
        transaction.commit(KEEPING).await?;
        Ok(Sensitive::new(content.expose().clone()))
    }
}

#[async_trait]
impl Renders for SqlStore {
    async fn put_render(
        &self,
        cluster: &ClusterId,
        component: &ComponentName,
        revision: ComponentRevision,
        content: Sensitive<Vec<u8>>,
    ) -> Result<Sensitive<Vec<u8>>, Error> {
        repeating(|| self.put_render_once(cluster, component, revision, &content)).await
    }

    async fn render(
        &self,
        cluster: &ClusterId,
        component: &ComponentName,
        revision: ComponentRevision,
    ) -> Result<Option<Sensitive<Vec<u8>>>, Error> {
        let sealed: Option<Vec<u8>> = query_scalar(RENDER)
            .bind(cluster.as_str())
            .bind(component.as_str())
            .bind(int(revision.0))
            .fetch_optional(self.read())
            .await
            .map_err(database("reading a render"))?;
        sealed
            .map(|sealed| self.open_render(&key(cluster, component, revision), &sealed))
            .transpose()
    }
}

/// Wipes the renders of a component that was deleted.
pub(super) async fn forget_renders(
    connection: &mut Connection,
    cluster: &str,
    component: &str,
) -> Result<(), Error> {
    query("DELETE FROM renders WHERE cluster_id = $1 AND component = $2")
        .bind(cluster)
        .bind(component)
        .execute(connection)
        .await
        .map(drop)
        .map_err(database("forgetting renders"))
}
