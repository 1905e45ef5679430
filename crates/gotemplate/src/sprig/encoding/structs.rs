//! JSON of values with Go structs inside: their fields stand in the order of the struct, where keys of maps are sorted.

use evenkeel_goyaml as goyaml;
use goyaml::JsonStyle;

use crate::value::Value;

/// What Go puts before a line for each level.
const INDENT: &str = "  ";

/// Whether there is a struct with fields anywhere in the value. It must not hold itself: encode it first.
pub(super) fn are_in(value: &Value) -> bool {
    match value {
        Value::List(list) => list.with(|items| items.iter().any(are_in)),
        Value::Map(map) => map
            .borrow()
            .is_some_and(|entries| entries.iter().any(|(_, item)| are_in(item))),
        Value::Object(object) => object.data().is_none(),
        _ => false,
    }
}

/// The text of a value. `data` is what it was encoded to, with the same parts in another order.
pub(super) fn to_json(value: &Value, data: &goyaml::Value, style: JsonStyle) -> String {
    let mut out = String::new();
    write(&mut out, value, data, style, 0);
    out
}

fn write(out: &mut String, value: &Value, data: &goyaml::Value, style: JsonStyle, depth: usize) {
    match (value, data) {
        (Value::List(list), goyaml::Value::List(items)) if !items.is_empty() => {
            out.push('[');
            list.with(|values| {
                for (index, (value, data)) in values.iter().zip(items).enumerate() {
                    begin(out, index, style, depth + 1);
                    write(out, value, data, style, depth + 1);
                }
            });
            end(out, style, depth);
            out.push(']');
        }
        (Value::Map(map), goyaml::Value::Map(entries)) if !entries.is_empty() => {
            let names: Vec<(String, Value)> = map
                .borrow()
                .map(|values| {
                    values
                        .iter()
                        .map(|(key, value)| (key.to_text(), value.clone()))
                        .collect()
                })
                .unwrap_or_default();
            write_fields(out, names, entries, style, depth);
        }
        (Value::Object(object), goyaml::Value::Map(entries))
            if !entries.is_empty() && object.data().is_none() =>
        {
            let fields = object
                .json_fields()
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value));
            write_fields(out, fields.collect(), entries, style, depth);
        }
        // A part without structs, but its lines belong below the lines around it.
        (_, data) => {
            let text = goyaml::to_json(data, style);
            let line = format!("\n{}", INDENT.repeat(depth));
            out.push_str(&if depth > 0 && is_pretty(style) {
                text.replace('\n', &line)
            } else {
                text
            });
        }
    }
}

fn write_fields(
    out: &mut String,
    fields: Vec<(String, Value)>,
    entries: &goyaml::Map,
    style: JsonStyle,
    depth: usize,
) {
    out.push('{');
    for (index, (name, value)) in fields.iter().enumerate() {
        begin(out, index, style, depth + 1);
        out.push_str(&goyaml::to_json(&goyaml::Value::String(name.clone()), style));
        out.push_str(if is_pretty(style) { ": " } else { ":" });
        write(
            out,
            value,
            entries.get(name).unwrap_or(&goyaml::Value::Null),
            style,
            depth + 1,
        );
    }
    end(out, style, depth);
    out.push('}');
}

fn begin(out: &mut String, index: usize, style: JsonStyle, depth: usize) {
    if index > 0 {
        out.push(',');
    }
    end(out, style, depth);
}

fn end(out: &mut String, style: JsonStyle, depth: usize) {
    if is_pretty(style) {
        out.push('\n');
        out.push_str(&INDENT.repeat(depth));
    }
}

const fn is_pretty(style: JsonStyle) -> bool {
    matches!(style, JsonStyle::Pretty)
}
