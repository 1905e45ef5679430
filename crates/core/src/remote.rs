//! Addresses of charts that are kept elsewhere: Helm repositories and OCI registries.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use url::{Host, Url};

use crate::Error;

/// The longest address, in bytes.
const ADDRESS_MAX: usize = 2048;
/// The longest version, range or tag, in bytes; the bound of the versions' own grammar.
const VERSION_MAX: usize = 512;
/// The longest chart name, in bytes (Helm's bound).
const CHART_NAME_MAX: usize = 250;
/// The longest path of a repository in a registry, in bytes (OCI distribution specification).
const REPOSITORY_PATH_MAX: usize = 255;

/// The address of a Helm repository, below which `index.yaml` lies: `https://charts.example.com/stable`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct RepositoryUrl(String);

/// The address of a chart in an OCI registry, without tag or digest: `oci://registry.example.com/charts/web`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct OciReference(String);

/// A chart's name in a Helm repository.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct ChartName(String);

/// Which version of a chart: an exact one, a range like `^1.2` or `>=1.2 <2` by Helm's rules, and in a registry also
/// a tag or a digest. What a range means is known to those who read charts; this is a text of sane form.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct ChartVersion(String);

impl RepositoryUrl {
    /// The checked address.
    ///
    /// # Errors
    /// [`Error::Address`] when it is no `http` or `https` address, or holds what belongs elsewhere: credentials, a query,
    /// a fragment.
    pub fn new(text: impl Into<String>) -> Result<Self, Error> {
        let text = text.into();
        let url = address("repository address", &text)?;
        match url.scheme() {
            "http" | "https" => Ok(Self(text)),
            "oci" => Err(refused(
                "repository address",
                "it names an OCI registry: use `oci: {reference: …}` as the source",
            )),
            _ => Err(refused(
                "repository address",
                "expected one that begins with https:// or http://",
            )),
        }
    }

    /// The address as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl OciReference {
    /// The scheme that every reference begins with.
    pub const SCHEME: &str = "oci://";

    /// The checked reference.
    ///
    /// # Errors
    /// [`Error::Address`] when it does not begin with `oci://`, names no repository, or holds a tag, a digest or
    /// credentials.
    pub fn new(text: impl Into<String>) -> Result<Self, Error> {
        const WHAT: &str = "registry reference";
        let text = text.into();
        if !text.starts_with(Self::SCHEME) {
            return Err(refused(WHAT, "expected oci://HOST/PATH/CHART"));
        }
        let url = address(WHAT, &text)?;
        let path = url.path().trim_start_matches('/');
        if path.contains(['@', ':']) {
            return Err(refused(
                WHAT,
                "it holds a tag or a digest: that belongs into `version`",
            ));
        }
        let is_component = |part: &str| {
            let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
            part.bytes().all(|byte| plain(byte) || b"._-".contains(&byte))
                && part.bytes().next().is_some_and(plain)
                && part.bytes().next_back().is_some_and(plain)
        };
        if path.len() > REPOSITORY_PATH_MAX || !path.split('/').all(is_component) {
            return Err(refused(
                WHAT,
                "expected oci://HOST/PATH/CHART with a path of lower-case letters, digits, '.', '_', '-' and '/'",
            ));
        }
        Ok(Self(text))
    }

    /// The reference as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Host, with the port when one is given.
    pub fn host(&self) -> &str {
        self.split().0
    }

    /// The repository: the path below the host.
    pub fn repository(&self) -> &str {
        self.split().1
    }

    fn split(&self) -> (&str, &str) {
        let rest = self.0.strip_prefix(Self::SCHEME).unwrap_or_default();
        rest.split_once('/').unwrap_or((rest, ""))
    }
}

