//! Reading a directory, within bounds.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use evenkeel_chart::IgnoreRules;
use evenkeel_core::Digest;

use crate::{Error, format};

/// The most files one source may have (spec: the bounds of Helm's archives).
pub(crate) const FILES_MAX: usize = 10_000;
/// The most bytes of one source in all.
pub(crate) const TOTAL_SIZE_MAX: u64 = 100 * 1024 * 1024;
/// The deepest directory below a source; also ends a circle of symbolic links.
const DEPTH_MAX: usize = 40;

/// One file of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Path below the source's directory, parts separated by `/`.
    pub path: String,
    /// Content.
    pub content: Vec<u8>,
}

/// One file that was found and not yet read.
#[derive(Debug)]
pub(crate) struct Entry {
    path: String,
    location: PathBuf,
    length: u64,
    modified: SystemTime,
}

/// The files of a directory as they were found: enough to know whether any changed.
#[derive(Debug)]
pub(crate) struct Listing {
    entries: Vec<Entry>,
}

/// Reads all files of the chart directory `root` that its `.helmignore` does not leave out, sorted by path. Blocks.
///
/// Symbolic links are followed, as Helm does; with `within`, only to places below it.
///
/// # Errors
/// [`Error::Read`], [`Error::NotADirectory`], [`Error::TooLarge`], [`Error::FileName`], [`Error::Irregular`],
/// [`Error::OutsideRoot`].
pub fn read_directory(root: &Path, within: Option<&Path>) -> Result<Vec<File>, Error> {
    list(root, within, Selection::Chart)?.read()
}

/// Which files of a directory are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    /// What `.helmignore` does not leave out.
    Chart,
    /// Plain manifests: see [`format::is_manifest`].
    Manifests,
    /// All but what Git keeps for itself.
    Everything,
}

/// Finds the files of `root` without reading them.
pub(crate) fn list(root: &Path, within: Option<&Path>, selection: Selection) -> Result<Listing, Error> {
    let metadata = fs::metadata(root).map_err(|source| read_error(root, source))?;
    if !metadata.is_dir() {
        return Err(Error::NotADirectory(root.to_owned()));
    }
    let mut walk = Walk {
        root,
        within,
        rules: match selection {
            Selection::Chart => Rules::Chart(ignore_rules(root)?),
            Selection::Manifests => Rules::Manifests,
            Selection::Everything => Rules::Everything,
        },
        entries: Vec::new(),
        total: 0,
    };
    walk.descend(root, "", 0)?;
    walk.entries.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(Listing {
        entries: walk.entries,
    })
}

impl Listing {
    /// A digest of what the file system says of the files: equal stamps mean equal files, unless one was changed
    /// within the resolution of its clock ([`Listing::newest`]).
    pub(crate) fn stamp(&self) -> Digest {
        let mut parts: Vec<Vec<u8>> = Vec::with_capacity(self.entries.len() * 3);
        for entry in &self.entries {
            let modified = entry
                .modified
                .duration_since(SystemTime::UNIX_EPOCH)
                .unwrap_or_default();
            parts.push(entry.path.clone().into_bytes());
            parts.push(entry.length.to_be_bytes().to_vec());
            parts.push(modified.as_nanos().to_be_bytes().to_vec());
        }
        Digest::of_parts(parts)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// When the youngest file was changed.
    pub(crate) fn newest(&self) -> Option<SystemTime> {
        self.entries.iter().map(|entry| entry.modified).max()
    }

    /// Reads the files.
    pub(crate) fn read(&self) -> Result<Vec<File>, Error> {
        self.entries
            .iter()
            .map(|entry| {
                let content =
                    fs::read(&entry.location).map_err(|source| read_error(&entry.location, source))?;
                Ok(File {
                    path: entry.path.clone(),
                    content,
                })
            })
            .collect()
    }
}

struct Walk<'a> {
    root: &'a Path,
    within: Option<&'a Path>,
    rules: Rules,
    entries: Vec<Entry>,
    total: u64,
}

