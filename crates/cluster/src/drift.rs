//! Which fields of a whole object differ from what we set, as far as the server would call them different.

use serde_json::Value;

/// The most fields that a message names.
const NAMED_MAX: usize = 5;
/// Keys by which lists of objects are matched, in the order they are tried: an entry may move without being changed.
pub(crate) const LIST_KEYS: [&str; 9] = [
    "name",
    "key",
    "containerPort",
    "port",
    "mountPath",
    "devicePath",
    "ip",
    "type",
    "uid",
];

/// The requested size of a claim.
pub(crate) const STORAGE_REQUEST: &str = "spec.resources.requests.storage";

/// Whether the live claim asks for more than the desired one: somebody grew it, and it cannot shrink.
pub(crate) fn is_grown(desired: &Value, live: &Value) -> bool {
    let size = |claim: &Value| {
        let text = claim.pointer("/spec/resources/requests/storage")?;
        quantity(
            text.as_str()
                .map_or_else(|| text.to_string(), str::to_owned)
                .as_str(),
        )
    };
    size(desired)
        .zip(size(live))
        .is_some_and(|(desired, live)| live > desired)
}

/// Paths of desired fields whose live value is missing or different. Fields that we do not set never count. Values are
/// not told: they may be secret.
pub(crate) fn differences(desired: &Value, live: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for (key, value) in desired.as_object().into_iter().flatten() {
        match key.as_str() {
            "apiVersion" | "kind" | "status" => {}
            _ => compare(value, live.get(key), key, &mut found),
        }
    }
    found
}

/// The paths for people.
pub(crate) fn describe(paths: &[String]) -> String {
    let mut text = paths
        .iter()
        .take(NAMED_MAX)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    if paths.len() > NAMED_MAX {
        text.push_str(&format!(" and {} more", paths.len() - NAMED_MAX));
    }
    text
}

fn compare(desired: &Value, live: Option<&Value>, path: &str, found: &mut Vec<String>) {
    match (desired, live) {
        // What is null or empty in the manifest may be left out by the server.
        (Value::Null, _) => {}
        (Value::Object(map), None) if map.is_empty() => {}
        (Value::Array(items), None) if items.is_empty() => {}
        (Value::Object(map), Some(Value::Object(live))) => {
            for (key, value) in map {
                compare(value, live.get(key), &join(path, key), found);
            }
        }
        (Value::Array(items), Some(Value::Array(live))) => compare_lists(items, live, path, found),
        (desired, Some(live)) if same(desired, live) => {}
        _ => found.push(path.to_owned()),
    }
}

pub(crate) fn join(path: &str, key: &str) -> String {
    if key.contains('.') {
        format!("{path}[{key}]")
    } else {
        format!("{path}.{key}")
    }
}

fn compare_lists(desired: &[Value], live: &[Value], path: &str, found: &mut Vec<String>) {
    for (index, item) in desired.iter().enumerate() {
        match item {
            Value::Object(map) => {
                let keys: Vec<&str> = LIST_KEYS
                    .iter()
                    .copied()
                    .filter(|key| map.contains_key(*key))
                    .collect();
                let matches = |candidate: &&Value| {
                    keys.first().is_some_and(|key| {
                        candidate.get(*key).zip(item.get(*key)).is_some_and(|(found, wanted)| same(wanted, found))
                            // Ports of one number differ by protocol.
                            && candidate.get("protocol").zip(item.get("protocol")).is_none_or(|(a, b)| a == b)
                    })
                };
                let counterpart = live
                    .iter()
                    .find(matches)
                    .or_else(|| live.get(index).filter(|_| keys.is_empty()));
                let name = keys
                    .first()
                    .and_then(|key| item.get(*key))
                    .and_then(Value::as_str);
                let path = name.map_or_else(|| format!("{path}[{index}]"), |name| format!("{path}[{name}]"));
                compare(item, counterpart, &path, found);
            }
            _ if live.get(index).is_some_and(|candidate| same(item, candidate)) => {}
            // Others add finalizers of their own.
            _ if path.ends_with("finalizers") && live.iter().any(|candidate| same(item, candidate)) => {}
            _ => found.push(format!("{path}[{index}]")),
        }
    }
    let plain = desired.iter().all(|item| !item.is_object());
    if plain && live.len() > desired.len() && !path.ends_with("finalizers") {
        found.push(path.to_owned());
    }
}

/// Equal, or two ways to write one value.
fn same(desired: &Value, live: &Value) -> bool {
    match (desired, live) {
        _ if desired == live => true,
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::String(a), Value::String(b)) => quantity(a).zip(quantity(b)).is_some_and(|(a, b)| a == b),
        // Quantities and ports may be written as numbers.
        (Value::Number(a), Value::String(b)) | (Value::String(b), Value::Number(a)) => {
            quantity(&a.to_string())
                .zip(quantity(b))
                .is_some_and(|(a, b)| a == b)
        }
        _ => false,
    }
}

