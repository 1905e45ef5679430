//! Passwords: hashes of them, and the Master Password algorithm.

use base64::Engine as _;
use bcrypt::BASE_64;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::args::{STR, text};
use crate::Error;
use crate::exec::Executor;
use crate::function::Native;
use crate::value::{Type, UintKind, Value};

pub(super) static TABLE: &[Native] = &[
    Native::concrete("bcrypt", &[STR], false, bcrypt),
    Native::concrete("htpasswd", &[STR, STR], false, htpasswd),
    Native::concrete(
        "derivePassword",
        &[Type::Uint(UintKind::Uint32), STR, STR, STR, STR],
        false,
        derive_password,
    ),
];

type Result = std::result::Result<Value, Error>;

/// Go's `bcrypt.DefaultCost`.
const COST: u32 = 10;
/// Bytes of a password that bcrypt looks at.
const MAX_PASSWORD: usize = 72;

/// A hash in the form `$2a$10$…`, or what went wrong: Sprig returns that as text.
fn hash(executor: &mut Executor, password: &[u8]) -> std::result::Result<Vec<u8>, Error> {
    if password.len() > MAX_PASSWORD {
        return Ok(
            b"failed to encrypt string with bcrypt: bcrypt: password length exceeds 72 bytes".to_vec(),
        );
    }
    executor.check_deadline()?;
    let mut salt = [0; 16];
    executor.random(&mut salt);
    // The text ends in a zero byte, unless there is no room for it.
    let mut terminated = [password, &[0]].concat();
    terminated.truncate(MAX_PASSWORD);
    let hash = ::bcrypt::bcrypt(COST, salt, &terminated);
    // The last byte has never been part of the printed form.
    let (printed, _) = hash.split_at(23);
    let text = format!("$2a${COST}${}{}", BASE_64.encode(salt), BASE_64.encode(printed));
    Ok(text.into_bytes())
}

fn bcrypt(executor: &mut Executor, args: &[Value]) -> Result {
    Ok(Value::from(hash(executor, text(args, 0))?))
}

fn htpasswd(executor: &mut Executor, args: &[Value]) -> Result {
    let user = text(args, 0);
    if user.contains(&b':') {
        return Ok(Value::from([b"invalid username: ", user].concat()));
    }
    let hash = hash(executor, text(args, 1))?;
    Ok(Value::from([user, b":", &hash].concat()))
}

const SEED: &[u8] = b"com.lyndir.masterpassword";

/// Patterns of the password types; each letter stands for one of [`characters`].
fn patterns(kind: &[u8]) -> Option<&'static [&'static str]> {
    Some(match kind {
        b"maximum" => &["anoxxxxxxxxxxxxxxxxx", "axxxxxxxxxxxxxxxxxno"],
        b"long" => &[
            "CvcvnoCvcvCvcv",
            "CvcvCvcvnoCvcv",
            "CvcvCvcvCvcvno",
            "CvccnoCvcvCvcv",
            "CvccCvcvnoCvcv",
            "CvccCvcvCvcvno",
            "CvcvnoCvccCvcv",
            "CvcvCvccnoCvcv",
            "CvcvCvccCvcvno",
            "CvcvnoCvcvCvcc",
            "CvcvCvcvnoCvcc",
            "CvcvCvcvCvccno",
            "CvccnoCvccCvcv",
            "CvccCvccnoCvcv",
            "CvccCvccCvcvno",
            "CvcvnoCvccCvcc",
            "CvcvCvccnoCvcc",
            "CvcvCvccCvccno",
            "CvccnoCvcvCvcc",
            "CvccCvcvnoCvcc",
            "CvccCvcvCvccno",
        ],
        b"medium" => &["CvcnoCvc", "CvcCvcno"],
        b"short" => &["Cvcn"],
        b"basic" => &["aaanaaan", "aannaaan", "aaannaaa"],
        b"pin" => &["nnnn"],
        _ => return None,
    })
}

fn characters(class: u8) -> &'static [u8] {
    match class {
        b'V' => b"AEIOU",
        b'C' => b"BCDFGHJKLMNPQRSTVWXYZ",
        b'v' => b"aeiou",
        b'c' => b"bcdfghjklmnpqrstvwxyz",
        b'a' => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz",
        b'n' => b"0123456789",
        b'o' => b"@&%?,=[]_:-+*$#!'^~;()/.",
        _ => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz0123456789!@#$%^&*()",
    }
}

/// The seed word with a name of which the length is told first.
fn salted(name: &[u8]) -> Vec<u8> {
    // Go's conversion keeps the lower 32 bits.
    let length = (name.len() as u32).to_be_bytes();
    [SEED, &length, name].concat()
}

/// The Master Password algorithm, version 3: scrypt over the user, HMAC over the site, and a pattern filled in.
fn derive_password(executor: &mut Executor, args: &[Value]) -> Result {
    let counter = match args.first() {
        // A literal beyond 32 bits is cut, as Go does.
        Some(Value::Uint(_, counter)) => *counter as u32,
        _ => 0,
    };
    let kind = text(args, 1);
    let Some(patterns) = patterns(kind) else {
        return Ok(Value::from([b"cannot find password template ", kind].concat()));
    };
    executor.check_deadline()?;
    let failed = |error: String| Error::message(format!("failed to derive password: {error}"));
    let parameters = scrypt::Params::new(15, 8, 2).map_err(|error| failed(error.to_string()))?;
    let mut key = [0; 64];
    scrypt::scrypt(text(args, 2), &salted(text(args, 3)), &parameters, &mut key)
        .map_err(|error| failed(error.to_string()))?;
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).map_err(|error| failed(error.to_string()))?;
    mac.update(&salted(text(args, 4)));
    mac.update(&counter.to_be_bytes());
    let seed = mac.finalize().into_bytes();

    let pick = |choices: usize, seed: Option<&u8>| usize::from(seed.copied().unwrap_or(0)) % choices.max(1);
    let pattern = patterns
        .get(pick(patterns.len(), seed.first()))
        .copied()
        .unwrap_or_default();
    let password: Vec<u8> = pattern
        .bytes()
        .zip(seed.iter().skip(1))
        .filter_map(|(class, seed)| {
            let choices = characters(class);
            choices.get(pick(choices.len(), Some(seed))).copied()
        })
        .collect();
    Ok(Value::from(password))
}
