//! Private keys in PEM: PKCS#1 and SEC 1 as Go writes them, PKCS#8 for the rest, OpenSSL's form for DSA.

use super::der::{
    self, BIT_STRING, OCTET_STRING, OID, Reader, SEQUENCE, element, explicit, sequence, unsigned,
};
use super::pem;
use crate::keys::{Curve, PrivateKey};

/// `rsaEncryption`
pub(super) const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
/// `id-ecPublicKey`
pub(super) const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
pub(super) const ED25519: &[u8] = &[0x2b, 0x65, 0x70];
const X25519: &[u8] = &[0x2b, 0x65, 0x6e];

const CURVES: [(Curve, &[u8]); 4] = [
    (Curve::P224, &[0x2b, 0x81, 0x04, 0x00, 0x21]),
    (Curve::P256, &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07]),
    (Curve::P384, &[0x2b, 0x81, 0x04, 0x00, 0x22]),
    (Curve::P521, &[0x2b, 0x81, 0x04, 0x00, 0x23]),
];

/// The object identifier of a curve.
pub(super) fn curve_oid(curve: Curve) -> &'static [u8] {
    CURVES
        .iter()
        .find(|(known, _)| *known == curve)
        .map_or(&[], |(_, oid)| oid)
}

pub(super) fn curve_of(oid: &[u8]) -> Option<Curve> {
    CURVES
        .iter()
        .find(|(_, known)| *known == oid)
        .map(|(curve, _)| *curve)
}

/// Why a text is no private key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Go refuses it with this text.
    Refused(String),
    /// Go reads it, but no use of it is implemented.
    Unsupported(&'static str),
}

impl Fault {
    fn context(self, context: &str) -> Self {
        match self {
            Self::Refused(text) => Self::Refused(format!("{context}{text}")),
            unsupported @ Self::Unsupported(_) => unsupported,
        }
    }
}

fn refused(text: impl Into<String>) -> Fault {
    Fault::Refused(text.into())
}

const USE_PKCS1: &str =
    "x509: failed to parse private key (use ParsePKCS1PrivateKey instead for this key format)";
const USE_PKCS8: &str =
    "x509: failed to parse private key (use ParsePKCS8PrivateKey instead for this key format)";
const USE_EC: &str = "x509: failed to parse private key (use ParseECPrivateKey instead for this key format)";

/// Reads the first PEM block of a text, as Sprig's `parsePrivateKeyPEM`.
pub(super) fn parse(text: &[u8]) -> Result<PrivateKey, Fault> {
    let Some(block) = pem::decode(text) else {
        return Err(refused("no PEM data in input"));
    };
    let label = String::from_utf8_lossy(&block.label);
    if label == "PRIVATE KEY" {
        return pkcs8(&block.bytes).map_err(|fault| fault.context("decoding PEM as PKCS#8: "));
    }
    match label.strip_suffix(" PRIVATE KEY") {
        None => Err(refused(format!(
            "no private key data in PEM block of type {label}"
        ))),
        Some("RSA") => {
            pkcs1(&block.bytes).map_err(|fault| fault.context("parsing RSA private key from PEM: "))
        }
        Some("EC") => {
            sec1(None, &block.bytes).map_err(|fault| fault.context("parsing EC private key from PEM: "))
        }
        Some("DSA") => dsa(&block.bytes).map_err(|fault| fault.context("parsing DSA private key from PEM: ")),
        Some(_) => Err(refused(format!("invalid private key type {label}"))),
    }
}

/// Writes a key as Sprig's `pemBlockForKey`. The public key is needed for ECDSA alone.
pub(super) fn encode(key: &PrivateKey, public: &[u8]) -> String {
    match key {
        PrivateKey::Rsa(der) => pem::encode("RSA PRIVATE KEY", der),
        PrivateKey::Dsa { p, q, g, y, x } => {
            let numbers: Vec<Vec<u8>> = [&[0][..], p, q, g, y, x].map(unsigned).into();
            pem::encode("DSA PRIVATE KEY", &sequence(&numbers))
        }
        PrivateKey::Ecdsa { curve, scalar } => {
            let der = sequence(&[
                unsigned(&[1]),
                element(OCTET_STRING, scalar),
                element(explicit(0), &element(OID, curve_oid(*curve))),
                element(explicit(1), &der::bits(public)),
            ]);
            pem::encode("EC PRIVATE KEY", &der)
        }
        PrivateKey::Ed25519(seed) => {
            let der = sequence(&[
                unsigned(&[0]),
                sequence(&[element(OID, ED25519)]),
                element(OCTET_STRING, &element(OCTET_STRING, seed)),
            ]);
            pem::encode("PRIVATE KEY", &der)
        }
    }
}

