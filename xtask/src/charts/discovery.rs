//! Which charts lie below a folder.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// The file that makes a folder a chart.
const METADATA: &str = "Chart.yaml";

/// A chart: a folder or an archive.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ChartPath {
    name: String,
    path: PathBuf,
}

impl ChartPath {
    /// The path from the folder that was searched, by which the chart is called; the folder's own name if it is the
    /// chart.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Where it lies.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The name as one file name.
    pub(super) fn file_name(&self) -> String {
        self.name.replace(['/', '\\'], "__")
    }

    /// The first part of the name: the repository, where a folder holds the charts of several.
    pub(super) fn repository(&self) -> &str {
        self.name.split_once('/').map_or("", |(first, _)| first)
    }
}

/// The charts at or below `root`, in order of their names. A chart within a chart is left to that: it is rendered
/// with it.
pub(super) fn charts(root: &Path) -> Result<Vec<ChartPath>> {
    let mut found = Vec::new();
    search(root, root, &mut found)?;
    found.sort();
    Ok(found)
}

fn search(root: &Path, folder: &Path, found: &mut Vec<ChartPath>) -> Result<()> {
    if folder.join(METADATA).is_file() {
        found.push(chart(root, folder));
        return Ok(());
    }
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let entry = entry.with_context(|| format!("cannot read {}", folder.display()))?;
        let path = entry.path();
        // Links are not followed: what they lead to is found where it lies, and there is no circle.
        let kind = entry
            .file_type()
            .with_context(|| format!("cannot read {}", path.display()))?;
        if kind.is_dir() {
            search(root, &path, found)?;
        } else if kind.is_file() && path.extension().is_some_and(|extension| extension == "tgz") {
            found.push(chart(root, &path));
        }
    }
    Ok(())
}

fn chart(root: &Path, path: &Path) -> ChartPath {
    let below = path.strip_prefix(root).unwrap_or(path);
    let name = if below.as_os_str().is_empty() {
        Path::new(root.file_name().unwrap_or(root.as_os_str()))
    } else {
        below
    };
    ChartPath {
        name: name.to_string_lossy().into_owned(),
        path: path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charts_within_charts_belong_to_those() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for file in [
            "b/Chart.yaml",
            "b/charts/inner/Chart.yaml",
            "b/charts/packed-1.0.0.tgz",
            "a/deep/Chart.yaml",
            "a/packed-1.0.0.tgz",
            "a/templates/not-a-chart.yaml",
        ] {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let found = charts(root).unwrap();
        let names: Vec<&str> = found.iter().map(ChartPath::name).collect();
        assert_eq!(names, ["a/deep", "a/packed-1.0.0.tgz", "b"]);
        assert_eq!(found[0].file_name(), "a__deep");
        assert_eq!((found[0].repository(), found[2].repository()), ("a", ""));

        let alone = charts(&root.join("b")).unwrap();
        assert_eq!(alone.iter().map(ChartPath::name).collect::<Vec<_>>(), ["b"]);
        assert!(charts(&root.join("absent")).is_err());
    }
}
