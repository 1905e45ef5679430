//! Reading a kustomization and the folders it refers to.

use std::path::{Path, PathBuf};

use evenkeel_core::Digest;

use super::references::{Tree, join};
use super::{Kustomization, RemoteReference};
use crate::Error;
use crate::directory::{FILES_MAX, File, Listing, Selection, TOTAL_SIZE_MAX, list};

/// How many folders outside of each other one kustomization may refer to.
const FOLDERS_MAX: usize = 64;

/// What was read, and from where: enough to know whether any of it changed.
#[derive(Debug)]
pub(crate) struct Gathered {
    pub(crate) kustomization: Kustomization,
    pub(crate) folders: Vec<PathBuf>,
    pub(crate) listings: Vec<Listing>,
    /// Whether something that is referred to was not there: it may come without any of the files changing.
    pub(crate) is_complete: bool,
}

/// Reads the kustomization in `root`, a real path, with everything that it refers to; with `within`, only what lies
/// below that. Blocks.
pub(crate) fn gather(name: &str, root: &Path, within: Option<&Path>) -> Result<Gathered, Error> {
    let mut tree = Tree::default();
    let mut gathered: Vec<PathBuf> = Vec::new();
    let mut listings = Vec::new();
    let entry = relative(root)?;
    let mut wanted = vec![root.to_owned()];
    let found = loop {
        for location in wanted.drain(..) {
            if gathered.len() >= FOLDERS_MAX {
                let problem = format!("it refers to more than {FOLDERS_MAX} folders");
                return Err(too_large(root, problem));
            }
            let listing = list(&location, within, Selection::Everything)?;
            let prefix = relative(&location)?;
            let files = listing.read()?.into_iter().map(|file| File {
                path: join(&prefix, &file.path),
                content: file.content,
            });
            tree.add(files.collect());
            if tree.len() > FILES_MAX {
                return Err(too_large(root, format!("it has more than {FILES_MAX} files")));
            }
            if tree.size() as u64 > TOTAL_SIZE_MAX {
                let problem = format!("its files are larger than {TOTAL_SIZE_MAX} bytes together");
                return Err(too_large(root, problem));
            }
            listings.push(listing);
            gathered.push(location);
        }
        let found = tree.follow(name, &entry)?;
        for missing in &found.missing {
            let Some(location) = folder_of(missing, within)? else {
                continue;
            };
            let is_known = |location: &Path| gathered.iter().any(|known| location.starts_with(known));
            if !is_known(&location) && !wanted.contains(&location) {
                wanted.push(location);
            }
        }
        if wanted.is_empty() {
            break found;
        }
    };
    let common = common(&gathered);
    let prefix = relative(&common)?;
    let below = |path: &str| {
        path.strip_prefix(prefix.as_str())
            .unwrap_or(path)
            .trim_start_matches('/')
            .to_owned()
    };
    let files = tree.into_files().into_iter().map(|file| File {
        path: below(&file.path),
        content: file.content,
    });
    let remote = found.remote.into_iter().map(|reference| RemoteReference {
        file: below(&reference.file),
        ..reference
    });
    Ok(Gathered {
        kustomization: Kustomization::new(files.collect(), below(&entry), remote.collect()),
        is_complete: found.missing.is_empty(),
        folders: gathered,
        listings,
    })
}

/// The stamp of folders as they are now; the same as that of [`Gathered::listings`] when nothing changed.
pub(crate) fn stamp(folders: &[PathBuf], within: Option<&Path>) -> Result<Digest, Error> {
    let listings = folders
        .iter()
        .map(|folder| list(folder, within, Selection::Everything))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(stamp_of(&listings))
}

pub(crate) fn stamp_of(listings: &[Listing]) -> Digest {
    Digest::of_parts(listings.iter().map(|listing| *listing.stamp().as_bytes()))
}

/// An absolute path as the tree has it: without the slash at its start.
fn relative(path: &Path) -> Result<String, Error> {
    let text = path.to_str().ok_or_else(|| Error::FileName(path.to_owned()))?;
    Ok(text.trim_start_matches('/').to_owned())
}

/// The folder to read so that `missing` is there. None when there is no such folder.
fn folder_of(missing: &str, within: Option<&Path>) -> Result<Option<PathBuf>, Error> {
    let location = Path::new("/").join(missing);
    // A path that climbs above the root of the file system is nowhere.
    let Ok(real) = location.canonicalize() else {
        return Ok(None);
    };
    if within.is_some_and(|within| !real.starts_with(within)) {
        return Err(Error::OutsideRoot {
            path: location.display().to_string(),
        });
    }
    Ok(real.is_dir().then_some(location))
}

/// The deepest folder that holds all of them.
fn common(folders: &[PathBuf]) -> PathBuf {
    let mut common = folders.first().cloned().unwrap_or_default();
    for folder in folders {
        while !folder.starts_with(&common) {
            common.pop();
        }
    }
    common
}

fn too_large(root: &Path, problem: String) -> Error {
    Error::TooLarge {
        path: root.to_owned(),
        problem,
    }
}
