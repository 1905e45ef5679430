//! The environment broker's list of runtimes (K6): `GET /runtimes?page=&page_size=`, as Kyma's environment broker serves it.
//!
//! The broker leads; what is here is a copy. Its list is read page by page by number, so an entry may slip from one page to
//! another while it is read. Nothing is concluded from an entry that is not there until the broker was asked for that one.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use evenkeel_core::Sensitive;
use reqwest::header::{AUTHORIZATION, HeaderValue};
use reqwest::{StatusCode, redirect};
use serde::Deserialize;
use url::Url;

/// How long a connection may take to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long one page may take; shorter than the lease of the one who reads.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// Entries of a page; the broker gives no more.
const PAGE_SIZE: u32 = 100;
/// The most pages that are read.
const PAGES_MAX: u32 = 10_000;
/// The most bytes of a page.
const PAGE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// How much of a refusal is told.
const PROBLEM_CHARS: usize = 200;

/// Where the broker is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerOptions {
    /// Its address, below which `/runtimes` lies.
    pub url: String,
    /// A file with the bearer token to show, read at each comparison; none to show none.
    pub token_file: Option<PathBuf>,
}

/// Why the broker's list cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BrokerError {
    /// There is no broker.
    #[error("there is no broker to compare with: start with --broker-url")]
    None,
    /// The client or the token cannot be made.
    #[error("the broker cannot be asked: {0}")]
    Unusable(String),
    /// No answer, or half of one.
    #[error("the broker cannot be reached: {0}")]
    Unreachable(String),
    /// It answers, and not with the list.
    #[error("the broker answered {status}: {problem}")]
    Refused {
        /// Status of the answer.
        status: u16,
        /// Its text.
        problem: String,
    },
    /// What it answers is not its list, or not all of it.
    #[error("the broker's list is not understood: {0}")]
    NotUnderstood(String),
}

/// One runtime, as far as it is of use here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Runtime {
    #[serde(rename = "runtimeID")]
    pub(crate) runtime_id: String,
    #[serde(rename = "globalAccountID")]
    pub(crate) global_account_id: String,
    #[serde(rename = "subAccountID")]
    pub(crate) sub_account_id: String,
    pub(crate) shoot_name: String,
    pub(crate) region: String,
    pub(crate) service_plan_name: String,
    pub(crate) status: RuntimeStatus,
}

/// How a runtime is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct RuntimeStatus {
    pub(crate) state: String,
}

impl Runtime {
    /// Whether it is no more.
    pub(crate) fn is_gone(&self) -> bool {
        self.status.state == "deprovisioned"
    }

    /// Whether it is on its way out.
    pub(crate) fn is_going(&self) -> bool {
        self.status.state == "deprovisioning"
    }

    /// Whether it should be known here: it is there, and stays.
    pub(crate) fn is_settled(&self) -> bool {
        !matches!(
            self.status.state.as_str(),
            "provisioning" | "failed" | "deprovisioning" | "deprovisioned"
        )
    }
}

/// A page of the list.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    data: Option<Vec<Runtime>>,
    total_count: usize,
}

/// Speaks to the broker.
pub(crate) struct Broker {
    http: reqwest::Client,
    runtimes: Url,
    token_file: Option<PathBuf>,
}

impl fmt::Debug for Broker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Broker").finish_non_exhaustive()
    }
}

impl BrokerOptions {
    /// Refuses what is no address.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.runtimes().map(drop)
    }

    fn runtimes(&self) -> Result<Url, String> {
        let expected = "expected an address like https://kyma-env-broker.example.org";
        let mut url =
            Url::parse(&self.url).map_err(|error| format!("{:?}: {error}; {expected}", self.url))?;
        let is_plain = url.query().is_none() && url.fragment().is_none();
        if !matches!(url.scheme(), "http" | "https") || !is_plain {
            return Err(format!("{:?}: {expected}", self.url));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("it holds a user or a password: put a token into a file instead".to_owned());
        }
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().push("runtimes");
        }
        Ok(url)
    }
}

