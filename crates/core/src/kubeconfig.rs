//! How a cluster is reached: a kubeconfig, or where one is read whenever it is needed (K3).

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{ClusterId, Error, FieldError, HumanDuration, Namespace, Sensitive};

/// The key of a Secret that holds the kubeconfig, unless another is named.
const SECRET_KEY: &str = "config";
/// The longest name of a Secret, and of a key in it.
const OBJECT_NAME_MAX: usize = 253;
/// What Gardener issues credentials for: at least this long.
const LIFETIME_MIN: Duration = Duration::from_secs(10 * 60);
/// And at most this long; an installation may allow less.
const LIFETIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// How long credentials of a shoot last unless another time is named; Gardener's own default.
const LIFETIME_DEFAULT: Duration = Duration::from_secs(60 * 60);

/// How a cluster is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kubeconfig {
    /// The kubeconfig itself.
    Inline(Sensitive<String>),
    /// Where it is read; the record holds this and no credentials.
    From(KubeconfigFrom),
}

impl From<Sensitive<String>> for Kubeconfig {
    fn from(content: Sensitive<String>) -> Self {
        Self::Inline(content)
    }
}

impl From<KubeconfigFrom> for Kubeconfig {
    fn from(from: KubeconfigFrom) -> Self {
        Self::From(from)
    }
}

impl Kubeconfig {
    /// Where it is read; none for one that was sent itself.
    pub fn reference(&self) -> Option<&KubeconfigFrom> {
        match self {
            Self::Inline(_) => None,
            Self::From(from) => Some(from),
        }
    }
}

/// Where a kubeconfig is read. A tagged union: `{secret: {namespace, name, key}}`,
/// `{gardenerShoot: {namespace, name, lifetime}}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum KubeconfigFrom {
    /// A Secret in the mothership's own cluster.
    Secret(KubeconfigSecret),
    /// Short-lived credentials that Gardener issues for a shoot.
    GardenerShoot(GardenerShoot),
}

impl KubeconfigFrom {
    /// Checks what the types alone cannot.
    pub fn field_errors(&self, path: &str) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let mut must = |good: bool, field: &str, expected: String| {
            if !good {
                errors.push(FieldError::new(format!("{path}.{field}"), expected));
            }
        };
        match self {
            Self::Secret(secret) => {
                if let Some(name) = &secret.name {
                    let expected = "expected the name of a Secret: lower-case letters, digits, '-' and '.'";
                    must(is_object_name(name), "secret.name", expected.to_owned());
                }
                let expected = "expected the key of a Secret: letters, digits, '-', '_' and '.'";
                must(is_key(&secret.key), "secret.key", expected.to_owned());
            }
            Self::GardenerShoot(shoot) => {
                let expected = "expected the name of a shoot: lower-case letters, digits and '-'";
                let is_name = is_object_name(&shoot.name) && !shoot.name.contains('.');
                must(is_name, "gardenerShoot.name", expected.to_owned());
                must(
                    (LIFETIME_MIN..=LIFETIME_MAX).contains(&shoot.lifetime.0),
                    "gardenerShoot.lifetime",
                    format!(
                        "expected a time from {} to {}",
                        HumanDuration(LIFETIME_MIN),
                        HumanDuration(LIFETIME_MAX)
                    ),
                );
            }
        }
        errors
    }
}

impl fmt::Display for KubeconfigFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Secret(secret) => {
                f.write_str("Secret ")?;
                if let Some(namespace) = &secret.namespace {
                    write!(f, "{namespace}/")?;
                }
                f.write_str(secret.name.as_deref().unwrap_or("kubeconfig-<id>"))?;
                write!(f, ", key {}", secret.key)
            }
            Self::GardenerShoot(shoot) => write!(f, "Gardener shoot {}/{}", shoot.namespace, shoot.name),
        }
    }
}

/// A key of a Secret in the mothership's own cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KubeconfigSecret {
    /// Its namespace; the one of setting `kubeconfig-namespace` when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Namespace>,
    /// Its name; `kubeconfig-` and the cluster's id when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The key whose value is the kubeconfig; `config` when left out.
    #[serde(default = "default_key")]
    pub key: String,
}

impl Default for KubeconfigSecret {
    fn default() -> Self {
        Self {
            namespace: None,
            name: None,
            key: default_key(),
        }
    }
}

impl KubeconfigSecret {
    /// The Secret's name for a cluster.
    pub fn name_for(&self, cluster: &ClusterId) -> String {
        match &self.name {
            Some(name) => name.clone(),
            None => format!("kubeconfig-{cluster}"),
        }
    }
}

/// `[NAMESPACE/][NAME][:KEY]`, as command lines write it; an empty text means all defaults.
impl FromStr for KubeconfigSecret {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (object, key) = match text.rsplit_once(':') {
            Some((object, key)) => (object, key.to_owned()),
            None => (text, default_key()),
        };
        let (namespace, name) = match object.split_once('/') {
            Some((namespace, name)) => (Some(namespace.parse()?), name),
            None => (None, object),
        };
        checked(
            Self {
                namespace,
                name: (!name.is_empty()).then(|| name.to_owned()),
                key,
            },
            KubeconfigFrom::Secret,
        )
    }
}

