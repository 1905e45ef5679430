//! The arguments of `evenkeel local`, and the components they describe.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args};
use evenkeel_component::Agreement;
use evenkeel_core::{ClusterName, ComponentName, Digest, HookPolicy, HumanDuration, Namespace, OnConflict};

use crate::output::OutputFormat;

/// Where components go unless told otherwise.
const DEFAULT_NAMESPACE: &str = "default";
/// What `--consent` without a digest stands for.
const ANY_PLAN: &str = "any";

/// Run components on one cluster, without a mothership.
///
/// The same pipeline as the mothership's: render, plan, apply, wait until ready, prune. Nothing is kept but what the
/// cluster itself holds.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The cluster's kubeconfig; else those that KUBECONFIG lists, else ~/.kube/config
    #[arg(long, value_name = "FILE")]
    pub(super) kubeconfig: Option<PathBuf>,
    /// Use this context of the kubeconfig instead of its current one
    #[arg(long, value_name = "NAME")]
    pub(super) context: Option<String>,
    /// Run credential programs that the kubeconfig names
    #[arg(long)]
    pub(super) allow_exec: bool,
    /// A component and its chart, kustomization or manifests, a directory or a .tgz; may be repeated. With --delete the
    /// name is enough
    ///
    /// A chart may also lie elsewhere: `oci://HOST/PATH/CHART:TAG`, https://…/CHART.tgz, or REPOSITORY/CHART of a
    /// repository that `helm repo add` noted
    #[arg(long = "component", value_name = "NAME=PATH", required = true)]
    components: Vec<ChartAssignment>,
    /// The Helm repository that a component's chart is in; --component then gives the chart's name alone
    #[arg(long = "repo", value_name = "COMPONENT=URL")]
    repositories: Vec<Assignment>,
    /// The version, or range of versions, of a component's chart; else the newest release
    #[arg(long = "version", value_name = "COMPONENT=VERSION")]
    versions: Vec<Assignment>,
    /// Credentials and certificates for repositories and registries, in the mothership's form (see docs/clusters.md);
    /// those that `helm repo add` and `helm registry login` noted are used as well
    #[arg(long, value_name = "FILE", env = "EVENKEEL_SOURCE_CREDENTIALS")]
    pub(super) source_credentials: Option<PathBuf>,
    #[command(flatten)]
    pub(super) helm_files: crate::charts::HelmFiles,
    /// Use only charts that somebody in a keyring signed; directories cannot be signed and are refused (see
    /// docs/signed-charts.md)
    #[arg(long)]
    pub(super) verify: bool,
    /// The public keys for --verify; else those of GnuPG
    #[arg(long, value_name = "FILE", requires = "verify")]
    pub(super) keyring: Option<PathBuf>,
    /// The namespace of all components, or of one; created when missing
    #[arg(short, long = "namespace", value_name = "[COMPONENT=]NAMESPACE")]
    namespaces: Vec<String>,
    /// A values file for a component; later ones win
    #[arg(short = 'f', long = "values", value_name = "COMPONENT=FILE")]
    values: Vec<Assignment>,
    /// One value for a component, as `helm --set` reads it
    #[arg(long = "set", value_name = "COMPONENT.PATH=VALUE")]
    set: Vec<ValueAssignment>,
    /// One value for a component that stays a text whatever it looks like
    #[arg(long = "set-string", value_name = "COMPONENT.PATH=VALUE")]
    set_string: Vec<ValueAssignment>,
    /// When further objects of a component are ready: a file with a list as `readiness` of a component's document is, in CEL
    #[arg(long = "readiness", value_name = "COMPONENT=FILE")]
    readiness: Vec<Assignment>,
    /// A component waits for another one to be ready
    #[arg(long = "depends-on", value_name = "COMPONENT=OTHER")]
    depends_on: Vec<Assignment>,
    #[command(flatten)]
    pub(super) kustomize: crate::kustomize::Arguments,
    #[command(flatten)]
    pub(super) limits: crate::limits::Arguments,
    /// Take over existing objects that are not ours, and components that another fleet installed
    #[arg(long)]
    pub(super) adopt: bool,
    /// What is done about fields of objects that others own with other values: take them, leave them, or stop with an error.
    /// An object's annotation `evenkeel.dev/on-conflict` wins
    #[arg(long, value_name = "POLICY", default_value_t, value_parser = conflict_policy())]
    pub(super) on_conflict: OnConflict,
    /// Wait until everything is ready; `--wait=false` returns once it is applied
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    pub(super) wait: bool,
    /// How long the objects of one component may take to become ready
    #[arg(long, value_name = "DURATION", default_value = "5m")]
    pub(super) timeout: HumanDuration,
    /// Show what would be done to which object and change nothing; exit with 0 whether or not there is something to do
    #[arg(long)]
    pub(super) plan: bool,
    /// Do not run the Helm hooks of charts
    #[arg(long)]
    pub(super) no_hooks: bool,
    /// Remove the components instead, in reverse order; `--wait=false` does not wait until everything is gone, and leaves
    /// the rest to a later call
    #[arg(long)]
    pub(super) delete: bool,
    /// With --delete, take finalizers that hold objects in the end off those of kinds that a component itself defines
    #[arg(long, requires = "delete")]
    pub(super) strip_finalizers: bool,
    /// Agree to what a render that became empty, or lost more than a fifth of its objects, would delete; with a digest, as
    /// the refusal names it, to just that plan
    #[arg(long, value_name = "DIGEST", num_args = 0..=1, default_missing_value = ANY_PLAN, require_equals = true, conflicts_with = "delete")]
    consent: Vec<String>,
    /// The fleet in whose name objects are kept. A mothership's fleet has another one, and neither touches the other's
    #[arg(long, value_name = "NAME", default_value = "local")]
    pub(super) fleet_name: String,
    /// The name of the cluster in that fleet
    #[arg(long, value_name = "NAME", default_value = "local")]
    pub(super) cluster_name: ClusterName,
    /// How the result is printed
    #[arg(short, long, value_enum, default_value_t)]
    pub(super) output: OutputFormat,
}

