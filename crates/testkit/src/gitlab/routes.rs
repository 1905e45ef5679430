//! Which request does what.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use serde_json::{Value, json};

use super::projects::Project;
use super::wire::{Asked, Reply};
use super::{Site, State, TOKEN};

pub(super) async fn answer(state: &State, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let (parts, body) = request.into_parts();
    let header = |name: &str| {
        parts
            .headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    };
    let is_known =
        header("private-token") == TOKEN || header("authorization").strip_prefix("Bearer ") == Some(TOKEN);
    if !is_known {
        return Reply::unauthorized().into_response();
    }
    let body = body
        .collect()
        .await
        .map(|body| body.to_bytes())
        .unwrap_or_default();
    let query = parts.uri.query().unwrap_or_default();
    let asked = Asked::new(parts.method, parts.uri.path(), query, &body);
    route(state, &asked).into_response()
}

fn route(state: &State, asked: &Asked) -> Reply {
    let mut site = state.site();
    let segments: Vec<&str> = asked.segments.iter().map(String::as_str).collect();
    match (&asked.method, segments.as_slice()) {
        (&Method::GET, ["namespaces", path]) => site.namespace(path),
        (&Method::POST, ["groups"]) => site.create_group(asked),
        (&Method::POST, ["projects"]) => site.create_project(asked),
        (_, ["projects", id, rest @ ..]) => {
            let delays = state.delays_deletions.load(Ordering::SeqCst);
            site.route_project(asked, id, rest, delays)
        }
        _ => Reply::not_found(""),
    }
}

/// The group that a transfer names, by number or path.
fn target<'a>(groups: &'a BTreeMap<u64, String>, asked: &Asked) -> Option<&'a str> {
    let namespace = &asked.body["namespace"];
    let number = namespace.as_u64().or_else(|| namespace.as_str()?.parse().ok());
    let found = match number {
        Some(number) => groups.get(&number),
        None => groups
            .values()
            .find(|group| Some(group.as_str()) == namespace.as_str()),
    };
    found.map(String::as_str)
}

impl Site {
    fn namespace(&self, path: &str) -> Reply {
        let found = self
            .groups
            .iter()
            .find(|(id, full)| full.eq_ignore_ascii_case(path) || id.to_string() == path);
        match found {
            Some((id, full)) => Reply::ok(json!({ "id": id, "kind": "group", "full_path": full })),
            None => Reply::not_found("Namespace"),
        }
    }

    fn create_group(&mut self, asked: &Asked) -> Reply {
        let (Some(name), Some(_)) = (asked.text("path"), asked.text("name")) else {
            return Reply::refused("name, path is missing");
        };
        let full = match &asked.body["parent_id"] {
            Value::Null => name.to_owned(),
            parent => match parent.as_u64().and_then(|id| self.groups.get(&id)) {
                Some(parent) => format!("{parent}/{name}"),
                None => return Reply::not_found("Group"),
            },
        };
        if name.contains('/') {
            return Reply::invalid("path", "can contain only letters, digits, '_', '-' and '.'");
        }
        if self
            .groups
            .values()
            .any(|group| group.eq_ignore_ascii_case(&full))
        {
            return Reply::refused("Failed to save group {:path=>[\"has already been taken\"]}");
        }
        let id = self.next_id();
        self.groups.insert(id, full.clone());
        Reply::created(json!({ "id": id, "full_path": full, "visibility": asked.body["visibility"] }))
    }

