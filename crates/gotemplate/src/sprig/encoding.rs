//! Base64, base32, YAML and JSON.

mod structs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use evenkeel_goyaml::{self as goyaml, JsonStyle, Numbers};

use super::args::{ANY, STR, any, text};
use crate::Error;
use crate::error::Cause;
use crate::exec::Executor;
use crate::function::Native;
use crate::value::{LIST_ANY, List, MAP_ANY, Map, Value};

pub(super) static TABLE: &[Native] = &[
    Native::concrete("b64enc", &[STR], false, b64enc),
    Native::concrete("b64dec", &[STR], false, b64dec),
    Native::concrete("b32enc", &[STR], false, b32enc),
    Native::concrete("b32dec", &[STR], false, b32dec),
    Native::concrete("toYaml", &[ANY], false, to_yaml),
    Native::concrete("mustToYaml", &[ANY], false, must_to_yaml),
    Native::concrete("toYamlPretty", &[ANY], false, to_yaml_pretty),
    Native::concrete("fromYaml", &[STR], false, from_yaml),
    Native::concrete("fromYamlArray", &[STR], false, from_yaml_array),
    Native::concrete("toJson", &[ANY], false, to_json),
    Native::concrete("mustToJson", &[ANY], false, must_to_json),
    Native::concrete("toPrettyJson", &[ANY], false, to_pretty_json),
    Native::concrete("mustToPrettyJson", &[ANY], false, must_to_pretty_json),
    Native::concrete("toRawJson", &[ANY], false, to_raw_json),
    Native::concrete("mustToRawJson", &[ANY], false, to_raw_json),
    Native::concrete("fromJson", &[STR], false, from_json),
    Native::concrete("fromJsonArray", &[STR], false, from_json_array),
    Native::interface("mustFromJson", &[STR], false, must_from_json),
];

type Result = std::result::Result<Value, Error>;

