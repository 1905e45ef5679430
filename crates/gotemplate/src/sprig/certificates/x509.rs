//! X.509 certificates (RFC 5280) with the contents that Go's `x509.CreateCertificate` gives them, byte for byte.

use std::net::IpAddr;

use sha2::{Digest, Sha256};

use super::der::{
    self, BIT_STRING, BOOLEAN, GENERALIZED_TIME, INTEGER, NULL, OCTET_STRING, OID, PRINTABLE_STRING, Reader,
    SEQUENCE, SET, UTC_TIME, UTF8_STRING, bits, element, explicit, group, implicit, sequence, unsigned,
};
use super::private_key::{EC, ED25519, RSA, curve_of, curve_oid};
use crate::env::Instant;
use crate::fmt::quote;
use crate::keys::{Curve, PrivateKey};
use crate::sprig::dates::utc_digits;

const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const SUBJECT_KEY_ID: &[u8] = &[0x55, 0x1d, 0x0e];
const KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x0f];
const SUBJECT_ALT_NAME: &[u8] = &[0x55, 0x1d, 0x11];
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];
const AUTHORITY_KEY_ID: &[u8] = &[0x55, 0x1d, 0x23];
const EXT_KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x25];
const SERVER_AUTH: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01];
const CLIENT_AUTH: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x02];
const SHA256_WITH_RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0b];
const DSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x38, 0x04, 0x01];
const X25519: &[u8] = &[0x2b, 0x65, 0x6e];

const DAY: i64 = 86_400;
const NANOS: i64 = 1_000_000_000;
/// Digits of a key identifier: RFC 7093 §2 (1).
const KEY_ID_LEN: usize = 20;
/// Digital signature, key encipherment.
const LEAF_USAGE: [u8; 2] = [5, 0b1010_0000];
/// And certificate signing.
const CA_USAGE: [u8; 2] = [2, 0b1010_0100];

/// What a certificate is to say.
pub(super) struct Template<'a> {
    pub(super) common_name: &'a [u8],
    pub(super) ips: Vec<IpAddr>,
    pub(super) dns_names: Vec<Vec<u8>>,
    pub(super) now: Instant,
    pub(super) days: i64,
    pub(super) serial: [u8; 16],
    pub(super) is_ca: bool,
}

/// Who signs, as its own certificate says.
pub(super) struct Issuer {
    /// The distinguished name in DER.
    pub(super) subject: Vec<u8>,
    pub(super) key_id: Vec<u8>,
    /// `SubjectPublicKeyInfo` in DER.
    pub(super) public_key: Vec<u8>,
}

/// `SubjectPublicKeyInfo` of a key and the public half of it. None for DSA.
pub(super) fn public_key_info(key: &PrivateKey, public: &[u8]) -> Option<Vec<u8>> {
    let algorithm = match key {
        PrivateKey::Rsa(_) => sequence(&[element(OID, RSA), element(NULL, &[])]),
        PrivateKey::Ecdsa { curve, .. } => sequence(&[element(OID, EC), element(OID, curve_oid(*curve))]),
        PrivateKey::Ed25519(_) => sequence(&[element(OID, ED25519)]),
        PrivateKey::Dsa { .. } => return None,
    };
    Some(sequence(&[algorithm, bits(public)]))
}

/// `AlgorithmIdentifier` of the signatures a key makes.
fn signature_algorithm(key: &PrivateKey) -> Vec<u8> {
    const ECDSA_WITH_SHA: [u8; 7] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03];
    match key {
        PrivateKey::Ecdsa { curve, .. } => {
            let hash = match curve {
                Curve::P224 | Curve::P256 => 2,
                Curve::P384 => 3,
                Curve::P521 => 4,
            };
            sequence(&[group(OID, &[&ECDSA_WITH_SHA[..], &[hash]])])
        }
        PrivateKey::Ed25519(_) => sequence(&[element(OID, ED25519)]),
        PrivateKey::Rsa(_) | PrivateKey::Dsa { .. } => {
            sequence(&[element(OID, SHA256_WITH_RSA), element(NULL, &[])])
        }
    }
}