    fn create_project(&mut self, asked: &Asked) -> Reply {
        let Some(path) = asked.text("path").or_else(|| asked.text("name")) else {
            return Reply::new(
                StatusCode::BAD_REQUEST,
                json!({ "error": "name, path are missing, at least one parameter must be provided" }),
            );
        };
        let Some(group) = asked.body["namespace_id"]
            .as_u64()
            .and_then(|id| self.groups.get(&id))
        else {
            return Reply::invalid("namespace", "is not valid");
        };
        let project = Project::new(group, path, asked);
        let is_taken = self
            .projects
            .values()
            .any(|other| other.full_path().eq_ignore_ascii_case(&project.full_path()));
        if is_taken {
            return Reply::refused(json!({
                "project_namespace.name": ["has already been taken"],
                "name": ["has already been taken"], "path": ["has already been taken"],
            }));
        }
        let id = self.next_id();
        self.moved.remove(&project.full_path());
        let shown = project.show(id);
        self.projects.insert(id, project);
        Reply::created(shown)
    }

    /// What is said of a change of name or group when another project has the place.
    fn refuses_move(&self, asked: &Asked, id: u64, rest: &[&str]) -> Option<Reply> {
        let project = self.projects.get(&id)?;
        let (place, reply) = match (&asked.method, rest) {
            (&Method::PUT, []) => (
                format!("{}/{}", project.group(), asked.text("path")?),
                Reply::refused(json!({ "path": ["has already been taken"] })),
            ),
            (&Method::PUT, ["transfer"]) => (
                format!("{}/{}", target(&self.groups, asked)?, project.path()),
                Reply::refused(
                    "Failed to transfer project Project with same name or path in target namespace already exists",
                ),
            ),
            _ => return None,
        };
        let is_taken = self
            .projects
            .iter()
            .any(|(other, project)| *other != id && project.full_path().eq_ignore_ascii_case(&place));
        is_taken.then_some(reply)
    }

    fn find(&self, id: &str) -> Option<u64> {
        if let Ok(id) = id.parse() {
            return self.projects.contains_key(&id).then_some(id);
        }
        self.projects
            .iter()
            .find(|(_, project)| project.full_path().eq_ignore_ascii_case(id))
            .map(|(id, _)| *id)
    }

    fn route_project(&mut self, asked: &Asked, id: &str, rest: &[&str], delays: bool) -> Reply {
        let Some(id) = self.find(id) else {
            return match self.moved.get(id) {
                Some(id) => Reply::moved(format!("/api/v4/projects/{id}")),
                None => Reply::not_found("Project"),
            };
        };
        let new_id = self.next_id();
        if let Some(reply) = self.refuses_move(asked, id, rest) {
            return reply;
        }
        let groups = self.groups.clone();
        let Some(project) = self.projects.get_mut(&id) else {
            return Reply::not_found("Project");
        };
        let is_allowed_when_archived = match asked.method {
            Method::GET => true,
            Method::DELETE => rest.is_empty(),
            _ => rest == ["unarchive"] || rest == ["archive"],
        };
        if project.is_archived && !is_allowed_when_archived {
            return Reply::forbidden();
        }
        match (&asked.method, rest) {
            (&Method::GET, []) => Reply::ok(project.show(id)),
            (&Method::PUT, []) => {
                let before = project.full_path();
                let reply = project.edit(id, asked);
                if project.full_path() != before {
                    self.moved.insert(before, id);
                }
                reply
            }
            (&Method::PUT, ["transfer"]) => match target(&groups, asked) {
                Some(group) => {
                    let before = project.full_path();
                    project.transfer(group);
                    self.moved.insert(before, id);
                    Reply::ok(project.show(id))
                }
                None => Reply::not_found("Namespace"),
            },
            (&Method::DELETE, []) => {
                if delays {
                    project.is_going = true;
                } else {
                    self.projects.remove(&id);
                }
                Reply::new(StatusCode::ACCEPTED, json!({ "message": "202 Accepted" }))
            }
            (&Method::POST, ["archive"]) => {
                project.is_archived = true;
                Reply::created(project.show(id))
            }
            (&Method::POST, ["unarchive"]) => {
                project.is_archived = false;
                Reply::created(project.show(id))
            }
            (_, ["repository", rest @ ..]) => project.route_repository(asked, rest),
            (_, rest) => project.route_members(asked, rest, new_id),
        }
    }
}
