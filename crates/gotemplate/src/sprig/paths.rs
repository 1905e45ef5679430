//! Paths with slashes.

use super::args::{STR, text};
use crate::Error;
use crate::exec::Executor;
use crate::function::Native;
use crate::value::{Str, Value};

pub(super) static TABLE: &[Native] = &[
    Native::concrete("base", &[STR], false, base),
    Native::concrete("osBase", &[STR], false, base),
    Native::concrete("dir", &[STR], false, dir),
    Native::concrete("osDir", &[STR], false, dir),
    Native::concrete("clean", &[STR], false, clean),
    Native::concrete("osClean", &[STR], false, clean),
    Native::concrete("ext", &[STR], false, ext),
    Native::concrete("osExt", &[STR], false, ext),
    Native::concrete("isAbs", &[STR], false, is_abs),
    Native::concrete("osIsAbs", &[STR], false, is_abs),
];

type Result = std::result::Result<Value, Error>;

/// `path.Clean`
fn cleaned(path: &[u8]) -> Vec<u8> {
    let rooted = path.first() == Some(&b'/');
    let mut kept: Vec<&[u8]> = Vec::new();
    for part in path.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => match kept.last() {
                Some(last) if *last != b".." => {
                    kept.pop();
                }
                _ if rooted => {}
                _ => kept.push(part),
            },
            _ => kept.push(part),
        }
    }
    let mut out = if rooted { b"/".to_vec() } else { Vec::new() };
    out.append(&mut kept.join(b"/".as_slice()));
    if out.is_empty() { b".".to_vec() } else { out }
}

fn base(_: &mut Executor, args: &[Value]) -> Result {
    let path = text(args, 0);
    if path.is_empty() {
        return Ok(Value::from("."));
    }
    let end = path.iter().rposition(|byte| *byte != b'/').map_or(0, |at| at + 1);
    let path = path.get(..end).unwrap_or_default();
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    Ok(if name.is_empty() {
        Value::from("/")
    } else {
        Value::Str(Str::new(name))
    })
}

fn dir(_: &mut Executor, args: &[Value]) -> Result {
    let path = text(args, 0);
    let end = path.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    Ok(Value::from(cleaned(path.get(..end).unwrap_or_default())))
}

fn clean(_: &mut Executor, args: &[Value]) -> Result {
    Ok(Value::from(cleaned(text(args, 0))))
}

fn ext(_: &mut Executor, args: &[Value]) -> Result {
    let path = text(args, 0);
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let start = name.iter().rposition(|byte| *byte == b'.');
    Ok(Value::Str(
        start
            .and_then(|start| name.get(start..))
            .map_or(Str::EMPTY, Str::new),
    ))
}

fn is_abs(_: &mut Executor, args: &[Value]) -> Result {
    Ok(Value::Bool(text(args, 0).starts_with(b"/")))
}
