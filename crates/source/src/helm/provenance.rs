//! `--verify`: whether a chart is what somebody in the keyring signed, as its provenance file (`.prov`) says. The rules
//! and the words of errors are Helm's.

use std::path::{Path, PathBuf};

use evenkeel_core::Digest;
use evenkeel_goyaml::{Map, Numbers, Value, from_yaml};

use crate::Error;
use crate::io_cause::io_cause;
use crate::openpgp::{ClearSigned, Keyring, KeyringFormat, check_signature, signers};
use crate::remote::PROVENANCE_SIZE_MAX;

/// What is appended to the name of an archive.
pub(crate) const EXTENSION: &str = ".prov";
/// The largest keyring, in bytes.
const KEYRING_SIZE_MAX: u64 = 256 * 1024 * 1024;
/// What separates the chart's description from the digests.
const SEPARATOR: &[u8] = b"\n...\n";

/// The keyring that Helm uses when none is named: what older versions of GnuPG wrote if it is there, else what newer ones
/// write.
pub(super) fn usual_keyring(variable: impl Fn(&str) -> Option<String>) -> PathBuf {
    let home = variable("GNUPGHOME").map_or_else(
        || {
            let home = variable("HOME").unwrap_or_default();
            Path::new(&home).join(".gnupg")
        },
        PathBuf::from,
    );
    let (legacy, keybox) = (home.join("pubring.gpg"), home.join("pubring.kbx"));
    if !legacy.exists() && keybox.exists() {
        keybox
    } else {
        legacy
    }
}

/// Reads and checks an archive of this machine, beside which its provenance file lies.
///
/// # Errors
/// [`Error::Helm`], why it cannot be trusted.
pub(super) fn verify_local(path: &Path, keyring: &Path, now: i64) -> Result<Vec<u8>, Error> {
    let fails = |text: &str| Err(Error::Helm(text.to_owned()));
    if path.is_dir() {
        return fails("unpacked charts cannot be verified");
    }
    let is_archive = path
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("tgz"));
    if !is_archive {
        return fails("chart must be a tgz file");
    }
    let path = std::path::absolute(path).map_err(|error| Error::Helm(error.to_string()))?;
    let mut provenance = path.clone().into_os_string();
    provenance.push(EXTENSION);
    let provenance = PathBuf::from(provenance);
    if let Err(error) = std::fs::metadata(&provenance) {
        let shown = provenance.display();
        return Err(Error::Helm(format!(
            "could not load provenance file {shown}: stat {shown}: {}",
            io_cause(&error)
        )));
    }
    let (_, keyring) = read_keyring(keyring)?;
    let read = |path: &Path, what: &str, limit| {
        read(path, limit).map_err(|problem| Error::Helm(format!("failed to read {what}: {problem}")))
    };
    let archive = read(&path, "chart archive", crate::ARCHIVE_SIZE_MAX)?;
    let text = read(&provenance, "provenance file", PROVENANCE_SIZE_MAX)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    verify(&archive, &name, &text, &keyring, now)?;
    Ok(archive)
}

/// What a file of keys holds, and its keys.
///
/// # Errors
/// [`Error::Helm`], what is wrong with it.
pub(crate) fn read_keyring(path: &Path) -> Result<(Vec<u8>, Keyring), Error> {
    let failed = |problem: String| Error::Helm(format!("failed to load keyring: {problem}"));
    let data = read(path, KEYRING_SIZE_MAX).map_err(failed)?;
    let keyring = Keyring::read(&data).map_err(|problem| {
        let shown = path.display();
        failed(match KeyringFormat::of(&data) {
            KeyringFormat::Packets => problem,
            KeyringFormat::Keybox => format!("reading keybox {shown}: {problem}"),
            KeyringFormat::Armored => format!("reading armored keyring {shown}: {problem}"),
        })
    })?;
    Ok((data, keyring))
}

/// Checks that somebody in the keyring signed for this archive under this name.
///
/// # Errors
/// [`Error::Helm`], why it cannot be trusted.
pub(crate) fn verify(
    archive: &[u8],
    name: &str,
    provenance: &[u8],
    keyring: &Keyring,
    now: i64,
) -> Result<(), Error> {
    let fails = |text: String| Err(Error::Helm(text));
    let Some(signed) = ClearSigned::decode(provenance) else {
        return fails("signature block not found".to_owned());
    };
    let text = signed.text.clone();
    check_signature(keyring, signed, now).map_err(|error| Error::Helm(error.to_string()))?;
    let files = files(&text).map_err(Error::Helm)?;
    let found = format!("sha256:{}", Digest::of(archive).hex());
    match files.get(name) {
        None => fails(format!(
            "provenance does not contain a SHA for a file named {name:?}"
        )),
        Some(promised) if *promised != found => fails(format!(
            "sha256 sum does not match for {name}: {promised:?} != {found:?}"
        )),
        Some(_) => Ok(()),
    }
}

