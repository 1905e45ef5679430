//! Custom resource definitions: from their spec to a resource that can be served.

use base64::Engine as _;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::json::{at, items, set, text};
use crate::object::{Key, Object};
use crate::registry::{Column, CustomVersion, Resource, ResourceId, ScalePaths, Subresource, Version};
use crate::schema::structural::Structural;
use crate::state::State;
use crate::status::{ApiError, Cause};

/// Sorts versions as discovery does: GA before beta before alpha, higher before lower, other names last.
pub(crate) fn version_priority(name: &str) -> (u8, i64, i64, String) {
    let parse = || {
        let rest = name.strip_prefix('v')?;
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let major: i64 = rest.get(..end)?.parse().ok()?;
        let (rank, minor) = match rest.get(end..)? {
            "" => (0, "0"),
            rest if rest.starts_with("beta") => (1, rest.get(4..)?),
            rest if rest.starts_with("alpha") => (2, rest.get(5..)?),
            _ => return None,
        };
        Some((rank, -major, -minor.parse::<i64>().ok()?, String::new()))
    };
    parse().unwrap_or_else(|| (3, 0, 0, name.to_owned()))
}

/// Checks a definition.
pub(crate) fn validate(object: &Value, causes: &mut Vec<Cause>) {
    let group = text(object, &["spec", "group"]);
    let plural = text(object, &["spec", "names", "plural"]);
    let name = text(object, &["metadata", "name"]);
    for (value, field) in [
        (group, "spec.group"),
        (plural, "spec.names.plural"),
        (text(object, &["spec", "names", "kind"]), "spec.names.kind"),
    ] {
        if value.is_empty() {
            causes.push(Cause::required(field, ""));
        }
    }
    let expected = format!("{plural}.{group}");
    if name != expected {
        let shown = Value::from(name).to_string();
        causes.push(Cause::invalid(
            "metadata.name",
            &shown,
            "must be spec.names.plural+\".\"+spec.group",
        ));
    }
    let scope = text(object, &["spec", "scope"]);
    if !["Namespaced", "Cluster"].contains(&scope) {
        let shown = Value::from(scope).to_string();
        causes.push(Cause::not_supported(
            "spec.scope",
            &shown,
            &["Cluster", "Namespaced"],
        ));
    }
    let versions = items(object, &["spec", "versions"]);
    if versions.is_empty() {
        causes.push(Cause::required(
            "spec.versions",
            "must have exactly one version marked as storage version",
        ));
    }
    let stored = versions
        .iter()
        .filter(|version| version.get("storage") == Some(&Value::Bool(true)))
        .count();
    if stored != 1 && !versions.is_empty() {
        causes.push(Cause::invalid(
            "spec.versions",
            "[]",
            "must have exactly one version marked as storage version",
        ));
    }
    for (position, version) in versions.iter().enumerate() {
        let field = format!("spec.versions[{position}]");
        match at(version, &["schema", "openAPIV3Schema"]) {
            None => causes.push(Cause::required(
                &format!("{field}.schema.openAPIV3Schema"),
                "schemas are required",
            )),
            Some(schema) => {
                if text(schema, &["type"]) != "object" {
                    let field = format!("{field}.schema.openAPIV3Schema.type");
                    let shown = Value::from(text(schema, &["type"])).to_string();
                    causes.push(Cause::invalid(&field, &shown, "must be object at the root"));
                }
            }
        }
    }
}

