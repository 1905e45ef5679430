//! The readiness rules of one component, compiled.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use evenkeel_core::{Digest, GroupKind, GroupVersionKind, ReadinessRule};
use serde_json::Value;

use super::expression::{Expression, Outcome, Seen};
use super::{Object, Patience, Readiness, Surroundings, built_in, forestalled};

/// The longest message of a rule that is told, in characters.
const MESSAGE_MAX: usize = 300;
/// How many sets of rules a process keeps compiled; a fleet runs the same few in many clusters.
const KEPT_MAX: usize = 500;

/// Compiled sets of rules by seal.
static KEPT: LazyLock<Mutex<Kept>> = LazyLock::new(Mutex::default);

type Kept = HashMap<String, Arc<Compiled>>;

fn kept() -> MutexGuard<'static, Kept> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The readiness rules of one component. Cheap to clone; no rules by default, and then every kind follows its own.
#[derive(Clone, Default)]
pub struct ReadinessRules(Option<Arc<Compiled>>);

struct Compiled {
    rules: Vec<Rule>,
    /// Tells one set of rules from another.
    seal: String,
}

struct Rule {
    kind: GroupKind,
    name: Option<String>,
    ready: Expression,
    failed: Option<Expression>,
    message: Option<Expression>,
}

/// What is wrong with one expression of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleProblem {
    /// The field, like `readiness[0].ready`.
    pub field: String,
    /// Where in the expression, from 1.
    pub line: usize,
    /// Where in that line, from 1.
    pub column: usize,
    /// What is wrong and what was expected.
    pub message: String,
}

impl fmt::Display for RuleProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            field,
            line,
            column,
            message,
        } = self;
        write!(f, "{field}: line {line}, column {column}: {message}")
    }
}

impl fmt::Debug for ReadinessRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReadinessRules").field(&self.seal()).finish()
    }
}

impl PartialEq for ReadinessRules {
    fn eq(&self, other: &Self) -> bool {
        self.seal() == other.seal()
    }
}

impl Eq for ReadinessRules {}

impl ReadinessRules {
    /// Compiles the rules of a component.
    ///
    /// # Errors
    /// Every expression that cannot be read, names what does not exist, or may cost too much.
    pub fn compile(rules: &[ReadinessRule]) -> Result<Self, Vec<RuleProblem>> {
        if rules.is_empty() {
            return Ok(Self::default());
        }
        let seal = Self::seal_of(rules);
        if let Some(known) = kept().get(&seal) {
            return Ok(Self(Some(Arc::clone(known))));
        }
        let mut problems = Vec::new();
        let mut compiled = Vec::with_capacity(rules.len());
        for (index, rule) in rules.iter().enumerate() {
            let mut expression = |field: &str, source: &str| match Expression::compile(source) {
                Ok(expression) => Some(expression),
                Err(problem) => {
                    problems.push(RuleProblem {
                        field: format!("readiness[{index}].{field}"),
                        line: problem.line,
                        column: problem.column,
                        message: problem.message,
                    });
                    None
                }
            };
            let ready = expression("ready", &rule.ready);
            let failed = rule.failed.as_deref().map(|source| expression("failed", source));
            let message = rule
                .message
                .as_deref()
                .map(|source| expression("message", source));
            if let Some(ready) = ready {
                compiled.push(Rule {
                    kind: GroupVersionKind::from_api_version(&rule.api_version, rule.kind.clone())
                        .group_kind(),
                    name: rule.name.clone(),
                    ready,
                    failed: failed.flatten(),
                    message: message.flatten(),
                });
            }
            for (field, text) in [("apiVersion", &rule.api_version), ("kind", &rule.kind)] {
                if text.is_empty() {
                    problems.push(RuleProblem {
                        field: format!("readiness[{index}].{field}"),
                        line: 1,
                        column: 1,
                        message: "expected a text, found none".to_owned(),
                    });
                }
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let compiled = Arc::new(Compiled {
            rules: compiled,
            seal: seal.clone(),
        });
        let mut kept = kept();
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert(seal, Arc::clone(&compiled));
        Ok(Self(Some(compiled)))
    }

    /// `version` told apart by the rules under which an object was found good at it.
    pub(crate) fn sealed<'a>(&self, version: &'a str) -> Cow<'a, str> {
        if self.is_empty() {
            Cow::Borrowed(version)
        } else {
            Cow::Owned(format!("{version} {}", self.seal()))
        }
    }

