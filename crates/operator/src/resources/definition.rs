//! The definitions that an API server is given, as `deploy/crds` holds them.

use std::fmt;

use evenkeel_goyaml::to_yaml;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt as _;
use serde_json::Value;

use super::{Cluster, GitRepo, Tenant, TenantTemplate};

/// The definition of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition(CustomResourceDefinition);

/// The definitions of all kinds.
pub fn definitions() -> Vec<Definition> {
    [
        Cluster::crd(),
        GitRepo::crd(),
        Tenant::crd(),
        TenantTemplate::crd(),
    ]
    .into_iter()
    .map(Definition::new)
    .collect()
}

impl Definition {
    fn new(mut definition: CustomResourceDefinition) -> Self {
        for version in &mut definition.spec.versions {
            let schema = version.schema.as_mut();
            if let Some(root) = schema.and_then(|schema| schema.open_api_v3_schema.as_mut()) {
                accept_absent_spec(root);
                refuse_null(root);
            }
        }
        Self(definition)
    }

    /// Name of its file in `deploy/crds`.
    pub fn file_name(&self) -> String {
        format!("{}_{}.yaml", self.0.spec.group, self.0.spec.names.plural)
    }

    /// The object for the API server.
    pub fn object(&self) -> &CustomResourceDefinition {
        &self.0
    }
}

impl fmt::Display for Definition {
    /// In YAML, as its file has it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let object = serde_json::to_value(&self.0).map_err(|_| fmt::Error)?;
        f.write_str(&to_yaml(&object.into()))
    }
}

/// An object without a spec is one with an empty spec, as for a Go program. The default also fills in what was stored before
/// the definition had it, so nobody ever reads an object without.
fn accept_absent_spec(root: &mut JSONSchemaProps) {
    root.required = root
        .required
        .take()
        .map(|required| required.into_iter().filter(|name| name != "spec").collect())
        .filter(|required: &Vec<String>| !required.is_empty());
    let spec = root
        .properties
        .as_mut()
        .and_then(|properties| properties.get_mut("spec"));
    if let Some(spec) = spec {
        spec.default = Some(JSON(Value::Object(serde_json::Map::new())));
    }
}

/// What may be left out may still not be null: neither was it for Lieutenant, and other programs read these objects too.
fn refuse_null(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    for property in schema.properties.iter_mut().flatten() {
        refuse_null(property.1);
    }
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(items)) => refuse_null(items),
        Some(JSONSchemaPropsOrArray::Schemas(items)) => items.iter_mut().for_each(refuse_null),
        None => {}
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        refuse_null(values);
    }
}
