//! The keys that a file holds.

use super::Error;
use super::armor;
use super::entity::Entity;
use super::keybox;
use super::octets::Octets;
use super::packet::{Packet, Packets};
use super::public_key::Material;

/// What armored blocks of keys are called.
const KEY_BLOCKS: [&[u8]; 2] = [b"PGP PUBLIC KEY BLOCK", b"PGP PRIVATE KEY BLOCK"];

/// Keys whose signatures are trusted.
#[derive(Debug, Default)]
pub(crate) struct Keyring {
    pub(super) entities: Vec<Entity>,
    /// Keys that were left out because nothing here can check their signatures.
    unchecked: Vec<(u64, &'static str)>,
}

/// How a keyring is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyringFormat {
    /// Packets one after another (`pubring.gpg`).
    Packets,
    /// A keybox of GnuPG (`pubring.kbx`).
    Keybox,
    /// Armored blocks, as `gpg --export --armor` prints them.
    Armored,
}

impl KeyringFormat {
    /// The format of a file.
    pub(crate) fn of(data: &[u8]) -> Self {
        if keybox::is_keybox(data) {
            Self::Keybox
        } else if data.trim_ascii_start().starts_with(b"-----BEGIN PGP") {
            Self::Armored
        } else {
            Self::Packets
        }
    }
}

impl Keyring {
    /// Reads a keyring in any format. A key that is malformed or not supported is passed over when there is another one.
    ///
    /// # Errors
    /// What is wrong with the file, in Helm's words.
    pub(crate) fn read(data: &[u8]) -> Result<Self, String> {
        let mut keyring = Self::default();
        match KeyringFormat::of(data) {
            KeyringFormat::Packets => {
                keyring
                    .add(Octets::Plain(data))
                    .map_err(|error| error.to_string())?;
            }
            KeyringFormat::Keybox => {
                let packets = keybox::packets(data)?;
                keyring
                    .add(Octets::Plain(&packets))
                    .map_err(|error| error.to_string())?;
            }
            KeyringFormat::Armored => keyring.add_armored(data)?,
        }
        Ok(keyring)
    }

    /// Every block counts: exports are often put one after another.
    fn add_armored(&mut self, data: &[u8]) -> Result<(), String> {
        let mut rest = data;
        while let Some(block) = armor::decode(rest) {
            if !KEY_BLOCKS.contains(&block.kind) {
                return Err(format!(
                    "expected a public or private key block, got {:?}",
                    String::from_utf8_lossy(block.kind)
                ));
            }
            rest = block.after();
            self.add(block.octets()).map_err(|error| error.to_string())?;
        }
        if self.entities.is_empty() && self.unchecked.is_empty() {
            return Err("no keys found".to_owned());
        }
        Ok(())
    }

    fn add(&mut self, octets: Octets<'_>) -> Result<(), Error> {
        let mut packets = Packets::new(octets);
        let mut skipped = None;
        let known = self.entities.len() + self.unchecked.len();
        loop {
            let read = packets.next().and_then(|first| {
                let Some(first) = first else {
                    return Ok((None, None));
                };
                let unchecked = unchecked(&first);
                packets.put_back(first);
                if unchecked.is_some() {
                    // Its own signatures cannot be checked, so nothing of it can be trusted.
                    packets.next()?;
                    return Ok((None, unchecked));
                }
                Ok((Entity::read(&mut packets)?, None))
            });
            match read {
                Ok((Some(entity), _)) => self.entities.push(entity),
                Ok((None, Some(unchecked))) => {
                    self.unchecked.push(unchecked);
                    pass_over(&mut packets)?;
                }
                Ok((None, None)) => break,
                Err(error) if error.skips_key() => {
                    skipped = Some(error);
                    pass_over(&mut packets)?;
                }
                Err(error) => return Err(error),
            }
        }
        match skipped {
            Some(error) if self.entities.len() + self.unchecked.len() == known => Err(error),
            _ => Ok(()),
        }
    }

    /// Why a key with this identifier was left out although Helm would have used it.
    pub(super) fn left_out(&self, id: u64) -> Option<&'static str> {
        let found = self.unchecked.iter().find(|(own, _)| *own == id);
        found.map(|(_, algorithm)| *algorithm)
    }
}

/// Goes on with the next public key after one that cannot be used.
fn pass_over(packets: &mut Packets<'_>) -> Result<(), Error> {
    while let Some(packet) = packets.next()? {
        if matches!(&packet, Packet::Key(found) if !found.is_subkey && !found.is_secret) {
            packets.put_back(packet);
            break;
        }
    }
    Ok(())
}

/// Identifier and algorithm of a primary key whose signatures nothing here can check.
fn unchecked(packet: &Packet) -> Option<(u64, &'static str)> {
    match packet {
        Packet::Key(packet) => match packet.key.material {
            Material::Unchecked(algorithm) => Some((packet.key.id, algorithm)),
            _ => None,
        },
        _ => None,
    }
}
