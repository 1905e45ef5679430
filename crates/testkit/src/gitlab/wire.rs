//! Requests taken apart, and answers put together.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderValue, Method, Response, StatusCode};
use http_body_util::Full;
use serde_json::{Value, json};

/// How many items a page has when nothing is said, and at most.
const PAGE_DEFAULT: usize = 20;
const PAGE_MAX: usize = 100;

/// A request.
pub(super) struct Asked {
    pub(super) method: Method,
    /// Below `/api/v4`, unescaped one by one.
    pub(super) segments: Vec<String>,
    pub(super) query: BTreeMap<String, String>,
    pub(super) body: Value,
}

impl Asked {
    pub(super) fn new(method: Method, path: &str, query: &str, body: &[u8]) -> Self {
        let path = path.strip_prefix("/api/v4/").unwrap_or_default();
        Self {
            method,
            segments: path.split('/').map(unescape).collect(),
            query: url::form_urlencoded::parse(query.as_bytes())
                .into_owned()
                .collect(),
            body: serde_json::from_slice(body).unwrap_or_default(),
        }
    }

    /// A text of the body.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.body[name].as_str()
    }

    pub(super) fn flag(&self, name: &str) -> Option<bool> {
        self.body[name].as_bool()
    }
}

fn unescape(segment: &str) -> String {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let escaped = (*first == b'%')
            .then(|| after.get(..2))
            .flatten()
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match escaped {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// An answer.
pub(super) struct Reply {
    status: StatusCode,
    body: Value,
    next_page: Option<String>,
    location: Option<String>,
}

impl Reply {
    pub(super) fn new(status: StatusCode, body: Value) -> Self {
        Self {
            status,
            body,
            next_page: None,
            location: None,
        }
    }

    pub(super) fn ok(body: Value) -> Self {
        Self::new(StatusCode::OK, body)
    }

    pub(super) fn created(body: Value) -> Self {
        Self::new(StatusCode::CREATED, body)
    }

    pub(super) fn gone() -> Self {
        Self::new(StatusCode::NO_CONTENT, Value::Null)
    }

    pub(super) fn not_found(what: &str) -> Self {
        let message = format!("404 {what} Not Found");
        Self::new(StatusCode::NOT_FOUND, json!({ "message": message }))
    }

    pub(super) fn refused(message: impl Into<Value>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, json!({ "message": message.into() }))
    }

    /// What a model of GitLab says of one of its fields.
    pub(super) fn invalid(field: &str, problem: &str) -> Self {
        Self::refused(json!({ field: [problem] }))
    }

    pub(super) fn forbidden() -> Self {
        Self::new(StatusCode::FORBIDDEN, json!({ "message": "403 Forbidden" }))
    }

    pub(super) fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, json!({ "message": "401 Unauthorized" }))
    }

    pub(super) fn moved(location: String) -> Self {
        let body = json!({ "message": "This resource has been moved permanently to another location" });
        Self {
            location: Some(location),
            ..Self::new(StatusCode::MOVED_PERMANENTLY, body)
        }
    }

    /// The page of a list that was asked for.
    pub(super) fn page(asked: &Asked, items: Vec<Value>) -> Self {
        let number = |name: &str| asked.query.get(name).and_then(|text| text.parse::<usize>().ok());
        let size = number("per_page").unwrap_or(PAGE_DEFAULT).clamp(1, PAGE_MAX);
        let page = number("page").unwrap_or(1).max(1);
        let is_last = items.len() <= page * size;
        let items: Vec<Value> = items.into_iter().skip((page - 1) * size).take(size).collect();
        Self {
            next_page: Some(if is_last {
                String::new()
            } else {
                (page + 1).to_string()
            }),
            ..Self::ok(items.into())
        }
    }

    pub(super) fn into_response(self) -> Response<Full<Bytes>> {
        let bytes = match &self.body {
            Value::Null => Bytes::new(),
            body => Bytes::from(body.to_string()),
        };
        let mut response = Response::new(Full::new(bytes));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let header = |text: String| HeaderValue::from_str(&text).ok();
        if let Some(next) = self.next_page.and_then(header) {
            headers.insert("x-next-page", next);
        }
        if let Some(location) = self.location.and_then(header) {
            headers.insert(LOCATION, location);
        }
        response
    }
}
