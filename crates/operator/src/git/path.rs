//! Where a repository is at its host, and a file in it.

use std::fmt;

use crate::Error;

/// Group and name of a repository: `tenants/emea` and `t-one`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepoPath {
    group: String,
    name: String,
}

impl RepoPath {
    /// A path of these parts. Slashes at the ends of the group are left out.
    ///
    /// # Errors
    /// [`Error::Invalid`] when a part is empty, or leads to another place than it says.
    pub fn new(group: &str, name: &str) -> Result<Self, Error> {
        let group = group.trim_matches('/');
        let what = || format!("the repository {group}/{name}");
        for segment in group.split('/').chain([name]) {
            check(segment, what)?;
        }
        if name.contains('/') {
            return Err(Error::Invalid {
                what: what(),
                problem: "its name holds a `/`: what lies before belongs to the path".to_owned(),
            });
        }
        Ok(Self {
            group: group.to_owned(),
            name: name.to_owned(),
        })
    }

    /// The group or organisation; the parts of nested ones are separated by `/`.
    pub fn group(&self) -> &str {
        &self.group
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether a host means the same place by both: it keeps the case of a path, and looks it up without.
    pub(crate) fn is_same_place(&self, other: &Self) -> bool {
        self.group.eq_ignore_ascii_case(&other.group) && self.name.eq_ignore_ascii_case(&other.name)
    }
}

impl fmt::Display for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.group, self.name)
    }
}

/// A file in a repository: `manifests/apps.yml`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FilePath(String);

impl FilePath {
    /// A path from the root of the repository.
    ///
    /// # Errors
    /// [`Error::Invalid`] when it leads out of the repository, into Git's own folder, or nowhere.
    pub fn new(path: &str) -> Result<Self, Error> {
        let what = || format!("the path {path:?} of a file");
        for segment in path.split('/') {
            check(segment, what)?;
            if segment.eq_ignore_ascii_case(".git") {
                return Err(Error::Invalid {
                    what: what(),
                    problem: "it leads into Git's own folder".to_owned(),
                });
            }
        }
        Ok(Self(path.to_owned()))
    }

    /// The path.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn check(segment: &str, what: impl Fn() -> String) -> Result<(), Error> {
    let problem = if matches!(segment, "" | "." | "..") {
        "a part of it is empty, `.` or `..`"
    } else if segment.chars().any(char::is_control) {
        "it holds a control character"
    } else {
        return Ok(());
    };
    Err(Error::Invalid {
        what: what(),
        problem: problem.to_owned(),
    })
}
