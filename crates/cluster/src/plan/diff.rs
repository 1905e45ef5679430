//! What the plan comes to, field by field: the object as it is beside the one that the API server says it would be.

use evenkeel_core::{FieldDiff, MASK, ObjectDiff, OnConflict, PlanAction, Sensitive};
use futures::stream::TryStreamExt as _;
use serde_json::{Map, Value};

use super::{ComponentPlan, Step};
use crate::apply::conflicts;
use crate::concurrent::in_order;
use crate::drift::{LIST_KEYS, join};
use crate::{Error, ErrorClass};

/// The most fields of one object that are listed.
const FIELDS_MAX: usize = 200;
/// The longest text of a value, in characters.
const TEXT_MAX: usize = 2_000;
/// A secret shorter than this is not looked for in other objects: it would be found everywhere.
const SECRET_LEAST: usize = 4;
/// Metadata that every write changes, or that only the server writes.
const OF_THE_SERVER: [&str; 6] = [
    "managedFields",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "uid",
    "selfLink",
];

/// Texts that are secret and must not be shown wherever they turn up. `Debug` shows none.
#[derive(Clone, Debug, Default)]
pub struct Secrets(Vec<Sensitive<String>>);

impl Secrets {
    /// Values that a component was given as secret; each also in the form in which a Secret holds it.
    pub fn new(values: impl IntoIterator<Item = String>) -> Self {
        use base64::Engine as _;
        use base64::engine::general_purpose::STANDARD;
        let long = values.into_iter().filter(|value| value.len() >= SECRET_LEAST);
        let both = long.flat_map(|value| [STANDARD.encode(&value), value]);
        Self(both.map(Sensitive::new).collect())
    }

    fn are_in(&self, text: &str) -> bool {
        self.0
            .iter()
            .any(|secret| text.contains(secret.expose().as_str()))
    }
}

impl ComponentPlan {
    /// How the fields of every object change that the plan updates, takes over or makes again. Costs a GET and a dry run
    /// for each; writes nothing.
    ///
    /// Values of Secrets are masked, as is every text that holds one of `secrets`.
    ///
    /// # Errors
    /// Whatever keeps an object from being read. That the server refuses a change is told in its place.
    pub async fn diffs(&self, secrets: &Secrets) -> Result<Vec<ObjectDiff>, Error> {
        let changed = self.steps.iter().filter(|step| {
            let changes = matches!(
                step.action,
                PlanAction::Update | PlanAction::Adopt | PlanAction::Recreate
            );
            changes && step.live.is_some()
        });
        let changed: Vec<&Step> = changed.collect();
        let at_once = self.target.cluster().limits().in_flight;
        let diffs: Vec<Option<ObjectDiff>> =
            in_order(&changed, at_once, |step| Box::pin(self.diff(step, secrets)))
                .try_collect()
                .await?;
        Ok(diffs.into_iter().flatten().collect())
    }

    async fn diff(&self, step: &Step, secrets: &Secrets) -> Result<Option<ObjectDiff>, Error> {
        let cluster = self.target.cluster();
        let desired = &step.desired;
        let Some(live) = cluster.get_full(&desired.resource, &desired.object).await? else {
            return Ok(None);
        };
        let (after, note) = match self.after(step).await {
            Ok(after) => (Some(after), None),
            Err(error) if says_nothing(&error) => return Err(error),
            Err(error) => (None, Some(error.to_string())),
        };
        let kind = desired.group_kind();
        let mut walk = Walk {
            secrets,
            is_secret: kind.group.is_empty() && kind.kind == "Secret",
            complete: after.is_some(),
            fields: Vec::new(),
            more: 0,
        };
        walk.object(&live, after.as_ref().unwrap_or(&desired.body));
        Ok(Some(ObjectDiff {
            object: desired.object.clone(),
            action: step.action,
            fields: walk.fields,
            more: walk.more,
            note,
        }))
    }

    /// The object as the server says it would be.
    async fn after(&self, step: &Step) -> Result<Value, Error> {
        let desired = &step.desired;
        let cluster = self.target.cluster();
        let try_out =
            |body: Vec<u8>, force| cluster.dry_run_whole(&desired.resource, &desired.object, body, force);
        let body = desired.body.to_string().into_bytes();
        match desired.on_conflict() {
            OnConflict::Force => try_out(body, true).await,
            OnConflict::Refuse => try_out(body, false).await,
            OnConflict::Leave => match try_out(body, false).await {
                Err(Error::FieldConflict { doing, conflicts }) => {
                    match conflicts::without(&desired.body, &conflicts) {
                        Some(rest) => try_out(rest.to_string().into_bytes(), false).await,
                        None => Err(Error::FieldConflict { doing, conflicts }),
                    }
                }
                tried => tried,
            },
        }
    }
}