/// A shoot cluster of the Gardener that the mothership knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GardenerShoot {
    /// The namespace of its project in the garden cluster, like `garden-dev`.
    pub namespace: Namespace,
    /// Its name.
    pub name: String,
    /// How long credentials are asked for; they are renewed before that is over.
    #[serde(default = "default_lifetime")]
    pub lifetime: HumanDuration,
}

/// `NAMESPACE/NAME`, as command lines write it.
impl FromStr for GardenerShoot {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (namespace, name) = text.split_once('/').ok_or_else(|| {
            let message = format!("expected NAMESPACE/NAME, found {text:?}");
            Error::Spec(vec![FieldError::new("gardenerShoot", message)])
        })?;
        checked(
            Self {
                namespace: namespace.parse()?,
                name: name.to_owned(),
                lifetime: default_lifetime(),
            },
            KubeconfigFrom::GardenerShoot,
        )
    }
}

/// What was read, if it can be.
fn checked<T: Clone>(read: T, from: fn(T) -> KubeconfigFrom) -> Result<T, Error> {
    let errors = from(read.clone()).field_errors("kubeconfigFrom");
    if errors.is_empty() {
        Ok(read)
    } else {
        Err(Error::Spec(errors))
    }
}

fn default_key() -> String {
    SECRET_KEY.to_owned()
}

fn default_lifetime() -> HumanDuration {
    HumanDuration(LIFETIME_DEFAULT)
}

/// A DNS subdomain, as names of Secrets are.
fn is_object_name(text: &str) -> bool {
    let label = |label: &str| {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !label.is_empty() && label.bytes().all(inner) && !label.starts_with('-') && !label.ends_with('-')
    };
    text.len() <= OBJECT_NAME_MAX && text.split('.').all(label)
}

fn is_key(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    !text.is_empty() && text.len() <= OBJECT_NAME_MAX && text.bytes().all(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_the_predecessors() -> Result<(), Box<dyn std::error::Error>> {
        let read: KubeconfigFrom = serde_json::from_value(serde_json::json!({"secret": {}}))?;
        assert_eq!(read, KubeconfigFrom::Secret(KubeconfigSecret::default()));
        let id: ClusterId = "0192f0c1-2d3e-7f00-8000-000000000001".parse()?;
        let KubeconfigFrom::Secret(secret) = &read else {
            return Err("a Secret".into());
        };
        assert_eq!(
            secret.name_for(&id),
            "kubeconfig-0192f0c1-2d3e-7f00-8000-000000000001"
        );
        assert_eq!(secret.key, "config");
        Ok(())
    }

    #[test]
    fn command_lines_name_what_differs() -> Result<(), Box<dyn std::error::Error>> {
        for (text, namespace, name, key) in [
            ("", None, None, "config"),
            ("west", None, Some("west"), "config"),
            ("kcp-system/west", Some("kcp-system"), Some("west"), "config"),
            ("kcp-system/west:value", Some("kcp-system"), Some("west"), "value"),
            ("kcp-system/", Some("kcp-system"), None, "config"),
        ] {
            let read: KubeconfigSecret = text.parse()?;
            assert_eq!(
                read.namespace.as_ref().map(Namespace::as_str),
                namespace,
                "{text}"
            );
            assert_eq!((read.name.as_deref(), &*read.key), (name, key), "{text}");
        }
        let shoot: GardenerShoot = "garden-dev/one".parse()?;
        assert_eq!((shoot.namespace.as_str(), &*shoot.name), ("garden-dev", "one"));
        Ok(())
    }

    #[test]
    fn what_names_nothing_is_refused_with_its_place() {
        let refused = |text: &str| {
            text.parse::<KubeconfigSecret>()
                .map_err(|error| error.to_string())
        };
        assert!(refused("West").is_err_and(|text| text.starts_with("kubeconfigFrom.secret.name: expected")));
        assert!(refused("west:").is_err_and(|text| text.starts_with("kubeconfigFrom.secret.key: expected")));
        assert!(refused("../x/y").is_err());
        let refused = |text: &str| text.parse::<GardenerShoot>().map_err(|error| error.to_string());
        assert!(refused("one").is_err_and(|text| text.contains("expected NAMESPACE/NAME")));
        assert!(refused("garden/a.b").is_err_and(|text| text.contains("gardenerShoot.name")));
        let long = GardenerShoot {
            lifetime: HumanDuration(Duration::from_secs(60)),
            ..GardenerShoot {
                namespace: Namespace::new("garden").unwrap_or_else(|_| unreachable!("a label")),
                name: "one".to_owned(),
                lifetime: default_lifetime(),
            }
        };
        let errors = KubeconfigFrom::GardenerShoot(long).field_errors("kubeconfigFrom");
        assert_eq!(
            errors.first().map(ToString::to_string).as_deref(),
            Some("kubeconfigFrom.gardenerShoot.lifetime: expected a time from 10m to 1d")
        );
    }
}
