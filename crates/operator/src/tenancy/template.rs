//! Go templates in a tenant's cluster template, rendered over a view of cluster and tenant that holds no secret (§3.6, B21).

use std::any::Any;
use std::collections::BTreeMap;
use std::rc::Rc;

use evenkeel_gotemplate::{
    Entries, Env, Executor, FuncMap, Instant, Limits, MAP_STR, Map, MissingKey, Object, RandomSource, Str,
    TemplateSet, Value as GoValue, parse,
};
use jiff::tz::TimeZone;
use kube::api::ObjectMeta;
use serde_json::{Map as JsonMap, Value};

use crate::resources::{Cluster, Tenant};

/// Functions that templates may call: Go's own, and none of any library.
const FUNCTIONS: &[&str] = &[
    "and", "break", "call", "continue", "eq", "ge", "gt", "html", "index", "js", "le", "len", "lt", "ne",
    "not", "or", "print", "printf", "println", "slice", "urlquery",
];

/// Strings that are no templates: enumerations.
const PLAIN: &[&str] = &["creationPolicy", "deletionPolicy", "repoType"];

/// Bounds of all templates of one cluster together.
const LIMITS: Limits = Limits {
    call_depth: 100,
    output_bytes: 1 << 20,
    work_bytes: 4 << 20,
    iterations: 100_000,
    value_depth: 100,
};

