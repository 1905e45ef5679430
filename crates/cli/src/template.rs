//! `evenkeel template`: the chart engine on the command line, with the flags, bytes and exit codes of
//! `helm template`.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::ArgAction;
use evenkeel_chart::{
    Capabilities, Chart, IgnoreRules, KubeVersion, PrintOptions, Release, RenderOptions, Rendered,
    ValueSources, ValuesFile, name_from_template, render,
};

/// Helm's limit for one file of a chart: 5 MiB.
const MAX_FILE: u64 = 5 << 20;
/// How deep directories (and links to directories) may nest inside a chart.
const MAX_DEPTH: usize = 64;

/// Render a Helm chart as `helm template` does: same flags, same bytes, same exit code.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// `[NAME] CHART`: the release name, and the chart's directory or `.tgz` file.
    #[arg(required = true, num_args = 1.., value_name = "[NAME] CHART")]
    positional: Vec<String>,

    /// Namespace of the release.
    #[arg(
        short,
        long,
        default_value = "default",
        env = "HELM_NAMESPACE",
        hide_env = true
    )]
    namespace: String,

    /// Values files, later ones win (`-` is the standard input).
    #[arg(short = 'f', long = "values", value_name = "FILE", value_delimiter = ',')]
    values: Vec<String>,
    /// Set values: `key=value,list[0]=value,…`.
    #[arg(long, value_name = "VALUES")]
    set: Vec<String>,
    /// Set text values.
    #[arg(long, value_name = "VALUES")]
    set_string: Vec<String>,
    /// Set JSON values: `key=json` or a JSON object.
    #[arg(long, value_name = "VALUES")]
    set_json: Vec<String>,
    /// Set values from files: `key=path`.
    #[arg(long, value_name = "VALUES")]
    set_file: Vec<String>,
    /// Set one text value; commas, braces and backslashes mean nothing.
    #[arg(long, value_name = "VALUE")]
    set_literal: Vec<String>,

    /// Kubernetes version to render for.
    #[arg(long, value_name = "VERSION")]
    kube_version: Option<String>,
    /// More API versions to render for.
    #[arg(short = 'a', long, value_name = "VERSIONS", value_delimiter = ',')]
    api_versions: Vec<String>,

    /// Print the custom resource definitions as well.
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t, default_missing_value = "true", action = ArgAction::Set)]
    include_crds: bool,
    /// Leave out the chart's tests.
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t, default_missing_value = "true", action = ArgAction::Set)]
    skip_tests: bool,
    /// Leave out all hooks.
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t, default_missing_value = "true", action = ArgAction::Set)]
    no_hooks: bool,
    /// Set `.Release.IsUpgrade` instead of `.Release.IsInstall`.
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t, default_missing_value = "true", action = ArgAction::Set)]
    is_upgrade: bool,
    /// Do not check the values against the chart's schema.
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t, default_missing_value = "true", action = ArgAction::Set)]
    skip_schema_validation: bool,
    /// Print only what these templates rendered (`templates/a.yaml`, patterns allowed).
    #[arg(short, long, value_name = "TEMPLATE")]
    show_only: Vec<String>,

    /// A template for the release name, instead of NAME.
    #[arg(long, value_name = "TEMPLATE")]
    name_template: Option<String>,
    /// Make up a release name, instead of NAME.
    #[arg(short, long, num_args = 0..=1, require_equals = true, default_value_t, default_missing_value = "true", action = ArgAction::Set)]
    generate_name: bool,
    /// Write one file per template below this directory instead of printing.
    #[arg(long, value_name = "DIRECTORY")]
    output_dir: Option<PathBuf>,
    /// Put the release name between the directory and the chart's name.
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t, default_missing_value = "true", action = ArgAction::Set)]
    release_name: bool,

    /// Accepted for `helm template`'s sake; without effect here.
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_value_t, default_missing_value = "true", action = ArgAction::Set)]
    create_namespace: bool,
    /// Accepted for `helm template`'s sake; without effect here.
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_value_t, default_missing_value = "true", action = ArgAction::Set)]
    skip_crds: bool,
}

