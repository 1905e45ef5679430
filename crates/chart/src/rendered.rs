//! What a render gives, and how Helm prints it.

use evenkeel_core::Digest;
use evenkeel_gotemplate::Taints;

use crate::Error;
use crate::chart::ChartFile;
use crate::manifest::{HookEvent, Manifest, split, trim_end};
use crate::objects::{self, RenderedObject};
use crate::path_match::path_match;

/// Everything a chart rendered, in Helm's order. Owns plain data: it can cross threads and be kept.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Rendered {
    /// Documents that are not hooks, by kind.
    pub manifests: Vec<Manifest>,
    /// Hook documents, by kind. They run in another order: by weight, then by name.
    pub hooks: Vec<Manifest>,
    /// Files below `crds/` of the chart and its enabled sub-charts, as they are; `path` starts with the chart's name.
    pub crds: Vec<ChartFile>,
    /// The rendered `NOTES.txt` of the chart itself.
    pub notes: Option<String>,
    /// Whether randomness, the time or a lookup went into it.
    pub taints: Taints,
    /// What is odd, though not wrong. Holds no values.
    pub warnings: Vec<String>,
}

/// What to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrintOptions {
    /// Files below `crds/`, first.
    pub include_crds: bool,
    /// Hooks, last.
    pub hooks: bool,
    /// Test hooks among them.
    pub tests: bool,
}

impl Default for PrintOptions {
    /// What `helm template` prints without flags.
    fn default() -> Self {
        Self {
            include_crds: false,
            hooks: true,
            tests: true,
        }
    }
}

impl Rendered {
    /// The documents that `print` covers, with their source: definitions, manifests, hooks.
    pub fn documents(&self, print: &PrintOptions) -> impl Iterator<Item = (&str, &[u8])> {
        let crds = self.crds.iter().filter(|_| print.include_crds);
        let crds = crds.map(|crd| (crd.path.as_str(), &*crd.data));
        let manifests = self
            .manifests
            .iter()
            .map(|m| (m.source.as_str(), m.text.as_bytes()));
        crds.chain(manifests).chain(self.printed_hooks(*print))
    }

    /// The hooks that `print` covers, with their source.
    pub fn printed_hooks(&self, print: PrintOptions) -> impl Iterator<Item = (&str, &[u8])> {
        let is_test = |m: &Manifest| {
            m.hook
                .as_ref()
                .is_some_and(|hook| hook.events.contains(&HookEvent::Test))
        };
        self.hooks
            .iter()
            .filter(move |m| print.hooks && (print.tests || !is_test(m)))
            .map(|m| (m.source.as_str(), m.text.as_bytes()))
    }

    /// What `helm template` prints, byte for byte.
    pub fn print(&self, print: &PrintOptions) -> Vec<u8> {
        let all = self.documents(print);
        let length = all.map(|(source, text)| source.len() + text.len() + AROUND).sum();
        let mut out = Vec::with_capacity(length);
        for (source, text) in self.documents(&PrintOptions {
            hooks: false,
            ..*print
        }) {
            document(&mut out, source, text);
        }
        // The ordinary documents, which begin with a separator, are trimmed as a whole; the hooks are not.
        out.truncate(trim_end(&out).len());
        out.push(b'\n');
        for (source, text) in self.printed_hooks(*print) {
            document(&mut out, source, text);
        }
        out
    }

    /// What `helm template --show-only` prints: the documents whose path inside the chart matches one of the
    /// patterns, in the order of the patterns.
    pub fn print_only(&self, print: &PrintOptions, patterns: &[String]) -> Result<Vec<u8>, Error> {
        print_only(&self.print(print), patterns)
    }

    /// The objects of all manifests and hooks in Helm's order. A document without kind or name is an error with its
    /// file; a `List` gives its items.
    pub fn objects(&self) -> Result<Vec<RenderedObject>, Error> {
        let mut all = Vec::with_capacity(self.manifests.len() + self.hooks.len());
        for manifest in self.manifests.iter().chain(&self.hooks) {
            objects::of_manifest(manifest, &mut all)?;
        }
        Ok(all)
    }

    /// The objects of the files below `crds/`.
    pub fn crd_objects(&self) -> Result<Vec<RenderedObject>, Error> {
        let mut all = Vec::new();
        for file in &self.crds {
            objects::of_crd(file, &mut all)?;
        }
        Ok(all)
    }

    /// The digest of all documents, hooks and definitions.
    pub fn digest(&self) -> Digest {
        let crds = self.crds.iter().flat_map(|crd| [crd.path.as_bytes(), &*crd.data]);
        let documents = self.manifests.iter().chain(&self.hooks);
        Digest::of_parts(crds.chain(documents.flat_map(|m| [m.source.as_bytes(), m.text.as_bytes()])))
    }
}