/// Standard base64.
pub(crate) fn base64_text(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

fn b64enc(executor: &mut Executor, args: &[Value]) -> Result {
    executor.charge(text(args, 0).len())?;
    Ok(Value::from(base64_text(text(args, 0))))
}

/// Where Go's decoder gives up: it skips line breaks and counts in the text as given.
fn b64dec(_: &mut Executor, args: &[Value]) -> Result {
    Ok(match decode_base64(text(args, 0)) {
        Ok(bytes) => Value::from(bytes),
        Err(at) => Value::from(format!("illegal base64 data at input byte {at}")),
    })
}

fn sextet(byte: u8) -> Option<u32> {
    Some(u32::from(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

/// Go's `base64.StdEncoding`: padded, line breaks ignored, unused bits not checked.
pub(super) fn decode_base64(source: &[u8]) -> std::result::Result<Vec<u8>, usize> {
    let mut out = Vec::with_capacity(source.len() / 4 * 3);
    let mut position = 0;
    let skip_breaks = |mut position: usize| {
        while matches!(source.get(position), Some(b'\n' | b'\r')) {
            position += 1;
        }
        position
    };
    loop {
        let mut bits: u32 = 0;
        let mut count = 0;
        while count < 4 {
            position = skip_breaks(position);
            let Some(byte) = source.get(position) else {
                if count == 0 {
                    return Ok(out);
                }
                // The text ends inside a quantum.
                return Err(position - count);
            };
            position += 1;
            if let Some(value) = sextet(*byte) {
                bits = bits << 6 | value;
                count += 1;
                continue;
            }
            if *byte != b'=' || count < 2 {
                return Err(position - 1);
            }
            if count == 2 {
                position = skip_breaks(position);
                match source.get(position) {
                    Some(b'=') => position += 1,
                    Some(_) => return Err(position - 1),
                    None => return Err(source.len()),
                }
            }
            position = skip_breaks(position);
            if position < source.len() {
                return Err(position);
            }
            bits <<= 6 * (4 - count) as u32;
            let [_, first, second, _] = bits.to_be_bytes();
            out.push(first);
            if count == 3 {
                out.push(second);
            }
            return Ok(out);
        }
        let [_, first, second, third] = bits.to_be_bytes();
        out.extend_from_slice(&[first, second, third]);
    }
}

const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

fn b32enc(executor: &mut Executor, args: &[Value]) -> Result {
    let source = text(args, 0);
    executor.charge(source.len())?;
    let mut out = Vec::with_capacity(source.len().div_ceil(5) * 8);
    for chunk in source.chunks(5) {
        let mut bytes = [0u8; 8];
        for (slot, byte) in bytes.iter_mut().skip(3).zip(chunk) {
            *slot = *byte;
        }
        let bits = u64::from_be_bytes(bytes);
        let digits = (chunk.len() * 8).div_ceil(5);
        for index in 0..8 {
            let digit = (bits >> (35 - 5 * index)) & 31;
            let symbol = BASE32.get(digit as usize).copied().unwrap_or(b'=');
            out.push(if index < digits { symbol } else { b'=' });
        }
    }
    Ok(Value::from(out))
}

fn b32dec(_: &mut Executor, args: &[Value]) -> Result {
    Ok(match decode_base32(text(args, 0)) {
        Ok(bytes) => Value::from(bytes),
        Err(at) => Value::from(format!("illegal base32 data at input byte {at}")),
    })
}

/// Go's `base32.StdEncoding`. Line breaks are removed first, so positions are in what is left.
fn decode_base32(source: &[u8]) -> std::result::Result<Vec<u8>, usize> {
    let source: Vec<u8> = source
        .iter()
        .copied()
        .filter(|byte| !matches!(byte, b'\n' | b'\r'))
        .collect();
    let mut out = Vec::new();
    let mut rest = source.as_slice();
    loop {
        let mut bits: u64 = 0;
        let mut count = 0;
        let mut last = false;
        while count < 8 {
            let Some((byte, tail)) = rest.split_first() else {
                if count == 0 {
                    return Ok(out);
                }
                return Err(source.len() - count);
            };
            let at = source.len() - rest.len();
            rest = tail;
            if *byte == b'=' && count >= 2 && rest.len() < 8 {
                if rest.len() + count < 7 {
                    return Err(source.len());
                }
                for offset in 0..7 - count {
                    if rest.get(offset).is_some_and(|byte| *byte != b'=') {
                        return Err(at + offset);
                    }
                }
                if matches!(count, 1 | 3 | 6) {
                    return Err(at);
                }
                last = true;
                break;
            }
            let Some(value) = BASE32.iter().position(|symbol| symbol == byte) else {
                return Err(at);
            };
            bits = bits << 5 | value as u64;
            count += 1;
        }
        bits <<= 5 * (8 - count);
        let bytes = bits.to_be_bytes();
        out.extend(bytes.iter().skip(3).take(count * 5 / 8));
        if last {
            return Ok(out);
        }
    }
}

/// Plain data of the first argument. What Go cannot encode is none; passed limits are errors.
fn data(
    executor: &mut Executor,
    args: &[Value],
) -> std::result::Result<std::result::Result<goyaml::Value, Error>, Error> {
    match any(args, 0).to_data(executor.limits()) {
        Ok(data) => Ok(Ok(data)),
        Err(error) if matches!(error.cause(), Cause::Limit(_)) => Err(error),
        Err(error) => Ok(Err(error)),
    }
}

/// Runs an encoder; a value it cannot encode gives an empty text.
fn encoded(executor: &mut Executor, args: &[Value], encode: impl FnOnce(&goyaml::Value) -> String) -> Result {
    Ok(Value::from(
        data(executor, args)?.map_or_else(|_| String::new(), |data| encode(&data)),
    ))
}

/// Runs an encoder; a value it cannot encode is an error.
fn must_encoded(
    executor: &mut Executor,
    args: &[Value],
    encode: impl FnOnce(&goyaml::Value) -> String,
) -> Result {
    Ok(Value::from(encode(&data(executor, args)??)))
}

fn trimmed(mut text: String) -> String {
    if text.ends_with('\n') {
        text.pop();
    }
    text
}

fn to_yaml(executor: &mut Executor, args: &[Value]) -> Result {
    encoded(executor, args, |data| trimmed(goyaml::to_yaml(data)))
}

fn must_to_yaml(executor: &mut Executor, args: &[Value]) -> Result {
    match data(executor, args)? {
        Ok(data) => Ok(Value::from(trimmed(goyaml::to_yaml(&data)))),
        Err(error) => {
            let problem = error.to_string();
            Err(Error::message(format!("error marshaling into JSON: {problem}")))
        }
    }
}

fn to_yaml_pretty(executor: &mut Executor, args: &[Value]) -> Result {
    match any(args, 0).to_direct_data(executor.limits()) {
        Ok(data) => Ok(Value::from(trimmed(goyaml::to_yaml_pretty(&data)))),
        // Unlike in JSON, the library panics over a type that it does not know.
        Err(error) => Err(error),
    }
}

fn json(style: JsonStyle, args: &[Value], data: &goyaml::Value) -> String {
    match args.first() {
        Some(value) if structs::are_in(value) => structs::to_json(value, data, style),
        _ => goyaml::to_json(data, style),
    }
}

fn to_json(executor: &mut Executor, args: &[Value]) -> Result {
    encoded(executor, args, |data| json(JsonStyle::Compact, args, data))
}

fn must_to_json(executor: &mut Executor, args: &[Value]) -> Result {
    must_encoded(executor, args, |data| json(JsonStyle::Compact, args, data))
}

fn to_pretty_json(executor: &mut Executor, args: &[Value]) -> Result {
    encoded(executor, args, |data| json(JsonStyle::Pretty, args, data))
}

fn must_to_pretty_json(executor: &mut Executor, args: &[Value]) -> Result {
    must_encoded(executor, args, |data| json(JsonStyle::Pretty, args, data))
}

fn to_raw_json(executor: &mut Executor, args: &[Value]) -> Result {
    must_encoded(executor, args, |data| json(JsonStyle::Raw, args, data))
}

/// Helm's decoders of objects never fail: the error's text is in the map under `Error`.
fn with_error(map: Map, error: impl ToString) -> Value {
    map.insert("Error", error.to_string());
    Value::Map(map)
}

/// Go's word for the JSON type of a value.
fn json_type(value: &goyaml::Value) -> &'static str {
    match value {
        goyaml::Value::Null => "null",
        goyaml::Value::Bool(_) => "bool",
        goyaml::Value::Int(_) | goyaml::Value::Uint(_) | goyaml::Value::Float(_) => "number",
        goyaml::Value::String(_) | goyaml::Value::Timestamp(_) | goyaml::Value::Binary(_) => "string",
        goyaml::Value::List(_) => "array",
        goyaml::Value::Map(_) => "object",
    }
}

fn wrong_type(value: &goyaml::Value, wanted: &str, prefix: &str) -> String {
    format!(
        "{prefix}json: cannot unmarshal {} into Go value of type {wanted}",
        json_type(value)
    )
}

const YAML_PREFIX: &str = "error unmarshaling JSON: while decoding JSON: ";

fn object(parsed: std::result::Result<goyaml::Value, goyaml::Error>, prefix: &str) -> Value {
    match parsed {
        Ok(goyaml::Value::Map(entries)) => Value::from(goyaml::Value::Map(entries)),
        // Decoding a JSON null into a map makes it nil; of a YAML document the library keeps it empty.
        Ok(goyaml::Value::Null) if prefix.is_empty() => Value::Map(Map::nil(&MAP_ANY)),
        Ok(goyaml::Value::Null) => Value::Map(Map::any()),
        Ok(other) => with_error(Map::any(), wrong_type(&other, MAP_ANY.name, prefix)),
        Err(error) => match error.partial() {
            // Go goes on after a number that fits no float, and what it read is there beside the error.
            Some(goyaml::Value::Map(entries)) => match Value::from(goyaml::Value::Map(entries.clone())) {
                Value::Map(map) => with_error(map, error),
                _ => with_error(Map::any(), error),
            },
            Some(other) => with_error(Map::any(), wrong_type(other, MAP_ANY.name, prefix)),
            None => with_error(Map::any(), error),
        },
    }
}

fn array(parsed: std::result::Result<goyaml::Value, goyaml::Error>, prefix: &str) -> Value {
    match parsed {
        Ok(goyaml::Value::List(items)) => Value::from(goyaml::Value::List(items)),
        Ok(goyaml::Value::Null) if prefix.is_empty() => Value::List(List::nil(&LIST_ANY)),
        Ok(goyaml::Value::Null) => Value::List(List::any(Vec::new())),
        Ok(other) => Value::List(List::any(vec![wrong_type(&other, LIST_ANY.name, prefix).into()])),
        Err(error) => {
            let text = match error.partial() {
                Some(other) if !matches!(other, goyaml::Value::List(_)) => {
                    wrong_type(other, LIST_ANY.name, prefix)
                }
                _ => error.to_string(),
            };
            Value::List(List::any(vec![text.into()]))
        }
    }
}

fn from_yaml(_: &mut Executor, args: &[Value]) -> Result {
    Ok(object(
        goyaml::from_yaml(text(args, 0), Numbers::Float64),
        YAML_PREFIX,
    ))
}

fn from_yaml_array(_: &mut Executor, args: &[Value]) -> Result {
    Ok(array(
        goyaml::from_yaml(text(args, 0), Numbers::Float64),
        YAML_PREFIX,
    ))
}

fn from_json(_: &mut Executor, args: &[Value]) -> Result {
    Ok(object(goyaml::from_json(text(args, 0), Numbers::Float64), ""))
}

fn from_json_array(_: &mut Executor, args: &[Value]) -> Result {
    Ok(array(goyaml::from_json(text(args, 0), Numbers::Float64), ""))
}

fn must_from_json(_: &mut Executor, args: &[Value]) -> Result {
    match goyaml::from_json(text(args, 0), Numbers::Float64) {
        Ok(value) => Ok(Value::from(value)),
        Err(error) => Err(Error::message(error.to_string())),
    }
}