/// Go's choice between the two kinds of string.
fn name_string(text: &[u8]) -> Result<Vec<u8>, String> {
    let is_printable = |byte: &u8| byte.is_ascii_alphanumeric() || b" '()+,-./:=?".contains(byte);
    if text.iter().all(is_printable) {
        return Ok(element(PRINTABLE_STRING, text));
    }
    if std::str::from_utf8(text).is_err() {
        return Err("asn1: string not valid UTF-8".to_owned());
    }
    Ok(element(UTF8_STRING, text))
}

/// The distinguished name in DER; without a common name it is empty.
pub(super) fn subject(common_name: &[u8]) -> Result<Vec<u8>, String> {
    if common_name.is_empty() {
        return Ok(element(SEQUENCE, &[]));
    }
    let attribute = sequence(&[element(OID, COMMON_NAME), name_string(common_name)?]);
    Ok(sequence(&[element(SET, &attribute)]))
}

/// UTC, to the second: two digits of the year as long as they suffice.
fn time(nanos: i128) -> Result<Vec<u8>, String> {
    let seconds = i64::try_from(nanos.div_euclid(i128::from(NANOS))).unwrap_or(i64::MAX);
    let (year, digits) = utc_digits(seconds);
    match year {
        1950..2050 => Ok(element(UTC_TIME, digits.get(2..).unwrap_or_default())),
        0..10_000 => Ok(element(GENERALIZED_TIME, &digits)),
        _ => Err("asn1: structure error: cannot represent time as GeneralizedTime".to_owned()),
    }
}

fn extension(oid: &[u8], is_critical: bool, value: &[u8]) -> Vec<u8> {
    let mut parts = vec![element(OID, oid)];
    if is_critical {
        parts.push(element(BOOLEAN, &[0xff]));
    }
    parts.push(element(OCTET_STRING, value));
    sequence(&parts)
}

fn alternative_names(template: &Template<'_>) -> Result<Vec<u8>, String> {
    let mut names = Vec::new();
    for name in &template.dns_names {
        if !name.is_ascii() {
            let shown = quote::bytes(name);
            return Err(format!("x509: {shown} cannot be encoded as an IA5String"));
        }
        names.push(element(implicit(2), name));
    }
    for ip in &template.ips {
        names.push(match ip.to_canonical() {
            IpAddr::V4(ip) => element(implicit(7), &ip.octets()),
            IpAddr::V6(ip) => element(implicit(7), &ip.octets()),
        });
    }
    Ok(sequence(&names))
}

fn key_id(public: &[u8]) -> Vec<u8> {
    let digest = Sha256::digest(public);
    digest.iter().take(KEY_ID_LEN).copied().collect()
}

/// The part of a certificate that is signed (`TBSCertificate`). `public` is the public half of `key`, `issuer` none
/// for a certificate that its own key signs.
pub(super) fn to_be_signed(
    template: &Template<'_>,
    public: &[u8],
    public_key: &[u8],
    signer: &PrivateKey,
    issuer: Option<&Issuer>,
) -> Result<Vec<u8>, String> {
    let subject = subject(template.common_name)?;
    let issuer_name = issuer.map_or(&subject, |issuer| &issuer.subject);
    let usage = if template.is_ca { CA_USAGE } else { LEAF_USAGE };
    let constraints: &[Vec<u8>] = if template.is_ca {
        &[element(BOOLEAN, &[0xff])]
    } else {
        &[]
    };
    let mut extensions = vec![
        extension(KEY_USAGE, true, &element(BIT_STRING, &usage)),
        extension(
            EXT_KEY_USAGE,
            false,
            &sequence(&[element(OID, SERVER_AUTH), element(OID, CLIENT_AUTH)]),
        ),
        extension(BASIC_CONSTRAINTS, true, &sequence(constraints)),
    ];
    if template.is_ca {
        let id = element(OCTET_STRING, &key_id(public));
        extensions.push(extension(SUBJECT_KEY_ID, false, &id));
    }
    if let Some(issuer) = issuer
        && *issuer_name != subject
        && !issuer.key_id.is_empty()
    {
        let id = sequence(&[element(implicit(0), &issuer.key_id)]);
        extensions.push(extension(AUTHORITY_KEY_ID, false, &id));
    }
    if !template.dns_names.is_empty() || !template.ips.is_empty() {
        let names = alternative_names(template)?;
        // RFC 5280 §4.2.1.6: critical where nothing else names the subject.
        let is_critical = template.common_name.is_empty();
        extensions.push(extension(SUBJECT_ALT_NAME, is_critical, &names));
    }
    let now = i128::from(template.now.seconds) * i128::from(NANOS) + i128::from(template.now.nanos);
    // Go's duration wraps beyond 292 years.
    let lifetime = template.days.wrapping_mul(DAY * NANOS);
    let validity = sequence(&[time(now)?, time(now + i128::from(lifetime))?]);
    Ok(sequence(&[
        element(explicit(0), &unsigned(&[2])),
        unsigned(&template.serial),
        signature_algorithm(signer),
        issuer_name.clone(),
        validity,
        subject,
        public_key.to_vec(),
        element(explicit(3), &sequence(&extensions)),
    ]))
}

