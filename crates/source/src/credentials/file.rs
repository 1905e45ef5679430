//! The file that says who a mothership is towards which host; read again when it changes.

use std::path::{Path, PathBuf};

use evenkeel_core::Sensitive;
use reqwest::Url;
use serde::Deserialize;

use super::{Credentials, Entry, Scope, Secret, Tls};
use crate::Error;
use crate::reread::{Reread, Stamps, refused, text};

/// A file of credentials, and those it held when it was read last.
#[derive(Debug)]
pub struct CredentialsFile(Reread<Credentials>);

/// One entry as it is written.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Written {
    host: Option<String>,
    url: Option<String>,
    username: Option<String>,
    password: Option<Sensitive<String>>,
    password_file: Option<PathBuf>,
    ca_file: Option<PathBuf>,
    cert_file: Option<PathBuf>,
    key_file: Option<PathBuf>,
    #[serde(default)]
    insecure_skip_tls_verify: bool,
    #[serde(default)]
    plain_http: bool,
    #[serde(default)]
    pass_credentials: bool,
}

impl CredentialsFile {
    /// Reads the file.
    ///
    /// # Errors
    /// [`Error::Credentials`] with the line, when it cannot be read; never with a value.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, Error> {
        Reread::open(path.into(), "the source credentials", read).map(Self)
    }

    /// What the file says now, or said before it became unreadable.
    pub(crate) fn credentials(&self) -> Credentials {
        self.0.now()
    }
}

fn read(path: &Path, stamps: &mut Stamps) -> Result<Credentials, Error> {
    let text = text(path)?;
    let options = serde_saphyr::options! { with_snippet: false };
    let written: Option<Vec<serde_saphyr::Spanned<Written>>> =
        serde_saphyr::from_str_with_options(text.expose(), options)
            .map_err(|error| refused(path, &harmless(&error)))?;
    let mut entries = Vec::new();
    for written in written.unwrap_or_default() {
        let line = written.referenced.line();
        let entry = entry(written.value, path, stamps);
        entries.push(entry.map_err(|problem| match problem {
            Problem::Here(problem) => refused(path, &format!("line {line}: {problem}")),
            Problem::Elsewhere(error) => error,
        })?);
    }
    Ok(Credentials::new(entries, None))
}

enum Problem {
    Here(String),
    Elsewhere(Error),
}

impl From<String> for Problem {
    fn from(problem: String) -> Self {
        Self::Here(problem)
    }
}

fn entry(written: Written, file: &Path, stamps: &mut Stamps) -> Result<Entry, Problem> {
    let scope = match (&written.host, &written.url) {
        (Some(host), None) => host_scope(host)?,
        (None, Some(url)) => Scope::Below(prefix(url)?),
        _ => return Err("expected either `host` or `url`".to_owned().into()),
    };
    // Relative to the file, as people expect of files that name each other.
    let place = |path: PathBuf| {
        file.parent()
            .map_or_else(|| path.clone(), |folder| folder.join(&path))
    };
    let password = match (written.password, written.password_file) {
        (Some(_), Some(_)) => {
            return Err("expected `password` or `passwordFile`, not both"
                .to_owned()
                .into());
        }
        (Some(password), None) => Some(password),
        (None, Some(path)) => {
            let path = place(path);
            stamps.note(&path);
            let text = text(&path).map_err(Problem::Elsewhere)?;
            Some(Sensitive::new(
                text.expose().trim_end_matches(['\r', '\n']).to_owned(),
            ))
        }
        (None, None) => None,
    };
    let secret = match (written.username, password) {
        (Some(username), Some(password)) => Some(Secret::Basic { username, password }),
        (None, None) => None,
        (Some(_), None) => return Err("`username` needs `password` or `passwordFile`".to_owned().into()),
        (None, Some(_)) => return Err("a password needs `username`".to_owned().into()),
    };
    if written.cert_file.is_some() != written.key_file.is_some() {
        return Err("`certFile` and `keyFile` need each other".to_owned().into());
    }
    Ok(Entry {
        secret,
        tls: Tls {
            ca_file: written.ca_file.map(place),
            cert_file: written.cert_file.map(place),
            key_file: written.key_file.map(place),
            insecure: written.insecure_skip_tls_verify,
        },
        plain_http: written.plain_http,
        pass_on: written.pass_credentials,
        ..Entry::new(scope)
    })
}