/// What Go's `encoding/asn1` says about bytes that are not the structure of this name, which has this many fields.
fn asn1_error(der: &[u8], name: &str, fields: usize) -> String {
    if der.is_empty() {
        return "asn1: syntax error: sequence truncated".to_owned();
    }
    let Some((header, length)) = header(der) else {
        return "asn1: syntax error: truncated tag or length".to_owned();
    };
    let tag = der.first().copied().unwrap_or_default();
    if tag != SEQUENCE {
        let (class, number, compound) = (tag >> 6, tag & 0x1f, tag & 0x20 != 0);
        return format!(
            "asn1: structure error: tags don't match (16 vs {{class:{class} tag:{number} length:{length} \
             isCompound:{compound}}}) {{optional:false explicit:false application:false private:false \
             defaultValue:<nil> tag:<nil> stringType:0 timeType:0 set:false omitEmpty:false}} {name} @{header}"
        );
    }
    if der.len() - header < length {
        return "asn1: syntax error: data truncated".to_owned();
    }
    let Some(outer) = Reader(der).take(SEQUENCE) else {
        return "asn1: structure error: non-minimal length".to_owned();
    };
    let mut inner = outer.reader();
    let count = std::iter::from_fn(|| inner.any()).count();
    if inner.is_empty() && count < fields {
        return "asn1: syntax error: sequence truncated".to_owned();
    }
    // Go goes on to print its description of the field.
    "asn1: structure error: tags don't match".to_owned()
}

/// Length of tag and length, and the length they tell.
fn header(der: &[u8]) -> Option<(usize, usize)> {
    let length = usize::from(*der.get(1)?);
    if length < 0x80 {
        return Some((2, length));
    }
    let count = length & 0x7f;
    let digits = der.get(2..2 + count).filter(|_| count <= 4)?;
    let length = digits.iter().fold(0, |sum, digit| sum << 8 | usize::from(*digit));
    Some((2 + count, length))
}

/// The fields of `RSAPrivateKey`, the optional ones only if they are there.
fn pkcs1_fields(der: &[u8]) -> Option<(i64, Vec<&[u8]>, Reader<'_>)> {
    let mut fields = Reader(der).take(SEQUENCE)?.reader();
    let version = fields.small()?;
    let mut numbers = Vec::with_capacity(8);
    while numbers.len() < 8 && (numbers.len() < 5 || fields.peek(der::INTEGER)) {
        numbers.push(fields.integer()?);
    }
    Some((version, numbers, fields))
}

/// The fields of `ECPrivateKey` (RFC 5915) without the public key.
struct Sec1<'d> {
    version: i64,
    scalar: &'d [u8],
    curve: Option<&'d [u8]>,
}

fn sec1_fields(der: &[u8]) -> Option<Sec1<'_>> {
    let mut fields = Reader(der).take(SEQUENCE)?.reader();
    let version = fields.small()?;
    let scalar = fields.take(OCTET_STRING)?.content;
    let curve = match fields.take(explicit(0)) {
        Some(element) => Some(element.reader().oid()?),
        None => None,
    };
    if let Some(public) = fields.take(explicit(1)) {
        public.reader().take(BIT_STRING)?;
    }
    Some(Sec1 {
        version,
        scalar,
        curve,
    })
}

/// Algorithm, its parameters, and the key.
fn pkcs8_fields(der: &[u8]) -> Option<(&[u8], Reader<'_>, &[u8])> {
    let mut fields = Reader(der).take(SEQUENCE)?.reader();
    fields.small()?;
    let mut algorithm = fields.take(SEQUENCE)?.reader();
    let oid = algorithm.oid()?;
    let key = fields.take(OCTET_STRING)?.content;
    Some((oid, algorithm, key))
}

