//! The flags of `helm template`, under its names.

use std::str::FromStr;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};

use super::connection::Connection;
use super::flags::{Fields, GoDuration, Pairs, Switch, WaitStrategy, as_pflag};
use super::location::Location;
use super::values::Values;

/// Render a Helm chart as `helm template` does: same flags, same bytes, same exit code.
#[derive(Debug)]
pub(crate) struct Arguments {
    pub(super) flags: Flags,
    /// What is to be said before anything is done.
    pub(super) warnings: Vec<String>,
}

impl Args for Arguments {
    fn augment_args(command: Command) -> Command {
        as_pflag(Flags::augment_args(command))
    }

    fn augment_args_for_update(command: Command) -> Command {
        as_pflag(Flags::augment_args_for_update(command))
    }
}

impl FromArgMatches for Arguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self {
            flags: Flags::from_arg_matches(matches)?,
            warnings: deprecated(matches),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.warnings = deprecated(matches);
        self.flags.update_from_arg_matches(matches)
    }
}

/// Render a Helm chart as `helm template` does: same flags, same bytes, same exit code.
#[derive(Debug, Args)]
pub(super) struct Flags {
    /// `[NAME] CHART`: the release name, and the chart: a directory, a `.tgz` file, or what a repository calls it
    #[arg(required = true, num_args = 1.., value_name = "[NAME] CHART")]
    pub(super) positional: Vec<String>,

    #[command(flatten)]
    pub(super) values: Values,
    #[command(flatten)]
    pub(super) location: Location,
    #[command(flatten)]
    pub(super) connection: Connection,
    #[command(flatten)]
    pub(super) idle: Idle,

    /// Kubernetes version to render for
    #[arg(long, value_name = "VERSION", default_value = "", hide_default_value = true)]
    pub(super) kube_version: String,
    /// More API versions to render for
    #[arg(short = 'a', long, value_name = "VERSIONS")]
    pub(super) api_versions: Vec<Fields>,
    /// client: without a cluster; server: with the versions, kinds and objects of the cluster that the kubeconfig names
    #[arg(
        long,
        value_name = "client|server",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "unset",
        conflicts_with = "validate"
    )]
    pub(super) dry_run: Option<String>,
    /// With --dry-run=server, take over existing objects that are not the release's
    #[arg(long)]
    pub(super) take_ownership: Switch,
    /// Let `getHostByName` ask the name service
    #[arg(long)]
    pub(super) enable_dns: Switch,

    /// Print the custom resource definitions as well
    #[arg(long)]
    pub(super) include_crds: Switch,
    /// Leave out the chart's tests
    #[arg(long)]
    pub(super) skip_tests: Switch,
    /// Leave out all hooks
    #[arg(long)]
    pub(super) no_hooks: Switch,
    /// Set `.Release.IsUpgrade` instead of `.Release.IsInstall`
    #[arg(long)]
    pub(super) is_upgrade: Switch,
    /// Do not check the values against the chart's schema
    #[arg(long)]
    pub(super) skip_schema_validation: Switch,
    /// Print only what these templates rendered (`templates/a.yaml`, patterns allowed)
    #[arg(short, long, value_name = "TEMPLATE")]
    pub(super) show_only: Vec<String>,

    /// A template for the release name, instead of NAME
    #[arg(long, value_name = "TEMPLATE", default_value = "", hide_default_value = true)]
    pub(super) name_template: String,
    /// Make up a release name, instead of NAME
    #[arg(short, long)]
    pub(super) generate_name: Switch,
    /// Write one file per template below this directory instead of printing
    #[arg(long, value_name = "DIRECTORY", default_value = "", hide_default_value = true)]
    pub(super) output_dir: String,
    /// Put the release name between the directory and the chart's name
    #[arg(long)]
    pub(super) release_name: Switch,
    /// A plugin of Helm that may change the documents
    // At most one; a second is refused by name, as Helm does.
    #[arg(long, value_name = "NAME")]
    pub(super) post_renderer: Vec<String>,
    /// An argument of that plugin
    #[arg(long, value_name = "ARGUMENT")]
    pub(super) post_renderer_args: Vec<String>,

    /// Labels of the release, `key=value,…`; checked, and without effect on what is printed
    #[arg(short, long, value_name = "LABELS")]
    pub(super) labels: Vec<Pairs>,
    /// Tell more about what is done, and print what was rendered even if it is not valid YAML
    #[arg(long)]
    pub(super) debug: Switch,
}