impl ChartName {
    /// The checked name.
    ///
    /// # Errors
    /// [`Error::Address`] when it is empty, too long, or no name of a chart.
    pub fn new(text: impl Into<String>) -> Result<Self, Error> {
        let text = text.into();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte);
        let good = !text.is_empty()
            && text.len() <= CHART_NAME_MAX
            && text.bytes().all(plain)
            && text.split('/').all(|part| !matches!(part, "" | "." | ".."));
        if good {
            Ok(Self(text))
        } else {
            Err(refused(
                "chart name",
                "expected letters, digits, '.', '_' and '-'",
            ))
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl ChartVersion {
    /// The checked text, without space around it.
    ///
    /// # Errors
    /// [`Error::Address`] when it is empty, too long, or not printable.
    pub fn new(text: impl AsRef<str>) -> Result<Self, Error> {
        let text = text.as_ref().trim();
        if text.is_empty() || text.len() > VERSION_MAX || text.chars().any(char::is_control) {
            return Err(refused(
                "chart version",
                "expected a version or a range like 1.2.3, ^1.2 or >=1.2 <2; leave it out for the newest",
            ));
        }
        Ok(Self(text.to_owned()))
    }

    /// The version as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Reads an address. An error never quotes it: it may hold a password.
fn address(what: &'static str, text: &str) -> Result<Url, Error> {
    if text.len() > ADDRESS_MAX || text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(refused(
            what,
            "it is too long, or holds spaces or unprintable characters",
        ));
    }
    let url = Url::parse(text).map_err(|error| refused(what, &error.to_string()))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refused(
            what,
            "it holds a user name or password: these belong into the file of source credentials",
        ));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(refused(what, "it holds a query or fragment, which may be secret"));
    }
    match url.host() {
        Some(Host::Domain("")) | None => Err(refused(what, "it names no host")),
        Some(_) => Ok(url),
    }
}

fn refused(what: &'static str, problem: &str) -> Error {
    Error::Address {
        what,
        problem: problem.to_owned(),
    }
}

macro_rules! text {
    ($($type:ident),*) => {$(
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $type {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self, Error> {
                Self::new(text)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::new(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
            }
        }
    )*};
}

text!(RepositoryUrl, OciReference, ChartName, ChartVersion);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_hold_secrets_are_refused_and_not_quoted() {
        for text in [
            "https://user:hunter2@example.com/x",
            "https://hunter2@example.com",
            "https://example.com/x?token=hunter2",
            "https://example.com/x#hunter2",
            "https://hunter2 x",
        ] {
            let error = RepositoryUrl::new(text).unwrap_err().to_string();
            assert!(!error.contains("hunter2"), "{error}");
        }
        let error = OciReference::new("oci://u:hunter2@example.com/x").unwrap_err();
        assert!(!error.to_string().contains("hunter2"));
    }

    #[test]
    fn only_web_addresses_name_repositories() {
        for text in ["https://charts.example.com/stable/", "http://10.0.0.1:8080"] {
            assert_eq!(
                RepositoryUrl::new(text).map(|url| url.to_string()),
                Ok(text.to_owned())
            );
        }
        for text in ["", "charts", "ftp://x/y", "file:///etc", "oci://x/y", "https://"] {
            assert!(RepositoryUrl::new(text).is_err(), "{text}");
        }
    }

    #[test]
    fn references_have_host_and_repository_and_nothing_else() {
        let reference = OciReference::new("oci://localhost:5000/a/b_c/web-1").unwrap();
        assert_eq!(
            (reference.host(), reference.repository()),
            ("localhost:5000", "a/b_c/web-1")
        );
        for text in [
            "oci://host",
            "oci://host/",
            "oci:///x",
            "oci://host/a//b",
            "oci://host/a/",
            "oci://host/A",
            "oci://host/a:1.0",
            "oci://host/a@sha256:00",
            "oci://host/-a",
            "https://host/a",
            "host/a",
        ] {
            assert!(OciReference::new(text).is_err(), "{text}");
        }
    }

    #[test]
    fn names_and_versions_have_a_sane_form() {
        assert!(ChartName::new("kube-prometheus-stack").is_ok() && ChartName::new("a/b").is_ok());
        for text in ["", "../x", "a b", "a?x", "/a"] {
            assert!(ChartName::new(text).is_err(), "{text}");
        }
        assert_eq!(ChartVersion::new(" ^1.2 ").unwrap().as_str(), "^1.2");
        assert!(ChartVersion::new(" ").is_err() && ChartVersion::new("1\n2").is_err());
    }
}
