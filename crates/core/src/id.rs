//! Typed ids: one cannot be passed for another.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Error;

/// The longest accepted cluster id; ids become label values and prefixes of longer ids.
const CLUSTER_ID_MAX: usize = 63;
/// What stands between a cluster id and the UUID of a run.
const SEPARATOR: &str = "--";

/// Identifies one life of a cluster: the broker's runtimeID, else a UUIDv7. A re-created name gets a new one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct ClusterId(String);

impl ClusterId {
    /// The checked id: 1 to 63 ASCII letters, digits, `-`, `_` or `.`, without `--`.
    ///
    /// # Errors
    /// [`Error::Id`] for any other text.
    pub fn new(text: impl Into<String>) -> Result<Self, Error> {
        let text = text.into();
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if text.is_empty()
            || text.len() > CLUSTER_ID_MAX
            || !text.bytes().all(allowed)
            || text.contains(SEPARATOR)
            || text.ends_with('-')
        {
            return Err(Error::Id {
                what: "cluster id",
                value: text,
                expected: "1 to 63 letters, digits, '-', '_' or '.', without \"--\" and not ending in '-'",
            });
        }
        Ok(Self(text))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<Uuid> for ClusterId {
    fn from(uuid: Uuid) -> Self {
        Self(uuid.to_string())
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for ClusterId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::new(text)
    }
}

impl<'de> Deserialize<'de> for ClusterId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

macro_rules! run_id {
    ($(#[$doc:meta])* $type:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type {
            cluster: ClusterId,
            uuid: Uuid,
        }

        impl $type {
            /// The id of run `uuid` (a UUIDv7) of `cluster`.
            pub fn new(cluster: ClusterId, uuid: Uuid) -> Self {
                Self { cluster, uuid }
            }

            /// The cluster this run belongs to.
            pub fn cluster(&self) -> &ClusterId {
                &self.cluster
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}{SEPARATOR}{}", self.cluster, self.uuid)
            }
        }

        impl FromStr for $type {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self, Error> {
                let refused = || Error::Id {
                    what: $what,
                    value: text.to_owned(),
                    expected: "<cluster id>--<UUID>",
                };
                let (cluster, uuid) = text.split_once(SEPARATOR).ok_or_else(refused)?;
                Ok(Self { cluster: cluster.parse()?, uuid: uuid.parse().map_err(|_| refused())? })
            }
        }

        impl Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

run_id! {
    /// One run over one cluster (`schedulingID` on the broker's wire), written `<ClusterId>--<UUIDv7>`.
    ReconciliationId, "reconciliation id"
}
run_id! {
    /// One component inside a run (`correlationID` on the broker's wire), written `<ClusterId>--<UUIDv7>`.
    OperationId, "operation id"
}

macro_rules! counter {
    ($(#[$doc:meta])* $type:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $type(pub u64);

        impl $type {
            /// The number after this one.
            #[must_use]
            pub fn next(self) -> Self {
                Self(self.0.saturating_add(1))
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

counter! {
    /// The number of an immutable configuration of one cluster, from 1.
    ConfigurationVersion
}
counter! {
    /// Grows only when a component's source digest, values, name or namespace change; Helm's `.Release.Revision`.
    /// Revision 1 is the install.
    ComponentRevision
}
counter! {
    /// Raised at each claim of a component of a cluster and taken at the target before the first write, so that a
    /// late attempt cannot write over a newer one.
    Fence
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_ids_read_what_they_write() -> Result<(), Error> {
        for cluster in ["runtime-1", "a_b.c", "0192f0c1-2d3e-7f00-8000-000000000001"] {
            let id = ReconciliationId::new(cluster.parse()?, Uuid::from_u128(7));
            assert_eq!(id.to_string().parse::<ReconciliationId>()?, id);
        }
        Ok(())
    }

    #[test]
    fn cluster_ids_cannot_hide_a_separator() {
        for bad in ["", "a--b", "a-", "a b", "a/b", &"x".repeat(64)] {
            assert!(ClusterId::new(bad).is_err(), "{bad}");
        }
    }
}
