//! Deploy keys, variables and access tokens of a project.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Method, StatusCode};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use serde_json::{Value, json};

use super::projects::Project;
use super::wire::{Asked, Reply};

/// The shortest value that can be masked.
const MASKED_MIN: usize = 8;
/// For how many days a token is good at most.
const TOKEN_DAYS_MAX: i64 = 365;

/// A deploy key.
pub(super) struct Key {
    id: u64,
    title: String,
    key: String,
    can_push: bool,
}

/// A variable of pipelines.
pub(super) struct Variable {
    key: String,
    scope: String,
    shown: Value,
}

/// An access token. Its text is not kept.
pub(super) struct Token {
    id: u64,
    name: String,
    expires_at: Date,
    is_revoked: bool,
}

impl Project {
    pub(super) fn route_members(&mut self, asked: &Asked, rest: &[&str], new_id: u64) -> Reply {
        let number = |text: &str| text.parse::<u64>().unwrap_or_default();
        match (&asked.method, rest) {
            (&Method::GET, ["deploy_keys"]) => Reply::page(asked, self.keys.iter().map(Key::show).collect()),
            (&Method::POST, ["deploy_keys"]) => self.add_key(asked, new_id),
            (&Method::DELETE, ["deploy_keys", id]) => {
                let before = self.keys.len();
                self.keys.retain(|key| key.id != number(id));
                found(before != self.keys.len(), "Deploy Key")
            }
            (&Method::GET, ["variables"]) => {
                let shown = self.variables.iter().map(|variable| variable.shown.clone());
                Reply::page(asked, shown.collect())
            }
            (&Method::POST, ["variables"]) => self.add_variable(asked),
            (method @ (&Method::PUT | &Method::DELETE), ["variables", key]) => {
                self.change_variable(asked, key, method == Method::DELETE)
            }
            (&Method::GET, ["access_tokens"]) => {
                Reply::page(asked, self.tokens.iter().map(Token::show).collect())
            }
            (&Method::POST, ["access_tokens"]) => self.add_token(asked, new_id),
            (&Method::DELETE, ["access_tokens", id]) => {
                let token = self
                    .tokens
                    .iter_mut()
                    .find(|token| token.id == number(id) && !token.is_revoked);
                let is_found = token.is_some();
                if let Some(token) = token {
                    token.is_revoked = true;
                }
                found(is_found, "Personal Access Token")
            }
            _ => Reply::not_found(""),
        }
    }

    pub(super) fn expire_tokens(&mut self) {
        for token in &mut self.tokens {
            token.expires_at = today();
        }
    }

    fn add_key(&mut self, asked: &Asked, id: u64) -> Reply {
        let (Some(title), Some(key)) = (asked.text("title"), asked.text("key")) else {
            return Reply::refused("title, key is missing");
        };
        if !is_key(key) {
            return Reply::invalid(
                "deploy_key.key",
                "is invalid. SSH key type must be one of the supported types",
            );
        }
        if self.keys.iter().any(|present| present.key == key) {
            return Reply::invalid("deploy_key.fingerprint_sha256", "has already been taken");
        }
        let key = Key {
            id,
            title: title.to_owned(),
            key: key.to_owned(),
            can_push: asked.flag("can_push").unwrap_or_default(),
        };
        let shown = key.show();
        self.keys.push(key);
        Reply::created(shown)
    }

    fn add_variable(&mut self, asked: &Asked) -> Reply {
        let (Some(key), Some(_)) = (asked.text("key"), asked.text("value")) else {
            return Reply::refused("key, value is missing");
        };
        let scope = asked.text("environment_scope").unwrap_or("*");
        if self
            .variables
            .iter()
            .any(|variable| variable.key == key && variable.scope == scope)
        {
            return Reply::invalid("key", &format!("({key}) has already been taken"));
        }
        let mut variable = Variable {
            key: key.to_owned(),
            scope: scope.to_owned(),
            shown: json!({
                "key": key, "environment_scope": scope, "variable_type": "env_var", "value": "",
                "masked": false, "protected": false, "raw": false, "description": null, "hidden": false,
            }),
        };
        match variable.change(asked) {
            Err(refusal) => refusal,
            Ok(()) => {
                let shown = variable.shown.clone();
                self.variables.push(variable);
                Reply::created(shown)
            }
        }
    }

