//! As much OpenAPI as `kubectl` needs: which kinds there are, and that the server checks fields itself.

use serde_json::{Map, Value, json};

use crate::registry::Registry;

fn group_version_path(group: &str, version: &str) -> String {
    if group.is_empty() {
        format!("api/{version}")
    } else {
        format!("apis/{group}/{version}")
    }
}

/// `/openapi/v3`
pub(crate) fn index(registry: &Registry, prefix: &str) -> Value {
    let mut paths = Map::new();
    for group in registry.groups() {
        for version in &group.versions {
            let path = group_version_path(&group.name, version);
            let url = format!("{prefix}/openapi/v3/{path}?hash=simulated");
            paths.insert(path, json!({"serverRelativeURL": url}));
        }
    }
    json!({ "paths": paths })
}

/// `/openapi/v3/apis/GROUP/VERSION`: for each kind a schema, and a PATCH that takes `fieldValidation`.
pub(crate) fn document(registry: &Registry, path: &str) -> Option<Value> {
    let parts: Vec<&str> = path.split('/').collect();
    let (group, version) = match parts.as_slice() {
        ["api", version] => ("", *version),
        ["apis", group, version] => (*group, *version),
        _ => return None,
    };
    if !registry.serves_group_version(group, version) {
        return None;
    }
    let base = group_version_path(group, version);
    let (mut paths, mut schemas) = (Map::new(), Map::new());
    let parameter =
        |name: &str| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}});
    for resource in registry.all().filter(|resource| resource.group == group) {
        let Some(served) = resource.version(version) else {
            continue;
        };
        let kind = json!({"group": group, "version": version, "kind": resource.kind});
        let scope = if resource.namespaced {
            "namespaces/{namespace}/"
        } else {
            ""
        };
        let content = json!({"application/json": {"schema": {"type": "object"}}});
        paths.insert(
            format!("/{base}/{scope}{}/{{name}}", resource.plural),
            json!({"patch": {
                "parameters": [parameter("dryRun"), parameter("fieldManager"), parameter("fieldValidation"),
                    parameter("force")],
                "requestBody": {"content": {"application/apply-patch+yaml": {"schema": {"type": "object"}}}},
                "responses": {"200": {"description": "OK", "content": content}},
                "x-kubernetes-action": "patch",
                "x-kubernetes-group-version-kind": kind,
            }}),
        );
        let mut schema = match served.custom.as_ref().map(|custom| custom.open_api.clone()) {
            Some(schema) => schema,
            None => json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
        };
        if let Some(object) = schema.as_object_mut() {
            object.insert("x-kubernetes-group-version-kind".into(), json!([kind]));
        }
        let reversed: Vec<&str> = group.split('.').rev().filter(|part| !part.is_empty()).collect();
        let name = if reversed.is_empty() {
            "io.k8s.api.core".to_owned()
        } else {
            reversed.join(".")
        };
        schemas.insert(format!("{name}.{version}.{}", resource.kind), schema);
    }
    Some(
        json!({"openapi": "3.0.0", "info": {"title": "Kubernetes", "version": crate::discovery::GIT_VERSION},
        "paths": paths, "components": {"schemas": schemas}}),
    )
}
