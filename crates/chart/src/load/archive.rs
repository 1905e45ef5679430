//! Unpacking `.tgz` charts without ever touching a disk, and without trusting them.

use std::collections::BTreeMap;
use std::io::Read;

use flate2::read::MultiGzDecoder;
use tar::{Archive, EntryType};

use crate::Error;
use crate::chart::ChartFile;
use crate::load::strip_byte_order_mark;

/// Helm's limit for one file: 5 MiB.
const MAX_FILE: u64 = 5 << 20;
/// Helm's limit for a whole chart: 100 MiB.
const MAX_CHART: u64 = 100 << 20;
/// The most entries a chart archive may have.
const MAX_ENTRIES: usize = 10_000;

/// Reads all files of a packaged chart, sorted by path; the one directory around them is dropped.
pub(crate) fn unpack(archive: &[u8]) -> Result<Vec<ChartFile>, Error> {
    let refuse = |problem: String| Error::Archive(problem);
    if !archive.starts_with(b"\x1f\x8b") {
        return Err(refuse("not a gzip file".to_owned()));
    }
    // Headers and padding count too, so that a stream of nothing but headers ends as well.
    let stream = MultiGzDecoder::new(archive).take(MAX_CHART + (MAX_ENTRIES as u64) * 2048);
    let mut archive = Archive::new(stream);
    let (mut files, mut folded) = (BTreeMap::new(), BTreeMap::new());
    let (mut total, mut top) = (0, None::<String>);

    let entries = archive.entries().map_err(|e| refuse(e.to_string()))?;
    for (index, entry) in entries.enumerate() {
        let mut entry = entry.map_err(|e| refuse(e.to_string()))?;
        if index >= MAX_ENTRIES {
            return Err(refuse(format!("more than {MAX_ENTRIES} entries")));
        }
        let name = entry.path_bytes().into_owned();
        let name = String::from_utf8(name).map_err(|_| refuse("a path is not UTF-8".to_owned()))?;
        match entry.header().entry_type() {
            EntryType::Regular | EntryType::Continuous => {}
            EntryType::Directory | EntryType::XGlobalHeader | EntryType::XHeader => continue,
            other => {
                return Err(refuse(format!(
                    "{name:?} is neither a file nor a directory ({other:?})"
                )));
            }
        }
        let (directory, path) = place(&name)?;
        match &top {
            Some(top) if *top != directory => {
                return Err(refuse(format!("two top directories, {top:?} and {directory:?}")));
            }
            Some(_) => {}
            None => top = Some(directory.to_owned()),
        }
        let size = entry.size();
        if size > MAX_FILE {
            return Err(refuse(format!(
                "{name:?} is larger than the maximum file size {MAX_FILE}"
            )));
        }
        total += size;
        if total > MAX_CHART {
            return Err(refuse(format!(
                "the chart is larger than the maximum size {MAX_CHART}"
            )));
        }
        let mut data = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
        (&mut entry)
            .take(MAX_FILE)
            .read_to_end(&mut data)
            .map_err(|e| refuse(format!("{name:?}: {e}")))?;
        if data.len() as u64 != size {
            return Err(refuse(format!("{name:?} is cut off")));
        }
        strip_byte_order_mark(&mut data);
        if let Some(other) = folded.insert(path.to_lowercase(), path.clone()) {
            return Err(refuse(format!(
                "{path:?} and {other:?} cannot be told apart on every file system"
            )));
        }
        files.insert(path, data);
    }
    if files.is_empty() {
        return Err(refuse("no files in chart archive".to_owned()));
    }
    Ok(files
        .into_iter()
        .map(|(path, data)| ChartFile { path, data })
        .collect())
}

/// Splits off the top directory and refuses every path that could lead elsewhere.
fn place(name: &str) -> Result<(&str, String), Error> {
    let refuse = |problem: &str| Err(Error::Archive(format!("{name:?}: {problem}")));
    if name.contains('\\') {
        return refuse("chart contains illegally named files");
    }
    let name_in_archive = name.strip_prefix("./").unwrap_or(name);
    let Some((directory, rest)) = name_in_archive.split_once('/') else {
        return refuse(if name_in_archive == "Chart.yaml" {
            "chart yaml not in base directory"
        } else {
            "chart illegally contains content outside the base directory"
        });
    };
    let mut parts = Vec::new();
    for part in rest.split('/') {
        match part {
            "" if parts.is_empty() => return refuse("chart illegally contains absolute paths"),
            "" | "." => {}
            ".." => return refuse("chart illegally references parent directory"),
            part => parts.push(part),
        }
    }
    if directory == ".." || directory.is_empty() {
        return refuse("chart illegally references parent directory");
    }
    let drive = |part: &str| {
        let mut chars = part.chars();
        chars.next().is_some_and(|c| c.is_ascii_alphabetic()) && chars.as_str() == ":"
    };
    if parts.first().is_some_and(|part| drive(part)) {
        return refuse("chart contains illegally named files");
    }
    if parts.is_empty() {
        return refuse("chart illegally contains content outside the base directory");
    }
    Ok((directory, parts.join("/")))
}
