//! Files of settings that are read again when they change.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use evenkeel_core::Sensitive;

use crate::Error;

/// The largest file of settings, or of a password, in bytes.
const FILE_SIZE_MAX: u64 = 1024 * 1024;

/// A file of settings, and what it said when it was read last.
#[derive(Debug)]
pub(crate) struct Reread<T> {
    path: PathBuf,
    /// What it is called in the log.
    what: &'static str,
    read: fn(&Path, &mut Stamps) -> Result<T, Error>,
    known: Mutex<Known<T>>,
}

#[derive(Debug)]
struct Known<T> {
    value: T,
    stamps: Stamps,
}

/// The files that settings came from, as they were.
#[derive(Debug, Default)]
pub(crate) struct Stamps(Vec<(PathBuf, Option<Stamp>)>);

/// What the file system says of a file; another one means another content.
type Stamp = (SystemTime, u64);

impl Stamps {
    /// Notes a file that is about to be read.
    pub(crate) fn note(&mut self, path: &Path) {
        self.0.push((path.to_owned(), stamp_of(path)));
    }

    fn are_old(&self) -> bool {
        self.0.iter().any(|(path, stamp)| stamp_of(path) != *stamp)
    }
}

impl<T: Clone> Reread<T> {
    /// Reads the file.
    ///
    /// # Errors
    /// What `read` says.
    pub(crate) fn open(
        path: PathBuf,
        what: &'static str,
        read: fn(&Path, &mut Stamps) -> Result<T, Error>,
    ) -> Result<Self, Error> {
        let known = Mutex::new(known(&path, read)?);
        Ok(Self {
            path,
            what,
            read,
            known,
        })
    }

    /// What the file says now. When it has become unreadable, what it said before: a file that is being replaced must
    /// neither lock everybody out nor let anybody in.
    pub(crate) fn now(&self) -> T {
        let mut last = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if last.stamps.are_old() {
            let (what, file) = (self.what, self.path.display());
            match known(&self.path, self.read) {
                Ok(new) => {
                    tracing::info!(%file, "{what} were read again");
                    *last = new;
                }
                Err(error) => {
                    tracing::error!(%error, "{what} changed and cannot be used: the former ones are kept");
                    // Said once for each change.
                    for (path, stamp) in &mut last.stamps.0 {
                        *stamp = stamp_of(path);
                    }
                }
            }
        }
        last.value.clone()
    }
}

fn known<T>(path: &Path, read: fn(&Path, &mut Stamps) -> Result<T, Error>) -> Result<Known<T>, Error> {
    let mut stamps = Stamps::default();
    stamps.note(path);
    let value = read(path, &mut stamps)?;
    Ok(Known { value, stamps })
}

fn stamp_of(path: &Path) -> Option<Stamp> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

/// The text of such a file.
///
/// # Errors
/// [`Error::Credentials`].
pub(crate) fn text(path: &Path) -> Result<Sensitive<String>, Error> {
    let unreadable = |error: std::io::Error| refused(path, &error.to_string());
    let length = fs::metadata(path).map_err(unreadable)?.len();
    if length > FILE_SIZE_MAX {
        return Err(refused(path, &format!("it is larger than {FILE_SIZE_MAX} bytes")));
    }
    fs::read_to_string(path).map(Sensitive::new).map_err(unreadable)
}

/// That a file cannot be used.
pub(crate) fn refused(path: &Path, problem: &str) -> Error {
    Error::Credentials {
        file: path.to_owned(),
        problem: problem.to_owned(),
    }
}
