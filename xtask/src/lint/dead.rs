//! Dead dependencies: each that a manifest names must be named in the code.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use super::Finding;
use super::metadata::{Dependency, Kind, Metadata, Package};
use super::source::{Sources, Strings, has_word};

/// The part of a manifest that is read here.
#[derive(Deserialize, Default)]
struct Manifest {
    #[serde(default)]
    workspace: Workspace,
}

#[derive(Deserialize, Default)]
struct Workspace {
    #[serde(default)]
    dependencies: BTreeMap<String, toml::Value>,
}

/// Checks every crate, and that each line of the workspace's list has a crate that wants it.
pub(super) fn check(metadata: &Metadata, sources: &Sources) -> Result<Vec<Finding>> {
    let libraries: BTreeMap<&str, String> = metadata
        .packages
        .iter()
        .map(|package| (package.name.as_str(), package.library()))
        .collect();
    let mut findings = Vec::new();
    let mut wanted: BTreeSet<String> = BTreeSet::new();
    for package in metadata.members() {
        let folder = package
            .manifest_path
            .parent()
            .and_then(|path| path.strip_prefix(&metadata.workspace_root).ok());
        let folder = folder.with_context(|| format!("{} lies outside the workspace", package.name))?;
        let code = Code::of(folder, sources);
        let excused = excused(&folder.join("Cargo.toml"), sources);
        for dependency in &package.dependencies {
            wanted.insert(dependency.name.clone());
            if !excused.contains(&dependency.name) {
                findings.extend(unused(package, dependency, &code, &libraries));
            }
        }
    }
    let root = sources
        .files
        .iter()
        .find(|file| file.path == Path::new("Cargo.toml"));
    let root = root.context("there is no Cargo.toml in the root")?;
    let manifest: Manifest = toml::from_str(&root.text).context("cannot read Cargo.toml")?;
    let members: BTreeSet<&str> = metadata.members().map(|package| package.name.as_str()).collect();
    for (name, value) in &manifest.workspace.dependencies {
        let package = value.get("package").and_then(toml::Value::as_str).unwrap_or(name);
        // Our own crates may be listed before another takes them.
        if !wanted.contains(package) && !members.contains(package) {
            findings.push(Finding::new(
                "Cargo.toml",
                format!("no crate takes {name} of [workspace.dependencies]"),
                "remove the line",
            ));
        }
    }
    Ok(findings)
}

/// The comment that excuses the dependency on the next line, with the reason after it.
const EXCUSE: &str = "# Not used by name:";

/// Dependencies that a manifest takes for what they switch on in others.
fn excused(manifest: &Path, sources: &Sources) -> BTreeSet<String> {
    let text = sources.files.iter().find(|file| file.path == manifest);
    let lines = text.map(|file| file.text.as_str()).unwrap_or_default().lines();
    let mut excused = BTreeSet::new();
    for (comment, line) in lines.clone().zip(lines.skip(1)) {
        if comment.trim_start().starts_with(EXCUSE)
            && let Some(name) = line.split(['.', '=', ' ']).next()
        {
            excused.insert(name.to_owned());
        }
    }
    excused
}

/// Code of one crate, by what may use which dependencies.
struct Code {
    /// Library and binaries, with their unit tests.
    own: String,
    /// Integration tests, benches and examples.
    tests: String,
    /// `build.rs`.
    build: String,
}

impl Code {
    fn of(folder: &Path, sources: &Sources) -> Self {
        let mut code = Self {
            own: String::new(),
            tests: String::new(),
            build: String::new(),
        };
        for file in sources.rust() {
            let Ok(path) = file.path.strip_prefix(folder) else {
                continue;
            };
            let text = match path.iter().next().and_then(|part| part.to_str()) {
                Some("src") => &mut code.own,
                Some("tests" | "benches" | "examples") => &mut code.tests,
                Some("build.rs") => &mut code.build,
                _ => continue,
            };
            text.push_str(&file.code(Strings::Blank));
            // Examples in the documentation may use what tests may.
            let examples = file
                .text
                .lines()
                .map(str::trim_start)
                .filter(|line| line.starts_with("//"));
            for line in examples {
                code.tests.push_str(line);
                code.tests.push('\n');
            }
        }
        code
    }

    fn uses(&self, name: &str, kind: Kind) -> bool {
        match kind {
            Kind::Normal => has_word(&self.own, name),
            Kind::Dev => has_word(&self.own, name) || has_word(&self.tests, name),
            Kind::Build => has_word(&self.build, name),
        }
    }
}

