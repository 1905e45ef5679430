//! What a target cluster can do, as templates see it in `.Capabilities`.

use evenkeel_gotemplate::go_quoted;

use crate::Error;

/// The Kubernetes version and API versions a chart is rendered for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The server's version.
    pub kube_version: KubeVersion,
    /// `group/version` (`v1` for the core group) and, of a real server, `group/version/Kind`.
    pub api_versions: Vec<String>,
}

/// A Kubernetes version, with what templates ask of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeVersion {
    /// In full: `v1.33.4-gke.1245000`.
    pub version: String,
    /// Without suffixes, for chart constraints: `v1.33.4`.
    pub normalized: String,
    /// `1`
    pub major: String,
    /// `33`
    pub minor: String,
}

impl Default for Capabilities {
    /// What Helm 4.3.1 assumes when it is not connected.
    fn default() -> Self {
        Self {
            kube_version: KubeVersion {
                version: "v1.37.0".to_owned(),
                normalized: "v1.37.0".to_owned(),
                major: "1".to_owned(),
                minor: "37".to_owned(),
            },
            api_versions: DEFAULT_API_VERSIONS
                .iter()
                .map(|&version| version.to_owned())
                .collect(),
        }
    }
}

impl KubeVersion {
    /// Reads a version as Kubernetes does: at least `major.minor`, an optional `v`, any suffix.
    pub fn parse(version: &str) -> Result<Self, Error> {
        let refuse = |problem: String| Error::BadKubeVersion {
            version: version.to_owned(),
            problem,
        };
        let digits = version.trim_start();
        let digits = digits.strip_prefix('v').unwrap_or(digits);
        let end = digits
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(digits.len());
        let numbers = digits.get(..end).unwrap_or_default();
        // A dot that no digit follows belongs to the suffix.
        let mut parts: Vec<&str> = Vec::new();
        for part in numbers.split('.') {
            if part.is_empty() {
                break;
            }
            parts.push(part);
        }
        let (Some(major), minor) = (parts.first(), parts.get(1)) else {
            return Err(refuse(format!(
                "could not parse {} as version",
                go_quoted(version)
            )));
        };
        let Some(minor) = minor else {
            return Err(refuse(format!("illegal version string {}", go_quoted(version))));
        };
        if major.len() > 1 && major.starts_with('0') {
            return Err(refuse(format!(
                "illegal zero-prefixed version component {} in {}",
                go_quoted(major),
                go_quoted(version)
            )));
        }
        let numbers = parts
            .iter()
            .map(|part| part.parse::<u64>().map(|number| number.to_string()))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|e| {
                refuse(format!(
                    "illegal non-numeric version component in {}: {e}",
                    go_quoted(version)
                ))
            })?;
        let text = if version.starts_with('v') {
            version.to_owned()
        } else {
            format!("v{version}")
        };
        Ok(Self {
            version: text,
            normalized: format!("v{}", numbers.join(".")),
            major: (*major).to_owned(),
            minor: minor
                .parse::<u64>()
                .map_or_else(|_| (*minor).to_owned(), |minor| minor.to_string()),
        })
    }
}

/// The API versions that Helm 4.3.1 was built with, in its order.
const DEFAULT_API_VERSIONS: [&str; 57] = [
    "v1",
    "admissionregistration.k8s.io/v1",
    "admissionregistration.k8s.io/v1alpha1",
    "admissionregistration.k8s.io/v1beta1",
    "internal.apiserver.k8s.io/v1alpha1",
    "apps/v1",
    "apps/v1beta1",
    "apps/v1beta2",
    "authentication.k8s.io/v1",
    "authentication.k8s.io/v1alpha1",
    "authentication.k8s.io/v1beta1",
    "authorization.k8s.io/v1",
    "authorization.k8s.io/v1beta1",
    "autoscaling/v1",
    "autoscaling/v2",
    "batch/v1",
    "batch/v1beta1",
    "certificates.k8s.io/v1",
    "certificates.k8s.io/v1beta1",
    "certificates.k8s.io/v1alpha1",
    "coordination.k8s.io/v1alpha2",
    "coordination.k8s.io/v1beta1",
    "coordination.k8s.io/v1",
    "discovery.k8s.io/v1",
    "discovery.k8s.io/v1beta1",
    "events.k8s.io/v1",
    "events.k8s.io/v1beta1",
    "extensions/v1beta1",
    "flowcontrol.apiserver.k8s.io/v1",
    "flowcontrol.apiserver.k8s.io/v1beta1",
    "flowcontrol.apiserver.k8s.io/v1beta2",
    "flowcontrol.apiserver.k8s.io/v1beta3",
    "lifecycle.k8s.io/v1alpha1",
    "networking.k8s.io/v1",
    "networking.k8s.io/v1beta1",
    "node.k8s.io/v1",
    "node.k8s.io/v1alpha1",
    "node.k8s.io/v1beta1",
    "policy/v1",
    "policy/v1beta1",
    "rbac.authorization.k8s.io/v1",
    "rbac.authorization.k8s.io/v1beta1",
    "rbac.authorization.k8s.io/v1alpha1",
    "resource.k8s.io/v1",
    "resource.k8s.io/v1beta2",
    "resource.k8s.io/v1beta1",
    "resource.k8s.io/v1alpha3",
    "scheduling.k8s.io/v1alpha3",
    "scheduling.k8s.io/v1beta1",
    "scheduling.k8s.io/v1",
    "storage.k8s.io/v1beta1",
    "storage.k8s.io/v1",
    "storage.k8s.io/v1alpha1",
    "storagemigration.k8s.io/v1",
    "storagemigration.k8s.io/v1beta1",
    "apiextensions.k8s.io/v1beta1",
    "apiextensions.k8s.io/v1",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_all_makes() {
        for (text, version, normalized, minor) in [
            ("1.28", "v1.28", "v1.28", "28"),
            ("v1.29.0", "v1.29.0", "v1.29.0", "29"),
            ("v1.32.3-gke.1785003", "v1.32.3-gke.1785003", "v1.32.3", "32"),
            ("1.27+", "v1.27+", "v1.27", "27"),
        ] {
            let parsed = KubeVersion::parse(text).unwrap();
            assert_eq!(
                (
                    parsed.version.as_str(),
                    parsed.normalized.as_str(),
                    parsed.minor.as_str()
                ),
                (version, normalized, minor)
            );
        }
        for text in ["", "x", "1", "v", "01.2"] {
            assert!(KubeVersion::parse(text).is_err(), "{text}");
        }
    }
}
