//! Charts, and sources that obtain them.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_chart::Chart;
use evenkeel_core::{Digest, ManualClock, SourceRef};
use evenkeel_source::{
    CacheOptions, Credentials, CredentialsSource, DirectoryPolicy, Entry, Error, HostPolicy, NoArchives,
    Remote, RemoteOptions, Scope, Secret, Signatures, Sources,
};
use evenkeel_telemetry::Tasks;
use jiff::{SignedDuration, Timestamp};

pub(crate) const FRESH_FOR: Duration = Duration::from_secs(300);

/// The archive of a small chart.
pub(crate) fn chart(name: &str, version: &str) -> Vec<u8> {
    let files = [
        (
            "Chart.yaml",
            format!("apiVersion: v2\nname: {name}\nversion: {version}\n"),
        ),
        (
            "templates/a.yaml",
            format!(
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{version: {version:?}}}\n"
            ),
        ),
    ];
    let mut tar = tar::Builder::new(flate2::write::GzEncoder::new(
        Vec::new(),
        flate2::Compression::fast(),
    ));
    for (path, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, format!("{name}/{path}"), text.as_bytes())
            .unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

/// An index of versions of `web`, each with its digest, at `web-VERSION.tgz`.
pub(crate) fn index(versions: &[&str]) -> String {
    let mut text = "apiVersion: v1\nentries:\n  web:\n".to_owned();
    for version in versions {
        let digest = Digest::of(chart("web", version)).hex();
        text.push_str(&format!(
            "  - {{name: web, version: {version:?}, digest: {digest}, urls: [\"web-{version}.tgz\"]}}\n"
        ));
    }
    text
}

pub(crate) fn repository(url: &str, version: Option<&str>) -> SourceRef {
    SourceRef::Repository {
        repository: url.parse().unwrap(),
        chart: "web".parse().unwrap(),
        version: version.map(|version| version.parse().unwrap()),
    }
}

pub(crate) fn oci(reference: &str, version: Option<&str>) -> SourceRef {
    SourceRef::Oci {
        reference: reference.parse().unwrap(),
        version: version.map(|version| version.parse().unwrap()),
    }
}

/// An entry for what lies below an address.
pub(crate) fn entry(url: &str, username: &str, password: &str) -> Entry {
    Entry {
        secret: Some(Secret::Basic {
            username: username.to_owned(),
            password: password.to_owned().into(),
        }),
        ..Entry::new(Scope::Below(url.parse().unwrap()))
    }
}

/// Sources with a cache of their own and a clock that a test moves.
pub(crate) struct World {
    pub(crate) folder: Arc<tempfile::TempDir>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) sources: Arc<Sources>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(Vec::new())
    }

    pub(crate) fn with(entries: Vec<Entry>) -> Self {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        Self::at(folder, entries, HostPolicy::Anywhere)
    }

    /// Another process with the same cache.
    pub(crate) fn again(&self) -> Self {
        Self::at(Arc::clone(&self.folder), Vec::new(), HostPolicy::Anywhere)
    }

    pub(crate) fn at(folder: Arc<tempfile::TempDir>, entries: Vec<Entry>, hosts: HostPolicy) -> Self {
        let credentials = CredentialsSource::Fixed(Credentials::new(entries, None));
        let clock = Arc::new(ManualClock::new(Timestamp::from_second(1_800_000_000).unwrap()));
        let options = RemoteOptions {
            cache: Some(CacheOptions::at(folder.path().join("cache"))),
            fresh_for: FRESH_FOR,
            hosts,
            credentials,
        };
        let tasks = Tasks::new();
        let remote = Remote::new(options, clock.clone(), tasks.clone()).unwrap();
        let sources = Sources::new(
            DirectoryPolicy::Refused,
            Arc::new(NoArchives),
            clock.clone(),
            tasks,
        );
        Self {
            folder,
            clock,
            sources: Arc::new(sources.with_remote(remote)),
        }
    }

    /// The same, by rules about signatures.
    pub(crate) fn signed(self, rules: Arc<Signatures>) -> Self {
        let sources = Arc::into_inner(self.sources).unwrap();
        Self {
            sources: Arc::new(sources.with_signatures(rules)),
            ..self
        }
    }

    pub(crate) async fn version(&self, source: &SourceRef) -> Result<String, Error> {
        Ok(self.chart(source).await?.metadata().version.clone())
    }

    pub(crate) async fn chart(&self, source: &SourceRef) -> Result<Arc<Chart>, Error> {
        self.sources.chart(source).await
    }

    /// Time passes until nothing is fresh any more.
    pub(crate) fn later(&self) {
        self.clock
            .advance(SignedDuration::try_from(FRESH_FOR + Duration::from_secs(1)).unwrap());
    }

    /// The file of a download.
    pub(crate) fn blob(&self, content: &[u8]) -> std::path::PathBuf {
        self.folder
            .path()
            .join("cache/blobs")
            .join(Digest::of(content).hex())
    }
}
