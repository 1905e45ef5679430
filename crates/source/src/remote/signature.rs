//! Signatures of charts: files beside archives in repositories, layers in registries.

use std::sync::Arc;

use bytes::Bytes;
use evenkeel_chart::Chart;
use evenkeel_core::{Digest, OciReference};
use serde::{Deserialize, Serialize};

use super::fetch::{PROVENANCE_SIZE_MAX, split_reference};
use super::resolution::{Origin, Resolution};
use super::{Inner, Remote, RemoteSource, Wish};
use crate::Error;
use crate::address::shown;
use crate::helm::provenance::EXTENSION;
use crate::registry::{Layer, Place};
use crate::store::Note;
use crate::version::Pick;

/// The signature of a chart.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Provenance {
    /// Where it lies, without anything secret.
    pub(crate) place: String,
    /// The name of the archive that it has to speak of.
    pub(crate) archive: String,
    /// The signed text.
    pub(crate) text: Vec<u8>,
}

impl Remote {
    /// The signature of what a source stands for, as it was fetched last, by this process or another.
    pub(crate) async fn known_provenance(
        &self,
        source: &RemoteSource,
        resolution: &Resolution,
    ) -> Option<Provenance> {
        let (store, key) = (self.inner().store.clone()?, source.provenance_key(resolution));
        let noted = self.inner().blocking(move || store.noted(Note::Provenance, &key));
        noted.await.ok().flatten()
    }

    /// The same, asked for.
    ///
    /// # Errors
    /// The place, and what asking the host fails with.
    pub(crate) async fn fetch_provenance_of(
        &self,
        source: &RemoteSource,
        resolution: &Resolution,
        archive: &Bytes,
    ) -> Result<Provenance, (String, Error)> {
        let inner = self.inner();
        let place = source.provenance_place(resolution);
        let failed = |error| (place.clone(), error);
        let text = inner.provenance_text(source, resolution).await.map_err(failed)?;
        let provenance = Provenance {
            archive: source.archive_name(resolution, archive).map_err(failed)?,
            text: text.into(),
            place,
        };
        if let Some(store) = inner.store.clone() {
            let (key, noted) = (source.provenance_key(resolution), provenance.clone());
            // What cannot be noted is asked for again.
            let _ = inner
                .blocking(move || store.note(Note::Provenance, &key, &noted))
                .await;
        }
        Ok(provenance)
    }
}

impl RemoteSource {
    fn provenance_key(&self, resolution: &Resolution) -> Digest {
        Digest::of_parts([self.key.as_bytes(), resolution.digest.as_bytes()])
    }

    /// Where the signature is looked for, for people.
    fn provenance_place(&self, resolution: &Resolution) -> String {
        match (&self.wish, resolution.places.first()) {
            (_, Some(Origin::Address { url, .. })) => format!("{}{EXTENSION}", shown(url)),
            (Wish::Oci { reference, .. }, _) => format!("{reference}:{}{EXTENSION}", resolution.version),
            (Wish::Repository { chart, .. }, _) => format!("{chart}-{}.tgz{EXTENSION}", resolution.version),
        }
    }

    /// The name that the archive of this chart and version had when it was signed. Not the one that a host says: another
    /// version that was signed once is not this one.
    fn archive_name(&self, resolution: &Resolution, archive: &Bytes) -> Result<String, Error> {
        let version = &resolution.version;
        let (chart, version) = match &self.wish {
            Wish::Repository { chart, .. } => (chart.as_str(), version.clone()),
            Wish::Oci { reference, .. } if version.contains(':') => {
                // What was named by its digest says itself what it is.
                let chart = Chart::from_archive(archive).map_err(|source| Error::Chart {
                    name: reference.to_string(),
                    source: Box::new(source),
                })?;
                let metadata = chart.metadata();
                return Ok(format!("{}-{}.tgz", metadata.name, metadata.version));
            }
            // A tag cannot hold a plus.
            Wish::Oci { reference, .. } => {
                let name = reference.repository().rsplit('/').next().unwrap_or_default();
                (name, version.replace('_', "+"))
            }
        };
        Ok(format!("{chart}-{version}.tgz"))
    }
}

impl Inner {
    async fn provenance_text(
        self: &Arc<Self>,
        source: &RemoteSource,
        resolution: &Resolution,
    ) -> Result<Bytes, Error> {
        if let Wish::Oci { reference, pick } = &source.wish {
            let layer = resolution
                .manifest
                .as_ref()
                .and_then(|manifest| manifest.provenance.clone());
            return self.provenance_layer(reference, pick, layer).await;
        }
        let looked;
        let places = if resolution.places.is_empty() {
            // Known from an earlier process, which noted no addresses.
            looked = self.look(source, None, self.fresh_for).await?.places;
            &looked
        } else {
            &resolution.places
        };
        let Some(Origin::Address { url, repository }) = places.first() else {
            return Err(Error::Cancelled(source.to_string()));
        };
        if url.scheme() == "oci" {
            let (reference, tag) = split_reference(url.as_str())?;
            let pick = Pick::parse(tag.as_deref())?;
            return self.provenance_layer(&reference, &pick, None).await;
        }
        let mut place = url.clone();
        place.set_path(&format!("{}{EXTENSION}", url.path()));
        self.download(&place, repository.as_ref(), PROVENANCE_SIZE_MAX)
            .await
    }

    /// The layer with a chart's signature; the manifest is asked for when nothing is known of one.
    async fn provenance_layer(
        &self,
        reference: &OciReference,
        pick: &Pick,
        known: Option<Layer>,
    ) -> Result<Bytes, Error> {
        let credentials = self.credentials();
        let place = Place::new(reference, &credentials)?;
        let layer = match known {
            Some(layer) => layer,
            None => {
                let pulled = self.registry.find(&place, &credentials, pick, None).await?;
                pulled.manifest.provenance.ok_or_else(|| Error::Registry {
                    reference: reference.to_string(),
                    problem: "its manifest has no layer with a signature".to_owned(),
                })?
            }
        };
        self.registry
            .blob(&place, &credentials, &layer, PROVENANCE_SIZE_MAX)
            .await
    }
}