/// Whether an error is about the way to the cluster and not about the object.
fn says_nothing(error: &Error) -> bool {
    matches!(
        error.class(),
        ErrorClass::Unreachable | ErrorClass::Unauthorized | ErrorClass::RateLimited(_)
    )
}

struct Walk<'a> {
    secrets: &'a Secrets,
    is_secret: bool,
    /// Whether what is absent afterwards goes; else only what is desired is known.
    complete: bool,
    fields: Vec<FieldDiff>,
    more: usize,
}

impl Walk<'_> {
    fn object(&mut self, before: &Value, after: &Value) {
        let (before, after) = (bare(before), bare(after));
        self.maps(&before, &after, "");
    }

    fn maps(&mut self, before: &Map<String, Value>, after: &Map<String, Value>, path: &str) {
        let place = |key: &str| {
            if path.is_empty() {
                key.to_owned()
            } else {
                join(path, key)
            }
        };
        for (key, value) in after {
            self.values(before.get(key), Some(value), &place(key));
        }
        if self.complete {
            for (key, value) in before.iter().filter(|(key, _)| !after.contains_key(*key)) {
                self.values(Some(value), None, &place(key));
            }
        }
    }

    fn values(&mut self, before: Option<&Value>, after: Option<&Value>, path: &str) {
        match (before, after) {
            (before, after) if before == after => {}
            (Some(Value::Object(before)), Some(Value::Object(after))) => self.maps(before, after, path),
            (Some(Value::Array(before)), Some(Value::Array(after))) => self.lists(before, after, path),
            (before, after) => self.note(before, after, path),
        }
    }

    /// Lists of objects are matched by the key that all their items have; others are shown whole.
    fn lists(&mut self, before: &[Value], after: &[Value], path: &str) {
        let all = || before.iter().chain(after);
        let distinct = |key: &str, list: &[Value]| {
            let values: Vec<_> = list.iter().filter_map(|item| item.get(key)).collect();
            (0..values.len()).all(|at| !values.iter().take(at).any(|value| Some(value) == values.get(at)))
        };
        let key = LIST_KEYS.iter().copied().find(|key| {
            all().all(|item| item.get(*key).is_some()) && distinct(key, before) && distinct(key, after)
        });
        let Some(key) = key else {
            return self.note(
                Some(&Value::from(before.to_vec())),
                Some(&Value::from(after.to_vec())),
                path,
            );
        };
        let same =
            |value: Option<&Value>, list: &[Value]| list.iter().find(|item| item.get(key) == value).cloned();
        let place = |item: &Value| {
            let name = item
                .get(key)
                .map(|name| name.as_str().map_or_else(|| name.to_string(), str::to_owned));
            format!("{path}[{}]", name.unwrap_or_default())
        };
        for item in after {
            self.values(same(item.get(key), before).as_ref(), Some(item), &place(item));
        }
        if self.complete {
            for item in before.iter().filter(|item| same(item.get(key), after).is_none()) {
                self.values(Some(item), None, &place(item));
            }
        }
    }

    fn note(&mut self, before: Option<&Value>, after: Option<&Value>, path: &str) {
        if self.fields.len() >= FIELDS_MAX {
            self.more += 1;
            return;
        }
        let secret = self.is_secret && (path.starts_with("data") || path.starts_with("stringData"));
        let shown = |value: &Value| if secret { masked(value) } else { self.shown(value) };
        self.fields.push(FieldDiff {
            path: path.to_owned(),
            before: before.map(shown),
            after: after.map(shown),
        });
    }

    /// A value without what is secret, and not longer than people read.
    fn shown(&self, value: &Value) -> Value {
        match value {
            Value::String(text) if self.secrets.are_in(text) => Value::from(MASK),
            Value::String(text) if text.chars().count() > TEXT_MAX => {
                let cut: String = text.chars().take(TEXT_MAX).collect();
                Value::from(format!("{cut}…"))
            }
            Value::Number(number) if self.secrets.are_in(&number.to_string()) => Value::from(MASK),
            Value::Array(items) => items.iter().map(|item| self.shown(item)).collect(),
            Value::Object(map) => {
                let shown = map.iter().map(|(key, item)| (key.clone(), self.shown(item)));
                Value::Object(shown.collect())
            }
            other => other.clone(),
        }
    }
}

