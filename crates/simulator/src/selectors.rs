//! Label and field selectors.

use serde_json::Value;

use crate::object::Object;
use crate::registry::Resource;

/// One requirement on labels.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Requirement {
    Exists(String),
    Absent(String),
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Greater(String, i64),
    Less(String, i64),
}

/// A parsed label selector; all requirements must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LabelSelector {
    requirements: Vec<Requirement>,
}

impl LabelSelector {
    /// Reads `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1`; the error is meant for the client.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut requirements = Vec::new();
        for part in split_top(text) {
            let part = part.trim();
            if part.is_empty() {
                if text.trim().is_empty() {
                    continue;
                }
                return Err(
                    "unable to parse requirement: found '', expected: !, identifier, or 'end of string'"
                        .into(),
                );
            }
            requirements.push(parse_requirement(part)?);
        }
        Ok(Self { requirements })
    }

    /// Reads a selector object (`matchLabels`, `matchExpressions`).
    pub(crate) fn from_object(selector: &Value) -> Self {
        let mut requirements = Vec::new();
        for (key, value) in selector
            .get("matchLabels")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            requirements.push(Requirement::In(
                key.clone(),
                vec![value.as_str().unwrap_or_default().to_owned()],
            ));
        }
        for expression in selector
            .get("matchExpressions")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let text = |name: &str| {
                expression
                    .get(name)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned()
            };
            let values = expression
                .get("values")
                .and_then(Value::as_array)
                .into_iter()
                .flatten();
            let values = values.filter_map(Value::as_str).map(str::to_owned).collect();
            requirements.push(match text("operator").as_str() {
                "In" => Requirement::In(text("key"), values),
                "NotIn" => Requirement::NotIn(text("key"), values),
                "DoesNotExist" => Requirement::Absent(text("key")),
                _ => Requirement::Exists(text("key")),
            });
        }
        Self { requirements }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether an object's labels meet all requirements.
    pub(crate) fn matches(&self, object: &Object) -> bool {
        let get = |key: &str| object.labels.get(key).map(AsRef::as_ref);
        self.requirements.iter().all(|requirement| match requirement {
            Requirement::Exists(key) => get(key).is_some(),
            Requirement::Absent(key) => get(key).is_none(),
            Requirement::In(key, values) => get(key).is_some_and(|value| values.iter().any(|v| v == value)),
            Requirement::NotIn(key, values) => {
                get(key).is_none_or(|value| !values.iter().any(|v| v == value))
            }
            Requirement::Greater(key, bound) => number(get(key)).is_some_and(|n| n > *bound),
            Requirement::Less(key, bound) => number(get(key)).is_some_and(|n| n < *bound),
        })
    }
}

fn number(value: Option<&str>) -> Option<i64> {
    value?.parse().ok()
}

/// Splits at commas outside parentheses.
fn split_top(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (position, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(text.get(start..position).unwrap_or_default());
                start = position + 1;
            }
            _ => {}
        }
    }
    parts.push(text.get(start..).unwrap_or_default());
    parts
}

fn parse_requirement(part: &str) -> Result<Requirement, String> {
    let unexpected = |found: &str, wanted: &str| {
        Err(format!(
            "unable to parse requirement: found '{found}', expected: {wanted}"
        ))
    };
    if let Some(key) = part.strip_prefix('!') {
        return Ok(Requirement::Absent(check_key(key.trim())?));
    }
    let end = part
        .find(|c: char| c.is_whitespace() || "=!<>(".contains(c))
        .unwrap_or(part.len());
    let (key, rest) = part.split_at(end);
    let key = check_key(key)?;
    let rest = rest.trim();
    if rest.is_empty() {
        return Ok(Requirement::Exists(key));
    }
    for (operator, negative) in [("notin", true), ("in", false)] {
        if let Some(list) = rest.strip_prefix(operator) {
            let list = list.trim();
            let Some(list) = list.strip_prefix('(').and_then(|list| list.strip_suffix(')')) else {
                return unexpected(list, "'('");
            };
            let mut values = Vec::new();
            for value in list.split(',') {
                values.push(check_value(&key, value.trim())?);
            }
            return Ok(if negative {
                Requirement::NotIn(key, values)
            } else {
                Requirement::In(key, values)
            });
        }
    }
    let (operator, value) = if let Some(value) = rest.strip_prefix("==") {
        ("=", value)
    } else if let Some(value) = rest.strip_prefix("!=") {
        ("!=", value)
    } else if let Some(value) = rest.strip_prefix('=') {
        ("=", value)
    } else if let Some(value) = rest.strip_prefix('>') {
        (">", value)
    } else if let Some(value) = rest.strip_prefix('<') {
        ("<", value)
    } else {
        return unexpected(rest, "in, notin, =, ==, !=, gt, lt");
    };
    let value = value.trim();
    if let Some(c) = value.chars().find(|c| "=!<>()".contains(*c)) {
        return unexpected(&c.to_string(), "identifier");
    }
    match operator {
        "=" => Ok(Requirement::In(key.clone(), vec![check_value(&key, value)?])),
        "!=" => Ok(Requirement::NotIn(key.clone(), vec![check_value(&key, value)?])),
        _ => {
            let Ok(bound) = value.parse() else {
                return Err(format!(
                    "for 'Gt', 'Lt' operators, the value must be an integer: strconv.ParseInt: parsing {value:?}: \
                     invalid syntax"
                ));
            };
            Ok(if operator == ">" {
                Requirement::Greater(key, bound)
            } else {
                Requirement::Less(key, bound)
            })
        }
    }
}

