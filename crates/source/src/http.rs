//! Requests to repositories and registries: bounded, to allowed hosts only, and with secrets that stay with the host
//! they are for, whatever it redirects to.

mod body;
mod client;

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use evenkeel_core::Sensitive;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use reqwest::{Method, StatusCode, Url};
use tokio::sync::Semaphore;

use crate::address::{same_origin, shown};
use crate::cache::Cache;
use crate::credentials::{Credentials, Entry, Secret};
use crate::hosts::HostPolicy;
use crate::{Error, address};

use client::Clients;

/// How long one request may take with all its redirects and its answer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(100);
/// How many redirects are followed.
const REDIRECTS_MAX: usize = 10;
/// How many requests run at one time, and how many of them to one host: a slow one must not keep the others waiting.
const REQUESTS_AT_ONCE: usize = 64;
const REQUESTS_AT_ONCE_PER_HOST: usize = 4;
/// For how many hosts their requests are counted.
const HOSTS_COUNTED: usize = 256;

/// Sends requests.
#[derive(Debug)]
pub(crate) struct Http {
    hosts: HostPolicy,
    clients: Clients,
    permits: Semaphore,
    of_host: Cache<String, Semaphore>,
}

/// One request.
pub(crate) struct Request<'a> {
    pub(crate) method: Method,
    pub(crate) url: Url,
    /// Sent to every host, so nothing secret.
    pub(crate) headers: HeaderMap,
    /// Sent to the host of `url` alone.
    pub(crate) authorization: Authorization,
    /// What holds for the host of `url`.
    pub(crate) entry: Option<Arc<Entry>>,
    /// What holds for hosts that it redirects to.
    pub(crate) credentials: &'a Credentials,
    /// A form to send, which may hold secrets.
    pub(crate) form: Option<Sensitive<String>>,
    /// The largest answer, in bytes.
    pub(crate) limit: u64,
}

/// Who a request says we are.
#[derive(Clone, Debug)]
pub(crate) enum Authorization {
    /// Whoever the entry of each host says, by name and password.
    Entry,
    /// This, at the first host only.
    Value(Sensitive<String>),
    /// Nobody.
    Nobody,
}

/// An answer of any status that is no redirect.
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// Where it came from in the end.
    pub(crate) url: Url,
}

impl<'a> Request<'a> {
    /// A GET for at most `limit` bytes, by whoever the credentials say.
    pub(crate) fn get(url: Url, credentials: &'a Credentials, limit: u64) -> Self {
        Self {
            method: Method::GET,
            entry: credentials.find(&url),
            url,
            headers: HeaderMap::new(),
            authorization: Authorization::Entry,
            credentials,
            form: None,
            limit,
        }
    }

    /// Adds a header that is no secret.
    pub(crate) fn header(mut self, name: reqwest::header::HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(name, value);
        }
        self
    }
}

impl Http {
    pub(crate) fn new(hosts: HostPolicy) -> Self {
        Self {
            hosts,
            clients: Clients::new(),
            permits: Semaphore::new(REQUESTS_AT_ONCE),
            of_host: Cache::new(HOSTS_COUNTED),
        }
    }

    /// Refuses an address that may not be spoken to, as far as can be told without asking.
    pub(crate) fn check(&self, url: &Url, credentials: &Credentials) -> Result<(), Error> {
        self.hosts.reach(url, credentials.listed(url).is_some()).map(drop)
    }

    /// Sends a request and follows redirects.
    ///
    /// # Errors
    /// [`Error::HostRefused`], [`Error::Unreachable`], [`Error::Oversized`], [`Error::Credentials`].
    pub(crate) async fn send(&self, request: &Request<'_>) -> Result<Response, Error> {
        let cut_off = || Error::Unreachable {
            url: shown(&request.url),
            problem: format!("no whole answer within {} s", REQUEST_TIMEOUT.as_secs()),
        };
        let host = address::host(&request.url);
        let of_host = self.of_host.get(&host).unwrap_or_else(|| {
            let permits = Arc::new(Semaphore::new(REQUESTS_AT_ONCE_PER_HOST));
            self.of_host.insert(host, permits)
        });
        let _of_host = of_host.acquire().await.map_err(|_| cut_off())?;
        let _permit = self.permits.acquire().await.map_err(|_| cut_off())?;
        tokio::time::timeout(REQUEST_TIMEOUT, self.follow(request))
            .await
            .unwrap_or_else(|_| Err(cut_off()))
    }

