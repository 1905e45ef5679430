use std::collections::HashMap;
use std::fs;

use async_trait::async_trait;
use evenkeel_core::ManualClock;
use evenkeel_telemetry::Tasks;
use jiff::{SignedDuration, Timestamp};

use super::*;
use crate::{Archives, DirectoryPolicy};

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";

struct Fixed(HashMap<Digest, Bytes>);

#[async_trait]
impl Archives for Fixed {
    async fn archive(&self, digest: &Digest) -> Result<Bytes, Error> {
        self.0.get(digest).cloned().ok_or(Error::NoSuchArchive(*digest))
    }
}

struct Place(tempfile::TempDir);

impl Place {
    fn with(files: &[(&str, &str)]) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for (path, text) in files {
            place.write(path, text);
        }
        place
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Sources below this place, by a clock an hour ahead so that all files count as settled.
    fn sources(&self) -> Arc<Sources> {
        sources(
            DirectoryPolicy::Below(self.0.path().to_owned()),
            Fixed(HashMap::new()),
        )
    }
}

fn sources(policy: DirectoryPolicy, archives: Fixed) -> Arc<Sources> {
    let folder = tempfile::tempdir().unwrap();
    let now = Timestamp::try_from(fs::metadata(folder.path()).unwrap().modified().unwrap()).unwrap();
    let clock = ManualClock::new(now + SignedDuration::from_hours(1));
    Arc::new(Sources::new(
        policy,
        Arc::new(archives),
        Arc::new(clock),
        Tasks::new(),
    ))
}

fn directory(path: &str) -> SourceRef {
    SourceRef::Directory {
        path: path.to_owned(),
    }
}

fn tgz(files: &[(&str, &str)]) -> Bytes {
    let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut tar = tar::Builder::new(gzip);
    for (path, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, path, text.as_bytes()).unwrap();
    }
    Bytes::from(tar.into_inner().unwrap().finish().unwrap())
}

/// What an archive of these files holds: its format and paths or object names.
async fn archived(files: &[(&str, &str)], format: Option<SourceFormat>) -> Result<Content, Error> {
    let archive = tgz(files);
    let digest = Digest::of(&archive);
    let sources = sources(DirectoryPolicy::Refused, Fixed([(digest, archive)].into()));
    let source = SourceRef::Archive { digest };
    let content = sources.content(&source, format).await?;
    let again = sources.content(&source, Some(content.format())).await?;
    assert_eq!(content.digest(), again.digest());
    Ok(content)
}

#[tokio::test]
async fn the_files_tell_the_format() {
    let place = Place::with(&[
        ("chart/Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n"),
        ("chart/kustomization.yaml", "resources: [a.yaml]\n"),
        ("kustomized/Kustomization", "resources: [a.yaml]\n"),
        ("kustomized/a.yaml", MAP),
        ("plain/deep/down/a.yml", MAP),
        ("plain/.hidden/b.yaml", "nonsense: ["),
        ("plain/README.md", "nonsense: ["),
        ("nothing/README.md", ""),
    ]);
    let sources = place.sources();
    for (path, expected) in [
        ("chart", SourceFormat::Chart),
        ("kustomized", SourceFormat::Kustomization),
        ("plain", SourceFormat::Manifests),
    ] {
        let content = sources.content(&directory(path), None).await.unwrap();
        assert_eq!(content.format(), expected, "{path}");
    }
    // What is asked for goes before what the files say.
    let manifests = Some(SourceFormat::Manifests);
    let content = sources.content(&directory("kustomized"), manifests).await;
    assert_eq!(content.unwrap().format(), SourceFormat::Manifests);
    let error = sources.content(&directory("nothing"), None).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "nothing cannot be used: it is neither a chart (Chart.yaml), nor a kustomization (kustomization.yaml, \
         kustomization.yml or Kustomization), nor does it have manifests (files that end in .yaml, .yml or .json)"
    );
}

#[tokio::test]
async fn unchanged_manifests_are_parsed_once_and_changed_ones_again() {
    let place = Place::with(&[("plain/a.yaml", MAP), ("copy/a.yaml", MAP)]);
    let sources = place.sources();
    let read = async |path: &str| match sources.content(&directory(path), None).await.unwrap() {
        Content::Manifests(manifests) => manifests,
        other => panic!("{other:?}"),
    };
    let first = read("plain").await;
    assert!(Arc::ptr_eq(&first, &read("./plain").await));
    assert!(Arc::ptr_eq(&first, &read("copy").await), "equal files are shared");
    place.write("plain/notes.txt", "not a manifest");
    assert!(Arc::ptr_eq(&first, &read("plain").await));
    place.write(
        "plain/b.yaml",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: b}\n",
    );
    let second = read("plain").await;
    assert_ne!(first.digest(), second.digest());
    let kinds: Vec<_> = second
        .objects()
        .iter()
        .map(|object| object.object["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["Secret", "ConfigMap"]);
}

#[tokio::test]
async fn a_broken_manifest_is_named() {
    let place = Place::with(&[("plain/sub/a.yaml", &format!("{MAP}---\nkind: ConfigMap\n"))]);
    let error = place
        .sources()
        .content(&directory("plain"), None)
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "plain: YAML parse error on sub/a.yaml: document 2, line 4: the document has no apiVersion"
    );
}

