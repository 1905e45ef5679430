//! Charts in OCI registries, by the distribution specification and Helm's media types.

mod access;
mod manifest;

use std::sync::Arc;

use bytes::Bytes;
use evenkeel_core::{Digest, OciReference};
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue};
use reqwest::{Method, Url};
use serde::Deserialize;

use crate::Error;
use crate::address::same_origin;
use crate::credentials::{Credentials, Entry};
use crate::http::{Http, Response};
use crate::version::{Pick, Wanted, tag, versions_of_tags};

use access::Tokens;
pub(crate) use manifest::{ChartManifest, Layer};

/// The largest manifest, in bytes (the distribution specification's advice).
const MANIFEST_SIZE_MAX: u64 = 4 * 1024 * 1024;
/// The most pages of tags, and the largest one in bytes.
const TAG_PAGES_MAX: usize = 200;
const TAG_PAGE_SIZE_MAX: u64 = 4 * 1024 * 1024;
/// How many tags are asked for at once.
const TAGS_PER_PAGE: usize = 1000;
/// How many versions an error names.
const HINTED: usize = 5;
/// Where the charts and images of Docker Hub lie.
const DOCKER_HUB: &str = "registry-1.docker.io";

/// Speaks to registries.
#[derive(Debug)]
pub(crate) struct Registry {
    http: Arc<Http>,
    tokens: Tokens,
}

/// A repository of a registry, and who we are there.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    base: Url,
    repository: String,
    reference: OciReference,
    entry: Option<Arc<Entry>>,
}

/// A chart in a repository.
#[derive(Clone, Debug)]
pub(crate) struct Pulled {
    pub(crate) manifest: ChartManifest,
    /// The tag's version, or the tag or digest itself.
    pub(crate) version: String,
}

#[derive(Deserialize)]
struct TagPage {
    tags: Option<Vec<String>>,
}

impl Place {
    pub(crate) fn new(reference: &OciReference, credentials: &Credentials) -> Result<Self, Error> {
        let wrong = |problem: String| Error::Registry {
            reference: reference.to_string(),
            problem,
        };
        let url: Url = reference
            .as_str()
            .parse()
            .map_err(|_| wrong("it is no address".to_owned()))?;
        let entry = credentials.find(&url);
        let scheme = if entry.as_ref().is_some_and(|entry| entry.is_plain()) {
            "http"
        } else {
            "https"
        };
        let host = match reference.host() {
            "docker.io" | "index.docker.io" => DOCKER_HUB,
            host => host,
        };
        Ok(Self {
            base: format!("{scheme}://{host}/")
                .parse()
                .map_err(|error| wrong(format!("its host is not valid: {error}")))?,
            repository: reference.repository().to_owned(),
            reference: reference.clone(),
            entry,
        })
    }

    /// The address below which the registry answers.
    pub(crate) fn base(&self) -> &Url {
        &self.base
    }

    /// Whether something is known about the registry.
    pub(crate) fn is_known(&self) -> bool {
        self.entry.is_some()
    }

    fn wrong(&self, problem: impl Into<String>) -> Error {
        Error::Registry {
            reference: self.reference.to_string(),
            problem: problem.into(),
        }
    }

    fn url(&self, rest: &str) -> Result<Url, Error> {
        self.base
            .join(&format!("v2/{}/{rest}", self.repository))
            .map_err(|error| self.wrong(error.to_string()))
    }
}

impl Registry {
    pub(crate) fn new(http: Arc<Http>) -> Self {
        Self {
            http,
            tokens: Tokens::default(),
        }
    }

    /// The chart that `pick` means; a manifest that is known already is not sent again.
    pub(crate) async fn find(
        &self,
        place: &Place,
        credentials: &Credentials,
        pick: &Pick,
        known: Option<&ChartManifest>,
    ) -> Result<Pulled, Error> {
        match pick {
            Pick::Digest(digest) => {
                let name = digest.to_string();
                let manifest = self.manifest(place, credentials, &name, known).await?;
                Ok(Pulled {
                    manifest,
                    version: name,
                })
            }
            Pick::Tag(name, range) => match self.manifest(place, credentials, name, known).await {
                Ok(manifest) => Ok(Pulled {
                    manifest,
                    version: name.replace('_', "+"),
                }),
                Err(error) if error.is_not_found() => match range {
                    Some(range) => self.newest(place, credentials, range, known).await,
                    None => Err(self.no_tag(place, credentials, name).await.unwrap_or(error)),
                },
                Err(error) => Err(error),
            },
            Pick::Range(range) => self.newest(place, credentials, range, known).await,
        }
    }

    async fn newest(
        &self,
        place: &Place,
        credentials: &Credentials,
        range: &Wanted,
        known: Option<&ChartManifest>,
    ) -> Result<Pulled, Error> {
        let versions = versions_of_tags(self.tags(place, credentials).await?);
        let version = range
            .choose(&versions, |version| version)
            .ok_or_else(|| Error::NoVersion {
                wanted: range.text.as_ref().map_or_else(
                    || "a release".to_owned(),
                    |text| format!("a version that fits {text:?}"),
                ),
                place: place.reference.to_string(),
                hint: hint(&versions),
            })?;
        let manifest = self.manifest(place, credentials, &tag(version), known).await?;
        Ok(Pulled {
            manifest,
            version: version.clone(),
        })
    }

