//! SSH keys of a repository.

use std::fmt;

use crate::Error;

/// A public key: algorithm and key, without the comment, which says nothing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey {
    kind: String,
    key: String,
}

impl PublicKey {
    /// One of algorithm and base 64.
    ///
    /// # Errors
    /// [`Error::Invalid`] when one of them is empty or holds blanks.
    pub fn new(kind: &str, key: &str) -> Result<Self, Error> {
        let (kind, key) = (kind.trim(), key.trim());
        for (what, text) in [("type", kind), ("key", key)] {
            if text.is_empty() || text.contains(|c: char| c.is_whitespace() || c.is_control()) {
                return Err(Error::Invalid {
                    what: format!("the {what} of a deploy key"),
                    problem: "it is empty or holds blanks; a key is written like ssh-ed25519 AAAA…"
                        .to_owned(),
                });
            }
        }
        Ok(Self {
            kind: kind.to_owned(),
            key: key.to_owned(),
        })
    }

    /// One of a line of `authorized_keys`.
    ///
    /// # Errors
    /// [`Error::Invalid`] when a part is missing.
    pub fn parse(line: &str) -> Result<Self, Error> {
        let mut parts = line.split_whitespace();
        Self::new(parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.key)
    }
}

/// A key that a repository has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PresentKey {
    /// Its number at the host.
    pub id: u64,
    /// Its title.
    pub title: String,
    /// The key.
    pub key: PublicKey,
    /// Whether it may write.
    pub may_write: bool,
}
