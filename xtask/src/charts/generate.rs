//! Makes up values for a chart from those it comes with.
//!
//! Charts decide by their values what they print: most of a chart is behind switches that are off and lists that are
//! empty. A set holds only what differs from the chart's own values.

mod typical;

use serde_json::{Map, Value};

use super::seed::Seed;

/// How deep properties of a schema are looked for; some schemas refer to themselves.
const SCHEMA_DEPTH: usize = 6;

/// What a set of values is to bring about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Every switch is on and everything that is empty has something typical.
    Everything,
    /// A random part of that, some other switches and a few values of another type.
    Random,
    /// Every switch is on, nothing else.
    Switches,
    /// Random, once more.
    More,
    /// Every switch is off.
    Nothing,
}

impl Kind {
    /// All, the most telling first.
    pub(super) const ALL: [Self; 5] = [
        Self::Everything,
        Self::Random,
        Self::Switches,
        Self::More,
        Self::Nothing,
    ];

    /// Its name in file names.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Everything => "everything",
            Self::Random | Self::More => "random",
            Self::Switches => "switches",
            Self::Nothing => "nothing",
        }
    }

    fn habits(self) -> Habits {
        match self {
            Self::Everything => Habits {
                switches: Switches::On,
                fill: 100,
                change: 0,
                confuse: 0,
            },
            Self::Random | Self::More => Habits {
                switches: Switches::Flip(30),
                fill: 30,
                change: 4,
                confuse: 1,
            },
            Self::Switches => Habits {
                switches: Switches::On,
                fill: 0,
                change: 0,
                confuse: 0,
            },
            Self::Nothing => Habits {
                switches: Switches::Off,
                fill: 0,
                change: 0,
                confuse: 0,
            },
        }
    }
}

/// What is done to booleans.
#[derive(Clone, Copy)]
enum Switches {
    /// Those whose name says so are turned on.
    On,
    /// Those are turned off.
    Off,
    /// Any boolean is turned round in so many of a hundred cases.
    Flip(u64),
}

/// What is done how often, in percent.
#[derive(Clone, Copy)]
struct Habits {
    switches: Switches,
    /// Something typical for what is empty.
    fill: u64,
    /// Another value of the same type.
    change: u64,
    /// A value of another type.
    confuse: u64,
}

/// A set for a chart with these values and that schema.
pub(super) fn set(kind: Kind, values: &Value, schema: Option<&Value>, seed: &mut Seed) -> Value {
    let habits = kind.habits();
    let mut set = match overlay("", values, habits, seed) {
        Some(Value::Object(set)) => set,
        _ => Map::new(),
    };
    if let Some(schema) = schema
        && habits.fill > 0
    {
        from_schema(schema, values, habits, seed, SCHEMA_DEPTH, &mut set);
    }
    Value::Object(set)
}

/// What is to be set in the place of `value`; None to leave it as it is.
fn overlay(key: &str, value: &Value, habits: Habits, seed: &mut Seed) -> Option<Value> {
    if !key.is_empty() && seed.percent(habits.confuse) {
        return Some(typical::confused(value, seed));
    }
    match value {
        Value::Bool(on) => {
            let wanted = match habits.switches {
                Switches::On if is_switch(key) => true,
                Switches::Off if is_switch(key) => false,
                Switches::Flip(percent) if seed.percent(percent) => !on,
                _ => *on,
            };
            (wanted != *on).then_some(Value::Bool(wanted))
        }
        Value::Object(map) if map.is_empty() => seed.percent(habits.fill).then(|| typical::map(key, seed)),
        Value::Object(map) => {
            let changed: Map<String, Value> = map
                .iter()
                .filter_map(|(key, value)| Some((key.clone(), overlay(key, value, habits, seed)?)))
                .collect();
            (!changed.is_empty()).then_some(Value::Object(changed))
        }
        Value::Array(list) if list.is_empty() => seed.percent(habits.fill).then(|| typical::list(key, seed)),
        // A list is replaced as a whole.
        Value::Array(_) => seed.percent(habits.change).then(|| typical::list(key, seed)),
        Value::String(text) if text.is_empty() => seed.percent(habits.fill).then(|| typical::text(key, seed)),
        Value::String(_) => seed.percent(habits.change).then(|| typical::text(key, seed)),
        Value::Number(_) => seed.percent(habits.change).then(|| typical::number(seed)),
        // Nothing says of which type it is to be; text is most often.
        Value::Null => seed.percent(habits.fill / 2).then(|| typical::text(key, seed)),
    }
}

