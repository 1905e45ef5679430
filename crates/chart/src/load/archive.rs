//! Unpacking `.tgz` charts without ever touching a disk, and without trusting them.

use std::collections::BTreeMap;
use std::io::Read;

use flate2::read::MultiGzDecoder;
use tar::{Archive, EntryType};

use crate::Error;
use crate::load::strip_byte_order_mark;

/// Helm's limit for a whole chart, unpacked: 100 MiB.
const MAX_CHART: u64 = 100 << 20;
/// The most entries a chart archive may have.
const MAX_ENTRIES: usize = 10_000;

/// A file of an archive: its path, and its bytes without a byte order mark.
type Unpacked = (String, Vec<u8>);

/// Reads all files of a packaged chart, sorted by path; the one directory around them is dropped.
pub(crate) fn unpack(archive: &[u8]) -> Result<Vec<Unpacked>, Error> {
    let mut top = None::<String>;
    read(archive, |name| {
        let (directory, path) = place(name)?;
        match &top {
            Some(top) if *top != directory => {
                return Err(Error::Archive(format!(
                    "two top directories, {top:?} and {directory:?}"
                )));
            }
            Some(_) => {}
            None => top = Some(directory.to_owned()),
        }
        Ok(path)
    })
}

/// Reads all files of an archive (`.tgz`) that need not be a chart, sorted by path, with the same bounds and the same
/// distrust: the path of each, and its bytes without a byte order mark.
///
/// # Errors
/// [`Error::Archive`].
pub fn archive_files(archive: &[u8]) -> Result<Vec<(String, Vec<u8>)>, Error> {
    read(archive, |name| {
        // Below a directory of our own, every path that is no way out of it is one inside.
        let name = name.replace('\\', "/");
        let below = format!("archive/{}", name.strip_prefix("./").unwrap_or(&name));
        place(&below).map(|(_, path)| path)
    })
}

/// Reads all files, under the path that `place` gives them, sorted by it.
fn read(
    archive: &[u8],
    mut place: impl FnMut(&str) -> Result<String, Error>,
) -> Result<Vec<Unpacked>, Error> {
    let refuse = |problem: String| Error::Archive(problem);
    if !archive.starts_with(b"\x1f\x8b") {
        return Err(refuse("not a gzip file".to_owned()));
    }
    // Headers and padding count too, so that a stream of nothing but headers ends as well.
    let stream = MultiGzDecoder::new(archive).take(MAX_CHART + (MAX_ENTRIES as u64) * 2048);
    let mut archive = Archive::new(stream);
    let mut files = BTreeMap::new();
    let mut total = 0;

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
        let path = place(&name)?;
        let size = entry.size();
        total = u64::saturating_add(total, size);
        if total > MAX_CHART {
            return Err(refuse(format!(
                "the chart is larger than the maximum size {MAX_CHART}"
            )));
        }
        // What the header promises may never come: room is made as it does.
        let mut data = Vec::new();
        (&mut entry)
            .take(size)
            .read_to_end(&mut data)
            .map_err(|e| refuse(format!("{name:?}: {e}")))?;
        if data.len() as u64 != size {
            return Err(refuse(format!("{name:?} is cut off")));
        }
        strip_byte_order_mark(&mut data);
        if files.contains_key(&path) {
            return Err(refuse(format!("{path:?} is there twice")));
        }
        files.insert(path, data);
    }
    if files.is_empty() {
        return Err(refuse("no files in chart archive".to_owned()));
    }
    Ok(files.into_iter().collect())
}

/// Splits off the top directory and refuses every path that could lead elsewhere. A path with backslashes was packed on
/// Windows.
fn place(name: &str) -> Result<(&str, String), Error> {
    let refuse = |problem: &str| Err(Error::Archive(format!("{name:?}: {problem}")));
    let separator = if name.contains('\\') { '\\' } else { '/' };
    let Some((directory, rest)) = name.split_once(separator) else {
        return refuse(if name == "Chart.yaml" {
            "chart yaml not in base directory"
        } else {
            "chart illegally contains content outside the base directory"
        });
    };
    let mut parts = Vec::new();
    for part in rest.split([separator, '/']) {
        match part {
            "" if parts.is_empty() => return refuse("chart illegally contains absolute paths"),
            "" | "." => {}
            ".." => return refuse("chart illegally references parent directory"),
            part => parts.push(part),
        }
    }
    if directory.is_empty() || directory.split('/').any(|part| part == "..") {
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
