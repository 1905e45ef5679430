//! Lists: selection, pages, and what revision they show.

use std::fmt::Write as _;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::negotiate::Form;
use crate::object::{Key, Object};
use crate::request::Query;
use crate::selectors::{FieldSelector, LabelSelector};
use crate::state::{Endpoint, State};
use crate::status::ApiError;
use crate::store::Compacted;
use crate::table::{self, IncludeObject};

/// Which objects of a collection are wanted.
#[derive(Debug, Clone)]
pub(crate) struct Selection {
    pub(crate) namespace: String,
    pub(crate) labels: LabelSelector,
    pub(crate) fields: FieldSelector,
}

impl Selection {
    pub(crate) fn parse(endpoint: &Endpoint, namespace: &str, query: &Query) -> Result<Self, ApiError> {
        let labels = LabelSelector::parse(query.get("labelSelector").unwrap_or_default());
        let fields = FieldSelector::parse(query.get("fieldSelector").unwrap_or_default(), &endpoint.resource);
        Ok(Self {
            namespace: namespace.to_owned(),
            labels: labels.map_err(ApiError::bad_request)?,
            fields: fields.map_err(ApiError::bad_request)?,
        })
    }

    pub(crate) fn matches(&self, object: &Object) -> bool {
        (self.namespace.is_empty() || *object.key.namespace == *self.namespace)
            && self.labels.matches(object)
            && self.fields.matches(object)
    }

    fn is_all(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }
}

/// Where a page goes on.
struct Continue {
    revision: u64,
    after: Key,
}

impl Continue {
    fn encode(&self) -> String {
        let start = format!("{}/{}\u{0}", self.after.namespace, self.after.name);
        let token = json!({"v": "meta.k8s.io/v1", "rv": self.revision, "start": start});
        URL_SAFE_NO_PAD.encode(token.to_string())
    }

    fn decode(token: &str) -> Result<Self, ApiError> {
        let refused = |why: &str| {
            ApiError::bad_request(format!(
                "invalid continue token: continue key is not valid: {why}"
            ))
        };
        let bytes = URL_SAFE_NO_PAD
            .decode(token.trim_end_matches('='))
            .map_err(|error| refused(&error.to_string()))?;
        let token: Value = serde_json::from_slice(&bytes).map_err(|error| refused(&error.to_string()))?;
        let start = token
            .get("start")
            .and_then(Value::as_str)
            .ok_or_else(|| refused("no start"))?;
        let (namespace, name) = start
            .trim_end_matches('\u{0}')
            .split_once('/')
            .ok_or_else(|| refused("start without a slash"))?;
        let revision = token
            .get("rv")
            .and_then(Value::as_u64)
            .ok_or_else(|| refused("no rv"))?;
        Ok(Self {
            revision,
            after: Key::new(namespace, name),
        })
    }
}

/// A resource version in a query: absent, or a number.
pub(crate) fn parse_version(query: &Query) -> Result<Option<u64>, ApiError> {
    let Some(text) = query.get("resourceVersion") else {
        return Ok(None);
    };
    text.parse().map(Some).map_err(|_| {
        ApiError::bad_request(format!(
            "invalid resource version: resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: \
             invalid syntax"
        ))
    })
}

impl State {
    /// The objects that a list shows, in order, with the revision and where the next page begins.
    fn page(
        &self,
        endpoint: &Endpoint,
        selection: &Selection,
        query: &Query,
    ) -> Result<(Vec<Arc<Object>>, Value), ApiError> {
        let id = endpoint.resource.id;
        let current = self.store.revision();
        let limit = query
            .number("limit")
            .filter(|limit| *limit > 0)
            .and_then(|limit| usize::try_from(limit).ok());
        let next = query.get("continue").map(Continue::decode).transpose()?;
        let asked = parse_version(query)?;
        if let Some(asked) = asked.filter(|asked| *asked > current) {
            return Err(ApiError::version_too_large(asked, current));
        }
        let exact = asked.filter(|_| query.get("resourceVersionMatch") == Some("Exact"));
        let too_old = |_: Compacted| match &next {
            Some(_) => ApiError::expired(
                "The provided continue parameter is too old to display a consistent list result. You can start a new list \
                 without the continue parameter, or use the continue token in this response to retrieve the remainder of \
                 the results. Continuing with the provided token results in an inconsistent list - objects that were \
                 created, modified, or deleted between the time the first chunk was returned and now may show up in the \
                 list.",
            ),
            None => ApiError::expired("The resourceVersion for the provided list is too old."),
        };
        let revision = next
            .as_ref()
            .map(|next| next.revision)
            .or(exact)
            .unwrap_or(current);
        let objects: Vec<Arc<Object>> = if revision < current {
            let mut objects = self
                .store
                .snapshot(id, &selection.namespace, revision)
                .map_err(too_old)?;
            objects.retain(|object| selection.matches(object));
            objects
        } else if let (Some(name), false) = (selection.fields.name(), selection.namespace.is_empty()) {
            let key = Key::new(&selection.namespace, name);
            self.store
                .get(id, &key)
                .filter(|object| selection.matches(object))
                .cloned()
                .into_iter()
                .collect()
        } else {
            let all = self.store.list(id, &selection.namespace);
            all.filter(|object| selection.matches(object)).cloned().collect()
        };
        let mut objects = objects;
        if let Some(next) = &next {
            objects.retain(|object| object.key > next.after);
        }
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if let Some(limit) = limit.filter(|limit| objects.len() > *limit) {
            let rest = objects.len() - limit;
            objects.truncate(limit);
            if let Some(last) = objects.last() {
                let token = Continue {
                    revision,
                    after: last.key.clone(),
                }
                .encode();
                crate::json::set(&mut metadata, &["continue"], token);
                if selection.is_all() {
                    crate::json::set(&mut metadata, &["remainingItemCount"], rest);
                }
            }
        }
        Ok((objects, metadata))
    }

    /// The body of a list.
    pub(crate) fn list(
        &self,
        endpoint: &Endpoint,
        selection: &Selection,
        query: &Query,
        form: Form,
    ) -> Result<String, ApiError> {
        let (objects, metadata) = self.page(endpoint, selection, query)?;
        let resource = &endpoint.resource;
        if form == Form::Table {
            let include = IncludeObject::parse(query.get("includeObject"));
            let now = self.now_seconds();
            let rows = objects
                .iter()
                .map(|object| table::row(endpoint, object, now, include))
                .collect();
            return Ok(table::table(endpoint, &metadata, rows).to_string());
        }
        let mut out = String::with_capacity(objects.len() * 1024 + 128);
        let (kind, api_version) = match form {
            Form::Metadata => ("PartialObjectMetadataList", "meta.k8s.io/v1".to_owned()),
            _ => (resource.list_kind.as_str(), endpoint.api_version()),
        };
        let _ = write!(
            out,
            "{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\",\"metadata\":{metadata},\"items\":["
        );
        for (position, object) in objects.iter().enumerate() {
            if position > 0 {
                out.push(',');
            }
            match form {
                Form::Metadata => object.write_partial(&mut out),
                // Items of built-in lists say neither kind nor version, as those of a real server.
                _ if resource.is_custom() => endpoint.write_json(object, &mut out),
                _ if endpoint.is_storage() => object.write_untyped(&mut out),
                _ => {
                    let mut value = endpoint.read(object);
                    crate::json::remove(&mut value, &["kind"]);
                    crate::json::remove(&mut value, &["apiVersion"]);
                    out.push_str(&value.to_string());
                }
            }
        }
        out.push_str("]}");
        Ok(out)
    }
}
