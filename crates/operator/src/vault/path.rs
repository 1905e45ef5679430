//! Where a secret lies.

use std::fmt;

use crate::Error;

/// A path below the engine: `tenant/cluster/steward`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SecretPath(Vec<String>);

impl SecretPath {
    /// A path of these segments.
    ///
    /// # Errors
    /// [`Error::Invalid`] when there is none, or one is empty, `.` or `..`, or holds a `/` or a control character: it would
    /// lead to another place than it says.
    pub fn new<S: Into<String>>(segments: impl IntoIterator<Item = S>) -> Result<Self, Error> {
        let segments: Vec<String> = segments.into_iter().map(Into::into).collect();
        let invalid = |problem: &str| {
            Err(Error::Invalid {
                what: format!("the path {:?} of a secret", segments.join("/")),
                problem: problem.to_owned(),
            })
        };
        if segments.is_empty() {
            return invalid("it has no segment");
        }
        for segment in &segments {
            if matches!(segment.as_str(), "" | "." | "..") {
                return invalid("a segment is empty, `.` or `..`");
            }
            if segment.contains(|c: char| c == '/' || c.is_control()) {
                return invalid("a segment holds a `/` or a control character");
            }
        }
        Ok(Self(segments))
    }

    pub(super) fn child(&self, name: &str) -> Result<Self, Error> {
        Self::new(self.0.iter().map(String::as_str).chain([name]))
    }

    pub(super) fn segments(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    pub(super) fn depth(&self) -> usize {
        self.0.len()
    }
}

impl fmt::Display for SecretPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("/"))
    }
}
