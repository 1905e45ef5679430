//! Certificates and private keys. Keys are made and used by the caller's [`KeyMaker`](crate::KeyMaker); all that is
//! written around them is made here, as Go makes it.

mod der;
mod pem;
mod private_key;
mod x509;

use std::any::Any;
use std::net::IpAddr;

use self::private_key::Fault;
use self::x509::{Issuer, Template};
use super::args::{INT, LIST, STR, int, list, text};
use super::encoding::decode_base64;
use crate::exec::Executor;
use crate::fmt::sprint;
use crate::function::Native;
use crate::keys::{KeyAlgorithm, KeyError, PrivateKey};
use crate::value::{Object, Str, Type, Value, lossy};
use crate::{Cause, Error};

const CERTIFICATE: Type = Type::Object("sprig.certificate");

pub(super) static TABLE: &[Native] = &[
    Native::concrete("genPrivateKey", &[STR], false, gen_private_key),
    Native::concrete("buildCustomCert", &[STR, STR], false, build_custom_cert),
    Native::concrete("genCA", &[STR, INT], false, gen_ca),
    Native::concrete("genCAWithKey", &[STR, INT, STR], false, gen_ca_with_key),
    Native::concrete(
        "genSelfSignedCert",
        &[STR, LIST, LIST, INT],
        false,
        gen_self_signed_cert,
    ),
    Native::concrete(
        "genSelfSignedCertWithKey",
        &[STR, LIST, LIST, INT, STR],
        false,
        gen_self_signed_cert_with_key,
    ),
    Native::concrete(
        "genSignedCert",
        &[STR, LIST, LIST, INT, CERTIFICATE],
        false,
        gen_signed_cert,
    ),
    Native::concrete(
        "genSignedCertWithKey",
        &[STR, LIST, LIST, INT, CERTIFICATE, STR],
        false,
        gen_signed_cert_with_key,
    ),
];

type Result<T = Value> = std::result::Result<T, Error>;

/// Bits of the keys of certificates.
const CERTIFICATE_KEY: KeyAlgorithm = KeyAlgorithm::Rsa { bits: 2048 };
/// What `genPrivateKey "rsa"` makes.
const LONE_KEY: KeyAlgorithm = KeyAlgorithm::Rsa { bits: 4096 };

/// Reads a key out of PKCS#8.
pub(crate) fn private_key_from_pkcs8(der: &[u8]) -> Option<PrivateKey> {
    private_key::pkcs8(der).ok()
}

/// `sprig.certificate`: both fields are PEM.
#[derive(Clone, PartialEq, Eq)]
struct Certificate {
    cert: Str,
    key: Str,
}