/// The whole certificate in DER.
pub(super) fn signed(to_be_signed: Vec<u8>, signer: &PrivateKey, signature: &[u8]) -> Vec<u8> {
    sequence(&[to_be_signed, signature_algorithm(signer), bits(signature)])
}

/// Reads a certificate, checking its structure as Go does up to the extensions; of these only the key identifier is
/// looked into.
pub(super) fn parse(certificate: &[u8]) -> Result<Issuer, &'static str> {
    let mut outer = Reader(certificate);
    let whole = outer.take(SEQUENCE).ok_or("x509: malformed certificate")?;
    let mut input = whole.reader();
    let mut tbs = input
        .take(SEQUENCE)
        .ok_or("x509: malformed tbs certificate")?
        .reader();

    let version = version(&mut tbs)?;
    let serial = tbs.integer().ok_or("x509: malformed serial number")?;
    if serial.first().is_some_and(|first| *first >= 0x80) {
        return Err("x509: negative serial number");
    }
    let algorithm = tbs
        .take(SEQUENCE)
        .ok_or("x509: malformed signature algorithm identifier")?;
    let outer_algorithm = input
        .take(SEQUENCE)
        .ok_or("x509: malformed algorithm identifier")?;
    if algorithm.content != outer_algorithm.content {
        return Err("x509: inner and outer signature algorithm identifiers don't match");
    }
    algorithm_identifier(&mut algorithm.reader())?;
    name(tbs.take(SEQUENCE).ok_or("x509: malformed issuer")?.reader())?;
    let mut validity = tbs.take(SEQUENCE).ok_or("x509: malformed validity")?.reader();
    for _ in 0..2 {
        check_time(&mut validity)?;
    }
    // Go says issuer here too.
    let subject = tbs.take(SEQUENCE).ok_or("x509: malformed issuer")?;
    name(subject.reader())?;
    let public_key = tbs.take(SEQUENCE).ok_or("x509: malformed spki")?;
    check_public_key(public_key.reader())?;

    let mut key_id = Vec::new();
    if version > 1 {
        tbs.take(implicit(1));
        tbs.take(implicit(2));
        if version == 3
            && let Some(extensions) = tbs.take(explicit(3))
        {
            key_id = subject_key_id(extensions.reader())?;
        }
    }
    input.take(BIT_STRING).ok_or("x509: malformed signature")?;
    if !outer.is_empty() {
        return Err("x509: trailing data");
    }
    Ok(Issuer {
        subject: subject.whole.to_vec(),
        key_id,
        public_key: public_key.whole.to_vec(),
    })
}

fn version(tbs: &mut Reader<'_>) -> Result<i64, &'static str> {
    let Some(element) = tbs.take(explicit(0)) else {
        return Ok(1);
    };
    match element.reader().small() {
        None | Some(..0) => Err("x509: malformed version"),
        Some(version @ 0..3) => Ok(version + 1),
        Some(_) => Err("x509: invalid version"),
    }
}

/// Object identifier and parameters.
fn algorithm_identifier<'d>(
    reader: &mut Reader<'d>,
) -> Result<(&'d [u8], Option<der::Element<'d>>), &'static str> {
    let oid = reader.oid().ok_or("x509: malformed OID")?;
    if reader.is_empty() {
        return Ok((oid, None));
    }
    let parameters = reader.any().ok_or("x509: malformed parameters")?;
    Ok((oid, Some(parameters)))
}

