//! `.Files`: the chart's files that are neither templates nor part of its description.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use evenkeel_gotemplate::{
    Error, Executor, List, Map, MapClass, Method, Returns, Signature, Str, Type, Value,
};
use evenkeel_goyaml as goyaml;

use crate::chart::ChartFile;
use crate::glob::Glob;

/// `engine.files`
static FILES: MapClass = MapClass {
    name: "engine.files",
    elem: Type::Bytes,
    named: true,
    methods: &[
        Method {
            name: "Get",
            signature: Signature::fixed(&[Type::Str], Returns::Concrete),
            call: get,
        },
        Method {
            name: "GetBytes",
            signature: Signature::fixed(&[Type::Str], Returns::Concrete),
            call: get_bytes,
        },
        Method {
            name: "Glob",
            signature: Signature::fixed(&[Type::Str], Returns::Concrete),
            call: glob,
        },
        Method {
            name: "Lines",
            signature: Signature::fixed(&[Type::Str], Returns::Concrete),
            call: lines,
        },
        Method {
            name: "AsConfig",
            signature: Signature::fixed(&[], Returns::Concrete),
            call: as_config,
        },
        Method {
            name: "AsSecrets",
            signature: Signature::fixed(&[], Returns::Concrete),
            call: as_secrets,
        },
    ],
};

/// The mapping behind `.Files`.
pub(super) fn files_map(files: &[ChartFile]) -> Map {
    let entries = files
        .iter()
        .map(|file| (file.path.as_str().into(), Value::Bytes(Arc::clone(&file.data))));
    Map::new(&FILES, entries.collect())
}

fn own(value: &Value) -> Result<&Map, Error> {
    value.as_map().ok_or_else(|| Error::message("not engine.files"))
}

fn content(receiver: &Value, args: &[Value]) -> Result<Arc<[u8]>, Error> {
    let name = args.first().and_then(Value::as_str).cloned().unwrap_or_default();
    match own(receiver)?.get(&name) {
        Some(Value::Bytes(bytes)) => Ok(bytes),
        _ => Ok(Arc::from([])),
    }
}

fn get(executor: &mut Executor, receiver: &Value, args: &[Value]) -> Result<Value, Error> {
    let bytes = content(receiver, args)?;
    executor.charge(bytes.len())?;
    Ok(Value::Str(Str::shared(&bytes)))
}

fn get_bytes(_: &mut Executor, receiver: &Value, args: &[Value]) -> Result<Value, Error> {
    Ok(Value::Bytes(content(receiver, args)?))
}

fn glob(_: &mut Executor, receiver: &Value, args: &[Value]) -> Result<Value, Error> {
    let pattern = args
        .first()
        .and_then(Value::as_str)
        .map(|text| text.to_text())
        .unwrap_or_default();
    let pattern = Glob::new(&pattern);
    let found = own(receiver)?
        .to_vec()
        .into_iter()
        .filter(|(path, _)| pattern.matches(&path.to_text()));
    Ok(Value::Map(Map::new(&FILES, found.collect())))
}

fn lines(executor: &mut Executor, receiver: &Value, args: &[Value]) -> Result<Value, Error> {
    let bytes = content(receiver, args)?;
    executor.charge(bytes.len())?;
    if bytes.is_empty() {
        return Ok(Value::List(List::strings([])));
    }
    let text = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    Ok(Value::List(List::strings(
        text.split(|byte| *byte == b'\n').map(Str::new),
    )))
}

fn as_config(executor: &mut Executor, receiver: &Value, _: &[Value]) -> Result<Value, Error> {
    to_yaml(executor, receiver, |bytes| {
        String::from_utf8_lossy(bytes).into_owned()
    })
}

fn as_secrets(executor: &mut Executor, receiver: &Value, _: &[Value]) -> Result<Value, Error> {
    to_yaml(executor, receiver, |bytes| STANDARD.encode(bytes))
}

/// A YAML mapping of base names to contents. Of several files with one base name the last path stays; Helm leaves
/// that to chance.
fn to_yaml(
    executor: &mut Executor,
    receiver: &Value,
    encode: impl Fn(&[u8]) -> String,
) -> Result<Value, Error> {
    let mut map = goyaml::Map::new();
    for (path, contents) in own(receiver)?.to_vec() {
        if let Value::Bytes(bytes) = contents {
            executor.charge(bytes.len())?;
            let path = path.to_text();
            let name = path.rsplit('/').next().unwrap_or(&path).to_owned();
            map.insert(name, goyaml::Value::String(encode(&bytes)));
        }
    }
    let text = goyaml::to_yaml(&goyaml::Value::Map(map));
    Ok(Value::from(text.strip_suffix('\n').unwrap_or(&text)))
}