fn host_scope(text: &str) -> Result<Scope, String> {
    let form = || "`host` is not valid: expected HOST or HOST:PORT".to_owned();
    let url = Url::parse(&format!("oci://{text}")).map_err(|_| form())?;
    let bare = url.path().is_empty()
        && url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none();
    match url.host_str() {
        Some(host) if bare && !host.is_empty() => Ok(Scope::Host {
            host: host.to_ascii_lowercase(),
            port: url.port(),
        }),
        _ => Err(form()),
    }
}

/// An address that stands for all below it.
pub(crate) fn prefix(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("`url` is not valid: {error}"))?;
    if !matches!(url.scheme(), "https" | "http" | "oci") || url.host_str().is_none_or(str::is_empty) {
        return Err("`url` is not valid: expected https://, http:// or oci://".to_owned());
    }
    if !url.username().is_empty()
        || url.password().is_some()
        || url.query().is_some()
        || url.fragment().is_some()
    {
        return Err("`url` holds more than an address: use `username` and `passwordFile`".to_owned());
    }
    Ok(url)
}

/// What a reader's error says without quoting a value, which may be a password.
fn harmless(error: &serde_saphyr::Error) -> String {
    let text = error.without_snippet().to_string();
    let place = error.location().map(|place| format!("line {}: ", place.line()));
    let quotes_no_value = ["unknown field", "missing field", "duplicate"]
        .iter()
        .any(|known| text.contains(known));
    let problem = if quotes_no_value {
        text
    } else {
        "expected a list of entries with `host` or `url`, `username`, `password` or `passwordFile`, `caFile`, \
         `certFile`, `keyFile`, `insecureSkipTlsVerify`, `plainHttp`, `passCredentials`"
            .to_owned()
    };
    format!("{}{problem}", place.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn open(text: &str) -> Result<CredentialsFile, Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("credentials.yaml");
        fs::write(folder.path().join("password"), "hunter2\n").unwrap();
        fs::write(&path, text).unwrap();
        CredentialsFile::open(path)
    }

    #[test]
    fn entries_are_read() {
        let file = open(
            "- host: registry.example:5000\n  username: robot\n  passwordFile: password\n  plainHttp: true\n\
             - url: https://charts.example/team\n  caFile: ca.pem\n",
        )
        .unwrap();
        let credentials = file.credentials();
        let registry = credentials
            .find(&"oci://registry.example:5000/x".parse().unwrap())
            .unwrap();
        let Some(Secret::Basic { username, password }) = &registry.secret else {
            panic!("a secret")
        };
        assert_eq!(
            (username.as_str(), password.expose().as_str()),
            ("robot", "hunter2")
        );
        assert!(registry.is_plain());
        let charts = credentials
            .find(&"https://charts.example/team/index.yaml".parse().unwrap())
            .unwrap();
        assert!(charts.tls.ca_file.as_ref().is_some_and(|path| path.is_absolute()));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line_and_no_value() {
        for (text, line, said) in [
            (
                "- host: a\n  pasword: hunter2\n",
                "line 2",
                "unknown field `pasword`",
            ),
            (
                "- host: a\n- username: hunter2\n",
                "line 2",
                "either `host` or `url`",
            ),
            ("- host: a\n  username: hunter2\n", "line 1", "needs `password`"),
            ("- url: https://u:hunter2@a/\n", "line 1", "more than an address"),
            ("- host: a/b\n", "line 1", "expected HOST"),
            ("- host: a\n  plainHttp: hunter2\n", "line 2", "expected a list"),
            ("hunter2: {}\n", "line 1", "expected a list"),
            ("- host: a\n  certFile: x\n", "line 1", "need each other"),
            (
                "- host: a\n  password: [hunter2]\n  username: x\n",
                "line 2",
                "expected a list",
            ),
        ] {
            let error = open(text).unwrap_err().to_string();
            assert!(error.contains(line) && error.contains(said), "{text}: {error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn a_changed_file_is_read_again_and_a_broken_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.yaml");
        fs::write(&path, "- host: a.example\n").unwrap();
        let file = CredentialsFile::open(&path).unwrap();
        let knows = |host: &str| {
            let url = format!("https://{host}/").parse().unwrap();
            file.credentials().find(&url).is_some()
        };
        assert!(knows("a.example") && !knows("long.example"));
        fs::write(&path, "- host: long.example\n").unwrap();
        assert!(!knows("a.example") && knows("long.example"));
        fs::write(&path, "- nonsense: true\n").unwrap();
        assert!(knows("long.example"));
        assert!(CredentialsFile::open(folder.path().join("none")).is_err());
    }
}
