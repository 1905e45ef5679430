//! Which sources must be signed, and by whom: the file that whoever runs a mothership writes. Owners of clusters cannot
//! change what it says.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use evenkeel_core::{Digest, SourceRef};
use reqwest::Url;
use serde::Deserialize;

use crate::Error;
use crate::credentials::prefix;
use crate::helm::provenance::read_keyring;
use crate::openpgp::Keyring;
use crate::reread::{Reread, Stamps, refused, text};

/// The rules about signatures; read again when the file or one of its keyrings changes.
#[derive(Debug)]
pub struct Signatures(Reread<Arc<Rules>>);

#[derive(Debug)]
struct Rules {
    unlisted: Unlisted,
    entries: Vec<Rule>,
}

/// Charts below an address must be signed by one of these keys.
#[derive(Debug)]
struct Rule {
    below: Url,
    keys: Arc<Keys>,
}

/// Keys, and the file they came from.
#[derive(Debug)]
pub(crate) struct Keys {
    pub(crate) path: PathBuf,
    /// Of the file's content.
    pub(crate) digest: Digest,
    pub(crate) keyring: Keyring,
}

/// What happens to a source that no entry covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Unlisted {
    /// It is used without a signature.
    Allowed,
    /// It is refused; directories and uploaded archives with it, for neither can be signed.
    Refused,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Written {
    unlisted: Unlisted,
    #[serde(default)]
    signed: Vec<serde_saphyr::Spanned<WrittenRule>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WrittenRule {
    url: String,
    keyring: PathBuf,
}

impl Signatures {
    /// Reads the file and the keyrings that it names.
    ///
    /// # Errors
    /// [`Error::Credentials`] with the line, when one cannot be read.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, Error> {
        Reread::open(path.into(), "the rules about signatures", read).map(Self)
    }

    /// The keys that a source must be signed by; none when it needs no signature.
    ///
    /// # Errors
    /// [`Error::Unsigned`] when it is not to be used at all.
    pub(crate) fn keys(&self, source: &SourceRef) -> Result<Option<Arc<Keys>>, Error> {
        let rules = self.0.now();
        let (name, problem) = match source {
            SourceRef::Directory { path } => (
                format!("source directory {path:?}"),
                "a directory cannot be signed",
            ),
            SourceRef::Archive { digest } => (
                format!("archive {}", digest.short()),
                "an uploaded archive has no signature",
            ),
            SourceRef::Repository { repository, .. } => match rules.covering(repository.as_str()) {
                Some(rule) => return Ok(Some(Arc::clone(&rule.keys))),
                None => (
                    format!("repository {repository}"),
                    "no entry says who signs for it",
                ),
            },
            SourceRef::Oci { reference, .. } => match rules.covering(reference.as_str()) {
                Some(rule) => return Ok(Some(Arc::clone(&rule.keys))),
                None => (reference.to_string(), "no entry says who signs for it"),
            },
        };
        match rules.unlisted {
            Unlisted::Allowed => Ok(None),
            Unlisted::Refused => Err(Error::Unsigned {
                name,
                problem: problem.to_owned(),
            }),
        }
    }
}

impl Rules {
    /// The most specific rule about an address.
    fn covering(&self, address: &str) -> Option<&Rule> {
        let address = Url::parse(address).ok()?;
        let covering = self.entries.iter().filter(|rule| rule.covers(&address));
        covering.max_by_key(|rule| rule.below.path().trim_end_matches('/').len())
    }
}