impl Object for Certificate {
    fn type_name(&self) -> &'static str {
        CERTIFICATE.name()
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("Cert", Value::Str(self.cert.clone())),
            ("Key", Value::Str(self.key.clone())),
        ]
    }

    fn equals(&self, other: &dyn Object) -> bool {
        other.as_any().downcast_ref() == Some(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Texts of a certificate given as an argument.
fn certificate(args: &[Value], index: usize) -> (&[u8], &[u8]) {
    let object = match args.get(index) {
        Some(Value::Object(object)) => object.as_any().downcast_ref::<Certificate>(),
        _ => None,
    };
    object.map_or((&[], &[]), |certificate| {
        (certificate.cert.as_bytes(), certificate.key.as_bytes())
    })
}

/// A key with its public half.
struct Pair {
    private: PrivateKey,
    /// As in the bit string of `SubjectPublicKeyInfo`; empty for DSA.
    public: Vec<u8>,
}

impl Pair {
    fn new(executor: &mut Executor, private: PrivateKey) -> Result<std::result::Result<Self, KeyError>> {
        let public = match private {
            PrivateKey::Dsa { .. } => Ok(Vec::new()),
            _ => executor.keys()?.public_key(&private),
        };
        Ok(public.map(|public| Self { private, public }))
    }

    fn generate(
        executor: &mut Executor,
        algorithm: KeyAlgorithm,
    ) -> Result<std::result::Result<Self, KeyError>> {
        executor.check_deadline()?;
        executor.taint(crate::Taint::Random);
        match executor.keys()?.generate(algorithm) {
            Ok(private) => Self::new(executor, private),
            Err(error) => Ok(Err(error)),
        }
    }

    /// The key of a new certificate.
    fn for_certificate(executor: &mut Executor) -> Result<Self> {
        Self::generate(executor, CERTIFICATE_KEY)?
            .map_err(|error| Error::message(format!("error generating rsa key: {error}")))
    }

    /// A key that the chart brings, in PEM.
    fn read(executor: &mut Executor, pem: &[u8], context: &str) -> Result<Self> {
        let refused = |text: &dyn std::fmt::Display| Error::message(format!("{context}{text}"));
        let private = match private_key::parse(pem) {
            Ok(private) => private,
            Err(Fault::Refused(text)) => return Err(refused(&text)),
            Err(Fault::Unsupported(what)) => return Err(refused(&KeyError::Unsupported(what.to_owned()))),
        };
        Self::new(executor, private)?.map_err(|error| refused(&error))
    }
}

fn gen_private_key(executor: &mut Executor, args: &[Value]) -> Result {
    let algorithm = match text(args, 0) {
        b"" | b"rsa" => LONE_KEY,
        b"dsa" => KeyAlgorithm::Dsa,
        b"ecdsa" => KeyAlgorithm::Ecdsa(crate::Curve::P256),
        b"ed25519" => KeyAlgorithm::Ed25519,
        other => return Ok(Value::from([b"Unknown type ", other].concat())),
    };
    Ok(match Pair::generate(executor, algorithm)? {
        Ok(pair) => Value::from(private_key::encode(&pair.private, &pair.public)),
        // Sprig returns this as text; a Secret of it would be worse than no render.
        Err(error) => {
            return Err(Error::message(format!("failed to generate private key: {error}")));
        }
    })
}

fn build_custom_cert(executor: &mut Executor, args: &[Value]) -> Result {
    let refuse = |text: String| Err(Error::message(text));
    let Ok(cert) = decode_base64(text(args, 0)) else {
        return refuse("unable to decode base64 certificate".to_owned());
    };
    let Ok(key) = decode_base64(text(args, 1)) else {
        return refuse("unable to decode base64 private key".to_owned());
    };
    let Some(block) = pem::decode(&cert) else {
        return refuse("unable to decode certificate".to_owned());
    };
    if let Err(problem) = x509::parse(&block.bytes) {
        return refuse(format!("error parsing certificate: decodedCert.Bytes: {problem}"));
    }
    let problem = match private_key::parse(&key) {
        // Nothing is done with the key but to look whether it is one, so kinds we cannot use are no problem.
        Ok(private) => match Pair::new(executor, private)? {
            Ok(_) | Err(KeyError::Unsupported(_)) => None,
            Err(error) => Some(error.to_string()),
        },
        Err(Fault::Unsupported(_)) => None,
        Err(Fault::Refused(text)) => Some(text),
    };
    if let Some(problem) = problem {
        return refuse(format!("error parsing private key: {problem}"));
    }
    Ok(Value::object(Certificate {
        cert: cert.into(),
        key: key.into(),
    }))
}

/// The alternative names of a certificate.
struct Names {
    ips: Vec<IpAddr>,
    dns_names: Vec<Vec<u8>>,
}

impl Names {
    const EMPTY: Self = Self {
        ips: Vec::new(),
        dns_names: Vec::new(),
    };

    /// From the second and third argument.
    fn read(executor: &Executor, args: &[Value]) -> Result<Self> {
        let shown = |value: &Value| {
            sprint(std::slice::from_ref(value), executor.limits())
                .map(|text| lossy(&text))
                .map_err(|limit| Error::new(Cause::Limit(limit)))
        };
        let mut names = Self::EMPTY;
        for value in list(args, 1) {
            let Value::Str(ip) = &value else {
                let shown = shown(&value)?;
                return Err(Error::message(format!(
                    "error parsing ip: {shown} is not a string"
                )));
            };
            let ip = ip.to_text();
            match ip.parse() {
                Ok(parsed) => names.ips.push(parsed),
                Err(_) => return Err(Error::message(format!("error parsing ip: {ip}"))),
            }
        }
        for value in list(args, 2) {
            let Value::Str(name) = &value else {
                let shown = shown(&value)?;
                return Err(Error::message(format!(
                    "error processing alternate dns name: {shown} is not a string"
                )));
            };
            names.dns_names.push(name.as_bytes().to_vec());
        }
        Ok(names)
    }

    fn template<'a>(
        self,
        executor: &mut Executor,
        common_name: &'a [u8],
        days: i64,
        is_ca: bool,
    ) -> Template<'a> {
        let mut serial = [0; 16];
        executor.random(&mut serial);
        Template {
            common_name,
            ips: self.ips,
            dns_names: self.dns_names,
            now: executor.now(),
            days,
            serial,
            is_ca,
        }
    }
}

/// A certificate that signs others, and its key.
struct Authority {
    issuer: Issuer,
    pair: Pair,
}

