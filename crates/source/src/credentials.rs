//! Who we are towards which host, and how its certificate is checked.

mod file;

use std::path::PathBuf;
use std::sync::Arc;

use evenkeel_core::Sensitive;
use reqwest::Url;

pub use file::CredentialsFile;
pub(crate) use file::prefix;

/// What is known about hosts: the most specific entry speaks for an address.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    entries: Vec<Arc<Entry>>,
    /// What holds for hosts without an entry; never a secret.
    otherwise: Option<Arc<Entry>>,
}

/// What holds for one host, or for the addresses below one.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Which addresses this is about.
    pub scope: Scope,
    /// Who we are; nobody when there is none.
    pub secret: Option<Secret>,
    /// How TLS is spoken.
    pub tls: Tls,
    /// Whether an OCI registry is spoken to without TLS, and whether a [`Scope::Host`] covers `http` addresses.
    pub plain_http: bool,
    /// Whether the secret of a repository also goes to other hosts that its index names. Never to where one of
    /// these redirects.
    pub pass_on: bool,
    /// Among entries that match, the highest rank wins whatever its scope.
    pub rank: u8,
}

/// Which addresses an entry is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All addresses of a host; without a port, of its scheme's default port.
    Host {
        /// Host name or address, in lower case.
        host: String,
        /// The port, when it is not the scheme's own.
        port: Option<u16>,
    },
    /// The addresses below this one. `https` and `http` ones cover registries of that host as well.
    Below(Url),
}

/// Who we are. `Debug` shows no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Secret {
    /// A name and a password.
    Basic {
        /// The name.
        username: String,
        /// The password.
        password: Sensitive<String>,
    },
    /// A refresh token, exchanged at the registry's token service.
    IdentityToken(Sensitive<String>),
    /// A token sent to the registry as it is.
    RegistryToken(Sensitive<String>),
    /// Another program would have to be asked, which we never run.
    Helper {
        /// The program.
        program: String,
        /// The file that names it.
        file: PathBuf,
    },
}

/// How TLS is spoken with a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tls {
    /// The only certificate authorities that are trusted (PEM); the system's when there is none.
    pub ca_file: Option<PathBuf>,
    /// Our certificate (PEM).
    pub cert_file: Option<PathBuf>,
    /// Its key (PEM).
    pub key_file: Option<PathBuf>,
    /// Whether any certificate will do.
    pub insecure: bool,
}

impl Entry {
    /// An entry that says nothing yet.
    pub fn new(scope: Scope) -> Self {
        Self {
            scope,
            secret: None,
            tls: Tls::default(),
            plain_http: false,
            pass_on: false,
            rank: 0,
        }
    }

    /// How specific the entry is for `url`; none when it is not about it.
    fn matches(&self, url: &Url) -> Option<usize> {
        let host = url.host_str()?.to_ascii_lowercase();
        match &self.scope {
            Scope::Host { host: own, port } => {
                let scheme_fits = url.scheme() != "http" || self.plain_http;
                (scheme_fits && *own == host && *port == url.port()).then_some(0)
            }
            Scope::Below(own) => {
                let scheme_fits = own.scheme() == url.scheme() || url.scheme() == "oci";
                let host_fits = own.host_str().is_some_and(|own| own.eq_ignore_ascii_case(&host));
                let path = own.path().trim_end_matches('/');
                let below = url
                    .path()
                    .strip_prefix(path)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
                (scheme_fits && host_fits && own.port() == url.port() && below).then(|| path.len() + 1)
            }
        }
    }

    /// Whether a registry of this entry is spoken to without TLS.
    pub(crate) fn is_plain(&self) -> bool {
        self.plain_http || matches!(&self.scope, Scope::Below(url) if url.scheme() == "http")
    }
}

impl Credentials {
    /// The given entries, and what holds for all other hosts.
    pub fn new(entries: impl IntoIterator<Item = Entry>, otherwise: Option<Entry>) -> Self {
        Self {
            entries: entries.into_iter().map(Arc::new).collect(),
            otherwise: otherwise.map(|entry| {
                Arc::new(Entry {
                    secret: None,
                    ..entry
                })
            }),
        }
    }

    /// What is known about hosts one by one.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry> {
        self.entries.iter().map(|entry| Entry::clone(entry))
    }

    /// What holds for an address: `http`, `https`, or `oci` for a chart of a registry.
    pub(crate) fn find(&self, url: &Url) -> Option<Arc<Entry>> {
        self.listed(url).or_else(|| self.otherwise.clone())
    }

    /// The entry that names an address.
    pub(crate) fn listed(&self, url: &Url) -> Option<Arc<Entry>> {
        self.entries
            .iter()
            .filter_map(|entry| Some(((entry.rank, entry.matches(url)?), entry)))
            .max_by_key(|(weight, _)| *weight)
            .map(|(_, entry)| Arc::clone(entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    fn named(scope: Scope, name: &str) -> Entry {
        let secret = Secret::Basic {
            username: name.to_owned(),
            password: Sensitive::new("hunter2".to_owned()),
        };
        Entry {
            secret: Some(secret),
            ..Entry::new(scope)
        }
    }

    fn user(credentials: &Credentials, address: &str) -> Option<String> {
        match credentials.find(&url(address))?.secret.clone()? {
            Secret::Basic { username, .. } => Some(username),
            _ => None,
        }
    }

    #[test]
    fn the_most_specific_entry_speaks() {
        let host = |host: &str, port| Scope::Host {
            host: host.to_owned(),
            port,
        };
        let credentials = Credentials::new(
            [
                named(host("a.example", None), "host"),
                named(host("a.example", Some(5000)), "port"),
                named(Scope::Below(url("https://a.example/team")), "team"),
                named(Scope::Below(url("https://a.example/team/x/")), "x"),
                named(Scope::Below(url("http://plain.example")), "plain"),
            ],
            None,
        );
        for (address, expected) in [
            ("https://a.example/", Some("host")),
            ("https://A.example/teamster", Some("host")),
            ("https://a.example/team", Some("team")),
            ("https://a.example/team/x/y", Some("x")),
            ("oci://a.example/team/y", Some("team")),
            ("https://a.example:5000/team", Some("port")),
            ("oci://a.example:5000/team", Some("port")),
            // Never over an open line that nobody asked for.
            ("http://a.example/", None),
            ("https://b.a.example/", None),
            ("https://a.example:5001/", None),
            ("http://plain.example/x", Some("plain")),
            ("https://plain.example/x", None),
        ] {
            assert_eq!(user(&credentials, address).as_deref(), expected, "{address}");
        }
    }

    #[test]
    fn secrets_do_not_show() {
        let entry = named(Scope::Below(url("https://a.example")), "me");
        assert!(!format!("{entry:?}").contains("hunter2"));
    }
}
