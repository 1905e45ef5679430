//! What a manifest says of a chart.

use evenkeel_core::Digest;
use serde::{Deserialize, Serialize};

/// The manifests that are understood.
pub(super) const ACCEPTED: &str = "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json, application/vnd.oci.image.index.v1+json";
/// The header with a manifest's digest.
pub(super) const DIGEST_HEADER: &str = "docker-content-digest";

/// What the configuration of a chart is.
const CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
/// What the archive of a chart is, today and in old charts.
const ARCHIVES: [&str; 2] = [
    "application/vnd.cncf.helm.chart.content.v1.tar+gzip",
    "application/tar+gzip",
];

/// What the signature of a chart is.
const PROVENANCE: &str = "application/vnd.cncf.helm.chart.provenance.v1.prov";

/// The manifest of a chart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChartManifest {
    pub(crate) digest: Digest,
    pub(crate) chart: Layer,
    /// The chart's signature. Manifests that were noted before it was read have none.
    #[serde(default)]
    pub(crate) provenance: Option<Layer>,
}

/// A blob of a registry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Layer {
    pub(crate) digest: Digest,
    pub(crate) size: u64,
}

/// What a manifest turned out to be.
pub(super) enum Content {
    /// A chart.
    Chart(ChartManifest),
    /// An index whose one chart has the manifest with this digest.
    Index(Digest),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    config: Option<Descriptor>,
    layers: Option<Vec<Descriptor>>,
    manifests: Option<Vec<Descriptor>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    media_type: String,
    digest: String,
    #[serde(default)]
    size: u64,
    artifact_type: Option<String>,
}

/// Reads a manifest.
///
/// # Errors
/// Why it is no chart.
pub(super) fn read(digest: Digest, text: &[u8]) -> Result<Content, String> {
    let written: Written =
        serde_json::from_slice(text).map_err(|error| format!("its manifest cannot be read: {error}"))?;
    if let Some(manifests) = written.manifests {
        let charts: Vec<_> = manifests
            .iter()
            .filter(|one| one.artifact_type.as_deref().is_none_or(|kind| kind == CONFIG))
            .collect();
        return match charts.as_slice() {
            [one] => Ok(Content::Index(digest_of(one)?)),
            [] => Err("its index names no chart".to_owned()),
            more => Err(format!(
                "its index names {} manifests: name one by its digest",
                more.len()
            )),
        };
    }
    let kind = written.config.map(|config| config.media_type).unwrap_or_default();
    if kind != CONFIG {
        return Err(format!(
            "it is no Helm chart: its configuration is of type {kind:?}, expected {CONFIG:?}"
        ));
    }
    let layers = written.layers.unwrap_or_default();
    let archive = layers
        .iter()
        .find(|layer| ARCHIVES.contains(&layer.media_type.as_str()))
        .ok_or("its manifest has no layer with the chart's archive")?;
    let provenance = layers.iter().find(|layer| layer.media_type == PROVENANCE);
    Ok(Content::Chart(ChartManifest {
        digest,
        chart: layer(archive)?,
        provenance: provenance.map(layer).transpose()?,
    }))
}

fn layer(descriptor: &Descriptor) -> Result<Layer, String> {
    Ok(Layer {
        digest: digest_of(descriptor)?,
        size: descriptor.size,
    })
}

fn digest_of(descriptor: &Descriptor) -> Result<Digest, String> {
    let digest = descriptor.digest.parse();
    digest.map_err(|_| format!("digest {:?} is not of SHA-256", descriptor.digest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        read(Digest::of("x"), text.as_bytes()).err().unwrap_or_default()
    }

    #[test]
    fn other_artifacts_are_named() {
        let image =
            r#"{"config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"sha256:00"}}"#;
        assert!(problem(image).contains("it is no Helm chart"));
        let empty = format!(r#"{{"config":{{"mediaType":"{CONFIG}","digest":"x"}},"layers":[]}}"#);
        assert!(problem(&empty).contains("no layer"));
        let weak = format!(
            r#"{{"config":{{"mediaType":"{CONFIG}","digest":"x"}},"layers":[{{"mediaType":"{}","digest":"sha512:aa"}}]}}"#,
            ARCHIVES[0]
        );
        assert!(problem(&weak).contains("SHA-256"));
        assert!(problem("<html>").contains("cannot be read"));
        assert!(problem(r#"{"manifests":[]}"#).contains("names no chart"));
    }

    #[test]
    fn an_index_leads_to_its_one_chart() {
        let digest = Digest::of("manifest");
        let text = format!(
            r#"{{"manifests":[{{"mediaType":"m","digest":"sha512:0","artifactType":"sbom"}},{{"mediaType":"m","digest":"{digest}","artifactType":"{CONFIG}"}}]}}"#
        );
        assert!(matches!(read(digest, text.as_bytes()), Ok(Content::Index(found)) if found == digest));
    }
}