fn is_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    let alphanumeric = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    text.len() <= 63
        && alphanumeric(bytes.first())
        && alphanumeric(bytes.last())
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

fn check_key(key: &str) -> Result<String, String> {
    let name = key.rsplit_once('/').map_or(key, |(_, name)| name);
    if !is_name(name) {
        return Err(format!(
            "key: Invalid value: {key:?}: name part must consist of alphanumeric characters, '-', '_' or '.', and must \
             start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
             validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
        ));
    }
    Ok(key.to_owned())
}

fn check_value(key: &str, value: &str) -> Result<String, String> {
    if !value.is_empty() && !is_name(value) {
        return Err(format!(
            "values[0][{key}]: Invalid value: {value:?}: a valid label must be an empty string or consist of \
             alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. \
             'MyValue',  or 'my_value',  or '12345', regex used for validation is \
             '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
        ));
    }
    Ok(value.to_owned())
}

/// A parsed field selector; all terms must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FieldSelector {
    /// Path, whether it must be equal, and the value.
    terms: Vec<(String, bool, String)>,
}

/// Fields that selectors may use for a kind, beside name and namespace.
fn selectable(resource: &Resource) -> Vec<String> {
    let fields: &[&str] = match (resource.group.as_str(), resource.kind.as_str()) {
        ("", "Pod") => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName",
        ],
        ("", "Secret") => &["type"],
        ("", "Namespace") => &["status.phase"],
        ("", "Node") => &["spec.unschedulable"],
        ("", "Service") => &["spec.clusterIP", "spec.type"],
        ("", "ReplicationController") | ("apps", "ReplicaSet") => &["status.replicas"],
        ("batch", "Job") => &["status.successful"],
        ("certificates.k8s.io", _) => &["spec.signerName"],
        ("", "Event") | ("events.k8s.io", "Event") => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        _ => &[],
    };
    let custom = resource
        .versions
        .iter()
        .filter_map(|version| version.custom.as_ref());
    fields
        .iter()
        .map(|field| (*field).to_owned())
        .chain(custom.flat_map(|custom| custom.selectable.iter().cloned()))
        .collect()
}