/// A Kubernetes quantity in thousandths; none for what is no quantity or too exact to tell.
fn quantity(text: &str) -> Option<i128> {
    let split = text
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+')))
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at_checked(split)?;
    let (factor, divisor): (i128, i128) = match suffix {
        "" => (1000, 1),
        "m" => (1, 1),
        "k" => (1_000_000, 1),
        "M" => (1_000_000_000, 1),
        "G" => (1_000_000_000_000, 1),
        "T" => (1_000_000_000_000_000, 1),
        "Ki" => (1000 << 10, 1),
        "Mi" => (1000 << 20, 1),
        "Gi" => (1000 << 30, 1),
        "Ti" => (1000 << 40, 1),
        _ => return None,
    };
    let negative = number.starts_with('-');
    let digits = number.trim_start_matches(['-', '+']);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let parse = |text: &str| {
        if text.is_empty() {
            Some(0)
        } else {
            text.parse::<i128>().ok()
        }
    };
    if digits.is_empty() || fraction.len() > 12 {
        return None;
    }
    let scale = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let value = parse(whole)?
        .checked_mul(scale)?
        .checked_add(parse(fraction)?)?
        .checked_mul(factor)?;
    (value % (scale * divisor) == 0).then(|| value / (scale * divisor) * if negative { -1 } else { 1 })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_others_add_is_no_difference() {
        let desired = json!({"spec": {"replicas": 2, "template": {"spec": {"containers": [
            {"name": "a", "image": "x", "ports": [{"containerPort": 80}], "resources": {"limits": {"cpu": "1000m", "memory": "1Gi"}}},
        ]}}}});
        let live = json!({"spec": {"replicas": 2, "strategy": {"type": "RollingUpdate"}, "template": {"spec": {"dnsPolicy": "ClusterFirst",
            "containers": [
                {"name": "injected", "image": "y"},
                {"name": "a", "image": "x", "imagePullPolicy": "Always", "ports": [{"containerPort": 80, "protocol": "TCP"}],
                 "resources": {"limits": {"cpu": "1", "memory": "1024Mi"}}},
            ]}}}, "status": {"replicas": 1}});
        assert_eq!(differences(&desired, &live), Vec::<String>::new());
    }

    #[test]
    fn what_others_change_or_remove_is_one() {
        let desired = json!({"metadata": {"labels": {"app.kubernetes.io/name": "x"}}, "spec": {"replicas": 2, "containers": [{"name": "a", "image": "x"}]}});
        let live = json!({"metadata": {"labels": {}}, "spec": {"replicas": 3, "containers": [{"name": "a", "image": "evil"}]}});
        let found = differences(&desired, &live);
        assert_eq!(
            found,
            [
                "metadata.labels[app.kubernetes.io/name]",
                "spec.containers[a].image",
                "spec.replicas"
            ]
        );
        assert_eq!(
            describe(&found),
            "metadata.labels[app.kubernetes.io/name], spec.containers[a].image, spec.replicas"
        );
    }

    #[test]
    fn lists_of_plain_values_are_compared_as_they_stand() {
        let desired = json!({"spec": {"args": ["a", "b"]}});
        assert_eq!(
            differences(&desired, &json!({"spec": {"args": ["b", "a"]}})),
            ["spec.args[0]", "spec.args[1]"]
        );
        let kept = json!({"metadata": {"finalizers": ["a"]}});
        assert!(differences(&kept, &json!({"metadata": {"finalizers": ["b", "a"]}})).is_empty());
        assert_eq!(
            differences(&desired, &json!({"spec": {"args": ["a"]}})),
            ["spec.args[1]"]
        );
        assert_eq!(
            differences(&desired, &json!({"spec": {"args": ["a", "b", "c"]}})),
            ["spec.args"]
        );
    }

    #[test]
    fn a_claim_that_somebody_grew_is_told_from_one_that_is_to_grow() {
        let claim = |size: &str| json!({"spec": {"resources": {"requests": {"storage": size}}}});
        assert!(is_grown(&claim("10Gi"), &claim("20Gi")));
        assert!(!is_grown(&claim("20Gi"), &claim("10Gi")) && !is_grown(&claim("1Gi"), &claim("1024Mi")));
        assert!(!is_grown(&json!({}), &claim("10Gi")));
    }

    #[test]
    fn quantities_are_compared_by_value() {
        for (a, b) in [
            ("1", "1000m"),
            ("0.5", "500m"),
            ("1Gi", "1024Mi"),
            ("1k", "1000"),
            ("1.5Gi", "1536Mi"),
        ] {
            assert_eq!(quantity(a), quantity(b), "{a} {b}");
        }
        for text in ["", "x", "v1.2.3", "1.2.3", "10s", "-"] {
            assert_eq!(quantity(text), None, "{text}");
        }
        assert_ne!(quantity("1M"), quantity("1Mi"));
    }
}
