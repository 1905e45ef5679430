//! Archives that are broken, too large, or reach for what is not theirs.

use std::io::Write as _;

use evenkeel_chart::{Chart, Error};

use super::CHART;

/// An entry of an archive: its path as bytes, its kind, its content.
type Entry<'a> = (&'a [u8], tar::EntryType, &'a [u8]);

fn archive(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, kind, data) in entries {
        let mut header = tar::Header::new_gnu();
        header.as_gnu_mut().unwrap().name[..path.len()].copy_from_slice(path);
        header.set_size(data.len() as u64);
        header.set_mode(0o644);
        header.set_entry_type(*kind);
        if !matches!(kind, tar::EntryType::Regular | tar::EntryType::Directory) {
            header.set_link_name("/etc/passwd").unwrap();
        }
        header.set_cksum();
        builder.append(&header, *data).unwrap();
    }
    gzip(&builder.into_inner().unwrap())
}

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn archives() {
    use tar::EntryType::{Block, Char, Directory, Fifo, Link, Regular, Symlink};
    let chart: Entry<'_> = (b"c/Chart.yaml", Regular, CHART.as_bytes());
    let good = archive(&[chart, (b"c/templates/a.yaml", Regular, b"a: 1\n")]);
    let large = vec![b'x'; 6 << 20];
    for (name, accepted) in [
        ("good", good.clone()),
        (
            "the directory itself",
            archive(&[(b"./Chart.yaml", Regular, CHART.as_bytes())]),
        ),
        (
            "packed on Windows",
            archive(&[(b"c\\Chart.yaml", Regular, CHART.as_bytes())]),
        ),
        (
            "names that differ in case",
            archive(&[
                chart,
                (b"c/templates/a.yaml", Regular, b"a: 1\n"),
                (b"c/templates/A.yaml", Regular, b"a: 2\n"),
            ]),
        ),
        ("a large file", archive(&[chart, (b"c/large", Regular, &large)])),
    ] {
        let chart = Chart::from_archive(&accepted);
        assert!(chart.is_ok(), "{name}: {chart:?}");
    }

    let beside = |path: &'static [u8], kind| archive(&[chart, (path, kind, b"")]);
    let zeros = vec![0; 5 << 20];
    let names: Vec<String> = (0..25).map(|number| format!("c/zeros-{number}")).collect();
    let bomb: Vec<Entry<'_>> = names
        .iter()
        .map(|name| (name.as_bytes(), Regular, zeros.as_slice()))
        .collect();
    let many: Vec<String> = (0..10_001).map(|number| format!("c/{number}")).collect();
    let many: Vec<Entry<'_>> = many
        .iter()
        .map(|name| (name.as_bytes(), Directory, b"".as_slice()))
        .collect();
    for (name, refused, expected) in [
        (
            "parent directory",
            beside(b"c/../../x", Regular),
            "illegally references parent directory",
        ),
        (
            "above the top",
            beside(b"../x", Regular),
            "illegally references parent directory",
        ),
        (
            "absolute",
            beside(b"/etc/x", Regular),
            "illegally references parent directory",
        ),
        ("absolute inside", beside(b"c//etc/x", Regular), "absolute paths"),
        ("drive", beside(b"c/C:/x", Regular), "illegally named files"),
        (
            "parent with backslashes",
            beside(b"c\\..\\..\\x", Regular),
            "illegally references parent directory",
        ),
        (
            "symbolic link",
            beside(b"c/templates/l.yaml", Symlink),
            "neither a file nor a directory",
        ),
        (
            "hard link",
            beside(b"c/templates/l.yaml", Link),
            "neither a file nor a directory",
        ),
        (
            "character device",
            beside(b"c/x", Char),
            "neither a file nor a directory",
        ),
        (
            "block device",
            beside(b"c/x", Block),
            "neither a file nor a directory",
        ),
        ("pipe", beside(b"c/x", Fifo), "neither a file nor a directory"),
        (
            "two top folders",
            beside(b"d/x", Regular),
            "two top directories, \"c\" and \"d\"",
        ),
        (
            "beside the folder",
            beside(b"README.md", Regular),
            "outside the base directory",
        ),
        (
            "no folder",
            archive(&[(b"Chart.yaml", Regular, CHART.as_bytes())]),
            "chart yaml not in base directory",
        ),
        ("twice", archive(&[chart, chart]), "\"Chart.yaml\" is there twice"),
        ("not UTF-8", beside(b"c/\xff", Regular), "a path is not UTF-8"),
        ("nothing", archive(&[]), "no files in chart archive"),
        (
            "folders alone",
            archive(&[(b"c/", Directory, b"")]),
            "no files in chart archive",
        ),
        ("a bomb", archive(&bomb), "larger than the maximum size 104857600"),
        ("many entries", archive(&many), "more than 10000 entries"),
        ("no bytes", Vec::new(), "not a gzip file"),
        ("other bytes", b"hello".to_vec(), "not a gzip file"),
        ("no archive", gzip(b"hello world"), "chart archive refused: "),
        (
            "cut off",
            good[..good.len() / 2].to_vec(),
            "chart archive refused: ",
        ),
    ] {
        let error = Chart::from_archive(&refused).expect_err(name);
        assert!(matches!(error, Error::Archive(_)), "{name}: {error:?}");
        assert!(error.to_string().contains(expected), "{name}: {error}");
    }

    // A header that promises more than comes takes no memory for it.
    let mut header = tar::Header::new_gnu();
    header.set_path("c/values.yaml").unwrap();
    header.set_size(99 << 20);
    header.set_cksum();
    let error = Chart::from_archive(&gzip(header.as_bytes())).expect_err("nothing follows");
    assert!(error.to_string().contains("chart archive refused"), "{error}");
}
