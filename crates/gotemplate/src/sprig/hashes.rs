//! Checksums.

use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};

use super::args::{STR, text};
use crate::Error;
use crate::exec::Executor;
use crate::function::Native;
use crate::value::Value;

pub(super) static TABLE: &[Native] = &[
    Native::concrete("sha1sum", &[STR], false, sha1sum),
    Native::concrete("sha256sum", &[STR], false, sha256sum),
    Native::concrete("sha512sum", &[STR], false, sha512sum),
    Native::concrete("adler32sum", &[STR], false, adler32sum),
];

type Result = std::result::Result<Value, Error>;

fn hex<D: Digest>(source: &[u8]) -> Value {
    let digest = D::digest(source);
    let mut out = String::with_capacity(2 * digest.len());
    for byte in digest.iter() {
        for nibble in [byte >> 4, byte & 15] {
            out.push(char::from_digit(u32::from(nibble), 16).unwrap_or('0'));
        }
    }
    Value::from(out)
}

fn sha1sum(_: &mut Executor, args: &[Value]) -> Result {
    Ok(hex::<Sha1>(text(args, 0)))
}

fn sha256sum(_: &mut Executor, args: &[Value]) -> Result {
    Ok(hex::<Sha256>(text(args, 0)))
}

fn sha512sum(_: &mut Executor, args: &[Value]) -> Result {
    Ok(hex::<Sha512>(text(args, 0)))
}

fn adler32sum(_: &mut Executor, args: &[Value]) -> Result {
    const MODULUS: u32 = 65_521;
    let (mut a, mut b) = (1u32, 0u32);
    for byte in text(args, 0) {
        a = (a + u32::from(*byte)) % MODULUS;
        b = (b + a) % MODULUS;
    }
    Ok(Value::from((b << 16 | a).to_string()))
}
