//! A key with its users and subkeys, as far as its own signatures hold.

use super::Error;
use super::packet::{Packet, Packets};
use super::public_key::{Material, PublicKey};
use super::signature::{Signature, kind};

/// A primary key and what belongs to it.
#[derive(Debug)]
pub(super) struct Entity {
    pub(super) primary: PublicKey,
    pub(super) revocations: Vec<Signature>,
    pub(super) subkeys: Vec<Subkey>,
    users: Vec<User>,
    /// By the key over itself; what a version 6 key says of itself stands there.
    direct: Option<Signature>,
}

/// A name that the key goes by.
#[derive(Debug)]
pub(super) struct User {
    name: Vec<u8>,
    /// The latest by which the key took the name.
    certification: Option<Signature>,
    pub(super) revocations: Vec<Signature>,
}

/// A further key of the same owner.
#[derive(Debug)]
pub(super) struct Subkey {
    pub(super) key: PublicKey,
    /// The latest by which the primary key took it.
    pub(super) binding: Signature,
    pub(super) revocations: Vec<Signature>,
}

impl Entity {
    /// Reads the next key of a keyring; none at its end.
    pub(super) fn read(packets: &mut Packets<'_>) -> Result<Option<Self>, Error> {
        let primary = match packets.next()? {
            None => return Ok(None),
            Some(Packet::Key(packet)) => packet.key,
            Some(other) => {
                packets.put_back(other);
                return Err(Error::structural("first packet was not a public/private key"));
            }
        };
        if !primary.can_sign() {
            return Err(Error::structural("primary key cannot be used for signatures"));
        }
        let mut entity = Self {
            primary,
            revocations: Vec::new(),
            subkeys: Vec::new(),
            users: Vec::new(),
            direct: None,
        };
        let (mut revocations, mut direct) = (Vec::new(), Vec::new());
        while let Some(packet) = packets.next()? {
            match packet {
                Packet::UserId(name) => entity.add_user(name, packets)?,
                Packet::Signature(signature) => match signature.kind {
                    kind::KEY_REVOCATION => revocations.push(*signature),
                    kind::DIRECT_KEY => direct.push(*signature),
                    // It follows nothing that it could be about.
                    _ => {}
                },
                Packet::Key(packet) if packet.is_subkey => entity.add_subkey(packet.key, packets)?,
                Packet::Key(_) => {
                    packets.put_back(packet);
                    break;
                }
                Packet::Other => {}
            }
        }
        entity.finish(revocations, direct).map(Some)
    }

    fn finish(mut self, revocations: Vec<Signature>, direct: Vec<Signature>) -> Result<Self, Error> {
        if self.primary.version < 6 {
            if self.users.is_empty() {
                return Err(Error::structural(format!(
                    "v{} entity without any identities",
                    self.primary.version
                )));
            }
        } else {
            self.direct = Some(self.main_direct(direct)?);
        }
        for revocation in revocations {
            self.primary
                .verify(&revocation, &[&self.primary.to_hash()])
                .map_err(|_| Error::structural("revocation signature signed by alternate key"))?;
            self.revocations.push(revocation);
        }
        Ok(self)
    }

    fn main_direct(&self, direct: Vec<Signature>) -> Result<Signature, Error> {
        if direct.is_empty() {
            return Err(Error::structural(
                "v6 entity without a valid direct-key signature",
            ));
        }
        let mut main: Option<Signature> = None;
        for signature in direct {
            let is_later = main.as_ref().is_none_or(|main| signature.created > main.created);
            if signature.names(&self.primary) && is_later {
                main = Some(signature);
            }
        }
        let main = main.ok_or_else(|| {
            Error::structural("no valid direct-key self-signature for v6 primary key found")
        })?;
        self.primary
            .verify(&main, &[&self.primary.to_hash()])
            .map_err(|_| Error::structural("invalid direct-key self-signature for v6 primary key"))?;
        Ok(main)
    }

