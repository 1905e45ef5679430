//! Files of a repository.

use std::fmt::{self, Write as _};

use sha1::{Digest as _, Sha1};

/// The digest by which Git knows a content: equal contents have equal ones, so that no content has to be read to compare it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobDigest(String);

impl BlobDigest {
    /// That of a content.
    pub fn of(content: &[u8]) -> Self {
        let mut digest = Sha1::new();
        digest.update(format!("blob {}\0", content.len()));
        digest.update(content);
        let mut text = String::new();
        for byte in digest.finalize() {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        Self(text)
    }

    pub(super) fn from_hexadecimal(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BlobDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a commit does to a file. To change or delete one its present digest is named: who changed it meanwhile is not overwritten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileAction {
    /// It is new.
    Create {
        /// Its content.
        content: Vec<u8>,
    },
    /// It gets another content.
    Update {
        /// The new content.
        content: Vec<u8>,
        /// The present one.
        over: BlobDigest,
    },
    /// It goes.
    Delete {
        /// The present content.
        over: BlobDigest,
    },
}
