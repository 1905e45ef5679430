//! Patching objects, server-side apply included.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Endpoint, State, Written, check_identity};
use crate::apply::managed::{FieldManager, Managed, kind_name, object_name};
use crate::body::Body;
use crate::json::{at, remove, set, text};
use crate::object::{Key, Object};
use crate::patch::{PatchType, json_patch, merge_patch, strategic_merge};
use crate::request::{FieldValidation, WriteOptions};
use crate::schema::normalise::Mismatch;
use crate::status::{ApiError, Cause};

impl State {
    /// A PATCH of any type.
    pub(crate) fn patch(
        &mut self,
        endpoint: &Endpoint,
        key: &Key,
        subresource: &str,
        patch_type: PatchType,
        body: Body,
        options: &WriteOptions,
    ) -> Result<Written, ApiError> {
        let (namespace, name) = (&*key.namespace, &*key.name);
        if patch_type == PatchType::Apply {
            return self.apply(endpoint, namespace, name, subresource, body, options);
        }
        let live = self.get(endpoint, namespace, name)?.clone();
        let mut patched = endpoint.read(&live);
        match patch_type {
            PatchType::Json => json_patch(&mut patched, &body.value)?,
            PatchType::Merge => merge_patch(&mut patched, &body.value),
            PatchType::Strategic | PatchType::Apply => {
                let version = endpoint.version();
                let schema = version.map(|version| version.schema.clone()).unwrap_or_default();
                let ty = version
                    .and_then(|version| version.ty)
                    .unwrap_or(crate::schema::DEDUCED);
                strategic_merge(&schema, ty.into(), &mut patched, &body.value);
            }
        }
        let given = text(&patched, &["metadata", "name"]);
        if !given.is_empty() && given != name {
            return Err(ApiError::bad_request(format!(
                "the name of the object ({given}) does not match the name on the URL ({name})"
            )));
        }
        check_uid(endpoint, &live, &patched)?;
        let refused = |patched: &Value, error: &str| {
            let shown = Value::from(patched.to_string()).to_string();
            ApiError::invalid("", "", "", vec![Cause::invalid("patch", &shown, error)])
        };
        let mut decoded = self
            .decode(endpoint, patched.clone())
            .map_err(|Mismatch(error)| refused(&patched, &error))?;
        decoded
            .warnings
            .extend(body.duplicates.into_iter().map(|path| format!("\u{0}{path}")));
        let warnings = field_warnings(std::mem::take(&mut decoded.warnings));
        if options.validation == FieldValidation::Strict && !warnings.is_empty() {
            return Err(refused(
                &patched,
                &format!("strict decoding error: {}", warnings.join(", ")),
            ));
        }
        if options.validation == FieldValidation::Warn {
            decoded.warnings = warnings;
        }
        self.replace(endpoint, &live, subresource, decoded, None, options)
    }

    /// A server-side apply (KEP-555).
    fn apply(
        &mut self,
        endpoint: &Endpoint,
        namespace: &str,
        name: &str,
        subresource: &str,
        body: Body,
        options: &WriteOptions,
    ) -> Result<Written, ApiError> {
        let resource = endpoint.resource.clone();
        let mut config = body.value;
        if !body.duplicates.is_empty() && options.validation == FieldValidation::Strict {
            let texts: Vec<String> = body
                .duplicates
                .iter()
                .map(|path| format!("duplicate field {path:?}"))
                .collect();
            return Err(ApiError::bad_request(format!(
                "error decoding YAML: {}",
                texts.join(", ")
            )));
        }
        self.check_config(endpoint, namespace, name, &mut config)?;
        let key = Key::new(if resource.namespaced { namespace } else { "" }, name);
        let live = self.store.get(resource.id, &key).cloned();
        if live.is_none() && !subresource.is_empty() {
            return Err(endpoint.not_found(name));
        }
        if let Some(live) = &live {
            check_uid(endpoint, live, &config)?;
            check_identity(endpoint, live, &config)?;
        }
        let live_value = live.as_ref().map(|live| endpoint.read(live));
        let managed = match &live_value {
            Some(value) => {
                let entries = crate::json::items(value, &["metadata", "managedFields"]);
                Managed::decode(entries).map_err(|error| {
                    ApiError::internal(format!("failed to decode managed fields: {error}"))
                })?
            }
            None => Managed::default(),
        };
        let plain_live = live_value.map(|mut value| {
            remove(&mut value, &["metadata", "managedFields"]);
            value
        });
        let manager = FieldManager {
            versions: resource.as_ref(),
            api_version: &endpoint.api_version(),
            subresource,
            reset: &resource.reset_fields(subresource),
            now: self.now_seconds(),
            blank: &self.blank(endpoint),
        };
        let (merged, managed) = manager.apply(
            plain_live.as_ref(),
            &config,
            managed,
            &options.manager,
            options.force,
        )?;
        let new = merged.or(plain_live).unwrap_or_else(|| config.clone());
        let mut decoded = self.decode(endpoint, new).map_err(|Mismatch(error)| {
            ApiError::internal(format!(
                "failed to convert new object ({}) to proper version: unable to convert unstructured object to {}: error \
                 decoding from json: {error}",
                object_name(&config),
                kind_name(text(&config, &["apiVersion"]), &resource.kind)
            ))
        })?;
        decoded.warnings = if options.validation == FieldValidation::Warn {
            field_warnings(
                body.duplicates
                    .into_iter()
                    .map(|path| format!("\u{0}{path}"))
                    .collect(),
            )
        } else {
            Vec::new()
        };
        match live {
            Some(live) => self.replace(endpoint, &live, subresource, decoded, Some(managed), options),
            None => {
                remove(&mut decoded.value, &["metadata", "uid"]);
                self.create(endpoint, namespace, decoded, Some(managed), options)
            }
        }
    }

