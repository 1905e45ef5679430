//! The archives in `charts/`.

use std::fs;
use std::path::Path;

use evenkeel_chart::Chart;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::Error;
use crate::directory::File;

/// The mode of files in an archive.
const FILE_MODE: u32 = 0o644;

/// Packs the files of a chart directory.
pub(super) fn pack(name: &str, files: &[File]) -> Result<Vec<u8>, Error> {
    let failed = |error: std::io::Error| Error::Helm(format!("chart {name} cannot be packed: {error}"));
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    for file in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(file.content.len() as u64);
        header.set_mode(FILE_MODE);
        tar.append_data(
            &mut header,
            format!("{name}/{}", file.path),
            file.content.as_slice(),
        )
        .map_err(failed)?;
    }
    tar.into_inner().and_then(GzEncoder::finish).map_err(failed)
}

/// Moves new archives into `charts`, and deletes those that nothing needs any more: not directories, not what is no
/// chart, and not charts named in `present`, which were never obtained.
pub(super) fn put(folder: &Path, charts: &Path, present: &[&str]) -> Result<(), Error> {
    fs::create_dir_all(charts).map_err(|error| Error::write(charts, error))?;
    let mut new = Vec::new();
    for item in list(folder)? {
        let target = charts.join(&item);
        fs::rename(folder.join(&item), &target).map_err(|error| Error::write(&target, error))?;
        new.push(item);
    }
    for item in list(charts)? {
        let path = charts.join(&item);
        if new.contains(&item) || path.is_dir() {
            continue;
        }
        let chart = fs::read(&path)
            .ok()
            .and_then(|archive| Chart::from_archive(&archive).ok());
        if chart.is_some_and(|chart| !present.contains(&chart.metadata().name.as_str())) {
            fs::remove_file(&path).map_err(|error| Error::write(&path, error))?;
        }
    }
    Ok(())
}

fn list(folder: &Path) -> Result<Vec<std::ffi::OsString>, Error> {
    let failed = |error| Error::write(folder, error);
    fs::read_dir(folder)
        .map_err(failed)?
        .map(|item| Ok(item.map_err(failed)?.file_name()))
        .collect()
}