#[tokio::test]
async fn a_kustomization_brings_the_folders_it_refers_to() {
    let place = Place::with(&[
        (
            "apps/overlays/prod/kustomization.yaml",
            "resources: [../../base]\ncomponents: [../../../shared/labels]\n",
        ),
        ("apps/overlays/prod/.env", "a=b\n"),
        ("apps/overlays/test/kustomization.yaml", ""),
        ("apps/base/kustomization.yml", "resources: [a.yaml]\n"),
        ("apps/base/a.yaml", MAP),
        ("shared/labels/Kustomization", "kind: Component\n"),
        ("shared/other/a.yaml", MAP),
    ]);
    let sources = place.sources();
    let read = async || {
        let source = directory("apps/overlays/prod");
        match sources.content(&source, None).await {
            Ok(Content::Kustomization(kustomization)) => Ok(kustomization),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error),
        }
    };
    let first = read().await.unwrap();
    let paths: Vec<_> = first.files().iter().map(|file| file.path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "apps/base/a.yaml",
            "apps/base/kustomization.yml",
            "apps/overlays/prod/.env",
            "apps/overlays/prod/kustomization.yaml",
            "shared/labels/Kustomization",
        ]
    );
    assert_eq!(first.folder(), "apps/overlays/prod");
    assert!(Arc::ptr_eq(&first, &read().await.unwrap()));
    place.write("shared/other/b.yaml", MAP);
    assert!(Arc::ptr_eq(&first, &read().await.unwrap()), "nobody refers to it");
    place.write(
        "apps/base/a.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bb}\n",
    );
    assert_ne!(first.digest(), read().await.unwrap().digest());
}

#[tokio::test]
async fn what_is_missing_is_seen_once_it_is_there() {
    let place = Place::with(&[("over/kustomization.yaml", "resources: [../base]\n")]);
    let sources = place.sources();
    let before = sources.content(&directory("over"), None).await.unwrap();
    place.write("base/kustomization.yaml", "");
    let after = sources.content(&directory("over"), None).await.unwrap();
    assert_ne!(before.digest(), after.digest());
}

#[tokio::test]
async fn a_kustomization_may_not_leave_the_source_root() {
    let outer = Place::with(&[
        ("root/over/kustomization.yaml", "resources: [../../outside]\n"),
        ("outside/kustomization.yaml", ""),
    ]);
    let root = outer.0.path().join("root");
    let sources = sources(DirectoryPolicy::Below(root), Fixed(HashMap::new()));
    let refused = sources.content(&directory("over"), None).await;
    assert!(matches!(refused, Err(Error::OutsideRoot { .. })), "{refused:?}");
}

#[tokio::test]
async fn archives_may_have_a_folder_around_everything_or_not() {
    let plain = archived(&[("a.yaml", MAP)], None).await.unwrap();
    let wrapped = archived(&[("top/a.yaml", MAP)], None).await.unwrap();
    assert_eq!(plain.format(), SourceFormat::Manifests);
    assert_eq!(plain.digest(), wrapped.digest());

    let bare = [
        ("kustomization.yaml", "resources: [sub]\n"),
        ("sub/kustomization.yaml", ""),
    ];
    let bare = archived(&bare, None).await.unwrap();
    let top = [
        ("x/kustomization.yaml", "resources: [sub]\n"),
        ("x/sub/kustomization.yaml", ""),
    ];
    let wrapped = archived(&top, None).await.unwrap();
    assert_eq!(bare.format(), SourceFormat::Kustomization);
    assert_eq!(bare.digest(), wrapped.digest());

    let chart = [("web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n")];
    assert_eq!(
        archived(&chart, None).await.unwrap().format(),
        SourceFormat::Chart
    );
}

#[tokio::test]
async fn a_hostile_archive_is_refused_whatever_it_holds() {
    for (path, expected) in [
        ("..\\a.yaml", "parent directory"),
        ("c:/a.yaml", "illegally named"),
    ] {
        let error = archived(&[(path, MAP)], None).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{path}: {error}");
    }
    let mut tar = tar::Builder::new(flate2::write::GzEncoder::new(
        Vec::new(),
        flate2::Compression::fast(),
    ));
    let mut header = tar::Header::new_gnu();
    header.set_size(MAP.len() as u64);
    // Written past the checks of the library that makes archives.
    header.as_gnu_mut().unwrap().name[..9].copy_from_slice(b"../a.yaml");
    header.set_cksum();
    tar.append(&header, MAP.as_bytes()).unwrap();
    let archive = Bytes::from(tar.into_inner().unwrap().finish().unwrap());
    let sources = sources(DirectoryPolicy::Refused, Fixed(HashMap::new()));
    let error = sources.check_archive(archive).await.unwrap_err().to_string();
    assert!(error.contains("parent directory"), "{error}");
    let error = sources
        .check_archive(tgz(&[("README.md", "")]))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Format { .. }), "{error}");
    let error = sources
        .check_archive(Bytes::from_static(b"plain"))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("not a gzip file"), "{error}");
}
