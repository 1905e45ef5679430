//! Versions and constraints for those who have no template: choosing charts, checking what a chart asks for.

use std::cmp::Ordering;

use super::{Constraint, Version};

/// A constraint such as `>=1.2 <2`, read once for many versions.
#[derive(Clone, Debug)]
pub struct VersionConstraint(Constraint);

impl VersionConstraint {
    /// Reads a constraint.
    ///
    /// # Errors
    /// What Masterminds' parser says of it.
    pub fn parse(text: &str) -> std::result::Result<Self, String> {
        Constraint::parse(text)
            .map(Self)
            .map_err(|error| error.to_string())
    }

    /// Whether a version satisfies it; false for what is no version.
    pub fn matches(&self, version: &str) -> bool {
        Version::parse(version).is_ok_and(|version| self.0.matches(&version))
    }
}

/// Orders versions; what is no version comes before all that are.
pub fn compare_versions(a: &str, b: &str) -> Ordering {
    match (Version::parse(a), Version::parse(b)) {
        (Ok(a), Ok(b)) => a.compare(&b),
        (a, b) => a.is_ok().cmp(&b.is_ok()),
    }
}

/// Whether a text is a version: `1.2.3`, `v1.2`, `1-rc.1+build`.
pub fn is_version(text: &str) -> bool {
    Version::parse(text).is_ok()
}

/// Whether a version satisfies a constraint such as `>=1.2 <2`; false when either cannot be read.
pub fn version_satisfies(constraint: &str, version: &str) -> bool {
    match (Constraint::parse(constraint), Version::parse(version)) {
        (Ok(constraint), Ok(version)) => constraint.matches(&version),
        _ => false,
    }
}
