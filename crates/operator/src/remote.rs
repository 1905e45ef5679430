//! Calls of other systems' JSON interfaces, with a bound on everything.

use std::fmt::Write as _;
use std::time::Duration;

use evenkeel_core::Clock as _;
use evenkeel_telemetry::{SystemClock, time};
use jiff::Timestamp;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, StatusCode, Url, redirect};
use serde_json::Value;

use crate::Error;
use crate::gate::{Gate, Sign, exhausted_until, pause};

/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How large an answer may be.
const ANSWER_MAX: usize = 16 << 20;

/// How much of an answer's text is told in an error.
const PROBLEM_CHARS: usize = 300;

/// One system with a JSON interface.
#[derive(Clone, Debug)]
pub(crate) struct Remote {
    client: reqwest::Client,
    base: Url,
    system: &'static str,
    gate: Option<Gate>,
}

/// How a system is reached.
pub(crate) struct Reach<'a> {
    /// Its name in errors.
    pub(crate) system: &'static str,
    /// Its address; the paths of calls are added to it.
    pub(crate) base: &'a Url,
    /// How long one call may take.
    pub(crate) timeout: Duration,
    /// A certificate authority to trust beside the machine's, in PEM.
    pub(crate) authority: Option<&'a [u8]>,
}

/// One call.
pub(crate) struct Call<'a> {
    /// What it is for, in errors: `read the secret a/b`.
    pub(crate) doing: &'a str,
    pub(crate) method: Method,
    /// Each is one segment: a `/` in it is escaped.
    pub(crate) path: Vec<&'a str>,
    pub(crate) query: Vec<(&'a str, String)>,
    pub(crate) headers: Vec<(&'static str, &'a str)>,
    pub(crate) body: Option<Value>,
    /// How long it may take, if longer than calls of this system usually may.
    pub(crate) timeout: Option<Duration>,
}

/// An answer, of any status but those that say: later.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// Null where there is none.
    pub(crate) body: Value,
}

impl Remote {
    pub(crate) fn new(reach: &Reach<'_>) -> Result<Self, Error> {
        let invalid = |error: reqwest::Error| Error::Invalid {
            what: format!("the way to {}", reach.system),
            problem: describe(error),
        };
        if !matches!(reach.base.scheme(), "http" | "https") {
            return Err(Error::Invalid {
                what: format!("the address of {}", reach.system),
                problem: format!(
                    "it begins with {}:, not with http: or https:",
                    reach.base.scheme()
                ),
            });
        }
        let mut builder = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(reach.timeout)
            // What a call carries is for that host alone.
            .redirect(redirect::Policy::none())
            .user_agent(concat!("evenkeel/", env!("CARGO_PKG_VERSION")));
        if let Some(authority) = reach.authority {
            for certificate in reqwest::Certificate::from_pem_bundle(authority).map_err(invalid)? {
                builder = builder.add_root_certificate(certificate);
            }
        }
        let mut base = reach.base.clone();
        // Neither is part of where it is.
        base.set_query(None);
        base.set_fragment(None);
        Ok(Self {
            client: builder.build().map_err(invalid)?,
            base,
            system: reach.system,
            gate: None,
        })
    }

    /// Lets calls through this gate from now on.
    pub(crate) fn behind(&mut self, gate: Gate) {
        self.gate = Some(gate);
    }