impl Rule {
    /// Whether an address lies below this one, whatever the scheme that it is called by.
    fn covers(&self, address: &Url) -> bool {
        let path = self.below.path().trim_end_matches('/');
        let rest = address.path().strip_prefix(path);
        place(&self.below) == place(address)
            && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// Host and port, the usual ports being none: one host is not another because it is called in another way.
fn place(url: &Url) -> (String, Option<u16>) {
    let host = url.host_str().unwrap_or_default().trim_end_matches('.');
    let port = url.port().filter(|port| !matches!(port, 80 | 443));
    (host.to_ascii_lowercase(), port)
}

fn read(path: &Path, stamps: &mut Stamps) -> Result<Arc<Rules>, Error> {
    let text = text(path)?;
    let options = serde_saphyr::options! { with_snippet: false };
    let written: Written = serde_saphyr::from_str_with_options(text.expose(), options).map_err(|error| {
        let line = error.location().map(|place| format!("line {}: ", place.line()));
        let problem = error.without_snippet().to_string();
        refused(path, &format!("{}{problem}", line.unwrap_or_default()))
    })?;
    let mut entries = Vec::new();
    for rule in written.signed {
        let line = rule.referenced.line();
        let wrong = |problem: String| refused(path, &format!("line {line}: {problem}"));
        let below = prefix(&rule.value.url).map_err(wrong)?;
        let file = path.parent().map_or_else(
            || rule.value.keyring.clone(),
            |folder| folder.join(&rule.value.keyring),
        );
        stamps.note(&file);
        let (data, keyring) = read_keyring(&file).map_err(|error| wrong(error.to_string()))?;
        let keys = Keys {
            digest: Digest::of(&data),
            path: file,
            keyring,
        };
        entries.push(Rule {
            below,
            keys: Arc::new(keys),
        });
    }
    Ok(Arc::new(Rules {
        unlisted: written.unlisted,
        entries,
    }))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const KEY: &[u8] = include_bytes!("../tests/data/provenance/keys/ed25519.asc");

    fn open(text: &str) -> Result<Signatures, Error> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("team.asc"), KEY).unwrap();
        fs::write(folder.path().join("other.asc"), KEY).unwrap();
        let path = folder.path().join("signatures.yaml");
        fs::write(&path, text).unwrap();
        Signatures::open(path)
    }

    fn oci(reference: &str) -> SourceRef {
        SourceRef::Oci {
            reference: reference.parse().unwrap(),
            version: None,
        }
    }

    fn repository(url: &str) -> SourceRef {
        SourceRef::Repository {
            repository: url.parse().unwrap(),
            chart: "web".parse().unwrap(),
            version: None,
        }
    }

    #[test]
    fn the_most_specific_entry_speaks_whatever_an_address_is_called() {
        let rules = open(
            "unlisted: allowed\nsigned:\n- {url: oci://r.example/charts, keyring: team.asc}\n\
             - {url: https://c.example, keyring: team.asc}\n- {url: https://c.example/x/, keyring: other.asc}\n",
        )
        .unwrap();
        for (source, file) in [
            (oci("oci://r.example/charts/web"), Some("team.asc")),
            (oci("oci://r.example/charts"), Some("team.asc")),
            (oci("oci://r.example/chartsx/web"), None),
            (oci("oci://c.example/x/web"), Some("other.asc")),
            (repository("https://c.example/stable"), Some("team.asc")),
            (repository("https://C.example./stable"), Some("team.asc")),
            (repository("http://c.example/stable"), Some("team.asc")),
            (repository("https://c.example:443/x"), Some("other.asc")),
            (repository("https://c.example:8443/x"), None),
            (repository("https://d.example/"), None),
        ] {
            let keys = rules.keys(&source).unwrap();
            let found = keys
                .as_ref()
                .map(|keys| keys.path.file_name().unwrap().to_str().unwrap());
            assert_eq!(found, file, "{source:?}");
        }
    }

    #[test]
    fn what_no_entry_covers_is_refused_when_that_is_said() {
        let rules =
            open("unlisted: refused\nsigned:\n- {url: oci://r.example/, keyring: team.asc}\n").unwrap();
        assert!(rules.keys(&oci("oci://r.example/web")).unwrap().is_some());
        for (source, said) in [
            (
                oci("oci://s.example/web"),
                "oci://s.example/web is refused: no entry",
            ),
            (
                SourceRef::Directory {
                    path: "web".to_owned(),
                },
                "source directory \"web\" is refused: a directory cannot be signed",
            ),
            (
                SourceRef::Archive {
                    digest: Digest::of("x"),
                },
                "an uploaded archive has no signature",
            ),
        ] {
            let error = rules.keys(&source).unwrap_err().to_string();
            assert!(
                error.contains(said) && error.contains("--source-signatures"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_wrong_file_is_refused_with_its_line() {
        for (text, said) in [
            ("signed: []\n", "missing field `unlisted`"),
            ("unlisted: maybe\n", "line 1"),
            ("unlisted: refused\nsinged: []\n", "line 2"),
            (
                "unlisted: refused\nsigned:\n- {url: r.example, keyring: team.asc}\n",
                "line 3: `url`",
            ),
            (
                "unlisted: refused\nsigned:\n- {url: oci://r, keyring: none.asc}\n",
                "line 3: failed to load keyring",
            ),
        ] {
            let error = open(text).unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
