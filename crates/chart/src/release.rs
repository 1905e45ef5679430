//! The release a chart is rendered for, as templates see it in `.Release`.

use crate::Error;

/// The fields of `.Release`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// Name of the release.
    pub name: String,
    /// Namespace of the release, the default of objects without one.
    pub namespace: String,
    /// 1 for an install.
    pub revision: u64,
    /// First time.
    pub is_install: bool,
    /// Not the first time.
    pub is_upgrade: bool,
    /// Always `Helm`: charts write it into `app.kubernetes.io/managed-by`.
    pub service: String,
}

/// The most bytes of a release name.
const MAX_NAME: usize = 53;

impl Release {
    /// A first release of this name.
    pub fn install(name: &str, namespace: &str) -> Self {
        Self {
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            revision: 1,
            is_install: true,
            is_upgrade: false,
            service: "Helm".to_owned(),
        }
    }

    /// Refuses a name that could not become part of object names: lower-case DNS labels with dots, at most 53 bytes.
    pub fn validate(&self) -> Result<(), Error> {
        let label = |label: &str| {
            let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
            ends(label.chars().next())
                && ends(label.chars().last())
                && label
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        };
        if self.name.len() <= MAX_NAME && self.name.split('.').all(label) {
            return Ok(());
        }
        Err(Error::ReleaseName(self.name.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked() {
        for (name, good) in [
            ("a", true),
            ("release-name", true),
            ("a.b-c.d", true),
            ("", false),
            ("A", false),
            ("a_b", false),
            ("-a", false),
            ("a.", false),
            (&"a".repeat(53), true),
            (&"a".repeat(54), false),
        ] {
            assert_eq!(Release::install(name, "ns").validate().is_ok(), good, "{name}");
        }
    }
}
