//! Charts of components that lie in repositories and registries.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context;
use evenkeel_core::{ComponentName, Digest};
use evenkeel_source::{ChartOptions, CredentialsFile, Helm};
use evenkeel_telemetry::{SystemClock, Tasks};

use super::arguments::{Arguments, LocalComponent};
use super::inputs::LocalArchives;
use crate::kubeconfig::expand;
use crate::process::Usage;
use crate::{charts, output};

/// Obtains the charts that do not lie on this machine, all at the same time.
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
                    ..ChartOptions::default()
                },
                charts::cache(None),
            );
            if let Some(credentials) = credentials {
                helm = helm.with_credentials(credentials);
            }
            let Some(chart) = chart_elsewhere(component, &helm)? else {
                return Ok(None);
            };
            let located = helm
                .fetch(chart, Arc::new(SystemClock), tasks.clone())
                .await
                .with_context(|| format!("the chart of component {} cannot be obtained", component.name))?;
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
