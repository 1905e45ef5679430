//! Who signed a text.

use super::clearsign::ClearSigned;
use super::entity::{Entity, Subkey};
use super::packet::{Packet, Packets};
use super::public_key::PublicKey;
use super::signature::{Signature, kind};
use super::{Error, Keyring};

/// A key of a keyring that may sign.
#[derive(Clone, Copy)]
struct Candidate<'k> {
    entity: &'k Entity,
    /// The subkey, if it is not the primary key itself.
    subkey: Option<&'k Subkey>,
}

/// Checks that a key of the keyring signed the text and was good for that at `now`, in seconds since 1970.
///
/// # Errors
/// Why the signature is not accepted.
pub(crate) fn check_signature(keyring: &Keyring, signed: ClearSigned<'_>, now: i64) -> Result<(), Error> {
    let ClearSigned {
        signed, signature, ..
    } = signed;
    let mut packets = Packets::new(signature.octets());
    let mut left_out = None;
    let (signature, candidates) = loop {
        let Some(packet) = packets.next()? else {
            return Err(unknown(left_out));
        };
        let Packet::Signature(signature) = packet else {
            return Err(Error::structural("non signature packet found"));
        };
        let issuer = signature
            .issuer
            .ok_or_else(|| Error::structural("signature doesn't have an issuer"))?;
        let candidates = candidates(keyring, issuer);
        if !candidates.is_empty() {
            break (signature, candidates);
        }
        left_out = left_out.or_else(|| keyring.left_out(issuer));
    };
    let signed = match signature.kind {
        kind::BINARY => signed,
        kind::TEXT => canonical(&signed),
        other => {
            return Err(Error::unsupported(format!("unsupported signature type: {other}")));
        }
    };
    let mut last = unknown(None);
    for candidate in candidates {
        match candidate.key().verify(&signature, &[&signed]) {
            Ok(()) => return candidate.was_good(&signature, now),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The identifiers of the keys that the signatures of a text name, whether or not they hold.
pub(crate) fn signers(signed: ClearSigned<'_>) -> Vec<u64> {
    let mut packets = Packets::new(signed.signature.octets());
    let mut keys = Vec::new();
    while let Ok(Some(Packet::Signature(signature))) = packets.next() {
        keys.extend(signature.issuer);
    }
    keys
}

fn unknown(left_out: Option<&'static str>) -> Error {
    Error::UnknownIssuer(left_out.map_or_else(String::new, |algorithm| {
        format!(" (the keyring has its key, but signatures by keys of {algorithm} cannot be checked here)")
    }))
}

/// The keys with an identifier that may sign.
fn candidates(keyring: &Keyring, id: u64) -> Vec<Candidate<'_>> {
    let mut found = Vec::new();
    for entity in &keyring.entities {
        let may_sign = |signature: &Signature| signature.may_sign == Some(true);
        if entity.primary.id == id && entity.self_signature().0.is_some_and(may_sign) {
            found.push(Candidate { entity, subkey: None });
        }
        let subkeys = entity.subkeys.iter();
        let subkeys = subkeys.filter(|subkey| subkey.key.id == id && may_sign(&subkey.binding));
        found.extend(subkeys.map(|subkey| Candidate {
            entity,
            subkey: Some(subkey),
        }));
    }
    found
}

/// Each line ended by CR LF.
fn canonical(text: &[u8]) -> Vec<u8> {
    let mut canonical = Vec::with_capacity(text.len());
    let mut after_return = false;
    for byte in text {
        match byte {
            b'\n' if !after_return => canonical.extend_from_slice(b"\r\n"),
            byte => canonical.push(*byte),
        }
        after_return = !after_return && *byte == b'\r';
    }
    canonical
}

impl<'k> Candidate<'k> {
    fn key(self) -> &'k PublicKey {
        self.subkey.map_or(&self.entity.primary, |subkey| &subkey.key)
    }

    /// Whether key and signature could be trusted at a moment. The order of the checks decides which reason is told.
    fn was_good(self, signature: &Signature, now: i64) -> Result<(), Error> {
        let (certification, user) = self.entity.self_signature();
        let certification = certification.ok_or(Error::KeyRevoked)?;
        let mut rests_on = vec![signature, certification];
        if let Some(subkey) = self.subkey {
            rests_on.push(&subkey.binding);
            rests_on.extend(subkey.binding.embedded.as_deref());
        }
        if let Some(name) = rests_on.iter().find_map(|one| one.critical_notations.first()) {
            return Err(Error::Signature(format!("unknown critical notation: {name}")));
        }
        if revokes(&self.entity.revocations, now)
            || self
                .subkey
                .is_some_and(|subkey| revokes(&subkey.revocations, now))
            || user.is_some_and(|user| revokes(&user.revocations, now))
        {
            return Err(Error::KeyRevoked);
        }
        if self.entity.primary.is_expired(certification.key_lifetime, now)
            || self
                .subkey
                .is_some_and(|subkey| subkey.key.is_expired(subkey.binding.key_lifetime, now))
        {
            return Err(Error::KeyExpired);
        }
        if rests_on.iter().any(|one| one.is_expired(now)) {
            return Err(Error::SignatureExpired);
        }
        Ok(())
    }
}

/// A revocation because somebody else has the key holds for all time.
fn revokes(revocations: &[Signature], now: i64) -> bool {
    revocations
        .iter()
        .any(|revocation| revocation.is_compromised || !revocation.is_expired(now))
}
