//! A double of the one list of Kyma's environment broker that is read: no real broker can be had in a test.
//!
//! It enforces what the broker documents of `GET /runtimes`: pages from 1, at most 100 entries each, `runtime_id` as a filter,
//! and `data`, `count`, `totalCount` in the answer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use serde_json::{Value, json};
use url::form_urlencoded;

use crate::double::Double;

/// What its clients must show.
const TOKEN: &str = "broker-token";
/// The most entries of a page.
const PAGE_SIZE_MAX: usize = 100;

/// A broker on the loopback interface, without TLS; ends when dropped.
#[derive(Debug)]
pub struct Broker {
    double: Double,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    runtimes: Vec<Value>,
    pages: usize,
    /// Runtimes that go once the first page was given.
    slipping: Vec<String>,
    /// Told in place of the number of entries.
    total: Option<usize>,
    answer: Option<(StatusCode, String)>,
}

impl Broker {
    /// Starts one without runtimes, on the calling runtime.
    ///
    /// # Panics
    /// When no port can be had.
    pub async fn start() -> Self {
        let state = Arc::default();
        let shared: Arc<Mutex<State>> = Arc::clone(&state);
        let answering = move |request| std::future::ready(answer(&mut lock(&shared), &request));
        Self {
            double: Double::start("the broker", answering).await,
            state,
        }
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("http://{}", self.double.address())
    }

    /// What its clients must show.
    pub fn token(&self) -> &'static str {
        TOKEN
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Lists a runtime in `state`, with `more` fields.
    pub fn add(&self, runtime: &str, state: &str, more: &Value) {
        let mut entry = json!({"runtimeID": runtime, "status": {"state": state}});
        if let (Some(entry), Some(more)) = (entry.as_object_mut(), more.as_object()) {
            entry.extend(more.clone());
        }
        self.state().runtimes.push(entry);
    }

    /// Lists a runtime no more.
    pub fn remove(&self, runtime: &str) {
        self.state().remove(runtime);
    }

    /// Lists a runtime no more once the first page was given: those behind it slip to the page before.
    pub fn remove_after_first_page(&self, runtime: &str) {
        self.state().slipping.push(runtime.to_owned());
    }

    /// Tells another number of entries than there are, or the right one again.
    pub fn tell_total(&self, total: Option<usize>) {
        self.state().total = total;
    }

    /// Answers everything so from now on, or as usual again.
    pub fn answer(&self, answer: Option<(StatusCode, &str)>) {
        self.state().answer = answer.map(|(status, text)| (status, text.to_owned()));
    }

    /// How many pages were given so far.
    pub fn pages(&self) -> usize {
        self.state().pages
    }
}

impl State {
    fn remove(&mut self, runtime: &str) {
        self.runtimes.retain(|entry| entry["runtimeID"] != runtime);
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn answer(state: &mut State, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    if let Some((status, text)) = &state.answer {
        return respond(*status, text.clone());
    }
    let refused = |status, message: &str| respond(status, json!({ "error": message }).to_string());
    let shown = request.headers().get(AUTHORIZATION);
    if shown.and_then(|value| value.to_str().ok()?.strip_prefix("Bearer ")) != Some(TOKEN) {
        return refused(StatusCode::UNAUTHORIZED, "unauthorized");
    }
    if request.method() != Method::GET || request.uri().path() != "/runtimes" {
        return refused(StatusCode::NOT_FOUND, "no such path");
    }
    let (mut page, mut size, mut ids) = (1, PAGE_SIZE_MAX, Vec::new());
    for (name, value) in form_urlencoded::parse(request.uri().query().unwrap_or_default().as_bytes()) {
        match (name.as_ref(), value.parse::<usize>()) {
            ("page", Ok(number @ 1..)) => page = number,
            ("page_size", Ok(number @ 1..=PAGE_SIZE_MAX)) => size = number,
            ("runtime_id", _) => ids.push(value.into_owned()),
            _ => return refused(StatusCode::BAD_REQUEST, "a parameter is not understood"),
        }
    }
    let wanted = |entry: &&Value| {
        let id = entry["runtimeID"].as_str().unwrap_or_default();
        ids.is_empty() || ids.iter().any(|wanted| wanted == id)
    };
    let wanted: Vec<&Value> = state.runtimes.iter().filter(wanted).collect();
    let total = state.total.unwrap_or(wanted.len());
    let data: Vec<&Value> = wanted.into_iter().skip((page - 1) * size).take(size).collect();
    let body = json!({"data": data, "count": data.len(), "totalCount": total}).to_string();
    state.pages += 1;
    for runtime in std::mem::take(&mut state.slipping) {
        state.remove(&runtime);
    }
    respond(StatusCode::OK, body)
}

fn respond(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}