    fn add_user(&mut self, name: Vec<u8>, packets: &mut Packets<'_>) -> Result<(), Error> {
        let length = u32::try_from(name.len()).unwrap_or(u32::MAX).to_be_bytes();
        let to_hash = [&[0xb4][..], &length, &name].concat();
        let mut user = User {
            name,
            certification: None,
            revocations: Vec::new(),
        };
        let mut is_own = false;
        while let Some(packet) = packets.next()? {
            let Packet::Signature(signature) = packet else {
                packets.put_back(packet);
                break;
            };
            let is_revocation = signature.kind == kind::CERTIFICATION_REVOCATION;
            if !is_revocation && !kind::CERTIFICATIONS.contains(&signature.kind) {
                return Err(Error::structural("user ID signature with wrong type"));
            }
            // What others say of the name is not looked at.
            if !signature.names(&self.primary) {
                continue;
            }
            self.primary
                .verify(&signature, &[&self.primary.to_hash(), &to_hash])
                .map_err(|error| Error::structural(format!("user ID self-signature invalid: {error}")))?;
            is_own = true;
            if is_revocation {
                user.revocations.push(*signature);
            } else if user
                .certification
                .as_ref()
                .is_none_or(|last| signature.created > last.created)
            {
                user.certification = Some(*signature);
            }
        }
        if is_own {
            self.users.retain(|known| known.name != user.name);
            self.users.push(user);
        }
        Ok(())
    }

    fn add_subkey(&mut self, key: PublicKey, packets: &mut Packets<'_>) -> Result<(), Error> {
        let invalid = |error: Error| Error::structural(format!("subkey signature invalid: {error}"));
        let mut binding: Option<Signature> = None;
        let mut revocations = Vec::new();
        while let Some(packet) = packets.next().map_err(invalid)? {
            let Packet::Signature(signature) = packet else {
                packets.put_back(packet);
                break;
            };
            if !matches!(signature.kind, kind::SUBKEY_BINDING | kind::SUBKEY_REVOCATION) {
                return Err(Error::structural("subkey signature with wrong type"));
            }
            self.verify_binding(&key, &signature).map_err(invalid)?;
            if signature.kind == kind::SUBKEY_REVOCATION {
                revocations.push(*signature);
            } else if binding
                .as_ref()
                .is_none_or(|last| signature.created > last.created)
            {
                binding = Some(*signature);
            }
        }
        let binding = binding.ok_or_else(|| Error::structural("subkey packet not followed by signature"))?;
        self.subkeys.push(Subkey {
            key,
            binding,
            revocations,
        });
        Ok(())
    }

    /// A subkey that signs must have signed the primary key in turn; else anybody's key could be taken for one's own.
    fn verify_binding(&self, key: &PublicKey, signature: &Signature) -> Result<(), Error> {
        let (primary, subkey) = (self.primary.to_hash(), key.to_hash());
        let parts = [primary.as_slice(), subkey.as_slice()];
        self.primary.verify(signature, &parts)?;
        // A key whose signatures cannot be checked is of no use to anybody who claims it.
        if signature.may_sign != Some(true) || matches!(key.material, Material::Unchecked(_)) {
            return Ok(());
        }
        let crossed = signature
            .embedded
            .as_ref()
            .ok_or_else(|| Error::structural("signing subkey is missing cross-signature"))?;
        key.verify(crossed, &parts)
            .map_err(|error| Error::structural(format!("error while verifying cross-signature: {error}")))
    }

    /// The user whose signature says what the key may do.
    fn primary_user(&self) -> Option<&User> {
        let mut users = self.users.iter();
        let first = users.next()?;
        Some(users.fold(first, |best, user| if user.is_before(best) { user } else { best }))
    }

    /// The signature that says what the primary key may do and how long, and the user that it is about; a version 6 key
    /// says it of itself.
    pub(super) fn self_signature(&self) -> (Option<&Signature>, Option<&User>) {
        if self.primary.version == 6 {
            return (self.direct.as_ref(), None);
        }
        let user = self.primary_user();
        (user.and_then(|user| user.certification.as_ref()), user)
    }
}

impl User {
    /// Whether this one rather than another speaks for the key: one that was not revoked, the primary one, the latest.
    fn is_before(&self, other: &Self) -> bool {
        if self.revocations.len() != other.revocations.len() {
            return self.revocations.len() < other.revocations.len();
        }
        let (Some(theirs), Some(own)) = (&other.certification, &self.certification) else {
            return other.certification.is_none();
        };
        match (theirs.is_primary_user, own.is_primary_user) {
            (true, false) => false,
            (false, true) => true,
            _ => own.created > theirs.created,
        }
    }
}
