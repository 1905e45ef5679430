//! Reading a YAML tree into typed fields the way `sigs.k8s.io/yaml` and Go's encoding/json do: field names without
//! regard to case, scalars turned into text where text is wanted, `null` leaves a field as it was.

use evenkeel_goyaml::{Map, Value};

/// What Go's encoding/json says when a value has the wrong type.
pub(crate) fn mismatch(value: &Value, target: &str) -> String {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Int(_) | Value::Uint(_) | Value::Float(_) => "number",
        Value::String(_) | Value::Timestamp(_) | Value::Binary(_) => "string",
        Value::List(_) => "array",
        Value::Map(_) => "object",
    };
    format!("error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {kind} into Go {target}")
}

/// Where a field sits, for error texts: `struct field .metadata.name of type string`.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a>(pub(crate) &'a str);

impl Place<'_> {
    fn mismatch(self, value: &Value, go_type: &str) -> String {
        mismatch(value, &format!("struct field .{} of type {go_type}", self.0))
    }
}

/// Does a key of the text name this field? Go compares without regard to case.
pub(crate) fn names(key: &str, field: &str) -> bool {
    key.eq_ignore_ascii_case(field)
}

/// A text field; numbers and booleans become text.
pub(crate) fn text(value: &Value, into: &mut String, place: Place<'_>) -> Result<(), String> {
    *into = match value {
        Value::Null => return Ok(()),
        Value::String(s) | Value::Timestamp(s) => s.clone(),
        Value::Bool(b) => b.to_string(),
        Value::Int(i) => i.to_string(),
        Value::Uint(u) => u.to_string(),
        Value::Float(f) => shortest_float(*f),
        other => return Err(place.mismatch(other, "string")),
    };
    Ok(())
}

/// A yes or no field.
pub(crate) fn flag(value: &Value, into: &mut bool, place: Place<'_>) -> Result<(), String> {
    match value {
        Value::Null => {}
        Value::Bool(b) => *into = *b,
        other => return Err(place.mismatch(other, "bool")),
    }
    Ok(())
}

/// A list field; `null` empties it.
pub(crate) fn list<'v>(
    value: &'v Value,
    place: Place<'_>,
    go_type: &str,
) -> Result<Option<&'v [Value]>, String> {
    match value {
        Value::Null => Ok(None),
        Value::List(items) => Ok(Some(items)),
        other => Err(place.mismatch(other, go_type)),
    }
}

/// A list of texts.
pub(crate) fn texts(value: &Value, into: &mut Vec<String>, place: Place<'_>) -> Result<(), String> {
    into.clear();
    for item in list(value, place, "[]string")?.unwrap_or_default() {
        let mut one = String::new();
        text(item, &mut one, place)?;
        into.push(one);
    }
    Ok(())
}

/// A mapping of texts.
pub(crate) fn text_map(
    value: &Value,
    into: &mut Option<std::collections::BTreeMap<String, String>>,
    place: Place<'_>,
) -> Result<(), String> {
    match value {
        Value::Null => *into = None,
        Value::Map(map) => {
            let into = into.get_or_insert_default();
            for (key, value) in map {
                let mut one = String::new();
                text(value, &mut one, Place(&format!("{}.{key}", place.0)))?;
                into.insert(key.clone(), one);
            }
        }
        other => return Err(place.mismatch(other, "map[string]string")),
    }
    Ok(())
}

/// A mapping, or Go's complaint about anything else; `null` counts as empty.
pub(crate) fn object<'v>(value: &'v Value, go_type: &str) -> Result<Option<&'v Map>, String> {
    match value {
        Value::Null => Ok(None),
        Value::Map(map) => Ok(Some(map)),
        other => Err(mismatch(other, &format!("value of type {go_type}"))),
    }
}

/// `strconv.FormatFloat(value, 'g', -1, 64)`.
fn shortest_float(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    // For the shortest form Go decides as if six digits had been asked for.
    if !(-4..6).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    format!("{value}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_as_go_prints_them() {
        for (value, text) in [
            (1.1, "1.1"),
            (1e6, "1e+06"),
            (123456.5, "123456.5"),
            (1e-5, "1e-05"),
            (0.0001, "0.0001"),
            (3.0, "3"),
        ] {
            assert_eq!(shortest_float(value), text);
        }
    }
}
