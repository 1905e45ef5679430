//! A project and what is said of it.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::commits::Branch;
use super::members::{Key, Token, Variable};
use super::wire::{Asked, Reply};

/// A project.
pub(in crate::gitlab) struct Project {
    group: String,
    path: String,
    description: Value,
    visibility: Value,
    pub(super) is_archived: bool,
    pub(super) is_going: bool,
    pub(super) default_branch: String,
    pub(super) branches: BTreeMap<String, Branch>,
    /// How many commits there were: the number of each is its name.
    pub(super) commits: u64,
    pub(super) keys: Vec<Key>,
    pub(super) variables: Vec<Variable>,
    pub(super) tokens: Vec<Token>,
}

impl Project {
    pub(super) fn new(group: &str, path: &str, asked: &Asked) -> Self {
        Self {
            group: group.to_owned(),
            path: path.to_owned(),
            description: asked.body["description"].clone(),
            visibility: asked.body["visibility"].clone(),
            is_archived: false,
            is_going: false,
            default_branch: "main".to_owned(),
            branches: BTreeMap::new(),
            commits: 0,
            keys: Vec::new(),
            variables: Vec::new(),
            tokens: Vec::new(),
        }
    }

    pub(in crate::gitlab) fn full_path(&self) -> String {
        format!("{}/{}", self.group, self.path)
    }

    /// Another group.
    pub(super) fn transfer(&mut self, group: &str) {
        group.clone_into(&mut self.group);
    }

    pub(super) fn group(&self) -> &str {
        &self.group
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn show(&self, id: u64) -> Value {
        let mut shown = json!({
            "id": id, "name": self.path, "path": self.path, "path_with_namespace": self.full_path(),
            "description": self.description, "visibility": self.visibility, "archived": self.is_archived,
            "default_branch": self.default_branch, "empty_repo": self.branches.is_empty(),
            "namespace": { "full_path": self.group },
        });
        if self.is_going {
            shown["marked_for_deletion_on"] = "2026-01-01".into();
        }
        shown
    }

    /// Everything in it, for a test to compare.
    pub(in crate::gitlab) fn contents(&self) -> Value {
        let branch = self.branches.get(&self.default_branch);
        json!({
            "description": self.description,
            "archived": self.is_archived,
            "keys": self.keys.iter().map(Key::named).collect::<Map<_, _>>(),
            "files": branch.map(Branch::texts).unwrap_or_default(),
            "variables": self.variables.iter().map(Variable::named).collect::<Map<_, _>>(),
            "tokens": self.tokens.iter().filter_map(Token::active_name).collect::<Vec<_>>(),
        })
    }

    pub(super) fn edit(&mut self, id: u64, asked: &Asked) -> Reply {
        if let Some(description) = asked.text("description") {
            self.description = description.into();
        }
        if let Some(path) = asked.text("path") {
            path.clone_into(&mut self.path);
        }
        if let Some(branch) = asked.text("default_branch") {
            if !self.branches.contains_key(branch) {
                return Reply::refused(json!({ "base": ["Could not set the default branch"] }));
            }
            branch.clone_into(&mut self.default_branch);
        }
        Reply::ok(self.show(id))
    }
}
