//! Who we are towards a registry: Basic, or a token that its token service gives out.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use evenkeel_core::{Digest, Sensitive};
use evenkeel_telemetry::time;
use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};
use reqwest::{Method, StatusCode, Url};
use serde::Deserialize;

use super::{Place, Registry};
use crate::Error;
use crate::address::{host, same_origin, shown};
use crate::credentials::{Credentials, Secret};
use crate::http::{Authorization, Request, Response, basic};

/// How long a token lasts whose service does not say (the token specification's default).
const TOKEN_LIFETIME: u64 = 60;
/// A token is not used in the last seconds of its life.
const TOKEN_MARGIN: u64 = 10;
/// The largest answer of a token service, in bytes.
const TOKEN_SIZE_MAX: u64 = 1024 * 1024;
/// How many tokens are kept.
const TOKENS_KEPT: usize = 1024;
/// The name by which token services know us.
const CLIENT_ID: &str = "evenkeel";

/// What registries accepted last, for each repository and secret.
#[derive(Debug, Default)]
pub(super) struct Tokens(Mutex<HashMap<Digest, Token>>);

#[derive(Clone, Debug)]
struct Token {
    header: Sensitive<String>,
    /// By the monotonic clock; none when it does not expire.
    good_until: Option<Duration>,
}

/// What a registry asks for.
#[derive(Debug, PartialEq, Eq)]
enum Challenge {
    Basic,
    Bearer {
        realm: String,
        service: Option<String>,
        scope: Option<String>,
    },
}

#[derive(Deserialize)]
struct TokenAnswer {
    token: Option<Sensitive<String>>,
    access_token: Option<Sensitive<String>>,
    expires_in: Option<u64>,
}

impl Tokens {
    fn get(&self, key: &Digest) -> Option<Sensitive<String>> {
        let tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let token = tokens.get(key)?;
        let is_good = token.good_until.is_none_or(|until| time::elapsed() < until);
        is_good.then(|| token.header.clone())
    }

    fn insert(&self, key: Digest, token: Token) {
        let mut tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if tokens.len() >= TOKENS_KEPT {
            let now = time::elapsed();
            tokens.retain(|_, token| token.good_until.is_some_and(|until| until > now));
            if tokens.len() >= TOKENS_KEPT {
                tokens.clear();
            }
        }
        tokens.insert(key, token);
    }

    fn remove(&self, key: &Digest) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

impl Place {
    /// Names what is asked for and who asks, so that another secret never uses this one's token.
    fn token_key(&self) -> Digest {
        let secret = match self.entry.as_ref().and_then(|entry| entry.secret.as_ref()) {
            Some(Secret::Basic { username, password }) => {
                Digest::of_parts([username.as_bytes(), password.expose().as_bytes()])
            }
            Some(Secret::IdentityToken(token) | Secret::RegistryToken(token)) => Digest::of(token.expose()),
            Some(Secret::Helper { .. }) | None => Digest::of(""),
        };
        Digest::of_parts([
            self.base.as_str().as_bytes(),
            self.repository.as_bytes(),
            secret.as_bytes(),
        ])
    }

    fn unauthorized(&self, url: &Url, problem: impl Into<String>) -> Error {
        Error::Unauthorized {
            url: shown(url),
            host: host(url),
            problem: problem.into(),
        }
    }
}

impl Registry {
    /// Sends a request, and once more with a new token when the registry asks for one.
    pub(super) async fn call(
        &self,
        place: &Place,
        credentials: &Credentials,
        method: Method,
        url: Url,
        headers: HeaderMap,
        limit: u64,
    ) -> Result<Response, Error> {
        let key = place.token_key();
        let own = match place.entry.as_ref().and_then(|entry| entry.secret.as_ref()) {
            Some(Secret::RegistryToken(token)) => Some(bearer(token)),
            _ => self.tokens.get(&key),
        };
        let mut request = Request {
            method,
            url,
            headers,
            authorization: own.map_or(Authorization::Nobody, Authorization::Value),
            entry: place.entry.clone(),
            credentials,
            form: None,
            limit,
        };
        let response = self.http.send(&request).await?;
        // What another host answers, behind a redirect, is not the registry asking who we are.
        if response.status != StatusCode::UNAUTHORIZED || !same_origin(&response.url, &request.url) {
            return Ok(response);
        }
        self.tokens.remove(&key);
        let token = self.authorize(place, credentials, &response).await?;
        request.authorization = Authorization::Value(token.header.clone());
        self.tokens.insert(key, token);
        self.http.send(&request).await
    }

    async fn authorize(
        &self,
        place: &Place,
        credentials: &Credentials,
        refusal: &Response,
    ) -> Result<Token, Error> {
        let secret = place.entry.as_ref().and_then(|entry| entry.secret.as_ref());
        if let Some(Secret::Helper { program, file }) = secret {
            return Err(place.unauthorized(
                &refusal.url,
                format!(
                    "{} leaves its credentials to the program {program}, which is not run; give them by name and \
                     password instead",
                    file.display()
                ),
            ));
        }
        let challenges = challenges(&refusal.headers);
        let bearer = challenges.iter().find_map(|challenge| match challenge {
            Challenge::Bearer {
                realm,
                service,
                scope,
            } => Some((realm, service, scope)),
            Challenge::Basic => None,
        });
        if let Some((realm, service, scope)) = bearer {
            let default = format!("repository:{}:pull", place.repository);
            let scope = scope.as_deref().unwrap_or(&default);
            return self
                .token(place, credentials, realm, service.as_deref(), scope)
                .await;
        }
        let header = place.entry.as_deref().and_then(basic);
        match header.filter(|_| challenges.contains(&Challenge::Basic)) {
            Some(header) => Ok(Token {
                header,
                good_until: None,
            }),
            None => Err(place.unauthorized(&refusal.url, format!("it answers {}", refusal.status))),
        }
    }

