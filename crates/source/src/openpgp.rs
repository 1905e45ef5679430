//! OpenPGP (RFC 9580, and RFC 4880 before it) as far as a signature of a chart needs it: reading public keys and
//! checking who signed a text. Nothing is signed or decrypted here.
//!
//! ```text
//!  keyring: packets | armor | GnuPG keybox ──▶ Keyring (keys whose own signatures hold)
//!                                                  │
//!  clear-signed text ──▶ text, signature packets ──┴──▶ the key that signed, or why there is none
//! ```
//!
//! What is accepted, which key is skipped and what an error says follow the library that Helm 4.3.1 uses
//! (`ProtonMail/go-crypto` 1.4.1): versions 4 and 6; RSA, DSA, ECDSA on NIST's curves and secp256k1, EdDSA and Ed25519;
//! subkeys with their bindings, revocation, expiry. Keys on Brainpool's curves and Ed448 can be read but not checked, and
//! an error says so.

mod armor;
mod check;
mod clearsign;
mod entity;
mod error;
mod keybox;
mod keyring;
mod octets;
mod packet;
mod public_key;
mod signature;
mod verify;

pub(crate) use check::{check_signature, signers};
pub(crate) use clearsign::ClearSigned;
pub(crate) use error::Error;
pub(crate) use keyring::{Keyring, KeyringFormat};

#[cfg(test)]
mod tests;
