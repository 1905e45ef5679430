//! `evenkeel template`: the chart engine on the command line, with the flags, bytes and exit codes of
//! `helm template`.

mod arguments;
mod connection;
mod flags;
mod location;
mod output;
mod post_renderer;
mod values;

use std::fs;
use std::io::{self, Write};
use std::net::ToSocketAddrs as _;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::error::ErrorKind;
use evenkeel_chart::{
    Capabilities, Chart, Error, KubeVersion, PostRenderer, Release, RenderOptions, Rendered,
    name_from_template, render,
};

use crate::{charts, process};
use arguments::Flags;
use connection::{Owner, Seen};
use post_renderer::Plugin;

pub(crate) use arguments::Arguments;

/// Labels that Helm keeps for itself.
const SYSTEM_LABELS: [&str; 6] = ["name", "owner", "status", "version", "createdAt", "modifiedAt"];
/// The name of a release that was given none.
const UNNAMED: &str = "release-name";

/// Runs the command; faults go to standard error.
pub(crate) fn run(arguments: Arguments) -> ExitCode {
    let Arguments { flags, warnings } = arguments;
    warn(&warnings);
    match template(flags) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let mut text = error.to_string();
            for cause in error.chain().skip(1).map(ToString::to_string) {
                // Many errors quote their cause already.
                if !text.contains(&cause) {
                    text.push_str(": ");
                    text.push_str(&cause);
                }
            }
            note(&format!("Error: {text}"));
            ExitCode::FAILURE
        }
    }
}