/// Every leaf masked.
fn masked(value: &Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.iter()
                .map(|(key, item)| (key.clone(), masked(item)))
                .collect(),
        ),
        Value::Array(items) => items.iter().map(masked).collect(),
        _ => Value::from(MASK),
    }
}

/// The object without its status and what only the server writes.
fn bare(object: &Value) -> Map<String, Value> {
    let mut object = object.as_object().cloned().unwrap_or_default();
    for field in ["apiVersion", "kind", "status"] {
        object.remove(field);
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        OF_THE_SERVER
            .iter()
            .for_each(|field| drop(metadata.remove(*field)));
    }
    // A Secret's texts are written into its data.
    object.remove("stringData");
    object
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn walk(
        before: &Value,
        after: &Value,
        is_secret: bool,
        complete: bool,
        secrets: &Secrets,
    ) -> Vec<String> {
        let mut walk = Walk {
            secrets,
            is_secret,
            complete,
            fields: Vec::new(),
            more: 0,
        };
        walk.object(before, after);
        let shown = |value: &Option<Value>| value.as_ref().map_or_else(|| "-".to_owned(), Value::to_string);
        let line =
            |field: &FieldDiff| format!("{} {} {}", field.path, shown(&field.before), shown(&field.after));
        walk.fields.iter().map(line).collect()
    }

    #[test]
    fn fields_are_told_with_their_values() {
        let before = json!({"metadata": {"resourceVersion": "7", "labels": {"app.kubernetes.io/name": "x"}},
            "spec": {"replicas": 1, "gone": true, "containers": [
                {"name": "main", "image": "a:1", "args": ["x"]}, {"name": "old", "image": "b"}]}, "status": {"x": 1}});
        let after = json!({"metadata": {"resourceVersion": "8", "labels": {"app.kubernetes.io/name": "y"}},
            "spec": {"replicas": 2, "containers": [
                {"name": "new", "image": "c"}, {"name": "main", "image": "a:2", "args": ["x", "y"]}]}});
        let mut told = walk(&before, &after, false, true, &Secrets::default());
        told.sort();
        assert_eq!(
            told,
            [
                r#"metadata.labels[app.kubernetes.io/name] "x" "y""#,
                r#"spec.containers[main].args ["x"] ["x","y"]"#,
                r#"spec.containers[main].image "a:1" "a:2""#,
                r#"spec.containers[new] - {"image":"c","name":"new"}"#,
                r#"spec.containers[old] {"image":"b","name":"old"} -"#,
                "spec.gone true -",
                "spec.replicas 1 2",
            ]
        );
        // Where only what is desired is known, nothing is said to go.
        let told = walk(
            &before,
            &json!({"spec": {"replicas": 2}}),
            false,
            false,
            &Secrets::default(),
        );
        assert_eq!(told, ["spec.replicas 1 2"]);
    }

    #[test]
    fn secrets_are_masked_wherever_they_turn_up() {
        let before = json!({"data": {"password": "b2xk", "user": "eA=="}});
        let after = json!({"data": {"password": "bmV3", "user": "eA=="}, "type": "Opaque"});
        let told = walk(&before, &after, true, true, &Secrets::default());
        assert_eq!(
            told,
            [r#"data.password "********" "********""#, r#"type - "Opaque""#]
        );

        let secrets = Secrets::new(["hunter2".to_owned(), "abc".to_owned()]);
        let after =
            json!({"spec": {"url": "https://me:hunter2@db", "encoded": ["aHVudGVyMg=="], "abc": "abc"}});
        let told = walk(&json!({}), &after, false, true, &secrets);
        assert_eq!(
            told,
            [r#"spec - {"abc":"abc","encoded":["********"],"url":"********"}"#]
        );
        assert!(!format!("{secrets:?}").contains("hunter2"));
    }

    #[test]
    fn very_many_fields_are_counted() {
        let many: Map<String, Value> = (0..FIELDS_MAX + 5)
            .map(|at| (at.to_string(), json!(at)))
            .collect();
        let (secrets, mut after) = (Secrets::default(), Map::new());
        after.insert("data".to_owned(), Value::Object(many));
        let mut walk = Walk {
            secrets: &secrets,
            is_secret: false,
            complete: true,
            fields: Vec::new(),
            more: 0,
        };
        walk.object(&json!({"data": {}}), &Value::Object(after));
        assert_eq!((walk.fields.len(), walk.more), (FIELDS_MAX, 5));
    }
}
