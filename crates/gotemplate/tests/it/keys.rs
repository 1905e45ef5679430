//! Keys and signatures that real Helm made, given out again: with them, and with the random bytes and the time of
//! the same render, the engine must make the same certificates to the last byte.

use std::collections::VecDeque;
use std::rc::Rc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use evenkeel_gotemplate::{Curve, Instant, KeyAlgorithm, KeyError, KeyMaker, PrivateKey};
use serde::Deserialize;
use x509_parser::prelude::{FromDer, X509Certificate};

/// What `toJson` prints of a certificate.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "PascalCase")]
pub struct Printed {
    pub cert: String,
    pub key: String,
}

impl Printed {
    pub fn serial(&self) -> [u8; 16] {
        with_certificate(&self.cert, |certificate| {
            let digits = certificate.tbs_certificate.serial.to_bytes_be();
            let mut serial = [0; 16];
            serial[16 - digits.len()..].copy_from_slice(&digits);
            serial
        })
    }

    pub fn made(&self) -> Instant {
        with_certificate(&self.cert, |certificate| Instant {
            seconds: certificate.validity().not_before.timestamp(),
            nanos: 987_654_321,
        })
    }
}

/// The bytes of the one block of a PEM text.
pub fn bytes_of(pem: &str) -> Vec<u8> {
    let lines = pem.lines().filter(|line| !line.starts_with("-----"));
    STANDARD.decode(lines.collect::<String>()).unwrap()
}

fn with_certificate<R>(pem: &str, look: impl FnOnce(&X509Certificate<'_>) -> R) -> R {
    let der = bytes_of(pem);
    let (rest, certificate) = X509Certificate::from_der(&der).unwrap();
    assert!(rest.is_empty());
    look(&certificate)
}

/// Reads a key as Helm prints it.
fn private_key(pem: &str) -> PrivateKey {
    let der = bytes_of(pem);
    if pem.contains("RSA PRIVATE") {
        return PrivateKey::Rsa(der);
    }
    if pem.contains("EC PRIVATE") {
        // Sequence, version, then the number.
        let at = der.windows(4).position(|head| head == [2, 1, 1, 4]).unwrap() + 4;
        let scalar = der[at + 1..][..usize::from(der[at])].to_vec();
        let curve = match scalar.len() {
            28 => Curve::P224,
            32 => Curve::P256,
            48 => Curve::P384,
            _ => Curve::P521,
        };
        return PrivateKey::Ecdsa { curve, scalar };
    }
    PrivateKey::from_pkcs8(&der).unwrap()
}

struct Record {
    key: PrivateKey,
    public: Vec<u8>,
    to_be_signed: Vec<u8>,
    signature: Vec<u8>,
}

/// Gives out recorded keys in their order.
pub struct Recorded {
    records: Rc<Vec<Record>>,
    next: VecDeque<usize>,
    /// Whether only what was recorded may be signed.
    is_strict: bool,
}

#[derive(Deserialize)]
struct Rows {
    certificates: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    certificates: Vec<Printed>,
}

impl Recorded {
    /// The keys of these certificates; `is_made` tells for which of them the template had the key made.
    pub fn strict(certificates: &[Printed], is_made: impl Fn(&PrivateKey) -> bool) -> Self {
        let records = records(certificates);
        Self {
            next: (0..records.len())
                .filter(|index| is_made(&records[*index].key))
                .collect(),
            records: Rc::new(records),
            is_strict: true,
        }
    }

    /// Keys for templates that look at no content: all of the table in turn, and signatures of nothing.
    pub fn any() -> Self {
        thread_local! {
            static ALL: Rc<Vec<Record>> = {
                let rows: Rows = serde_json::from_str(include_str!("../data/crypto_v4.3.1.json")).unwrap();
                let printed: Vec<Printed> =
                    rows.certificates.into_iter().flat_map(|row| row.certificates).collect();
                Rc::new(records(&printed))
            };
        }
        let records = ALL.with(Rc::clone);
        let next = (0..records.len())
            .filter(|index| matches!(records[*index].key, PrivateKey::Rsa(_)))
            .collect();
        Self {
            records,
            next,
            is_strict: false,
        }
    }

    /// How many keys were not asked for.
    pub fn left(&self) -> usize {
        self.next.len()
    }
}

fn records(certificates: &[Printed]) -> Vec<Record> {
    certificates
        .iter()
        .map(|printed| {
            with_certificate(&printed.cert, |certificate| Record {
                key: private_key(&printed.key),
                public: certificate.public_key().subject_public_key.data.to_vec(),
                to_be_signed: certificate.tbs_certificate.as_ref().to_vec(),
                signature: certificate.signature_value.data.to_vec(),
            })
        })
        .collect()
}

impl KeyMaker for Recorded {
    fn generate(&mut self, algorithm: KeyAlgorithm) -> Result<PrivateKey, KeyError> {
        let wanted = |key: &PrivateKey| match algorithm {
            KeyAlgorithm::Rsa { bits } => bits == 2048 && matches!(key, PrivateKey::Rsa(_)),
            KeyAlgorithm::Ecdsa(wanted) => matches!(key, PrivateKey::Ecdsa { curve, .. } if *curve == wanted),
            KeyAlgorithm::Ed25519 => matches!(key, PrivateKey::Ed25519(_)),
            KeyAlgorithm::Dsa => false,
        };
        if algorithm == KeyAlgorithm::Dsa {
            // Small enough to be none; nobody looks.
            let number = |digit| vec![digit];
            return Ok(PrivateKey::Dsa {
                p: number(23),
                q: number(11),
                g: number(4),
                y: number(8),
                x: number(7),
            });
        }
        if !self.is_strict && !matches!(algorithm, KeyAlgorithm::Rsa { .. }) {
            let record = self.records.iter().find(|record| wanted(&record.key));
            return Ok(record.expect("a key of this kind").key.clone());
        }
        let next = self
            .next
            .pop_front()
            .ok_or_else(|| KeyError::Failed("no record is left".into()))?;
        let key = self.records[next].key.clone();
        assert!(wanted(&key), "{algorithm:?} is asked for where {key:?} was made");
        Ok(key)
    }

    fn public_key(&mut self, key: &PrivateKey) -> Result<Vec<u8>, KeyError> {
        match self.records.iter().find(|record| record.key == *key) {
            Some(record) => Ok(record.public.clone()),
            None if self.is_strict => panic!("no record of {key:?}"),
            None => Ok(vec![0; 32]),
        }
    }

    fn sign(&mut self, key: &PrivateKey, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        if !self.is_strict {
            return Ok(vec![0; 256]);
        }
        let record = self
            .records
            .iter()
            .find(|record| record.to_be_signed == message)
            .unwrap_or_else(|| panic!("{key:?} is to sign what Helm did not: {message:02x?}"));
        Ok(record.signature.clone())
    }
}