fn unused(
    package: &Package,
    dependency: &Dependency,
    code: &Code,
    libraries: &BTreeMap<&str, String>,
) -> Option<Finding> {
    let library = libraries.get(dependency.name.as_str()).cloned();
    let name = match &dependency.rename {
        Some(name) => name.replace('-', "_"),
        None => library.unwrap_or_else(|| dependency.name.replace('-', "_")),
    };
    if code.uses(&name, dependency.kind) {
        return None;
    }
    let what = match dependency.kind {
        Kind::Normal if has_word(&code.tests, &name) => {
            return Some(Finding::new(
                format!("crate {}", package.name),
                format!("only its tests use {}", dependency.name),
                "move the line to [dev-dependencies]",
            ));
        }
        Kind::Normal => "",
        Kind::Dev => "dev-",
        Kind::Build => "build-",
    };
    Some(Finding::new(
        format!("crate {}", package.name),
        format!("nothing uses the {what}dependency {}", dependency.name),
        "remove the line from its Cargo.toml",
    ))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use serde_json::json;

    use super::*;
    use crate::lint::source::SourceFile;

    fn found(manifest: &str, dependencies: serde_json::Value, files: &[(&str, &str)]) -> Vec<String> {
        let metadata: Metadata = serde_json::from_value(json!({
            "packages": [
                {"id": "1", "name": "one", "manifest_path": "/r/crates/one/Cargo.toml", "dependencies": dependencies},
                {"id": "2", "name": "md-5", "targets": [{"name": "md5", "kind": ["lib"]}]},
            ],
            "workspace_members": ["1"],
            "workspace_root": "/r",
            "resolve": {"nodes": []},
        }))
        .unwrap();
        let files = files
            .iter()
            .copied()
            .chain([("Cargo.toml", manifest)])
            .map(|(path, text)| SourceFile {
                path: PathBuf::from(path),
                text: text.to_owned(),
            });
        let sources = Sources {
            files: files.collect(),
        };
        check(&metadata, &sources)
            .unwrap()
            .into_iter()
            .map(|finding| finding.what)
            .collect()
    }

    #[test]
    fn used_ones_are_found_by_the_name_of_their_library() {
        let dependencies = json!([
            {"name": "md-5"},
            {"name": "serde-json", "rename": "json"},
            {"name": "wiremock", "kind": "dev"},
            {"name": "cc", "kind": "build"},
        ]);
        let files = [
            (
                "crates/one/src/lib.rs",
                "use md5::Md5;\nfn f() { json::from_str(\"\"); }",
            ),
            ("crates/one/tests/it/main.rs", "use wiremock::Mock;"),
            ("crates/one/build.rs", "fn main() { cc::Build::new(); }"),
        ];
        assert_eq!(found("", dependencies, &files), [""; 0]);
    }

    #[test]
    fn unused_ones_are_told() {
        let dependencies = json!([{"name": "serde"}, {"name": "rand"}, {"name": "insta", "kind": "dev"}, {"name": "cc", "kind": "build"}]);
        let files = [
            (
                "crates/one/src/lib.rs",
                "// use serde;\nfn serde_json() -> &str { \"serde\" }",
            ),
            ("crates/one/tests/it/main.rs", "use rand::Rng;"),
            ("crates/two/src/lib.rs", "use insta::assert_snapshot;"),
        ];
        assert_eq!(
            found(
                "[workspace.dependencies]\nserde = \"1\"\nhex = \"1\"\n",
                dependencies,
                &files
            ),
            [
                "only its tests use serde",
                "only its tests use rand",
                "nothing uses the dev-dependency insta",
                "nothing uses the build-dependency cc",
                "no crate takes hex of [workspace.dependencies]",
            ]
        );
    }

    #[test]
    fn one_that_only_switches_something_on_is_excused_by_its_comment() {
        let dependencies = json!([{"name": "k8s"}, {"name": "kube"}]);
        let manifest = "[dependencies]\n# Not used by name: chooses the version.\nk8s.workspace = true\nkube.workspace = true\n";
        let files = [("crates/one/src/lib.rs", ""), ("crates/one/Cargo.toml", manifest)];
        assert_eq!(
            found("", dependencies, &files),
            ["nothing uses the dependency kube"]
        );
    }
}
