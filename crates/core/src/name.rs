//! Names that Kubernetes and DNS accept.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Error;

/// The longest DNS label (RFC 1123).
pub const NAME_MAX: usize = 63;

const RULE: &str = "expected 1 to 63 lower-case letters, digits or '-', beginning and ending with a letter or digit (RFC 1123)";

fn is_dns_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty()
        && text.len() <= NAME_MAX
        && text.bytes().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

macro_rules! dns_label {
    ($(#[$doc:meta])* $type:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        pub struct $type(String);

        impl $type {
            /// The checked name.
            ///
            /// # Errors
            /// [`Error::Name`] when `text` is no DNS label.
            pub fn new(text: impl Into<String>) -> Result<Self, Error> {
                let text = text.into();
                if is_dns_label(&text) {
                    Ok(Self(text))
                } else {
                    Err(Error::Name { what: $what, value: text, expected: RULE })
                }
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl AsRef<str> for $type {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl std::borrow::Borrow<str> for $type {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $type {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self, Error> {
                Self::new(text)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::new(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
            }
        }
    };
}

dns_label! {
    /// A cluster's name: an immutable DNS label, unique among live clusters.
    ClusterName, "cluster name"
}
dns_label! {
    /// A component's name, unique in its configuration; also its Helm release name.
    ComponentName, "component name"
}
dns_label! {
    /// A Kubernetes namespace.
    Namespace, "namespace"
}

/// The component that stands for the definitions of all others, in runs that apply those before anything else.
const DEFINITIONS: &str = "evenkeel-crds";

impl ComponentName {
    /// The name of the operation that applies the CustomResourceDefinitions of all components of a configuration (K41). No
    /// configuration can list it.
    pub fn definitions() -> Self {
        Self(DEFINITIONS.to_owned())
    }

    /// Whether it is [`ComponentName::definitions`].
    pub fn is_definitions(&self) -> bool {
        self.0 == DEFINITIONS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_labels_only() {
        for good in ["a", "web", "web-2", "0", &"x".repeat(63)] {
            assert!(ClusterName::new(good).is_ok(), "{good}");
        }
        for bad in ["", "-a", "a-", "Web", "a.b", "a_b", "ä", &"x".repeat(64)] {
            assert!(ClusterName::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_the_rule() {
        let error = ComponentName::new("Web").map_err(|error| error.to_string());
        assert!(
            error.is_err_and(|text| text.contains("component name \"Web\"") && text.contains("RFC 1123"))
        );
    }
}
