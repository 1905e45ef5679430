//! The checkout: where it is and which files belong to it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// The checkout that this program was compiled in.
pub(crate) struct Repository {
    root: PathBuf,
}

impl Repository {
    /// Finds the checkout.
    pub(crate) fn find() -> Result<Self> {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = manifest
            .parent()
            .context("xtask lies in the root of the repository")?;
        Ok(Self {
            root: root.to_owned(),
        })
    }

    /// Its root folder.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Paths, from the root, of all files that are committed or would be: ignored ones are left out.
    pub(crate) fn files(&self) -> Result<Vec<PathBuf>> {
        let output = Command::new("git")
            .current_dir(&self.root)
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .output()
            .context(
                "cannot run git: install it, it is needed to tell which files belong to the repository",
            )?;
        if !output.status.success() {
            bail!(
                "git ls-files failed: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        let names = String::from_utf8(output.stdout).context("a file name is not UTF-8")?;
        let files = names
            .split('\0')
            .filter(|name| !name.is_empty())
            .map(PathBuf::from);
        // A file that is deleted but not yet committed so is still listed.
        Ok(files.filter(|file| self.root.join(file).is_file()).collect())
    }

    /// Text of a file of [`Self::files`]; None when it is not text.
    pub(crate) fn text(&self, file: &Path) -> Result<Option<String>> {
        let bytes =
            std::fs::read(self.root.join(file)).with_context(|| format!("cannot read {}", file.display()))?;
        Ok(String::from_utf8(bytes).ok())
    }
}