const EXAMPLES: &str = "Examples:
  evenkeel local --namespace shop --component web=./charts/web
  evenkeel local --component db=./db --component web=./web --depends-on web=db --set web.replicas=2
  evenkeel plan --component web=./charts/web
  evenkeel local --component web=oci://registry.example.com/charts/web --version web=^1.2
  evenkeel local --component web=./charts/web --delete

Exit status: 0 ready (or planned, or deleted), 1 failed or interrupted, 2 wrong usage, 130 interrupted twice.";

/// `COMPONENT=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Assignment {
    component: ComponentName,
    value: String,
}

/// `NAME=PATH`, or `NAME` alone for a component that is only deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ChartAssignment {
    component: ComponentName,
    path: Option<String>,
}

/// `COMPONENT.PATH=VALUE`, the part after the first dot being Helm's.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ValueAssignment {
    component: ComponentName,
    expression: String,
}

/// One component as the arguments describe it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LocalComponent {
    pub(super) name: ComponentName,
    /// Where its chart is; none for one that is only deleted.
    pub(super) path: Option<String>,
    /// The Helm repository that it is in, if one was named.
    pub(super) repository: Option<String>,
    /// The version or range of it.
    pub(super) version: Option<String>,
    pub(super) namespace: Namespace,
    pub(super) files: Vec<PathBuf>,
    pub(super) set: Vec<String>,
    pub(super) set_string: Vec<String>,
    pub(super) depends_on: Vec<ComponentName>,
    /// The file of its readiness rules.
    pub(super) readiness: Option<PathBuf>,
}

impl FromStr for Assignment {
    type Err = WrongForm;

    fn from_str(text: &str) -> Result<Self, WrongForm> {
        let (component, value) = text
            .split_once('=')
            .ok_or_else(|| WrongForm("expected COMPONENT=VALUE".to_owned()))?;
        if value.is_empty() {
            return Err(WrongForm(format!("nothing stands after {component}=")));
        }
        Ok(Self {
            component: component.parse().map_err(WrongForm::of)?,
            value: value.to_owned(),
        })
    }
}

impl FromStr for ChartAssignment {
    type Err = WrongForm;

    fn from_str(text: &str) -> Result<Self, WrongForm> {
        if text.contains('=') {
            let Assignment { component, value } = text.parse()?;
            return Ok(Self {
                component,
                path: Some(value),
            });
        }
        let component = text
            .parse()
            .map_err(|_| WrongForm(format!("expected NAME=PATH, like web=./{text}")))?;
        Ok(Self {
            component,
            path: None,
        })
    }
}

impl FromStr for ValueAssignment {
    type Err = WrongForm;

