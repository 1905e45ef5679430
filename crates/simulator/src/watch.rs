//! Watches: a stream of events from a revision on.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rand::RngExt as _;
use serde_json::{Value, json};
use tokio::sync::watch::Receiver;
use tokio::time::Instant;

use crate::cluster::ClusterState;
use crate::list::{Selection, parse_version};
use crate::negotiate::Form;
use crate::object::Object;
use crate::request::Query;
use crate::state::{Endpoint, State};
use crate::status::ApiError;
use crate::store::Event;
use crate::table::{self, IncludeObject};

/// A watch that asks for bookmarks gets one this often.
const BOOKMARK_INTERVAL: Duration = Duration::from_secs(30);
/// A watch without a time limit ends after between one and two of these, as on a real server.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// A watch in progress.
pub(crate) struct Watch {
    cluster: Arc<ClusterState>,
    endpoint: Endpoint,
    selection: Selection,
    form: Form,
    include: IncludeObject,
    bookmarks: bool,
    /// Events up to here have been sent.
    position: u64,
    pending: VecDeque<String>,
    changes: Receiver<u64>,
    deadline: Instant,
    next_bookmark: Instant,
    ended: bool,
}

impl Watch {
    /// Begins a watch. Objects that exist are sent first where the query asks for them.
    pub(crate) fn start(
        cluster: Arc<ClusterState>,
        state: &State,
        endpoint: Endpoint,
        selection: Selection,
        query: &Query,
        form: Form,
        changes: Receiver<u64>,
    ) -> Result<Self, ApiError> {
        let asked = parse_version(query)?;
        let bookmarks = query.flag("allowWatchBookmarks");
        let initial = query
            .get("sendInitialEvents")
            .is_some_and(|flag| flag == "true" || flag == "1");
        if query.get("sendInitialEvents").is_some()
            && query.get("resourceVersionMatch") != Some("NotOlderThan")
        {
            let cause = crate::status::Cause::forbidden(
                "resourceVersionMatch",
                "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            );
            return Err(ApiError::invalid("meta.k8s.io", "ListOptions", "", vec![cause]));
        }
        let now = Instant::now();
        let timeout = query
            .number("timeoutSeconds")
            .filter(|seconds| *seconds > 0)
            .map(Duration::from_secs);
        let timeout = timeout.unwrap_or_else(|| DEFAULT_TIMEOUT.mul_f64(1.0 + rand::rng().random::<f64>()));
        let mut watch = Self {
            cluster,
            endpoint,
            selection,
            form,
            include: IncludeObject::parse(query.get("includeObject")),
            bookmarks,
            position: 0,
            pending: VecDeque::new(),
            changes,
            deadline: now + timeout,
            next_bookmark: now + BOOKMARK_INTERVAL,
            ended: false,
        };
        match asked.filter(|version| *version != 0) {
            Some(version) if !initial => watch.position = version,
            _ => {
                watch.position = state.store.revision();
                let objects: Vec<Arc<Object>> = state
                    .store
                    .list(watch.endpoint.resource.id, &watch.selection.namespace)
                    .filter(|object| watch.selection.matches(object))
                    .cloned()
                    .collect();
                for object in objects {
                    let line = watch.event("ADDED", &object, state.now_seconds());
                    watch.pending.push_back(line);
                }
                if initial && bookmarks {
                    let line = watch.bookmark(true);
                    watch.pending.push_back(line);
                }
            }
        }
        Ok(watch)
    }

    /// The next events, or `None` when the watch has ended.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        loop {
            if !self.pending.is_empty() {
                let lines: String = self.pending.drain(..).collect();
                return Some(Bytes::from(lines));
            }
            if self.ended {
                return None;
            }
            // Mark the newest revision as seen before looking, so that nothing in between is missed.
            self.changes.borrow_and_update();
            self.collect();
            if !self.pending.is_empty() || self.ended {
                continue;
            }
            tokio::select! {
                changed = self.changes.changed() => {
                    if changed.is_err() {
                        self.ended = true;
                    }
                }
                () = tokio::time::sleep_until(self.deadline) => {
                    if self.bookmarks {
                        let line = self.bookmark(false);
                        self.pending.push_back(line);
                    }
                    self.ended = true;
                }
                () = tokio::time::sleep_until(self.next_bookmark), if self.bookmarks => {
                    self.next_bookmark = Instant::now() + BOOKMARK_INTERVAL;
                    let line = self.bookmark(false);
                    self.pending.push_back(line);
                }
            }
        }
    }

    fn collect(&mut self) {
        let cluster = self.cluster.clone();
        if cluster.is_removed() {
            self.ended = true;
            return;
        }
        let lines = cluster.with(|state| {
            let mut lines = Vec::new();
            let now = state.now_seconds();
            // A watch may begin in the future: it waits until then.
            if self.position > state.store.revision() {
                return lines;
            }
            match state.store.since(self.position) {
                Ok(events) => {
                    for event in events.filter(|event| event.resource == self.endpoint.resource.id) {
                        lines.extend(self.translate(event, now));
                    }
                    self.position = state.store.revision();
                }
                Err(compacted) => {
                    let text = format!(
                        "too old resource version: {} ({})",
                        self.position,
                        compacted.oldest + 1
                    );
                    lines.push(line("ERROR", &ApiError::expired(text).to_value().to_string()));
                    self.ended = true;
                }
            }
            if state
                .registry
                .find(&self.endpoint.resource.group, &self.endpoint.resource.plural)
                .is_none()
            {
                self.ended = true;
            }
            lines
        });
        self.pending.extend(lines);
    }

    /// What a write is to this watch: objects that begin to match are added, those that stop are deleted.
    fn translate(&self, event: &Event, now: i64) -> Option<String> {
        let matched = |object: &Option<Arc<Object>>| {
            object
                .as_ref()
                .filter(|object| self.selection.matches(object))
                .cloned()
        };
        match (matched(&event.before), matched(&event.after)) {
            (None, None) => None,
            (None, Some(after)) => Some(self.event("ADDED", &after, now)),
            (Some(_), Some(after)) => Some(self.event("MODIFIED", &after, now)),
            (Some(before), None) => Some(self.event("DELETED", &before.at_version(event.revision), now)),
        }
    }

    fn event(&self, kind: &str, object: &Object, now: i64) -> String {
        let mut out = String::new();
        match self.form {
            Form::Plain => self.endpoint.write_json(object, &mut out),
            Form::Metadata => object.write_partial(&mut out),
            Form::Table => {
                let row = table::row(&self.endpoint, object, now, self.include);
                let metadata = json!({"resourceVersion": object.resource_version.to_string()});
                out = table::table(&self.endpoint, &metadata, vec![row]).to_string();
            }
        }
        line(kind, &out)
    }

    fn bookmark(&self, initial_end: bool) -> String {
        let mut metadata = json!({"resourceVersion": self.position.to_string()});
        if initial_end {
            crate::json::set(
                &mut metadata,
                &["annotations", "k8s.io/initial-events-end"],
                "true",
            );
        }
        let object: Value = match self.form {
            Form::Plain => {
                json!({"kind": self.endpoint.resource.kind, "apiVersion": self.endpoint.api_version(),
                "metadata": metadata})
            }
            Form::Metadata => {
                json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
            }
            Form::Table => {
                let object = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
                    "metadata": metadata});
                let row = json!({"cells": [], "object": object});
                table::table(&self.endpoint, &metadata, vec![row])
            }
        };
        line("BOOKMARK", &object.to_string())
    }
}

fn line(kind: &str, object: &str) -> String {
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n")
}
