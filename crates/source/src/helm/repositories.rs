//! The file that `helm repo add` writes.

use std::path::{Path, PathBuf};

use evenkeel_core::Sensitive;
use reqwest::Url;
use serde::Deserialize;

use crate::Error;
use crate::credentials::{Entry, Scope, Secret, Tls};

/// The repositories with names.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Repositories {
    #[serde(default)]
    pub(crate) repositories: Vec<NamedRepository>,
}

/// A repository with a name.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct NamedRepository {
    pub(crate) name: String,
    pub(crate) url: String,
    username: Option<String>,
    password: Option<Sensitive<String>>,
    #[serde(rename = "certFile")]
    cert_file: Option<PathBuf>,
    #[serde(rename = "keyFile")]
    key_file: Option<PathBuf>,
    #[serde(rename = "caFile")]
    ca_file: Option<PathBuf>,
    insecure_skip_tls_verify: bool,
    pass_credentials_all: bool,
}

impl Repositories {
    /// Reads the file; one that does not exist names nothing.
    ///
    /// # Errors
    /// [`Error::Credentials`] for one that cannot be read.
    pub(crate) fn read(file: &Path) -> Result<Self, Error> {
        let wrong = |problem: String| Error::Credentials {
            file: file.to_owned(),
            problem,
        };
        let text = match std::fs::read_to_string(file) {
            Ok(text) => Sensitive::new(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(wrong(error.to_string())),
        };
        let options = serde_saphyr::options! { with_snippet: false, null_as_string: false };
        let read: Option<Self> =
            serde_saphyr::from_str_with_options(text.expose(), options).map_err(|error| {
                let place = error.location().map_or(0, |place| place.line());
                wrong(format!("line {place}: it is no list of repositories"))
            })?;
        Ok(read.unwrap_or_default())
    }

    /// The repository with a name.
    pub(crate) fn named(&self, name: &str) -> Option<&NamedRepository> {
        self.repositories
            .iter()
            .find(|repository| repository.name == name)
    }
}

impl NamedRepository {
    /// Its address without user and password, and what holds there.
    ///
    /// # Errors
    /// [`Error::Helm`] when its address is none.
    pub(crate) fn entry(&self) -> Result<(Url, Entry), Error> {
        let mut url: Url = self.url.parse().map_err(|_| {
            Error::Helm(format!(
                "repository {:?} has no valid address: correct it with `helm repo add`",
                self.name
            ))
        })?;
        let mut username = self.username.clone().filter(|name| !name.is_empty());
        let mut password = self.password.clone();
        if username.is_none() && !url.username().is_empty() {
            username = Some(url.username().to_owned());
            password = url.password().map(|password| Sensitive::new(password.to_owned()));
        }
        // Both fail only for addresses without a host, which hold neither.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        let path = |path: &Option<PathBuf>| path.clone().filter(|path| !path.as_os_str().is_empty());
        let entry = Entry {
            secret: username.map(|username| Secret::Basic {
                username,
                password: password.unwrap_or_else(|| Sensitive::new(String::new())),
            }),
            tls: Tls {
                ca_file: path(&self.ca_file),
                cert_file: path(&self.cert_file),
                key_file: path(&self.key_file),
                insecure: self.insecure_skip_tls_verify,
            },
            pass_on: self.pass_credentials_all,
            ..Entry::new(Scope::Below(url.clone()))
        };
        Ok((url, entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_helm_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("repositories.yaml");
        assert!(Repositories::read(&path).unwrap().repositories.is_empty());
        let text = r#"
apiVersion: ""
generated: "0001-01-01T00:00:00Z"
repositories:
- caFile: ""
  certFile: ""
  insecure_skip_tls_verify: false
  keyFile: ""
  name: stable
  pass_credentials_all: true
  password: hunter2
  url: https://charts.example/stable
  username: me
- name: old
  url: https://you:hunter2@old.example/
"#;
        std::fs::write(&path, text).unwrap();
        let all = Repositories::read(&path).unwrap();
        let (url, entry) = all.named("stable").unwrap().entry().unwrap();
        assert_eq!(url.as_str(), "https://charts.example/stable");
        assert!(entry.pass_on && entry.tls == Tls::default());
        assert!(matches!(entry.secret, Some(Secret::Basic { username, .. }) if username == "me"));
        let (url, entry) = all.named("old").unwrap().entry().unwrap();
        assert_eq!(url.as_str(), "https://old.example/");
        assert!(matches!(entry.secret, Some(Secret::Basic { username, .. }) if username == "you"));
        assert!(!format!("{:?}", all.named("stable")).contains("hunter2"));
        std::fs::write(&path, "repositories:\n- hunter2\n").unwrap();
        let error = Repositories::read(&path).unwrap_err().to_string();
        assert!(error.contains("line 2") && !error.contains("hunter2"), "{error}");
    }
}
