//! From a request to an answer: what the handler chain of an API server does.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::LOG_ANNOTATION;
use crate::body::{self, Body};
use crate::cluster::ClusterState;
use crate::json::text;
use crate::list::Selection;
use crate::log::LoggedWrite;
use crate::negotiate::{self, Form};
use crate::patch::PatchType;
use crate::request::{FieldValidation, Query, ResourcePath, Target, WriteOptions};
use crate::state::delete::{DeleteOptions, Deleted};
use crate::state::patch::{field_warnings, not_handled};
use crate::state::{Decoded, Endpoint, State, Written};
use crate::status::ApiError;
use crate::table::{self, IncludeObject};
use crate::watch::Watch;
use crate::{discovery, openapi};

mod reviews;

use reviews::is_review;

/// A request with its body read.
#[derive(Debug)]
pub(crate) struct ApiRequest {
    pub(crate) method: http::Method,
    pub(crate) target: Target,
    pub(crate) query: Query,
    pub(crate) accept: String,
    pub(crate) content_type: String,
    pub(crate) user_agent: String,
    pub(crate) body: Bytes,
    /// `127.0.0.1:PORT`
    pub(crate) address: String,
}

/// An answer.
pub(crate) enum Answer {
    Json {
        code: u16,
        body: String,
        warnings: Vec<String>,
    },
    Text {
        code: u16,
        body: &'static str,
    },
    /// What a container wrote.
    Log(String),
    Watch(Box<Watch>),
}

impl Answer {
    fn ok(body: String) -> Self {
        Self::Json {
            code: 200,
            body,
            warnings: Vec::new(),
        }
    }

    pub(crate) fn error(error: &ApiError) -> Self {
        Self::Json {
            code: error.code,
            body: error.to_value().to_string(),
            warnings: error.warnings.clone(),
        }
    }
}

impl ApiRequest {
    /// The verb and the resource, as authorization and counters name them.
    pub(crate) fn attributes(&self) -> (&'static str, String) {
        let path = match &self.target {
            Target::Resource(path) => path,
            Target::Path(path) => return ("get", path.clone()),
            Target::LegacyVersions => return ("get", "/api".into()),
            Target::Groups => return ("get", "/apis".into()),
            Target::Group(group) => return ("get", format!("/apis/{group}")),
            Target::GroupVersion { group, version } if group.is_empty() => {
                return ("get", format!("/api/{version}"));
            }
            Target::GroupVersion { group, version } => return ("get", format!("/apis/{group}/{version}")),
        };
        let verb = match (self.method.as_str(), path.name.is_empty()) {
            ("GET", true) if self.query.flag("watch") => "watch",
            ("GET", true) => "list",
            ("GET", false) => "get",
            ("POST", _) => "create",
            ("PUT", _) => "update",
            ("PATCH", _) => "patch",
            ("DELETE", true) => "deletecollection",
            ("DELETE", false) => "delete",
            _ => "get",
        };
        let mut resource = crate::status::qualified(&path.resource, &path.group);
        if !path.subresource.is_empty() {
            resource = format!("{}/{}", path.resource, path.subresource);
        }
        (verb, resource)
    }

    pub(crate) fn is_dry_run(&self) -> bool {
        self.query.get("dryRun").is_some()
    }

    /// 403 as RBAC words it.
    pub(crate) fn forbidden(&self, verb: &str) -> ApiError {
        let Target::Resource(path) = &self.target else {
            let text = format!("User \"evenkeel\" cannot {verb} this path");
            return ApiError::forbidden("", "path", "", &text);
        };
        let subresource = if path.subresource.is_empty() {
            String::new()
        } else {
            format!("/{}", path.subresource)
        };
        let scope = if path.namespace.is_empty() {
            "at the cluster scope".to_owned()
        } else {
            format!("in the namespace {:?}", path.namespace)
        };
        let why = format!(
            "User \"evenkeel\" cannot {verb} resource \"{}{subresource}\" in API group {:?} {scope}",
            path.resource, path.group
        );
        ApiError::forbidden(&path.group, &path.resource, &path.name, &why)
    }

