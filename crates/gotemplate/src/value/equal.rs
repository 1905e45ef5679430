//! `reflect.DeepEqual`.

use super::Value;

/// Nesting at which two values count as different: a map can hold itself.
const MAX_DEPTH: usize = 1_000;

/// Go's `reflect.DeepEqual`: types must be equal (`1` and `1.0` differ, so do `[]string` and `[]interface {}`), and
/// a nil slice differs from an empty one.
pub fn deep_equal(a: &Value, b: &Value) -> bool {
    equal(a, b, 0)
}

fn equal(a: &Value, b: &Value, depth: usize) -> bool {
    if depth > MAX_DEPTH {
        return false;
    }
    match (a, b) {
        (Value::Nil, Value::Nil) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(ka, a), Value::Int(kb, b)) => ka == kb && a == b,
        (Value::Uint(ka, a), Value::Uint(kb, b)) => ka == kb && a == b,
        (Value::Float(a), Value::Float(b)) => a == b,
        (Value::Complex(ar, ai), Value::Complex(br, bi)) => ar == br && ai == bi,
        (Value::Str(a), Value::Str(b)) => a == b,
        (Value::Bytes(a), Value::Bytes(b)) => a == b,
        (Value::List(a), Value::List(b)) => {
            if a.class().name != b.class().name || a.is_nil() != b.is_nil() || a.len() != b.len() {
                return false;
            }
            a.same(b) || a.with(|a| b.with(|b| a.iter().zip(b).all(|(a, b)| equal(a, b, depth + 1))))
        }
        (Value::Map(a), Value::Map(b)) => {
            if a.class().name != b.class().name || a.is_nil() != b.is_nil() || a.len() != b.len() {
                return false;
            }
            if a.same(b) {
                return true;
            }
            match (a.borrow(), b.borrow()) {
                (Some(a), Some(b)) => a
                    .iter()
                    .zip(b.iter())
                    .all(|((ka, a), (kb, b))| ka == kb && equal(a, b, depth + 1)),
                _ => true,
            }
        }
        (Value::Object(a), Value::Object(b)) => a.type_name() == b.type_name() && a.equals(&**b),
        _ => false,
    }
}
