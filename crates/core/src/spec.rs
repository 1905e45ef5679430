//! A cluster as its owner asks for it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::readiness::RULES_MAX;
use crate::{
    ClusterName, ComponentGraph, ComponentSpec, Error, FieldError, Schedule, SourceFormat, SourceRef,
};

/// The most components one configuration may list; bounds the graph, the queue and every page that shows it.
const COMPONENTS_MAX: usize = 1_000;
/// The most labels one cluster may carry.
const LABELS_MAX: usize = 64;
/// The longest name of a component: it is the Helm release name, which charts build longer names from.
const COMPONENT_NAME_MAX: usize = 53;
/// The longest label key or value.
const LABEL_LENGTH_MAX: usize = 253;

/// What one cluster should run: the document that `evenkeel cluster apply` sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClusterSpec {
    /// Immutable, unique among live clusters.
    pub name: ClusterName,
    /// Whose cluster it is; work is shared fairly between tenants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The group whose settings it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// For selecting clusters; meaningless to Evenkeel.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// When it may be worked at.
    #[serde(default, skip_serializing_if = "Schedule::is_default")]
    pub schedule: Schedule,
    /// What it should run, in any order: [`ComponentSpec::depends_on`] gives the order.
    #[serde(default)]
    pub components: Vec<ComponentSpec>,
}

impl ClusterSpec {
    /// Checks what the types alone cannot: unique names, known and acyclic dependencies, bounds.
    ///
    /// # Errors
    /// [`Error::Spec`] with every wrong field and its path, not only the first.
    pub fn validate(&self) -> Result<ComponentGraph, Error> {
        let mut errors = self.field_errors();
        match ComponentGraph::new(&self.components) {
            Ok(graph) if errors.is_empty() => Ok(graph),
            Ok(_) => Err(Error::Spec(errors)),
            Err(Error::Spec(more)) => {
                errors.extend(more);
                Err(Error::Spec(errors))
            }
            Err(other) => Err(other),
        }
    }

    fn field_errors(&self) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if self.components.len() > COMPONENTS_MAX {
            let message = format!(
                "expected at most {COMPONENTS_MAX} components, found {}",
                self.components.len()
            );
            errors.push(FieldError::new("components", message));
        }
        if self.labels.len() > LABELS_MAX {
            let message = format!(
                "expected at most {LABELS_MAX} labels, found {}",
                self.labels.len()
            );
            errors.push(FieldError::new("labels", message));
        }
        for (key, value) in &self.labels {
            if key.is_empty() || key.len() > LABEL_LENGTH_MAX || value.len() > LABEL_LENGTH_MAX {
                let message =
                    format!("expected a key of 1 to {LABEL_LENGTH_MAX} bytes and a value of at most as many");
                errors.push(FieldError::new(format!("labels[{key:?}]"), message));
            }
        }
        for (field, value) in [("tenant", &self.tenant), ("group", &self.group)] {
            if value
                .as_ref()
                .is_some_and(|value| value.is_empty() || value.len() > LABEL_LENGTH_MAX)
            {
                errors.push(FieldError::new(
                    field,
                    format!("expected 1 to {LABEL_LENGTH_MAX} bytes"),
                ));
            }
        }
        errors.extend(self.schedule.field_errors());
        let mut names = BTreeSet::new();
        for (index, component) in self.components.iter().enumerate() {
            if !names.insert(&component.name) {
                let message = format!("component {:?} is listed twice", component.name.as_str());
                errors.push(FieldError::new(format!("components[{index}].name"), message));
            }
            if component.name.is_definitions() {
                let message = format!(
                    "{:?} is reserved for the definitions of all components: choose another name",
                    component.name.as_str()
                );
                errors.push(FieldError::new(format!("components[{index}].name"), message));
            }
            if component.name.as_str().len() > COMPONENT_NAME_MAX {
                let message = format!(
                    "expected at most {COMPONENT_NAME_MAX} characters, as Helm does of a release name"
                );
                errors.push(FieldError::new(format!("components[{index}].name"), message));
            }
            if let Some(format) = component.format {
                errors.extend(format_errors(index, component, format));
            }
            if component.readiness.len() > RULES_MAX {
                let message = format!(
                    "expected at most {RULES_MAX} rules, found {}",
                    component.readiness.len()
                );
                errors.push(FieldError::new(format!("components[{index}].readiness"), message));
            }
            if let SourceRef::Directory { path } = &component.source
                && path.is_empty()
            {
                let path = format!("components[{index}].source.directory.path");
                errors.push(FieldError::new(path, "expected a path, found an empty text"));
            }
        }
        errors
    }
}

/// What a component may not say when its source is of that format.
fn format_errors(
    index: usize,
    component: &ComponentSpec,
    format: SourceFormat,
) -> impl Iterator<Item = FieldError> {
    let values = (!format.takes_values() && !component.values.is_empty()).then(|| {
        let path = format!("components[{index}].values");
        FieldError::new(path, format!("expected none: format {format} takes no values"))
    });
    let holds_charts_alone = matches!(
        component.source,
        SourceRef::Repository { .. } | SourceRef::Oci { .. }
    );
    let format = (holds_charts_alone && format != SourceFormat::Chart).then(|| {
        let message = format!(
            "expected chart, found {format}: source {} gives nothing else",
            component.source.kind()
        );
        FieldError::new(format!("components[{index}].format"), message)
    });
    values.into_iter().chain(format)
}

