//! Plain manifests: files that are applied as they are.

use evenkeel_chart::{RenderedObject, plain_objects};
use evenkeel_core::Digest;

use crate::directory::File;
use crate::{Error, format};

/// Plain manifests, read and parsed. Immutable, shared by all who use them.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifests {
    objects: Vec<RenderedObject>,
    digest: Digest,
}

impl Manifests {
    /// Reads those of `files` that are manifests; in the order of their paths. `name` is what the user calls the source.
    ///
    /// # Errors
    /// [`Error::Format`] when none is one, [`Error::Chart`] with file, document and line when one cannot be read.
    pub(crate) fn parse(name: &str, mut files: Vec<File>) -> Result<Self, Error> {
        files.retain(|file| format::is_manifest(&file.path));
        if files.is_empty() {
            return Err(format::unknown(name));
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let digest = digest(&files);
        let contents = files
            .iter()
            .map(|file| (file.path.as_str(), file.content.as_slice()));
        let objects = plain_objects(contents).map_err(|source| Error::Chart {
            name: name.to_owned(),
            source: Box::new(source),
        })?;
        Ok(Self { objects, digest })
    }

    /// The objects, in Helm's order of kinds.
    pub fn objects(&self) -> &[RenderedObject] {
        &self.objects
    }

    /// The digest of all files: the same for a directory and its archive.
    pub fn digest(&self) -> Digest {
        self.digest
    }
}

/// Names files by path and content.
pub(crate) fn digest(files: &[File]) -> Digest {
    Digest::of_parts(
        files
            .iter()
            .flat_map(|file| [file.path.as_bytes(), file.content.as_slice()]),
    )
}
