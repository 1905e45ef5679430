//! The Git repository of a tenant or cluster: what callers see, and where the objects have it.

use std::collections::BTreeMap;

use evenkeel_operator::resources::{DeployKey, GitRepoTemplate, RepoType};
use serde::{Deserialize, Serialize};

use super::document::empty_is_none;
use super::failure::Failure;

/// Title of the agent's deploy key.
const STEWARD_KEY: &str = "steward";

/// A Git repository, as callers see it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct GitRepoDocument {
    /// Address to clone from.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "empty_is_none")]
    pub(super) url: Option<String>,
    /// Who looks after it.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub(super) kind: Option<RepoType>,
    /// The agent's public key: `<type> <key>`.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "empty_is_none")]
    pub(super) deploy_key: Option<String>,
    /// Keys of the Git host.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "empty_is_none")]
    pub(super) host_keys: Option<String>,
    /// Branch, tag or commit.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "empty_is_none")]
    pub(super) revision: Option<String>,
}

impl GitRepoDocument {
    /// What `url` and `template` of an object say.
    pub(super) fn of(url: Option<&String>, template: Option<&GitRepoTemplate>) -> Self {
        let key = template.and_then(|template| template.deploy_keys.get(STEWARD_KEY));
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Self {
            url: url.filter(|url| !url.is_empty()).cloned(),
            kind: template.and_then(|template| template.repo_type),
            deploy_key: key.map(|key| format!("{} {}", text(&key.kind), text(&key.key))),
            ..Self::default()
        }
    }

    /// Writes what differs from `old` to `url` and `template`. All else in the template stays.
    pub(super) fn write(
        &self,
        old: &Self,
        url: &mut Option<String>,
        template: &mut Option<GitRepoTemplate>,
    ) -> Result<(), Failure> {
        if self.url != old.url {
            url.clone_from(&self.url);
        }
        let mut wanted = template.take().unwrap_or_default();
        if (&self.url, self.kind) != (&old.url, old.kind) {
            wanted.repo_type = self.kind;
            (wanted.path, wanted.repo_name) = (None, None);
            if let (Some(url), None | Some(RepoType::Auto)) = (&self.url, self.kind) {
                let place = Place::of(url)?;
                wanted.repo_type = Some(RepoType::Auto);
                (wanted.path, wanted.repo_name) = (Some(place.path), Some(place.name));
            }
        }
        if self.deploy_key != old.deploy_key {
            self.write_key(&mut wanted.deploy_keys)?;
        }
        *template = (wanted != GitRepoTemplate::default()).then_some(wanted);
        Ok(())
    }

    fn write_key(&self, keys: &mut BTreeMap<String, DeployKey>) -> Result<(), Failure> {
        let Some(text) = &self.deploy_key else {
            keys.remove(STEWARD_KEY);
            return Ok(());
        };
        let illegal =
            || Failure::Invalid("Illegal deploy key format. Expected '<type> <public key>'".to_owned());
        let (kind, public) = text.trim().split_once(' ').ok_or_else(illegal)?;
        if kind.is_empty() || public.is_empty() || public.contains(char::is_whitespace) {
            return Err(illegal());
        }
        let key = keys.entry(STEWARD_KEY.to_owned()).or_default();
        key.kind = Some(kind.to_owned());
        key.key = Some(public.to_owned());
        Ok(())
    }
}

/// Where a repository lies at its host.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    path: String,
    name: String,
}

impl Place {
    /// Takes an address apart: a URL, or `[user@]host:path` as `scp` and Git have it.
    fn of(url: &str) -> Result<Self, Failure> {
        let path = match url.split_once("://") {
            Some((_, rest)) => rest.find('/').map_or("", |start| &rest[start..]),
            None => match url.split_once(':') {
                Some((host, path)) if !host.is_empty() && !host.contains('/') => path,
                _ => url,
            },
        };
        let is_address = url.contains(':') && !url.contains(|c: char| c.is_whitespace() || "?#%".contains(c));
        let mut parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let name = parts.pop().unwrap_or_default();
        let name = name.strip_suffix(".git").unwrap_or(name);
        if !is_address || name.is_empty() || parts.is_empty() {
            return Err(Failure::Invalid(format!(
                "failed to create git repo template: failed to parse git repo URL, expected 2+ path elements in '{path}'"
            )));
        }
        Ok(Self {
            path: parts.join("/"),
            name: name.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        for (url, path, name) in [
            (
                "ssh://git@gitlab.example.org/group/sub/t-api.git",
                "group/sub",
                "t-api",
            ),
            (
                "ssh://git@gitlab.example.org:2222/group/a.github.io.git",
                "group",
                "a.github.io",
            ),
            ("https://gitlab.example.org/group/a", "group", "a"),
            ("git@gitlab.example.org:group/sub/a.git", "group/sub", "a"),
            ("gitlab.example.org:/group/a.git", "group", "a"),
        ] {
            let place = Place::of(url).unwrap();
            assert_eq!((place.path.as_str(), place.name.as_str()), (path, name), "{url}");
        }
        for odd in [
            "nonsense",
            "a/b/c",
            "ssh://git@elsewhere/u.git",
            "ssh://git@elsewhere",
            "git@host:a.git",
            "git@host:g/.git",
            "ssh://h/a b/c",
            "ssh://h/a/b?c",
        ] {
            assert!(Place::of(odd).is_err(), "{odd}");
        }
    }
}