    /// Asks the token service that the registry names (Distribution's token authentication, also with OAuth 2).
    async fn token(
        &self,
        place: &Place,
        credentials: &Credentials,
        realm: &str,
        service: Option<&str>,
        scope: &str,
    ) -> Result<Token, Error> {
        let mut url: Url = realm
            .parse()
            .map_err(|_| place.wrong("its token service has no valid address"))?;
        let is_web = matches!(url.scheme(), "http" | "https");
        if !is_web || (url.scheme() == "http" && place.base.scheme() == "https") {
            return Err(place.wrong("its token service would be spoken to without TLS"));
        }
        let secret = place.entry.as_ref().and_then(|entry| entry.secret.as_ref());
        let mut request = Request {
            entry: if same_origin(&url, &place.base) {
                place.entry.clone()
            } else {
                credentials.find(&url)
            },
            ..Request::get(url.clone(), credentials, TOKEN_SIZE_MAX)
        };
        if let Some(Secret::IdentityToken(token)) = secret {
            let mut form = url.clone();
            form.set_query(None);
            form.query_pairs_mut()
                .append_pair("grant_type", "refresh_token")
                .append_pair("service", service.unwrap_or_default())
                .append_pair("client_id", CLIENT_ID)
                .append_pair("scope", scope)
                .append_pair("refresh_token", token.expose());
            request.method = Method::POST;
            request.form = Some(Sensitive::new(form.query().unwrap_or_default().to_owned()));
            request.authorization = Authorization::Nobody;
        } else {
            url.query_pairs_mut()
                .extend_pairs(service.map(|service| ("service", service)))
                .append_pair("scope", scope);
            request.url = url;
            let header = place.entry.as_deref().and_then(basic);
            request.authorization = header.map_or(Authorization::Nobody, Authorization::Value);
        }
        let response = self.http.send(&request).await?.succeeded()?;
        // The error could quote the token.
        let answer: TokenAnswer = serde_json::from_slice(&response.body)
            .map_err(|_| place.wrong("what its token service answers is no token"))?;
        let token = answer
            .token
            .or(answer.access_token)
            .filter(|token| !token.expose().is_empty())
            .ok_or_else(|| place.wrong("what its token service answers is no token"))?;
        let lifetime = answer.expires_in.unwrap_or(TOKEN_LIFETIME).max(TOKEN_LIFETIME) - TOKEN_MARGIN;
        Ok(Token {
            header: bearer(&token),
            good_until: Some(time::elapsed().saturating_add(Duration::from_secs(lifetime))),
        })
    }
}

fn bearer(token: &Sensitive<String>) -> Sensitive<String> {
    Sensitive::new(format!("Bearer {}", token.expose()))
}

/// What a registry asks for (RFC 9110 §11.6.1); schemes that are not known are passed over.
fn challenges(headers: &HeaderMap) -> Vec<Challenge> {
    headers
        .get_all(WWW_AUTHENTICATE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(challenges_of)
        .collect()
}

fn challenges_of(text: &str) -> Vec<Challenge> {
    let mut found: Vec<(String, HashMap<String, String>)> = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let end = rest.find([' ', '=', ',']).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        if let Some(value) = after.strip_prefix('=') {
            let (value, after) = parameter(value);
            if let Some((_, parameters)) = found.last_mut() {
                parameters.insert(word.to_ascii_lowercase(), value);
            }
            rest = after;
        } else {
            if !word.is_empty() {
                found.push((word.to_ascii_lowercase(), HashMap::new()));
            }
            rest = after;
        }
        rest = rest.trim_start_matches([' ', ',']);
    }
    let known = |(scheme, mut parameters): (String, HashMap<String, String>)| match scheme.as_str() {
        "basic" => Some(Challenge::Basic),
        "bearer" => Some(Challenge::Bearer {
            realm: parameters.remove("realm")?,
            service: parameters.remove("service"),
            scope: parameters.remove("scope"),
        }),
        _ => None,
    };
    found.into_iter().filter_map(known).collect()
}

/// The value of a parameter, quoted or not, and what follows it.
fn parameter(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', ' ']).unwrap_or(text.len());
        let (value, rest) = text.split_at(end);
        return (value.to_owned(), rest);
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (value, quoted.get(at + 1..).unwrap_or_default()),
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            other => value.push(other),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read() {
        let bearer = |realm: &str, service: Option<&str>, scope: Option<&str>| Challenge::Bearer {
            realm: realm.to_owned(),
            service: service.map(str::to_owned),
            scope: scope.map(str::to_owned),
        };
        for (text, expected) in [
            ("Basic realm=\"x\"", vec![Challenge::Basic]),
            (
                r#"Bearer realm="https://a/token",service="a, b",scope="repository:x/y:pull,push""#,
                vec![bearer(
                    "https://a/token",
                    Some("a, b"),
                    Some("repository:x/y:pull,push"),
                )],
            ),
            (
                r#"bearer realm=https://a/t , service="q\"x", Basic realm="y""#,
                vec![bearer("https://a/t", Some("q\"x"), None), Challenge::Basic],
            ),
            ("Negotiate, Basic", vec![Challenge::Basic]),
            ("Bearer service=\"x\"", vec![]),
            ("", vec![]),
            ("\"", vec![]),
            (
                "Bearer realm=\"unterminated",
                vec![bearer("unterminated", None, None)],
            ),
        ] {
            assert_eq!(challenges_of(text), expected, "{text}");
        }
    }
}