    fn from_str(text: &str) -> Result<Self, WrongForm> {
        let (component, expression) = text
            .split_once('.')
            .filter(|(component, expression)| !component.contains('=') && expression.contains('='))
            .ok_or_else(|| WrongForm("expected COMPONENT.PATH=VALUE, like web.replicas=2".to_owned()))?;
        Ok(Self {
            component: component.parse().map_err(WrongForm::of)?,
            expression: expression.to_owned(),
        })
    }
}

/// The names of conflict policies, shown in the help and in refusals.
fn conflict_policy() -> impl TypedValueParser<Value = OnConflict> {
    PossibleValuesParser::new(OnConflict::ALL.map(OnConflict::as_str))
        .try_map(|name| name.parse::<OnConflict>())
}

/// An argument that cannot be read.
#[derive(Debug)]
struct WrongForm(String);

impl WrongForm {
    fn of(error: evenkeel_core::Error) -> Self {
        Self(error.to_string())
    }
}

impl fmt::Display for WrongForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WrongForm {}

impl Arguments {
    pub(super) fn hooks(&self) -> HookPolicy {
        if self.no_hooks {
            HookPolicy::Ignore
        } else {
            HookPolicy::Run
        }
    }

    /// What the user has agreed to delete.
    pub(super) fn agreement(&self) -> anyhow::Result<Agreement> {
        if self.consent.iter().any(|plan| plan == ANY_PLAN) {
            return Ok(Agreement::Everything);
        }
        let plans = self.consent.iter().map(|plan| plan.parse::<Digest>());
        let plans = plans.collect::<Result<BTreeSet<_>, _>>().context("--consent")?;
        Ok(if plans.is_empty() {
            Agreement::Nothing
        } else {
            Agreement::Plans(plans)
        })
    }

    /// The components, in the order given, with everything that other arguments say of them.
    pub(super) fn components(&self) -> anyhow::Result<Vec<LocalComponent>> {
        let (everywhere, namespaces) = self.namespaces()?;
        let mut components: Vec<LocalComponent> = Vec::new();
        for ChartAssignment { component, path } in &self.components {
            if components.iter().any(|other| other.name == *component) {
                bail!("--component {component} is given twice");
            }
            if path.is_none() && !self.delete {
                bail!("--component {component} names no source: expected {component}=PATH");
            }
            components.push(LocalComponent {
                name: component.clone(),
                path: path.clone(),
                repository: None,
                version: None,
                namespace: namespaces.get(component).unwrap_or(&everywhere).clone(),
                files: Vec::new(),
                set: Vec::new(),
                set_string: Vec::new(),
                depends_on: Vec::new(),
                readiness: None,
            });
        }
        for Assignment { component, value } in &self.repositories {
            let component = find(&mut components, component, "--repo")?;
            component.repository = Some(value.clone());
        }
        for Assignment { component, value } in &self.versions {
            find(&mut components, component, "--version")?.version = Some(value.clone());
        }
        for Assignment { component, value } in &self.values {
            find(&mut components, component, "--values")?
                .files
                .push(PathBuf::from(value));
        }
        for ValueAssignment {
            component,
            expression,
        } in &self.set
        {
            find(&mut components, component, "--set")?
                .set
                .push(expression.clone());
        }
        for ValueAssignment {
            component,
            expression,
        } in &self.set_string
        {
            find(&mut components, component, "--set-string")?
                .set_string
                .push(expression.clone());
        }
        for Assignment { component, value } in &self.readiness {
            find(&mut components, component, "--readiness")?.readiness = Some(PathBuf::from(value));
        }
        for Assignment { component, value } in &self.depends_on {
            let other: ComponentName = value
                .parse()
                .with_context(|| format!("--depends-on {component}={value}"))?;
            find(&mut components, &other, "--depends-on")?;
            find(&mut components, component, "--depends-on")?
                .depends_on
                .push(other);
        }
        for component in namespaces.keys() {
            find(&mut components, component, "--namespace")?;
        }
        Ok(components)
    }

    /// The namespace of all components, and those of single ones.
    fn namespaces(&self) -> anyhow::Result<(Namespace, BTreeMap<ComponentName, Namespace>)> {
        let mut everywhere = None;
        let mut single = BTreeMap::new();
        for text in &self.namespaces {
            match text.split_once('=') {
                None => {
                    if everywhere.replace(text.parse::<Namespace>()?).is_some() {
                        bail!("--namespace is given twice for all components");
                    }
                }
                Some((component, namespace)) => {
                    let component: ComponentName = component.parse()?;
                    if single.insert(component.clone(), namespace.parse()?).is_some() {
                        bail!("--namespace is given twice for component {component}");
                    }
                }
            }
        }
        Ok((everywhere.map_or_else(|| DEFAULT_NAMESPACE.parse(), Ok)?, single))
    }
}

