//! AES-256 in CBC mode, keyed with the password's first 32 bytes: what Sprig made of it, kept for the texts that
//! exist. It tells nobody whether a text was changed.

use aes::Aes256;
use aes::cipher::block_padding::{NoPadding, Pkcs7};
use aes::cipher::{BlockModeDecrypt, BlockModeEncrypt, KeyIvInit};

use super::args::{STR, text};
use super::encoding::{base64_text, decode_base64};
use crate::Error;
use crate::exec::Executor;
use crate::function::Native;
use crate::value::Value;

pub(super) static TABLE: &[Native] = &[
    Native::concrete("encryptAES", &[STR, STR], false, encrypt_aes),
    Native::concrete("decryptAES", &[STR, STR], false, decrypt_aes),
];

type Result = std::result::Result<Value, Error>;

/// Bytes of a block and of the initialisation vector.
const BLOCK: usize = 16;

/// The password cut or filled up with zeros.
fn key(password: &[u8]) -> [u8; 32] {
    let mut key = [0; 32];
    for (slot, byte) in key.iter_mut().zip(password) {
        *slot = *byte;
    }
    key
}

fn encrypt_aes(executor: &mut Executor, args: &[Value]) -> Result {
    let plain = text(args, 1);
    if plain.is_empty() {
        return Ok(Value::from(""));
    }
    executor.charge(2 * plain.len() + 4 * BLOCK)?;
    let mut vector = [0; BLOCK];
    executor.random(&mut vector);
    let cipher = cbc::Encryptor::<Aes256>::new(&key(text(args, 0)).into(), &vector.into());
    let encrypted = cipher.encrypt_padded_vec::<Pkcs7>(plain);
    Ok(Value::from(base64_text(
        &[&vector, encrypted.as_slice()].concat(),
    )))
}

fn decrypt_aes(executor: &mut Executor, args: &[Value]) -> Result {
    let source = text(args, 1);
    if source.is_empty() {
        return Ok(Value::from(""));
    }
    executor.charge(source.len())?;
    let bytes = decode_base64(source)
        .map_err(|at| Error::message(format!("illegal base64 data at input byte {at}")))?;
    // Sprig panics at all that follows; Go's engine makes these texts of it.
    let Some((vector, encrypted)) = bytes.split_first_chunk::<BLOCK>() else {
        let capacity = source.len() / 4 * 3;
        return Err(Error::message(format!(
            "runtime error: slice bounds out of range [:{BLOCK}] with capacity {capacity}"
        )));
    };
    let cipher = cbc::Decryptor::<Aes256>::new(&key(text(args, 0)).into(), vector.into());
    let mut plain = cipher
        .decrypt_padded_vec::<NoPadding>(encrypted)
        .map_err(|_| Error::message("crypto/cipher: input not full blocks"))?;
    let Some(padding) = plain.last() else {
        return Err(Error::message("runtime error: index out of range [-1]"));
    };
    let padding = usize::from(*padding);
    let Some(length) = plain.len().checked_sub(padding) else {
        let below = padding - plain.len();
        return Err(Error::message(format!(
            "runtime error: slice bounds out of range [:-{below}]"
        )));
    };
    plain.truncate(length);
    Ok(Value::from(plain))
}
