use std::collections::HashMap;
use std::fs;

use async_trait::async_trait;
use bytes::Bytes;
use evenkeel_core::ManualClock;
use jiff::{SignedDuration, Timestamp};

use super::*;

const CHART: &str = "apiVersion: v2\nname: web\nversion: 1.0.0\n";

struct Fixed(HashMap<Digest, Bytes>);

#[async_trait]
impl Archives for Fixed {
    async fn archive(&self, digest: &Digest) -> Result<Bytes, Error> {
        self.0.get(digest).cloned().ok_or(Error::NoSuchArchive(*digest))
    }
}

struct Place {
    root: tempfile::TempDir,
}

impl Place {
    fn with_chart() -> Self {
        let place = Self {
            root: tempfile::tempdir().expect("a directory"),
        };
        place.write("charts/web/Chart.yaml", CHART);
        place.write("charts/web/templates/a.yaml", "kind: ConfigMap\n");
        place
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(path, text).expect("a file");
    }

    /// Sources below this place, by a clock an hour ahead so that all files count as settled.
    fn sources(&self) -> Arc<Sources> {
        let now =
            Timestamp::try_from(std::fs::metadata(self.root.path()).unwrap().modified().unwrap()).unwrap();
        let clock = ManualClock::new(now + SignedDuration::from_hours(1));
        let policy = DirectoryPolicy::Below(self.root.path().to_owned());
        Arc::new(Sources::new(
            policy,
            Arc::new(crate::NoArchives),
            Arc::new(clock),
            Tasks::new(),
        ))
    }
}

fn directory(path: &str) -> SourceRef {
    SourceRef::Directory {
        path: path.to_owned(),
    }
}

#[tokio::test]
async fn an_unchanged_directory_is_parsed_once() {
    let place = Place::with_chart();
    let sources = place.sources();
    let first = sources.chart(&directory("charts/web")).await.unwrap();
    let second = sources.chart(&directory("./charts/web")).await.unwrap();
    assert!(Arc::ptr_eq(&first, &second));
}

#[tokio::test]
async fn a_changed_file_makes_another_chart() {
    let place = Place::with_chart();
    let sources = place.sources();
    let before = sources.chart(&directory("charts/web")).await.unwrap();
    place.write("charts/web/templates/a.yaml", "kind: Secret\nmore: true\n");
    let after = sources.chart(&directory("charts/web")).await.unwrap();
    assert_ne!(before.digest(), after.digest());
}

#[tokio::test]
async fn places_outside_the_root_are_refused() {
    let place = Place::with_chart();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret.yaml"), "x").unwrap();
    std::os::unix::fs::symlink(outside.path(), place.root.path().join("link")).unwrap();
    std::os::unix::fs::symlink(outside.path(), place.root.path().join("charts/web/files")).unwrap();
    let sources = place.sources();
    for path in ["../x", "/etc", "charts/../../x", "link", "charts/web"] {
        let refused = sources.chart(&directory(path)).await;
        assert!(
            matches!(refused, Err(Error::OutsideRoot { .. })),
            "{path}: {refused:?}"
        );
    }
}

#[tokio::test]
async fn ignored_files_are_no_part_of_the_chart() {
    let place = Place::with_chart();
    place.write("charts/web/.helmignore", "*.bak\n.git/\n");
    let plain = place.sources().chart(&directory("charts/web")).await.unwrap();
    place.write("charts/web/values.bak", "x");
    place.write("charts/web/.git/config", "x");
    let same = place.sources().chart(&directory("charts/web")).await.unwrap();
    assert_eq!(plain.digest(), same.digest());
}

#[tokio::test]
async fn without_a_root_directories_are_refused() {
    let clock = Arc::new(ManualClock::new(Timestamp::UNIX_EPOCH));
    let sources = Arc::new(Sources::new(
        DirectoryPolicy::Refused,
        Arc::new(crate::NoArchives),
        clock,
        Tasks::new(),
    ));
    let refused = sources.check(&directory("charts/web"));
    assert!(refused.is_err_and(|error| error.to_string().contains("--source-root")));
}

#[tokio::test]
async fn a_missing_chart_file_is_named() {
    let place = Place::with_chart();
    fs::remove_file(place.root.path().join("charts/web/Chart.yaml")).unwrap();
    let error = place.sources().chart(&directory("charts/web")).await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("charts/web: Chart.yaml file is missing"),
        "{error}"
    );
}

#[tokio::test]
async fn archives_are_checked_against_their_digest() {
    let mut tar = tar::Builder::new(flate2::write::GzEncoder::new(
        Vec::new(),
        flate2::Compression::fast(),
    ));
    let mut header = tar::Header::new_gnu();
    header.set_size(CHART.len() as u64);
    header.set_mode(0o644);
    tar.append_data(&mut header, "web/Chart.yaml", CHART.as_bytes())
        .unwrap();
    let archive = Bytes::from(tar.into_inner().unwrap().finish().unwrap());
    let (good, bad) = (Digest::of(&archive), Digest::of("other"));
    let store = Fixed([(good, archive.clone()), (bad, archive)].into());
    let clock = Arc::new(ManualClock::new(Timestamp::UNIX_EPOCH));
    let sources = Arc::new(Sources::new(
        DirectoryPolicy::Refused,
        Arc::new(store),
        clock,
        Tasks::new(),
    ));

    let chart = sources.chart(&SourceRef::Archive { digest: good }).await.unwrap();
    assert_eq!(chart.metadata().name, "web");
    let damaged = sources.chart(&SourceRef::Archive { digest: bad }).await;
    assert!(matches!(damaged, Err(Error::Damaged { .. })));
    let missing = sources
        .chart(&SourceRef::Archive {
            digest: Digest::of("none"),
        })
        .await;
    assert!(matches!(missing, Err(Error::NoSuchArchive(_))));
}