/// The documents of a printed render whose path inside the chart matches one of the patterns, in the order of the
/// patterns.
///
/// # Errors
/// [`Error::NoSuchTemplate`] with the first pattern that nothing matches.
pub fn print_only(printed: &[u8], patterns: &[String]) -> Result<Vec<u8>, Error> {
    let documents = split(printed);
    let mut out = Vec::new();
    for pattern in patterns {
        let mut found = false;
        for document in &documents {
            let Some(path) = path_inside_chart(document) else {
                continue;
            };
            if path_match(pattern, path).unwrap_or(false) {
                found = true;
                out.extend_from_slice(b"---\n");
                out.extend_from_slice(document);
                out.push(b'\n');
            }
        }
        if !found {
            return Err(Error::NoSuchTemplate(pattern.clone()));
        }
    }
    Ok(out)
}

/// Bytes that [`document`] writes besides source and text.
const AROUND: usize = "---\n# Source: \n\n".len();

fn document(out: &mut Vec<u8>, source: &str, text: &[u8]) {
    out.extend_from_slice(b"---\n# Source: ");
    out.extend_from_slice(source.as_bytes());
    out.push(b'\n');
    out.extend_from_slice(text);
    out.push(b'\n');
}

/// The path in the first `# Source: chart/path` line, without the chart.
fn path_inside_chart(document: &[u8]) -> Option<&str> {
    const MARK: &[u8] = b"# Source: ";
    let mut rest = document;
    loop {
        let at = rest.windows(MARK.len()).position(|window| window == MARK)?;
        rest = rest.get(at + MARK.len()..)?;
        let line = rest.split(|byte| *byte == b'\n').next().unwrap_or(rest);
        let path = std::str::from_utf8(line)
            .ok()
            .and_then(|line| line.split_once('/'));
        if let Some((chart, path)) = path
            && !chart.is_empty()
            && !path.is_empty()
        {
            return Some(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::{Head, Hook};

    fn manifest(source: &str, name: &str, text: &str, hook: Option<Hook>) -> Manifest {
        Manifest {
            source: source.to_owned(),
            head: Head {
                name: name.to_owned(),
                ..Head::default()
            },
            text: text.to_owned(),
            object: evenkeel_goyaml::Value::Null,
            hook,
        }
    }

    fn rendered() -> Rendered {
        let hook = |weight, event| {
            Some(Hook {
                events: vec![event],
                weight,
                delete_policies: Vec::new(),
            })
        };
        Rendered {
            manifests: vec![manifest("c/templates/a.yaml", "a", "a: 1\n\n", None)],
            hooks: vec![
                manifest(
                    "c/templates/h.yaml",
                    "z",
                    "h: 1\n",
                    hook(0, HookEvent::PreInstall),
                ),
                manifest(
                    "c/templates/i.yaml",
                    "b",
                    "i: 1\n",
                    hook(0, HookEvent::PreInstall),
                ),
                manifest(
                    "c/templates/j.yaml",
                    "m",
                    "j: 1\n",
                    hook(-5, HookEvent::PreInstall),
                ),
                manifest("c/templates/t.yaml", "t", "t: 1\n", hook(0, HookEvent::Test)),
            ],
            crds: vec![ChartFile {
                path: "c/crds/x.yaml".to_owned(),
                data: b"x: 1\n\n\n".as_slice().into(),
            }],
            notes: None,
            taints: Taints::default(),
            warnings: Vec::new(),
        }
    }

    #[test]
    fn prints_definitions_then_manifests_then_hooks() {
        let print = PrintOptions {
            include_crds: true,
            hooks: true,
            tests: false,
        };
        let text = String::from_utf8(rendered().print(&print)).unwrap();
        assert_eq!(
            text,
            "---\n# Source: c/crds/x.yaml\nx: 1\n\n\n\n---\n# Source: c/templates/a.yaml\na: 1\n\
             ---\n# Source: c/templates/h.yaml\nh: 1\n\n---\n# Source: c/templates/i.yaml\ni: 1\n\n\
             ---\n# Source: c/templates/j.yaml\nj: 1\n\n"
        );
    }

    #[test]
    fn show_only_takes_patterns() {
        let rendered = rendered();
        let shown = |pattern: &str| rendered.print_only(&PrintOptions::default(), &[pattern.to_owned()]);
        assert_eq!(
            shown("templates/a.yaml").unwrap(),
            b"---\n# Source: c/templates/a.yaml\na: 1\n\n".to_vec()
        );
        assert_eq!(
            shown("templates/*")
                .unwrap()
                .iter()
                .filter(|byte| **byte == b'#')
                .count(),
            5
        );
        assert_eq!(
            shown("nope").unwrap_err().to_string(),
            "could not find template nope in chart"
        );
    }
}