/// Whether a boolean of that name turns something on.
fn is_switch(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    ["enabled", "create", "install", "deploy"]
        .iter()
        .any(|word| key == *word || key.ends_with(word) || key.starts_with(word))
}

/// Values of properties that only the schema tells of: one of an enumeration, something of the type.
fn from_schema(
    schema: &Value,
    values: &Value,
    habits: Habits,
    seed: &mut Seed,
    depth: usize,
    set: &mut Map<String, Value>,
) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return;
    };
    if depth == 0 {
        return;
    }
    for (key, property) in properties {
        let current = values.get(key).unwrap_or(&Value::Null);
        if let Some(choices) = property.get("enum").and_then(Value::as_array) {
            if seed.percent(habits.fill.min(50)) {
                set.extend(seed.choose(choices).map(|choice| (key.clone(), choice.clone())));
            }
            continue;
        }
        if property.get("properties").is_some() {
            let mut inner = match set.remove(key) {
                Some(Value::Object(inner)) => inner,
                Some(other) => {
                    set.insert(key.clone(), other);
                    continue;
                }
                None => Map::new(),
            };
            from_schema(property, current, habits, seed, depth - 1, &mut inner);
            if !inner.is_empty() {
                set.insert(key.clone(), Value::Object(inner));
            }
            continue;
        }
        if current.is_null() && !set.contains_key(key) && seed.percent(habits.fill / 3) {
            let value = match property.get("type").and_then(Value::as_str) {
                Some("string") => typical::text(key, seed),
                Some("integer" | "number") => typical::number(seed),
                Some("boolean") => Value::Bool(seed.percent(50)),
                Some("array") => typical::list(key, seed),
                Some("object") => typical::map(key, seed),
                _ => continue,
            };
            set.insert(key.clone(), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn values() -> Value {
        json!({
            "ingress": {"enabled": false, "annotations": {}, "tls": [], "className": ""},
            "rbac": {"create": true},
            "debug": false,
            "replicas": 1,
        })
    }

    fn seed(number: u64) -> Seed {
        Seed::new(number, "test")
    }

    #[test]
    fn everything_is_turned_on_and_filled() {
        let set = set(Kind::Everything, &values(), None, &mut seed(1));
        assert_eq!(set["ingress"]["enabled"], json!(true));
        assert!(!set["ingress"]["annotations"].as_object().unwrap().is_empty());
        assert!(!set["ingress"]["tls"].as_array().unwrap().is_empty());
        assert!(!set["ingress"]["className"].as_str().unwrap().is_empty());
        assert_eq!(
            (set.get("rbac"), set.get("debug"), set.get("replicas")),
            (None, None, None)
        );
    }

    #[test]
    fn switches_are_told_by_their_names() {
        let on = set(Kind::Switches, &values(), None, &mut seed(1));
        assert_eq!(on, json!({"ingress": {"enabled": true}}));
        let off = set(Kind::Nothing, &values(), None, &mut seed(1));
        assert_eq!(off, json!({"rbac": {"create": false}}));
        for name in [
            "enabled",
            "metricsEnabled",
            "createNamespace",
            "installCRDs",
            "create",
        ] {
            assert!(is_switch(name), "{name}");
        }
        assert!(!is_switch("debug"));
    }

    #[test]
    fn the_same_seed_makes_the_same_set() {
        let random = |number| set(Kind::Random, &values(), None, &mut seed(number));
        assert_eq!(random(1), random(1));
        assert!((2..20).any(|number| random(number) != random(1)));
    }

    #[test]
    fn a_schema_tells_of_more() {
        let schema = json!({"properties": {
            "mode": {"enum": ["a", "b"]},
            "ingress": {"properties": {"pathType": {"enum": ["Exact"]}}},
            "extra": {"type": "object"},
        }});
        let sets: Vec<Value> = (0..20)
            .map(|number| set(Kind::Everything, &values(), Some(&schema), &mut seed(number)))
            .collect();
        assert!(sets.iter().any(|set| set["mode"] == "b"));
        assert!(sets.iter().any(|set| set["ingress"]["pathType"] == "Exact"));
        assert!(sets.iter().any(|set| set["extra"].is_object()));
        assert!(sets.iter().all(|set| set["ingress"]["enabled"] == true));
    }

    #[test]
    fn values_that_cannot_be_read_give_an_empty_set() {
        assert_eq!(set(Kind::Random, &Value::Null, None, &mut seed(1)), json!({}));
    }
}