/// Runs the command; faults go to standard error.
pub(crate) fn run(args: &Args) -> ExitCode {
    match template(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The last resort has nobody left to tell.
            let _ = writeln!(io::stderr(), "Error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn template(args: &Args) -> anyhow::Result<()> {
    let mut capabilities = Capabilities::default();
    if let Some(version) = &args.kube_version {
        capabilities.kube_version = KubeVersion::parse(version)?;
    }
    capabilities
        .api_versions
        .extend(args.api_versions.iter().cloned());

    let (name, chart) = name_and_chart(args)?;
    let chart_path = Path::new(chart.trim());
    if !chart_path.exists() {
        bail!("path {chart:?} not found (charts from repositories and registries are not read here)");
    }
    let values = sources(args)?.merge(|path| read_input(path).map_err(|e| format!("{e:#}")))?;
    let chart = read_chart(chart_path)?;
    warn(chart.warnings());
    if chart.metadata().deprecated {
        warn(&["this chart is deprecated".to_owned()]);
    }

    let mut release = Release::install(&name, &args.namespace);
    release.is_install = !args.is_upgrade;
    release.is_upgrade = args.is_upgrade;
    release.validate()?;
    let options = RenderOptions {
        skip_schema_validation: args.skip_schema_validation,
        ..options()
    };
    let rendered = render(&chart, &values, &release, &capabilities, options)?;
    warn(&rendered.warnings);

    let print = PrintOptions {
        include_crds: args.include_crds,
        hooks: !args.no_hooks,
        tests: !args.skip_tests,
    };
    let mut out = io::stdout().lock();
    if let Some(directory) = &args.output_dir {
        let directory = if args.release_name {
            directory.join(&name)
        } else {
            directory.clone()
        };
        write_files(&rendered, &print, args, &directory, &mut out)?;
    } else if args.show_only.is_empty() {
        out.write_all(&rendered.print(&print))?;
    } else {
        out.write_all(&rendered.print_only(&print, &args.show_only)?)?;
    }
    out.flush()?;
    Ok(())
}

/// A clock, randomness and private keys for templates that ask for them.
pub(crate) fn options() -> RenderOptions {
    let now = crate::now();
    let now = evenkeel_chart::Instant {
        seconds: now.as_second(),
        nanos: u32::try_from(now.subsec_nanosecond()).unwrap_or_default(),
    };
    let mut options = RenderOptions::new(now, Box::new(Randomness));
    options.keys = Some(Box::new(evenkeel_component::SystemKeys));
    if let Some(zone) = local_zone() {
        options.zone = zone;
    }
    options
}

/// The IANA name of the local time zone, as far as it can be had without reading the whole zone database, which would
/// take longer than a render.
fn local_zone() -> Option<String> {
    if let Ok(zone) = std::env::var("TZ") {
        return Some(zone.trim_start_matches(':').to_owned()).filter(|zone| !zone.is_empty());
    }
    let target = fs::read_link("/etc/localtime").ok()?;
    let (_, zone) = target.to_str()?.split_once("zoneinfo/")?;
    Some(zone.to_owned())
}

struct Randomness;

impl evenkeel_chart::RandomSource for Randomness {
    fn fill(&mut self, buffer: &mut [u8]) {
        rand::fill(buffer);
    }
}

fn warn(warnings: &[String]) {
    let mut err = io::stderr().lock();
    for warning in warnings {
        // A closed standard error must not stop the render.
        let _ = writeln!(err, "warning: {}", warning.trim_start_matches("warning: "));
    }
}

fn name_and_chart(args: &Args) -> anyhow::Result<(String, String)> {
    match args.positional.as_slice() {
        [chart] => {
            let name = match &args.name_template {
                Some(template) => name_from_template(template, options())?,
                None => "release-name".to_owned(),
            };
            Ok((name, chart.clone()))
        }
        [_, _] if args.generate_name => bail!("cannot set --generate-name and also specify a name"),
        [_, _] if args.name_template.is_some() => bail!("cannot set --name-template and also specify a name"),
        [name, chart] => Ok((name.clone(), chart.clone())),
        more => bail!(
            "expected at most two arguments, unexpected arguments: {}",
            more.get(2..).unwrap_or_default().join(", ")
        ),
    }
}

fn sources(args: &Args) -> anyhow::Result<ValueSources> {
    let files = args
        .values
        .iter()
        .map(|name| {
            Ok(ValuesFile {
                name: name.clone(),
                text: read_input(name)?,
            })
        })
        .collect::<anyhow::Result<_>>()?;
    Ok(ValueSources {
        files,
        json: args.set_json.clone(),
        typed: args.set.clone(),
        text: args.set_string.clone(),
        file: args.set_file.clone(),
        literal: args.set_literal.clone(),
    })
}

/// A file, or the standard input for `-`.
fn read_input(path: &str) -> anyhow::Result<Vec<u8>> {
    if path.trim() == "-" {
        let mut text = Vec::new();
        io::stdin().lock().read_to_end(&mut text)?;
        return Ok(text);
    }
    fs::read(path).with_context(|| format!("open {path}"))
}

/// Reads a chart's directory or archive.
fn read_chart(path: &Path) -> anyhow::Result<Chart> {
    if path.is_file() {
        let archive = fs::read(path).with_context(|| format!("open {}", path.display()))?;
        return Ok(Chart::from_archive(&archive)?);
    }
    let rules = match fs::read(path.join(IgnoreRules::FILE)) {
        Ok(text) => IgnoreRules::parse(&text)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => IgnoreRules::defaults(),
        Err(error) => {
            return Err(error).with_context(|| format!("open {}", path.join(IgnoreRules::FILE).display()));
        }
    };
    let mut files = Vec::new();
    walk(path, "", &rules, 0, &mut files)?;
    Ok(Chart::from_files(files)?)
}

/// Collects the files of a directory, following links as Helm does.
fn walk(
    directory: &Path,
    prefix: &str,
    rules: &IgnoreRules,
    depth: usize,
    files: &mut Vec<(String, Vec<u8>)>,
) -> anyhow::Result<()> {
    if depth > MAX_DEPTH {
        bail!(
            "{}: directories nest deeper than {MAX_DEPTH} levels (a link in a circle?)",
            directory.display()
        );
    }
    let entries = fs::read_dir(directory).with_context(|| format!("open {}", directory.display()))?;
    for entry in entries {
        let entry = entry.with_context(|| format!("read {}", directory.display()))?;
        let path = entry.path();
        let Some(name) = entry.file_name().to_str().map(|name| format!("{prefix}{name}")) else {
            bail!("{}: the name is not UTF-8", path.display());
        };
        let about = fs::metadata(&path).with_context(|| format!("read {}", path.display()))?;
        if rules.ignores(&name, about.is_dir()) {
            continue;
        }
        if about.is_dir() {
            walk(&path, &format!("{name}/"), rules, depth + 1, files)?;
        } else if !about.is_file() {
            bail!(
                "cannot load irregular file {} as it has file mode type bits set",
                path.display()
            );
        } else if about.len() > MAX_FILE {
            bail!("chart file {name:?} is larger than the maximum file size {MAX_FILE}");
        } else {
            files.push((
                name,
                fs::read(&path).with_context(|| format!("error reading {}", path.display()))?,
            ));
        }
    }
    Ok(())
}

/// One file per template, as `--output-dir` asks; documents of one template follow each other.
fn write_files(
    rendered: &Rendered,
    print: &PrintOptions,
    args: &Args,
    directory: &Path,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let mut written = std::collections::BTreeSet::new();
    for (source, text) in rendered.documents(print) {
        let base = match &args.output_dir {
            // Helm does not put definitions below the release name.
            Some(top) if rendered.crds.iter().any(|crd| crd.path == source) => top,
            _ => directory,
        };
        let path = base.join(source);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).with_context(|| format!("create {}", parent.display()))?;
        }
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .append(written.contains(&path))
            .truncate(!written.contains(&path))
            .open(&path)
            .with_context(|| format!("create {}", path.display()))?;
        file.write_all(format!("---\n# Source: {source}\n").as_bytes())?;
        file.write_all(text)?;
        file.write_all(b"\n")?;
        writeln!(out, "wrote {}", path.display())?;
        written.insert(path);
    }
    writeln!(out)?;
    Ok(())
}
