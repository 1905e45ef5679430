//! Discovery documents, legacy and aggregated.

use serde_json::{Value, json};

use crate::registry::{Registry, Resource, Version};

/// The release whose API is simulated.
pub(crate) const GIT_VERSION: &str = "v1.37.2";

/// `/version`
pub(crate) fn version() -> Value {
    json!({
        "major": "1", "minor": "37", "emulationMajor": "1", "emulationMinor": "37",
        "minCompatibilityMajor": "1", "minCompatibilityMinor": "36", "gitVersion": GIT_VERSION,
        "gitCommit": "0000000", "gitTreeState": "clean", "buildDate": "2026-12-01T00:00:00Z",
        "goVersion": "go1.26.8", "compiler": "gc", "platform": "linux/amd64",
    })
}

fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    }
}

/// `/api`
pub(crate) fn legacy_versions(address: &str) -> Value {
    json!({"kind": "APIVersions", "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]})
}

fn group_value(name: &str, versions: &[String]) -> Value {
    let entry = |version: &String| json!({"groupVersion": group_version(name, version), "version": version});
    let versions: Vec<Value> = versions.iter().map(entry).collect();
    json!({"name": name, "versions": versions, "preferredVersion": versions.first()})
}

/// `/apis`
pub(crate) fn groups(registry: &Registry) -> Value {
    let groups: Vec<Value> = registry
        .groups()
        .iter()
        .filter(|group| !group.name.is_empty())
        .map(|group| group_value(&group.name, &group.versions))
        .collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/GROUP`
pub(crate) fn group(registry: &Registry, name: &str) -> Option<Value> {
    let groups = registry.groups();
    let group = groups
        .iter()
        .find(|group| group.name == name && !name.is_empty())?;
    let mut value = group_value(name, &group.versions);
    if let Some(object) = value.as_object_mut() {
        object.insert("kind".into(), "APIGroup".into());
        object.insert("apiVersion".into(), "v1".into());
    }
    Some(value)
}

fn served<'r>(
    registry: &'r Registry,
    group: &'r str,
    version: &'r str,
) -> impl Iterator<Item = (&'r Resource, &'r Version)> {
    registry
        .all()
        .filter(move |resource| resource.group == group)
        .filter_map(move |resource| Some((resource.as_ref(), resource.version(version)?)))
}

/// `/api/v1`, `/apis/GROUP/VERSION`
pub(crate) fn resources(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    if !registry.serves_group_version(group, version) {
        return None;
    }
    let mut list = Vec::new();
    for (resource, served) in served(registry, group, version) {
        let mut entry = json!({"name": resource.plural, "singularName": resource.singular,
            "namespaced": resource.namespaced, "kind": resource.kind, "verbs": served.verbs});
        if let Some(object) = entry.as_object_mut() {
            if !resource.short_names.is_empty() {
                object.insert("shortNames".into(), json!(resource.short_names));
            }
            if !resource.categories.is_empty() {
                object.insert("categories".into(), json!(resource.categories));
            }
            if !served.storage_hash.is_empty() {
                object.insert("storageVersionHash".into(), served.storage_hash.as_str().into());
            }
        }
        list.push(entry);
        for subresource in &served.subresources {
            let mut entry = json!({"name": format!("{}/{}", resource.plural, subresource.name), "singularName": "",
                "namespaced": resource.namespaced, "kind": subresource.kind, "verbs": subresource.verbs});
            if let Some(object) = entry.as_object_mut() {
                for (field, value) in [("group", &subresource.group), ("version", &subresource.version)] {
                    if let Some(value) = value {
                        object.insert(field.into(), value.as_str().into());
                    }
                }
            }
            list.push(entry);
        }
    }
    Some(
        json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version(group, version),
        "resources": list}),
    )
}

/// Aggregated discovery of `/api` (`legacy`) or `/apis`.
pub(crate) fn aggregated(registry: &Registry, legacy: bool) -> Value {
    let groups = registry.groups();
    let items = groups
        .iter()
        .filter(|group| group.name.is_empty() == legacy)
        .map(|group| {
            let versions = group.versions.iter().map(|version| {
                let resources: Vec<Value> = served(registry, &group.name, version)
                    .map(|(resource, served)| aggregated_resource(resource, served))
                    .collect();
                json!({"version": version, "resources": resources, "freshness": "Current"})
            });
            let metadata = if legacy {
                json!({})
            } else {
                json!({"name": group.name})
            };
            json!({"metadata": metadata, "versions": versions.collect::<Vec<_>>()})
        });
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {},
        "items": items.collect::<Vec<_>>()})
}

fn aggregated_resource(resource: &Resource, served: &Version) -> Value {
    // Built-in kinds leave out the group and version that they share with the list they are in.
    let kind =
        |group: &str, version: &str, kind: &str| json!({"group": group, "version": version, "kind": kind});
    let own = |name: &str| {
        if resource.is_custom() {
            kind(&resource.group, &served.name, name)
        } else {
            kind("", "", name)
        }
    };
    let mut entry = json!({"resource": resource.plural, "responseKind": own(&resource.kind),
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular, "verbs": served.verbs});
    if let Some(object) = entry.as_object_mut() {
        if !resource.short_names.is_empty() {
            object.insert("shortNames".into(), json!(resource.short_names));
        }
        if !resource.categories.is_empty() {
            object.insert("categories".into(), json!(resource.categories));
        }
        if !served.subresources.is_empty() {
            let list = served.subresources.iter().map(|subresource| {
                let response = match (&subresource.group, &subresource.version) {
                    (None, None) => own(&subresource.kind),
                    (group, version) => kind(
                        group.as_deref().unwrap_or_default(),
                        version.as_deref().unwrap_or_default(),
                        &subresource.kind,
                    ),
                };
                json!({"subresource": subresource.name, "responseKind": response, "verbs": subresource.verbs})
            });
            object.insert("subresources".into(), list.collect());
        }
    }
    entry
}