fn pkcs1(der: &[u8]) -> Result<PrivateKey, Fault> {
    let Some((version, numbers, mut more)) = pkcs1_fields(der) else {
        return Err(refused(if sec1_fields(der).is_some() {
            USE_EC.to_owned()
        } else if pkcs8_fields(der).is_some() {
            USE_PKCS8.to_owned()
        } else {
            asn1_error(der, "pkcs1PrivateKey", 6)
        }));
    };
    if Reader(der)
        .any()
        .is_some_and(|outer| outer.whole.len() < der.len())
    {
        return Err(refused("asn1: syntax error: trailing data"));
    }
    if version > 1 {
        return Err(refused("x509: unsupported private key version"));
    }
    let is_positive = |number: &&[u8]| number.first().is_some_and(|first| *first < 0x80) && **number != [0];
    if !numbers.iter().all(is_positive) {
        return Err(refused("x509: private key contains zero or negative value"));
    }
    if more.take(SEQUENCE).is_some() {
        return Err(Fault::Unsupported("RSA keys of more than two primes"));
    }
    if numbers.len() < 8 {
        return Err(Fault::Unsupported("RSA keys without their remainders"));
    }
    // As Go writes it back: version 0, and nothing after the numbers.
    let mut parts = vec![unsigned(&[0])];
    parts.extend(numbers.iter().map(|number| unsigned(number)));
    Ok(PrivateKey::Rsa(sequence(&parts)))
}

/// `curve` comes from PKCS#8 and wins over the one inside.
fn sec1(curve: Option<&[u8]>, der: &[u8]) -> Result<PrivateKey, Fault> {
    let Some(fields) = sec1_fields(der) else {
        return Err(refused(if pkcs8_fields(der).is_some() {
            USE_PKCS8.to_owned()
        } else if pkcs1_fields(der).is_some() {
            USE_PKCS1.to_owned()
        } else {
            let problem = asn1_error(der, "ecPrivateKey", 2);
            format!("x509: failed to parse EC private key: {problem}")
        }));
    };
    if fields.version != 1 {
        let version = fields.version;
        return Err(refused(format!("x509: unknown EC private key version {version}")));
    }
    let Some(curve) = curve.or(fields.curve).and_then(curve_of) else {
        return Err(refused("x509: unknown elliptic curve"));
    };
    // Too many zeros in front, or too few, are not in order but happen.
    let size = curve.scalar_len();
    let (extra, number) = fields.scalar.split_at(fields.scalar.len().saturating_sub(size));
    if extra.iter().any(|byte| *byte != 0) {
        return Err(refused("x509: invalid private key length"));
    }
    let mut padded = vec![0; size - number.len()];
    padded.extend_from_slice(number);
    Ok(PrivateKey::Ecdsa {
        curve,
        scalar: padded,
    })
}

pub(super) fn pkcs8(der: &[u8]) -> Result<PrivateKey, Fault> {
    let Some((algorithm, mut parameters, key)) = pkcs8_fields(der) else {
        return Err(refused(if sec1_fields(der).is_some() {
            USE_EC.to_owned()
        } else if pkcs1_fields(der).is_some() {
            USE_PKCS1.to_owned()
        } else {
            asn1_error(der, "pkcs8", 3)
        }));
    };
    let octets = |name: &str| -> Result<[u8; 32], Fault> {
        if !parameters.is_empty() {
            return Err(refused(format!("x509: invalid {name} private key parameters")));
        }
        let Some(inner) = Reader(key).take(OCTET_STRING) else {
            let problem = asn1_error(key, "[]uint8", 1);
            return Err(refused(format!("x509: invalid {name} private key: {problem}")));
        };
        let length = inner.content.len();
        inner
            .content
            .try_into()
            .map_err(|_| refused(format!("x509: invalid {name} private key length: {length}")))
    };
    match algorithm {
        RSA => pkcs1(key)
            .map_err(|fault| fault.context("x509: failed to parse RSA private key embedded in PKCS#8: ")),
        EC => sec1(parameters.oid(), key)
            .map_err(|fault| fault.context("x509: failed to parse EC private key embedded in PKCS#8: ")),
        ED25519 => Ok(PrivateKey::Ed25519(octets("Ed25519")?)),
        X25519 => {
            octets("X25519")?;
            Err(Fault::Unsupported("X25519"))
        }
        other => {
            let oid = der::oid_text(other);
            Err(refused(format!(
                "x509: PKCS#8 wrapping contained private key with unknown algorithm: {oid}"
            )))
        }
    }
}

fn dsa(der: &[u8]) -> Result<PrivateKey, Fault> {
    let fields = || {
        let mut fields = Reader(der).take(SEQUENCE)?.reader();
        fields.small()?;
        let mut number = || fields.integer().map(<[u8]>::to_vec);
        Some(PrivateKey::Dsa {
            p: number()?,
            q: number()?,
            g: number()?,
            y: number()?,
            x: number()?,
        })
    };
    fields().ok_or_else(|| refused(asn1_error(der, "DSAKeyFormat", 6)))
}
