//! Randomness: all of it comes from the render's environment and marks the render.

use super::args::{INT, STR, int, text};
use super::encoding::base64_text;
use crate::Error;
use crate::exec::Executor;
use crate::function::Native;
use crate::value::Value;

pub(super) static TABLE: &[Native] = &[
    Native::concrete("randAlphaNum", &[INT], false, rand_alpha_num),
    Native::concrete("randAlpha", &[INT], false, rand_alpha),
    Native::concrete("randNumeric", &[INT], false, rand_numeric),
    Native::concrete("randAscii", &[INT], false, rand_ascii),
    Native::concrete("randBytes", &[INT], false, rand_bytes),
    Native::concrete("randInt", &[INT, INT], false, rand_int),
    Native::concrete("shuffle", &[STR], false, shuffle),
    Native::concrete("uuidv4", &[], false, uuidv4),
];

type Result = std::result::Result<Value, Error>;

/// A number below `bound`, each as likely as the other.
fn below(executor: &mut Executor, bound: u64) -> u64 {
    let limit = u64::MAX - u64::MAX % bound.max(1);
    loop {
        let mut bytes = [0; 8];
        executor.random(&mut bytes);
        let number = u64::from_le_bytes(bytes);
        if number < limit {
            return number % bound.max(1);
        }
    }
}

/// A text of characters from an alphabet. A count that makes no sense gives an empty text, as in Sprig.
fn text_of(executor: &mut Executor, count: i64, alphabet: &[u8]) -> Result {
    let count = usize::try_from(count).unwrap_or(0);
    executor.charge(count)?;
    // Bytes above the largest multiple of the alphabet's size would favour its beginning.
    let size = alphabet.len().clamp(1, 256);
    let limit = 256 - 256 % size;
    let mut out = Vec::with_capacity(count);
    let mut buffer = [0; 64];
    while out.len() < count {
        executor.random(&mut buffer);
        let fair = buffer
            .iter()
            .map(|byte| usize::from(*byte))
            .filter(|byte| *byte < limit);
        let missing = count - out.len();
        out.extend(fair.filter_map(|byte| alphabet.get(byte % size)).take(missing));
    }
    Ok(Value::from(out))
}

const ALPHA_NUM: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

fn rand_alpha_num(executor: &mut Executor, args: &[Value]) -> Result {
    text_of(executor, int(args, 0), ALPHA_NUM)
}

fn rand_alpha(executor: &mut Executor, args: &[Value]) -> Result {
    text_of(
        executor,
        int(args, 0),
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
    )
}

fn rand_numeric(executor: &mut Executor, args: &[Value]) -> Result {
    text_of(executor, int(args, 0), b"0123456789")
}

fn rand_ascii(executor: &mut Executor, args: &[Value]) -> Result {
    let printable: Vec<u8> = (b' '..=b'~').collect();
    text_of(executor, int(args, 0), &printable)
}

fn rand_bytes(executor: &mut Executor, args: &[Value]) -> Result {
    let count = usize::try_from(int(args, 0))
        .map_err(|_| Error::message("runtime error: makeslice: len out of range"))?;
    executor.charge(count)?;
    let mut bytes = vec![0; count];
    executor.random(&mut bytes);
    Ok(Value::from(base64_text(&bytes)))
}

fn rand_int(executor: &mut Executor, args: &[Value]) -> Result {
    let (min, max) = (int(args, 0), int(args, 1));
    let span = max.wrapping_sub(min);
    if span <= 0 {
        return Err(Error::message("invalid argument to Intn"));
    }
    Ok(Value::int(min.wrapping_add(below(executor, span as u64) as i64)))
}

fn shuffle(executor: &mut Executor, args: &[Value]) -> Result {
    let mut chars: Vec<char> = crate::unicode::runes(text(args, 0)).map(|(c, _)| c).collect();
    for index in (1..chars.len()).rev() {
        let other = below(executor, index as u64 + 1) as usize;
        chars.swap(index, other);
    }
    Ok(Value::from(chars.into_iter().collect::<String>()))
}

fn uuidv4(executor: &mut Executor, _: &[Value]) -> Result {
    let mut bytes = [0; 16];
    executor.random(&mut bytes);
    let bits = u128::from_be_bytes(bytes);
    let bits = bits & !(0xf << 76) | 4 << 76;
    let bits = bits & !(0x3 << 62) | 2 << 62;
    let digits = format!("{bits:032x}");
    let part = |from: usize, to: usize| digits.get(from..to).unwrap_or_default();
    let uuid = [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-");
    Ok(Value::from(uuid))
}
