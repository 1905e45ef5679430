//! What a request asks for: path, query and headers, in the API server's terms.

use serde_json::Value;

use crate::status::ApiError;

/// What a path names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// `/version`, `/healthz`, `/openapi/v3/…`: the path itself.
    Path(String),
    /// `/api`
    LegacyVersions,
    /// `/apis`
    Groups,
    /// `/apis/GROUP`
    Group(String),
    /// `/api/v1`, `/apis/GROUP/VERSION`
    GroupVersion { group: String, version: String },
    /// A collection, an object or a subresource.
    Resource(ResourcePath),
}

/// The parts of a resource's path; absent ones are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ResourcePath {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) namespace: String,
    pub(crate) resource: String,
    pub(crate) name: String,
    pub(crate) subresource: String,
}

impl Target {
    /// Reads a path below `/clusters/NAME`.
    pub(crate) fn parse(path: &str) -> Self {
        let parts: Vec<String> = path
            .split('/')
            .filter(|part| !part.is_empty())
            .map(decode_percent)
            .collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let (group, version, rest) = match parts.as_slice() {
            ["api"] => return Self::LegacyVersions,
            ["apis"] => return Self::Groups,
            ["apis", group] => return Self::Group((*group).to_owned()),
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return Self::Path(format!("/{}", parts.join("/"))),
        };
        let (group, version) = (group.to_owned(), version.to_owned());
        let (namespace, rest) = match rest {
            [] => return Self::GroupVersion { group, version },
            ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => ("", rest),
            ["namespaces", namespace, rest @ ..] => (*namespace, rest),
            rest => ("", rest),
        };
        let get = |position: usize| {
            rest.get(position)
                .map(|part| (*part).to_owned())
                .unwrap_or_default()
        };
        Self::Resource(ResourcePath {
            group,
            version,
            namespace: namespace.to_owned(),
            resource: get(0),
            name: get(1),
            subresource: get(2),
        })
    }
}

fn decode_percent(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut position = 0;
    while let Some(byte) = bytes.get(position) {
        let hex = bytes
            .get(position + 1..position + 3)
            .and_then(|hex| std::str::from_utf8(hex).ok());
        match (byte, hex.and_then(|hex| u8::from_str_radix(hex, 16).ok())) {
            (b'%', Some(decoded)) => {
                out.push(decoded);
                position += 3;
            }
            _ => {
                out.push(*byte);
                position += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The query of a URL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Query {
    pairs: Vec<(String, String)>,
}

impl Query {
    pub(crate) fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (
                decode_percent(&name.replace('+', " ")),
                decode_percent(&value.replace('+', " ")),
            )
        });
        Self {
            pairs: pairs.collect(),
        }
    }

    /// The first value of a parameter, if it is not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.pairs
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
            .filter(|v| !v.is_empty())
    }

    /// A flag: `true`, `1` or a bare name.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.pairs
            .iter()
            .any(|(known, value)| known == name && (value != "false" && value != "0"))
    }

    /// A whole number; `None` when absent or unreadable.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.get(name)?.parse().ok()
    }
}

/// What becomes of fields that a kind does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

/// Options of a write.
#[derive(Debug, Clone)]
pub(crate) struct WriteOptions {
    pub(crate) manager: String,
    pub(crate) dry_run: bool,
    pub(crate) validation: FieldValidation,
    pub(crate) force: bool,
}

impl WriteOptions {
    /// Reads the options of a create, update or patch; the manager defaults to the client's program name.
    pub(crate) fn parse(query: &Query, user_agent: &str, apply: bool) -> Result<Self, ApiError> {
        use crate::status::Cause;
        let options_kind = if apply || query.get("force").is_some() {
            "PatchOptions"
        } else {
            "UpdateOptions"
        };
        let invalid = |cause| ApiError::invalid("meta.k8s.io", options_kind, "", vec![cause]);
        let dry_run = match query.get("dryRun") {
            None => false,
            Some("All") => true,
            Some(other) => {
                return Err(invalid(Cause::not_supported(
                    "dryRun",
                    &format!("[{other:?}]"),
                    &["All"],
                )));
            }
        };
        let validation = match query.get("fieldValidation") {
            None | Some("Warn") => FieldValidation::Warn,
            Some("Ignore") => FieldValidation::Ignore,
            Some("Strict") => FieldValidation::Strict,
            Some(other) => {
                let value = Value::from(other).to_string();
                return Err(invalid(Cause::not_supported(
                    "fieldValidation",
                    &value,
                    &["", "Ignore", "Strict", "Warn"],
                )));
            }
        };
        let manager = match query.get("fieldManager") {
            Some(manager) => manager.to_owned(),
            None if apply => {
                return Err(invalid(Cause::required(
                    "fieldManager",
                    "is required for apply patch",
                )));
            }
            None => user_agent.split('/').next().unwrap_or_default().to_owned(),
        };
        if manager.chars().count() > 128 {
            return Err(invalid(Cause {
                reason: "FieldValueTooLong",
                message: "Too long: may not be more than 128 bytes".into(),
                field: "fieldManager".into(),
            }));
        }
        let force = query.flag("force");
        if query.get("force").is_some() && !apply {
            return Err(invalid(Cause::forbidden(
                "force",
                "may not be specified for non-apply patch",
            )));
        }
        Ok(Self {
            manager,
            dry_run,
            validation,
            force,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(path: &str) -> ResourcePath {
        match Target::parse(path) {
            Target::Resource(path) => path,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn paths_are_taken_apart() {
        let pods = resource("/api/v1/namespaces/default/pods/web/log");
        assert_eq!(
            (pods.namespace.as_str(), pods.resource.as_str()),
            ("default", "pods")
        );
        assert_eq!((pods.name.as_str(), pods.subresource.as_str()), ("web", "log"));
        let namespace = resource("/api/v1/namespaces/default");
        assert_eq!(
            (namespace.resource.as_str(), namespace.name.as_str()),
            ("namespaces", "default")
        );
        assert_eq!(
            resource("/api/v1/namespaces/default/finalize").subresource,
            "finalize"
        );
        assert_eq!(resource("/api/v1/namespaces").resource, "namespaces");
        let all = resource("/apis/apps/v1/deployments");
        assert_eq!(
            (all.group.as_str(), all.namespace.as_str(), all.resource.as_str()),
            ("apps", "", "deployments")
        );
        assert_eq!(Target::parse("/apis/apps"), Target::Group("apps".into()));
        assert_eq!(
            Target::parse("/openapi/v3/apis/apps/v1"),
            Target::Path("/openapi/v3/apis/apps/v1".into())
        );
    }

    #[test]
    fn queries_are_decoded() {
        let query = Query::parse("labelSelector=a%3Db%2Cc+in+(d)&watch=1&limit=5&empty=");
        assert_eq!(query.get("labelSelector"), Some("a=b,c in (d)"));
        assert!(query.flag("watch") && !query.flag("nothing"));
        assert_eq!(query.number("limit"), Some(5));
        assert_eq!(query.get("empty"), None);
    }

    #[test]
    fn the_manager_defaults_to_the_program() {
        let options = WriteOptions::parse(&Query::default(), "kubectl/v1.37.1 (linux/amd64)", false).unwrap();
        assert_eq!(options.manager, "kubectl");
        assert!(WriteOptions::parse(&Query::default(), "kubectl/v1", true).is_err());
        assert!(WriteOptions::parse(&Query::parse("dryRun=Some"), "x", false).is_err());
    }
}
