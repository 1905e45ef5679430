//! Kustomizations: the files that a build reads, and what it would load from elsewhere.

mod gather;
mod references;

use std::collections::BTreeSet;

use evenkeel_core::Digest;

use crate::Error;
use crate::directory::File;
use crate::manifests::digest;

pub(crate) use gather::{gather, stamp, stamp_of};
use references::Tree;

/// A kustomization with everything it refers to on the same file system. Immutable, shared by all who use it.
#[derive(Clone, PartialEq, Eq)]
pub struct Kustomization {
    files: Vec<File>,
    folder: String,
    remote: Vec<RemoteReference>,
    digest: Digest,
}

/// Something that a build would load over the network.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RemoteReference {
    /// The file that names it.
    pub file: String,
    /// The field.
    pub field: String,
    /// The address, as written there.
    pub address: String,
}

impl std::fmt::Debug for Kustomization {
    /// Without contents: generators are fed with passwords.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kustomization")
            .field("files", &self.files.len())
            .field("folder", &self.folder)
            .field("digest", &self.digest)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Display for RemoteReference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} ({} of {})", self.address, self.field, self.file)
    }
}

impl Kustomization {
    /// A kustomization whose files lie side by side and below, as in an archive; its own file is at the top.
    ///
    /// # Errors
    /// [`Error::Kustomization`] when one of its files cannot be read.
    pub(crate) fn from_files(name: &str, files: Vec<File>) -> Result<Self, Error> {
        let mut tree = Tree::default();
        tree.add(files);
        let found = tree.follow(name, "")?;
        Ok(Self::new(tree.into_files(), String::new(), found.remote))
    }

    fn new(files: Vec<File>, folder: String, remote: BTreeSet<RemoteReference>) -> Self {
        let digest = Digest::of_parts([folder.as_bytes(), digest(&files).as_bytes()]);
        Self {
            files,
            folder,
            remote: remote.into_iter().collect(),
            digest,
        }
    }

    /// All files, by paths below one common folder, sorted.
    pub fn files(&self) -> &[File] {
        &self.files
    }

    /// The folder to build, below the common one; empty when it is that one.
    pub fn folder(&self) -> &str {
        &self.folder
    }

    /// What a build would load over the network.
    pub fn remote(&self) -> &[RemoteReference] {
        &self.remote
    }

    /// The digest of all files and the folder.
    pub fn digest(&self) -> Digest {
        self.digest
    }
}

#[cfg(test)]
mod tests;