/// The resource that a definition describes.
fn parse(object: &Value, id: ResourceId) -> Resource {
    let spec = &object["spec"];
    let group = text(spec, &["group"]);
    let names = |field: &str| text(spec, &["names", field]).to_owned();
    let list = |field: &str| {
        items(spec, &["names", field])
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let kind = names("kind");
    let mut versions: Vec<(bool, Version)> = items(spec, &["versions"])
        .iter()
        .map(|version| {
            let storage = version.get("storage").and_then(Value::as_bool).unwrap_or(false);
            (storage, parse_version(version, group, &kind))
        })
        .collect();
    versions.sort_by_key(|(_, version)| version_priority(&version.name));
    let storage = versions.iter().position(|(storage, _)| *storage).unwrap_or(0);
    Resource {
        id,
        group: group.to_owned(),
        plural: names("plural"),
        singular: names("singular"),
        list_kind: names("listKind"),
        kind,
        namespaced: text(spec, &["scope"]) == "Namespaced",
        short_names: list("shortNames"),
        categories: list("categories"),
        versions: versions.into_iter().map(|(_, version)| version).collect(),
        storage,
    }
}

/// Changes when objects are stored in another version.
fn storage_hash(group: &str, version: &str, kind: &str) -> String {
    let digest = Sha256::digest(format!("{group}/{version}/{kind}"));
    base64::engine::general_purpose::STANDARD.encode(digest.get(..8).unwrap_or_default())
}

fn parse_version(version: &Value, group: &str, kind: &str) -> Version {
    let name = text(version, &["name"]).to_owned();
    let storage_hash = storage_hash(group, &name, kind);
    let open_api = at(version, &["schema", "openAPIV3Schema"])
        .cloned()
        .unwrap_or_else(|| json!({"type": "object"}));
    let structural = Structural::parse(&open_api);
    let (schema, ty) = structural.to_schema();
    let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let mut subresources = Vec::new();
    if at(version, &["subresources", "status"]).is_some() || version.pointer("/subresources/status").is_some()
    {
        subresources.push(Subresource {
            name: "status".into(),
            group: None,
            version: None,
            kind: kind.to_owned(),
            verbs: owned(&["get", "patch", "update"]),
        });
    }
    let scale = at(version, &["subresources", "scale"]).map(|scale| ScalePaths {
        spec_replicas: text(scale, &["specReplicasPath"]).to_owned(),
        status_replicas: text(scale, &["statusReplicasPath"]).to_owned(),
        selector: Some(text(scale, &["labelSelectorPath"]).to_owned()).filter(|path| !path.is_empty()),
    });
    if scale.is_some() {
        subresources.push(Subresource {
            name: "scale".into(),
            group: Some("autoscaling".into()),
            version: Some("v1".into()),
            kind: "Scale".into(),
            verbs: owned(&["get", "patch", "update"]),
        });
    }
    let columns = items(version, &["additionalPrinterColumns"])
        .iter()
        .map(|column| Column {
            name: text(column, &["name"]).to_owned(),
            kind: text(column, &["type"]).to_owned(),
            format: text(column, &["format"]).to_owned(),
            description: text(column, &["description"]).to_owned(),
            priority: crate::json::number(column, &["priority"]).unwrap_or(0),
            json_path: text(column, &["jsonPath"]).to_owned(),
        });
    let selectable = items(version, &["selectableFields"]).iter();
    let selectable = selectable.map(|field| text(field, &["jsonPath"]).trim_start_matches('.').to_owned());
    Version {
        name,
        served: version.get("served").and_then(Value::as_bool).unwrap_or(false),
        verbs: owned(&[
            "delete",
            "deletecollection",
            "get",
            "list",
            "patch",
            "create",
            "update",
            "watch",
        ]),
        storage_hash,
        subresources,
        schema: schema.into(),
        ty: Some(ty),
        custom: Some(CustomVersion {
            structural,
            columns: columns.collect(),
            scale,
            selectable: selectable.collect(),
            open_api,
        }),
    }
}

fn is_established(definition: &Value) -> bool {
    items(definition, &["status", "conditions"])
        .iter()
        .any(|condition| {
            text(condition, &["type"]) == "Established" && text(condition, &["status"]) == "True"
        })
}

impl State {
    /// Keeps the registry in step with a definition that was written or removed. A kind is served once its definition
    /// is established.
    pub(crate) fn definition_written(&mut self, object: &Object, removed: bool) {
        let value = object.to_value("apiextensions.k8s.io/v1", "CustomResourceDefinition");
        let (group, plural) = (
            text(&value, &["spec", "group"]),
            text(&value, &["spec", "names", "plural"]),
        );
        if removed {
            self.registry.remove_custom(group, plural);
        } else if is_established(&value) {
            let spec = value["spec"].to_string();
            let resource = self
                .environment
                .custom_kind(&spec, group, plural, |id| parse(&value, id));
            self.registry.add_custom(resource);
        }
    }

    /// Accepts a new definition's names, or removes the objects of one that is going away.
    pub(crate) fn reconcile_definition(&mut self, name: &str) -> Result<(), ApiError> {
        let Some(endpoint) = self.endpoint("apiextensions.k8s.io", "customresourcedefinitions") else {
            return Ok(());
        };
        let key = Key::new("", name);
        let Some(object) = self.store.get(endpoint.resource.id, &key).cloned() else {
            return Ok(());
        };
        let value = endpoint.read(&object);
        let (group, plural) = (
            text(&value, &["spec", "group"]),
            text(&value, &["spec", "names", "plural"]),
        );
        if object.deleting {
            return self.remove_custom_objects(&key, group, plural);
        }
        if is_established(&value) {
            return Ok(());
        }
        let taken = self.registry.all().any(|resource| {
            resource.group == group
                && (resource.plural == plural || resource.kind == text(&value, &["spec", "names", "kind"]))
        });
        let now = crate::clock::format_seconds(self.now_seconds());
        let condition = |kind: &str, status: &str, reason: &str, message: &str| json!({"type": kind, "status": status, "lastTransitionTime": now, "reason": reason, "message": message});
        let conditions = if taken {
            let message = format!("{plural:?} is already in use");
            json!([
                condition("NamesAccepted", "False", "PluralConflict", &message),
                condition(
                    "Established",
                    "False",
                    "NotAccepted",
                    "not all names are accepted"
                ),
            ])
        } else {
            json!([
                condition("NamesAccepted", "True", "NoConflicts", "no conflicts found"),
                condition(
                    "Established",
                    "True",
                    "InitialNamesAccepted",
                    "the initial names have been accepted"
                ),
            ])
        };
        self.change(&endpoint, &key, "status", "kube-apiserver", |definition| {
            let names = definition["spec"]["names"].clone();
            set(definition, &["status", "conditions"], conditions);
            if !taken {
                set(definition, &["status", "acceptedNames"], names);
            }
        })?;
        Ok(())
    }

    fn remove_custom_objects(&mut self, key: &Key, group: &str, plural: &str) -> Result<(), ApiError> {
        if let Some(custom) = self.endpoint(group, plural) {
            let keys: Vec<Key> = self
                .store
                .list(custom.resource.id, "")
                .filter(|o| !o.deleting)
                .map(|o| o.key.clone())
                .collect();
            for key in keys {
                self.delete(&custom, &key.namespace, &key.name, &Default::default())?;
            }
            if self.store.list(custom.resource.id, "").next().is_some() {
                return Ok(());
            }
        }
        let Some(endpoint) = self.endpoint("apiextensions.k8s.io", "customresourcedefinitions") else {
            return Ok(());
        };
        self.change(&endpoint, key, "", "kube-apiserver", |definition| {
            let mut finalizers = items(definition, &["metadata", "finalizers"]).to_vec();
            finalizers.retain(|finalizer| finalizer != "customresourcecleanup.apiextensions.k8s.io");
            set(definition, &["metadata", "finalizers"], finalizers);
        })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stable_versions_come_first() {
        let mut names = vec![
            "v1alpha1",
            "foo",
            "v2",
            "v1beta2",
            "v10",
            "v1",
            "v1beta10",
            "v11alpha2",
        ];
        names.sort_by_key(|name| version_priority(name));
        assert_eq!(
            names,
            [
                "v10",
                "v2",
                "v1",
                "v1beta10",
                "v1beta2",
                "v11alpha2",
                "v1alpha1",
                "foo"
            ]
        );
    }

    #[test]
    fn a_definition_must_be_named_after_its_group_and_plural() {
        let mut causes = Vec::new();
        validate(
            &json!({"metadata": {"name": "x"}, "spec": {"group": "g.h", "scope": "Namespaced",
                "names": {"plural": "things", "kind": "Thing"}, "versions": [{"name": "v1", "served": true,
                "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}),
            &mut causes,
        );
        assert_eq!(causes.len(), 1, "{causes:?}");
        assert_eq!(causes[0].field, "metadata.name");
    }
}