    /// The [`ReadinessRules::seal`] of rules, without compiling them.
    pub fn seal_of(rules: &[ReadinessRule]) -> String {
        if rules.is_empty() {
            return String::new();
        }
        let mut parts: Vec<&str> = Vec::new();
        for rule in rules {
            let name = rule.name.as_deref();
            parts.extend([
                rule.api_version.as_str(),
                rule.kind.as_str(),
                if name.is_some() { "named" } else { "" },
            ]);
            parts.push(name.unwrap_or_default());
            parts.extend(rule.expressions().flat_map(|(field, text)| [field, text]));
            parts.push("");
        }
        Digest::of_parts(parts).hex()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// A text that is equal for equal rules alone; empty without rules.
    pub fn seal(&self) -> &str {
        self.0.as_ref().map_or("", |compiled| &compiled.seal)
    }

    fn rule(&self, kind: &GroupKind, name: &str) -> Option<&Rule> {
        let rules = &self.0.as_ref()?.rules;
        // A rule of one object wins over one of its kind.
        let of = |rule: &&Rule| rule.kind == *kind && rule.name.as_deref().is_none_or(|only| only == name);
        rules.iter().filter(of).max_by_key(|rule| rule.name.is_some())
    }

    /// Whether an object has a rule here.
    pub(crate) fn covers(&self, kind: &GroupKind, name: &str) -> bool {
        self.rule(kind, name).is_some()
    }

    /// The verdict on `object`, a whole object as the server gave it: by its rule here, else by the rule of its kind.
    pub fn judge(&self, object: &Value, patience: Patience) -> Readiness {
        self.judge_in(object, &patience.into())
    }

    pub(crate) fn judge_in(&self, object: &Value, surroundings: &Surroundings) -> Readiness {
        let seen = Object(object);
        if let Some(verdict) = forestalled(&seen) {
            return verdict;
        }
        match self.rule(
            &seen.group_kind(),
            seen.text("/metadata/name").unwrap_or_default(),
        ) {
            Some(rule) => rule.judge(object),
            None => built_in(&seen, surroundings),
        }
    }
}

impl Rule {
    fn judge(&self, object: &Value) -> Readiness {
        let seen = Seen::of(object);
        let said = || match self.message.as_ref().map(|message| message.evaluate(&seen)) {
            Some(Outcome::Text(text)) => Some(text.chars().take(MESSAGE_MAX).collect::<String>()),
            _ => None,
        };
        let wrong = |field: &str, why: &str| Readiness::Failed(format!("readiness rule, {field}: {why}"));
        match self.failed.as_ref().map(|failed| failed.evaluate(&seen)) {
            Some(Outcome::Bool(true)) => {
                return Readiness::Failed(said().unwrap_or_else(|| "its readiness rule says so".to_owned()));
            }
            Some(Outcome::Wrong(why)) => return wrong("failed", &why),
            Some(Outcome::Text(_)) => return wrong("failed", "it gives a value of type string"),
            None | Some(Outcome::Bool(false) | Outcome::Absent(_)) => {}
        }
        match self.ready.evaluate(&seen) {
            Outcome::Bool(true) => Readiness::Ready,
            Outcome::Bool(false) => Readiness::InProgress(
                said().unwrap_or_else(|| "its readiness rule is not met yet".to_owned()),
            ),
            Outcome::Absent(what) => Readiness::InProgress(said().unwrap_or(what)),
            Outcome::Text(_) => wrong("ready", "it gives a value of type string"),
            Outcome::Wrong(why) => wrong("ready", &why),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rule(kind: &str, name: Option<&str>, ready: &str) -> ReadinessRule {
        ReadinessRule {
            api_version: "ex.io/v1".to_owned(),
            kind: kind.to_owned(),
            name: name.map(str::to_owned),
            ready: ready.to_owned(),
            failed: Some("status.state == 'Broken'".to_owned()),
            message: Some("status.state + ' since ' + status.since".to_owned()),
        }
    }

    fn backend(state: &str) -> Value {
        json!({"apiVersion": "ex.io/v1beta1", "kind": "Backend", "metadata": {"name": "b", "generation": 2},
               "status": {"state": state, "since": "noon", "observedGeneration": 2}})
    }

    #[test]
    fn a_rule_decides_for_its_kind() {
        let rules =
            ReadinessRules::compile(&[rule("Backend", None, "status.state == 'Ready'")]).expect("rules");
        let judge = |object: &Value| rules.judge(object, Patience::Settled);
        assert_eq!(judge(&backend("Ready")), Readiness::Ready);
        assert_eq!(
            judge(&backend("Busy")),
            Readiness::InProgress("Busy since noon".to_owned())
        );
        assert_eq!(
            judge(&backend("Broken")),
            Readiness::Failed("Broken since noon".to_owned())
        );
        let mut unseen = backend("Ready");
        unseen["metadata"]["generation"] = json!(3);
        assert!(!judge(&unseen).is_ready(), "an older generation is never ready");
        let mut silent = backend("Ready");
        silent["status"] = json!(null);
        assert!(
            matches!(judge(&silent), Readiness::InProgress(_)),
            "{:?}",
            judge(&silent)
        );
        let other = json!({"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": "b"}});
        assert_eq!(judge(&other), Readiness::Ready);
    }

    #[test]
    fn the_rule_of_one_object_wins() {
        let rules = [
            rule("Backend", None, "true"),
            rule("Backend", Some("b"), "false"),
            rule("Backend", Some("c"), "true"),
        ];
        let compiled = ReadinessRules::compile(&rules).expect("rules");
        assert!(!compiled.judge(&backend("x"), Patience::Settled).is_ready());
        assert_ne!(compiled, ReadinessRules::default());
        assert_eq!(compiled, ReadinessRules::compile(&rules).expect("rules"));
    }

    #[test]
    fn every_wrong_expression_is_told() {
        let problems = ReadinessRules::compile(&[rule("Backend", None, "stat.x"), rule("", None, "true")])
            .expect_err("they are wrong");
        let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(
            told[0].starts_with("readiness[0].ready: line 1, column 1: unknown name stat"),
            "{told:?}"
        );
        assert!(told[1].starts_with("readiness[1].kind"), "{told:?}");
    }

    #[test]
    fn an_expression_of_a_wrong_type_fails_at_once() {
        let rules = ReadinessRules::compile(&[rule("Backend", None, "status.state")]).expect("rules");
        assert!(rules.judge(&backend("x"), Patience::Settled).is_failed());
    }
}