    fn change_variable(&mut self, asked: &Asked, key: &str, deletes: bool) -> Reply {
        let scope = asked.query.get("filter[environment_scope]");
        let matches: Vec<usize> = self
            .variables
            .iter()
            .enumerate()
            .filter(|(_, variable)| variable.key == key && scope.is_none_or(|scope| *scope == variable.scope))
            .map(|(at, _)| at)
            .collect();
        let [at] = matches.as_slice() else {
            if matches.is_empty() {
                return Reply::not_found("Variable");
            }
            let message = "There are multiple variables with provided parameters. Please use \
                           'filter[environment_scope]'";
            return Reply::new(StatusCode::CONFLICT, json!({ "message": message }));
        };
        if deletes {
            self.variables.remove(*at);
            return Reply::gone();
        }
        match self.variables[*at].change(asked) {
            Err(refusal) => refusal,
            Ok(()) => Reply::ok(self.variables[*at].shown.clone()),
        }
    }

    fn add_token(&mut self, asked: &Asked, id: u64) -> Reply {
        let (Some(name), Some(scopes)) = (asked.text("name"), asked.body["scopes"].as_array()) else {
            return Reply::refused("name, scopes is missing");
        };
        if scopes.is_empty() {
            return Reply::refused("scopes can't be blank");
        }
        let Some(expires_at) = asked
            .text("expires_at")
            .and_then(|text| text.parse::<Date>().ok())
        else {
            return Reply::refused("expires_at is missing");
        };
        let last = today().saturating_add(TOKEN_DAYS_MAX.days());
        if expires_at <= today() || expires_at > last {
            return Reply::refused(format!("Expiration date must be before {last}"));
        }
        let token = Token {
            id,
            name: name.to_owned(),
            expires_at,
            is_revoked: false,
        };
        let mut shown = token.show();
        shown["token"] = format!("glpat-{id}-of-{name}").into();
        self.tokens.push(token);
        Reply::created(shown)
    }
}

impl Key {
    pub(super) fn named(&self) -> (String, Value) {
        (
            self.title.clone(),
            json!({ "key": self.key, "can_push": self.can_push }),
        )
    }

    fn show(&self) -> Value {
        json!({ "id": self.id, "title": self.title, "key": self.key, "can_push": self.can_push })
    }
}

impl Variable {
    pub(super) fn named(&self) -> (String, Value) {
        let shown = |name: &str| self.shown[name].clone();
        let options = json!({
            "value": shown("value"), "masked": shown("masked"), "protected": shown("protected"), "raw": shown("raw"),
        });
        (self.key.clone(), options)
    }

    fn change(&mut self, asked: &Asked) -> Result<(), Reply> {
        let mut shown = self.shown.clone();
        for name in ["value", "masked", "protected", "raw", "description"] {
            if !asked.body[name].is_null() {
                shown[name] = asked.body[name].clone();
            }
        }
        let value = shown["value"].as_str().unwrap_or_default();
        let can_be_masked = value.len() >= MASKED_MIN && !value.contains(char::is_whitespace);
        if shown["masked"] == true && !can_be_masked {
            return Err(Reply::invalid("value", "is invalid"));
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if self.key.is_empty() || !self.key.chars().all(is_name) {
            return Err(Reply::invalid("key", "can contain only letters, digits and '_'."));
        }
        self.shown = shown;
        Ok(())
    }
}

impl Token {
    /// Its name, if it is good for anything.
    pub(super) fn active_name(&self) -> Option<&str> {
        (!self.is_revoked && self.expires_at > today()).then_some(self.name.as_str())
    }

    fn show(&self) -> Value {
        let is_active = !self.is_revoked && self.expires_at > today();
        json!({
            "id": self.id, "name": self.name, "expires_at": self.expires_at.to_string(),
            "revoked": self.is_revoked, "active": is_active,
        })
    }
}

fn found(is_found: bool, what: &str) -> Reply {
    if is_found {
        Reply::gone()
    } else {
        Reply::not_found(what)
    }
}

/// Whether a line is an algorithm and a key that begins with its name.
fn is_key(line: &str) -> bool {
    let mut parts = line.split_whitespace();
    let (Some(kind), Some(text)) = (parts.next(), parts.next()) else {
        return false;
    };
    let Ok(bytes) = STANDARD.decode(text) else {
        return false;
    };
    bytes.get(4..4 + kind.len()) == Some(kind.as_bytes())
}

#[expect(
    clippy::disallowed_methods,
    reason = "the clock of another's server, which nobody here sets"
)]
fn today() -> Date {
    Timestamp::now().to_zoned(TimeZone::UTC).date()
}
