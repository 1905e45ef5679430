//! What component reconcilers declare beside a configuration: which components theirs depend on, in which of their versions
//! (K44).

use evenkeel_core::{ComponentGraph, ComponentName, ComponentSpec, DeclaredDependency, Error, SourceRef};
use evenkeel_gotemplate::{VersionConstraint, is_version};
use evenkeel_source::Content;
use serde::{Deserialize, Serialize};

use crate::reconciler::Reconciler;

/// Some versions of a component, and what they depend on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Declaration {
    /// The component.
    pub component: ComponentName,
    /// A range of the versions of its chart, by Helm's rules; all when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub versions: Option<String>,
    /// What those depend on, as if the configuration said so. Must be listed wherever the component is.
    pub depends_on: Vec<ComponentName>,
}

/// All declarations of the component reconcilers of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declarations(Vec<Declaration>);

/// A declaration that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("[{index}].versions: {versions:?} is no range of versions: {problem}")]
pub struct DeclarationError {
    /// Its place in the list.
    pub index: usize,
    /// The range.
    pub versions: String,
    /// What is wrong with it, and what was expected.
    pub problem: String,
}

impl Declarations {
    /// Checks the ranges.
    ///
    /// # Errors
    /// [`DeclarationError`] for the first that is none.
    pub fn new(declarations: Vec<Declaration>) -> Result<Self, DeclarationError> {
        for (index, declaration) in declarations.iter().enumerate() {
            if let Some(versions) = &declaration.versions {
                VersionConstraint::parse(versions).map_err(|problem| DeclarationError {
                    index,
                    versions: versions.clone(),
                    problem,
                })?;
            }
        }
        Ok(Self(declarations))
    }

    /// Those about a component.
    fn about<'a>(&'a self, component: &'a ComponentName) -> impl Iterator<Item = &'a Declaration> {
        self.0
            .iter()
            .filter(move |declaration| declaration.component == *component)
    }

    /// Whether the version of a component matters.
    fn asks_for_version(&self, component: &ComponentName) -> bool {
        self.about(component)
            .any(|declaration| declaration.versions.is_some())
    }

    /// What a component of `version` depends on. One whose version is not known is in no range.
    fn of(&self, component: &ComponentName, version: Option<&str>) -> Vec<DeclaredDependency> {
        let mut found = Vec::new();
        for declaration in self.about(component) {
            let said = match (&declaration.versions, version) {
                (None, _) => format!("the reconciler of {component}"),
                (Some(_), None) => continue,
                (Some(versions), Some(version)) => {
                    let range = VersionConstraint::parse(versions);
                    if !range.is_ok_and(|range| range.matches(version)) {
                        continue;
                    }
                    format!("the reconciler of {component}, for versions {versions},")
                }
            };
            found.extend(declaration.depends_on.iter().map(|on| DeclaredDependency {
                on: on.clone(),
                declared: said.clone(),
            }));
        }
        found
    }
}

impl Reconciler {
    /// The same, and its components depend on what `declarations` say.
    #[must_use]
    pub fn with_declarations(mut self, declarations: Declarations) -> Self {
        self.set_declarations(declarations);
        self
    }

    /// The graph of `components`: what the configuration lists and what is declared.
    ///
    /// The version of a chart is asked for only where a declaration is about some versions. `remote` says whether a source
    /// may be asked over the network for it; otherwise what is not known exactly is in no range.
    ///
    /// # Errors
    /// As [`ComponentGraph::with_declared`].
    pub async fn graph(&self, components: &[ComponentSpec], remote: bool) -> Result<ComponentGraph, Error> {
        let declarations = self.declarations();
        let mut declared = Vec::with_capacity(components.len());
        for component in components {
            let version = match declarations.asks_for_version(&component.name) {
                true => self.version(component, remote).await,
                false => None,
            };
            declared.push((
                &component.name,
                declarations.of(&component.name, version.as_deref()),
            ));
        }
        ComponentGraph::with_declared(components, |component| {
            let of = declared.iter().filter(|(name, _)| **name == component.name);
            of.flat_map(|(_, declared)| declared.clone()).collect()
        })
    }

    /// The version of a component's chart, if it has one that can be known.
    async fn version(&self, component: &ComponentSpec, remote: bool) -> Option<String> {
        let written = match &component.source {
            SourceRef::Directory { .. } | SourceRef::Archive { .. } => None,
            SourceRef::Repository { version, .. } | SourceRef::Oci { version, .. } => {
                let exact = version.as_ref().map(|version| version.as_str());
                match exact.filter(|version| is_version(version)) {
                    Some(version) => return Some(version.to_owned()),
                    None if !remote => return None,
                    None => exact,
                }
            }
        };
        // What cannot be read fails its operation, which says why.
        match self
            .shared()
            .sources
            .content(&component.source, component.format)
            .await
        {
            Ok(Content::Chart(chart)) => Some(chart.metadata().version.clone()),
            Ok(_) => None,
            Err(error) => {
                tracing::debug!(component = component.name.as_str(), written, %error, "its version is not known");
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declarations(json: serde_json::Value) -> Result<Declarations, DeclarationError> {
        Declarations::new(serde_json::from_value(json).expect("the documented shape"))
    }

    fn name(text: &str) -> ComponentName {
        ComponentName::new(text).expect("a name")
    }

    #[test]
    fn a_range_decides_which_versions_depend_on_what() {
        let declared = declarations(serde_json::json!([
            {"component": "kiali", "versions": ">=1.2, <2", "dependsOn": ["istio"]},
            {"component": "kiali", "dependsOn": ["prometheus"]},
            {"component": "web", "dependsOn": ["db"]},
        ]))
        .expect("they are valid");
        let of = |version| {
            let found = declared.of(&name("kiali"), version).into_iter();
            found.map(|declared| declared.on.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(of(Some("1.2.0")), ["istio", "prometheus"]);
        assert_eq!(of(Some("2.0.0")), ["prometheus"]);
        assert_eq!(of(None), ["prometheus"]);
        assert!(declared.of(&name("db"), Some("1.0.0")).is_empty());
        assert!(!declared.asks_for_version(&name("web")));
    }

    #[test]
    fn a_range_that_is_none_is_refused_with_its_place() {
        let refused = declarations(serde_json::json!([
            {"component": "a", "dependsOn": []},
            {"component": "kiali", "versions": "newer than 1", "dependsOn": ["istio"]},
        ]));
        let text = refused
            .map_err(|error| error.to_string())
            .expect_err("it is refused");
        assert!(text.starts_with("[1].versions: \"newer than 1\""), "{text}");
    }
}
