//! What is kept beside the parent, in Secrets of one chunk each: renders that cannot be made again, because a chart that drew
//! a password must not draw another; and the hooks of a deletion, which run when the source may be gone.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use evenkeel_core::{ComponentRevision, Digest, ObjectRef, Sensitive};
use serde::Deserialize;
use serde_json::json;

use crate::Error;
use crate::applyset::labels::{RENDER_OF, SYSTEM_NAMESPACE};
use crate::applyset::parent::secret_ref;
use crate::applyset::record::{compress, decompress};
use crate::guard::Attempt;
use crate::live::LiveObject;
use crate::objects::{Propagation, Selection, secrets};
use crate::race::{self, Doomed};
use crate::target::ComponentTarget;

/// Bytes of one chunk before base64, so that a Secret stays well under 1 MiB.
const CHUNK: usize = 700_000;
/// The most chunks of one render: about 20 MB compressed.
const CHUNKS_MAX: usize = 32;
const KEY: &str = "render";
const REVISION: &str = "evenkeel.dev/revision";
const INDEX: &str = "evenkeel.dev/chunk";
const CHUNKS: &str = "evenkeel.dev/chunks";
const DIGEST: &str = "evenkeel.dev/digest";
/// On chunks of the hooks of a deletion.
const DELETE_HOOKS: &str = "evenkeel.dev/delete-hooks";

/// What is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keepsake {
    /// The render of a revision.
    Render(ComponentRevision),
    /// The hooks of the component's deletion, by their digest.
    DeleteHooks(Digest),
}