/// Flags that Helm takes here because installing has them. They are read as there, and change nothing.
#[derive(Debug)]
pub(super) struct Idle {
    /// The old name of `--dry-run=server`.
    pub(super) validate: bool,
}

/// The heading that they stand under.
const HEADING: &str = "Without effect on what is rendered";

/// The switches among them, and what they are for when something is installed; all are off unless given, but for
/// `server-side`.
const SWITCHES: [(&str, &str); 14] = [
    ("create-namespace", "Create the release's namespace"),
    (
        "disable-openapi-validation",
        "Do not check documents against the cluster's schemas; they are not checked",
    ),
    ("force-conflicts", "Take over fields from other managers"),
    ("force-replace", "Replace objects instead of changing them"),
    ("replace", "Use the name of a deleted release again"),
    ("rollback-on-failure", "Take back what failed"),
    ("server-side", "Let the server work out changes"),
    (
        "skip-crds",
        "Do not install custom resource definitions; --include-crds prints them",
    ),
    ("wait-for-jobs", "Wait for Jobs as well"),
    ("atomic", ""),
    ("force", ""),
    ("hide-notes", ""),
    ("render-subchart-notes", ""),
    ("validate", ""),
];

/// Those that Helm calls old when they are used, and what it says of them.
const DEPRECATED: [(&str, &str); 5] = [
    ("atomic", "use --rollback-on-failure instead"),
    ("force", "use --force-replace instead"),
    ("hide-notes", "it has no effect here"),
    ("render-subchart-notes", "it has no effect here"),
    ("validate", "use '--dry-run=server' instead"),
];

impl Args for Idle {
    fn augment_args(command: Command) -> Command {
        let flag = |name: &'static str, help: &'static str| {
            Arg::new(name)
                .long(name)
                .help(help)
                .hide(help.is_empty())
                .help_heading(HEADING)
                .action(ArgAction::Set)
        };
        let switch = |(name, help)| {
            let switch = flag(name, help).value_parser(Switch::from_str);
            match name {
                "server-side" => switch.default_value("true"),
                "force-conflicts" => switch.conflicts_with_all(["force-replace", "force"]),
                _ => switch,
            }
        };
        let wait = flag(
            "wait",
            "Wait until everything is ready: watcher, hookOnly or legacy",
        )
        .value_parser(WaitStrategy::from_str)
        .num_args(0..=1)
        .require_equals(true)
        .default_missing_value("watcher")
        .value_name("STRATEGY");
        let timeout = flag("timeout", "How long to wait").value_name("DURATION");
        let color = |name| {
            flag(name, "Whether to print in colours: never, auto or always")
                .value_name("WHEN")
                .hide_possible_values(true)
                .value_parser(["never", "auto", "always"])
        };
        command
            .args(SWITCHES.map(switch))
            .arg(flag("description", "A description of the release").value_name("TEXT"))
            .arg(timeout.value_parser(GoDuration::from_str))
            .arg(wait)
            .arg(
                flag("burst-limit", "Requests at one time")
                    .value_parser(value_parser!(i64))
                    .value_name("NUMBER"),
            )
            .arg(
                flag("qps", "Requests a second")
                    .value_parser(value_parser!(f32))
                    .value_name("NUMBER"),
            )
            .args(["color", "colour"].map(color))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Idle {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self {
            validate: matches.get_one("validate") == Some(&Switch(true)),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// What is to be said of old flags that were used.
fn deprecated(matches: &ArgMatches) -> Vec<String> {
    let used = |name: &str| matches.value_source(name) == Some(ValueSource::CommandLine);
    DEPRECATED
        .iter()
        .filter(|(name, _)| used(name))
        .map(|(name, instead)| format!("flag --{name} has been deprecated, {instead}"))
        .collect()
}
