//! The cases of a chart: its own values, the files it carries, generated sets.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::case::Case;
use super::discovery::ChartPath;
use super::engine::Engines;
use super::generate::{self, Kind};
use super::seed::Seed;

/// Kubernetes versions to render for, besides the engines' own: one that knows beta APIs long removed, and others
/// that charts ask for.
const KUBE_VERSIONS: [&str; 4] = ["1.20.15", "1.25.3", "v1.29.1-eks-a1b2c3d", "1.33.0"];

/// API versions that charts ask for.
const API_VERSIONS: [&str; 4] = [
    "monitoring.coreos.com/v1",
    "cert-manager.io/v1,cert-manager.io/v1/Certificate",
    "security.openshift.io/v1,route.openshift.io/v1,project.openshift.io/v1",
    "networking.k8s.io/v1/Ingress,policy/v1beta1,autoscaling/v2beta2,autoscaling.k8s.io/v1",
];

/// Flags that change what is rendered or printed.
const FLAGS: [&str; 6] = [
    "--include-crds",
    "--is-upgrade",
    "--skip-tests",
    "--no-hooks",
    "--namespace=other-namespace",
    "--skip-schema-validation",
];

/// The chart's own values, then `sets` others.
pub(super) fn cases(engines: &Engines, chart: &ChartPath, sets: usize, seed: u64) -> Result<Vec<Case>> {
    let mut cases = vec![Case {
        name: "default".to_owned(),
        ..Case::default()
    }];
    // A chart with many files still gets generated sets.
    let files = files(chart.path())?;
    for file in files.into_iter().take(sets.div_ceil(2)) {
        let name = file.strip_prefix(chart.path()).unwrap_or(&file);
        cases.push(Case {
            name: name.to_string_lossy().replace(['/', '\\'], "-"),
            values: Some(file),
            flags: vec!["--include-crds".to_owned()],
        });
    }
    if cases.len() > sets {
        return Ok(cases);
    }
    let values = engines.values(chart)?;
    let schema = schema(chart.path())?;
    let mut kinds = Kind::ALL.iter().cycle();
    let mut number = 0;
    while cases.len() <= sets {
        let Some(kind) = kinds.next() else { break };
        number += 1;
        let name = format!("generated-{number}-{}", kind.name());
        let mut seed = Seed::new(seed, &format!("{} {name}", chart.name()));
        let set = generate::set(*kind, &values, schema.as_ref(), &mut seed);
        let file = engines.folder(chart).join(format!("{name}.yaml"));
        // JSON is YAML.
        engines.write(&file, format!("{set:#}\n").as_bytes())?;
        cases.push(Case {
            name,
            values: Some(file),
            flags: flags(&mut seed),
        });
    }
    Ok(cases)
}

/// Files of values beside the chart's own: those for its continuous integration, then variants in its root.
fn files(chart: &Path) -> Result<Vec<PathBuf>> {
    let mut files = yaml_files(&chart.join("ci"))?;
    let variants = yaml_files(chart)?;
    files.extend(variants.into_iter().filter(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        name.contains("values") && name != "values.yaml"
    }));
    Ok(files)
}

fn yaml_files(folder: &Path) -> Result<Vec<PathBuf>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        let is_yaml = path
            .extension()
            .is_some_and(|extension| extension == "yaml" || extension == "yml");
        if is_yaml && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The chart's schema, if it has one that can be read.
fn schema(chart: &Path) -> Result<Option<Value>> {
    let file = chart.join("values.schema.json");
    if !file.is_file() {
        return Ok(None);
    }
    let text = std::fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(serde_json::from_slice(&text).ok())
}

fn flags(seed: &mut Seed) -> Vec<String> {
    let mut flags: Vec<String> = FLAGS
        .iter()
        .filter(|_| seed.percent(20))
        .map(|flag| (*flag).to_owned())
        .collect();
    if seed.percent(40) {
        flags.extend(
            seed.choose(&KUBE_VERSIONS)
                .map(|version| format!("--kube-version={version}")),
        );
    }
    if seed.percent(40) {
        flags.extend(
            seed.choose(&API_VERSIONS)
                .map(|versions| format!("--api-versions={versions}")),
        );
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_chart_come_in_order() {
        let chart = tempfile::tempdir().unwrap();
        for file in [
            "ci/z-values.yaml",
            "ci/a-values.yml",
            "ci/readme.md",
            "values.yaml",
            "values-production.yaml",
            "Chart.yaml",
        ] {
            let path = chart.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let found = files(chart.path()).unwrap();
        let names: Vec<_> = found
            .iter()
            .map(|file| file.strip_prefix(chart.path()).unwrap())
            .collect();
        assert_eq!(
            names,
            ["ci/a-values.yml", "ci/z-values.yaml", "values-production.yaml"].map(Path::new)
        );
    }
}