/// A Go struct.
struct Struct(Vec<(&'static str, GoValue)>);

impl Object for Struct {
    fn type_name(&self) -> &'static str {
        "v1alpha1.Object"
    }

    fn fields(&self) -> Vec<(&'static str, GoValue)> {
        self.0.clone()
    }

    /// Only functions that are not offered compare structs.
    fn equals(&self, other: &dyn Object) -> bool {
        other
            .as_any()
            .downcast_ref::<Self>()
            .is_some_and(|other| std::ptr::eq(self, other))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Nothing in these functions asks for randomness.
struct NoRandomness;

impl RandomSource for NoRandomness {
    fn fill(&mut self, buffer: &mut [u8]) {
        buffer.fill(0);
    }
}

/// Renders all strings of `template`. Those that fail are left out, and told with their path.
pub(super) fn render(
    template: &JsonMap<String, Value>,
    cluster: &Cluster,
    tenant: &Tenant,
) -> (JsonMap<String, Value>, Vec<String>) {
    let mut env = Env::new(Instant::default(), Box::new(NoRandomness));
    env.missing_key = MissingKey::Invalid;
    env.limits = LIMITS;
    let mut renderer = Renderer {
        executor: Executor::new(env, Rc::new(FuncMap::new())),
        data: data(cluster, tenant),
        problems: Vec::new(),
    };
    let rendered = renderer.object(template, "spec.clusterTemplate");
    (rendered, renderer.problems)
}

struct Renderer {
    executor: Executor,
    data: GoValue,
    problems: Vec<String>,
}

impl Renderer {
    fn object(&mut self, fields: &JsonMap<String, Value>, path: &str) -> JsonMap<String, Value> {
        fields
            .iter()
            .filter_map(|(name, value)| {
                let below = format!("{path}.{name}");
                let value = if PLAIN.contains(&name.as_str()) {
                    Some(value.clone())
                } else {
                    self.value(value, &below)
                };
                Some((name.clone(), value?))
            })
            .collect()
    }

    fn value(&mut self, value: &Value, path: &str) -> Option<Value> {
        match value {
            Value::String(text) if text.contains("{{") => self.text(text, path).map(Value::String),
            Value::Object(fields) => Some(Value::Object(self.object(fields, path))),
            Value::Array(items) => {
                let items = items.iter().enumerate();
                let rendered: Vec<Option<Value>> = items
                    .map(|(number, item)| self.value(item, &format!("{path}[{number}]")))
                    .collect();
                // A list with a hole would be another list.
                rendered
                    .into_iter()
                    .collect::<Option<Vec<Value>>>()
                    .map(Value::Array)
            }
            other => Some(other.clone()),
        }
    }

    fn text(&mut self, text: &str, path: &str) -> Option<String> {
        let parsed = match parse(path, text.as_bytes(), |name| FUNCTIONS.contains(&name)) {
            Ok(parsed) => parsed,
            Err(error) => {
                self.problems.push(error.to_string());
                return None;
            }
        };
        let mut set = TemplateSet::new(path);
        set.add(&parsed);
        match self.executor.execute(&set, path, &self.data) {
            Ok(text) => Some(text.to_text()),
            Err(error) => {
                self.problems.push(error.to_string());
                None
            }
        }
    }
}

fn data(cluster: &Cluster, tenant: &Tenant) -> GoValue {
    let mut fields = metadata(&cluster.metadata);
    let spec = &cluster.spec;
    let reference = spec.tenant_ref.clone().unwrap_or_default();
    fields.push((
        "Spec",
        object(vec![
            ("DisplayName", optional(spec.display_name.as_deref())),
            ("GitRepoURL", optional(spec.git_repo_url.as_deref())),
            ("GitHostKeys", optional(spec.git_host_keys.as_deref())),
            (
                "TenantRef",
                object(vec![("Name", GoValue::str(reference.name.as_str()))]),
            ),
            (
                "TenantGitRepoRevision",
                optional(spec.tenant_git_repo_revision.as_deref()),
            ),
            (
                "GlobalGitRepoRevision",
                optional(spec.global_git_repo_revision.as_deref()),
            ),
            ("TokenLifeTime", optional(spec.token_life_time.as_deref())),
            ("Facts", strings(&spec.facts)),
            (
                "EnableCompilePipeline",
                GoValue::Bool(spec.enable_compile_pipeline.unwrap_or_default()),
            ),
        ]),
    ));
    let facts = cluster
        .status
        .as_ref()
        .map(|status| status.facts.clone())
        .unwrap_or_default();
    fields.push(("Status", object(vec![("Facts", strings(&facts))])));
    let mut of_tenant = metadata(&tenant.metadata);
    let spec = &tenant.spec;
    of_tenant.push((
        "Spec",
        object(vec![
            ("DisplayName", optional(spec.display_name.as_deref())),
            ("GitRepoURL", optional(spec.git_repo_url.as_deref())),
            ("GitRepoRevision", optional(spec.git_repo_revision.as_deref())),
            ("GlobalGitRepoURL", optional(spec.global_git_repo_url.as_deref())),
            (
                "GlobalGitRepoRevision",
                optional(spec.global_git_repo_revision.as_deref()),
            ),
        ]),
    ));
    fields.push(("Tenant", object(of_tenant)));
    object(fields)
}

fn metadata(metadata: &ObjectMeta) -> Vec<(&'static str, GoValue)> {
    let created = metadata.creation_timestamp.as_ref().map(|time| {
        // As Go prints a time.
        let zoned = time.0.to_zoned(TimeZone::UTC);
        zoned.strftime("%Y-%m-%d %H:%M:%S +0000 UTC").to_string()
    });
    vec![
        ("Name", optional(metadata.name.as_deref())),
        ("Namespace", optional(metadata.namespace.as_deref())),
        (
            "Annotations",
            strings(&metadata.annotations.clone().unwrap_or_default()),
        ),
        ("Labels", strings(&metadata.labels.clone().unwrap_or_default())),
        ("CreationTimestamp", optional(created.as_deref())),
    ]
}

fn object(fields: Vec<(&'static str, GoValue)>) -> GoValue {
    GoValue::object(Struct(fields))
}

fn optional(text: Option<&str>) -> GoValue {
    GoValue::str(text.unwrap_or_default())
}

fn strings(map: &BTreeMap<String, String>) -> GoValue {
    let entries: Entries = map
        .iter()
        .map(|(key, value)| (Str::from(key.as_str()), GoValue::str(value.as_str())))
        .collect();
    GoValue::Map(Map::new(&MAP_STR, entries))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rendered(template: Value) -> (Value, Vec<String>) {
        let cluster: Cluster = serde_json::from_value(json!({
            "apiVersion": "syn.tools/v1alpha1", "kind": "Cluster",
            "metadata": { "name": "c-one", "annotations": { "syn.tools/name": "One" },
                "creationTimestamp": "2026-08-25T09:15:07Z" },
            "spec": { "displayName": "The One", "facts": { "cloud": "exo" }, "tenantRef": { "name": "t-one" } },
            "status": { "bootstrapToken": { "token": "secret-token" } },
        }))
        .unwrap();
        let tenant: Tenant = serde_json::from_value(json!({
            "apiVersion": "syn.tools/v1alpha1", "kind": "Tenant",
            "metadata": { "name": "t-one", "annotations": { "x": "true" } }, "spec": {},
        }))
        .unwrap();
        let (fields, problems) = render(template.as_object().unwrap(), &cluster, &tenant);
        (Value::Object(fields), problems)
    }

    /// The examples that upstream's tests fix (§3.6).
    #[test]
    fn the_tested_examples_render_as_ever() {
        let (fields, problems) = rendered(json!({
            "a": "{{ .Name }}", "b": "{{ .Spec.DisplayName }} of {{ .Tenant.Name }}",
            "c": r#"{{ index .Spec.Facts "cloud" }}"#, "d": r#"{{ index .Annotations "syn.tools/name" }}"#,
            "e": r#"{{if eq .Tenant.Annotations.x "true"}}A{{else}}B{{end}}"#, "f": "{{ .Spec.TenantRef.Name }}",
            "g": r#"[{{ index .Spec.Facts "none" }}]"#, "h": "{{ .CreationTimestamp }}", "creationPolicy": "{{ x",
        }));
        assert!(problems.is_empty(), "{problems:?}");
        assert_eq!(
            fields,
            json!({
                "a": "c-one", "b": "The One of t-one", "c": "exo", "d": "One", "e": "A", "f": "t-one", "g": "[]",
                "h": "2026-08-25 09:15:07 +0000 UTC", "creationPolicy": "{{ x",
            })
        );
    }

    /// B21: one that is broken keeps no other from being rendered, and none reads the token.
    #[test]
    fn what_is_broken_or_secret_is_left_out_and_told() {
        let (fields, problems) = rendered(json!({
            "good": "{{ .Name }}", "broken": "{{ .Name", "env": "{{ env \"HOME\" }}",
            "secret": "{{ .Status.BootstrapToken.Token }}",
        }));
        assert_eq!(fields, json!({ "good": "c-one" }));
        assert_eq!(problems.len(), 3, "{problems:?}");
        assert!(!format!("{problems:?}").contains("secret-token"));
    }
}