/// Tells what is wrong with the arguments; unlike our other commands, and like Helm, with 1.
pub(crate) fn refuse(error: &clap::Error) -> ExitCode {
    // Nobody is left to tell.
    let _ = error.print();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// What is rendered, and how; read and checked before the engine runs.
struct Job {
    flags: Flags,
    release: Release,
    chart: Chart,
    values: evenkeel_goyaml::Value,
}

fn template(flags: Flags) -> anyhow::Result<()> {
    let mut warnings = Vec::new();
    let plugin = Plugin::named(&flags.post_renderer, &flags.post_renderer_args, &mut warnings);
    warn(&warnings);
    let plugin = plugin?;
    let debug = flags.debug.0 || std::env::var("HELM_DEBUG").is_ok_and(|word| flags::is_true(&word));
    let kube_version = match flags.kube_version.as_str() {
        "" => None,
        version => Some(KubeVersion::parse(version)?),
    };
    let connected = asks_server(&flags)?;
    let job = Job::read(flags, debug)?;
    let post_renderer = move || plugin.map(Plugin::into_renderer);
    if connected {
        return process::run_to_end(|tasks| async move {
            Box::pin(connected_render(job, debug, post_renderer, tasks)).await
        });
    }
    let mut capabilities = Capabilities::default();
    if let Some(version) = kube_version {
        capabilities.kube_version = version;
    }
    let more = job.flags.api_versions.iter().flat_map(|fields| &fields.0);
    capabilities.api_versions.extend(more.cloned());
    let mut options = job.options();
    options.post_renderer = post_renderer();
    let rendered = job.render(&capabilities, options, debug)?;
    job.print(&rendered)?;
    // The process ends here; to take the chart and what it rendered to apart, piece by piece, would only delay that.
    std::mem::forget((job, rendered));
    Ok(())
}

/// Whether the cluster is to be asked.
fn asks_server(flags: &Flags) -> anyhow::Result<bool> {
    let Some(word) = &flags.dry_run else {
        return Ok(flags.idle.validate);
    };
    match word.as_str() {
        "server" => Ok(true),
        "client" => Ok(false),
        "unset" => {
            warn(&["--dry-run is deprecated and should be replaced with '--dry-run=client'".to_owned()]);
            Ok(false)
        }
        word if flags::is_true(word) => {
            warn(&[
                "boolean '--dry-run=true' flag is deprecated and must be replaced with '--dry-run=client'"
                    .to_owned(),
            ]);
            Ok(false)
        }
        word => bail!("invalid dry-run value ({word:?}). Must be \"server\" or \"client\""),
    }
}

/// Renders with what a cluster has.
async fn connected_render(
    job: Job,
    debug: bool,
    post_renderer: impl FnOnce() -> Option<PostRenderer> + Send + 'static,
    tasks: evenkeel_telemetry::Tasks,
) -> anyhow::Result<()> {
    let work = async {
        let cluster = job.flags.connection.connect().await?;
        let Seen { capabilities, lookup } = Seen::of(&cluster).await?;
        // Templates that ask the cluster wait for its answers.
        let (job, rendered) = tasks
            .blocking("render a chart", move || {
                let mut options = job.options();
                options.lookup = Some(Arc::new(lookup));
                options.post_renderer = post_renderer();
                let rendered = job.render(&capabilities, options, debug);
                (job, rendered)
            })
            .await
            .context("the render was cut off")?;
        let rendered = rendered?;
        let owner = Owner {
            release: &job.release.name,
            namespace: &job.release.namespace,
        };
        let conflicts = !job.release.is_upgrade && !job.flags.take_ownership.0;
        connection::check(&cluster, &rendered, &owner, conflicts).await?;
        job.print(&rendered)
    };
    tokio::select! {
        result = work => result,
        () = tasks.cancelled() => bail!("interrupted"),
    }
}

impl Job {
    fn read(flags: Flags, debug: bool) -> anyhow::Result<Self> {
        let (name, chart) = name_and_chart(&flags)?;
        let found = flags.location.locate(&chart)?;
        if debug {
            note(&format!("chart path: {}", found.place()));
        }
        warn(found.warnings());
        let values = flags.values.merge()?;
        let chart = flags.location.read(&found)?;
        warn(chart.warnings());
        if chart.metadata().deprecated {
            warn(&["this chart is deprecated".to_owned()]);
        }
        let mut release = Release::install(&name, &flags.connection.namespace());
        release.is_install = !flags.is_upgrade.0;
        release.is_upgrade = flags.is_upgrade.0;
        release.validate()?;
        let mut labels = flags.labels.iter().flat_map(|pairs| &pairs.0);
        if labels.any(|(key, _)| SYSTEM_LABELS.contains(&key.as_str())) {
            bail!(
                "user supplied labels contains system reserved label name. System labels: [{}]",
                SYSTEM_LABELS.join(" ")
            );
        }
        Ok(Self {
            flags,
            release,
            chart,
            values,
        })
    }

    fn options(&self) -> RenderOptions {
        let mut options = options();
        options.skip_schema_validation = self.flags.skip_schema_validation.0;
        options.schemas = Some(Arc::new(|address: &str| {
            charts::fetch_text(address).map_err(|error| format!("{error:#}"))
        }));
        if self.flags.enable_dns.0 {
            options.hosts = Some(Arc::new(address));
        }
        options
    }

    /// Renders; of a fault it is told how to see more, or what was rendered if more is to be seen.
    fn render(
        &self,
        capabilities: &Capabilities,
        options: RenderOptions,
        debug: bool,
    ) -> anyhow::Result<Rendered> {
        let rendered = render(&self.chart, &self.values, &self.release, capabilities, options);
        let error = match rendered {
            Ok(rendered) => {
                warn(&rendered.warnings);
                return Ok(rendered);
            }
            Err(error) => error,
        };
        let while_rendering = matches!(
            error,
            Error::KubeVersion { .. }
                | Error::TemplateParse { .. }
                | Error::TemplateExecution { .. }
                | Error::Limit { .. }
                | Error::PostRender(_)
                | Error::Manifest { .. }
        );
        if !while_rendering {
            return Err(error.into());
        }
        if !debug {
            return Err(hint(error));
        }
        let outputs = match &error {
            Error::Manifest { outputs, .. } => outputs.as_slice(),
            _ => &[],
        };
        output::print_outputs(outputs, &self.flags.show_only)?;
        Err(error.into())
    }

    fn print(&self, rendered: &Rendered) -> anyhow::Result<()> {
        match self.flags.output_dir.as_str() {
            "" => output::print(rendered, &self.flags),
            directory => output::write_files(rendered, &self.flags, directory, &self.release.name),
        }
    }
}

/// Says how to see what was rendered, as Helm does.
fn hint(error: impl Into<anyhow::Error>) -> anyhow::Error {
    anyhow::anyhow!(
        "{:#}\n\nUse --debug flag to render out invalid YAML",
        error.into()
    )
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

/// An address of a host, from the name service of this machine.
fn address(host: &str) -> Option<String> {
    let mut addresses = (host, 0).to_socket_addrs().ok()?;
    Some(addresses.next()?.ip().to_string())
}

fn warn(warnings: &[String]) {
    for warning in warnings {
        note(&format!("warning: {}", warning.trim_start_matches("warning: ")));
    }
}

fn note(text: &str) {
    // A closed standard error must not stop the render.
    let _ = writeln!(io::stderr(), "{text}");
}

fn name_and_chart(flags: &Flags) -> anyhow::Result<(String, String)> {
    let template = flags.name_template.as_str();
    match flags.positional.as_slice() {
        [chart] => {
            let name = match template {
                "" => UNNAMED.to_owned(),
                template => name_from_template(template, options())?,
            };
            Ok((name, chart.clone()))
        }
        [_, _] if flags.generate_name.0 => bail!("cannot set --generate-name and also specify a name"),
        [_, _] if !template.is_empty() => bail!("cannot set --name-template and also specify a name"),
        [name, chart] => Ok((name.clone(), chart.clone())),
        more => bail!(
            "expected at most two arguments, unexpected arguments: {}",
            more.get(2..).unwrap_or_default().join(", ")
        ),
    }
}