    /// Answers the request.
    pub(crate) fn answer(self, cluster: &Arc<ClusterState>) -> Answer {
        match &self.target {
            Target::Resource(path) => {
                let path = path.clone();
                cluster
                    .with(|state| {
                        let before = state.store.revision();
                        let answer = self.resource(cluster, state, &path);
                        let revision = state.store.revision();
                        if revision != before {
                            cluster.log.note(|| self.logged(&path, revision));
                        }
                        answer
                    })
                    .unwrap_or_else(|e| Answer::error(&e))
            }
            _ => self.document(cluster),
        }
    }

    fn logged(&self, path: &ResourcePath, revision: u64) -> LoggedWrite {
        let (verb, resource) = self.attributes();
        LoggedWrite {
            verb,
            resource,
            namespace: path.namespace.clone(),
            name: path.name.clone(),
            user_agent: self.user_agent.clone(),
            revision,
        }
    }

    fn document(&self, cluster: &Arc<ClusterState>) -> Answer {
        const NOT_FOUND: Answer = Answer::Text {
            code: 404,
            body: "404 page not found\n",
        };
        let aggregated = negotiate::wants_aggregated_discovery(&self.accept);
        let registry = |read: &dyn Fn(&State) -> Option<Value>| cluster.with(|state| read(state));
        let document = match &self.target {
            Target::LegacyVersions if aggregated => {
                registry(&|state| Some(discovery::aggregated(&state.registry, true)))
            }
            Target::LegacyVersions => Some(discovery::legacy_versions(&self.address)),
            Target::Groups if aggregated => {
                registry(&|state| Some(discovery::aggregated(&state.registry, false)))
            }
            Target::Groups => registry(&|state| Some(discovery::groups(&state.registry))),
            Target::Group(group) => registry(&|state| discovery::group(&state.registry, group)),
            Target::GroupVersion { group, version } => {
                registry(&|state| discovery::resources(&state.registry, group, version))
            }
            Target::Path(path) => match path.as_str() {
                "/version" => Some(discovery::version()),
                "/healthz" | "/livez" | "/readyz" => {
                    return Answer::Text {
                        code: 200,
                        body: "ok",
                    };
                }
                "/openapi/v3" => {
                    let prefix = format!("/clusters/{}", cluster.name);
                    registry(&|state| Some(openapi::index(&state.registry, &prefix)))
                }
                path => match path.strip_prefix("/openapi/v3/") {
                    Some(rest) => registry(&|state| openapi::document(&state.registry, rest)),
                    None => None,
                },
            },
            Target::Resource(_) => None,
        };
        let is_discovery = matches!(self.target, Target::LegacyVersions | Target::Groups);
        match document {
            Some(document) if aggregated && is_discovery => Answer::Json {
                code: 200,
                body: document.to_string(),
                // The server marks the form of this answer in its content type.
                warnings: vec![AGGREGATED_MARK.to_owned()],
            },
            Some(document) => Answer::ok(document.to_string()),
            None => NOT_FOUND,
        }
    }

    fn endpoint(&self, state: &State, path: &ResourcePath) -> Result<Endpoint, ApiError> {
        let resource = state.registry.find(&path.group, &path.resource).cloned();
        let resource = resource.ok_or_else(ApiError::no_such_resource)?;
        let version = resource
            .versions
            .iter()
            .position(|known| known.name == path.version && known.served);
        let endpoint = Endpoint {
            version: version.ok_or_else(ApiError::no_such_resource)?,
            resource,
        };
        // Objects in namespaces are only addressed there; a collection may be read over all of them.
        let in_namespace = !path.namespace.is_empty();
        let fits = if endpoint.resource.namespaced {
            in_namespace || (path.name.is_empty() && matches!(self.method.as_str(), "GET" | "DELETE"))
        } else {
            !in_namespace
        };
        if fits {
            Ok(endpoint)
        } else {
            Err(ApiError::no_such_resource())
        }
    }