fn name(mut names: Reader<'_>) -> Result<(), &'static str> {
    while !names.is_empty() {
        let mut set = names.take(SET).ok_or("x509: invalid RDNSequence")?.reader();
        while !set.is_empty() {
            let attribute = set
                .take(SEQUENCE)
                .ok_or("x509: invalid RDNSequence: invalid attribute")?;
            let mut attribute = attribute.reader();
            attribute
                .oid()
                .ok_or("x509: invalid RDNSequence: invalid attribute type")?;
            attribute
                .any()
                .ok_or("x509: invalid RDNSequence: invalid attribute value")?;
        }
    }
    Ok(())
}

fn check_time(validity: &mut Reader<'_>) -> Result<(), &'static str> {
    let (tag, length, problem) = if validity.peek(UTC_TIME) {
        (UTC_TIME, 13, "x509: malformed UTCTime")
    } else if validity.peek(GENERALIZED_TIME) {
        (GENERALIZED_TIME, 15, "x509: malformed GeneralizedTime")
    } else {
        return Err("x509: unsupported time format");
    };
    let text = validity.take(tag).ok_or(problem)?.content;
    let is_sound = match text.split_last() {
        Some((b'Z', digits)) => text.len() == length && digits.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if is_sound { Ok(()) } else { Err(problem) }
}

fn check_public_key(mut info: Reader<'_>) -> Result<(), &'static str> {
    let algorithm = info
        .take(SEQUENCE)
        .ok_or("x509: malformed public key algorithm identifier")?;
    let (oid, parameters) = algorithm_identifier(&mut algorithm.reader())?;
    let key = info.whole_bits().ok_or("x509: malformed subjectPublicKey")?;
    match oid {
        RSA => {
            if parameters.is_none_or(|parameters| parameters.whole != [NULL, 0]) {
                return Err("x509: RSA key missing NULL parameters");
            }
            let mut numbers = Reader(key)
                .take(SEQUENCE)
                .ok_or("x509: invalid RSA public key")?
                .reader();
            let modulus = numbers.integer().ok_or("x509: invalid RSA modulus")?;
            let exponent = numbers.small().ok_or("x509: invalid RSA public exponent")?;
            if modulus == [0] || modulus.first().is_some_and(|first| *first >= 0x80) {
                return Err("x509: RSA modulus is not a positive number");
            }
            if exponent <= 0 {
                return Err("x509: RSA public exponent is not a positive number");
            }
        }
        EC => {
            let curve = parameters
                .filter(|parameters| parameters.tag == OID)
                .ok_or("x509: invalid ECDSA parameters")?;
            let curve = curve_of(curve.content).ok_or("x509: unsupported elliptic curve")?;
            if key.first() != Some(&4) || key.len() != 1 + 2 * curve.scalar_len() {
                return Err("crypto/ecdsa: invalid public key");
            }
        }
        ED25519 if parameters.is_some() => {
            return Err("x509: Ed25519 key encoded with illegal parameters");
        }
        ED25519 if key.len() != 32 => return Err("x509: wrong Ed25519 public key size"),
        X25519 if parameters.is_some() => return Err("x509: X25519 key encoded with illegal parameters"),
        DSA => {
            if !Reader(key).peek(INTEGER) {
                return Err("x509: invalid DSA public key");
            }
            if parameters.is_none_or(|parameters| parameters.tag != SEQUENCE) {
                return Err("x509: invalid DSA parameters");
            }
        }
        // Go keeps a key it does not know without looking at it.
        _ => {}
    }
    Ok(())
}

/// Walks the extensions and picks the one.
fn subject_key_id(mut reader: Reader<'_>) -> Result<Vec<u8>, &'static str> {
    let mut extensions = reader
        .take(SEQUENCE)
        .ok_or("x509: malformed extensions")?
        .reader();
    let mut key_id = Vec::new();
    while !extensions.is_empty() {
        let mut extension = extensions
            .take(SEQUENCE)
            .ok_or("x509: malformed extension")?
            .reader();
        let oid = extension.oid().ok_or("x509: malformed extension OID field")?;
        if extension.peek(BOOLEAN) {
            extension
                .take(BOOLEAN)
                .filter(|flag| matches!(flag.content, [0x00 | 0xff]))
                .ok_or("x509: malformed extension critical field")?;
        }
        let value = extension
            .take(OCTET_STRING)
            .ok_or("x509: malformed extension value field")?;
        if oid == SUBJECT_KEY_ID {
            key_id = value
                .reader()
                .take(OCTET_STRING)
                .ok_or("x509: invalid subject key identifier")?
                .content
                .to_vec();
        }
    }
    Ok(key_id)
}