    async fn follow(&self, request: &Request<'_>) -> Result<Response, Error> {
        let mut url = request.url.clone();
        for _ in 0..=REDIRECTS_MAX {
            let response = self.hop(request, &url).await?;
            let Some(location) = redirect(&response) else {
                let (status, headers) = (response.status(), response.headers().clone());
                let body = body::read(response, &url, request.limit).await?;
                return Ok(Response {
                    status,
                    headers,
                    body,
                    url,
                });
            };
            url = url.join(&location).map_err(|error| Error::Unreachable {
                url: shown(&url),
                problem: format!("it redirects to an address that is not valid: {error}"),
            })?;
        }
        Err(Error::Unreachable {
            url: shown(&request.url),
            problem: format!("it redirects more than {REDIRECTS_MAX} times"),
        })
    }

    /// Asks one host.
    async fn hop(&self, request: &Request<'_>, url: &Url) -> Result<reqwest::Response, Error> {
        let is_first = same_origin(url, &request.url);
        let entry = if is_first {
            request.entry.clone()
        } else {
            request.credentials.find(url)
        };
        let is_known = (is_first && request.entry.is_some()) || request.credentials.listed(url).is_some();
        let reach = self.hosts.reach(url, is_known)?;
        let tls = entry.as_ref().map(|entry| entry.tls.clone()).unwrap_or_default();
        let client = self.clients.get(tls, url.scheme() == "https", reach)?;
        let mut builder = client
            .request(request.method.clone(), url.clone())
            .headers(request.headers.clone());
        let authorization = match &request.authorization {
            Authorization::Entry => entry.as_deref().and_then(basic),
            Authorization::Value(value) if is_first => Some(value.clone()),
            Authorization::Value(_) | Authorization::Nobody => None,
        };
        if let Some(authorization) = authorization {
            let mut value =
                HeaderValue::from_str(authorization.expose()).map_err(|_| Error::Unauthorized {
                    url: shown(url),
                    host: address::host(url),
                    problem: "the credentials hold characters that cannot be sent".to_owned(),
                })?;
            value.set_sensitive(true);
            builder = builder.header(AUTHORIZATION, value);
        }
        if let Some(form) = request.form.as_ref().filter(|_| is_first) {
            builder = builder
                .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
                .body(form.expose().clone());
        }
        builder
            .send()
            .await
            .map_err(|error| body::unreachable(url, error))
    }
}

/// The value of the header that shows a name and password.
pub(crate) fn basic(entry: &Entry) -> Option<Sensitive<String>> {
    match &entry.secret {
        Some(Secret::Basic { username, password }) => {
            let both = Sensitive::new(format!("{username}:{}", password.expose()));
            Some(Sensitive::new(format!(
                "Basic {}",
                STANDARD.encode(both.expose())
            )))
        }
        _ => None,
    }
}

fn redirect(response: &reqwest::Response) -> Option<String> {
    let follows = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    let location = response.headers().get(LOCATION).filter(|_| follows)?;
    Some(location.to_str().ok()?.to_owned())
}

impl Response {
    /// The text of a header.
    pub(crate) fn text(&self, name: impl reqwest::header::AsHeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// What an answer that is no success means.
    pub(crate) fn error(&self) -> Error {
        body::status_error(self)
    }

    /// The answer, if it is a success.
    pub(crate) fn succeeded(self) -> Result<Self, Error> {
        if self.status.is_success() {
            Ok(self)
        } else {
            Err(self.error())
        }
    }
}
