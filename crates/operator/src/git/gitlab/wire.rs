//! What GitLab's answers hold.

use evenkeel_core::Sensitive;
use jiff::civil::Date;
use serde_json::Value;

use crate::git::{
    NewToken, PresentKey, PresentToken, Project, ProjectId, PublicKey, RepoPath, Variable, VariableOptions,
};

pub(super) fn id(body: &Value) -> Result<u64, String> {
    body["id"].as_u64().ok_or_else(|| "it holds no id".to_owned())
}

fn text<'a>(body: &'a Value, name: &str) -> Result<&'a str, String> {
    body[name].as_str().ok_or_else(|| format!("it holds no {name}"))
}

/// Whether a project was deleted, and is kept for some days in case somebody wants it back.
pub(super) fn is_going(body: &Value) -> bool {
    ["marked_for_deletion_on", "marked_for_deletion_at"]
        .iter()
        .any(|name| !body[*name].is_null())
}

pub(super) fn project(body: &Value) -> Result<Project, String> {
    let (group, name) = text(body, "path_with_namespace")?
        .rsplit_once('/')
        .ok_or("a project lies in no group")?;
    // One without a commit names the branch that it would begin.
    let is_empty = body["empty_repo"].as_bool().unwrap_or_default();
    let branch = body["default_branch"]
        .as_str()
        .filter(|branch| !branch.is_empty() && !is_empty);
    Ok(Project {
        id: ProjectId(id(body)?),
        path: RepoPath::new(group, name).map_err(|error| error.to_string())?,
        description: body["description"].as_str().unwrap_or_default().to_owned(),
        is_archived: body["archived"].as_bool().unwrap_or_default(),
        default_branch: branch.map(str::to_owned),
    })
}

pub(super) fn key(body: &Value) -> Result<PresentKey, String> {
    Ok(PresentKey {
        id: id(body)?,
        title: body["title"].as_str().unwrap_or_default().to_owned(),
        key: PublicKey::parse(text(body, "key")?).map_err(|error| error.to_string())?,
        may_write: body["can_push"].as_bool().unwrap_or_default(),
    })
}

pub(super) fn variable(body: &Value) -> Result<(String, Variable), String> {
    let flag = |name: &str| body[name].as_bool().unwrap_or_default();
    let variable = Variable {
        // A hidden one has none.
        value: body["value"]
            .as_str()
            .map(|value| Sensitive::new(value.to_owned())),
        is_masked: flag("masked"),
        options: Some(VariableOptions {
            description: body["description"].as_str().unwrap_or_default().to_owned(),
            is_protected: flag("protected"),
            is_raw: flag("raw"),
        }),
    };
    Ok((text(body, "key")?.to_owned(), variable))
}

fn day(body: &Value) -> Result<Option<Date>, String> {
    let Some(text) = body["expires_at"].as_str() else {
        return Ok(None);
    };
    let day = text
        .parse()
        .map_err(|error| format!("expires_at is {text:?}: {error}"))?;
    Ok(Some(day))
}

pub(super) fn token(body: &Value) -> Result<PresentToken, String> {
    Ok(PresentToken {
        id: id(body)?,
        name: body["name"].as_str().unwrap_or_default().to_owned(),
        expires_on: day(body)?,
        is_active: body["active"].as_bool().unwrap_or_default()
            && !body["revoked"].as_bool().unwrap_or_default(),
    })
}

pub(super) fn new_token(body: &Value, asked: Date) -> Result<NewToken, String> {
    Ok(NewToken {
        id: id(body)?,
        secret: Sensitive::new(text(body, "token")?.to_owned()),
        expires_on: day(body)?.unwrap_or(asked),
    })
}

/// Whether an answer holds one of these texts, wherever it says what is wrong.
pub(super) fn says(body: &Value, known: &[&str]) -> bool {
    match body {
        Value::String(text) => known.iter().any(|known| text.contains(known)),
        Value::Array(items) => items.iter().any(|item| says(item, known)),
        Value::Object(fields) => fields.values().any(|value| says(value, known)),
        _ => false,
    }
}