/// A [`Selection`], ready for use.
enum Rules {
    Chart(IgnoreRules),
    Manifests,
    Everything,
}

impl Rules {
    /// Whether a path is left out whatever it is.
    fn ignores_name(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        match self {
            Self::Chart(_) => false,
            Self::Manifests => name.starts_with('.'),
            Self::Everything => name == ".git",
        }
    }

    fn ignores(&self, path: &str, is_dir: bool) -> bool {
        match self {
            Self::Chart(rules) => rules.ignores(path, is_dir),
            Self::Manifests => !is_dir && !format::is_manifest(path),
            Self::Everything => false,
        }
    }
}

impl Walk<'_> {
    fn descend(&mut self, directory: &Path, prefix: &str, depth: usize) -> Result<(), Error> {
        if depth > DEPTH_MAX {
            return Err(self.too_large(format!("it is nested deeper than {DEPTH_MAX} directories")));
        }
        for item in fs::read_dir(directory).map_err(|source| read_error(directory, source))? {
            let location = item.map_err(|source| read_error(directory, source))?.path();
            let name = location
                .file_name()
                .and_then(|name| name.to_str())
                .ok_or_else(|| Error::FileName(location.clone()))?;
            let path = if prefix.is_empty() {
                name.to_owned()
            } else {
                format!("{prefix}/{name}")
            };
            if self.rules.ignores_name(&path) {
                continue;
            }
            let metadata = fs::metadata(&location).map_err(|source| read_error(&location, source))?;
            if self.rules.ignores(&path, metadata.is_dir()) {
                continue;
            }
            self.check_place(&location, &path)?;
            if metadata.is_dir() {
                self.descend(&location, &path, depth + 1)?;
            } else if metadata.is_file() {
                self.add(path, location, &metadata)?;
            } else {
                return Err(Error::Irregular(location));
            }
        }
        Ok(())
    }

    fn add(&mut self, path: String, location: PathBuf, metadata: &fs::Metadata) -> Result<(), Error> {
        let length = metadata.len();
        self.total = self.total.saturating_add(length);
        if self.entries.len() >= FILES_MAX {
            return Err(self.too_large(format!("it has more than {FILES_MAX} files")));
        }
        if self.total > TOTAL_SIZE_MAX {
            return Err(self.too_large(format!(
                "its files are larger than {TOTAL_SIZE_MAX} bytes together"
            )));
        }
        let modified = metadata
            .modified()
            .map_err(|source| read_error(&location, source))?;
        self.entries.push(Entry {
            path,
            location,
            length,
            modified,
        });
        Ok(())
    }

    /// A link may lead anywhere; what it leads to must lie below the source root.
    fn check_place(&self, location: &Path, path: &str) -> Result<(), Error> {
        let Some(within) = self.within else { return Ok(()) };
        let link = fs::symlink_metadata(location).map_err(|source| read_error(location, source))?;
        if !link.is_symlink() {
            return Ok(());
        }
        let target = fs::canonicalize(location).map_err(|source| read_error(location, source))?;
        if target.starts_with(within) {
            Ok(())
        } else {
            Err(Error::OutsideRoot {
                path: path.to_owned(),
            })
        }
    }

    fn too_large(&self, problem: String) -> Error {
        Error::TooLarge {
            path: self.root.to_owned(),
            problem,
        }
    }
}

fn ignore_rules(root: &Path) -> Result<IgnoreRules, Error> {
    let file = root.join(IgnoreRules::FILE);
    match fs::read(&file) {
        Ok(text) => IgnoreRules::parse(&text).map_err(|source| Error::Chart {
            name: root.display().to_string(),
            source: Box::new(source),
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(IgnoreRules::defaults()),
        Err(source) => Err(read_error(&file, source)),
    }
}

fn read_error(path: &Path, source: std::io::Error) -> Error {
    Error::Read {
        path: path.to_owned(),
        source,
    }
}
