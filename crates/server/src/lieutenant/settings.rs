//! Settings, under the names of Lieutenant's API.

use http::Uri;

use super::Error;

/// Image of the cluster's agent where none is named.
const STEWARD_IMAGE: &str = "docker.io/projectsyn/steward:v0.2.2";
/// Namespace where none is named.
const NAMESPACE: &str = "default";

/// What can be set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Namespace of all tenants and clusters (`NAMESPACE`).
    pub namespace: String,
    /// Address under which clusters reach this API, without a slash at its end (`API_HOST`). Absent, the address by which
    /// a caller came is given back, which is right only where no proxy changes it.
    pub api_url: Option<String>,
    /// Image of the cluster's agent (`STEWARD_IMAGE`).
    pub steward_image: String,
    /// Fact `lieutenant-instance` of new clusters (`LIEUTENANT_INSTANCE`).
    pub instance: Option<String>,
    /// Secret by which the Git host of a new tenant is spoken to (`DEFAULT_API_SECRET_REF_NAME`).
    pub default_api_secret: Option<String>,
    /// Where callers get their tokens (`OIDC_DISCOVERY_URL`, `OIDC_CLIENT_ID`). Only told.
    pub oidc: Option<Oidc>,
    /// Where callers find Vault (`VAULT_ADDR`, `VAULT_LOGIN_METHOD`). Only told.
    pub vault: Option<VaultLogin>,
    /// Version that is told.
    pub version: String,
}

/// Where callers get their tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Oidc {
    /// Address of the issuer's discovery document.
    pub discovery_url: String,
    /// Id of the client to use there.
    pub client_id: String,
}

/// Where callers find Vault.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VaultLogin {
    /// Its address.
    pub address: String,
    /// How to log in.
    pub login_method: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            namespace: NAMESPACE.to_owned(),
            api_url: None,
            steward_image: STEWARD_IMAGE.to_owned(),
            instance: None,
            default_api_secret: None,
            oidc: None,
            vault: None,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

impl Settings {
    /// Reads the environment variables of Lieutenant's API through `variable`. An empty one is as good as none.
    ///
    /// # Errors
    /// [`Error::Setting`].
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        let text = |name: &str| variable(name).filter(|text| !text.is_empty());
        let default = Self::default();
        let (discovery_url, client_id) = (text("OIDC_DISCOVERY_URL"), text("OIDC_CLIENT_ID"));
        let oidc = (discovery_url.is_some() || client_id.is_some()).then(|| Oidc {
            discovery_url: discovery_url.unwrap_or_default(),
            client_id: client_id.unwrap_or_default(),
        });
        let login_method = text("VAULT_LOGIN_METHOD");
        Ok(Self {
            namespace: text("NAMESPACE").unwrap_or(default.namespace),
            api_url: text("API_HOST").map(|text| api_url(&text)).transpose()?,
            steward_image: text("STEWARD_IMAGE").unwrap_or(default.steward_image),
            instance: text("LIEUTENANT_INSTANCE"),
            default_api_secret: text("DEFAULT_API_SECRET_REF_NAME"),
            oidc,
            vault: text("VAULT_ADDR").map(|address| VaultLogin {
                address,
                login_method,
            }),
            version: default.version,
        })
    }
}

/// The address as it is put in front of a path.
fn api_url(text: &str) -> Result<String, Error> {
    let refused = |problem: String| Error::Setting {
        name: "API_HOST",
        problem,
    };
    let expected = "expected an address like https://lieutenant.example.org";
    let uri: Uri = text
        .parse()
        .map_err(|error| refused(format!("{text:?}: {error}; {expected}")))?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.query().is_some() {
        return Err(refused(format!("{text:?}: {expected}")));
    }
    Ok(text.trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(variables: &[(&str, &str)]) -> Result<Settings, Error> {
        Settings::from_environment(|wanted| {
            let found = variables.iter().find(|(name, _)| *name == wanted)?;
            Some(found.1.to_owned())
        })
    }

    #[test]
    fn lieutenants_variables_are_read() {
        assert_eq!(from(&[]).unwrap(), Settings::default());
        let settings = from(&[
            ("NAMESPACE", "lieutenant"),
            ("API_HOST", "https://api.example.org/"),
            ("STEWARD_IMAGE", "registry.example.org/steward:v1"),
            ("LIEUTENANT_INSTANCE", "inst1"),
            ("DEFAULT_API_SECRET_REF_NAME", ""),
            ("OIDC_CLIENT_ID", "lt"),
            ("VAULT_ADDR", "https://vault.example.org"),
            ("VAULT_LOGIN_METHOD", "oidc"),
        ])
        .unwrap();
        assert_eq!(settings.namespace, "lieutenant");
        assert_eq!(settings.api_url.as_deref(), Some("https://api.example.org"));
        assert_eq!(settings.default_api_secret, None);
        assert_eq!(settings.oidc.unwrap().client_id, "lt");
        assert_eq!(settings.vault.unwrap().login_method.as_deref(), Some("oidc"));
    }

    #[test]
    fn an_address_that_no_cluster_could_use_is_refused() {
        for odd in [
            "api.example.org",
            "ftp://api.example.org",
            "https://a/?b=c",
            "ht tp://a",
        ] {
            let error = from(&[("API_HOST", odd)]).unwrap_err().to_string();
            assert!(error.starts_with("API_HOST cannot be used"), "{error}");
        }
    }
}
