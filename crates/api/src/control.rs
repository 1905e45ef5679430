//! What people tell the fleet to do with a cluster beside changing it: leave it alone, go on, do it now.

use evenkeel_core::{ComponentName, HumanDuration};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The query of `POST /v2/clusters/{name}/reconcile`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Reconcile {
    /// Also outside of the cluster's maintenance windows, and with component versions that are held back because they fail
    /// elsewhere.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
    /// The components to run even though they do not differ, separated by commas; whatever differs is done anyway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub components: Option<String>,
}

impl Reconcile {
    /// The names in [`Reconcile::components`].
    ///
    /// # Errors
    /// [`evenkeel_core::Error::Name`] for the first that is none.
    pub fn component_names(&self) -> Result<Vec<ComponentName>, evenkeel_core::Error> {
        let names = self.components.as_deref().unwrap_or_default().split(',');
        names
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .map(ComponentName::new)
            .collect()
    }
}

/// The body of `POST /v2/clusters/{name}/suspend`: until a moment, for a while, or, with neither, for good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Suspend {
    /// When it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// How long it lasts.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub within: Option<HumanDuration>,
}

/// A suspension, as a cluster's status shows it: nothing but deletion is done meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Suspension {
    /// When it ends; none when only a person ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_are_listed_with_commas() {
        let asked = |text: &str| Reconcile {
            components: Some(text.to_owned()),
            ..Reconcile::default()
        };
        let names = asked("web, db,").component_names().expect("names");
        assert_eq!(
            names.iter().map(ComponentName::as_str).collect::<Vec<_>>(),
            ["web", "db"]
        );
        assert!(asked("web,NO").component_names().is_err());
        assert_eq!(Reconcile::default().component_names(), Ok(Vec::new()));
    }
}