/// How a cluster is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DeleteMode {
    /// Remove its components in reverse order, then the record.
    #[default]
    Uninstall,
    /// The same, and what would outlive them: the volumes and claims that we made, and the CustomResourceDefinitions that
    /// did not exist before us, with every object of their kinds.
    UninstallAll,
    /// Take our labels and parents off its objects, leave them running, then remove the record.
    Orphan,
    /// Remove the record alone; for a cluster that no longer exists.
    Forget,
}

/// What the deletion of a component takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DeleteKind {
    /// Its objects. Volumes, their claims and definitions of kinds stay: they hold what cannot be made anew.
    #[default]
    System,
    /// Those, too.
    All,
}

impl DeleteMode {
    /// What goes of each component; nothing where they stay.
    pub fn kind(self) -> Option<DeleteKind> {
        match self {
            Self::Uninstall => Some(DeleteKind::System),
            Self::UninstallAll => Some(DeleteKind::All),
            Self::Orphan | Self::Forget => None,
        }
    }

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Uninstall => "uninstall",
            Self::UninstallAll => "uninstallAll",
            Self::Orphan => "orphan",
            Self::Forget => "forget",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: serde_json::Value) -> Result<ClusterSpec, serde_json::Error> {
        serde_json::from_value(json)
    }

    fn component(name: &str, depends_on: &[&str]) -> serde_json::Value {
        serde_json::json!({
            "name": name, "source": {"directory": {"path": "charts/x"}}, "namespace": "apps", "dependsOn": depends_on,
        })
    }

    #[test]
    fn the_documented_shape_is_read() -> Result<(), Box<dyn std::error::Error>> {
        let digest = crate::Digest::of("x").to_string();
        let spec = read(serde_json::json!({
            "name": "c1", "tenant": "t", "group": "g", "labels": {"env": "prod"},
            "components": [{
                "name": "web", "source": {"archive": {"digest": digest}}, "namespace": "shop",
                "values": [
                    {"inline": {"replicas": 2}},
                    {"secret": {"password": "x"}},
                    {"valuesFrom": {"secret": {"name": "web-values"}}},
                ],
                "dependsOn": [], "onRemove": "orphan", "onConflict": "error", "timeout": "5m",
            }],
        }))?;
        assert!(spec.validate().is_ok());
        assert!(!format!("{spec:?}").contains("password"));
        let policies: Vec<_> = spec.components.iter().map(|spec| spec.on_conflict).collect();
        assert_eq!(policies, [crate::OnConflict::Refuse]);
        Ok(())
    }

    #[test]
    fn unknown_fields_are_refused() {
        let error =
            read(serde_json::json!({"name": "c1", "componets": []})).map_err(|error| error.to_string());
        assert!(error.is_err_and(|text| text.contains("unknown field `componets`")));
    }

    #[test]
    fn every_wrong_field_is_named() -> Result<(), Box<dyn std::error::Error>> {
        let spec = read(serde_json::json!({
            "name": "c1", "tenant": "", "components": [component("a", &["b", "zz"]), component("b", &["a"]), component("a", &[])],
        }))?;
        let text = spec.validate().map_err(|error| error.to_string());
        let text = text.err().unwrap_or_default();
        for part in [
            "tenant: ",
            "components[2].name: component \"a\" is listed twice",
            "components[0].dependsOn[1]: component \"zz\" is not listed",
            "cycle a → b → a",
        ] {
            assert!(text.contains(part), "{part:?} is missing in {text:?}");
        }
        Ok(())
    }

    #[test]
    fn a_format_limits_values_and_sources() -> Result<(), Box<dyn std::error::Error>> {
        let with = |more: serde_json::Value| {
            let mut component = component("a", &[]);
            if let (Some(component), Some(more)) = (component.as_object_mut(), more.as_object()) {
                component.extend(more.clone());
            }
            read(serde_json::json!({"name": "c1", "components": [component]}))
        };
        let values = serde_json::json!([{"inline": {"a": 1}}]);
        for format in ["manifests", "kustomization"] {
            assert!(with(serde_json::json!({"format": format}))?.validate().is_ok());
            let refused = with(serde_json::json!({"format": format, "values": values}))?.validate();
            let text = refused
                .map_err(|error| error.to_string())
                .err()
                .unwrap_or_default();
            assert_eq!(
                text,
                format!("components[0].values: expected none: format {format} takes no values")
            );
        }
        assert!(
            with(serde_json::json!({"format": "chart", "values": values}))?
                .validate()
                .is_ok()
        );
        let unknown = with(serde_json::json!({"format": "helm"})).map_err(|error| error.to_string());
        assert!(unknown.is_err_and(|text| text.contains("unknown variant `helm`")));
        let source =
            serde_json::json!({"repository": {"repository": "https://charts.example", "chart": "web"}});
        let refused = with(serde_json::json!({"format": "manifests", "source": source}))?.validate();
        assert!(refused.is_err_and(|error| {
            error
                .to_string()
                .starts_with("components[0].format: expected chart, found manifests")
        }));
        Ok(())
    }

    #[test]
    fn names_must_do_as_release_names() -> Result<(), Box<dyn std::error::Error>> {
        let spec = read(serde_json::json!({"name": "c1", "components": [component(&"x".repeat(54), &[])]}))?;
        let text = spec.validate().map_err(|error| error.to_string());
        assert!(
            text.is_err_and(|text| text.starts_with("components[0].name: expected at most 53 characters"))
        );
        Ok(())
    }
}