    fn resource(
        &self,
        cluster: &Arc<ClusterState>,
        state: &mut State,
        path: &ResourcePath,
    ) -> Result<Answer, ApiError> {
        let endpoint = self.endpoint(state, path)?;
        let (verb, _) = self.attributes();
        let allowed = match path.subresource.as_str() {
            "" => endpoint.version().map(|version| version.verbs.clone()),
            name => {
                let version = endpoint.version();
                let found = version.and_then(|version| version.subresource(name));
                // A custom kind that has no such subresource says so as if the object were missing.
                let custom = endpoint.resource.is_custom() && ["status", "scale"].contains(&name);
                let missing = || {
                    if custom {
                        endpoint.not_found(&path.name)
                    } else {
                        ApiError::no_such_resource()
                    }
                };
                Some(found.ok_or_else(missing)?.verbs.clone())
            }
        };
        let verb_known = allowed.unwrap_or_default().iter().any(|known| known == verb);
        // An update of a subresource that creates something (eviction, binding, token) is a POST.
        let misplaced = verb == "create" && !path.name.is_empty() && path.subresource.is_empty();
        if !verb_known || misplaced {
            return Err(ApiError::method_not_allowed());
        }
        match (verb, path.subresource.as_str()) {
            (_, "scale") => self.scale(state, &endpoint, path),
            ("create", "eviction") => self.evict(state, path),
            ("create", "binding") => self.bind(state, path),
            ("create", "token") => self.token(path),
            (_, "log") => {
                let pod = endpoint.read(state.get(&endpoint, &path.namespace, &path.name)?);
                let log = match text(&pod, &["metadata", "annotations", LOG_ANNOTATION]) {
                    "" => "simulated\n",
                    log => log,
                };
                Ok(Answer::Log(log.to_owned()))
            }
            (_, "exec" | "attach" | "portforward" | "proxy") => {
                Err(ApiError::bad_request("Upgrade request required"))
            }
            ("get", _) => self.read(state, &endpoint, path),
            ("list", _) => {
                let selection = Selection::parse(&endpoint, &path.namespace, &self.query)?;
                state
                    .list(&endpoint, &selection, &self.query, negotiate::form(&self.accept)?)
                    .map(Answer::ok)
            }
            ("watch", _) => {
                let selection = Selection::parse(&endpoint, &path.namespace, &self.query)?;
                let form = negotiate::form(&self.accept)?;
                let changes = cluster.changes();
                Watch::start(
                    cluster.clone(),
                    state,
                    endpoint,
                    selection,
                    &self.query,
                    form,
                    changes,
                )
                .map(|watch| Answer::Watch(Box::new(watch)))
            }
            ("create", "") if is_review(&endpoint) => self.review(&endpoint),
            ("create", _) => self.create(state, &endpoint, path),
            ("update", _) => self.update(state, &endpoint, path),
            ("patch", _) => self.patch(state, &endpoint, path),
            ("delete", _) => self.delete(state, &endpoint, path),
            ("deletecollection", _) => self.delete_collection(state, &endpoint, path),
            _ => Err(ApiError::method_not_allowed()),
        }
    }

    fn read(&self, state: &State, endpoint: &Endpoint, path: &ResourcePath) -> Result<Answer, ApiError> {
        let object = state.get(endpoint, &path.namespace, &path.name)?;
        let mut out = String::new();
        match negotiate::form(&self.accept)? {
            Form::Plain => endpoint.write_json(object, &mut out),
            Form::Metadata => object.write_partial(&mut out),
            Form::Table => {
                let include = IncludeObject::parse(self.query.get("includeObject"));
                let row = table::row(endpoint, object, state.now_seconds(), include);
                let metadata = json!({"resourceVersion": object.resource_version.to_string()});
                out = table::table(endpoint, &metadata, vec![row]).to_string();
            }
        }
        Ok(Answer::ok(out))
    }

