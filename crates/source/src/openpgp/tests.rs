//! Keys and signatures made by GnuPG, by Helm and by the library that Helm uses; what is expected is what Helm 4.3.1 says.

use std::fs;
use std::path::PathBuf;

use super::{ClearSigned, Keyring, check_signature};

/// 2027, when all keys live that have not expired long ago.
const NOW: i64 = 1_800_000_000;

/// Signatures that are not accepted, and why.
const REFUSED: [(&str, &str); 8] = [
    ("expired", "openpgp: key expired"),
    ("future", "openpgp: key expired"),
    ("sigexpired", "openpgp: signature expired"),
    ("revoked", "openpgp: signature made by revoked key"),
    ("subkeyrevoked", "openpgp: signature made by revoked key"),
    // Helm accepts these three.
    (
        "brainpool",
        "openpgp: signature made by unknown entity (the keyring has its key, but signatures by keys of BrainpoolP256 \
         cannot be checked here)",
    ),
    (
        "ed448",
        "openpgp: signature made by unknown entity (the keyring has its key, but signatures by keys of Ed448 cannot be \
         checked here)",
    ),
    (
        "rsa-sha224",
        "openpgp: unsupported feature: RSA signatures with Sha224 by a key of 2048 bits cannot be checked here",
    ),
];

fn data(path: &str) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/provenance");
    fs::read(folder.join(path)).unwrap()
}

fn check(provenance: &[u8], keys: &[u8]) -> Result<(), String> {
    let keyring = Keyring::read(keys)?;
    let signed = ClearSigned::decode(provenance).ok_or("signature block not found")?;
    check_signature(&keyring, signed, NOW).map_err(|error| error.to_string())
}

/// The key that made a signature.
fn key_of(signature: &str) -> String {
    let name = signature.strip_prefix("helm-").unwrap_or(signature);
    let name = name.split("-sha").next().unwrap_or_default();
    format!("keys/{}.asc", if name == "text" { "rsa" } else { name })
}

#[test]
fn every_signature_is_judged_as_helm_judges_it() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/provenance/signatures");
    let mut seen = 0;
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let refused = REFUSED.iter().find(|(refused, _)| *refused == name);
        let expected = refused.map_or(Ok(()), |(_, problem)| Err((*problem).to_owned()));
        let provenance = fs::read(&path).unwrap();
        assert_eq!(check(&provenance, &data(&key_of(&name))), expected, "{name}");
        seen += 1;
    }
    assert!(seen > 30, "{seen}");
}

#[test]
fn keyrings_of_every_format_are_read() {
    for (keyring, signers) in [
        (
            "all.gpg",
            &["rsa", "ed25519", "subkey", "p521", "dsa", "rsa1024"][..],
        ),
        ("pubring.kbx", &["rsa", "ed25519", "subkey"]),
        ("two.asc", &["rsa", "ed25519"]),
        ("sec-ed25519.gpg", &["ed25519"]),
    ] {
        let keys = data(&format!("keys/{keyring}"));
        for signer in signers {
            let provenance = data(&format!("signatures/{signer}.prov"));
            assert_eq!(check(&provenance, &keys), Ok(()), "{keyring} {signer}");
        }
        let stranger = data("signatures/v6-rsa.prov");
        let unknown = "openpgp: signature made by unknown entity";
        assert_eq!(check(&stranger, &keys).unwrap_err(), unknown, "{keyring}");
    }
}

#[test]
fn a_key_that_may_not_sign_is_nobodys() {
    let unknown = Err("openpgp: signature made by unknown entity".to_owned());
    assert_eq!(
        check(&data("signatures/rsa.prov"), &data("keys/certonly.asc")),
        unknown
    );
    assert_eq!(check(&data("signatures/rsa.prov"), b""), unknown);
}

#[test]
fn a_changed_text_or_signature_never_passes() {
    for name in [
        "rsa",
        "ed25519",
        "p256",
        "dsa",
        "subkey",
        "v6-ed25519",
        "helm-rsa",
    ] {
        let (good, keys) = (data(&format!("signatures/{name}.prov")), data(&key_of(name)));
        let keyring = Keyring::read(&keys).unwrap();
        let text = ClearSigned::decode(&good).unwrap().signed;
        for at in (0..good.len()).step_by(3) {
            let mut bad = good.clone();
            bad[at] ^= 1;
            let Some(signed) = ClearSigned::decode(&bad) else {
                continue;
            };
            let is_same_text = signed.signed == text;
            // What is not signed may change: names of hashes, checksums, unhashed subpackets.
            assert!(
                check_signature(&keyring, signed, NOW).is_err() || is_same_text,
                "{name} at {at}"
            );
        }
    }
}

#[test]
fn damaged_keyrings_are_errors_and_no_panics() {
    let provenance = data("signatures/subkey.prov");
    for (keyring, step) in [("all.gpg", 211), ("pubring.kbx", 13), ("sec-ed25519.gpg", 1)] {
        let good = data(&format!("keys/{keyring}"));
        for at in (0..good.len()).step_by(step) {
            let mut bad = good.clone();
            bad[at] ^= 0x41;
            let _ = check(&provenance, &bad);
            let _ = check(&provenance, &good[..at]);
        }
    }
    assert_eq!(
        Keyring::read(b"\x01").unwrap_err(),
        "openpgp: invalid data: tag byte does not have MSB set"
    );
    let message = "-----BEGIN PGP MESSAGE-----\n\nAAAA\n-----END PGP MESSAGE-----\n";
    assert_eq!(
        Keyring::read(message.as_bytes()).unwrap_err(),
        "expected a public or private key block, got \"PGP MESSAGE\""
    );
}