    /// Checks what an apply names, and completes it from the URL.
    fn check_config(
        &self,
        endpoint: &Endpoint,
        namespace: &str,
        name: &str,
        config: &mut Value,
    ) -> Result<(), ApiError> {
        let api_version = text(config, &["apiVersion"]).to_owned();
        let kind = text(config, &["kind"]).to_owned();
        if api_version.is_empty() || kind.is_empty() {
            let kind = kind_name(&api_version, &kind);
            return Err(ApiError::bad_request(format!("invalid object type: {kind}")));
        }
        let (group, _) = api_version.split_once('/').unwrap_or(("", &api_version));
        if kind != endpoint.resource.kind || group != endpoint.resource.group {
            let kind = kind_name(&api_version, &kind);
            return Err(ApiError::bad_request(format!("invalid object type: {kind}")));
        }
        if api_version != endpoint.api_version() {
            return Err(ApiError::bad_request(format!(
                "Incorrect version specified in apply patch. Specified patch version: {api_version}, expected: {}",
                endpoint.api_version()
            )));
        }
        let given = text(config, &["metadata", "name"]).to_owned();
        if !given.is_empty() && given != name {
            return Err(ApiError::bad_request(format!(
                "the name of the object ({given}) does not match the name on the URL ({name})"
            )));
        }
        if at(config, &["metadata", "managedFields"]).is_some() {
            return Err(ApiError::bad_request("metadata.managedFields must be nil"));
        }
        let given = text(config, &["metadata", "namespace"]);
        if endpoint.resource.namespaced && !given.is_empty() && given != namespace {
            return Err(ApiError::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        if !config.get("metadata").is_some_and(Value::is_object) {
            set(config, &["metadata"], Value::Object(Map::new()));
        }
        set(config, &["metadata", "name"], name);
        Ok(())
    }

    /// A change by the simulator itself, for controllers and for tests that play another client. Unchanged objects are
    /// not written.
    pub(crate) fn change(
        &mut self,
        endpoint: &Endpoint,
        key: &Key,
        subresource: &str,
        manager: &str,
        change: impl FnOnce(&mut Value),
    ) -> Result<Arc<Object>, ApiError> {
        let live = self.get(endpoint, &key.namespace, &key.name)?.clone();
        let mut value = endpoint.read(&live);
        change(&mut value);
        let decoded = self
            .decode(endpoint, value)
            .map_err(|Mismatch(error)| not_handled(endpoint, &error))?;
        let options = WriteOptions {
            manager: manager.to_owned(),
            dry_run: false,
            validation: FieldValidation::Ignore,
            force: false,
        };
        self.replace(endpoint, &live, subresource, decoded, None, &options)
            .map(|written| written.object)
    }
}

/// A patch may not change the uid.
fn check_uid(endpoint: &Endpoint, live: &Object, new: &Value) -> Result<(), ApiError> {
    let uid = text(new, &["metadata", "uid"]);
    if uid.is_empty() || uid == live.uid.to_string() {
        return Ok(());
    }
    let shown = Value::from(uid).to_string();
    let cause = Cause::invalid("metadata.uid", &shown, "field is immutable");
    let resource = &endpoint.resource;
    Err(ApiError::invalid(
        &resource.group,
        &resource.kind,
        &live.key.name,
        vec![cause],
    ))
}

/// `KIND in version "V" cannot be handled as a KIND: …`
pub(crate) fn not_handled(endpoint: &Endpoint, error: &str) -> ApiError {
    let kind = &endpoint.resource.kind;
    ApiError::bad_request(format!(
        "{kind} in version {:?} cannot be handled as a {kind}: {error}",
        endpoint.version_name()
    ))
}

/// Turns paths into the texts of warnings; paths of duplicates are marked with a NUL.
pub(crate) fn field_warnings(paths: Vec<String>) -> Vec<String> {
    paths
        .into_iter()
        .map(|path| match path.strip_prefix('\u{0}') {
            Some(path) => format!("duplicate field {path:?}"),
            None => format!("unknown field {path:?}"),
        })
        .collect()
}
