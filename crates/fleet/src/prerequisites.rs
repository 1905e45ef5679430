//! What goes before everything else where it is listed (K41).

use std::fmt;
use std::str::FromStr;

use evenkeel_core::{ClusterSpec, ComponentGraph, ComponentName, Error as CoreError};

use crate::Settings;
use crate::fleet::Inner;

/// The groups there are unless told otherwise: Istio, by the names of its charts or as one component.
const USUAL: &str = "istio-base,istio-cni,istiod,istio";

/// Groups of components that go one after the other before all that are in none; inside a group the configuration's own
/// dependencies decide. Written `a,b;c`: first `a` and `b`, then `c`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prerequisites(Vec<Vec<ComponentName>>);

impl Prerequisites {
    /// No component goes before others unless those depend on it.
    pub fn none() -> Self {
        Self(Vec::new())
    }

    /// The groups, first things first.
    pub fn groups(&self) -> &[Vec<ComponentName>] {
        &self.0
    }
}

impl Default for Prerequisites {
    fn default() -> Self {
        USUAL.parse().unwrap_or_else(|_| Self::none())
    }
}

impl FromStr for Prerequisites {
    type Err = CoreError;

    fn from_str(text: &str) -> Result<Self, CoreError> {
        let names = |group: &str| -> Result<Vec<ComponentName>, CoreError> {
            let names = group.split(',').map(str::trim).filter(|name| !name.is_empty());
            names.map(ComponentName::new).collect()
        };
        let groups: Vec<_> = text.split(';').map(names).collect::<Result<_, _>>()?;
        Ok(Self(
            groups.into_iter().filter(|group| !group.is_empty()).collect(),
        ))
    }
}

impl fmt::Display for Prerequisites {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let group = |group: &Vec<ComponentName>| {
            let names: Vec<&str> = group.iter().map(ComponentName::as_str).collect();
            names.join(",")
        };
        let groups: Vec<String> = self.0.iter().map(group).collect();
        f.write_str(&groups.join(";"))
    }
}

/// The order of a configuration's components: what it lists, what reconcilers declare, prerequisites first.
///
/// # Errors
/// [`CoreError::Spec`] when that has a cycle, or names what is not listed.
pub(crate) async fn order(
    inner: &Inner,
    settings: &Settings,
    spec: &ClusterSpec,
) -> Result<ComponentGraph, CoreError> {
    let graph = inner.reconciler.graph(&spec.components, true).await?;
    Ok(graph.with_prerequisites(settings.prerequisites.groups()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_read_as_they_are_written() {
        for (text, written) in [
            ("a,b;c", "a,b;c"),
            (" a , b ; ; c,", "a,b;c"),
            ("", ""),
            (USUAL, USUAL),
        ] {
            let read = text.parse::<Prerequisites>().map(|groups| groups.to_string());
            assert_eq!(read.as_deref(), Ok(written), "{text:?}");
        }
        assert!("a,B".parse::<Prerequisites>().is_err());
        assert_eq!(Prerequisites::default().groups().len(), 1);
        assert!(Prerequisites::none().groups().is_empty());
    }
}
