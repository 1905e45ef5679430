//! `evenkeel cluster consent`: what would be deleted, and agreeing to it.

use std::io::BufRead;

use anyhow::{Context, bail};
use clap::Args;
use evenkeel_api::{Client, Consent, GiveConsent};
use evenkeel_core::{ChangeConsent, ClusterName, ComponentName, Digest};

use crate::output::{self, OutputFormat};

/// How many objects of each plan are shown; the rest are counted. JSON and YAML show all that are kept.
const OBJECTS_SHOWN: usize = 100;

/// What a change of a cluster may lose.
#[derive(Debug, Args)]
pub(super) struct Losses {
    /// What the change may lose: emptyComponents (no component is left), removals (many components go), namespaceChange (a
    /// component is deleted and installed in another namespace)
    #[arg(long, value_name = "LOSS", value_delimiter = ',')]
    pub(super) consent: Vec<ChangeConsent>,
}

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// The cluster's name
    name: ClusterName,
    /// Only of this component
    #[arg(long, value_name = "NAME")]
    component: Option<ComponentName>,
    /// Give consent to the plan of this digest
    #[arg(long, value_name = "DIGEST", conflicts_with = "yes")]
    plan: Option<Digest>,
    /// Give consent to everything that is shown, without asking
    #[arg(short, long)]
    yes: bool,
    /// Ask for consent to each plan on the terminal
    #[arg(long, conflicts_with_all = ["plan", "yes"])]
    give: bool,
    /// How the result is printed
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

const EXAMPLES: &str = "Examples:
  evenkeel cluster consent prod-1                       show what would be deleted
  evenkeel cluster consent prod-1 --plan sha256:4f…     agree to just that
  evenkeel cluster consent prod-1 --component web --yes agree to whatever is shown

Consent is used once, for one version of the cluster, and written to the audit log.";

pub(super) async fn run(client: &Client, arguments: Arguments) -> anyhow::Result<()> {
    let mut open = client.consents(&arguments.name).await?;
    if let Some(component) = &arguments.component {
        open.retain(|consent| consent.component == *component);
    }
    output::print(arguments.output, &open, || table(&arguments.name, &open))?;
    let wanted: Vec<&Consent> = open
        .iter()
        .filter(|consent| consent.given.is_none())
        .filter(|consent| arguments.plan.is_none_or(|plan| consent.plan_digest == plan))
        .collect();
    if let Some(plan) = arguments.plan.filter(|_| wanted.is_empty()) {
        bail!("nothing asks for consent to plan {plan}: what does is shown above");
    }
    if !(arguments.yes || arguments.give || arguments.plan.is_some()) {
        return Ok(());
    }
    for consent in wanted {
        if arguments.give && !confirmed(consent)? {
            output::note(&format!("component {}: nothing was agreed to", consent.component));
            continue;
        }
        let given = client
            .give_consent(&arguments.name, &GiveConsent::from(consent))
            .await?;
        output::note(&format!(
            "component {}: consent was given to delete {} of {} objects",
            given.component, given.deleted, given.of
        ));
    }
    Ok(())
}

fn confirmed(consent: &Consent) -> anyhow::Result<bool> {
    output::note(&format!(
        "This lets component {} delete {} of {} objects. Type its name to agree:",
        consent.component, consent.deleted, consent.of
    ));
    let mut answer = String::new();
    std::io::stdin()
        .lock()
        .read_line(&mut answer)
        .context("standard input cannot be read")?;
    Ok(answer.trim() == consent.component.as_str())
}

fn table(cluster: &ClusterName, open: &[Consent]) -> String {
    if open.is_empty() {
        return format!("nothing of cluster {cluster} waits for consent");
    }
    let texts: Vec<String> = open.iter().map(one).collect();
    texts.join("\n\n")
}

fn one(consent: &Consent) -> String {
    let state = match consent.given {
        Some(given) => format!("given {given:.0}"),
        None => format!("waits until {:.0}", consent.until),
    };
    let header = format!(
        "component {} at version {}: {} of {} objects would be deleted ({}), {state}\nplan {}",
        consent.component, consent.version, consent.deleted, consent.of, consent.kind, consent.plan_digest
    );
    let objects = consent.objects.iter().take(OBJECTS_SHOWN);
    let mut lines: Vec<String> = objects.map(|object| format!("  {object}")).collect();
    let more = consent.deleted.saturating_sub(lines.len() as u64);
    if more > 0 {
        lines.push(format!("  and {more} more"));
    }
    format!("{header}\n{}", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use evenkeel_core::{ConfigurationVersion, ConsentKind, ObjectRef};
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn what_would_go_is_shown_in_bounds() {
        let object = |index: usize| ObjectRef {
            group: "apps".to_owned(),
            kind: "Deployment".to_owned(),
            namespace: Some("shop".to_owned()),
            name: format!("web-{index}"),
        };
        let consent = Consent {
            version: ConfigurationVersion(3),
            component: ComponentName::new("web").expect("a name"),
            kind: ConsentKind::EmptyRender,
            plan_digest: Digest::of("x"),
            operation: "c1--00000000-0000-7000-8000-000000000002".parse().expect("an id"),
            deleted: 7_000,
            of: 7_000,
            objects: (0..5_000).map(object).collect(),
            asked: Timestamp::UNIX_EPOCH,
            until: Timestamp::UNIX_EPOCH,
            given: None,
        };
        let text = table(&ClusterName::new("c1").expect("a name"), &[consent]);
        assert_eq!(text.lines().count(), 2 + OBJECTS_SHOWN + 1, "{text}");
        assert!(text.contains("7000 of 7000 objects would be deleted (emptyRender)"));
        assert!(text.contains("  Deployment.apps/web-0 in namespace shop"));
        assert!(text.ends_with("and 6900 more"));
        let none = table(&ClusterName::new("c1").expect("a name"), &[]);
        assert_eq!(none, "nothing of cluster c1 waits for consent");
    }
}
