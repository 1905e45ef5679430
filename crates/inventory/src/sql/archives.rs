//! Uploaded archives.

use async_trait::async_trait;
use evenkeel_core::Digest;
use jiff::Timestamp;

use super::SqlStore;
use super::rows::millis;
use crate::sql::{Cells, Statement, database, query, repeating};
use crate::{ARCHIVE_BYTES_MAX, Archives, AuditAction, Error};

/// One that is being named is passed over.
const UNUSED: Statement = Statement::each(
    "DELETE FROM archives WHERE digest IN (SELECT digest FROM archives AS a WHERE created_at < $1 AND NOT EXISTS \
     (SELECT 1 FROM configuration_archives c WHERE c.digest = a.digest) LIMIT $2)",
    "DELETE FROM archives WHERE digest IN (SELECT digest FROM archives AS a WHERE created_at < $1 AND NOT EXISTS \
     (SELECT 1 FROM configuration_archives c WHERE c.digest = a.digest) LIMIT $2 FOR UPDATE SKIP LOCKED)",
);

impl SqlStore {
    /// One try.
    async fn put_archive_once(&self, content: &[u8]) -> Result<Digest, Error> {
        if content.len() > ARCHIVE_BYTES_MAX {
            return Err(Error::TooLarge {
                what: "archive",
                size: content.len(),
                max: ARCHIVE_BYTES_MAX,
            });
        }
        let doing = "keeping an archive";
        let digest = Digest::of(content);
        let mut transaction = self.write(doing).await?;
        // Uploaded again, it is as fresh as new: its configuration is on its way.
        query(
            "INSERT INTO archives (digest, content, created_at) VALUES ($1, $2, $3) \
             ON CONFLICT (digest) DO UPDATE SET created_at = $3",
        )
        .bind(digest.to_string())
        .bind(content)
        .bind(self.now())
        .execute(&mut *transaction)
        .await
        .map_err(database(doing))?;
        let detail = serde_json::json!({"bytes": content.len()});
        self.audit(
            &mut transaction,
            AuditAction::PutArchive,
            &format!("archive/{digest}"),
            detail,
        )
        .await?;
        transaction.commit(doing).await?;
        Ok(digest)
    }

    /// One try.
    async fn remove_unused_archives_once(&self, before: Timestamp, limit: u32) -> Result<u64, Error> {
        let doing = "removing unused archives";
        let mut transaction = self.write(doing).await?;
        let done = query(UNUSED)
            .bind(millis(before))
            .bind(i64::from(limit))
            .execute(&mut *transaction)
            .await
            .map_err(database(doing))?;
        transaction.commit(doing).await?;
        Ok(done)
    }
}

#[async_trait]
impl Archives for SqlStore {
    async fn put_archive(&self, content: Vec<u8>) -> Result<Digest, Error> {
        repeating(|| self.put_archive_once(&content)).await
    }

    async fn archive(&self, digest: &Digest) -> Result<Vec<u8>, Error> {
        let row = query("SELECT content FROM archives WHERE digest = $1")
            .bind(digest.to_string())
            .fetch_optional(self.read())
            .await
            .map_err(database("reading an archive"))?
            .ok_or_else(|| Error::not_found("archive", digest))?;
        let cells = Cells::new(&row, "archives", digest.to_string());
        let content: Vec<u8> = cells.get("content")?;
        if Digest::of(&content) != *digest {
            return Err(cells.unreadable("content", "it no longer has that digest: upload it again"));
        }
        Ok(content)
    }

    async fn remove_unused_archives(&self, before: Timestamp, limit: u32) -> Result<u64, Error> {
        repeating(|| self.remove_unused_archives_once(before, limit)).await
    }
}