/// Sprig's `getCertAndKey`, with the checks of Go's `x509.CreateCertificate` in their order. Without an authority the
/// certificate signs itself.
fn create(
    executor: &mut Executor,
    template: &Template<'_>,
    subject: &Pair,
    authority: Option<&Authority>,
) -> Result {
    let failed = |problem: &str| Error::message(format!("error creating certificate: {problem}"));
    let signing = authority.map_or(subject, |authority| &authority.pair);
    let issuer = authority.map(|authority| &authority.issuer);
    let Some(signing_info) = x509::public_key_info(&signing.private, &signing.public) else {
        return Err(failed(
            "x509: certificate private key does not implement crypto.Signer",
        ));
    };
    let Some(public_key) = x509::public_key_info(&subject.private, &subject.public) else {
        return Err(failed("x509: unsupported public key type: *dsa.PublicKey"));
    };
    x509::subject(template.common_name).map_err(|problem| failed(&problem))?;
    if issuer.is_some_and(|issuer| issuer.public_key != signing_info) {
        return Err(failed(
            "x509: provided PrivateKey doesn't match parent's PublicKey",
        ));
    }
    let to_be_signed = x509::to_be_signed(template, &subject.public, &public_key, &signing.private, issuer)
        .map_err(|problem| failed(&problem))?;
    let signature = executor
        .keys()?
        .sign(&signing.private, &to_be_signed)
        .map_err(|error| failed(&error.to_string()))?;
    let certificate = x509::signed(to_be_signed, &signing.private, &signature);
    let cert = pem::encode("CERTIFICATE", &certificate);
    let key = private_key::encode(&subject.private, &subject.public);
    executor.charge(cert.len() + key.len())?;
    Ok(Value::object(Certificate {
        cert: cert.into(),
        key: key.into(),
    }))
}

const PARSING_KEY: &str = "parsing private key: ";

fn gen_ca(executor: &mut Executor, args: &[Value]) -> Result {
    let pair = Pair::for_certificate(executor)?;
    self_signed_ca(executor, args, &pair)
}

fn gen_ca_with_key(executor: &mut Executor, args: &[Value]) -> Result {
    let pair = Pair::read(executor, text(args, 2), PARSING_KEY)?;
    self_signed_ca(executor, args, &pair)
}

fn self_signed_ca(executor: &mut Executor, args: &[Value], pair: &Pair) -> Result {
    let template = Names::EMPTY.template(executor, text(args, 0), int(args, 1), true);
    create(executor, &template, pair, None)
}

fn gen_self_signed_cert(executor: &mut Executor, args: &[Value]) -> Result {
    let names = Names::read(executor, args)?;
    let pair = Pair::for_certificate(executor)?;
    self_signed(executor, args, names, &pair)
}

fn gen_self_signed_cert_with_key(executor: &mut Executor, args: &[Value]) -> Result {
    let pair = Pair::read(executor, text(args, 4), PARSING_KEY)?;
    let names = Names::read(executor, args)?;
    self_signed(executor, args, names, &pair)
}

fn self_signed(executor: &mut Executor, args: &[Value], names: Names, pair: &Pair) -> Result {
    let template = names.template(executor, text(args, 0), int(args, 3), false);
    create(executor, &template, pair, None)
}

fn gen_signed_cert(executor: &mut Executor, args: &[Value]) -> Result {
    // What can be refused is refused before the key is made, which takes most of the time.
    let authority = authority(executor, args)?;
    let names = Names::read(executor, args)?;
    let pair = Pair::for_certificate(executor)?;
    signed(executor, args, names, &pair, &authority)
}

fn gen_signed_cert_with_key(executor: &mut Executor, args: &[Value]) -> Result {
    let pair = Pair::read(executor, text(args, 5), PARSING_KEY)?;
    let authority = authority(executor, args)?;
    let names = Names::read(executor, args)?;
    signed(executor, args, names, &pair, &authority)
}

/// The certificate authority given as the fifth argument.
fn authority(executor: &mut Executor, args: &[Value]) -> Result<Authority> {
    let (cert, key) = certificate(args, 4);
    let Some(block) = pem::decode(cert) else {
        return Err(Error::message("unable to decode certificate"));
    };
    let issuer = x509::parse(&block.bytes).map_err(|problem| {
        Error::message(format!(
            "error parsing certificate: decodedSignerCert.Bytes: {problem}"
        ))
    })?;
    let pair = Pair::read(executor, key, "error parsing private key: ")?;
    Ok(Authority { issuer, pair })
}

fn signed(
    executor: &mut Executor,
    args: &[Value],
    names: Names,
    pair: &Pair,
    authority: &Authority,
) -> Result {
    let template = names.template(executor, text(args, 0), int(args, 3), false);
    create(executor, &template, pair, Some(authority))
}