impl Broker {
    /// # Errors
    /// [`BrokerError::Unusable`].
    pub(crate) fn new(options: &BrokerOptions) -> Result<Self, BrokerError> {
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(CALL_TIMEOUT)
            // The token is for that host alone.
            .redirect(redirect::Policy::none())
            .user_agent(concat!("evenkeel/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| BrokerError::Unusable(error.to_string()))?;
        Ok(Self {
            http,
            runtimes: options.runtimes().map_err(BrokerError::Unusable)?,
            token_file: options.token_file.clone(),
        })
    }

    /// All runtimes by id, page by page; `goes_on` is asked before each.
    ///
    /// # Errors
    /// [`BrokerError`], also where there are fewer than the broker says.
    pub(crate) async fn runtimes<F: Future<Output = bool>>(
        &self,
        goes_on: impl Fn() -> F,
    ) -> Result<Option<BTreeMap<String, Runtime>>, BrokerError> {
        let token = self.token().await?;
        let (mut all, mut entries) = (BTreeMap::new(), 0);
        for number in 1..=PAGES_MAX {
            if !goes_on().await {
                return Ok(None);
            }
            let query = [("page", number.to_string()), ("page_size", PAGE_SIZE.to_string())];
            let Page { data, total_count } = self.page(&query, token.as_ref()).await?;
            let runtimes = data.unwrap_or_default();
            // It may give fewer of them than were asked for.
            entries += runtimes.len();
            if runtimes.is_empty() && entries < total_count {
                let text = format!("it ends after {entries} of {total_count} entries");
                return Err(BrokerError::NotUnderstood(text));
            }
            // One that was never provisioned has no id yet.
            let with_id = runtimes
                .into_iter()
                .filter(|runtime| !runtime.runtime_id.is_empty());
            all.extend(with_id.map(|runtime| (runtime.runtime_id.clone(), runtime)));
            if entries >= total_count {
                return Ok(Some(all));
            }
        }
        Err(BrokerError::NotUnderstood(format!(
            "it has more than {PAGES_MAX} pages"
        )))
    }

    /// One runtime, if the broker still lists it.
    ///
    /// # Errors
    /// [`BrokerError`].
    pub(crate) async fn runtime(&self, id: &str) -> Result<Option<Runtime>, BrokerError> {
        let token = self.token().await?;
        let query = [
            ("page", "1".to_owned()),
            ("page_size", PAGE_SIZE.to_string()),
            ("runtime_id", id.to_owned()),
        ];
        let found = self.page(&query, token.as_ref()).await?.data.unwrap_or_default();
        // A broker that does not know the filter answers others.
        match found
            .into_iter()
            .partition::<Vec<_>, _>(|runtime| runtime.runtime_id == id)
        {
            (mut same, _) if !same.is_empty() => Ok(same.pop()),
            (_, others) if others.is_empty() => Ok(None),
            _ => Err(BrokerError::NotUnderstood(
                "it cannot be asked for one runtime".to_owned(),
            )),
        }
    }

    async fn token(&self) -> Result<Option<Sensitive<String>>, BrokerError> {
        let Some(file) = &self.token_file else {
            return Ok(None);
        };
        let text = tokio::fs::read_to_string(file)
            .await
            .map_err(|error| BrokerError::Unusable(format!("{}: {error}", file.display())))?;
        Ok(Some(Sensitive::new(text.trim().to_owned())))
    }

    async fn page(
        &self,
        query: &[(&str, String)],
        token: Option<&Sensitive<String>>,
    ) -> Result<Page, BrokerError> {
        let mut request = self.http.get(self.runtimes.clone()).query(query);
        if let Some(token) = token {
            let mut value = HeaderValue::from_str(&format!("Bearer {}", token.expose()))
                .map_err(|_| BrokerError::Unusable("the token holds what no header can carry".to_owned()))?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        let unreachable = |error: reqwest::Error| {
            let error = error.without_url();
            BrokerError::Unreachable(evenkeel_telemetry::chain(&error).to_string())
        };
        let mut answer = request.send().await.map_err(unreachable)?;
        let status = answer.status();
        let mut bytes = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(unreachable)? {
            if bytes.len() + chunk.len() > PAGE_BYTES_MAX {
                let text = format!("a page is longer than {PAGE_BYTES_MAX} bytes");
                return Err(BrokerError::NotUnderstood(text));
            }
            bytes.extend_from_slice(&chunk);
        }
        if status != StatusCode::OK {
            let text = String::from_utf8_lossy(&bytes);
            let problem: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
            return Err(BrokerError::Refused {
                status: status.as_u16(),
                problem: problem.chars().take(PROBLEM_CHARS).collect(),
            });
        }
        serde_json::from_slice(&bytes).map_err(|error| BrokerError::NotUnderstood(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_checked() {
        let of = |url: &str| BrokerOptions {
            url: url.to_owned(),
            token_file: None,
        };
        let runtimes = of("https://broker.example.org/kyma/")
            .runtimes()
            .map(String::from);
        assert_eq!(
            runtimes.as_deref(),
            Ok("https://broker.example.org/kyma/runtimes")
        );
        for odd in [
            "broker",
            "ftp://broker",
            "https://b/?a=b",
            "https://user:secret@b",
        ] {
            let problem = of(odd).check().err().unwrap_or_default();
            assert!(
                !problem.is_empty() && !problem.contains("secret"),
                "{odd}: {problem}"
            );
        }
    }
}
