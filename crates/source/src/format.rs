//! What a source holds, told by the names of its files.

use evenkeel_core::SourceFormat;

use crate::Error;

/// What every chart has at its top.
pub(crate) const CHART_FILE: &str = "Chart.yaml";
/// What a kustomization has at its top, one of them.
pub(crate) const KUSTOMIZATION_FILES: [&str; 3] =
    ["kustomization.yaml", "kustomization.yml", "Kustomization"];
/// How names of manifests end.
const MANIFEST_ENDINGS: [&str; 3] = [".yaml", ".yml", ".json"];

/// What the names at the top of a source say; none when manifests are all it may hold.
pub(crate) fn of_top<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<SourceFormat> {
    let mut found = None;
    for name in names {
        if name == CHART_FILE {
            return Some(SourceFormat::Chart);
        }
        if KUSTOMIZATION_FILES.contains(&name) {
            found = Some(SourceFormat::Kustomization);
        }
    }
    found
}

/// Whether a file is read as plain manifests: no part of its path is hidden.
pub(crate) fn is_manifest(path: &str) -> bool {
    !path.split('/').any(|part| part.starts_with('.'))
        && MANIFEST_ENDINGS.iter().any(|ending| path.ends_with(ending))
}

/// The error of a source that holds nothing we know.
pub(crate) fn unknown(name: &str) -> Error {
    let [first, second, third] = KUSTOMIZATION_FILES;
    let [yaml, yml, json] = MANIFEST_ENDINGS;
    Error::Format {
        name: name.to_owned(),
        problem: format!(
            "it is neither a chart ({CHART_FILE}), nor a kustomization ({first}, {second} or {third}), nor does it have \
             manifests (files that end in {yaml}, {yml} or {json})"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_goes_before_a_kustomization() {
        assert_eq!(
            of_top(["kustomization.yml", "Chart.yaml"]),
            Some(SourceFormat::Chart)
        );
        assert_eq!(
            of_top(["a.yaml", "Kustomization"]),
            Some(SourceFormat::Kustomization)
        );
        assert_eq!(of_top(["a.yaml", "chart.yaml"]), None);
    }

    #[test]
    fn hidden_files_are_no_manifests() {
        assert!(is_manifest("a/b.yml") && is_manifest("x.json"));
        assert!(!is_manifest(".a.yaml") && !is_manifest(".github/w.yaml") && !is_manifest("README.md"));
    }
}
