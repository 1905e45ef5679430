//! `index`, `slice` and `len`.

use super::compare::underlying;
use crate::Error;
use crate::exec::{Executor, Operand};
use crate::value::{List, Str, Type, UintKind, Value};

/// An index as a position up to `limit`.
fn position(index: &Value, limit: usize) -> Result<usize, Error> {
    if let Some(number) = underlying(index) {
        return position(&number, limit);
    }
    let out_of_range = |shown: String| Error::message(format!("index out of range: {shown}"));
    let position = match index {
        Value::Int(_, int) => usize::try_from(*int).map_err(|_| out_of_range(int.to_string()))?,
        Value::Uint(_, uint) => {
            usize::try_from(*uint).map_err(|_| out_of_range((*uint as i64).to_string()))?
        }
        Value::Nil => return Err(Error::message("cannot index slice/array with nil")),
        other => {
            return Err(Error::message(format!(
                "cannot index slice/array with type {}",
                other.type_name()
            )));
        }
    };
    if position > limit {
        Err(out_of_range(position.to_string()))
    } else {
        Ok(position)
    }
}

/// Go panics with this when the index is just behind the end.
fn panic_text(what: &str) -> Error {
    Error::message(format!("reflect: {what} index out of range"))
}

pub(super) fn index(_: &mut Executor, args: &[Operand]) -> Result<Operand, Error> {
    let Some((item, indexes)) = args.split_first() else {
        return Err(Error::message("index of untyped nil"));
    };
    let mut item = Operand::concrete(item.value.clone());
    if item.value.is_nil() {
        return Err(Error::message("index of untyped nil"));
    }
    for index in indexes {
        item = match &item.value {
            Value::Nil => return Err(Error::message("index of nil pointer")),
            Value::List(list) => {
                let at = position(&index.value, list.len())?;
                let element = list.get(at).ok_or_else(|| panic_text("slice"))?;
                Operand::element(element, list.class().elem)
            }
            Value::Bytes(bytes) => {
                let at = position(&index.value, bytes.len())?;
                let byte = bytes.get(at).ok_or_else(|| panic_text("slice"))?;
                Operand::concrete(Value::Uint(UintKind::Uint8, u64::from(*byte)))
            }
            Value::Str(text) => {
                let at = position(&index.value, text.len())?;
                let byte = text.as_bytes().get(at).ok_or_else(|| panic_text("string"))?;
                Operand::concrete(Value::Uint(UintKind::Uint8, u64::from(*byte)))
            }
            Value::Map(map) => {
                let key = match &index.value {
                    Value::Str(key) => key,
                    Value::Nil => {
                        return Err(Error::message(format!(
                            "value is nil; should be of type {}",
                            Type::Str
                        )));
                    }
                    other => {
                        return Err(Error::message(format!(
                            "value has type {}; should be {}",
                            other.type_name(),
                            Type::Str
                        )));
                    }
                };
                let elem = map.class().elem;
                let value = map.get(key).unwrap_or_else(|| Value::zero(elem));
                Operand::element(value, elem)
            }
            // Go looks behind pointers first.
            other => {
                return Err(Error::message(format!(
                    "can't index item of type {}",
                    other.type_name().trim_start_matches('*')
                )));
            }
        };
    }
    Ok(item)
}

/// Go's `slice`; Sprig's function of the same name hides it in Helm.
pub(super) fn slice(_: &mut Executor, args: &[Operand]) -> Result<Operand, Error> {
    let Some((item, indexes)) = args.split_first() else {
        return Err(Error::message("slice of untyped nil"));
    };
    let length = match &item.value {
        Value::Nil => return Err(Error::message("slice of untyped nil")),
        _ if indexes.len() > 3 => {
            return Err(Error::message(format!(
                "too many slice indexes: {}",
                indexes.len()
            )));
        }
        Value::Str(_) if indexes.len() == 3 => return Err(Error::message("cannot 3-index slice a string")),
        Value::Str(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        Value::List(list) => list.len(),
        other => {
            return Err(Error::message(format!(
                "can't slice item of type {}",
                other.type_name()
            )));
        }
    };
    let mut bounds = [0, length, length];
    for (bound, index) in bounds.iter_mut().zip(indexes) {
        *bound = position(&index.value, length)?;
    }
    let [start, end, cap] = bounds;
    if start > end {
        return Err(Error::message(format!("invalid slice index: {start} > {end}")));
    }
    if end > cap {
        return Err(Error::message(format!("invalid slice index: {end} > {cap}")));
    }
    let out_of_range = || Error::message("slice bounds out of range");
    Ok(Operand::concrete(match &item.value {
        Value::Str(text) => Value::Str(Str::new(
            text.as_bytes().get(start..end).ok_or_else(out_of_range)?,
        )),
        Value::Bytes(bytes) => Value::Bytes(bytes.get(start..end).ok_or_else(out_of_range)?.into()),
        Value::List(list) => {
            let items = list
                .with(|items| items.get(start..end).map(<[Value]>::to_vec))
                .ok_or_else(out_of_range)?;
            Value::List(List::new(list.class(), items))
        }
        other => other.clone(),
    }))
}

pub(super) fn len(_: &mut Executor, args: &[Operand]) -> Result<Operand, Error> {
    let Some(item) = args.first() else {
        return Err(Error::message("len of nil pointer"));
    };
    if item.is_invalid() {
        return Err(Error::message(
            "reflect: call of reflect.Value.Type on zero Value",
        ));
    }
    match item.value.len() {
        Some(length) => Ok(Operand::concrete(Value::int(length as i64))),
        None if item.value.is_nil() => Err(Error::message("len of nil pointer")),
        // Go looks behind pointers first.
        None => {
            let name = item.value.type_name().trim_start_matches('*');
            Err(Error::message(format!("len of type {name}")))
        }
    }
}