    /// Reads and checks the body of a create or update.
    fn decode(
        &self,
        state: &State,
        endpoint: &Endpoint,
        options: &WriteOptions,
    ) -> Result<Decoded, ApiError> {
        let resource = &endpoint.resource;
        if self
            .content_type
            .starts_with("application/vnd.kubernetes.protobuf")
        {
            return Err(ApiError::unsupported_media_type());
        }
        let Body { value, duplicates } = body::parse(&self.body, &resource.kind)?;
        let text = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let version = api_version.rsplit('/').next().unwrap_or_default();
        if !kind.is_empty() && kind != resource.kind {
            return Err(ApiError::bad_request(format!(
                "{kind} in version {version:?} cannot be handled as a {0}: converting ({version}.{kind}) to ({1}.{0}): \
                 unknown conversion",
                resource.kind,
                if resource.group.is_empty() {
                    "core"
                } else {
                    &resource.group
                },
            )));
        }
        if !api_version.is_empty() && api_version != endpoint.api_version() {
            return Err(ApiError::bad_request(format!(
                "{kind} in version {version:?} cannot be handled as a {}: no kind {kind:?} is registered for version \
                 {api_version:?} in scheme \"pkg/runtime/scheme.go:111\"",
                resource.kind
            )));
        }
        let mut decoded = state
            .decode(endpoint, value)
            .map_err(|error| not_handled(endpoint, &error.0))?;
        let mut paths = std::mem::take(&mut decoded.warnings);
        paths.extend(duplicates.into_iter().map(|path| format!("\u{0}{path}")));
        if paths.len() > 1 {
            // Unknown fields are named in the order of the request.
            let order = body::field_order(&self.body);
            paths.sort_by_key(|path| {
                let duplicate = path.strip_prefix('\u{0}');
                let place = order.iter().position(|known| known == duplicate.unwrap_or(path));
                (duplicate.is_some(), place)
            });
        }
        let warnings = field_warnings(paths);
        match options.validation {
            FieldValidation::Strict if !warnings.is_empty() => {
                return Err(not_handled(
                    endpoint,
                    &format!("strict decoding error: {}", warnings.join(", ")),
                ));
            }
            FieldValidation::Warn => decoded.warnings = warnings,
            _ => {}
        }
        Ok(decoded)
    }

    fn written(&self, endpoint: &Endpoint, written: &Written) -> Result<Answer, ApiError> {
        let mut body = String::new();
        match negotiate::form(&self.accept)? {
            Form::Metadata => written.object.write_partial(&mut body),
            Form::Plain | Form::Table => endpoint.write_json(&written.object, &mut body),
        }
        let code = if written.created { 201 } else { 200 };
        Ok(Answer::Json {
            code,
            body,
            warnings: written.warnings.clone(),
        })
    }

    fn create(
        &self,
        state: &mut State,
        endpoint: &Endpoint,
        path: &ResourcePath,
    ) -> Result<Answer, ApiError> {
        let options = WriteOptions::parse(&self.query, &self.user_agent, false)?;
        let decoded = self.decode(state, endpoint, &options)?;
        let written = state.create(endpoint, &path.namespace, decoded, None, &options)?;
        self.written(endpoint, &written)
    }

    fn update(
        &self,
        state: &mut State,
        endpoint: &Endpoint,
        path: &ResourcePath,
    ) -> Result<Answer, ApiError> {
        let options = WriteOptions::parse(&self.query, &self.user_agent, false)?;
        let decoded = self.decode(state, endpoint, &options)?;
        let written = state.update(
            endpoint,
            &path.namespace,
            &path.name,
            &path.subresource,
            decoded,
            &options,
        )?;
        self.written(endpoint, &written)
    }

    fn patch(&self, state: &mut State, endpoint: &Endpoint, path: &ResourcePath) -> Result<Answer, ApiError> {
        let patch_type = PatchType::parse(&self.content_type, endpoint.resource.is_custom())?;
        let options = WriteOptions::parse(&self.query, &self.user_agent, patch_type == PatchType::Apply)?;
        let body = body::parse(&self.body, &endpoint.resource.kind);
        let body = match (patch_type, body) {
            // A JSON patch is a list, which is no object in YAML either.
            (PatchType::Json, _) => {
                body::parse_json(&self.body).map_err(|error| ApiError::bad_request(error.to_string()))?
            }
            (_, body) => body?,
        };
        let key = crate::object::Key::new(&path.namespace, &path.name);
        let written = state.patch(endpoint, &key, &path.subresource, patch_type, body, &options)?;
        self.written(endpoint, &written)
    }