fn find<'a>(
    components: &'a mut [LocalComponent],
    name: &ComponentName,
    flag: &str,
) -> anyhow::Result<&'a mut LocalComponent> {
    let known: Vec<_> = components
        .iter()
        .map(|component| component.name.to_string())
        .collect();
    components
        .iter_mut()
        .find(|component| component.name == *name)
        .with_context(|| {
            format!(
                "{flag} names component {name}, which no --component gives: there are {}",
                known.join(", ")
            )
        })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn components(arguments: &[&str]) -> anyhow::Result<Vec<LocalComponent>> {
        let parsed = Command::try_parse_from([&["local"], arguments].concat())?;
        parsed.arguments.components()
    }

    #[test]
    fn consent_is_to_any_plan_or_to_some() {
        let agreement = |more: &[&str]| {
            let given = [&["local", "--component", "web=./web"], more].concat();
            Command::try_parse_from(given)
                .map_err(anyhow::Error::from)
                .and_then(|parsed| parsed.arguments.agreement())
        };
        let digest = Digest::of("x");
        assert_eq!(agreement(&[]).ok(), Some(Agreement::Nothing));
        assert_eq!(agreement(&["--consent"]).ok(), Some(Agreement::Everything));
        let text = format!("--consent={digest}");
        assert_eq!(agreement(&[&text]).ok(), Some(Agreement::Plans([digest].into())));
        assert_eq!(agreement(&[&text, "--consent"]).ok(), Some(Agreement::Everything));
        assert!(agreement(&["--consent=4f"]).is_err() && agreement(&["--consent", "--delete"]).is_err());
    }

    #[test]
    fn arguments_find_their_component() {
        let components = components(&[
            "--component",
            "db=./db",
            "--component",
            "web=./web",
            "-n",
            "shop",
            "-n",
            "web=front",
            "-f",
            "web=v.yaml",
            "--set",
            "web.a.b=1,c=2",
            "--set-string",
            "db.x=3",
            "--depends-on",
            "web=db",
        ])
        .expect("the arguments are right");
        let [db, web] = components.as_slice() else {
            panic!("two components")
        };
        assert_eq!((db.namespace.as_str(), web.namespace.as_str()), ("shop", "front"));
        assert_eq!(web.files, [PathBuf::from("v.yaml")]);
        assert_eq!(
            (web.set.as_slice(), db.set_string.as_slice()),
            (&["a.b=1,c=2".to_owned()][..], &["x=3".to_owned()][..])
        );
        assert_eq!(
            web.depends_on
                .iter()
                .map(ComponentName::as_str)
                .collect::<Vec<_>>(),
            ["db"]
        );
    }

    #[test]
    fn what_names_no_component_is_refused() {
        for arguments in [
            &["--component", "web=./web", "--set", "replicas=2"][..],
            &["--component", "web=./web", "--set", "db.replicas=2"],
            &["--component", "web=./web", "-f", "v.yaml"],
            &["--component", "web=./web", "--component", "web=./x"],
            &["--component", "web=./web", "-n", "db=x"],
            &["--component", "web=./web", "--depends-on", "web=db"],
            &["--component", "./web"],
            &["--component", "web"],
            &["--component", "web="],
            &[],
        ] {
            assert!(components(arguments).is_err(), "{arguments:?}");
        }
    }

    #[test]
    fn what_is_only_deleted_needs_no_chart() {
        let components = components(&["--component", "web", "--delete"]).expect("the arguments are right");
        assert_eq!(
            components
                .iter()
                .map(|component| component.path.clone())
                .collect::<Vec<_>>(),
            [None]
        );
    }

    #[test]
    fn waiting_can_be_switched_off() {
        let wait = |more: &[&str]| {
            Command::try_parse_from([&["local", "--component", "a=b"], more].concat())
                .map(|parsed| parsed.arguments.wait)
        };
        assert_eq!(wait(&[]).ok(), Some(true));
        assert_eq!(wait(&["--wait"]).ok(), Some(true));
        assert_eq!(wait(&["--wait=false"]).ok(), Some(false));
    }
}