impl FieldSelector {
    /// Reads `metadata.name=a,status.phase!=b`; the error is meant for the client.
    pub(crate) fn parse(text: &str, resource: &Resource) -> Result<Self, String> {
        let known = selectable(resource);
        let mut terms = Vec::new();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (path, equal, value) = if let Some((path, value)) = part.split_once("!=") {
                (path, false, value)
            } else if let Some((path, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
                (path, true, value)
            } else {
                return Err(format!("invalid selector: '{text}'; can't understand '{part}'"));
            };
            if path != "metadata.name"
                && path != "metadata.namespace"
                && !known.iter().any(|field| field == path)
            {
                return Err(if known.is_empty() && !resource.is_custom() {
                    format!(
                        "{path:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
                    )
                } else {
                    format!("field label not supported: {path}")
                });
            }
            terms.push((path.to_owned(), equal, value.to_owned()));
        }
        Ok(Self { terms })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// The name that all objects must have, where the selector asks for one.
    pub(crate) fn name(&self) -> Option<&str> {
        self.terms
            .iter()
            .find(|(path, equal, _)| *equal && path == "metadata.name")
            .map(|(_, _, name)| name.as_str())
    }

    /// Whether an object meets all terms. Only terms beyond name and namespace make it read the object.
    pub(crate) fn matches(&self, object: &Object) -> bool {
        let mut value = None;
        self.terms.iter().all(|(path, equal, wanted)| {
            let same = match path.as_str() {
                "metadata.name" => object.key.name.as_ref() == wanted,
                "metadata.namespace" => object.key.namespace.as_ref() == wanted,
                // What is nowhere in an object is not in that field either, and most objects need not be read to know it.
                _ if *equal && is_plain(wanted) && !object.has_text(wanted) => false,
                path => {
                    let value = value.get_or_insert_with(|| object.to_value("v1", "Object"));
                    field_text(value, path) == *wanted
                }
            };
            same == *equal
        })
    }
}

/// Whether a value stands in JSON as it is, and is no default of a field.
fn is_plain(value: &str) -> bool {
    let is_default = ["", "0", "false"].contains(&value);
    let is_verbatim = |byte: u8| byte.is_ascii_alphanumeric() || b"-._/".contains(&byte);
    !is_default && value.bytes().all(is_verbatim)
}

fn field_text(object: &Value, path: &str) -> String {
    let pointer = format!("/{}", path.trim_start_matches('.').replace('.', "/"));
    match path {
        "status.successful" => object
            .pointer("/status/succeeded")
            .map_or_else(|| "0".into(), Value::to_string),
        "source" => object
            .pointer("/source/component")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned(),
        _ => match object.pointer(&pointer) {
            Some(Value::String(text)) => text.clone(),
            None | Some(Value::Null) if ["spec.unschedulable", "spec.hostNetwork"].contains(&path) => {
                "false".into()
            }
            None | Some(Value::Null) if path == "status.replicas" => "0".into(),
            None | Some(Value::Null) => String::new(),
            Some(other) => other.to_string(),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::object::Shared;
    use crate::registry::Registry;

    fn object(value: &Value) -> Object {
        Object::from_value(value, &Shared::new())
    }

    #[test]
    fn label_selectors_match_as_kubectl_writes_them() {
        let labelled =
            object(&json!({"metadata": {"name": "a", "labels": {"app": "web", "tier": "front", "n": "5"}}}));
        for (text, expected) in [
            ("", true),
            ("app=web", true),
            ("app==web,tier!=back", true),
            ("app in (web, api)", true),
            ("app notin (web)", false),
            ("missing notin (x)", true),
            ("app,!gone", true),
            ("!app", false),
            ("n>4,n<6", true),
            ("n>5", false),
            ("x.y/z", false),
        ] {
            assert_eq!(
                LabelSelector::parse(text).unwrap().matches(&labelled),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn bad_label_selectors_say_what_was_found() {
        assert_eq!(
            LabelSelector::parse("a===").unwrap_err(),
            "unable to parse requirement: found '=', expected: identifier"
        );
        for text in ["a in b", "-a=b", "a=b c", "a,,b", "n>x"] {
            assert!(LabelSelector::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn selector_objects_match_like_their_text() {
        let labelled = object(&json!({"metadata": {"name": "a", "labels": {"app": "web"}}}));
        let selector = json!({"matchLabels": {"app": "web"},
            "matchExpressions": [{"key": "gone", "operator": "DoesNotExist"},
                {"key": "app", "operator": "NotIn", "values": ["api"]}]});
        assert!(LabelSelector::from_object(&selector).matches(&labelled));
    }

    #[test]
    fn field_selectors_read_the_fields_of_their_kind() {
        let registry = Registry::new();
        let pods = registry.find("", "pods").unwrap();
        let pod =
            object(&json!({"metadata": {"name": "a", "namespace": "n"}, "status": {"phase": "Running"}}));
        for (text, expected) in [
            ("metadata.name=a", true),
            ("metadata.name=a,metadata.namespace!=n", false),
            ("status.phase=Running", true),
            ("status.phase!=Running", false),
            ("spec.hostNetwork=false", true),
        ] {
            assert_eq!(
                FieldSelector::parse(text, pods).unwrap().matches(&pod),
                expected,
                "{text}"
            );
        }
        let maps = registry.find("", "configmaps").unwrap();
        assert_eq!(
            FieldSelector::parse("data.a=1", maps).unwrap_err(),
            "\"data.a\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
        );
    }
}
