//! The name of a branch.

use std::fmt;

use crate::Error;

/// What the first branch of a repository is called unless it is said otherwise.
const DEFAULT: &str = "main";

/// How long a name may be, in bytes: hosts keep it in a column of that size.
const BYTES_MAX: usize = 255;

/// A branch: `main`, `release/1.2`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchName(String);

impl BranchName {
    /// A name that Git takes (git-check-ref-format).
    ///
    /// # Errors
    /// [`Error::Invalid`] when Git would not take it.
    pub fn new(name: &str) -> Result<Self, Error> {
        let is_bad = |c: char| c.is_control() || c.is_whitespace() || "~^:?*[\\".contains(c);
        let is_part = |part: &str| {
            !part.is_empty() && !part.starts_with('.') && !part.ends_with('.') && !part.ends_with(".lock")
        };
        let is_name = name.len() <= BYTES_MAX
            && !name.starts_with('-')
            && !matches!(name, "@" | "HEAD")
            && !name.contains(is_bad)
            && !name.contains("..")
            && !name.contains("@{")
            && name.split('/').all(is_part);
        if is_name {
            return Ok(Self(name.to_owned()));
        }
        Err(Error::Invalid {
            what: format!("the name {name:?} of a branch"),
            problem: "Git takes none of that name: write it like main".to_owned(),
        })
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for BranchName {
    fn default() -> Self {
        Self(DEFAULT.to_owned())
    }
}

impl fmt::Display for BranchName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_git_takes_are_names() {
        for name in ["main", "master", "release/1.2", "größe", "a-b_c"] {
            assert_eq!(BranchName::new(name).unwrap().as_str(), name);
        }
        let long = "x".repeat(256);
        for name in [
            "", "/", "a/", "/a", "a//b", "-a", "a b", "a..b", "a~1", "a^", "a:b", "a?", "*", "a[", "a\\b",
            "a.lock", "a.lock/b", ".a", "a/.b", "a.", "@", "a@{1}", "HEAD", "a\nb", &long,
        ] {
            assert!(BranchName::new(name).is_err(), "{name:?}");
        }
    }
}
