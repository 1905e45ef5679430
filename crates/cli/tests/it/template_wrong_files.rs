//! Files that are missing, or are others than was expected: told in the words of the real Helm, and never with less.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::template::Oracle;

/// What is wrong, and the arguments behind `template r`.
const WRONG: [(&str, &[&str]); 10] = [
    ("values instead of a chart", &["v.yaml"]),
    ("text instead of an archive", &["text.tgz"]),
    ("an archive of nothing", &["nothing.tgz"]),
    ("no archive in the gzip", &["noise.tgz"]),
    ("an archive that was cut", &["cut.tgz"]),
    ("no Chart.yaml", &["empty"]),
    ("no values file", &["good", "-f", "nowhere.yaml"]),
    ("a folder of values", &["good", "-f", "empty"]),
    ("a folder below a file", &["good", "-f", "v.yaml/x.yaml"]),
    ("no file for a value", &["good", "--set-file", "a=nowhere"]),
];

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn lay_out(folder: &Path) {
    let write = |path: &str, content: &[u8]| fs::write(folder.join(path), content).unwrap();
    fs::create_dir(folder.join("empty")).unwrap();
    fs::create_dir(folder.join("good")).unwrap();
    write("good/Chart.yaml", b"apiVersion: v2\nname: good\nversion: 1.0.0\n");
    write("v.yaml", b"a: 1\n");
    write("text.tgz", b"hello\n");
    write("nothing.tgz", &gzip(&[0; 1024]));
    write("noise.tgz", &gzip(&[b'x'; 700]));
    let mut cut = gzip(&[0; 4096]);
    cut.truncate(cut.len() - 9);
    write("cut.tgz", &cut);
}

/// What was said, but for the kind of content that Helm guesses.
fn said(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let line = text.trim_end();
    line.split_once("; got '")
        .map_or(line, |(line, _)| line)
        .to_owned()
}

#[test]
fn other_files_than_expected_are_told_as_helm_tells_them() {
    let folder = tempfile::tempdir().unwrap();
    lay_out(folder.path());
    let oracle = Oracle::new();
    for (name, arguments) in WRONG {
        let arguments: Vec<&str> = ["template", "r"].iter().chain(arguments).copied().collect();
        let theirs = oracle.helm(folder.path(), &arguments);
        let ours = Oracle::evenkeel(folder.path(), &arguments);
        assert_eq!(theirs.status.code(), ours.status.code(), "{name}");
        let (theirs, ours) = (said(&theirs.stderr), said(&ours.stderr));
        assert!(!theirs.is_empty(), "{name}");
        // Of a broken archive Helm tells neither the file nor the cause.
        assert!(ours.starts_with(&theirs), "{name}:\n  {theirs}\n  {ours}");
        assert!(!ours.contains("os error"), "{name}: {ours}");
    }
}