/// One chunk's Secret.
#[derive(Deserialize)]
struct Chunk {
    metadata: ChunkMetadata,
    #[serde(default)]
    data: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ChunkMetadata {
    name: String,
    uid: String,
    resource_version: String,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

impl Chunk {
    fn annotation<T: std::str::FromStr>(&self, key: &str) -> Option<T> {
        self.metadata.annotations.get(key)?.parse().ok()
    }

    /// What it is a part of.
    fn keepsake(&self) -> Option<Keepsake> {
        if self.metadata.annotations.contains_key(DELETE_HOOKS) {
            return self.annotation(DIGEST).map(Keepsake::DeleteHooks);
        }
        self.annotation(REVISION)
            .map(|revision| Keepsake::Render(ComponentRevision(revision)))
    }

    fn is_other_render(&self, revision: ComponentRevision) -> bool {
        !matches!(self.keepsake(), Some(Keepsake::DeleteHooks(_)))
            && self.keepsake() != Some(Keepsake::Render(revision))
    }

    /// The number at the end of its name.
    fn number(&self) -> Option<u64> {
        self.metadata.name.rsplit('-').next()?.parse().ok()
    }
}

impl ComponentTarget {
    /// Keeps `render` for `revision`, in Secrets `<parent>-render-<n>` of unused numbers, so that what was kept before
    /// stays whole until it is deleted.
    ///
    /// # Errors
    /// [`Error::TooLarge`] beyond about 20 MB compressed; whatever a request fails with.
    pub async fn store_render(
        &self,
        revision: ComponentRevision,
        render: &Sensitive<Vec<u8>>,
        attempt: &Attempt,
    ) -> Result<(), Error> {
        self.store(Keepsake::Render(revision), render, attempt).await
    }

    /// Keeps `bytes` as `keepsake`.
    pub(crate) async fn store(
        &self,
        keepsake: Keepsake,
        bytes: &Sensitive<Vec<u8>>,
        attempt: &Attempt,
    ) -> Result<(), Error> {
        let what = match keepsake {
            Keepsake::Render(_) => "the render",
            Keepsake::DeleteHooks(_) => "the hooks of the deletion",
        };
        let packed = compress(bytes.expose())
            .map_err(|error| Error::Bug(format!("{what} cannot be packed: {error}")))?;
        let chunks: Vec<&[u8]> = packed.chunks(CHUNK).collect();
        if chunks.len() > CHUNKS_MAX {
            let what = format!("{what} of component {}", self.name());
            return Err(Error::TooLarge {
                what,
                bytes: packed.len(),
                limit: CHUNK * CHUNKS_MAX,
            });
        }
        let digest = Digest::of(bytes.expose());
        let kept = self.chunks().await?;
        if complete(&kept, keepsake).is_some_and(|(_, known)| known == digest) {
            return Ok(());
        }
        // A torn one of the same name is in nobody's way: it is not complete.
        self.delete_chunks(
            kept.iter().filter(|chunk| chunk.keepsake() == Some(keepsake)),
            attempt,
        )
        .await?;
        let used: BTreeSet<u64> = kept.iter().filter_map(Chunk::number).collect();
        let numbers = (1..).filter(|number| !used.contains(number));
        let total = chunks.len();
        for ((index, chunk), number) in chunks.into_iter().enumerate().zip(numbers) {
            let object = self.render_ref(number);
            let (key, value) = match keepsake {
                Keepsake::Render(revision) => (REVISION, revision.to_string()),
                Keepsake::DeleteHooks(_) => (DELETE_HOOKS, "true".to_owned()),
            };
            let body = json!({
                "apiVersion": "v1", "kind": "Secret", "type": "evenkeel.dev/render",
                "metadata": {
                    "name": object.name, "namespace": SYSTEM_NAMESPACE,
                    "labels": {RENDER_OF: self.parent_name()},
                    "annotations": {
                        key: value, INDEX: index.to_string(), CHUNKS: total.to_string(),
                        DIGEST: digest.to_string(),
                    },
                },
                "data": {KEY: STANDARD.encode(chunk)},
            });
            match self
                .cluster()
                .create(&secrets(), &object, &body, &*attempt.guard)
                .await
            {
                Ok(_) => {}
                Err(error) if error.is_not_found() => {
                    self.cluster().create_system_namespace(&*attempt.guard).await?;
                    self.cluster()
                        .create(&secrets(), &object, &body, &*attempt.guard)
                        .await?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The render kept for `revision`; none when there is none, or not all of it.
    ///
    /// # Errors
    /// Whatever the request fails with.
    pub async fn load_render(
        &self,
        revision: ComponentRevision,
    ) -> Result<Option<Sensitive<Vec<u8>>>, Error> {
        self.load(Keepsake::Render(revision)).await
    }

    /// What is kept as `keepsake`; none when nothing is, or not all of it.
    pub(crate) async fn load(&self, keepsake: Keepsake) -> Result<Option<Sensitive<Vec<u8>>>, Error> {
        let kept = self.chunks().await?;
        let Some((chunks, digest)) = complete(&kept, keepsake) else {
            return Ok(None);
        };
        let mut packed = Vec::new();
        for chunk in chunks {
            let Some(part) = chunk.data.get(KEY).and_then(|text| STANDARD.decode(text).ok()) else {
                return Ok(None);
            };
            packed.extend_from_slice(&part);
        }
        let Ok(bytes) = decompress(&packed) else {
            return Ok(None);
        };
        Ok((Digest::of(&bytes) == digest).then(|| Sensitive::new(bytes)))
    }

    /// Deletes every kept render but that of `revision`.
    ///
    /// # Errors
    /// Whatever a request fails with.
    pub async fn forget_other_renders(
        &self,
        revision: ComponentRevision,
        attempt: &Attempt,
    ) -> Result<(), Error> {
        let kept = self.chunks().await?;
        self.delete_chunks(
            kept.iter().filter(|chunk| chunk.is_other_render(revision)),
            attempt,
        )
        .await
    }

    /// Deletes the hooks of its deletion that are kept, but those of `digest`.
    pub(crate) async fn forget_other_hooks(
        &self,
        digest: Option<Digest>,
        attempt: &Attempt,
    ) -> Result<(), Error> {
        let kept = self.chunks().await?;
        let others = kept.iter().filter(
            |chunk| matches!(chunk.keepsake(), Some(Keepsake::DeleteHooks(of)) if Some(of) != digest),
        );
        self.delete_chunks(others, attempt).await
    }

    /// Deletes everything that is kept.
    pub(crate) async fn delete_renders(&self, attempt: &Attempt) -> Result<(), Error> {
        let kept = self.chunks().await?;
        self.delete_chunks(kept.iter(), attempt).await
    }

    fn render_ref(&self, number: u64) -> ObjectRef {
        secret_ref(&format!("{}-render-{number}", self.parent_name()))
    }

    async fn chunks(&self) -> Result<Vec<Chunk>, Error> {
        let selector = format!("{RENDER_OF}={}", self.parent_name());
        let selection = Selection {
            namespace: Some(SYSTEM_NAMESPACE),
            labels: &selector,
            ..Selection::default()
        };
        let listed = self.cluster().list_full(&secrets(), selection).await?;
        let read =
            |item| serde_json::from_value(item).map_err(|error| Error::decode("list kept renders", &error));
        listed.items.into_iter().map(read).collect()
    }

    async fn delete_chunks<'a>(
        &self,
        chunks: impl Iterator<Item = &'a Chunk>,
        attempt: &Attempt,
    ) -> Result<(), Error> {
        for chunk in chunks {
            let ChunkMetadata {
                name,
                uid,
                resource_version,
                ..
            } = &chunk.metadata;
            let doomed = Doomed {
                resource: &secrets(),
                object: &secret_ref(name),
                uid,
                resource_version,
            };
            let still = |now: &LiveObject| now.labels.render_of.as_deref() == Some(self.parent_name());
            race::delete(
                self.cluster(),
                doomed,
                Propagation::Background,
                &*attempt.guard,
                &still,
            )
            .await?;
        }
        Ok(())
    }
}

/// The chunks of `keepsake` in their order, when all are there, and the digest of the whole.
fn complete(kept: &[Chunk], keepsake: Keepsake) -> Option<(Vec<&Chunk>, Digest)> {
    let mut chunks: Vec<&Chunk> = kept
        .iter()
        .filter(|chunk| chunk.keepsake() == Some(keepsake))
        .collect();
    chunks.sort_by_key(|chunk| chunk.annotation::<usize>(INDEX));
    let first = chunks.first()?;
    let total: usize = first.annotation(CHUNKS)?;
    let digest: Digest = first.annotation(DIGEST)?;
    let whole = chunks.len() == total
        && chunks
            .iter()
            .enumerate()
            .all(|(index, chunk)| chunk.annotation(INDEX) == Some(index))
        && chunks
            .iter()
            .all(|chunk| chunk.annotation(DIGEST) == Some(digest));
    whole.then_some((chunks, digest))
}
