use std::io::Write;

use crate::{Chart, Error};

const CHART: &str = "apiVersion: v2\nname: up\nversion: 0.1.0\n";

fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, data) in files {
        let mut header = tar::Header::new_gnu();
        header.as_gnu_mut().unwrap().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_size(data.len() as u64);
        header.set_mode(0o644);
        header.set_entry_type(tar::EntryType::Regular);
        header.set_cksum();
        builder.append(&header, data.as_bytes()).unwrap();
    }
    gzip(&builder.into_inner().unwrap())
}

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn an_archive_equals_its_directory() {
    let files = [
        ("Chart.yaml", CHART),
        ("templates/a.yaml", "a: 1\n"),
        ("values.yaml", "\u{feff}x: 1\n"),
    ];
    let packed: Vec<_> = files
        .iter()
        .map(|(path, data)| (format!("up/{path}"), *data))
        .collect();
    let packed: Vec<_> = packed.iter().map(|(path, data)| (path.as_str(), *data)).collect();
    let directory = Chart::from_files(files).unwrap();
    let unpacked = Chart::from_archive(&archive(&packed)).unwrap();
    assert_eq!(directory.digest(), unpacked.digest());
    assert_eq!(directory.values(), unpacked.values());
}

#[test]
fn the_digest_follows_every_byte() {
    let one = Chart::from_files([("Chart.yaml", CHART), ("templates/a.yaml", "a: 1\n")]).unwrap();
    let other = Chart::from_files([("Chart.yaml", CHART), ("templates/a.yaml", "a: 2\n")]).unwrap();
    assert_ne!(one.digest(), other.digest());
}

#[test]
fn subcharts_come_from_directories_and_archives() {
    let packed = archive(&[("db/Chart.yaml", "apiVersion: v2\nname: db\nversion: 1.0.0\n")]);
    let chart = Chart::from_files([
        ("Chart.yaml", CHART.as_bytes().to_vec()),
        ("charts/db-1.0.0.tgz", packed),
        (
            "charts/web/Chart.yaml",
            b"apiVersion: v2\nname: web\nversion: 1.0.0\n".to_vec(),
        ),
        ("charts/_old/Chart.yaml", b"not: [read".to_vec()),
        ("charts/README.md/x", b"".to_vec()),
    ]);
    // A directory in charts/ that is no chart is refused, as Helm does.
    assert!(matches!(chart, Err(Error::Subchart { name, .. }) if name == "README.md"));
}

#[test]
fn hostile_archives_are_refused() {
    for (path, problem) in [
        ("up/../../etc/passwd", "parent directory"),
        ("up//etc/passwd", "absolute paths"),
        ("Chart.yaml", "base directory"),
        ("up/c:/x", "illegally named"),
        ("up\\..\\x", "parent directory"),
    ] {
        let error = Chart::from_archive(&archive(&[("up/Chart.yaml", CHART), (path, "x")])).unwrap_err();
        assert!(error.to_string().contains(problem), "{path}: {error}");
    }
    for (files, problem) in [
        (
            vec![("up/Chart.yaml", CHART), ("other/x", "x")],
            "two top directories",
        ),
        (
            vec![("up/Chart.yaml", CHART), ("up/Chart.yaml", "x")],
            "is there twice",
        ),
        (vec![], "no files"),
    ] {
        let error = Chart::from_archive(&archive(&files)).unwrap_err();
        assert!(error.to_string().contains(problem), "{error}");
    }
    assert!(
        Chart::from_archive(b"name: x\n")
            .unwrap_err()
            .to_string()
            .contains("not a gzip file")
    );
}

#[test]
fn links_are_refused() {
    let mut builder = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Symlink);
    header.set_size(0);
    builder
        .append_link(&mut header, "up/templates/x.yaml", "/etc/passwd")
        .unwrap();
    let error = Chart::from_archive(&gzip(&builder.into_inner().unwrap())).unwrap_err();
    assert!(
        error.to_string().contains("neither a file nor a directory"),
        "{error}"
    );
}

#[test]
fn a_missing_or_broken_chart_file_is_named() {
    assert!(matches!(
        Chart::from_files([("values.yaml", "")]),
        Err(Error::NoChartFile)
    ));
    let error = Chart::from_files([("Chart.yaml", "a: [")]).unwrap_err();
    assert!(
        error.to_string().starts_with("cannot load Chart.yaml: "),
        "{error}"
    );
    let error = Chart::from_files([("Chart.yaml", CHART), ("values.yaml", "- a\n")]).unwrap_err();
    assert!(
        error.to_string().starts_with("cannot load values.yaml: "),
        "{error}"
    );
}
