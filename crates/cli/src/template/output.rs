//! Where rendered documents go: standard output, or files below a directory.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use evenkeel_chart::{ChartFile, Error, PrintOptions, Rendered, print_only};

use super::arguments::Flags;

/// Prints what `flags` ask for.
pub(super) fn print(rendered: &Rendered, flags: &Flags) -> anyhow::Result<()> {
    let options = options(flags);
    let mut out = io::stdout().lock();
    let text = if flags.show_only.is_empty() {
        rendered.print(&options)
    } else {
        rendered.print_only(&options, &flags.show_only)?
    };
    out.write_all(&text)?;
    out.flush()?;
    Ok(())
}

/// Prints what templates printed although it is not valid, for whoever looks for the fault.
pub(super) fn print_outputs(outputs: &[ChartFile], patterns: &[String]) -> anyhow::Result<()> {
    let mut text = Vec::new();
    for output in outputs {
        text.extend_from_slice(format!("---\n# Source: {}\n", output.path).as_bytes());
        text.extend_from_slice(&output.data);
        text.push(b'\n');
    }
    let mut all = text.trim_ascii().to_vec();
    all.push(b'\n');
    if !patterns.is_empty() {
        // What is malformed cannot be looked for; the fault itself is told.
        all = print_only(&all, patterns).unwrap_or_default();
    }
    let mut out = io::stdout().lock();
    out.write_all(&all)?;
    out.flush()?;
    Ok(())
}

fn options(flags: &Flags) -> PrintOptions {
    PrintOptions {
        include_crds: flags.include_crds.0,
        hooks: !flags.no_hooks.0,
        tests: !flags.skip_tests.0,
    }
}

/// Writes one file per template below `directory`, and says so; documents of one template follow each other.
pub(super) fn write_files(
    rendered: &Rendered,
    flags: &Flags,
    directory: &str,
    release: &str,
) -> anyhow::Result<()> {
    let options = options(flags);
    let mut out = io::stdout().lock();
    let of_release = if flags.release_name.0 {
        clean(&format!("{directory}/{release}"))
    } else {
        directory.to_owned()
    };
    let mut written = BTreeSet::new();
    let crds = rendered.crds.iter().filter(|_| options.include_crds);
    for crd in crds {
        // Helm does not put definitions below the release name.
        let append = !written.insert(crd.path.as_str());
        write_file(directory, &crd.path, &crd.data, append, &mut out)?;
    }
    for manifest in &rendered.manifests {
        let append = !written.insert(manifest.source.as_str());
        write_file(
            &of_release,
            &manifest.source,
            manifest.text.as_bytes(),
            append,
            &mut out,
        )?;
    }
    for (source, text) in rendered.printed_hooks(options) {
        // As Helm: a file that is there is added to, whoever wrote it.
        let append = Path::new(&of_release).join(source).exists();
        write_file(&of_release, source, text, append, &mut out)?;
    }
    // No document is left for standard output.
    if let Some(pattern) = flags.show_only.first() {
        return Err(Error::NoSuchTemplate(pattern.clone()).into());
    }
    writeln!(out)?;
    out.flush()?;
    Ok(())
}

fn write_file(
    directory: &str,
    source: &str,
    text: &[u8],
    append: bool,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let path = PathBuf::from(format!("{directory}/{source}"));
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).with_context(|| format!("create {}", parent.display()))?;
    }
    let mut file = fs::OpenOptions::new();
    let file = if append {
        file.append(true)
    } else {
        file.write(true).create(true).truncate(true)
    };
    let mut file = file
        .open(&path)
        .with_context(|| format!("create {}", path.display()))?;
    let mut document = format!("---\n# Source: {source}\n").into_bytes();
    document.extend_from_slice(text);
    document.push(b'\n');
    file.write_all(&document)
        .with_context(|| format!("write {}", path.display()))?;
    writeln!(out, "wrote {}", path.display())?;
    Ok(())
}

/// The shortest path that is the same by its text, as Helm prints it.
fn clean(path: &str) -> String {
    let root = if path.starts_with('/') { "/" } else { "" };
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if !root.is_empty() && parts.is_empty() => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let cleaned = format!("{root}{}", parts.join("/"));
    if cleaned.is_empty() {
        ".".to_owned()
    } else {
        cleaned
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cleaned_as_go_does() {
        for (path, cleaned) in [
            ("a//b/./c", "a/b/c"),
            ("./a/../b", "b"),
            ("../../a", "../../a"),
            ("/../a/", "/a"),
            ("a/..", "."),
            ("/", "/"),
        ] {
            assert_eq!(clean(path), cleaned, "{path}");
        }
    }
}
