//! Archives, kept renders and component revisions.

use async_trait::async_trait;
use evenkeel_core::{ClusterId, ComponentName, ComponentRevision, Digest, Sensitive, SourceRef};
use jiff::Timestamp;

use super::rows::ArchiveRow;
use super::{MemoryStore, Transaction};
use crate::sql::rows::millis;
use crate::{
    ARCHIVE_BYTES_MAX, Archives, AuditAction, Error, RENDER_BYTES_MAX, RENDERS_KEPT, Renders, Revisions,
};

fn too_large(what: &'static str, size: usize, max: usize) -> Result<(), Error> {
    match size > max {
        true => Err(Error::TooLarge { what, size, max }),
        false => Ok(()),
    }
}

fn copy(content: &Sensitive<Vec<u8>>) -> Sensitive<Vec<u8>> {
    Sensitive::new(content.expose().clone())
}

impl Transaction<'_> {
    fn put_archive(&mut self, content: Vec<u8>) -> Result<Digest, Error> {
        too_large("archive", content.len(), ARCHIVE_BYTES_MAX)?;
        let digest = Digest::of(&content);
        let bytes = content.len();
        let row = ArchiveRow {
            content,
            created_at: self.now,
        };
        self.write().archives.insert(digest, row);
        let detail = serde_json::json!({"bytes": bytes});
        self.audit(AuditAction::PutArchive, &format!("archive/{digest}"), &detail);
        Ok(digest)
    }

    fn remove_unused_archives(&mut self, before: i64, limit: u32) -> u64 {
        let named = |digest: &Digest| {
            let mut specs = self
                .rows
                .configurations
                .values()
                .flat_map(|row| &row.spec.components);
            specs.any(|spec| matches!(&spec.source, SourceRef::Archive { digest: named } if named == digest))
        };
        let old = self
            .rows
            .archives
            .iter()
            .filter(|(_, row)| row.created_at < before);
        let unused: Vec<Digest> = old
            .map(|(digest, _)| *digest)
            .filter(|digest| !named(digest))
            .take(limit as usize)
            .collect();
        for digest in &unused {
            self.write().archives.remove(digest);
        }
        unused.len() as u64
    }

    fn put_render(
        &mut self,
        cluster: &ClusterId,
        component: &ComponentName,
        revision: ComponentRevision,
        content: &Sensitive<Vec<u8>>,
    ) -> Result<Sensitive<Vec<u8>>, Error> {
        too_large("render", content.expose().len(), RENDER_BYTES_MAX)?;
        self.rows.cluster(cluster)?;
        let key = (cluster.clone(), component.clone(), revision);
        let renders = &mut self.write().renders;
        if let Some(kept) = renders.get(&key) {
            return Ok(copy(kept));
        }
        renders.retain(|(id, name, other), _| {
            id != cluster || name != component || other.0.saturating_add(RENDERS_KEPT) > revision.0
        });
        renders.insert(key, copy(content));
        Ok(copy(content))
    }

    fn resolve_revision(
        &mut self,
        cluster: &ClusterId,
        component: &ComponentName,
        inputs: &Digest,
    ) -> Result<ComponentRevision, Error> {
        self.rows.live_cluster(cluster)?;
        let row = self
            .write()
            .components
            .entry((cluster.clone(), component.clone()))
            .or_default();
        if row.inputs != Some(*inputs) {
            row.revision = row.revision.next();
            row.inputs = Some(*inputs);
        }
        Ok(row.revision)
    }
}

#[async_trait]
impl Archives for MemoryStore {
    async fn put_archive(&self, content: Vec<u8>) -> Result<Digest, Error> {
        self.call("put_archive", |transaction| transaction.put_archive(content))
            .await
    }

    async fn archive(&self, digest: &Digest) -> Result<Vec<u8>, Error> {
        self.call("archive", |transaction| {
            let row = transaction.rows.archives.get(digest);
            row.map(|row| row.content.clone())
                .ok_or_else(|| Error::not_found("archive", digest))
        })
        .await
    }

    async fn remove_unused_archives(&self, before: Timestamp, limit: u32) -> Result<u64, Error> {
        self.call("remove_unused_archives", |transaction| {
            Ok(transaction.remove_unused_archives(millis(before), limit))
        })
        .await
    }
}

#[async_trait]
impl Renders for MemoryStore {
    async fn put_render(
        &self,
        cluster: &ClusterId,
        component: &ComponentName,
        revision: ComponentRevision,
        content: Sensitive<Vec<u8>>,
    ) -> Result<Sensitive<Vec<u8>>, Error> {
        self.call("put_render", |transaction| {
            transaction.put_render(cluster, component, revision, &content)
        })
        .await
    }

    async fn render(
        &self,
        cluster: &ClusterId,
        component: &ComponentName,
        revision: ComponentRevision,
    ) -> Result<Option<Sensitive<Vec<u8>>>, Error> {
        self.call("render", |transaction| {
            let key = (cluster.clone(), component.clone(), revision);
            Ok(transaction.rows.renders.get(&key).map(copy))
        })
        .await
    }
}

#[async_trait]
impl Revisions for MemoryStore {
    async fn resolve_revision(
        &self,
        cluster: &ClusterId,
        component: &ComponentName,
        inputs: &Digest,
    ) -> Result<ComponentRevision, Error> {
        self.call("resolve_revision", |transaction| {
            transaction.resolve_revision(cluster, component, inputs)
        })
        .await
    }
}