/// The keys that a provenance file says it is signed by, for people.
pub(crate) fn signed_by(provenance: &[u8]) -> Option<String> {
    let keys = signers(ClearSigned::decode(provenance)?);
    let keys: Vec<String> = keys.iter().map(|id| format!("{id:016X}")).collect();
    (!keys.is_empty()).then(|| keys.join(", "))
}

/// The digests that a signed text promises, by the names of files.
fn files(text: &[u8]) -> Result<std::collections::BTreeMap<String, String>, String> {
    let at = |text: &[u8]| {
        text.windows(SEPARATOR.len())
            .position(|window| window == SEPARATOR)
    };
    let start = at(text).ok_or("message block must have at least two parts")? + SEPARATOR.len();
    let sums = text.get(start..).unwrap_or_default();
    let sums = sums.get(..at(sums).unwrap_or(sums.len())).unwrap_or_default();
    let sums = from_yaml(sums, Numbers::Exact).map_err(|error| error.to_string())?;
    let wrong = |value: &Value, place: &str| {
        let kind = match value {
            Value::Bool(_) => "bool",
            Value::List(_) => "array",
            Value::Map(_) => "object",
            Value::String(_) => "string",
            _ => "number",
        };
        format!("error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {kind} into Go {place}")
    };
    let sums = match sums {
        Value::Map(sums) => sums,
        Value::Null => Map::new(),
        other => return Err(wrong(&other, "value of type provenance.SumCollection")),
    };
    let mut files = std::collections::BTreeMap::new();
    for (_, value) in sums.iter().filter(|(key, _)| key.eq_ignore_ascii_case("files")) {
        match value {
            Value::Map(named) => {
                for (name, digest) in named {
                    let digest = match digest {
                        Value::String(digest) => digest.clone(),
                        Value::Int(number) => number.to_string(),
                        Value::Uint(number) => number.to_string(),
                        Value::Bool(word) => word.to_string(),
                        Value::Null => String::new(),
                        other => return Err(wrong(other, "struct field .files of type string")),
                    };
                    files.insert(name.clone(), digest);
                }
            }
            Value::Null => {}
            other => return Err(wrong(other, "struct field .files of type map[string]string")),
        }
    }
    Ok(files)
}

/// Reads a file of at most so many bytes.
fn read(path: &Path, limit: u64) -> Result<Vec<u8>, String> {
    let shown = path.display();
    let data = std::fs::metadata(path).and_then(|metadata| {
        if metadata.len() > limit {
            let problem = format!("larger than {limit} bytes");
            return Err(std::io::Error::new(std::io::ErrorKind::FileTooLarge, problem));
        }
        std::fs::read(path)
    });
    data.map_err(|error| match error.kind() {
        std::io::ErrorKind::IsADirectory => format!("read {shown}: {}", io_cause(&error)),
        _ => format!("open {shown}: {}", io_cause(&error)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_follow_the_description() {
        let read = |text: &str| files(text.as_bytes());
        let found =
            read("name: x\n...\nfiles:\n  a.tgz: sha256:00\n  b: 7\nimages: {}\n...\nfiles: {c: d}\n");
        let found = found.unwrap();
        assert_eq!(found.get("a.tgz").map(String::as_str), Some("sha256:00"));
        assert_eq!(found.get("b").map(String::as_str), Some("7"));
        assert_eq!(found.len(), 2);
        assert_eq!(read("a\n...\n").unwrap().len(), 0);
        assert_eq!(
            read("files: {a: b}\n").unwrap_err(),
            "message block must have at least two parts"
        );
        assert!(
            read("a\n...\nfiles: []\n")
                .unwrap_err()
                .contains("cannot unmarshal array")
        );
        assert!(read("a\n...\nfiles: [\n").unwrap_err().contains("yaml"));
    }

    #[test]
    fn the_usual_keyring_is_that_of_gnupg() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().to_str().unwrap().to_owned();
        let usual = || usual_keyring(|name| (name == "GNUPGHOME").then(|| path.clone()));
        assert_eq!(usual(), home.path().join("pubring.gpg"));
        std::fs::write(home.path().join("pubring.kbx"), "").unwrap();
        assert_eq!(usual(), home.path().join("pubring.kbx"));
        std::fs::write(home.path().join("pubring.gpg"), "").unwrap();
        assert_eq!(usual(), home.path().join("pubring.gpg"));
        let plain = usual_keyring(|name| (name == "HOME").then(|| "/home/me".to_owned()));
        assert_eq!(plain, Path::new("/home/me/.gnupg/pubring.gpg"));
    }
}
