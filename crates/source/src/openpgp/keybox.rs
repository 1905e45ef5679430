//! GnuPG's keybox (`pubring.kbx`), in which keys lie between data of GnuPG's own.
//!
//! A keybox is a row of blobs. Each begins with its length (4 bytes, with these) and its kind (1 byte). One with a key
//! has flags at byte 6, and at bytes 8 and 12 where in the blob the key's packets are and how many bytes they take.
//! Source: `kbx/keybox-blob.c` of GnuPG.

const HEADER: u8 = 1;
const OPENPGP: u8 = 2;
/// GnuPG passes over blobs that say this of themselves.
const EPHEMERAL: u16 = 0x0002;
const BLOB_MIN: u32 = 5;

fn u32_at(data: &[u8], at: usize) -> Option<u32> {
    let bytes = data.get(at..at + 4)?.try_into().ok()?;
    Some(u32::from_be_bytes(bytes))
}

/// Whether this is a keybox.
pub(super) fn is_keybox(data: &[u8]) -> bool {
    data.get(4) == Some(&HEADER) && data.get(8..12) == Some(b"KBXf")
}

/// The packets of all keys.
///
/// # Errors
/// What is wrong, in Helm's words.
pub(super) fn packets(data: &[u8]) -> Result<Vec<u8>, String> {
    let mut packets = Vec::new();
    let mut offset = 0;
    while let Some(rest) = data.get(offset..).filter(|rest| !rest.is_empty()) {
        let length = u32_at(rest, 0)
            .filter(|_| rest.len() >= BLOB_MIN as usize)
            .ok_or_else(|| format!("truncated blob header at offset {offset}"))?;
        if length < BLOB_MIN {
            return Err(format!("invalid blob length {length} at offset {offset}"));
        }
        let blob = rest.get(..length as usize).ok_or_else(|| {
            format!(
                "blob at offset {offset} has length {length} exceeding the {} remaining bytes",
                rest.len()
            )
        })?;
        if blob.get(4) == Some(&OPENPGP) {
            let short = || format!("OpenPGP blob at offset {offset} is too short");
            let from = u32_at(blob, 8).ok_or_else(short)? as usize;
            let count = u32_at(blob, 12).ok_or_else(short)? as usize;
            let key = blob
                .get(from..)
                .and_then(|rest| rest.get(..count))
                .ok_or_else(|| format!("OpenPGP blob at offset {offset} has an out-of-range keyblock"))?;
            let flags = blob.get(6..8).and_then(|bytes| bytes.try_into().ok());
            if u16::from_be_bytes(flags.unwrap_or_default()) & EPHEMERAL == 0 {
                packets.extend_from_slice(key);
            }
        }
        offset += length as usize;
    }
    if packets.is_empty() {
        return Err("keybox contains no OpenPGP keys".to_owned());
    }
    Ok(packets)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blob(kind: u8, flags: u16, key: &[u8]) -> Vec<u8> {
        let length = 20 + key.len() as u32;
        let mut blob = length.to_be_bytes().to_vec();
        blob.extend([kind, 1]);
        blob.extend(flags.to_be_bytes());
        blob.extend(20_u32.to_be_bytes());
        blob.extend((key.len() as u32).to_be_bytes());
        blob.extend([0; 4]);
        blob.extend(key);
        blob
    }

    #[test]
    fn keys_are_found_between_other_blobs() {
        let mut header = blob(HEADER, 0, b"");
        header[8..12].copy_from_slice(b"KBXf");
        let all = [
            header.clone(),
            blob(OPENPGP, 0, b"one"),
            blob(3, 0, b"x509"),
            blob(OPENPGP, EPHEMERAL, b"gone"),
            blob(OPENPGP, 0, b"two"),
        ]
        .concat();
        assert!(is_keybox(&all) && !is_keybox(b"-----BEGIN PGP"));
        assert_eq!(packets(&all).unwrap(), b"onetwo");
        assert_eq!(packets(&header).unwrap_err(), "keybox contains no OpenPGP keys");
        for cut in 0..all.len() {
            // Cut between blobs it is whole; anywhere else an error, and never more than was there.
            let _ = packets(&all[..cut]);
        }
        assert!(packets(&all[..all.len() - 1]).unwrap_err().contains("exceeding"));
        let mut far = blob(OPENPGP, 0, b"one");
        far[15] = 200;
        assert!(packets(&far).unwrap_err().contains("out-of-range"));
    }
}
