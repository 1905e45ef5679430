//! Charts of components that lie in repositories and registries, and all whose signatures are checked.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context;
use evenkeel_core::{ComponentName, Digest};
use evenkeel_source::{ChartOptions, CredentialsFile, Helm, Located};
use evenkeel_telemetry::{SystemClock, Tasks};

use super::arguments::{Arguments, LocalComponent};
use super::inputs::LocalArchives;
use crate::kubeconfig::expand;
use crate::process::Usage;
use crate::{charts, output};

/// Obtains the charts that do not lie on this machine, or whose signatures are to be checked, all at the same time.
pub(super) async fn fetch(
    arguments: &Arguments,
    components: &[LocalComponent],
    tasks: &Tasks,
) -> anyhow::Result<(LocalArchives, BTreeMap<ComponentName, Digest>)> {
    let credentials = arguments.source_credentials.as_ref();
    let credentials = credentials
        .map(CredentialsFile::open)
        .transpose()
        .map_err(|error| Usage(error.into()))?;
    let fetching = components.iter().map(|component| {
        let credentials = credentials.as_ref();
        async move {
            let mut helm = Helm::new(
                arguments.helm_files.settings(),
                ChartOptions {
                    repo: component.repository.clone(),
                    version: component.version.clone(),
                    verify: arguments.verify,
                    keyring: arguments.keyring.as_deref().map(expand),
                    ..ChartOptions::default()
                },
                charts::cache(None),
            );
            if let Some(credentials) = credentials {
                helm = helm.with_credentials(credentials);
            }
            let located = match chart_elsewhere(component, &helm)? {
                Some(chart) => helm.fetch(chart, Arc::new(SystemClock), tasks.clone()).await,
                None => match verified(component, helm, tasks).await? {
                    Some(located) => located,
                    None => return Ok(None),
                },
            };
            let located = located.with_context(|| failure(component, arguments))?;
            Ok::<_, anyhow::Error>(Some((component.name.clone(), located)))
        }
    });
    let mut archives = LocalArchives::default();
    let mut digests = BTreeMap::new();
    for (name, located) in futures::future::try_join_all(fetching)
        .await?
        .into_iter()
        .flatten()
    {
        for warning in &located.warnings {
            output::note(&format!("warning: {warning}"));
        }
        digests.insert(name, archives.keep(located.archive));
    }
    Ok((archives, digests))
}

/// What is said of a chart that is not to be had: with what its signature is checked against, when that may be why.
fn failure(component: &LocalComponent, arguments: &Arguments) -> String {
    let name = &component.name;
    let chart = component.path.as_deref().unwrap_or_default();
    match &arguments.keyring {
        Some(keyring) => {
            let keyring = keyring.display();
            format!("the chart of component {name} cannot be obtained: {chart}, by the keys of {keyring}")
        }
        None => format!("the chart of component {name} cannot be obtained: {chart}"),
    }
}

/// An archive of this machine, its signature checked; none when none is asked for.
async fn verified(
    component: &LocalComponent,
    helm: Helm,
    tasks: &Tasks,
) -> anyhow::Result<Option<Result<Located, evenkeel_source::Error>>> {
    let Some(path) = component.path.as_deref().map(expand) else {
        return Ok(None);
    };
    let work = move || helm.verified_archive(&path).transpose();
    tasks
        .blocking("check a signature", work)
        .await
        .context("the work was cut off")
}

/// What a component's chart is called elsewhere; none when it is a path.
fn chart_elsewhere<'c>(component: &'c LocalComponent, helm: &Helm) -> anyhow::Result<Option<&'c str>> {
    let Some(chart) = component.path.as_deref() else {
        return Ok(None);
    };
    let is_path = component.repository.is_none() && expand(chart).exists();
    if is_path || !helm.is_elsewhere(chart)? {
        if component.version.is_some() {
            return Err(Usage(anyhow::anyhow!(
                "--version of component {}: {chart} is a path, and what lies there has one version",
                component.name
            ))
            .into());
        }
        return Ok(None);
    }
    Ok(Some(chart))
}
