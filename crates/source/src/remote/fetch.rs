//! One chart for somebody who waits: `evenkeel template` and `evenkeel local`. The host is asked once in each process.

use bytes::Bytes;
use evenkeel_core::{Digest, OciReference};
use reqwest::Url;

use super::resolution::Origin;
use super::{FRESH_FOR, Remote};
use crate::Error;
use crate::address::shown;
use crate::registry::{Layer, Place};
use crate::repository::Found;
use crate::version::{Pick, Wanted, versions_of_tags};

/// The largest signature of a chart, in bytes.
pub(crate) const PROVENANCE_SIZE_MAX: u64 = 4 * 1024 * 1024;

/// A chart that was obtained.
#[derive(Clone, Debug)]
pub(crate) struct Fetched {
    /// The archive.
    pub(crate) archive: Bytes,
    /// Its digest.
    pub(crate) digest: Digest,
    /// Where it came from, without anything secret.
    pub(crate) place: String,
    /// The tag or digest that it was taken by, of a chart in a registry.
    pub(crate) version: Option<String>,
    /// Its signature, of a chart in a registry that has one.
    provenance: Option<Layer>,
}

impl Remote {
    /// Asks for the index of a Helm repository.
    ///
    /// # Errors
    /// Everything that asking a host fails with.
    pub(crate) async fn refresh(&self, repository: &Url) -> Result<(), Error> {
        self.inner().index(repository).await.map(drop)
    }

    /// The best version of a chart of a Helm repository, by an index that this process asked for.
    ///
    /// # Errors
    /// Everything that asking a host fails with; [`Error::NoVersion`].
    pub(crate) async fn find_in_repository(
        &self,
        repository: &Url,
        chart: &str,
        wanted: &Wanted,
    ) -> Result<Found, Error> {
        self.inner()
            .find_in_repository(repository, chart, wanted, FRESH_FOR)
            .await
    }

    /// The archive at one of some addresses, which an index named with a digest or without.
    ///
    /// # Errors
    /// Everything that asking a host fails with.
    pub(crate) async fn fetch_found(
        &self,
        urls: &[Url],
        digest: Option<Digest>,
        repository: Option<&Url>,
    ) -> Result<Fetched, Error> {
        let origins: Vec<_> = urls
            .iter()
            .map(|url| Origin::Address {
                url: url.clone(),
                repository: repository.cloned(),
            })
            .collect();
        let archive = match digest {
            Some(digest) => self.inner().obtain(digest, &origins).await?,
            None => self.inner().download_from(&origins, None).await?,
        };
        Ok(Fetched {
            digest: Digest::of(&archive),
            archive,
            place: urls.first().map(shown).unwrap_or_default(),
            version: None,
            provenance: None,
        })
    }

    /// The version of a chart in a registry: one that is written whole is taken at its word, as in Helm.
    ///
    /// # Errors
    /// Everything that asking a host fails with.
    pub(crate) async fn version_in_registry(
        &self,
        reference: &OciReference,
        text: &str,
        wanted: &Wanted,
    ) -> Result<Option<String>, Error> {
        if evenkeel_gotemplate::is_version(text) {
            return Ok(Some(text.to_owned()));
        }
        let inner = self.inner();
        let credentials = inner.credentials();
        let place = Place::new(reference, &credentials)?;
        let versions = versions_of_tags(inner.registry.tags(&place, &credentials).await?);
        Ok(wanted.choose(&versions, |version| version).cloned())
    }

    /// A chart of an OCI registry: a tag, a range or a digest; the newest release when there is none of them.
    ///
    /// # Errors
    /// Everything that asking a host fails with; [`Error::Range`] and [`Error::NoVersion`].
    pub(crate) async fn fetch_from_registry(
        &self,
        reference: &OciReference,
        version: Option<&str>,
    ) -> Result<Fetched, Error> {
        let inner = self.inner();
        let pick = Pick::parse(version)?;
        let credentials = inner.credentials();
        let place = Place::new(reference, &credentials)?;
        let pulled = inner.registry.find(&place, &credentials, &pick, None).await?;
        let layer = pulled.manifest.chart.clone();
        let digest = layer.digest;
        let origin = Origin::Blob {
            reference: reference.clone(),
            layer,
        };
        let archive = inner.obtain(digest, &[origin]).await?;
        Ok(Fetched {
            archive,
            digest,
            place: reference.to_string(),
            version: Some(pulled.version),
            provenance: pulled.manifest.provenance,
        })
    }

    /// The signature of a chart of a registry.
    ///
    /// # Errors
    /// [`Error::Registry`] when it has none; everything that asking a host fails with.
    pub(crate) async fn fetch_provenance(
        &self,
        reference: &OciReference,
        fetched: &Fetched,
    ) -> Result<Bytes, Error> {
        let layer = fetched.provenance.as_ref().ok_or_else(|| Error::Registry {
            reference: reference.to_string(),
            problem: "its manifest has no layer with a signature".to_owned(),
        })?;
        let inner = self.inner();
        let credentials = inner.credentials();
        let place = Place::new(reference, &credentials)?;
        inner
            .registry
            .blob(&place, &credentials, layer, PROVENANCE_SIZE_MAX)
            .await
    }

    /// A file at an address, of at most so many bytes, by the credentials of the repository that it belongs to.
    ///
    /// # Errors
    /// Everything that asking a host fails with.
    pub(crate) async fn fetch_file(
        &self,
        url: &Url,
        repository: Option<&Url>,
        limit: u64,
    ) -> Result<Bytes, Error> {
        self.inner().download(url, repository, limit).await
    }
}

/// Takes `oci://HOST/PATH[:TAG][@DIGEST]` apart. A digest speaks louder than a tag.
///
/// # Errors
/// [`Error::Registry`] when it names no chart of a registry.
pub(crate) fn split_reference(text: &str) -> Result<(OciReference, Option<String>), Error> {
    let (rest, digest) = match text.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (text, None),
    };
    let last = rest.rfind('/').unwrap_or_default();
    let (name, tag) = match rest.rfind(':').filter(|at| *at > last) {
        Some(at) => (rest.get(..at).unwrap_or_default(), rest.get(at + 1..)),
        None => (rest, None),
    };
    let reference = OciReference::new(name).map_err(|error| Error::Registry {
        reference: name.to_owned(),
        problem: error.to_string(),
    })?;
    Ok((reference, digest.or(tag).map(str::to_owned)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_taken_apart() {
        for (text, name, version) in [
            ("oci://h/a/b", "oci://h/a/b", None),
            ("oci://h:5000/a", "oci://h:5000/a", None),
            ("oci://h:5000/a:1.0_x", "oci://h:5000/a", Some("1.0_x")),
            ("oci://h/a@sha256:00", "oci://h/a", Some("sha256:00")),
            ("oci://h/a:1.0@sha256:00", "oci://h/a", Some("sha256:00")),
        ] {
            let (reference, found) = split_reference(text).unwrap();
            assert_eq!((reference.as_str(), found.as_deref()), (name, version));
        }
        assert!(split_reference("oci://h").is_err());
    }
}