    fn delete_options(&self) -> Result<DeleteOptions, ApiError> {
        let mut options = match self.body.is_empty() {
            true => DeleteOptions::default(),
            false => DeleteOptions::from_value(&body::parse(&self.body, "DeleteOptions")?.value)?,
        };
        if let Some(policy) = self.query.get("propagationPolicy") {
            options.propagation =
                DeleteOptions::from_value(&json!({"propagationPolicy": policy}))?.propagation;
        }
        if let Some(seconds) = self.query.number("gracePeriodSeconds") {
            options.grace_seconds = i64::try_from(seconds).ok();
        }
        options.dry_run |= self.is_dry_run();
        Ok(options)
    }

    fn delete(
        &self,
        state: &mut State,
        endpoint: &Endpoint,
        path: &ResourcePath,
    ) -> Result<Answer, ApiError> {
        let options = self.delete_options()?;
        let body = match state.delete(endpoint, &path.namespace, &path.name, &options)? {
            Deleted::Waiting(object) => {
                let mut body = String::new();
                endpoint.write_json(&object, &mut body);
                body
            }
            Deleted::Gone(object) => {
                let mut details = json!({"name": object.key.name.as_ref(), "kind": endpoint.resource.plural,
                    "uid": object.uid.to_string()});
                if !endpoint.resource.group.is_empty() {
                    crate::json::set(&mut details, &["group"], endpoint.resource.group.as_str());
                }
                json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
                    .to_string()
            }
        };
        Ok(Answer::ok(body))
    }

    fn delete_collection(
        &self,
        state: &mut State,
        endpoint: &Endpoint,
        path: &ResourcePath,
    ) -> Result<Answer, ApiError> {
        let options = self.delete_options()?;
        let selection = Selection::parse(endpoint, &path.namespace, &self.query)?;
        let body = state.list(endpoint, &selection, &Query::default(), Form::Plain)?;
        let objects: Vec<_> = state
            .store
            .list(endpoint.resource.id, &path.namespace)
            .filter(|object| selection.matches(object))
            .map(|object| object.key.clone())
            .collect();
        for key in objects {
            match state.delete(endpoint, &key.namespace, &key.name, &options) {
                Err(error) if error.code != 404 => return Err(error),
                _ => {}
            }
        }
        Ok(Answer::ok(body))
    }

    fn scale(&self, state: &mut State, endpoint: &Endpoint, path: &ResourcePath) -> Result<Answer, ApiError> {
        let object = state.get(endpoint, &path.namespace, &path.name)?.clone();
        let scale = if self.method == http::Method::GET {
            state.read_scale(endpoint, &object)?
        } else {
            let patch = self.method == http::Method::PATCH;
            let options = WriteOptions::parse(&self.query, &self.user_agent, false)?;
            let given =
                body::parse_json(&self.body).map_err(|error| ApiError::bad_request(error.to_string()))?;
            let wanted = if patch {
                let mut scale = match state.read_scale(endpoint, &object) {
                    Ok(scale) => scale,
                    Err(_) => json!({"spec": {}}),
                };
                match PatchType::parse(&self.content_type, false)? {
                    PatchType::Json => crate::patch::json_patch(&mut scale, &given.value)?,
                    _ => crate::patch::merge_patch(&mut scale, &given.value),
                }
                scale
            } else {
                given.value
            };
            state.write_scale(endpoint, &path.namespace, &path.name, &wanted, &options)?
        };
        Ok(Answer::ok(scale.to_string()))
    }
}

/// Stands among an answer's warnings for "this is aggregated discovery"; the server turns it into a content type.
pub(crate) const AGGREGATED_MARK: &str = "\u{0}aggregated";