    /// Says which versions there are instead of a tag that is not there.
    async fn no_tag(&self, place: &Place, credentials: &Credentials, name: &str) -> Option<Error> {
        let versions = versions_of_tags(self.tags(place, credentials).await.ok()?);
        Some(Error::NoVersion {
            wanted: format!("tag {name:?}"),
            place: place.reference.to_string(),
            hint: hint(&versions),
        })
    }

    /// The answer to a GET, which must have succeeded.
    async fn get(
        &self,
        place: &Place,
        credentials: &Credentials,
        url: Url,
        headers: HeaderMap,
        limit: u64,
    ) -> Result<Response, Error> {
        self.call(place, credentials, Method::GET, url, headers, limit)
            .await?
            .succeeded()
    }

    /// All tags, page by page.
    pub(crate) async fn tags(&self, place: &Place, credentials: &Credentials) -> Result<Vec<String>, Error> {
        let mut url = place.url(&format!("tags/list?n={TAGS_PER_PAGE}"))?;
        let mut tags = Vec::new();
        for _ in 0..TAG_PAGES_MAX {
            let response = self
                .get(
                    place,
                    credentials,
                    url.clone(),
                    HeaderMap::new(),
                    TAG_PAGE_SIZE_MAX,
                )
                .await?;
            let page: TagPage = serde_json::from_slice(&response.body)
                .map_err(|error| place.wrong(format!("its list of tags cannot be read: {error}")))?;
            tags.extend(page.tags.unwrap_or_default());
            let Some(next) = next_page(&response) else {
                return Ok(tags);
            };
            let next = url.join(&next).map_err(|error| {
                place.wrong(format!("its next page of tags has no valid address: {error}"))
            })?;
            if !same_origin(&next, &url) {
                return Err(place.wrong("its next page of tags lies on another host"));
            }
            url = next;
        }
        Err(place.wrong(format!("it has more than {TAG_PAGES_MAX} pages of tags")))
    }

    /// What a tag or digest stands for.
    async fn manifest(
        &self,
        place: &Place,
        credentials: &Credentials,
        name: &str,
        known: Option<&ChartManifest>,
    ) -> Result<ChartManifest, Error> {
        let url = place.url(&format!("manifests/{name}"))?;
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static(manifest::ACCEPTED));
        if let Some(known) = known {
            // Registries count GETs of manifests against limits; a HEAD is free.
            let head = self
                .call(
                    place,
                    credentials,
                    Method::HEAD,
                    url.clone(),
                    headers.clone(),
                    MANIFEST_SIZE_MAX,
                )
                .await?;
            let digest = head
                .text(manifest::DIGEST_HEADER)
                .and_then(|text| text.parse().ok());
            if head.status.is_success() && digest == Some(known.digest) {
                return Ok(known.clone());
            }
        }
        let mut wanted: Option<Digest> = name.parse().ok();
        let mut url = url;
        // An index leads to a manifest, and no further.
        for _ in 0..2 {
            let response = self
                .get(
                    place,
                    credentials,
                    url.clone(),
                    headers.clone(),
                    MANIFEST_SIZE_MAX,
                )
                .await?;
            let found = Digest::of(&response.body);
            let promised = response
                .text(manifest::DIGEST_HEADER)
                .and_then(|text| text.parse().ok());
            if let Some(wanted) = wanted.or(promised).filter(|wanted| *wanted != found) {
                return Err(Error::Mismatch {
                    url: crate::address::shown(&url),
                    wanted,
                    found,
                });
            }
            match manifest::read(found, &response.body).map_err(|problem| place.wrong(problem))? {
                manifest::Content::Chart(chart) => return Ok(chart),
                manifest::Content::Index(digest) => {
                    url = place.url(&format!("manifests/{digest}"))?;
                    wanted = Some(digest);
                }
            }
        }
        Err(place.wrong("its index leads to another index"))
    }

    /// The content of a layer, checked.
    pub(crate) async fn blob(
        &self,
        place: &Place,
        credentials: &Credentials,
        layer: &Layer,
        limit: u64,
    ) -> Result<Bytes, Error> {
        let url = place.url(&format!("blobs/{}", layer.digest))?;
        if layer.size > limit {
            return Err(Error::Oversized {
                url: url.to_string(),
                limit,
            });
        }
        let response = self
            .get(place, credentials, url.clone(), HeaderMap::new(), limit)
            .await?;
        let found = Digest::of(&response.body);
        if found == layer.digest {
            Ok(response.body)
        } else {
            Err(Error::Mismatch {
                url: url.to_string(),
                wanted: layer.digest,
                found,
            })
        }
    }
}

/// Where the rest of a list is (RFC 8288).
fn next_page(response: &Response) -> Option<String> {
    response
        .headers
        .get_all(reqwest::header::LINK)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .find_map(|link| {
            let (target, parameters) = link.trim().strip_prefix('<')?.split_once('>')?;
            let is_next = parameters
                .split(';')
                .any(|parameter| matches!(parameter.trim(), "rel=\"next\"" | "rel=next"));
            is_next.then(|| target.to_owned())
        })
}

fn hint(versions: &[String]) -> String {
    let newest: Vec<_> = versions.iter().take(HINTED).map(String::as_str).collect();
    match newest.as_slice() {
        [] => ": no tag of it is a version".to_owned(),
        newest => format!(
            ": the newest of its {} versions are {}",
            versions.len(),
            newest.join(", ")
        ),
    }
}
