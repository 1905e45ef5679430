//! HTTP clients, one for each way to speak TLS.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, Identity};

use crate::Error;
use crate::cache::Cache;
use crate::credentials::Tls;
use crate::hosts::{PublicResolver, Reach, proxies};

/// How long a connection may take to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a server may say nothing.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// How many clients are kept.
const CLIENTS_KEPT: usize = 64;
/// How many idle connections a client keeps to one host, and for how long.
const IDLE_CONNECTIONS: usize = 2;
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// The clients made so far.
#[derive(Debug)]
pub(super) struct Clients {
    known: Cache<Key, Client>,
    resolver: PublicResolver,
}

/// What tells clients apart. A certificate file that was replaced makes another client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    tls: Tls,
    stamps: Vec<Option<(SystemTime, u64)>>,
    is_secure: bool,
    reach: Reach,
}

impl Clients {
    pub(super) fn new() -> Self {
        // Fails only when another part of the process has chosen a provider already.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        Self {
            known: Cache::new(CLIENTS_KEPT),
            resolver: PublicResolver {
                proxies: proxies(|name| std::env::var(name).ok()),
            },
        }
    }

    /// A client that speaks TLS like this, or not at all.
    pub(super) fn get(&self, tls: Tls, is_secure: bool, reach: Reach) -> Result<Arc<Client>, Error> {
        // What has no TLS needs none of its files, nor the system's certificates, which may be missing.
        let tls = if is_secure { tls } else { Tls::default() };
        let files = [&tls.ca_file, &tls.cert_file, &tls.key_file];
        let stamps = files.into_iter().flatten().map(|path| stamp(path)).collect();
        let key = Key {
            tls,
            stamps,
            is_secure,
            reach,
        };
        if let Some(client) = self.known.get(&key) {
            return Ok(client);
        }
        let client = self.build(&key)?;
        Ok(self.known.insert(key, Arc::new(client)))
    }

    fn build(&self, key: &Key) -> Result<Client, Error> {
        let mut builder = Client::builder()
            .user_agent(concat!("evenkeel/", env!("CARGO_PKG_VERSION")))
            .redirect(Policy::none())
            .referer(false)
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(READ_TIMEOUT)
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .pool_idle_timeout(IDLE_TIMEOUT);
        if key.reach == Reach::Public {
            builder = builder.dns_resolver(Arc::new(self.resolver.clone()));
        }
        let Tls {
            ca_file,
            cert_file,
            key_file,
            insecure,
        } = &key.tls;
        if !key.is_secure {
            builder = builder.tls_certs_only([]);
        }
        if let Some(path) = ca_file {
            let wrong = |problem: String| unusable(path, &problem);
            let certificates =
                Certificate::from_pem_bundle(&read(path)?).map_err(|error| wrong(error.to_string()))?;
            if certificates.is_empty() {
                return Err(wrong("it holds no certificate in PEM form".to_owned()));
            }
            builder = builder.tls_certs_only(certificates);
        }
        match (cert_file, key_file) {
            (Some(certificate), Some(private)) => {
                let mut pem = read(certificate)?;
                pem.push(b'\n');
                pem.extend(read(private)?);
                let identity = Identity::from_pem(&pem).map_err(|_| {
                    unusable(
                        certificate,
                        "it and its key are no certificate and key in PEM form",
                    )
                })?;
                builder = builder.identity(identity);
            }
            (None, None) => {}
            (Some(one), None) | (None, Some(one)) => {
                return Err(unusable(one, "a certificate and its key need each other"));
            }
        }
        if *insecure {
            builder = builder.tls_danger_accept_invalid_certs(true);
        }
        builder.build().map_err(|error| Error::Tls {
            problem: evenkeel_telemetry::chain(&error).to_string(),
        })
    }
}

fn stamp(path: &Path) -> Option<(SystemTime, u64)> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(|error| unusable(path, &error.to_string()))
}

fn unusable(path: &Path, problem: &str) -> Error {
    Error::Credentials {
        file: PathBuf::from(path),
        problem: problem.to_owned(),
    }
}