    pub(crate) fn system(&self) -> &'static str {
        self.system
    }

    /// Makes a call, if the system is not left alone. Too many requests, and errors of the server, are errors; every other
    /// answer is one.
    pub(crate) async fn call(&self, call: Call<'_>) -> Result<Answer, Error> {
        let Some(gate) = &self.gate else {
            return self.exchange(call, SystemClock.now()).await;
        };
        let passage = gate.enter(self.system, call.doing)?;
        if !passage.wait.is_zero() {
            time::sleep(passage.wait).await;
        }
        let answered = self.exchange(call, gate.now()).await;
        passage.ended(&sign(&answered, gate.now()));
        answered
    }

    async fn exchange(&self, call: Call<'_>, now: Timestamp) -> Result<Answer, Error> {
        let doing = call.doing;
        let mut request = self.client.request(call.method, self.address(&call.path));
        if !call.query.is_empty() {
            request = request.query(&call.query);
        }
        for (name, value) in &call.headers {
            let mut value = HeaderValue::from_str(value).map_err(|_| Error::Invalid {
                what: format!("the header {name} for {}", self.system),
                problem: "it holds what no header can carry, such as a line break".to_owned(),
            })?;
            value.set_sensitive(true);
            request = request.header(HeaderName::from_static(name), value);
        }
        if let Some(timeout) = call.timeout {
            request = request.timeout(timeout);
        }
        if let Some(body) = &call.body {
            request = request.json(body);
        }
        let mut answer = request
            .send()
            .await
            .map_err(|error| self.unreachable(doing, error))?;
        let (status, headers) = (answer.status(), answer.headers().clone());
        let mut bytes = Vec::new();
        while let Some(chunk) = answer
            .chunk()
            .await
            .map_err(|error| self.unreachable(doing, error))?
        {
            if bytes.len() + chunk.len() > ANSWER_MAX {
                return Err(self.not_understood(doing, format!("it is longer than {ANSWER_MAX} bytes")));
            }
            bytes.extend_from_slice(&chunk);
        }
        if status == StatusCode::TOO_MANY_REQUESTS {
            return Err(Error::RateLimited {
                system: self.system,
                doing: doing.to_owned(),
                after: pause(&headers, now),
            });
        }
        let body = parse(&bytes);
        if status.is_server_error() {
            return Err(Error::Unavailable {
                system: self.system,
                doing: doing.to_owned(),
                status: status.as_u16(),
                problem: problem(&body),
            });
        }
        Ok(Answer {
            status,
            headers,
            body,
        })
    }

    /// What an answer says that is neither success nor anything that was expected.
    pub(crate) fn refusal(&self, doing: &str, answer: &Answer) -> Error {
        let (system, doing, problem) = (self.system, doing.to_owned(), problem(&answer.body));
        match answer.status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Error::Forbidden {
                system,
                doing,
                problem,
            },
            status => Error::Refused {
                system,
                doing,
                status: status.as_u16(),
                problem,
            },
        }
    }

    /// The same with words of ours.
    pub(crate) fn refused(&self, doing: String, status: StatusCode, problem: String) -> Error {
        Error::Refused {
            system: self.system(),
            doing,
            status: status.as_u16(),
            problem,
        }
    }

    pub(crate) fn not_understood(&self, doing: &str, problem: impl Into<String>) -> Error {
        Error::NotUnderstood {
            system: self.system,
            doing: doing.to_owned(),
            problem: problem.into(),
        }
    }

    fn unreachable(&self, doing: &str, error: reqwest::Error) -> Error {
        Error::Unreachable {
            system: self.system,
            doing: doing.to_owned(),
            problem: describe(error),
        }
    }

    fn address(&self, path: &[&str]) -> Url {
        let mut address = self.base.clone();
        // An address of http or https has segments.
        if let Ok(mut segments) = address.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        address
    }
}

/// Host and port of an address; the port only if it is not the usual one.
pub(crate) fn host_of(address: &Url) -> String {
    let host = address.host_str().unwrap_or_default();
    match address.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// What a call says of the system that was called.
fn sign(answered: &Result<Answer, Error>, now: Timestamp) -> Sign {
    match answered {
        Ok(answer) => exhausted_until(&answer.headers, now).map_or(Sign::Alive, Sign::Sated),
        Err(Error::RateLimited { after, .. }) => {
            Sign::Sated(now.checked_add(*after).unwrap_or(Timestamp::MAX))
        }
        Err(Error::Unreachable { .. }) => Sign::Failing("it cannot be reached"),
        Err(Error::Unavailable { .. }) => Sign::Failing("it answers that it cannot serve"),
        Err(_) => Sign::Alive,
    }
}

/// The body as JSON; text that is none as a string.
fn parse(bytes: &[u8]) -> Value {
    if bytes.is_empty() {
        return Value::Null;
    }
    serde_json::from_slice(bytes)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(bytes).into_owned()))
}

/// The texts of an answer that says what is wrong, as Vault, Gitea and GitLab word it.
fn problem(body: &Value) -> String {
    let mut texts: Vec<String> = Vec::new();
    for name in ["errors", "message", "error", "error_description"] {
        collect(&body[name], &mut texts);
    }
    if let Value::String(text) = body {
        texts.push(text.clone());
    }
    let text = texts.join("; ");
    let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.is_empty() {
        return "it does not say why".to_owned();
    }
    text.chars().take(PROBLEM_CHARS).collect()
}

fn collect(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Object(fields) => {
            for (name, value) in fields {
                let mut inner = Vec::new();
                collect(value, &mut inner);
                texts.push(format!("{name} {}", inner.join(", ")));
            }
        }
        _ => {}
    }
}

/// An error with all that led to it; without the address, which the caller names better.
fn describe(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(error) = source {
        // Writing to a string cannot fail.
        let _ = write!(text, ": {error}");
        source = error.source();
    }
    text
}
