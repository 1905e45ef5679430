//! Names, labels, annotations, finalizers and owners.

use serde_json::Value;

use crate::json::{items, text};
use crate::registry::Resource;
use crate::status::Cause;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
     and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start \
     and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with \
     an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
     '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
     and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
     validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
/// All annotations together.
const MAX_ANNOTATIONS: usize = 256 * 1024;

fn is_dns_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    let good = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    bytes.first().is_some_and(good)
        && bytes.last().is_some_and(good)
        && bytes.iter().all(|byte| good(byte) || *byte == b'-')
}

fn is_subdomain(text: &str) -> bool {
    !text.is_empty() && text.split('.').all(is_dns_label)
}

fn is_name_part(text: &str) -> bool {
    let bytes = text.as_bytes();
    text.len() <= 63
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

/// Whether a text may be the key of a label or annotation.
fn is_label_key(key: &str) -> bool {
    match key.split_once('/') {
        Some((prefix, name)) => is_subdomain(prefix) && prefix.len() <= 253 && is_name_part(name),
        None => is_name_part(key),
    }
}

/// Whether a text may be the value of a label.
fn is_label_value(value: &str) -> bool {
    value.is_empty() || is_name_part(value)
}

enum NameRule {
    Subdomain,
    Label,
    /// Anything that may stand in a path.
    Path,
}

fn name_rule(resource: &Resource) -> NameRule {
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("rbac.authorization.k8s.io", _) => NameRule::Path,
        ("", "Namespace" | "Service") => NameRule::Label,
        _ => NameRule::Subdomain,
    }
}

/// Checks everything in `metadata` that a client may set.
pub(super) fn check(resource: &Resource, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let name = text(object, &["metadata", "name"]);
    if name.is_empty() {
        causes.push(Cause::required(
            "metadata.name",
            "name or generateName is required",
        ));
        return causes;
    }
    let shown = Value::from(name).to_string();
    let mut invalid = |detail: &str| causes.push(Cause::invalid("metadata.name", &shown, detail));
    let limit = match name_rule(resource) {
        NameRule::Label => 63,
        NameRule::Subdomain | NameRule::Path => 253,
    };
    match name_rule(resource) {
        NameRule::Subdomain if !is_subdomain(name) => invalid(SUBDOMAIN),
        NameRule::Label if !is_dns_label(name) => invalid(LABEL),
        NameRule::Path if name == "." || name == ".." => invalid(&format!("may not be '{name}'")),
        NameRule::Path if name.contains('/') => invalid("may not contain '/'"),
        NameRule::Path if name.contains('%') => invalid("may not contain '%'"),
        NameRule::Path => {}
        _ if name.len() > limit => invalid(&format!("must be no more than {limit} characters")),
        _ => {}
    }
    let map = |name: &str| {
        object
            .pointer(&format!("/metadata/{name}"))
            .and_then(Value::as_object)
    };
    for (key, value) in map("labels").into_iter().flatten() {
        if !is_label_key(key) {
            causes.push(Cause::invalid(
                "metadata.labels",
                &Value::from(key.as_str()).to_string(),
                QUALIFIED,
            ));
        }
        if !value.as_str().is_some_and(is_label_value) {
            let detail = match value.as_str() {
                Some(text) if text.len() > 63 => "must be no more than 63 bytes",
                _ => LABEL_VALUE,
            };
            causes.push(Cause::invalid("metadata.labels", &value.to_string(), detail));
        }
    }
    let mut size = 0;
    for (key, value) in map("annotations").into_iter().flatten() {
        if !is_label_key(&key.to_lowercase()) {
            causes.push(Cause::invalid(
                "metadata.annotations",
                &Value::from(key.as_str()).to_string(),
                QUALIFIED,
            ));
        }
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > MAX_ANNOTATIONS {
        causes.push(Cause {
            reason: "FieldValueTooLong",
            message: format!("Too long: may not be more than {MAX_ANNOTATIONS} bytes"),
            field: "metadata.annotations".into(),
        });
    }
    for (position, owner) in items(object, &["metadata", "ownerReferences"]).iter().enumerate() {
        for field in ["apiVersion", "kind", "name", "uid"] {
            if text(owner, &[field]).is_empty() {
                let shown = Value::from(text(owner, &[field])).to_string();
                let field_path = format!("metadata.ownerReferences[{position}].{field}");
                let detail = if field == "apiVersion" {
                    "version must not be empty"
                } else {
                    "must not be empty"
                };
                causes.push(Cause::invalid(&field_path, &shown, detail));
            }
        }
    }
    for finalizer in items(object, &["metadata", "finalizers"]) {
        let name = finalizer.as_str().unwrap_or_default();
        if !is_label_key(name) {
            causes.push(Cause::invalid(
                "metadata.finalizers",
                &finalizer.to_string(),
                QUALIFIED,
            ));
        }
    }
    causes
}

/// Checks what may not change in `metadata`.
pub(super) fn check_change(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    if old.pointer("/metadata/deletionTimestamp").is_none() {
        return;
    }
    let had = items(old, &["metadata", "finalizers"]);
    let mut added: Vec<String> = items(new, &["metadata", "finalizers"])
        .iter()
        .filter(|finalizer| !had.contains(finalizer))
        .map(Value::to_string)
        .collect();
    added.sort();
    if !added.is_empty() {
        causes.push(Cause::forbidden(
            "metadata.finalizers",
            &format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                added.join(", ")
            ),
        ));
    }
}
